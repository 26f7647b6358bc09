// SPDX-License-Identifier: MIT
/*
 * See lend.h. The watcher is a process of its own: it reads pages of the lender's, which another
 * program of this user's may cut short, and then it alone ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/mps/mps_daemon.h"
#include "cli/start/lend.h"
#include "cli/target/check.h"
#include "cli/target/shown.h"
#include "cli/util/message.h"
#include "cli/util/process.h"
#include "cli/util/yaml.h"

#define LEAST_NS	1000		/* of a bound */
#define MOST_NS		1000000000
#define FIND_US		50000		/* between two looks for the lender, */
#define BUSY_US		100		/* and two at it */
#define IDLE_US		500

/* ------------------------------------------------------------------- options */

/* The nanoseconds that @text, the value of @option, is: 0, or an error. */
static int take_time(const char *option, const char *text, uint64_t *ns)
{
	if (yaml_read_time(text, ns) && *ns >= LEAST_NS && *ns <= MOST_NS)
		return 0;
	return failure("%s %s: wants a time from 1us to 1s, as 300us or 0.5ms", option, text);
}

int lend_check(struct lend_wishes *wishes, const char *name, bool exec)
{
	const char *records = getenv("GPUPART_RECORDS");
	const char *option = wishes->job ? "--lend" : wishes->limit ? "--lend-limit" : "--depth";
	int status = 0;

	if (!wishes->job && !wishes->limit && !wishes->depth)
		return 0;
	if (!wishes->job != !wishes->limit)
		return failure("%s: wants %s, too", option,
			       wishes->job ? "--lend-limit TIME" : "--lend JOB");
	if (exec)
		return failure("%s and --exec: take one, this needs a parent that stays", option);
	if (records && !strcmp(records, "0"))
		return failure("GPUPART_RECORDS=0: %s needs records of launches", option);
	if (wishes->job)
		status = check_name(wishes->job);
	if (!status && name && wishes->job && !strcmp(wishes->job, name))
		status = failure("--lend %s: that is this run itself", name);
	if (!status && wishes->limit)
		status = take_time("--lend-limit", wishes->limit, &wishes->limit_ns);
	/* Two kernels: the second one runs while the thread sees that the first has ended. */
	wishes->depth_ns = 2 * wishes->limit_ns;
	if (!status && wishes->depth)
		status = take_time("--depth", wishes->depth, &wishes->depth_ns);
	return status;
}

void lend_prepare(const struct lend_wishes *wishes, struct gpupart_report *report)
{
	if (!lend_is_asked(wishes))
		return;
	gpupart_lend_bound(report, wishes->depth_ns, wishes->limit_ns);
}

/* ------------------------------------------------------------------- finding the lender */

struct found {
	int pids[GPUPART_LENDER_MAX];
	unsigned int nr;
	char id[64];		/* of their report */
};

struct watch {
	const struct lend_wishes *wishes;
	struct gpupart_report *report;
	const char *id;
	bool simulated;
	char pipes[256];	/* of the MPS daemon that the program uses */
	char pci[20];
	char said[512];
	struct gpupart_lender *lender;
};

static struct watch watch;

