/* SPDX-License-Identifier: MIT */
/* Which TPCs of a GPU other programs are limited to now. Knows not who asks. */
#ifndef GPUPART_CLI_NEIGHBOURS_H
#define GPUPART_CLI_NEIGHBOURS_H

#include <gpupart.h>

struct args;

/*
 * The limits on the GPU at @pci of all other programs that can be seen, but for those
 * that @args ignores. @within is the
 * limit of the run around this one (NULL none): who has just that one is our kin. On a
 * simulated GPU those count that simulate the same captures.
 */
struct gpupart_tpcset neighbours_tpcs(const struct args *args, struct gpupart *gp,
				      const struct gpupart_topology *topo, const char *pci,
				      const struct gpupart_tpcset *within);

/*
 * Lets one process of a user's at a time work out a set that is clear of the others, until it is
 * started or ends: by then others see it. Without the lock, or after some seconds of
 * waiting, it goes on all the same, and says so.
 */
void neighbours_lock(const char *cmd);

#endif
