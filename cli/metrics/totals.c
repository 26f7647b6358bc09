// SPDX-License-Identifier: MIT
/*
 * Counters of a job that do not fall when a process of it ends: of each process the last that was
 * seen, and for each job on a GPU the sum of those that ended. The caller sees to one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/metrics/metrics.h"
#include "cli/util/alloc.h"
#include "cli/util/atomic_file.h"

#define MAX_TOTALS	4096	/* with more, jobs that are not seen now are forgotten at once, */
#define MAX_AGE		86400	/* else after so many seconds */
#define ENDED		(-1)	/* in place of a pid: the sum of processes that ended */

struct total {
	struct metrics_row row;	/* of which uid, job, pci and the counters count */
	int pid;
	bool seen;		/* in this look */
	bool placed;		/* row.ids are known */
	struct gpupart_records_reader *reader;	/* of its records, or NULL */
	long long at;		/* when its row was seen, seconds since 1970 */
};

static struct total *totals;
static unsigned int nr_totals, room;

static bool is_of(const struct total *total, const struct metrics_row *row)
{
	return total->row.uid == row->uid && !strcmp(total->row.job, row->job) &&
	       !strcmp(total->row.pci, row->pci);
}

/* Its number in totals[], which moves when one is made. */
static unsigned int find(const struct metrics_row *row, int pid)
{
	for (unsigned int n = 0; n < nr_totals; n++)
		if (totals[n].pid == pid && is_of(&totals[n], row))
			return n;
	if (nr_totals == room) {
		room = room * 2 + 64;
		totals = alloc_resized(totals, room, sizeof(*totals));
	}
	totals[nr_totals] = (struct total){ .row = *row, .pid = pid, .at = time(NULL) };
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		totals[nr_totals].row.values[i] = NAN;
	return nr_totals++;
}

static void add(double *sums, const double *values)
{
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		if (!isnan(values[i]))
			sums[i] = (isnan(sums[i]) ? 0 : sums[i]) + values[i];
}

/* The process is gone, or its number is another's: what it had stays with its job. */
static void end_process(unsigned int n)
{
	const struct metrics_row row = totals[n].row;
	unsigned int ended;

	if (strncmp(row.job, "pid-", 4)) {
		ended = find(&row, ENDED);
		add(totals[ended].row.values, row.values);
	}
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		totals[n].row.values[i] = NAN;
}

/* The counters of its records, where it has any; the reader is kept for the next look. */
static void take_records(struct total *total, double *counters)
{
	static struct gpupart_records records;

	if (!total->pid || (!total->reader && gpupart_records_open(cmd_gp, total->pid,
								   total->row.pci, &total->reader)))
		return;
	if (gpupart_records_read(cmd_gp, total->reader, &records, sizeof(records))) {
		gpupart_records_close(total->reader);
		total->reader = NULL;
	} else if (records.on) {
		counters[METRIC_UNRECORDED] = records.unrecorded + records.graphs + records.untimed;
		counters[METRIC_BUSY] = records.busy_ns / 1e9;
	}
}

void metrics_totals_add(struct metrics_row *row, int pid, double *counters)
{
	unsigned int n = find(row, pid);
	double *last;

	take_records(&totals[n], counters);
	if (pid && !totals[n].placed)
		cgroup_read(pid, &totals[n].row.ids);
	totals[n].placed = true;
	row->ids = totals[n].row.ids;
	if (totals[n].seen) {
		/* Several that have no number here are one. */
		add(totals[n].row.values, counters);
		return;
	}
	if (counters[METRIC_LAUNCHES] < totals[n].row.values[METRIC_LAUNCHES])
		end_process(n);
	last = totals[n].row.values;
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		last[i] = fmax(last[i], counters[i]);
	totals[n].seen = true;
}

void metrics_totals_end(void)
{
	long long oldest = time(NULL) - (nr_totals > MAX_TOTALS ? 2 : MAX_AGE);
	unsigned int kept = 0, nr = nr_totals;

	for (unsigned int n = 0; n < nr; n++)
		if (totals[n].pid != ENDED && !totals[n].seen)
			end_process(n);
	for (unsigned int n = 0; n < nr_totals; n++) {
		if (totals[n].pid == ENDED ? totals[n].at < oldest : !totals[n].seen) {
			gpupart_records_close(totals[n].reader);
			continue;
		}
		totals[kept] = totals[n];
		totals[kept++].seen = false;
	}
	nr_totals = kept;
}

void metrics_totals_sum(struct metrics_row *row)
{
	for (unsigned int n = 0; n < nr_totals; n++) {
		if (!is_of(&totals[n], row))
			continue;
		totals[n].at = time(NULL);
		add(row->values, totals[n].row.values);
	}
}

int metrics_totals_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	FILE *file;
	char line[512];

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	/* Another user's could say anything. */
	file = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() ?
		fdopen(fd, "r") : NULL;
	if (!file) {
		close(fd);
		return -EPERM;
	}
	while (nr_totals < 2 * MAX_TOTALS && fgets(line, sizeof(line), file)) {
		struct total t = { .pid = 0 };
		double *v = t.row.values;
		unsigned int n;

		if (sscanf(line, "%u %63s %19s %d %lld %lf %lf %lf %lf", &t.row.uid, t.row.job,
			   t.row.pci, &t.pid, &t.at, &v[0], &v[1], &v[2], &v[3]) != 9)
			continue;
		n = find(&t.row, t.pid);
		totals[n] = t;
	}
	fclose(file);
	return 0;
}

int metrics_totals_write(const char *path)
{
	char *text;
	size_t len;
	FILE *file = alloc_file(&text, &len);
	int err;

	for (const struct total *t = totals; t < totals + nr_totals; t++) {
		const double *v = t->row.values;

		fprintf(file, "%u %s %s %d %lld %.15g %.15g %.15g %.15g\n", t->row.uid, t->row.job,
			t->row.pci, t->pid, t->at, v[0], v[1], v[2], v[3]);
	}
	alloc_file_close(file);
	err = whole_write(path, text);
	free(text);
	return err;
}
