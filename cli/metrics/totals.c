// SPDX-License-Identifier: MIT
/*
 * Stores the last counts of each process. For each job on a GPU, stores the sums of its ended
 * processes. So a job's counters do not decrease when a process of the job ends. Not thread-safe.
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

#define MAX_TOTALS	4096	/* maximum number of entries; if there are more, jobs that do not
				 * run are removed at once */
#define MAX_AGE		86400	/* jobs that do not run are removed after this time, in s */
#define ENDED		(-1)	/* the pid of an entry with the sum of all ended processes */

struct total {
	unsigned int uid;
	char job[GPUPART_JOB_STRLEN], pci[20];
	int pid;
	bool seen;		/* in this look */
	long long at;		/* time of the last update with this process, in seconds since
				 * 1970 */
	double values[METRIC_NR_COUNTERS];
};

static struct total *totals;
static unsigned int nr_totals, room;

/*
 * Returns the index of @like in totals[]. If totals[] does not contain @like, adds it. Then the
 * array may move.
 */
static unsigned int find(const struct total *like)
{
	unsigned int n = 0;

	for (; n < nr_totals; n++)
		if (totals[n].pid == like->pid && totals[n].uid == like->uid &&
		    !strcmp(totals[n].job, like->job) && !strcmp(totals[n].pci, like->pci))
			return n;
	if (nr_totals == room) {
		room = room * 2 + 64;
		totals = alloc_resized(totals, room, sizeof(*totals));
	}
	totals[nr_totals] = *like;
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		totals[nr_totals].values[i] = NAN;
	return nr_totals++;
}

static void add(double *sums, const double *values)
{
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		if (!isnan(values[i]))
			sums[i] = (isnan(sums[i]) ? 0 : sums[i]) + values[i];
}

/*
 * A process has ended, or another process has its pid now. Adds the counts of the ended process to
 * the sum of its job.
 */
static void end_process(unsigned int n)
{
	struct total ended = totals[n];
	unsigned int place;

	ended.pid = ENDED;
	if (strncmp(ended.job, "pid-", 4)) {
		place = find(&ended);
		add(totals[place].values, ended.values);
	}
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		totals[n].values[i] = NAN;
}

static struct total total_of(const struct metrics_row *row, int pid)
{
	struct total total = { .uid = row->uid, .pid = pid, .at = time(NULL) };

	strcpy(total.job, row->job);
	strcpy(total.pci, row->pci);
	return total;
}

void metrics_totals_add(const struct metrics_row *row, int pid, const double *counters)
{
	const struct total like = total_of(row, pid);
	unsigned int n = find(&like);
	double *last;

	if (totals[n].seen) {
		/*
		 * Processes whose pid is not known in this namespace are counted as one process.
		 */
		add(totals[n].values, counters);
		return;
	}
	if (counters[METRIC_LAUNCHES] < totals[n].values[METRIC_LAUNCHES])
		end_process(n);
	last = totals[n].values;
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
		if (totals[n].pid == ENDED ? totals[n].at < oldest : !totals[n].seen)
			continue;
		totals[kept] = totals[n];
		totals[kept++].seen = false;
	}
	nr_totals = kept;
}

void metrics_totals_sum(struct metrics_row *row)
{
	for (struct total *t = totals; t < totals + nr_totals; t++) {
		if (t->uid != row->uid || strcmp(t->job, row->job) || strcmp(t->pci, row->pci))
			continue;
		t->at = time(NULL);
		add(row->values, t->values);
	}
}

void metrics_totals_raise(struct metrics_row *row, int counter, double more)
{
	const struct total ended = total_of(row, ENDED);
	double values[METRIC_NR_COUNTERS] = { NAN, NAN, NAN, NAN };
	unsigned int n = find(&ended);

	values[counter] = more;
	add(totals[n].values, values);
	add(row->values, values);
}

/* Returns false for infinite and negative counts. Later updates could not correct such counts. */
static bool are_counts(const double *values)
{
	for (int i = 0; i < METRIC_NR_COUNTERS; i++)
		if (isinf(values[i]) || values[i] < 0)
			return false;
	return true;
}

FILE *metrics_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid()))
		return fd < 0 ? NULL : fdopen(fd, "r");
	close(fd);
	errno = EPERM;
	return NULL;
}

int metrics_totals_read(const char *path)
{
	FILE *file = metrics_open(path);
	int nr_lines = 0, bad = 0;
	char line[512];

	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while (nr_totals < 2 * MAX_TOTALS && fgets(line, sizeof(line), file)) {
		struct total t = { 0 };
		double *v = t.values;
		unsigned int n;

		nr_lines++;
		if (sscanf(line, "%u %63s %19s %d %lld %lf %lf %lf %lf", &t.uid, t.job,
			   t.pci, &t.pid, &t.at, &v[0], &v[1], &v[2], &v[3]) == 9 &&
		    are_counts(v)) {
			n = find(&t);
			totals[n] = t;
		} else {
			bad = bad ?: nr_lines;
		}
	}
	fclose(file);
	return bad;
}

int metrics_totals_write(const char *path)
{
	char *text;
	size_t len;
	FILE *file = alloc_file(&text, &len);
	int err;

	for (const struct total *t = totals; t < totals + nr_totals; t++) {
		const double *v = t->values;

		fprintf(file, "%u %s %s %d %lld %.15g %.15g %.15g %.15g\n", t->uid, t->job,
			t->pci, t->pid, t->at, v[0], v[1], v[2], v[3]);
	}
	alloc_file_close(file);
	err = atomic_file_write(path, text);
	free(text);
	return err;
}
