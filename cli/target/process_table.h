/* SPDX-License-Identifier: MIT */
/* Reads the list of confined processes and prints it as a table or as JSON. One thread. */
#ifndef GPUPART_CLI_TARGET_PROCESS_TABLE_H
#define GPUPART_CLI_TARGET_PROCESS_TABLE_H

#include "cli/target/tenants.h"

struct look {
	struct gpupart_process *list;
	struct gpupart_job *jobs;
	int nr, nr_jobs;	/* nr_jobs below 0: jobs could not be listed */
	struct tenants tenants;
	/* time of the process list; time of the lists of jobs and tenants */
	uint64_t at_ns, listed_ns;
};

/*
 * Reads the lists into *look. The caller must zero *look before the first call. The lists of jobs
 * and tenants cost most, so they may be @age seconds old. Returns 0 or an error.
 */
int look_take(struct look *look, double age);
void look_drop(struct look *look);

/* Prints processes, then tenants. Prints launches per second if @before is not NULL. */
void look_print(struct out *out, const struct look *now, const struct look *before);
void look_json(struct out *out, const struct look *look);

/*
 * Makes free() return memory to the system. Call this before the first of many calls of
 * look_take().
 */
void look_save_memory(void);

/* Returns the name of user @uid in printable ASCII, or the number if the user has no name. */
const char *look_user(unsigned int uid);

/*
 * Formats @set (NULL: all). If @problem is not "", formats "not confined" instead. May return
 * @text.
 */
const char *look_set(char text[OUT_SET_STRLEN], const struct gpupart_topology *topo,
		     const struct gpupart_tpcset *set, const char *problem);

/*
 * Returns the topology of a process's GPU, or NULL if it cannot be opened. Each topology is opened
 * once and never closed.
 */
const struct gpupart_topology *look_topology(const struct gpupart_process *p);

#endif
