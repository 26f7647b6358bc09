/* SPDX-License-Identifier: MIT */
/* One plan of this node's GPUs at a time. */
#ifndef GPUPART_SLURM_NODE_LOCK_H
#define GPUPART_SLURM_NODE_LOCK_H

#include <stddef.h>

/* Of root's schedulers on this node. */
#define NODE_LOCK "/run/gpupart/lock"

/*
 * Takes the lock at @path, whose folder is made if it is /run/gpupart: a descriptor, which the
 * caller closes, or -errno with a sentence in @why, -EBUSY after @seconds.
 */
int node_lock(const char *path, int seconds, char *why, size_t len);

#endif
