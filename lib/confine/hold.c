// SPDX-License-Identifier: MIT
/*
 * A fork waits for the locks that a thread holds for moments and never across a call of the
 * driver, which may fork itself.
 */
#include <pthread.h>
#include "lib/confine/graph.h"
#include "lib/confine/hold.h"
#include "lib/confine/module.h"
#include "lib/confine/probe.h"
#include "lib/confine/scope.h"
#include "lib/core/fork.h"

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
	probe_forget();
	after();
}

static void guard(void)
{
	pthread_atfork(before, after, after_in_child);
}

void hold_guard(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	fork_guard();
	pthread_once(&once, guard);
}
