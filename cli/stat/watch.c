// SPDX-License-Identifier: MIT
/*
 * Samples the records of processes regularly while the processes run. Samples them once more after
 * the end of the processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/stat/stat.h"
#include "cli/util/alloc.h"
#include "cli/util/process.h"

int stat_add(struct stat_report *report, const struct gpupart_process *process)
{
	struct gpupart_records_reader *reader;
	struct stat_row *row;
	int err = gpupart_records_open(cmd_gp, process->pid, process->pci, &reader);

	if (err)
		return err;
	report->rows = alloc_resized(report->rows, report->nr_rows + 1, sizeof(*row));
	row = memset(&report->rows[report->nr_rows++], 0, sizeof(*row));
	row->process = *process;
	row->reader = reader;
	return 0;
}

static uint64_t cpu_time(int pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int look(struct stat_row *row)
{
	struct stat_sample now = { .cpu_ns = cpu_time(row->process.pid) ?: row->last.cpu_ns };
	unsigned int pause_us;
	int err = gpupart_records_watch(cmd_gp, row->reader, &now.records, &pause_us);

	now.at_ns = process_now_ns();
	row->due_ns = now.at_ns + pause_us * 1000ull;
	row->ended = err;
	if (err && err != -ESRCH)
		return error_of(err, "%s", gpupart_error(cmd_gp));
	/* If the process has ended, its sample has the last values of its records. */
	if (err && !row->looks)
		return 0;
	row->last = now;
	if (!row->looks++)
		row->first = row->reported = now;
	if (!now.records.issued)
		return 0;
	row->outstanding_looks++;
	row->outstanding_sum += now.records.outstanding;
	if (now.records.outstanding > row->outstanding_max)
		row->outstanding_max = now.records.outstanding;
	return 0;
}

int stat_sample_due(struct stat_report *report, bool all, unsigned int *left, uint64_t *due_ns)
{
	const uint64_t now = process_now_ns();
	int status = 0, failed;

	*left = 0;
	*due_ns = UINT64_MAX;
	for (unsigned int i = 0; i < report->nr_rows; i++) {
		struct stat_row *row = &report->rows[i];

		failed = !row->ended && (all || row->due_ns <= now) ? look(row) : 0;
		if (failed)
			status = failed;
		*left += !row->ended;
		if (!row->ended && row->due_ns < *due_ns)
			*due_ns = row->due_ns;
	}
	return status;
}

void stat_print_intervals(struct stat_report *report, double seconds)
{
	if (!report->interval || seconds < report->next)
		return;
	for (unsigned int i = 0; i < report->nr_rows; i++)
		stat_interval(report, &report->rows[i], seconds);
	while (report->next <= seconds)
		report->next += report->interval;
}

void stat_finish(struct stat_report *report)
{
	for (unsigned int i = 0; i < report->nr_rows; i++)
		gpupart_records_watched(report->rows[i].reader, &report->rows[i].last.watched);
}

void stat_drop(struct stat_report *report)
{
	json_decref(report->intervals);
	for (unsigned int i = 0; i < report->nr_rows; i++)
		gpupart_records_close(report->rows[i].reader);
	free(report->rows);
}
