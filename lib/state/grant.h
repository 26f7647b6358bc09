/* SPDX-License-Identifier: MIT */
/*
 * Grants are the shares of GPUs that root gave to users of this machine. Each grant is a file
 * that all users can read and only root can write.
 */
#ifndef GPUPART_LIB_STATE_GRANT_H
#define GPUPART_LIB_STATE_GRANT_H

#include <gpupart_manage.h>
#include <stdio.h>
#include "lib/core/ctx.h"
#include "lib/core/shared_header.h"

/*
 * Returns true if @id is the id of a grant. Other jobs cannot have such an id, because their ids
 * begin with a pid.
 */
GPUPART_PRIVATE
bool grant_is_id(const char *id);

/* Reads grant @id. Returns false if there is no such grant, or if it allows no TPCs. */
GPUPART_PRIVATE
bool grant_get(const char *id, struct gpupart_grant *grant);

/*
 * Opens the directory of grants. Callers can lock this descriptor. Returns a negative errno if
 * the directory does not exist.
 */
GPUPART_PRIVATE
int grant_open_dir(bool make);

/* The contents of a grant's file. */
#define GRANT_LAYOUT	2	/* increase this number with every change of the data
				 * after the header */

struct grant_file {
	struct shared_header header;	/* other versions can read this part */
	struct shared_gpu gpu;
	struct gpupart_grant grant;
};

/* The name of the link beside a grant's file. The owner of this link is the grant's user. */
#define GRANT_LINK_LEN	(GPUPART_JOB_STRLEN + 8)

static inline void grant_link_name(const char *id, char *name)
{
	snprintf(name, GRANT_LINK_LEN, ".%s.user", id);
}

/*
 * Opens @folder, for grant_write.c. Returns a negative errno if users other than root can write to
 * @folder.
 */
GPUPART_PRIVATE
int grant_open_folder(const char *folder);
/*
 * grant_is_valid() returns true if the strings of a grant are valid. grant_set_is_valid()
 * returns true if the set of a grant is valid; the strings of the grant must be valid.
 */
GPUPART_PRIVATE
bool grant_is_valid(const struct gpupart_grant *grant);
GPUPART_PRIVATE
bool grant_set_is_valid(const struct gpupart_grant *grant);
GPUPART_PRIVATE
bool grant_read(int dir, const char *id, struct gpupart_grant *grant);

#define GRANT_HIDDEN \
	"this user namespace hides which grant is this user's; the grants have no TPC in common"

/* The TPCs and the memory that the grants of a user on one GPU allow. */
struct grant_limit {
	struct gpupart_tpcset tpcs;	/* if empty: the user's grant is unknown (GRANT_HIDDEN) */
	uint64_t memory;	/* in bytes; 0: unlimited */
};

/*
 * Reads the union of the grants of @uid on the GPU at @pci. If @pci is NULL, reads the union on
 * all GPUs. If a grant has the name @tenant, the memory is the memory of this grant. If no grant
 * has this name or @tenant is NULL, the memory is the sum over all grants. Returns false if no
 * grant applies to @uid.
 */
GPUPART_PRIVATE
bool grant_limit(unsigned int uid, const char *pci, const char *tenant, struct grant_limit *limit);

#endif
