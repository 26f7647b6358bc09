// SPDX-License-Identifier: MIT
/*
 * Tests a limit that two processes write. While both kinds of writers run, every copy must be a
 * published limit. A writer may die at any of its stores. Then the previous limit must stay in
 * force.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/state/limit.h"
#include "tests/tap.h"

static struct limit *shared;
static uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
static struct tmd_map map;

/*
 * Set n has the same bits in each of its four words. So a mixture of two sets is not a set of
 * this test.
 */
static struct gpupart_tpcset pattern(unsigned int n)
{
	struct gpupart_tpcset set;

	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set.allowed[i] = n * 0x0101010101010101ull;
	return set;
}

/* Returns the number of a set's pattern. 0: no set. -1: the set does not belong to this test. */
static int which(const struct gpupart_tpcset *set)
{
	unsigned int n = set->allowed[0] & 0xff;
	struct gpupart_tpcset want = pattern(n);

	return gpupart_tpcset_equal(set, &want) ? (int)n : -1;
}

/*
 * Returns the set that applies to launches. @o is the outer limit, and @i is the inner limit. The
 * value 0 means no limit.
 */
static int in_force(int o, int i)
{
	return o && i ? (o & i ? (o & i) : o) : o | i;
}

static bool whole(const struct limit_sets *sets)
{
	int o = which(&sets->outer), i = which(&sets->inner);

	return o >= 0 && i >= 0 && which(&sets->in_force) == in_force(o, i);
}

static bool set_inside(unsigned int n)
{
	struct gpupart_tpcset set = pattern(n);

	return limit_set_inside(shared, LIMIT_INNER, &map, n ? &set : NULL);
}

static int set_outside(unsigned int n)
{
	struct gpupart_tpcset set = pattern(n);
	struct limit_sets before;

	return limit_set_outside(shared, bit_of_tpc, n ? &set : NULL, &before) ?
		       which(&before.in_force) : -2;
}

static bool cap(unsigned int n)
{
	struct gpupart_tpcset set = pattern(n);

	return limit_set_inside(shared, LIMIT_CAP, &map, &set);
}

static bool is(int outer, int inner)
{
	struct limit_sets sets;
	struct tmd_allow allow = { 0 };
	struct gpupart_tpcset bits;
	bool any = ring_read(&shared->published, LIMIT_SLOTS, 4, &allow);
	int want = in_force(outer, inner);

	memcpy(&bits, &allow, sizeof(bits));
	return limit_get(shared, &sets) && which(&sets.outer) == outer &&
	       which(&sets.inner) == inner && which(&sets.in_force) == want &&
	       any == !!want && (!any || which(&bits) == want);
}

static void test_parts(void)
{
	tap_ok(is(0, 0), "there is none at first");
	set_inside(0x0f);
	tap_ok(is(0, 0x0f), "from inside alone");
	tap_ok(set_outside(0x3c) == 0x0f && is(0x3c, 0x0f), "and from outside: what both allow");
	tap_ok(set_outside(0xf0) == 0x0c && is(0xf0, 0x0f),
	       "nothing in common: the one from outside");
	set_inside(0);
	tap_ok(is(0xf0, 0), "the one from inside taken away");
	tap_ok(!set_inside(0x31) && is(0xf0, 0), "one that is not inside the outer: refused");
	set_inside(0x30);
	tap_ok(set_outside(0) == 0x30 && is(0, 0x30), "the one from outside taken away");
	set_inside(0);
	tap_ok(is(0, 0), "none is left");
	set_inside(0x0f);
	tap_ok(cap(0x3c) && is(0x3c, 0x0f), "a cap where there is none from outside");
	tap_ok(cap(0xf4) && is(0x34, 0x0f), "and of one from outside: what both allow");
	tap_ok(!cap(0xc3) && is(0x34, 0x0f), "nothing in common: refused");
	tap_ok(cap(0xff) && is(0x34, 0x0f), "a wider one changes nothing");
	set_inside(0);
	set_outside(0);
}

static void test_turns(void)
{
	unsigned int seed = 1;
	int outer = 0, inner = 0;
	bool good = true;

	for (int n = 0; n < 100000 && good; n++) {
		unsigned int set = 1 + rand_r(&seed) % 255;

		if (rand_r(&seed) % 8 == 0) {
			bool any = !outer || (set & outer);

			good = cap(set) == any;
			outer = !any ? outer : outer ? (int)set & outer : (int)set;
		} else if (rand_r(&seed) % 3) {
			bool inside = !outer || !(set & ~outer);

			good = set_inside(set) == inside;
			inner = inside ? (int)set : inner;
		} else {
			good = set_outside(set) == in_force(outer, inner);
			outer = set;
		}
		good &= is(outer, inner);
	}
	tap_ok(good, "100000 changes from either side in any order");
	set_inside(0);
	set_outside(0);
}

