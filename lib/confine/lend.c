// SPDX-License-Identifier: MIT
/* See lend.h. Outside of the launch callback: one lock, which no thread holds while it waits. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "lib/confine/lend.h"
#include "lib/core/clock.h"
#include "lib/core/fork.h"
#include "lib/core/hash.h"

#define MAX_OUTSTANDING	256	/* launches that are kept track of */
#define KERNEL_BITS	10
#define PROBES		8
#define SPIN_NS		1000000	/* of a wait, as the driver's waits do */
#define PAUSE_NS	20000
#define CLOCKS_NS	2000000	/* so much the clocks of CPU and GPU may be unknown */

/* A function with one grid, under one limit. */
struct lend_kernel {
	uint64_t key;		/* 0: free */
	/* Without lent TPCs, and with them: at most, but of the first LEND_COLD runs. */
	uint64_t longest_ns[2];
	unsigned int runs[2];		/* that were timed */
	bool exact[2];			/* by launches that waited for the one before them alone */
};

struct outstanding {
	struct lend_kernel *kernel;
	const struct records *records;
	const struct records_ring *ring;
	uint64_t key, seq, ns;
	bool counted;		/* in counted_ns; false: no launch waits for it any more */
	bool lent;		/* in lent_ns */
	bool queued;		/* behind another one that had not ended yet */
};

atomic_bool lend_used;
struct lend_from *_Atomic lend_from;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);

static uint64_t depth_ns, limit_ns;	/* of the run, as it began */
static struct lend_kernel kernels[1 << KERNEL_BITS];
static struct outstanding outstanding[MAX_OUTSTANDING];
static unsigned int nr_outstanding;
static unsigned int nr_stuck;		/* that no launch waits for any more */
static uint64_t counted_ns, lent_ns;
static atomic_uint generation;		/* of functions' addresses */
static struct gpupart_gpu *gpu;		/* of the lender's TPCs; NULL: none */
static uint64_t taken;			/* report_lend->number of what was taken */
static struct lend_from *earlier;	/* lenders that a callback may be reading */
static unsigned int nr_calls;		/* that launch, in all threads */
static _Thread_local struct scope_lend call;

/* No launch works there, and what is outstanding is the parent's. */
static void after_fork(void)
{
	atomic_store(&lend_used, false);
}

bool lend_start(void)
{
	if (!report_lend || !report_lend->depth_ns)
		return false;
	depth_ns = report_lend->depth_ns;
	limit_ns = report_lend->limit_ns;
	if (!atomic_exchange(&lend_used, true))
		pthread_atfork(NULL, NULL, after_fork);
	return true;
}

