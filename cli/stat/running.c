// SPDX-License-Identifier: MIT
/* Finds the processes of `gpupart stat -p PID` and `gpupart stat NAME`, and watches them. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/stat/running.h"
#include "cli/target/shown.h"
#include "cli/util/alloc.h"
#include "cli/util/process.h"

#define MAX_GPUS 64

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	interrupted = sig;
}

/* ------------------------------------------------------------------- finding */

/* A row for each of its GPUs. */
static int add_process(struct running *running, const struct gpupart_process *p)
{
	struct gpupart_process *gpus = alloc_zeroed(MAX_GPUS, sizeof(*gpus));
	int nr = gpupart_process_gpu_list(cmd_gp, p, gpus, MAX_GPUS, sizeof(*gpus)), err = nr;

	for (int i = 0; err >= 0 && i < nr && i < MAX_GPUS; i++) {
		struct running_row *row;

		running->rows = alloc_resized(running->rows, running->nr_rows + 1, sizeof(*row));
		row = memset(&running->rows[running->nr_rows], 0, sizeof(*row));
		row->process = gpus[i];
		err = gpupart_records_open(cmd_gp, p->pid, gpus[i].pci, &row->reader);
		running->nr_rows += !err;
	}
	free(gpus);
	return err < 0 ? error_of(err, "%s", gpupart_error(cmd_gp)) : 0;
}

static int fail_pid(int pid)
{
	if (!kill(pid, 0))
		return usage_error(
			"process %d has no records: it has not called cuInit, or runs without gpupart: see 'gpupart ps'",
			pid);
	return errno == ESRCH ? usage_error("process %d does not exist", pid) :
	       usage_error(
		"process %d is another user's: only that user and root read its records", pid);
}

int running_find(struct running *running, const char *pid, const char *name)
{
	struct gpupart_process *processes = NULL;
	struct gpupart_job *jobs = NULL;
	int nr = 0, nr_jobs = 0, wanted = 0, status = pid ? args_pid(pid, &wanted) : 0;

	if (!status && ((nr = shown_processes(cmd_gp, &processes)) < 0 ||
			(name && (nr_jobs = shown_jobs(cmd_gp, &jobs)) < 0)))
		status = failure("%s", gpupart_error(cmd_gp));
	for (int i = 0; !status && i < nr; i++) {
		const struct gpupart_process *p = &processes[i];

		if (!p->pid || !(name ? p->uid == geteuid() &&
				 shown_is_named(jobs, nr_jobs, p, name) : p->pid == wanted))
			continue;
		if (p->other_version)
			status = usage_error(
				"process %d runs under another version of gpupart: use 'gpupart stat' of that version",
				p->pid);
		else if (*p->pci)
			status = add_process(running, p);
	}
	if (!status && !running->nr_rows)
		status = pid ? fail_pid(wanted) :
			 usage_error(
				"no process named '%s' that has called cuInit: see 'gpupart ps'; a program follows after --",
				name);
	free(processes);
	free(jobs);
	return status;
}

/* ------------------------------------------------------------------- watching */

static uint64_t cpu_time(int pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int look(struct running_row *row)
{
	struct running_sample now = { .cpu_ns = cpu_time(row->process.pid) };
	unsigned int pause_us;
	int err = gpupart_records_watch(cmd_gp, row->reader, &now.records, &pause_us);

	now.at_ns = process_now_ns();
	row->due_ns = now.at_ns + pause_us * 1000ull;
	row->ended = err == -ESRCH;
	if (err)
		return row->ended ? 0 : error_of(err, "%s", gpupart_error(cmd_gp));
	row->last = now;
	if (!row->looks++)
		row->first = row->told = now;
	row->outstanding_sum += now.records.outstanding;
	if (now.records.outstanding > row->outstanding_max)
		row->outstanding_max = now.records.outstanding;
	return 0;
}

/* All whose time has come, or with @last all: 0, or an error; *left is how many have not ended. */
static int look_all(struct running *running, bool last, unsigned int *left)
{
	uint64_t due_ns = UINT64_MAX, now = process_now_ns();
	int status = 0;

	*left = 0;
	for (unsigned int i = 0; !status && i < running->nr_rows; i++) {
		struct running_row *row = &running->rows[i];

		if (!row->ended && (last || row->due_ns <= now))
			status = look(row);
		*left += !row->ended;
		if (!row->ended && row->due_ns < due_ns)
			due_ns = row->due_ns;
	}
	now = process_now_ns();
	if (!last && *left && due_ns > now)
		nanosleep(&(struct timespec){ .tv_nsec = due_ns - now }, NULL);
	return status;
}

static int watch(struct running *running)
{
	double next = running->interval, seconds = 0;
	unsigned int left;
	int status = look_all(running, true, &left);
	/* What is shown begins with the first look. */
	const uint64_t start_ns = process_now_ns();

	while (!status && left && !interrupted && seconds < running->seconds) {
		status = look_all(running, false, &left);
		seconds = (process_now_ns() - start_ns) / 1e9;
		if (status || !running->interval || seconds < next)
			continue;
		for (unsigned int i = 0; i < running->nr_rows; i++)
			running_interval(running, &running->rows[i], seconds);
		while (next <= seconds)
			next += running->interval;
	}
	status = status ?: look_all(running, true, &left);
	for (unsigned int i = 0; i < running->nr_rows; i++)
		gpupart_records_watched(running->rows[i].reader, &running->rows[i].last.watched);
	return status;
}

int running_measure(struct running *running)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	struct out out;
	json_t *root;
	int status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (running->interval && running->args->json)
		running->intervals = json_array();
	status = watch(running) ?: out_open(&out, running->args);
	if (status)
		return status;
	if (running->args->json) {
		root = out_json_new("stat", running->rows->process.simulated);
		running_json(root, running);
		out_json_write(&out, root);
	} else {
		running_text(&out, running);
	}
	return out_close(&out);
}

void running_drop(struct running *running)
{
	json_decref(running->intervals);
	for (unsigned int i = 0; i < running->nr_rows; i++)
		gpupart_records_close(running->rows[i].reader);
	free(running->rows);
}
