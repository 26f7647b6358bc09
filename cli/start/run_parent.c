// SPDX-License-Identifier: MIT
/*
 * `gpupart run` as the parent of its program. The parent finds processes that are not confined, and
 * reports them at the end. The child computes the set and then executes the program. One thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "cli/mps/mps.h"
#include "cli/start/parent.h"
#include "cli/start/run.h"
#include "cli/start/run_report.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "lib/private.h"

/*
 * Milliseconds between two scans of /proc. The interval begins with LOOK_FIRST and doubles up to
 * LOOK_LAST. When a process starts to use CUDA, the next scan follows after LOOK_SOON. A second
 * scan follows LOOK_AGAIN later, because the process may be confined by then. The first of these
 * two scans takes place at least LOOK_LEAST after the scan before. STRICT_EVERY is the time between
 * two reads of the report.
 *
 * Processes of other users cause scans, too. So a scan that took N ms of CPU time costs LOOK_COST *
 * N ms of a credit. The credit is LOOK_CREDIT ms at most, and grows by 1 ms in each ms. While there
 * is no credit, opens of the device cause no scan.
 */
#define LOOK_FIRST	100
#define LOOK_SOON	20
#define LOOK_AGAIN	50
#define LOOK_LEAST	100
#define LOOK_COST	20
#define LOOK_CREDIT	2000
#define LOOK_LAST	30000
#define LOOK_LAST_STRICT 2000
#define STRICT_EVERY	50
#define MAX_ENDED	512	/* more entries than a report and a witness together have */
#define RAN_ON_MS	2000	/* a program that still runs at this time after SIGTERM is
				 * reported */

struct run {
	struct args *args;
	const struct run_wishes *wishes;
	struct gpupart_report *report;
	const char *id;		/* identifies the report */
	struct witness witness;
	int watch;
	long pause, looked, due;
	long paid;		/* the time at which the scans until now are paid for */
	bool woken;		/* since the last scan */
	/* With --strict: the processes that got SIGTERM, and the time of the first SIGTERM. */
	struct process ended[MAX_ENDED];
	unsigned int nr_ended;
	long ended_at;
};

static int become(void *arg)
{
	struct run *run = arg;
	int status = run_confine(run->args, run->wishes);

	return cmd_exit_status(status ?: run_become(run->args), true);
}

/*
 * If @p is the program or a descendant of the program, sends SIGTERM to @p. This check is needed
 * because any process can write a report. A process gets SIGTERM at most once. The first call also
 * sends SIGTERM to the program.
 */
static void end(struct run *run, const struct process *p, pid_t child)
{
	bool first = !run->nr_ended, below;
	int fd;

	for (unsigned int i = 0; i < run->nr_ended; i++)
		if (process_same(&run->ended[i], p))
			return;
	/* If the list is full, remove processes that have ended. */
	for (unsigned int i = 0; run->nr_ended == MAX_ENDED && i < run->nr_ended; i++)
		if (!process_lives(&run->ended[i]))
			run->ended[i] = run->ended[--run->nr_ended];
	if (run->nr_ended == MAX_ENDED)
		return;
	fd = syscall(SYS_pidfd_open, p->pid, 0);
	/* The descriptor refers to this process even if another process gets its pid. */
	below = fd >= 0 && process_lives(p) && witness_is_below(p->pid, child);
	if (first && p->pid != child)
		mps_end_client(child);
	if (below)
		mps_end_client(p->pid);
	/* End the program first. If it is a shell, it must not start its next command. */
	if (first) {
		run->ended_at = process_now_ms();
		kill(child, SIGTERM);
	}
	if (below)
		syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
	if (fd >= 0)
		close(fd);
	run->ended[run->nr_ended++] = *p;
}

/* Ends processes that are not confined. */
static void keep_strict(struct run *run, pid_t child)
{
	struct gpupart_report_process p;

	for (unsigned int n = 0; !gpupart_report_get(run->report, n, &p); n++)
		if (run_report_breach(&p))
			end(run, &(struct process){ p.pid, p.start }, child);
	for (unsigned int i = 0; i < run->witness.nr; i++) {
		const struct witness_process *w = &run->witness.processes[i];

		if (w->looks > 1 && run_report_find(run->report, &w->process) != RUN_REPORT_PRESENT)
			end(run, &w->process, child);
	}
}

