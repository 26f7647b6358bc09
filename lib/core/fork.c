// SPDX-License-Identifier: MIT
/* Acquires locks before a fork and releases them after the fork. See fork.h. */
#include <stdint.h>
#include "lib/core/fork.h"

#define LAST_TURN 2

/* The linker defines these symbols for the section of FORK_TAKES(). */
extern const struct fork_lock *__start_gpupart_locks[] __attribute__((visibility("hidden")));
extern const struct fork_lock *__stop_gpupart_locks[] __attribute__((visibility("hidden")));

static void each(int turn, int (*act)(pthread_mutex_t *))
{
	const uintptr_t end = (uintptr_t)__stop_gpupart_locks;

	for (const struct fork_lock **at = __start_gpupart_locks; (uintptr_t)at < end; at++)
		if ((*at)->turn == turn)
			act((*at)->lock);
}

static void before(void)
{
	for (int turn = 1; turn <= LAST_TURN; turn++)
		each(turn, pthread_mutex_lock);
}

static void after(void)
{
	for (int turn = LAST_TURN; turn; turn--)
		each(turn, pthread_mutex_unlock);
}

static int renew(pthread_mutex_t *lock)
{
	return pthread_mutex_init(lock, NULL);
}

static void after_in_child(void)
{
	each(0, renew);
	after();
}

static void guard(void)
{
	pthread_atfork(before, after, after_in_child);
}

void fork_guard(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, guard);
}
