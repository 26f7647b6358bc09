/* SPDX-License-Identifier: MIT */
/*
 * Keeps locks usable in the child of a fork. Without this code, a lock that another thread held
 * during the fork would stay locked in the child forever.
 */
#ifndef GPUPART_LIB_CORE_FORK_H
#define GPUPART_LIB_CORE_FORK_H

#include <pthread.h>

struct fork_lock {
	pthread_mutex_t *lock;
	int turn;
};

/*
 * Write this macro after the definition of a lock. A thread may hold the lock for a short time. It
 * must release the lock before a driver call, because the driver may fork. A fork acquires the lock
 * before it copies the process. The argument @turn is 1 or 2. If a thread can hold two such locks,
 * the lock that it acquires second has the higher turn. The list of locks is a section of the
 * object file, so it is complete before any lock can be held.
 */
#define FORK_TAKES(mutex, turn) \
	static const struct fork_lock mutex##_fork = { &(mutex), turn }; \
	static const struct fork_lock *mutex##_listed \
		__attribute__((used, section("gpupart_locks"))) = &mutex##_fork

/*
 * Write this macro after the definition of a lock that a thread can hold during driver calls.
 * The child of a fork initialises the lock again.
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
 * Installs the handlers. Call this function before any of these locks is used. Any thread may
 * call it any number of times.
 */
void fork_guard(void);

#endif
