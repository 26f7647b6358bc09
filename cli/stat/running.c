// SPDX-License-Identifier: MIT
/* Finds and samples the processes of `gpupart stat -p PID` and `gpupart stat NAME`. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/stat/stat.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/process.h"

#define MAX_GPUS 64

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	interrupted = sig;
}

/* ------------------------------------------------------------------- finding */

/* Adds a row for each GPU of the process. */
static int add_process(struct stat_report *report, const struct gpupart_process *p)
{
	struct gpupart_process *gpus = alloc_zeroed(MAX_GPUS, sizeof(*gpus));
	int nr = gpupart_process_gpu_list(cmd_gp, p, gpus, MAX_GPUS, sizeof(*gpus)), err = nr;

	for (int i = 0; err >= 0 && i < nr && i < MAX_GPUS; i++) {
		err = stat_add(report, &gpus[i]);
		report->simulated |= gpus[i].simulated;
	}
	free(gpus);
	return err < 0 ? error_of(err, "%s", gpupart_error(cmd_gp)) : 0;
}

static int fail_pid(int pid)
{
	if (!kill(pid, 0))
		return usage_error(
			"process %d has no records: the process has not called cuInit, or runs "
			"without gpupart: see 'gpupart ps'",
			pid);
	return errno == ESRCH ? usage_error("process %d does not exist", pid) :
	       usage_error(
		"process %d belongs to another user: only that user and root can read its "
		"records", pid);
}

int running_find(struct stat_report *report, const char *pid, const char *name)
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
				"process %d runs under another version of gpupart: use 'gpupart "
				"stat' of that version",
				p->pid);
		else if (*p->pci)
			status = add_process(report, p);
	}
	if (!status && !report->nr_rows)
		status = pid ? fail_pid(wanted) :
			 usage_error(
				"no process named '%s' has called cuInit: see 'gpupart ps'; to "
				"start a program, write -- before the program",
				name);
	free(processes);
	free(jobs);
	return status;
}

/* ------------------------------------------------------------------- watching */

int running_watch(struct stat_report *report)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	uint64_t start_ns, due_ns, now;
	double seconds = 0;
	unsigned int left;
	int status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = stat_sample_due(report, true, &left, &due_ns);
	/* The report begins with the first sample. */
	start_ns = process_now_ns();
	while (!status && left && !interrupted && seconds < report->seconds) {
		status = stat_sample_due(report, false, &left, &due_ns);
		now = process_now_ns();
		seconds = (now - start_ns) / 1e9;
		if (status)
			break;
		stat_print_intervals(report, seconds);
		if (left && due_ns > now)
			nanosleep(&(struct timespec){ .tv_nsec = due_ns - now }, NULL);
	}
	status = status ?: stat_sample_due(report, true, &left, &due_ns);
	stat_finish(report);
	return status;
}
