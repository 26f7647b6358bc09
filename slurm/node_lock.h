/* SPDX-License-Identifier: MIT */
/* Declares a lock. A process holds this lock while it makes plans for this node's GPUs. */
#ifndef GPUPART_SLURM_NODE_LOCK_H
#define GPUPART_SLURM_NODE_LOCK_H

#include <stddef.h>

/* The lock that all schedulers of root on this node use. */
#define NODE_LOCK "/run/gpupart/lock"

/*
 * Acquires the lock at @path, and creates /run/gpupart if necessary. Returns a descriptor, which
 * the caller must close, or -errno with a reason in @why. -EBUSY: another process still holds the
 * lock after @seconds.
 */
int node_lock(const char *path, int seconds, char *why, size_t len);

#endif
