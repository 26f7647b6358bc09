// SPDX-License-Identifier: MIT
/* See fault.h. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include "lib/core/fault.h"

static _Thread_local struct {
	sigjmp_buf jump;
	volatile bool guarded;
} own;
static struct sigaction before_us;

/*
 * If the fault is not in a guarded access, this handler restores the previously installed handler.
 * Then the processor repeats the access, and the restored handler handles the fault.
 */
static void on_fault(int sig)
{
	if (own.guarded)
		siglongjmp(own.jump, 1);
	sigaction(sig, &before_us, NULL);
}

static void install(void)
{
	/* The signal is not blocked in the handler, so the jump need not restore the mask. */
	const struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, &before_us);
}

void fault_catch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
}

int fault_guard(int (*act)(void *arg), void *arg)
{
	int result;

	if (sigsetjmp(own.jump, 0)) {
		result = -EFAULT;
	} else {
		own.guarded = true;
		result = act(arg);
	}
	own.guarded = false;
	return result;
}
