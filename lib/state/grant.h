/* SPDX-License-Identifier: MIT */
/*
 * What root gave users of GPUs on this node: a file a job, which root alone writes and all may
 * read.
 */
#ifndef GPUPART_LIB_STATE_GRANT_H
#define GPUPART_LIB_STATE_GRANT_H

#include <gpupart_manage.h>

/* A job's id that is one of those: no user's job has it, whose ids begin with a pid. */
bool node_is_id(const char *id);

/* False where there is no such job, or nothing was given to it. */
bool node_get(const char *id, struct gpupart_grant *grant);

/* The folder, to take turns by a lock on it; a negative errno where there is none. */
int node_open_dir(bool make);

/* Root is bound by no grant, but user 0 of a user namespace without the machine's root is. */
bool node_exempts(unsigned int uid);

/* Whether @uid, who is not root, was given anything. */
bool node_gives(unsigned int uid);

/*
 * All that @uid was given on the GPU at @pci (NULL: on any), by all jobs. False: nothing, or it is
 * root, to whom nothing is forbidden.
 */
bool node_tpcs(unsigned int uid, const char *pci, struct gpupart_tpcset *set);

/*
 * The same of memory, in bytes: of the job named @tenant where there is one, else of all that
 * have some. 0: no bound.
 */
uint64_t node_memory(unsigned int uid, const char *pci, const char *tenant);

#endif
