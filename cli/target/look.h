/* SPDX-License-Identifier: MIT */
/* What runs confined at one moment: taken, and printed as a table or as JSON. */
#ifndef GPUPART_CLI_TARGET_LOOK_H
#define GPUPART_CLI_TARGET_LOOK_H

#include "cli/target/tenants.h"

struct look {
	struct gpupart_process *list;
	struct gpupart_job *jobs;
	int nr, nr_jobs;	/* nr_jobs below 0: they could not be listed */
	struct tenants tenants;
	uint64_t at_ns, listed_ns;	/* when; when jobs and tenants were listed */
};

/*
 * Replaces what is in *look, which begins as all zero: 0, or an error. Jobs and tenants, which are
 * most of the work, may be @age seconds old.
 */
int look_take(struct look *look, double age);
void look_drop(struct look *look);

/* A row a process, then the tenants. With launches a second since @before, which may be NULL. */
void look_print(struct out *out, const struct look *now, const struct look *before);
void look_json(struct out *out, const struct look *look);

/* Before the first of many looks: what their lists took is given back to the system. */
void look_save_memory(void);

/* The name of user @uid, or its number; printable ASCII. */
const char *look_user(unsigned int uid);

/* @set (NULL: all) in words, or that launches are not confined; may return @text. */
const char *look_set(char text[OUT_SET_STRLEN], const struct gpupart_topology *topo,
		     const struct gpupart_tpcset *set, const char *problem);

/*
 * The topology of a process's GPU, opened once for all processes on it and never closed; NULL if
 * it could not be opened.
 */
const struct gpupart_topology *look_topology(const struct gpupart_process *p);

#endif
