/* SPDX-License-Identifier: MIT */
/*
 * Grants: GPU shares that root gave users of this machine. Each is a file that only root can
 * write and all users can read.
 */
#ifndef GPUPART_LIB_STATE_GRANT_H
#define GPUPART_LIB_STATE_GRANT_H

#include <gpupart_manage.h>
#include <stdio.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"

/*
 * Whether @id is the id of a grant. Other jobs never have such an id: theirs begin with a pid.
 */
GPUPART_PRIVATE
bool grant_is_id(const char *id);

/* Reads grant @id. False if there is no such grant, or it allows no TPCs. */
GPUPART_PRIVATE
bool grant_get(const char *id, struct gpupart_grant *grant);

/*
 * Opens the directory of grants; callers can lock the descriptor. Returns a negative errno if
 * the directory does not exist.
 */
GPUPART_PRIVATE
int grant_open_dir(bool make);

/* The file of a grant. */
#define GRANT_LAYOUT	2	/* increase it with every change of what follows the header */

struct grant_file {
	struct shared_header header;	/* what other versions read */
	struct shared_gpu gpu;
	struct gpupart_grant grant;
};

/* The name of the link beside a grant's file, whose owner is the grant's user. */
#define GRANT_LINK_LEN	(GPUPART_JOB_STRLEN + 8)

static inline void grant_link_name(const char *id, char *name)
{
	snprintf(name, GRANT_LINK_LEN, ".%s.user", id);
}

/* For grant_write.c. Returns a negative errno if users other than root can write to @folder. */
GPUPART_PRIVATE
int grant_open_folder(const char *folder);
/* Whether the strings of a grant are valid, and, given that, whether its set is. */
GPUPART_PRIVATE
bool grant_is_valid(const struct gpupart_grant *grant);
GPUPART_PRIVATE
bool grant_set_is_valid(const struct gpupart_grant *grant);
GPUPART_PRIVATE
bool grant_read(int dir, const char *id, struct gpupart_grant *grant);

#define GRANT_HIDDEN \
	"this user namespace hides which grant is this user's; the grants have no TPC in common"

/* What the grants of a user on one GPU allow. */
struct grant_limit {
	struct gpupart_tpcset tpcs;	/* empty: the user's grant is unknown (GRANT_HIDDEN) */
	uint64_t memory;	/* in bytes; 0: unlimited */
};

/*
 * The union of @uid's grants on the GPU at @pci (NULL: on any GPU). The memory is that of the
 * grant named @tenant (may be NULL), or the sum of all if there is none. Returns false if no
 * grant applies to @uid.
 */
GPUPART_PRIVATE
bool grant_limit(unsigned int uid, const char *pci, const char *tenant, struct grant_limit *limit);

#endif
