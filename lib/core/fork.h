/* SPDX-License-Identifier: MIT */
/*
 * A fork while another thread holds a lock leaves the child that lock held for ever: locks that are
 * held across calls of the driver, which may fork itself, are initialised anew in the child.
 */
#ifndef GPUPART_LIB_CORE_FORK_H
#define GPUPART_LIB_CORE_FORK_H

#include <pthread.h>

/*
 * Behind the definition of such a lock. No fork waits for it. The list is a section of its own, so
 * that it is complete before any lock can be held.
 */
#define FORK_RENEWS(lock) \
	static pthread_mutex_t *lock##_renewed \
		__attribute__((used, section("gpupart_renewed"))) = &(lock)

/* From now on; any number of times, from any thread. Before any of those locks is taken. */
void fork_guard(void);

#endif
