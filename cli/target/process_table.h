/* SPDX-License-Identifier: MIT */
/*
 * Reads the list of confined processes. Prints the list as a table or as JSON. Call these functions
 * from one thread.
 */
#ifndef GPUPART_CLI_TARGET_PROCESS_TABLE_H
#define GPUPART_CLI_TARGET_PROCESS_TABLE_H

#include "cli/target/tenants.h"

struct process_table {
	struct gpupart_process *list;
	struct gpupart_job *jobs;
	int nr, nr_jobs;	/* @nr_jobs below 0: listing of jobs failed */
	struct tenants tenants;
	/* time of the process list; time of the lists of jobs and tenants */
	uint64_t at_ns, listed_ns;
};

/*
 * Reads the lists into *table. The caller must zero *table before the first call. The lists of jobs
 * and tenants are expensive, so these two lists may be @age seconds old. Returns 0 or an error.
 */
int process_table_read(struct process_table *table, double age);
void process_table_free(struct process_table *table);

/* Prints processes, and then tenants. If @before is not NULL, prints launches per second. */
void process_table_print(struct out *out, const struct process_table *now,
			 const struct process_table *before);
void process_table_json(struct out *out, const struct process_table *table);

/*
 * Makes free() return memory to the system. A program that calls process_table_read() repeatedly
 * must call this function first.
 */
void process_table_save_memory(void);

/* Returns the name of user @uid in printable ASCII. If the user has no name, returns the number. */
const char *look_user(unsigned int uid);

/*
 * Formats @set. If @set is NULL, formats "all". If @problem is not "", formats "not confined". May
 * return @text.
 */
const char *look_set(char text[OUT_SET_STRLEN], const struct gpupart_topology *topo,
		     const struct gpupart_tpcset *set, const char *problem);

/*
 * Returns the topology of a process's GPU. If the topology cannot be opened, returns NULL. Each
 * topology is opened once and never closed.
 */
const struct gpupart_topology *look_topology(const struct gpupart_process *p);

#endif
