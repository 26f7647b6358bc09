// SPDX-License-Identifier: MIT
/* Initialises the locks of FORK_RENEWS() anew in the child of a fork. */
#include <stdint.h>
#include "lib/core/fork.h"

/* The linker's names for the section of FORK_RENEWS(). */
extern pthread_mutex_t *__start_gpupart_renewed[] __attribute__((visibility("hidden")));
extern pthread_mutex_t *__stop_gpupart_renewed[] __attribute__((visibility("hidden")));

static void renew(void)
{
	const uintptr_t end = (uintptr_t)__stop_gpupart_renewed;

	for (pthread_mutex_t **lock = __start_gpupart_renewed; (uintptr_t)lock < end; lock++)
		pthread_mutex_init(*lock, NULL);
}

static void guard(void)
{
	pthread_atfork(NULL, NULL, renew);
}

void fork_guard(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, guard);
}
