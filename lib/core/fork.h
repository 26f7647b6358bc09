/* SPDX-License-Identifier: MIT */
/*
 * Keeps locks usable in the child of a fork. If another thread held a lock during the fork, it
 * would stay locked in the child for ever.
 */
#ifndef GPUPART_LIB_CORE_FORK_H
#define GPUPART_LIB_CORE_FORK_H

#include <pthread.h>

struct fork_lock {
	pthread_mutex_t *lock;
	int turn;
};

/*
 * Write this after the definition of a lock that is held for moments and never across a driver
 * call (the driver may fork). A fork then acquires the lock first. If a thread can hold two
 * such locks, the inner one has the higher turn, 1 or 2. The list is a section of the object
 * file, so it is complete before any lock can be held.
 */
#define FORK_TAKES(mutex, turn) \
	static const struct fork_lock mutex##_fork = { &(mutex), turn }; \
	static const struct fork_lock *mutex##_listed \
		__attribute__((used, section("gpupart_locks"))) = &mutex##_fork

/*
 * The same for a lock that is held across driver calls: it is initialised again in the child.
 */
#define FORK_RENEWS(mutex) FORK_TAKES(mutex, 0)

/* Holds @mutex until the end of the block. */
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

/*
 * Installs the handlers; call it before any of these locks is used. Any thread may call it any
 * number of times.
 */
void fork_guard(void);

#endif
