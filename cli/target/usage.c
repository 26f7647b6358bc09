// SPDX-License-Identifier: MIT
/* Busy time and launches of processes, from one look to the next. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "cli/target/usage.h"
#include "cli/util/alloc.h"

static bool is_of(const struct usage_row *row, const struct gpupart_process *p)
{
	return row->pid == p->pid && row->uid == p->uid && !strcmp(row->pci, p->pci) &&
	       !strcmp(row->job, p->job) && row->launches <= p->counters.launches;
}

/* Takes it out of @usage. Both lists are sorted alike: most are found at once, from *@next on. */
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

static void close_reader(struct usage *usage, struct usage_row *row)
{
	usage->nr_readers -= row->reader != NULL;
	gpupart_records_close(row->reader);
	row->reader = NULL;
}

static bool open_reader(struct usage *usage, struct usage_row *row)
{
	if (row->reader)
		return true;
	/* A number of another pid namespace names no file. */
	if (!row->pid || usage->nr_readers >= USAGE_MAX_READERS ||
	    gpupart_records_open(NULL, row->pid, row->pci, &row->reader))
		return false;
	usage->nr_readers++;
	return true;
}

/* A process that became another program has another file, which is opened instead. */
static bool read_records(struct usage *usage, struct usage_row *row)
{
	row->records.on = false;
	for (int tries = 0; tries < 2 && open_reader(usage, row); tries++) {
		if (!gpupart_records_read(NULL, row->reader, &row->records, sizeof(row->records)))
			return row->records.on;
		close_reader(usage, row);
	}
	return false;
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
	if (p->other_version || !read_records(usage, row) || !before.on || ns <= 0 ||
	    now->busy_ns < before.busy_ns)
		return;
	row->busy = (now->busy_ns - before.busy_ns) / ns;
	/* A kernel that ran all the time has not ended: it counts as busy until it does. */
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

void usage_look(struct usage *usage, const struct gpupart_process *list, unsigned int nr,
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
		usage->nr_readers += rows[i]->reader != NULL;
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
