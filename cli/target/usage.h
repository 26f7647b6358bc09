/* SPDX-License-Identifier: MIT */
/*
 * Busy time and launch rates of processes between two updates, from their completion records, which
 * are opened once for each process and GPU. One thread at a time.
 */
#ifndef GPUPART_CLI_TARGET_USAGE_H
#define GPUPART_CLI_TARGET_USAGE_H

#include <gpupart_manage.h>
#include "cli/target/cgroup.h"

/*
 * Completion records are read for at most this many processes, with three descriptors each; the
 * processes of another user get at most a quarter of them.
 */
#define USAGE_MAX_READERS 512
#define USAGE_MAX_USERS 64	/* further users share the last entry */

/* A share or rate is below 0 if not known. */
struct usage_row {
	int pid;
	unsigned int uid;
	char pci[20], job[GPUPART_JOB_STRLEN];
	struct cgroup_ids ids;
	/* @records.on: records are on, and were read in the last update. */
	struct gpupart_records records;
	/*
	 * Share of the time in which a kernel ran, 0 to 1. It is an upper bound, because begins of
	 * kernels are not recorded. @partial: there were launches without a completion record.
	 */
	double busy;
	bool partial;
	double launches_per_s;

	struct gpupart_records_reader *reader;	/* NULL if not open */
	uint64_t launches, at_ns;		/* of the last update, or 0 */
};

/* Zeroed before the first usage_look(). */
struct usage {
	struct usage_row **rows;
	unsigned int nr, nr_readers, nr_users;
	/* Cost of one update by user: expensive files of one user must not spoil others' values. */
	struct usage_user {
		unsigned int uid, nr_readers;
		uint64_t cpu_ns;
	} users[USAGE_MAX_USERS];
};

/* Updates the rows of @nr processes, listed at @at_ns (CLOCK_MONOTONIC); removes others. */
void usage_look(struct usage *usage, const struct gpupart_process *list, unsigned int nr,
		uint64_t at_ns);

/* The row of @list[n] of the last usage_look(). */
static inline const struct usage_row *usage_of(const struct usage *usage, unsigned int n)
{
	return usage->rows[n];
}

void usage_drop(struct usage *usage);

#endif
