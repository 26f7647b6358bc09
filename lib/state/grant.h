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
 * Returns true if @id has the form of a grant's id. The id of any other job begins with a pid, so
 * it does not have this form.
 */
GPUPART_PRIVATE
bool grant_is_id(const char *id);

/* Reads grant @id. If there is no such grant, or if the grant allows no TPCs, returns false. */
GPUPART_PRIVATE
bool grant_get(const char *id, struct gpupart_grant *grant);

/*
 * Opens the directory of grants. Callers can lock the returned descriptor. If the directory does
 * not exist, returns a negative errno.
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
 * Opens @folder for grant_write.c. If users other than root can write to @folder, returns a
 * negative errno.
 */
GPUPART_PRIVATE
int grant_open_folder(const char *folder);
/*
 * The first function returns true if the strings of a grant are valid. The second function returns
 * true if the set of a grant is valid. The caller must check the strings before it calls the second
 * function.
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
 * Reads the grants of @uid on the GPU at @pci. If @pci is NULL, reads the grants on all GPUs. The
 * result contains the TPCs of all these grants. If a grant has the name @tenant, the result
 * contains the memory of this grant. If @tenant is NULL or no grant has this name, the result
 * contains the sum of the memory of all grants. If no grant applies to @uid, returns false.
 */
GPUPART_PRIVATE
bool grant_limit(unsigned int uid, const char *pci, const char *tenant, struct grant_limit *limit);

#endif
