/* SPDX-License-Identifier: MIT */
/* The lock for plans of this node's GPUs. */
#ifndef GPUPART_SLURM_NODE_LOCK_H
#define GPUPART_SLURM_NODE_LOCK_H

#include <stddef.h>

/* The lock of root's schedulers on this node. */
#define NODE_LOCK "/run/gpupart/lock"

/*
 * Acquires the lock at @path; creates /run/gpupart if needed. Returns a descriptor, which the
 * caller closes, or -errno with a reason in @why; -EBUSY after @seconds. /
 */
int node_lock(const char *path, int seconds, char *why, size_t len);

#endif
