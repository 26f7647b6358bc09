/* SPDX-License-Identifier: MIT */
/* Whether this process has pids or users of its own. Knows not why that matters. */
#ifndef GPUPART_CLI_NAMESPACES_H
#define GPUPART_CLI_NAMESPACES_H

#include <stdbool.h>
#include <stddef.h>

struct namespaces {
	bool pids_known, own_pids;	/* pids that differ from the machine's */
	bool users_known, own_users;
	bool users_mapped;	/* some user here is one outside */
	long uid_outside;	/* what this process's user is outside, -1 if not told */
};

void namespaces_find(struct namespaces *found);

#endif