void lend_forget(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------- the lender */

/* No lender any more, and those that no callback can be reading are freed. */
static void drop_lender(void)
{
	struct lend_from *from = atomic_exchange(&lend_from, NULL);

	gpu = NULL;
	if (from) {
		from->next = earlier;
		earlier = from;
	}
	while (!nr_calls && (from = earlier)) {
		earlier = from->next;
		munmap(from->head, sizeof(struct report_block));
		free(from);
	}
}

/* What the run's watcher wrote; while it writes, none. */
static __attribute__((noinline)) void take_lender(void)
{
	uint64_t number = atomic_load(&report_lend->number);
	struct lend_lender lender = report_lend->lender;
	struct gpupart_tpcset all;
	struct lend_from *from;

	drop_lender();
	lender.report[sizeof(lender.report) - 1] = 0;
	atomic_thread_fence(memory_order_acquire);
	if (number & 1 || atomic_load(&report_lend->number) != number)
		return;
	taken = number;
	for (unsigned int n = 0; *lender.report && (gpu = scope_gpu(n)); n++)
		if (!strncmp(gpu->driver.topo->info.pci, lender.pci, sizeof(lender.pci)))
			break;
	if (!gpu)
		return;
	all = gpupart_topology_all(gpu->driver.topo);
	from = malloc(sizeof(*from));
	if (!from || gpupart_tpcset_empty(&lender.tpcs) ||
	    !gpupart_tpcset_subset(&lender.tpcs, &all) ||
	    memfd_map(NULL, lender.report, REPORT_NAME, REPORT_MAGIC, sizeof(struct report_block),
		      &from->head)) {
		free(from);
		return;
	}
	from->block = &((struct report_block *)from->head)->lend;
	tmd_map_convert(&gpu->driver.map, &lender.tpcs, &from->tpcs);
	atomic_store(&lend_from, from);
}

/* A limit that the program itself made narrower is its own wish. */
static bool is_narrowed(void)
{
	static uint64_t seen;
	static bool narrowed;
	uint64_t published = atomic_load(&gpu->shared->limit.published);
	struct limit_sets sets;

	if (published != seen) {
		scope_limit_get(gpu, &sets);
		narrowed = !gpupart_tpcset_empty(&sets.inner) || gpupart_tpcset_empty(&sets.outer);
		seen = published;
	}
	return narrowed;
}

/* ------------------------------------------------------------------- durations */

static struct lend_kernel *find_kernel(uint64_t key)
{
	struct lend_kernel *kernel = NULL;

	for (unsigned int n = 0; n < PROBES; n++) {
		kernel = &kernels[((key >> (64 - KERNEL_BITS)) + n) % (1 << KERNEL_BITS)];
		if (kernel->key == key)
			return kernel;
		if (!kernel->key)
			break;
	}
	*kernel = (struct lend_kernel){ .key = key };
	return kernel;
}

/*
 * The time of a launch that did not wait for the one before it counts from its submission, and is
 * too long by as much as the clocks of CPU and GPU are unknown: it counts while there is no other.
 */
static void learn(const struct outstanding *o, uint64_t ns)
{
	struct lend_kernel *kernel = o->kernel;
	uint64_t *longest = &kernel->longest_ns[o->lent];
	bool over = o->lent && ns > limit_ns + (o->queued ? 0 : CLOCKS_NS);

	if (!ns || kernel->key != o->key)
		return;
	if (o->queued && !kernel->exact[o->lent] && kernel->runs[o->lent] >= LEND_COLD &&
	    !(o->lent && *longest > limit_ns)) {
		kernel->exact[o->lent] = true;
		*longest = 0;
	}
	/* From now on it is too long. */
	if (over && *longest <= limit_ns)
		atomic_fetch_add(&report_lend->revoked, 1);
	if ((++kernel->runs[o->lent] > LEND_COLD && o->queued == kernel->exact[o->lent]) || over)
		*longest = ns > *longest ? ns : *longest;
}

/* ------------------------------------------------------------------- the bound */

/* No launch waits any more for those that are outstanding. */
static void discount_all(void)
{
	for (unsigned int n = 0; n < nr_outstanding; n++) {
		if (outstanding[n].counted)
			counted_ns -= outstanding[n].ns;
		outstanding[n].counted = false;
	}
	nr_stuck = nr_outstanding;
}

/* Learns of what has ended. */
static void settle(void)
{
	unsigned int kept = 0;
	uint64_t ns;

	for (unsigned int n = 0; n < nr_outstanding; n++) {
		struct outstanding *o = &outstanding[n];

		if (!records_ended(o->records, o->ring, o->seq, &ns)) {
			outstanding[kept++] = *o;
			continue;
		}
		if (o->counted)
			counted_ns -= o->ns;
		else
			nr_stuck--;
		if (o->lent)
			lent_ns -= o->ns;
		learn(o, ns);
	}
	nr_outstanding = kept;
}

/* One that is longer than the bound has room where nothing else is outstanding. */
static bool has_room(uint64_t ns, bool lent)
{
	return nr_outstanding < MAX_OUTSTANDING &&
	       (!counted_ns || counted_ns + ns <= depth_ns) &&
	       (!lent || lent_ns + ns <= limit_ns);
}

/* With the lock held, but not while it waits. False: the time was over first. */
static __attribute__((noinline)) bool wait_for_room(uint64_t ns, bool lent)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint64_t most = 2 * depth_ns, start = clock_monotonic_ns();
	const uint64_t until = start + (most < LEND_LEAST_WAIT ? LEND_LEAST_WAIT : most);
	bool room;

	while (!(room = has_room(ns, lent)) && clock_monotonic_ns() < until) {
		pthread_mutex_unlock(&lock);
		/* A pause is 100 us longer than it says, and the GPU may have nothing to do. */
		if (clock_monotonic_ns() - start < SPIN_NS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
		pthread_mutex_lock(&lock);
		settle();
	}
	if (!room) {
		/* They may wait for this very launch, and those after it. */
		discount_all();
		atomic_fetch_add(&report_lend->expired, 1);
	}
	return room;
}

void lend_begins(const void *function, const void *ctx, const unsigned int grid[3], bool plain)
{
	struct {
		const void *function, *ctx;
		unsigned int generation, grid[3];
		uint64_t limit;
	} what = {
		function, ctx, atomic_load_explicit(&generation, memory_order_relaxed),
		{ grid[0], grid[1], grid[2] }, 0,
	};
	struct lend_kernel *kernel;
	uint64_t key, own_ns, ns;
	bool lent;

	pthread_mutex_lock(&lock);
	settle();
	if (limit_ns && atomic_load(&report_lend->number) != taken)
		take_lender();
	if (gpu)
		what.limit = atomic_load(&gpu->shared->limit.published);
	key = hash_bytes(HASH_INIT, &what, sizeof(what)) | 1;
	kernel = find_kernel(key);
	own_ns = kernel->runs[0] >= LEND_RUNS ? kernel->longest_ns[0] : 0;
	lent = plain && gpu && own_ns && own_ns <= limit_ns && kernel->longest_ns[1] <= limit_ns &&
	       !nr_stuck && lend_is_idle(lend_from) && !is_narrowed();
	ns = lent && kernel->runs[1] >= LEND_RUNS ? kernel->longest_ns[1] : own_ns;
	if (!has_room(ns, lent) && !wait_for_room(ns, lent)) {
		lent = false;
		ns = own_ns;
	}
	call = (struct scope_lend){ lent ? gpu : NULL, .kernel = kernel, .key = key, .ns = ns };
	/* Now, so that of two threads that launch the second one sees the first. */
	counted_ns += ns;
	lent_ns += lent ? ns : 0;
	nr_calls++;
	pthread_mutex_unlock(&lock);
	scope_lend_begin(&call);
}

void lend_ends(int result)
{
	bool reserved = call.gpu, kept = !result && call.ring, queued;
	uint64_t ns;

	queued = kept && !records_ended(call.records, call.ring, call.seq - 1, &ns);
	scope_lend_begin(NULL);
	if (kept && call.got)
		atomic_fetch_add_explicit(&report_lend->lent, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	nr_calls--;
	kept = kept && nr_outstanding < MAX_OUTSTANDING;
	if (kept)
		outstanding[nr_outstanding++] = (struct outstanding){
			call.kernel, call.records, call.ring, call.key, call.seq, call.ns,
			true, call.got, queued,
		};
	else
		counted_ns -= call.ns;
	if (reserved && !(kept && call.got))
		lent_ns -= call.ns;
	pthread_mutex_unlock(&lock);
}
