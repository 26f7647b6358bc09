// SPDX-License-Identifier: MIT
/*
 * Tests code that detects the end of all launches with a process's old set. A launch with the old
 * set may not have a number yet.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/private.h"
#include "tests/unit/records/gpu.h"

#define CTX		((void *)0x7000)
#define NR_ROUNDS	1000
#define NR_BEHIND	8

static struct stream streams[70];
static struct gpupart_records_reader *reader;

static bool begin(void)
{
	bool good = start() && !gpupart_records_open(gp, 0, PCI, &reader);

	for (int i = 0; i < 70; i++)
		streams[i].ctx = CTX;
	return good && records_context(records, &cuda, CTX);
}

/*
 * stored() simulates the store of another thread. It is called at fence number @fence. So the
 * store becomes visible at this fence.
 */
static void (*stored)(void);
static int fence;

long __real_syscall(long nr, long command, long flags, long cpu);
long __wrap_syscall(long nr, long command, long flags, long cpu);

long __wrap_syscall(long nr, long command, long flags, long cpu)
{
	if (nr == SYS_membarrier && command == MEMBARRIER_CMD_GLOBAL_EXPEDITED && stored &&
	    !--fence)
		stored();
	return __real_syscall(nr, command, flags, cpu);
}

static void drain(void)
{
	gpupart_records_drain(reader);
}

static int drained(void)
{
	return gpupart_records_drained(gp, reader);
}

static bool is_unknown(const char *why)
{
	int result = drained();

	if (result != -ENODATA || !strstr(gpupart_error(gp), why))
		printf("# %d: %s\n", result, gpupart_error(gp));
	return result == -ENODATA && strstr(gpupart_error(gp), why);
}

static void launches(void)
{
	struct launched a, b, c;

	drain();
	tap_ok(drained() == 1, "nothing was launched");
	a = launch(&streams[0]);
	b = launch(&streams[1]);
	drain();
	tap_ok(drained() == 0, "two launches are outstanding");
	c = launch(&streams[0]);
	end(b);
	tap_ok(drained() == 0, "one of them has ended");
	end(a);
	tap_ok(drained() == 1, "both have, and a later one does not count");
	drain();
	tap_ok(drained() == 0, "but for the next change");
	end(c);
	tap_ok(drained() == 1, "it has ended");
}

static _Thread_local struct state_lane spare;

static void launch_begins(void)
{
	state_launch_begin(state_lane ?: state_lane_first(&spare));
}

static void launch_ends(void)
{
	state_launch_end(state_lane ?: &spare);
}

static void inside(void)
{
	struct launched l;

	launch_begins();
	drain();
	tap_ok(drained() == 0, "a thread is in the launch callback");
	state_count(STATE_CONFINED);
	l = launch(&streams[0]);
	tap_ok(drained() == 0, "its launch has a number");
	launch_ends();
	tap_ok(drained() == 0, "the thread has left: its launch is outstanding");
	end(l);
	tap_ok(drained() == 1, "and has ended");
	launch_begins();
	drain();
	tap_ok(drained() == 0, "it is in the callback again");
	state_count(STATE_CONFINED);
	launch_ends();
	launch_begins();
	tap_ok(drained() == 0, "and in the next one: so it may be in the same");
	state_count(STATE_CONFINED);
	tap_ok(drained() == 1, "it has read its set twice: one of the launches is over");
	launch_ends();
	state_graph_begin();
	drain();
	tap_ok(drained() == 0, "a thread launches a graph");
	state_graph_end();
	state_graph_begin();
	tap_ok(drained() == 1, "and then another one");
	drain();
	tap_ok(drained() == 0, "which counts for the next change");
	state_graph_end();
	tap_ok(drained() == 1, "it has left that, too");
}

static struct launched launched;

static void launch_stored(void)
{
	state_count(STATE_CONFINED);
	launched = launch(&streams[0]);
}

static void unfenced(void)
{
	stored = launch_begins;
	fence = 1;
	drain();
	tap_ok(drained() == 0, "a thread is in the launch callback, which a fence shows");
	launch_ends();
	tap_ok(drained() == 1, "it has left");
	stored = launch_stored;
	fence = 4;
	drain();
	tap_ok(drained() == 0, "one has left, and a fence shows its launch's number");
	end(launched);
	tap_ok(drained() == 1, "which has ended");
}

/*
 * Counts through a second mapping of the page. Otherwise a thread outside the callback would
 * count as inside.
 */
static void marks(void)
{
	state_graph_begin();
	state_graph_end();
	state_lane->graphs--;
	state_graph_begin();
	drain();
	tap_ok(drained() == 0, "a mark that was lost: a thread that launches a graph is seen");
	state_graph_end();
	tap_ok(drained() == 1, "and that it has left");
	state_graph_begin();
	state_lane->graphs--;
	state_graph_end();
	drain();
	tap_ok(drained() == 1, "also if its begin was lost");
}

static void loose(void)
{
	struct launched a = launch(&streams[0]), b;

	drain();
	tap_ok(drained() == 0, "a launch is outstanding");
	state_count(STATE_WIDENED_COOPERATIVE);
	b = launch(&streams[1]);
	end(a);
	tap_ok(drained() == 0, "it has ended, and one with more TPCs is outstanding");
	end(b);
	tap_ok(drained() == 1, "that has ended, too");
	drain();
	tap_ok(drained() == 1, "it was before the next change");
	state_count(STATE_GRAPH_STALE);
	b = launch(&streams[1]);
	tap_ok(drained() == 0, "a graph with an old set is like a launch from before");
	end(b);
	tap_ok(drained() == 1, "and it has ended");
}

