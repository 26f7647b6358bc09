// SPDX-License-Identifier: MIT
/* Tests that signals do not interrupt the writes of small files, and are not lost. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "lib/core/fsize.h"
#include "tests/tap.h"

static volatile sig_atomic_t nr;

static void count(int sig)
{
	(void)sig;
	nr++;
}

int main(void)
{
	struct fsize_guard guard;

	signal(SIGPROF, count);
	signal(SIGXFSZ, count);
	fsize_guard_begin(&guard);
	raise(SIGPROF);
	raise(SIGXFSZ);
	tap_ok(!nr, "no signal handler runs during the writes");
	fsize_guard_end(&guard);
	tap_ok(nr == 1,
	       "a timer's signal follows at the end, and the signal of the limit does not");
	raise(SIGXFSZ);
	tap_ok(nr == 2, "after the end, the program gets all signals");
	return tap_done();
}