static atomic_bool stop;
static atomic_ulong nr_torn, nr_copies;

static void *read_on(void *unused)
{
	while (!atomic_load(&stop)) {
		struct limit_sets sets;
		struct gpupart_tpcset bits;
		struct tmd_allow allow;

		if (limit_get(shared, &sets) && !whole(&sets))
			atomic_fetch_add(&nr_torn, 1);
		if (ring_read(&shared->published, LIMIT_SLOTS, 4, &allow)) {
			memcpy(&bits, &allow, sizeof(bits));
			if (which(&bits) < 0)
				atomic_fetch_add(&nr_torn, 1);
		}
		atomic_fetch_add(&nr_copies, 1);
	}
	return unused;
}

/* The current set of a writer, and the last set that this writer published. */
static struct {
	atomic_int begun, done;
} *writer;

/* This function never returns, because the process is killed. */
static void write_outside(unsigned int seed)
{
	for (;;) {
		int set = 1 + rand_r(&seed) % 255;

		atomic_store(&writer->begun, set);
		set_outside(set);
		atomic_store(&writer->done, set);
	}
}

static pid_t start_writer(unsigned int seed)
{
	pid_t pid = fork();

	if (!pid)
		write_outside(seed);
	return pid;
}

#define NR_KILLS 1000

static void test_kills(void)
{
	pthread_t readers[2];
	unsigned int seed = 7, nr_bad = 0, nr_lost = 0;
	pid_t pid;

	for (int i = 0; i < 2; i++)
		pthread_create(&readers[i], NULL, read_on, NULL);
	for (int n = 0; n < NR_KILLS; n++) {
		struct limit_sets sets, again;
		int inner, outer;

		set_inside(0);
		inner = 0;
		pid = start_writer(n);
		usleep(rand_r(&seed) % 1000);
		for (int i = rand_r(&seed) % 1000; i >= 0; i--) {
			int wanted = rand_r(&seed) % 256;

			/*
			 * The outer set changes all the time. So the inner set is usually not
			 * inside the outer set.
			 */
			if (set_inside(wanted))
				inner = wanted;
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		limit_get(shared, &sets);
		outer = which(&sets.outer);
		nr_lost += outer != atomic_load(&writer->begun) &&
			   outer != atomic_load(&writer->done);
		/*
		 * No writer runs now. The set must be complete and stay complete. It must be
		 * possible to set a new set.
		 */
		nr_bad += !limit_get(shared, &sets) || !whole(&sets) ||
			  which(&sets.inner) != inner || !limit_get(shared, &again) ||
			  memcmp(&sets, &again, sizeof(sets));
		nr_bad += set_outside(0x55) != which(&sets.in_force) || !is(0x55, inner);
		atomic_store(&writer->begun, 0x55);
		atomic_store(&writer->done, 0x55);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	tap_ok(!nr_bad, "%d writers killed: %u left something wrong", NR_KILLS, nr_bad);
	tap_ok(!nr_lost, "the last set of %u of them was lost", nr_lost);
	tap_ok(!atomic_load(&nr_torn) && atomic_load(&nr_copies) > 1000,
	       "%lu copies meanwhile, %lu torn", atomic_load(&nr_copies), atomic_load(&nr_torn));
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared) + sizeof(*writer), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	writer = (void *)(shared + 1);
	/* Bit n is TPC n, in both forms of the map. */
	map.nr_tpcs = GPUPART_MAX_TPCS;
	map.nr_words = GPUPART_MAX_TMD_BITS / 64;
	for (unsigned int tpc = 0; tpc < GPUPART_MAX_TPCS; tpc++) {
		bit_of_tpc[tpc] = map.bit_of_tpc[tpc] = tpc;
		for (unsigned int value = 0; value < 16; value++)
			if (value >> (tpc % 4) & 1)
				map.nibble[tpc / 4][value].tmd_bits[tpc / 64] |= 1ull << tpc % 64;
	}
	test_parts();
	test_turns();
	test_kills();
	return tap_done();
}
