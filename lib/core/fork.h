/* SPDX-License-Identifier: MIT */
/* A fork while another thread holds a lock leaves the child that lock held for ever. */
#ifndef GPUPART_LIB_CORE_FORK_H
#define GPUPART_LIB_CORE_FORK_H

#include <pthread.h>

struct fork_lock {
	pthread_mutex_t *lock;
	int turn;
};

/*
 * Behind the definition of a lock that is held for moments and never across a call of the driver,
 * which may fork itself: a fork takes it meanwhile. Of two that a thread may hold at once the inner
 * one has the higher turn, 1 or 2. The list is a section of its own, so that it is complete before
 * any lock can be held.
 */
#define FORK_TAKES(mutex, turn) \
	static const struct fork_lock mutex##_fork = { &(mutex), turn }; \
	static const struct fork_lock *mutex##_listed \
		__attribute__((used, section("gpupart_locks"))) = &mutex##_fork

/* Behind that of one which is held across such calls: it is initialised anew in the child. */
#define FORK_RENEWS(mutex) FORK_TAKES(mutex, 0)

/* Holds @mutex to the end of the block. */
#define FORK_HOLD(mutex) \
	__attribute__((cleanup(fork_hold_end))) pthread_mutex_t *held = fork_hold_begin(mutex)

static inline pthread_mutex_t *fork_hold_begin(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void fork_hold_end(pthread_mutex_t *const *held)
{
	pthread_mutex_unlock(*held);
}

/* From now on; any number of times, from any thread. Before any of those locks is taken. */
void fork_guard(void);

#endif
