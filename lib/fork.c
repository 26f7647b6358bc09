// SPDX-License-Identifier: MIT
/*
 * Waits for the locks that a thread holds for moments and never across a call of the
 * driver, which may fork itself. The child gets new ones in place of the others.
 */
#include <pthread.h>
#include <stdint.h>
#include "fork.h"
#include "graph.h"
#include "hook.h"
#include "module.h"
#include "probe.h"
#include "scope.h"

/* The linker's names for the section of FORK_RENEWS(). */
extern pthread_mutex_t *__start_gpupart_renewed[] __attribute__((visibility("hidden")));
extern pthread_mutex_t *__stop_gpupart_renewed[] __attribute__((visibility("hidden")));

/* graph.c asks scope.c under its own lock. */
static void before(void)
{
	module_hold();
	graph_hold();
	scope_hold();
	probe_hold();
}

static void after(void)
{
	probe_release();
	scope_release();
	graph_release();
	module_release();
}

static void after_in_child(void)
{
	const uintptr_t end = (uintptr_t)__stop_gpupart_renewed;
	pthread_mutex_t **lock;

	hook_in_child();
	probe_forget();
	after();
	for (lock = __start_gpupart_renewed; (uintptr_t)lock < end; lock++)
		pthread_mutex_init(*lock, NULL);
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