static void unknown(void)
{
	static struct launched l[RECORDS_LONG + 1];

	for (int i = 0; i <= RECORDS_LONG; i++)
		l[i] = launch(&streams[0]);
	drain();
	tap_ok(drained() == 0, "launches are outstanding, and one has no record");
	for (int i = 0; i < RECORDS_LONG; i++)
		end(l[i]);
	tap_ok(is_unknown("a stream's last launches"), "that one is the last: unknown");
	l[0] = launch(&streams[0]);
	end(l[0]);
	tap_ok(drained() == 1, "until the next one of its stream has ended");
	l[0] = launch(&streams[1]);
	drain();
	records_context_gone(records, CTX);
	tap_ok(is_unknown("a context was lost"), "a context is lost: unknown");
	for (int i = 0; i < 70; i++)
		streams[i].ctx = (void *)0x7040;
	records_context(records, &cuda, streams[0].ctx);
	tap_ok(drained() == 1, "its memory is used again: nothing writes it any more");
	state_count(STATE_DEVICE_LAUNCHES);
	tap_ok(is_unknown("kernels that launch kernels"), "a kernel launches kernels: unknown");
}

/* Two launches of one stream are in the callback at the same time. */
static void broken(void)
{
	struct launched l = launch(&streams[0]);

	records_ring_of(records, (uintptr_t)streams[0].tmd)->ready = NULL;
	launch(&streams[0]);
	records_ring_of(records, (uintptr_t)streams[0].tmd)->ready = CTX;
	launch(&streams[0]);
	end(l);
	drain();
	tap_ok(is_unknown("a stream's last launches"), "two launches of a stream at once: unknown");
	records_context_gone(records, CTX);
	tap_ok(is_unknown("a stream's last launches"), "the context is lost: still unknown");
	records_context(records, &cuda, (void *)0x7040);
	tap_ok(drained() == 1, "its memory is used again: all launches have ended");
}

static void more_unknown(void)
{
	drain();
	tap_ok(drained() == 1, "known");
	for (int i = 0; i < 65; i++)
		launch(&streams[i]);
	tap_ok(is_unknown("on some of its streams"), "a stream without a ring: unknown");
	records->shown->nowhere = 0;
	records->shown->fenced = 0;
	tap_ok(is_unknown("membarrier"), "a process whose threads cannot be fenced: unknown");
	records->shown->on = 0;
	tap_ok(is_unknown("no records"), "without records: unknown");
}

static void *take_lane(void *all)
{
	launch_begins();
	launch_ends();
	pthread_barrier_wait(all);
	pthread_barrier_wait(all);
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[64];
	pthread_barrier_t all;

	drain();
	for (int nr = 63; nr <= 64; nr++) {
		pthread_barrier_init(&all, NULL, nr + 1);
		for (int i = 0; i < nr; i++)
			pthread_create(&threads[i], NULL, take_lane, &all);
		pthread_barrier_wait(&all);
		tap_ok(nr == 63 ? drained() == 1 : is_unknown("more than 63"), "%d threads", nr);
		pthread_barrier_wait(&all);
		for (int i = 0; i < nr; i++)
			pthread_join(threads[i], NULL);
	}
}

/* ------------------------------------------------------------------- the race */

static _Atomic uint64_t set;			/* read by launches */
static _Atomic uint64_t oldest = UINT64_MAX;	/* the set of the launches that have not ended */
static atomic_bool over;

static void *launch_all_the_time(void *unused)
{
	struct launched behind[NR_BEHIND] = { 0 };
	uint64_t had[NR_BEHIND];

	for (unsigned int i = 0; !atomic_load(&over); i++) {
		struct launched *l = &behind[i % NR_BEHIND];

		launch_begins();
		had[i % NR_BEHIND] = atomic_load_explicit(&set, memory_order_relaxed);
		state_count(STATE_CONFINED);
		if (l->cell) {
			/*
			 * At this time, the test has not seen the end of the launch. The next
			 * launch is not older than this launch.
			 */
			atomic_store(&oldest, had[(i + 1) % NR_BEHIND]);
			end(*l);
		}
		*l = launch(&streams[0]);
		launch_ends();
	}
	return unused;
}

static void race(void)
{
	unsigned int wrong = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, launch_all_the_time, NULL);
	while (atomic_load(&oldest) == UINT64_MAX)
		;
	for (uint64_t round = 1; round <= NR_ROUNDS; round++) {
		int result;

		atomic_store_explicit(&set, round, memory_order_relaxed);
		drain();
		do
			result = drained();
		while (!result);
		wrong += result != 1 || atomic_load(&oldest) < round;
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	tap_ok(!wrong, "%u of %d changes seemed to be drained too early", wrong, NR_ROUNDS);
}

int main(void)
{
	static void (*const tests[])(void) = {
		launches, inside, unfenced, marks, loose, unknown, broken, more_unknown,
		many_threads, race,
	};

	/* Each test runs in a separate process. So tests do not affect each other. */
	for (unsigned int i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		int status = 1, before = tap_count;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid) {
			if (begin())
				tests[i]();
			fflush(stdout);
			_exit(tap_failed || tap_count == before ? 255 : tap_count - before);
		}
		waitpid(pid, &status, 0);
		tap_failed += !WIFEXITED(status) || WEXITSTATUS(status) == 255;
		tap_count += WEXITSTATUS(status) == 255 ? 1 : WEXITSTATUS(status);
	}
	return tap_done();
}
