// SPDX-License-Identifier: MIT
/*
 * Waits for the locks that a thread holds for moments and never across a call of the
 * driver, which may fork itself. The child, where CUDA does not work, gets a new one in
 * place of the lock of who attaches.
 */
#include <pthread.h>
#include <stdbool.h>
#include "fork.h"
#include "graph.h"
#include "module.h"
#include "scope.h"

static pthread_mutex_t *renewed;

/* graph.c asks scope.c under its own lock. */
static void before(void)
{
	module_hold();
	graph_hold();
	scope_hold();
}

static void after(void)
{
	scope_release();
	graph_release();
	module_release();
}

static void after_in_child(void)
{
	after();
	pthread_mutex_init(renewed, NULL);
}

void fork_guard(pthread_mutex_t *attaching)
{
	static bool guarded;

	renewed = attaching;
	if (!guarded)
		guarded = !pthread_atfork(before, after, after_in_child);
}
