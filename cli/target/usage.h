/* SPDX-License-Identifier: MIT */
/*
 * Computes busy times and launch rates of processes between two updates. Uses completion records.
 * The records are opened once for each process and GPU. Only one thread at a time may call these
 * functions.
 */
#ifndef GPUPART_CLI_TARGET_USAGE_H
#define GPUPART_CLI_TARGET_USAGE_H

#include <gpupart_manage.h>
#include "cli/target/cgroup.h"

/*
 * Completion records are read for at most this number of processes. Each process needs three
 * descriptors. The processes of another user get at most a quarter of this number.
 */
#define USAGE_MAX_READERS 512
#define USAGE_MAX_USERS 64	/* all other users share the last entry */

/* If a share or a rate is not known, it is below 0. */
struct usage_row {
	int pid;
	unsigned int uid;
	char pci[20], job[GPUPART_JOB_STRLEN];
	struct cgroup_ids ids;
	/* If records are enabled and the last update has read the records, @records.on is true. */
	struct gpupart_records records;
	/*
	 * The share of the time in which a kernel ran, from 0 to 1. The share is an upper bound,
	 * because the start of a kernel is not recorded. If some launches have no completion
	 * record, @partial is true.
	 */
	double busy;
	bool partial;
	double launches_per_s;

	struct gpupart_records_reader *reader;	/* NULL if not open */
	uint64_t launches, at_ns;		/* values of the last update, or 0 */
};

/* The caller zeroes this struct before the first usage_update(). */
struct usage {
	struct usage_row **rows;
	unsigned int nr, nr_readers, nr_users;
	/*
	 * The cost of an update, for each user. Slow files of one user must not affect the values
	 * of other users.
	 */
	struct usage_user {
		unsigned int uid, nr_readers;
		uint64_t cpu_ns;
	} users[USAGE_MAX_USERS];
};

/*
 * Updates the rows of @nr processes, and removes all other rows. The processes were listed at time
 * @at_ns of CLOCK_MONOTONIC.
 */
void usage_update(struct usage *usage, const struct gpupart_process *list, unsigned int nr,
		  uint64_t at_ns);

/* Returns the row of process @n in the @list of the last usage_update(). */
static inline const struct usage_row *usage_of(const struct usage *usage, unsigned int n)
{
	return usage->rows[n];
}

void usage_drop(struct usage *usage);

#endif
