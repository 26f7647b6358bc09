// SPDX-License-Identifier: MIT
/*
 * Tests scope.c without a driver. Some threads read rings while other threads write the rings.
 * Some threads use the table of streams while other threads create and destroy streams.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "lib/confine/scope.h"
#include "tests/tap.h"

static struct gpupart *gp;
static struct state_gpu shared;
static struct gpupart_gpu gpu = { .shared = &shared };
static atomic_bool stop;

/*
 * Makes set number @n. Both words of such a set have the same number of set bits. In a torn copy,
 * the two numbers differ.
 */
static struct gpupart_tpcset choice(unsigned int n)
{
	struct gpupart_tpcset set = { { 0 } };

	gpupart_tpcset_add(&set, n % 60);
	gpupart_tpcset_add(&set, 64 + n % 60);
	return set;
}

static void *writes(void *unused)
{
	(void)unused;
	for (unsigned int n = 0; !atomic_load(&stop); n++) {
		struct gpupart_tpcset set = choice(n);

		scope_ring_set(&gpu, &gpu.process, &set);
	}
	return NULL;
}

static void rings(void)
{
	unsigned int torn = 0, none = 0;
	struct gpupart_tpcset set = choice(0);
	pthread_t thread[2];
	struct tmd_allow allow = { { 0 } };

	scope_ring_set(&gpu, &gpu.process, &set);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, writes, NULL);
	for (unsigned int i = 0; i < 3000000; i++) {
		none += !scope_ring_read(&gpu.process, 2, &allow);
		torn += allow.tmd_bits[0] != allow.tmd_bits[1] || !allow.tmd_bits[0];
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	tap_ok(!torn && !none, "a set that two threads replace is read whole (%u torn, %u none)",
	       torn, none);
}

/* Adds streams. The addresses of the streams' TMDs are 400 bytes apart, like in a heap. */
static int add(unsigned int nr)
{
	struct gpupart_tpcset set = choice(nr);
	struct scope_id id = { .handle = (char *)NULL + 0x10000 + nr * 64 };

	return scope_add(gp, &gpu, &gpu.streams, "streams", &id, 0x1000 + nr, NULL,
			 0x7f0000000000 + nr * 400ull, &set);
}

static unsigned int not_never(void)
{
	unsigned int nr = 0;

	for (unsigned int at = 0; at < SCOPE_TABLE_SIZE; at++)
		nr += atomic_load(&gpu.streams.entries[at].key) != SCOPE_KEY_NEVER;
	return nr;
}

static void table(void)
{
	const unsigned int nr = 40000, kept = 100;
	unsigned int bad = 0, lost = 0, stale = 0;
	struct tmd_allow allow = { { 0 } };

	/* The first 100 streams stay. At most 50 of the other streams exist at the same time. */
	for (unsigned int n = 0; n < nr; n++) {
		bad += add(n) != 0;
		if (n >= kept + 50)
			scope_destroyed(&gpu, &gpu.streams, 0x1000 + n - 50, NULL, NULL);
	}
	for (unsigned int n = 0; n < nr; n++) {
		const struct scope_entry *entry =
			scope_find(&gpu.streams, 0x7f0000000000 + n * 400ull);
		bool has = entry && scope_ring_read(&entry->ring, 2, &allow);

		if (n < kept || n >= nr - 50)
			lost += !has || allow.tmd_bits[0] != 1ull << n % 60;
		else
			stale += has;
	}
	tap_ok(!bad && !lost && !stale,
	       "40000 streams, 150 at a time: %u refused, %u lost, %u stale", bad, lost, stale);
	tap_ok(not_never() < 300, "places that were used make no search long: %u of %u",
	       not_never(), SCOPE_TABLE_SIZE);
	for (unsigned int n = 0; n < nr; n++)
		scope_destroyed(&gpu, &gpu.streams, 0x1000 + n, NULL, NULL);
	tap_ok(!not_never() && !atomic_load(&gpu.streams.nr), "all gone: an empty table");
}

/*
 * A launch has found its stream's entry. Before the launch reads the set, another stream reuses
 * the entry.
 */
static void entry_reused(void)
{
	const uint64_t mine = 0x10000;
	uint64_t other = mine + 16;
	struct scope_id id = { .handle = &other };
	struct gpupart_tpcset set = choice(1);
	struct tmd_allow allow = { { 0 } };
	const struct scope_entry *found;
	bool bad;

	while (scope_table_start(other) != scope_table_start(mine))
		other += 16;
	bad = scope_add(gp, &gpu, &gpu.streams, "streams", &id, 1, NULL, mine, &set);
	found = scope_find(&gpu.streams, mine);
	tap_ok(!bad && found && scope_entry_read(found, mine, 2, &allow) &&
	       allow.tmd_bits[0] == set.allowed[0], "a stream's set is read");
	scope_destroyed(&gpu, &gpu.streams, 1, NULL, NULL);
	tap_ok(!scope_entry_read(found, mine, 2, &allow), "one that went is none");
	bad = scope_add(gp, &gpu, &gpu.streams, "streams", &id, 2, NULL, other, &set);
	tap_ok(!bad && scope_find(&gpu.streams, other) == found &&
	       scope_entry_read(found, other, 2, &allow), "another stream has its place");
	tap_ok(!scope_entry_read(found, mine, 2, &allow), "and none launches with its set");
	scope_destroyed(&gpu, &gpu.streams, 2, NULL, NULL);
}

int main(void)
{
	if (gpupart_open(&gp))
		return 1;
	/* Each TPC has one bit, whose number is the TPC's number. */
	gpu.driver.map.nr_tpcs = 128;
	gpu.driver.map.nr_words = 2;
	for (unsigned int tpc = 0; tpc < 128; tpc++)
		for (unsigned int value = 0; value < 16; value++)
			if (value >> tpc % 4 & 1)
				gpu.driver.map.nibble[tpc / 4][value].tmd_bits[tpc / 64] |=
					1ull << tpc % 64;
	rings();
	table();
	entry_reused();
	free(gpu.streams.entries);
	gpupart_close(gp);
	return tap_done();
}
