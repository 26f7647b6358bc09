// SPDX-License-Identifier: MIT
/*
 * Tests the ring through which a set reaches the launch callback. The writer may interrupt the
 * reader at any time. Every copy must be one of the published sets.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "lib/confine/scope.h"
#include "lib/tmd/layouts.h"
#include "tests/tap.h"

#define NR_SETS	 32
#define NR_WORDS 2
#define PAGE	 65536	/* a multiple of any page size */

static struct gpupart *gp;
static struct state_gpu in_block;
static struct gpupart_gpu gpu = { .shared = &in_block };
static struct gpupart_tpcset sets[NR_SETS];
static struct tmd_allow allows[NR_SETS];

/*
 * Set n has one bit in each word of the mask. Sets n and n + 8 use the same slot, and differ in
 * both words. So a mixture of both sets is not a set of this test.
 */
static bool make_sets(void)
{
	unsigned int low[GPUPART_MAX_TPCS], high[GPUPART_MAX_TPCS], nr_low = 0, nr_high = 0;

	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(gpu.driver.topo); tpc++)
		if (gpupart_topology_tpc(gpu.driver.topo, tpc)->measured_bit < 64)
			low[nr_low++] = tpc;
		else
			high[nr_high++] = tpc;
	if (nr_low < NR_SETS || nr_high < NR_SETS / RING_SLOTS)
		return false;
	for (unsigned int n = 0; n < NR_SETS; n++) {
		gpupart_tpcset_add(&sets[n], low[n]);
		gpupart_tpcset_add(&sets[n], high[n / RING_SLOTS]);
		tmd_map_convert(&gpu.driver.map, &sets[n], &allows[n]);
		if (__builtin_popcountll(allows[n].tmd_bits[0]) != 1 ||
		    __builtin_popcountll(allows[n].tmd_bits[1]) != 1)
			return false;
	}
	return true;
}

/* Returns the number of the set in a copy, or -1. */
static int which(const struct tmd_allow *copy)
{
	for (int n = 0; n < NR_SETS; n++)
		if (!memcmp(copy->tmd_bits, allows[n].tmd_bits, NR_WORDS * sizeof(uint64_t)))
			return n;
	return -1;
}

/* --------------------------------------------- a writer between two words of a copy */

static struct ring *ring;
static char *second_page;
static unsigned int burst;
static bool half;	/* then begins a second publication and does not finish it */
static volatile sig_atomic_t nr_faults;

/* The reader has read the first word of slot 1. Its next read is the second word. */
static void on_fault(int sig)
{
	(void)sig;
	if (nr_faults++ || mprotect(second_page, PAGE, PROT_READ | PROT_WRITE))
		_exit(3);
	for (unsigned int i = 1; i <= burst; i++)
		scope_ring_set(&gpu, ring, &sets[i]);
	if (half)
		atomic_store(&ring->slot[1].tmd_bits[1], ~0ull);
}

static int copy_interrupted(unsigned int publications, bool and_half)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	struct tmd_allow copy = { 0 };
	int got;

	if (pages == MAP_FAILED)
		return -2;
	second_page = pages + PAGE;
	ring = (struct ring *)(second_page -
				     offsetof(struct ring, slot[1].tmd_bits[1]));
	burst = publications;
	half = and_half;
	nr_faults = 0;
	scope_ring_set(&gpu, ring, &sets[0]);
	if (mprotect(second_page, PAGE, PROT_NONE))
		return -2;
	got = scope_ring_read(ring, NR_WORDS, &copy) ? which(&copy) : -3;
	munmap(pages, 2 * PAGE);
	return nr_faults == 1 ? got : -4;
}

static void test_interrupted(void)
{
	struct sigaction action = { .sa_handler = on_fault };
	unsigned int whole = 0;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (unsigned int n = 0; n < RING_SLOTS - 1; n++)
		whole += copy_interrupted(n, false) == 0;
	tap_ok(whole == RING_SLOTS - 1, "a copy during up to %d publications is the set of before",
	       RING_SLOTS - 2);
	for (unsigned int n = RING_SLOTS - 1; n <= 3 * RING_SLOTS; n++) {
		int got = copy_interrupted(n, false);

		tap_ok(got == (int)n, "during %u: the last one, set %d", n, got);
	}
	tap_ok(copy_interrupted(RING_SLOTS - 1, true) == RING_SLOTS - 1,
	       "during %d and a half: the last whole one", RING_SLOTS - 1);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

/* ---------------------------------------------------- a writer in another thread */

static atomic_bool stop;

static void *writer(void *arg)
{
	struct ring *to = arg;

	for (unsigned int n = 0; !atomic_load_explicit(&stop, memory_order_relaxed); n++)
		scope_ring_set(&gpu, to, &sets[n % NR_SETS]);
	return NULL;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static void test_thread(void)
{
	static struct ring shared;
	unsigned long copies = 0, changes = 0, torn = 0;
	double enough = seconds() + 0.5, end = enough + 60;
	struct tmd_allow copy;
	int got, last = -1;
	pthread_t thread;

	scope_ring_set(&gpu, &shared, &sets[0]);
	if (!tap_ok(!pthread_create(&thread, NULL, writer, &shared), "a writer"))
		return;
	/* On a busy machine, half a second may not be enough for the writer and the reader. */
	while (seconds() < enough || ((copies < 100000 || changes < 2) && seconds() < end))
		for (int i = 0; i < 1000; i++, copies++) {
			got = scope_ring_read(&shared, NR_WORDS, &copy) ? which(&copy) : -1;
			torn += got < 0;
			changes += got != last;
			last = got;
		}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	tap_ok(!torn && changes > 1,
	       "%lu copies, %lu of another set than the one before, %lu torn", copies, changes,
	       torn);
}

int main(void)
{
	const struct tmd_layout *layout = NULL;

	gpupart_open(&gp);
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		if (!strcmp(tmd_layouts[i].name, "V04_00"))
			layout = &tmd_layouts[i];
	if (!tap_ok(layout &&
			    !gpupart_topology_open(gp, "tests/data/gh100-h200-b/capture.txt", NULL,
						   &gpu.driver.topo) &&
			    !tmd_map_build(gp, gpu.driver.topo, layout, NULL, &gpu.driver.map),
		    "a map") ||
	    !tap_ok(make_sets(), "sets with a bit in each word"))
		return tap_done();
	test_interrupted();
	test_thread();
	gpupart_topology_close(gpu.driver.topo);
	gpupart_close(gp);
	return tap_done();
}
