/* SPDX-License-Identifier: MIT */
/*
 * What root gave users of GPUs on this node: a file a job, which root alone writes and all may
 * read.
 */
#ifndef GPUPART_LIB_STATE_GRANT_H
#define GPUPART_LIB_STATE_GRANT_H

#include <gpupart_manage.h>
#include <stdio.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"

/* A job's id that is one of those: no user's job has it, whose ids begin with a pid. */
GPUPART_PRIVATE
bool node_is_id(const char *id);

/* False where there is no such job, or nothing was given to it. */
GPUPART_PRIVATE
bool node_get(const char *id, struct gpupart_grant *grant);

/* The folder, to take turns by a lock on it; a negative errno where there is none. */
GPUPART_PRIVATE
int node_open_dir(bool make);

/* A grant's file. */
#define NODE_LAYOUT	2	/* counted up with every change behind the header */

struct node_file {
	struct shared_header header;	/* what other versions see of the grant */
	struct shared_gpu gpu;
	struct gpupart_grant grant;
};

/* The name of the link beside it, whose owner is the grant's user. */
#define NODE_LINK_LEN	(GPUPART_JOB_STRLEN + 8)

static inline void node_link_name(const char *id, char *name)
{
	snprintf(name, NODE_LINK_LEN, ".%s.user", id);
}

/* For grant_write.c. A negative errno where @folder is not root's alone. */
GPUPART_PRIVATE
int node_open_folder(const char *folder);
/* Its texts can be a grant's; and, with such texts, its set can. */
GPUPART_PRIVATE
bool node_good(const struct gpupart_grant *grant);
GPUPART_PRIVATE
bool node_set_good(const struct gpupart_grant *grant);
GPUPART_PRIVATE
bool node_read(int dir, const char *id, struct gpupart_grant *grant);

#define GRANT_HIDDEN "this user namespace hides which grant is this user's, and they share no TPC"

/* What grants allow a user on one GPU. */
struct node_limit {
	struct gpupart_tpcset tpcs;	/* empty: it is hidden which grant is his (GRANT_HIDDEN) */
	uint64_t memory;	/* bytes; 0: no bound */
};

/*
 * The sum of @uid's grants on the GPU at @pci (NULL: on any); of memory that of the job named
 * @tenant (may be NULL), if it has any. False: no grant binds @uid.
 */
GPUPART_PRIVATE
bool node_limit(unsigned int uid, const char *pci, const char *tenant, struct node_limit *limit);

#endif