static long later(long a, long b)
{
	return a > b ? a : b;
}

static void scan(struct run *run, pid_t child, long now)
{
	long last = run->wishes->strict ? LOOK_LAST_STRICT : LOOK_LAST;
	clock_t before = clock();

	/* Skip the first call, because the program has not started yet. */
	if (run->pause)
		witness_look(&run->witness, child, run->args->simulated);
	run->paid = later(run->paid, now - LOOK_CREDIT) +
		    (clock() - before) * LOOK_COST / (CLOCKS_PER_SEC / 1000);
	run->looked = now;
	run->woken = false;
	run->pause = run->pause ? 2 * run->pause : LOOK_FIRST;
	run->pause = run->pause < last ? run->pause : last;
	run->due = later(now + run->pause, run->paid);
	run->due = run->due < now + last ? run->due : now + last;
}

static long look(void *arg, pid_t child)
{
	long now = process_now_ms(), soon;
	struct run *run = arg;

	/* An open that is not read yet keeps further opens from waking this process. */
	if (!run->woken && witness_woken(run->watch)) {
		run->woken = true;
		run->pause = LOOK_AGAIN / 2;
		soon = later(later(run->looked + LOOK_LEAST, now + LOOK_SOON), run->paid);
		run->due = soon < run->due ? soon : run->due;
	}
	if (now >= run->due)
		scan(run, child, now);
	if (!run->wishes->strict)
		return run->due - now;
	keep_strict(run, child);
	return STRICT_EVERY;
}

/* Returns whether any process violated --strict. The process may have ended. */
static bool was_breached(const struct run *run)
{
	struct gpupart_report_process p;
	unsigned int nr_refused;
	bool breached = run->nr_ended || gpupart_report_lost(run->report, &nr_refused);

	for (unsigned int n = 0; !breached && !gpupart_report_get(run->report, n, &p); n++)
		breached = run_report_breach(&p);
	return breached;
}

static int supervise(struct run *run, int fd)
{
	struct parent parent = {
		.become = become, .look = look, .arg = run, .keep = fd,
	};
	int wstatus, err = parent_start(&parent);
	long ran_on;

	if (err)
		return failure("cannot create a process: %s", strerror(-err));
	/* Start the lending process here, because all other descriptors are closed now. */
	lend_watch(run->args, &run->wishes->lend, run->report, run->id);
	run->watch = witness_watch(run->args->simulated);
	wstatus = parent_wait(&parent);
	run_report_say(run->report, &run->witness, run->args);
	lend_say(&run->wishes->lend, run->id, run->args->simulated);
	if (run->wishes->strict)
		run_report_say_hidden(run->report, &run->witness, run->args->simulated);
	if (!run->wishes->strict || !was_breached(run))
		return CMD_ENDED | parent_end_as(wstatus);
	ran_on = process_now_ms() - run->ended_at;
	if (run->nr_ended && ran_on >= RAN_ON_MS)
		remark("strict: %s got SIGTERM and ended only after %ld s", run->args->program[0],
		       ran_on / 1000);
	else
		remark("strict: %s %s", run->args->program[0],
		       run->nr_ended ? "was ended, because a launch or process was not confined"
				     : "was not always confined");
	return EXIT_RUN_STRICT;
}

int run_as_parent(struct args *args, const struct run_wishes *wishes)
{
	static struct run run;	/* too large for a small stack */
	const char *id;
	int fd = -1;

	run.args = args;
	run.wishes = wishes;
	if (gpupart_open(&cmd_gp))
		return failure("no memory");
	if (gpupart_report_open(cmd_gp, &run.report, &id)) {
		remark("unconfined launches cannot be reported: %s", gpupart_error(cmd_gp));
		return wishes->strict || lend_is_asked(&wishes->lend) ? EXIT_FAILED : become(&run);
	}
	run.id = id;
	lend_prepare(&wishes->lend, run.report);
	sscanf(id, "/proc/%*d/fd/%d", &fd);
	setenv("GPUPART_REPORT", id, 1);
	/* The report is freed when this process ends. */
	return supervise(&run, fd);
}
