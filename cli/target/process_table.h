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
	uint64_t at_ns, listed_ns;	/* time of the list; of jobs and tenants */
};

/*
 * Reads the lists anew into *look, which is zeroed before the first call. Jobs and tenants, which
 * cost most, may be @age seconds old. Returns 0 or an error.
 */
int look_take(struct look *look, double age);
void look_drop(struct look *look);

/* Prints processes, then tenants. Prints launches per second if @before is not NULL. */
void look_print(struct out *out, const struct look *now, const struct look *before);
void look_json(struct out *out, const struct look *look);

/* Called before the first look_take() of many: makes free() return memory to the system. */
void look_save_memory(void);

/* Returns the name of user @uid, or the number, in printable ASCII. */
const char *look_user(unsigned int uid);

/* Formats @set (NULL: all), or "not confined" if there is a @problem. May return @text. */
const char *look_set(char text[OUT_SET_STRLEN], const struct gpupart_topology *topo,
		     const struct gpupart_tpcset *set, const char *problem);

/*
 * Returns the topology of a process's GPU, or NULL if it cannot be opened. Each is opened once and
 * never closed.
 */
const struct gpupart_topology *look_topology(const struct gpupart_process *p);

#endif
