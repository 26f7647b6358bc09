/* SPDX-License-Identifier: MIT */
/*
 * How busy processes keep their GPUs and how much they launch, from one look to the next: by their
 * records, which are opened once for each process and GPU. One thread at a time.
 */
#ifndef GPUPART_CLI_TARGET_USAGE_H
#define GPUPART_CLI_TARGET_USAGE_H

#include <gpupart_manage.h>
#include "cli/target/cgroup.h"

/*
 * So many processes have their records read, with three descriptors each; of others none is. Of
 * these another user's processes have a quarter at most.
 */
#define USAGE_MAX_READERS 512
#define USAGE_MAX_USERS 64	/* further ones count as one */

/* A share or a rate is below 0 where it is not known. */
struct usage_row {
	int pid;
	unsigned int uid;
	char pci[20], job[GPUPART_JOB_STRLEN];
	struct cgroup_ids ids;
	/* @records.on: they are on, and were read now. */
	struct gpupart_records records;
	/*
	 * Share of the time in which a kernel ran, 0 to 1: an upper bound, since begins are, of the
	 * launches that have a record; @partial: there were others.
	 */
	double busy;
	bool partial;
	double launches_per_s;

	struct gpupart_records_reader *reader;	/* NULL: not open */
	uint64_t launches, at_ns;		/* at the last look; 0: none before */
};

/* Begins as all zero. */
struct usage {
	struct usage_row **rows;
	unsigned int nr, nr_readers, nr_users;
	/* Of one look: what another user's files cost is to cost nobody else's figures. */
	struct usage_user {
		unsigned int uid, nr_readers;
		uint64_t cpu_ns;
	} users[USAGE_MAX_USERS];
};

/* Looks at @nr processes on one GPU each, listed at @at_ns of CLOCK_MONOTONIC; forgets others. */
void usage_look(struct usage *usage, const struct gpupart_process *list, unsigned int nr,
		uint64_t at_ns);

/* The row of @list[n] of the last look, whose order the rows have. */
static inline const struct usage_row *usage_of(const struct usage *usage, unsigned int n)
{
	return usage->rows[n];
}

void usage_drop(struct usage *usage);

#endif
