// SPDX-License-Identifier: MIT
/* Computes the busy time and the launch rates of processes between two updates; see usage.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "cli/target/usage.h"
#include "cli/util/alloc.h"

/*
 * CPU time limit, in ns, of one update for the processes of another user. This time is enough for
 * some thousand processes. But if a process does not lock its file, the search may read megabytes
 * of /proc/PID/maps.
 */
#define USER_NS 200000000ull

static bool is_of(const struct usage_row *row, const struct gpupart_process *p)
{
	return row->pid == p->pid && row->uid == p->uid && !strcmp(row->pci, p->pci) &&
	       !strcmp(row->job, p->job) && row->launches <= p->counters.launches;
}

/*
 * Removes the row of @p from @usage, and returns the row. Both lists have the same order, so the
 * search begins at *next.
 */
static struct usage_row *take(struct usage *usage, unsigned int *next,
			      const struct gpupart_process *p)
{
	for (unsigned int i = 0; i < usage->nr; i++) {
		struct usage_row **place = &usage->rows[(*next + i) % usage->nr], *row = *place;

		if (!row || !is_of(row, p))
			continue;
		*next += i + 1;
		*place = NULL;
		return row;
	}
	return NULL;
}

static struct usage_row *make(const struct gpupart_process *p)
{
	struct usage_row *row = alloc_zeroed(1, sizeof(*row));

	row->pid = p->pid;
	row->uid = p->uid;
	snprintf(row->pci, sizeof(row->pci), "%s", p->pci);
	snprintf(row->job, sizeof(row->job), "%s", p->job);
	cgroup_read(p->pid, &row->ids);
	return row;
}

static struct usage_user *user_of(struct usage *usage, unsigned int uid)
{
	unsigned int n = 0;

	while (n < usage->nr_users && usage->users[n].uid != uid)
		n++;
	if (n == USAGE_MAX_USERS)
		n--;
	else if (n == usage->nr_users)
		usage->users[usage->nr_users++] = (struct usage_user){ .uid = uid };
	return &usage->users[n];
}

static void count_reader(struct usage *usage, const struct usage_row *row, int more)
{
	if (!row->reader)
		return;
	usage->nr_readers += more;
	user_of(usage, row->uid)->nr_readers += more;
}

static void close_reader(struct usage *usage, struct usage_row *row)
{
	count_reader(usage, row, -1);
	gpupart_records_close(row->reader);
	row->reader = NULL;
}

static bool open_reader(struct usage *usage, struct usage_row *row)
{
	if (row->reader)
		return true;
	/*
	 * A process of another pid namespace has pid 0. Its file is not visible in this namespace.
	 */
	if (!row->pid || usage->nr_readers >= USAGE_MAX_READERS ||
	    (row->uid != geteuid() &&
	     user_of(usage, row->uid)->nr_readers >= USAGE_MAX_READERS / 4) ||
	    gpupart_records_open(NULL, row->pid, row->pci, &row->reader))
		return false;
	count_reader(usage, row, 1);
	return true;
}

/*
 * Reads the records. If the process has executed another program, opens the new file of the
 * process.
 */
static bool read_records(struct usage *usage, struct usage_row *row)
{
	for (int tries = 0; tries < 2 && open_reader(usage, row); tries++) {
		if (!gpupart_records_read(NULL, row->reader, &row->records, sizeof(row->records)))
			return row->records.on;
		close_reader(usage, row);
	}
	return false;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static bool read_in_time(struct usage *usage, struct usage_row *row)
{
	struct usage_user *user = user_of(usage, row->uid);
	const uint64_t begin = cpu_ns();
	bool read;

	row->records.on = false;
	read = (user->cpu_ns < USER_NS || row->uid == geteuid()) && read_records(usage, row);
	user->cpu_ns += cpu_ns() - begin;
	return read;
}

static void look(struct usage *usage, struct usage_row *row, const struct gpupart_process *p,
		 uint64_t at_ns)
{
	const struct gpupart_records before = row->records, *now = &row->records;
	double ns = row->at_ns ? (double)(at_ns - row->at_ns) : 0;

	row->busy = row->launches_per_s = -1;
	row->partial = false;
	if (ns > 0 && !p->other_version)
		row->launches_per_s = (p->counters.launches - row->launches) * 1e9 / ns;
	row->launches = p->counters.launches;
	row->at_ns = at_ns;
	if (p->other_version || !read_in_time(usage, row) || !before.on || ns <= 0 ||
	    now->busy_ns < before.busy_ns)
		return;
	row->busy = (now->busy_ns - before.busy_ns) / ns;
	/* A kernel that ran during the whole time has no record yet. So count this time as busy. */
	if (row->busy > 1 || (before.outstanding && now->ended == before.ended))
		row->busy = 1;
	row->partial = now->unrecorded > before.unrecorded || now->graphs > before.graphs ||
		       now->untimed > before.untimed;
}

static void raise_descriptors(void)
{
	const rlim_t wanted = 4 * USAGE_MAX_READERS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void usage_update(struct usage *usage, const struct gpupart_process *list, unsigned int nr,
		  uint64_t at_ns)
{
	struct usage_row **rows = alloc_zeroed(nr + 1, sizeof(*rows));
	unsigned int next = 0;

	if (!usage->rows)
		raise_descriptors();
	for (unsigned int i = 0; i < nr; i++)
		rows[i] = take(usage, &next, &list[i]) ?: make(&list[i]);
	usage_drop(usage);
	usage->rows = rows;
	usage->nr = nr;
	for (unsigned int i = 0; i < nr; i++)
		count_reader(usage, rows[i], 1);
	for (unsigned int i = 0; i < nr; i++)
		look(usage, rows[i], &list[i], at_ns);
}

void usage_drop(struct usage *usage)
{
	for (unsigned int i = 0; i < usage->nr; i++) {
		if (usage->rows[i])
			close_reader(usage, usage->rows[i]);
		free(usage->rows[i]);
	}
	free(usage->rows);
	memset(usage, 0, sizeof(*usage));
}
