/* SPDX-License-Identifier: MIT */
/*
 * A fork while another thread sets something leaves the child its locks held, for ever.
 * Knows the locks and nothing of what they guard.
 */
#ifndef GPUPART_LIB_FORK_H
#define GPUPART_LIB_FORK_H

#include <pthread.h>

/*
 * Behind the definition of a lock that is held across calls of the driver, which may fork
 * itself: no fork waits for it, and the child, where CUDA does not work, has a new one. In a
 * section of its own, so that it is known before anybody can hold it.
 */
#define FORK_RENEWS(lock) \
	static pthread_mutex_t *lock##_renewed \
		__attribute__((used, section("gpupart_renewed"))) = &(lock)

/* From now on; any number of times, from any thread. Before any of those locks is taken. */
void fork_guard(void);

#endif