/* Why nothing is lent, once. */
__attribute__((format(printf, 1, 2)))
static int say(const char *fmt, ...)
{
	char text[sizeof(watch.said)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (strcmp(text, watch.said))
		remark("--lend %s: nothing is lent%s: %s", watch.wishes->job,
		       watch.simulated ? " (simulated)" : "", text);
	strcpy(watch.said, text);
	return -EAGAIN;
}

/* Adds process @p of the job: 0, or why it cannot lend was said. */
static int add(struct found *found, const struct gpupart_process *p)
{
	char id[sizeof(found->id)], pipes[sizeof(watch.pipes)];

	if (p->uid != geteuid())
		return say("process %d is another user's", p->pid);
	if (p->other_version || !p->pid)
		return say("process %d is of another version of gpupart or pid namespace",
			   p->pid);
	if (found->nr == GPUPART_LENDER_MAX)
		return say("it has more than %d processes", GPUPART_LENDER_MAX);
	process_variable(p->pid, "GPUPART_REPORT", id, sizeof(id));
	if (!strcmp(id, watch.id))
		return say("that is this run itself");
	if (!*id)
		return say("process %d was not started by 'gpupart run' without --exec", p->pid);
	if (found->nr && strcmp(id, found->id))
		return say("there are several runs of that name");
	process_variable(p->pid, MPS_DAEMON_PIPES, pipes, sizeof(pipes));
	if (!watch.simulated && (!*pipes || strcmp(pipes, watch.pipes)))
		return say(
			"they are not both clients of one MPS daemon, see run --mps: without that they take turns");
	strcpy(found->id, id);
	found->pids[found->nr++] = p->pid;
	return 0;
}

/* The job's processes: 0, or why it cannot lend was said. */
static int find(struct found *found)
{
	struct gpupart_process *processes;
	struct gpupart_job *jobs;
	int nr = shown_processes(cmd_gp, &processes), nr_jobs = shown_jobs(cmd_gp, &jobs), err = 0;

	memset(found, 0, sizeof(*found));
	for (int i = 0; !err && i < nr; i++)
		if (shown_is_named(jobs, nr_jobs, &processes[i], watch.wishes->job))
			err = add(found, &processes[i]);
	free(processes);
	free(jobs);
	if (!err && !found->nr)
		err = say("no process of that name uses the GPU");
	return err;
}

/* The program's GPU, once it has one. */
static bool find_own(void)
{
	struct gpupart_report_process p;

	for (unsigned int n = 0; !*watch.pci && !gpupart_report_get(watch.report, n, &p); n++)
		if (p.state == GPUPART_REPORT_CONFINED) {
			strcpy(watch.pci, p.pci);
			process_variable(p.pid, MPS_DAEMON_PIPES, watch.pipes, sizeof(watch.pipes));
		}
	return *watch.pci;
}

static int open_lender(void)
{
	struct found first, again;
	int err = find(&first);

	if (err)
		return err;
	if (gpupart_lender_open(cmd_gp, watch.report, first.id, watch.pci, first.pids, first.nr,
				&watch.lender))
		return say("%s", gpupart_error(cmd_gp));
	/* From here on the library tells when a process joins them. */
	err = find(&again);
	if (!err && memcmp(&first, &again, sizeof(first)))
		err = -EAGAIN;
	if (!err)
		return 0;
	gpupart_lender_close(watch.lender);
	watch.lender = NULL;
	return err;
}

/* ------------------------------------------------------------------- watching */

static void on_fault(int sig)
{
	static const char text[] =
		"gpupart run: --lend: the lender's memory was cut short: nothing is lent any more\n";

	(void)sig;
	if (watch.lender)
		gpupart_lender_stop(watch.lender);
	_exit(write(2, text, sizeof(text) - 1) < 0);
}

/* The microseconds until the next look. */
static unsigned int look(void)
{
	int found;

	if (!watch.lender && (!find_own() || open_lender()))
		return FIND_US;
	found = gpupart_lender_look(cmd_gp, watch.lender);
	if (found >= 0) {
		*watch.said = 0;
		return found ? IDLE_US : BUSY_US;
	}
	if (found != -EAGAIN)
		say("%s", gpupart_error(cmd_gp));
	gpupart_lender_close(watch.lender);
	watch.lender = NULL;
	return FIND_US;
}

static void __attribute__((noreturn)) be_watcher(pid_t parent)
{
	const struct sigaction fault = { .sa_handler = on_fault };
	struct timespec pause;
	sigset_t one;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	sigaction(SIGBUS, &fault, NULL);
	sigemptyset(&one);
	sigaddset(&one, SIGBUS);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	for (;;) {
		pause = (struct timespec){ .tv_nsec = look() * 1000l };
		nanosleep(&pause, NULL);
	}
}

void lend_watch(const struct lend_wishes *wishes, struct gpupart_report *report, const char *id,
		bool simulated)
{
	pid_t parent = getpid(), pid;

	if (!wishes->limit_ns)
		return;
	watch = (struct watch){
		.wishes = wishes, .report = report, .id = id, .simulated = simulated,
	};
	pid = fork();
	if (!pid)
		be_watcher(parent);
	if (pid < 0)
		say("no process to watch it: %s", strerror(errno));
}

void lend_say(const struct lend_wishes *wishes, const struct gpupart_report *report,
	      bool simulated)
{
	struct gpupart_lend_counts counts;

	if (!lend_is_asked(wishes))
		return;
	gpupart_lend_counts(report, &counts);
	if (wishes->job)
		remark(
			"%llu launches could use idle TPCs of '%s', too%s; kernels that took too long there: %llu",
		       (unsigned long long)counts.lent, wishes->job,
		       simulated ? " (simulated)" : "", (unsigned long long)counts.revoked);
	if (counts.expired)
		remark("%llu launches waited in vain for earlier ones to end%s",
		       (unsigned long long)counts.expired, simulated ? " (simulated)" : "");
}
