// SPDX-License-Identifier: MIT
/* Waits for earlier launches; see drained.h. The file lib/records/drain.c tracks these launches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/cmd.h"
#include "cli/target/drained.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define LEAST_NS	50000	/* shortest and longest interval between two checks */
#define MOST_NS		5000000

static void set_state(struct drained_row *row, int state)
{
	/* The end of a process also ends its contexts and its launches. */
	row->state = state == -ESRCH ? 1 : state;
	if (row->state < 0)
		snprintf(row->why, sizeof(row->why), "%.255s", gpupart_error(cmd_gp));
}

static void add(struct drained *drained, int pid, const char *pci)
{
	struct drained_row *row;
	int err;

	if (!drained->nr)
		drained->begin_ns = process_now_ns();
	for (unsigned int i = 0; i < drained->nr && pid; i++)
		if (drained->rows[i].pid == pid && !strcmp(drained->rows[i].pci, pci))
			return;
	drained->rows = alloc_resized(drained->rows, drained->nr + 1, sizeof(*row));
	row = memset(&drained->rows[drained->nr++], 0, sizeof(*row));
	row->pid = pid;
	snprintf(row->pci, sizeof(row->pci), "%s", pci);
	if (!pid) {
		row->state = -ENODATA;
		strcpy(row->why, "a process in another pid namespace");
		return;
	}
	err = gpupart_records_open(cmd_gp, pid, pci, &row->reader);
	if (err)
		set_state(row, err);
	else
		gpupart_records_drain(row->reader);
}

static bool descends(int pid, int ancestor)
{
	struct process_parent found;

	while (pid > 1 && pid != ancestor)
		pid = process_find_parent(pid, &found) ? found.parent : 0;
	return ancestor > 1 && pid == ancestor;
}

/*
 * Returns whether to wait for @process. A process of the job may run as another user. But a user
 * can write a state page with any job id and with launches that never end.
 */
static bool is_known(const struct gpupart_process *process, const struct gpupart_job *jobs,
		     int nr_jobs, const char *job)
{
	for (int i = 0; i < nr_jobs; i++)
		if (!strcmp(jobs[i].id, job) && (jobs[i].uid == process->uid ||
						 descends(process->pid, jobs[i].pid)))
			return true;
	remark(
		"process %d of user %u claims to belong to this job, but the job did not start this process: not waiting for its launches",
		process->pid, process->uid);
	return false;
}

int drained_add(struct drained *drained, int pid, const char *job, const char *pci,
		const struct gpupart_job *jobs, int nr_jobs)
{
	struct gpupart_process *list, *rows;
	int nr;

	if (!*job) {
		add(drained, pid, pci);
		return 0;
	}
	nr = shown_processes(cmd_gp, &list);
	if (nr < 0)
		return failure("%s", gpupart_error(cmd_gp));
	for (int i = 0; i < nr; i++)
		if (!list[i].pid && !strcmp(list[i].pci, pci) &&
		    shown_is_inside(jobs, nr_jobs, list[i].job, job) &&
		    is_known(&list[i], jobs, nr_jobs, job))
			add(drained, 0, pci);
	nr = shown_rows(cmd_gp, list, nr, &rows);
	for (int i = 0; i < nr; i++)
		if (!strcmp(rows[i].pci, pci) &&
		    shown_is_inside(jobs, nr_jobs, rows[i].job, job) &&
		    is_known(&rows[i], jobs, nr_jobs, job))
			add(drained, rows[i].pid, pci);
	free(rows);
	free(list);
	return 0;
}

void drained_wait(struct drained *drained, uint64_t most_ns)
{
	uint64_t pause_ns = LEAST_NS;
	bool any = drained->nr;

	while (any) {
		any = false;
		for (unsigned int i = 0; i < drained->nr; i++) {
			struct drained_row *row = &drained->rows[i];

			if (!row->state)
				set_state(row, gpupart_records_drained(cmd_gp, row->reader));
			any |= !row->state;
		}
		drained->took_ns = process_now_ns() - drained->begin_ns;
		if (!any || (most_ns && drained->took_ns >= most_ns))
			return;
		nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
		pause_ns = pause_ns < MOST_NS ? pause_ns * 5 / 4 : MOST_NS;
	}
}

static json_t *as_json(const struct drained *drained)
{
	json_t *rows = json_array();

	for (unsigned int i = 0; i < drained->nr; i++) {
		const struct drained_row *row = &drained->rows[i];

		json_array_append_new(rows, json_pack("{s:o, s:s, s:s, s:o}",
			"pid", row->pid ? json_integer(row->pid) : json_null(), "gpu", row->pci,
			"drained", row->state < 0 ? "unknown" : row->state ? "yes" : "no",
			"why", row->state < 0 ? out_json_text(row->why) : json_null()));
	}
	return json_pack("{s:f, s:o}", "seconds", drained->took_ns / 1e9, "processes", rows);
}

int drained_report(struct drained *drained, struct out *out, json_t *root)
{
	const double ms = drained->took_ns / 1e6;
	int failed = 0;

	for (unsigned int i = 0; i < drained->nr; i++) {
		const struct drained_row *row = &drained->rows[i];

		if (row->state < 0)
			failed = failure("cannot find out when earlier launches have ended: %s",
					 row->why);
		else if (!row->state)
			failed = failure(
				"process %d: earlier launches have not ended after %.3f ms",
				row->pid, ms);
	}
	if (root)
		json_object_set_new(root, "wait", as_json(drained));
	else if (!failed)
		fprintf(out->file, "drained after %.3f ms: all earlier launches have ended\n", ms);
	return failed;
}

void drained_drop(struct drained *drained)
{
	for (unsigned int i = 0; i < drained->nr; i++)
		gpupart_records_close(drained->rows[i].reader);
	free(drained->rows);
}
