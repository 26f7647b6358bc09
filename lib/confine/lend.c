// SPDX-License-Identifier: MIT
/*
 * Bounds the total time of outstanding launches, and decides which launches may use lent TPCs.
 * See lend.h. This code runs outside the launch callback. This code has one lock, and a waiting
 * thread does not hold the lock.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include "lib/confine/lend.h"
#include "lib/core/clock.h"
#include "lib/core/fork.h"
#include "lib/core/hash.h"

#define MAX_OUTSTANDING	256	/* maximum number of tracked launches */
#define KERNEL_BITS	10
#define PROBES		8
#define SPIN_NS		1000000	/* a waiting thread first spins for this time, like the driver */
#define PAUSE_NS	20000
#define CLOCKS_NS	100000	/* uncertainty of a time that begins at the submission */

/* The run times of a function that is launched with one grid and under one limit. */
struct lend_kernel {
	uint64_t key;		/* 0: the entry is free */
	/*
	 * Upper bounds of the run time. Entry 0 is for runs without lent TPCs, and entry 1 is for
	 * runs with lent TPCs. The first LEND_COLD runs are ignored.
	 */
	uint64_t longest_ns[2];
	unsigned int runs[2];		/* number of runs */
	unsigned int generation;	/* value of the global variable at the first run */
	bool exact[2];			/* the times are exact, because each launch waited for
					 * its predecessor */
};

struct outstanding {
	struct scope_lend call;	/* if @call.got is true, the launch's time is in lent_ns */
	bool counted;		/* the launch's time is in counted_ns; if false, no launch waits
				 * for this launch */
	bool queued;		/* at the launch, its predecessor had not ended */
};

atomic_bool lend_used;
struct lend_from *_Atomic lend_from;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);

/* Of the run. The value judged_ns is the last limit_ns that was not 0. */
static uint64_t depth_ns, limit_ns, judged_ns;
static struct lend_kernel kernels[1 << KERNEL_BITS];
static struct outstanding outstanding[MAX_OUTSTANDING];
/* No launch waits for nr_stuck launches. In all threads, nr_calls launch calls are in progress. */
static unsigned int nr_outstanding, nr_stuck, nr_calls;
static uint64_t counted_ns, lent_ns;
static atomic_uint generation;		/* incremented when times must be learned again */
static struct gpupart_gpu *gpu;		/* the GPU of the lender's TPCs; NULL: none */
static uint64_t nr_lent;		/* number of the last lender's TPCs */
static uint64_t taken;			/* value of report_lend->number at the last read */
static struct lend_from *earlier;	/* earlier lenders, which a callback may still read */
static _Thread_local struct scope_lend call;

/*
 * Ends lending in the child of a fork. The child cannot launch kernels in the parent's contexts,
 * and the outstanding launches belong to the parent.
 */
static void after_fork(void)
{
	atomic_store(&lend_used, false);
}

bool lend_start(void)
{
	if (!report_lend || !report_lend->depth_ns)
		return false;
	if (!atomic_exchange(&lend_used, true))
		pthread_atfork(NULL, NULL, after_fork);
	return true;
}

void lend_forget(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------- the lender */

/* Ends the lending. If no callback can read earlier lenders, frees the earlier lenders. */
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
		munmap(from->memory, sizeof(*from->memory));
		free(from);
	}
}

/*
 * Reads the lender, which the run's watcher writes. While the watcher writes, there is no lender.
 */
static __attribute__((noinline)) void take_lender(void)
{
	uint64_t number = atomic_load(&report_lend->number);
	uint64_t depth = report_lend->depth_ns, limit = report_lend->limit_ns, nr;
	struct lend_lender lender = report_lend->lender;
	struct lend_from *from;

	drop_lender();
	lender.report[sizeof(lender.report) - 1] = lender.pci[sizeof(lender.pci) - 1] = 0;
	atomic_thread_fence(memory_order_acquire);
	if (number & 1 || atomic_load(&report_lend->number) != number)
		return;
	taken = number;
	depth_ns = depth;
	limit_ns = limit;
	judged_ns = limit ? limit : judged_ns;
	gpu = *lender.report ? scope_gpu_of(driver_gpu_find(lender.pci)) : NULL;
	if (!gpu)
		return;
	/* With fewer lent TPCs, kernels take longer, so their times are learned again. */
	nr = gpupart_tpcset_count(&lender.tpcs);
	if (nr < nr_lent)
		lend_forget();
	nr_lent = nr;
	from = malloc(sizeof(*from));
	if (!from || gpupart_set_check(NULL, gpu->driver.topo, &lender.tpcs) ||
	    report_map(NULL, lender.report, &from->memory)) {
		free(from);
		return;
	}
	tmd_map_convert(&gpu->driver.map, &lender.tpcs, &from->tpcs);
	atomic_store(&lend_from, from);
}

/* Returns true if the program narrowed its own limit. Then the limit must not be widened. */
static bool is_narrowed(void)
{
	struct limit_sets sets;

	scope_limit_get(gpu, &sets);
	return !gpupart_tpcset_empty(&sets.inner) || gpupart_tpcset_empty(&sets.outer);
}

/* ------------------------------------------------------------------- durations */

/*
 * On the program's own TPCs, a kernel is slower. So if its time with lent TPCs is known, it may
 * take twice the limit there.
 */
static bool is_short(const struct lend_kernel *kernel)
{
	return kernel->longest_ns[0] <= judged_ns * (1 + (kernel->runs[1] >= LEND_RUNS)) &&
	       kernel->longest_ns[1] <= judged_ns;
}

/* Returns true if a known kernel may borrow. If @kernel has another key, the entry was reused. */
static bool may_borrow(const struct lend_kernel *kernel, uint64_t key)
{
	return gpu && limit_ns && !nr_stuck && kernel->key == key && is_short(kernel);
}

/*
 * A kernel that took longer than the limit is never forgotten. If there is no room for another
 * kernel, returns an entry whose times are never known.
 */
static struct lend_kernel *find_kernel(uint64_t key)
{
	const unsigned int now = atomic_load_explicit(&generation, memory_order_relaxed);
	static struct lend_kernel unknown;
	struct lend_kernel *kernel, *found = &unknown;

	for (unsigned int n = 0; n < PROBES; n++) {
		kernel = &kernels[((key >> (64 - KERNEL_BITS)) + n) % (1 << KERNEL_BITS)];
		if (!judged_ns || is_short(kernel))
			found = kernel;
		if (kernel->key == key && (found != kernel || kernel->generation == now))
			return kernel;
		if (!kernel->key || kernel->key == key)
			break;
	}
	*found = (struct lend_kernel){ .key = key, .generation = now };
	return found;
}

/*
 * Learns the time of a kernel from a launch that has ended. If the launch did not wait for its
 * predecessor, its time begins at its submission. The clocks of CPU and GPU differ slightly, so
 * this time can be too long. When an exact time is known, such a time counts only if it is certain
 * that it is longer than the limit.
 */
static void learn(const struct outstanding *o, uint64_t ns)
{
	struct lend_kernel *k = o->call.kernel;
	bool lent = o->call.got, over = judged_ns && ns > judged_ns + (o->queued ? 0 : CLOCKS_NS);
	uint64_t *longest = &k->longest_ns[lent];
	bool *exact = &k->exact[lent];

	if (!ns || k->key != o->call.key)
		return;
	if (o->queued && !*exact && k->runs[lent] >= LEND_COLD && !(lent && *longest > judged_ns)) {
		*exact = true;
		*longest = 0;
	}
	/* The kernel runs too long, so it may no longer use lent TPCs. */
	if (over && lent && *longest <= judged_ns)
		atomic_fetch_add(&report_lend->revoked, 1);
	if (++k->runs[lent] <= LEND_COLD ? over && lent : over || o->queued == *exact)
		*longest = ns > *longest ? ns : *longest;
}

/* ------------------------------------------------------------------- the bound */

/* Removes all outstanding launches from counted_ns. Then no launch waits for these launches. */
static void discount_all(void)
{
	for (unsigned int n = 0; n < nr_outstanding; n++) {
		counted_ns -= outstanding[n].counted ? outstanding[n].call.ns : 0;
		outstanding[n].counted = false;
	}
	nr_stuck = nr_outstanding;
}

/* Removes the times of @o, which is tracked no longer. */
static void discount(const struct outstanding *o)
{
	if (o->counted)
		counted_ns -= o->call.ns;
	else
		nr_stuck--;
	lent_ns -= o->call.got ? o->call.ns : 0;
}

/* Removes the launches that have ended, and learns their times. */
static void settle(void)
{
	unsigned int kept = 0;
	uint64_t ns;

	for (unsigned int n = 0; n < nr_outstanding; n++) {
		struct outstanding *o = &outstanding[n];

		if (records_ended(o->call.records, o->call.ring, o->call.seq, &ns)) {
			discount(o);
			learn(o, ns);
		} else {
			outstanding[kept++] = *o;
		}
	}
	nr_outstanding = kept;
}

/*
 * Returns true if there is room for a launch of @ns. If no other launch is outstanding, even a
 * launch longer than the bound has room. After a timeout, a full table does not count.
 */
static bool has_room(uint64_t ns, bool lent)
{
	return (nr_outstanding < MAX_OUTSTANDING || nr_stuck) &&
	       (!counted_ns || counted_ns + ns <= depth_ns) &&
	       (!lent || lent_ns + ns <= limit_ns);
}

/*
 * Waits for room. The caller holds the lock, and the function releases the lock while it waits.
 * After a timeout, no launch waits for the outstanding launches.
 */
static __attribute__((noinline)) void wait_for_room(uint64_t ns, bool lent)
{
	const uint64_t most = 2 * depth_ns, start = clock_monotonic_ns();
	const uint64_t until = start + (most < LEND_LEAST_WAIT ? LEND_LEAST_WAIT : most);

	atomic_fetch_add(&report_lend->waited, 1);
	while (clock_monotonic_ns() < until) {
		pthread_mutex_unlock(&lock);
		/* A sleep ends 100 us late. In this time the GPU could become idle. */
		if (clock_monotonic_ns() - start < SPIN_NS)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		pthread_mutex_lock(&lock);
		settle();
		if (has_room(ns, lent))
			return;
	}
	/* The outstanding launches may be waiting for this launch or for later launches. */
	discount_all();
	atomic_fetch_add(&report_lend->expired, 1);
}

void lend_begins(const void *function, const void *ctx, const unsigned int grid[3], bool plain)
{
	struct gpupart_gpu *on = scope_gpu_of_context((void *)ctx);
	struct {
		const void *function, *ctx;
		uint64_t limit;
		unsigned int grid[4];	/* the last number is always 0 */
	} what = { function, ctx, on ? atomic_load(&on->shared->limit.published) : 0,
		   { grid[0], grid[1], grid[2] } };
	struct lend_kernel *kernel;
	uint64_t key, own_ns, ns;
	bool lent;

	key = hash_bytes(HASH_INIT, &what, sizeof(what)) | 1;
	pthread_mutex_lock(&lock);
	settle();
	if (atomic_load(&report_lend->number) != taken)
		take_lender();
	kernel = find_kernel(key);
	own_ns = kernel->runs[0] >= LEND_RUNS ? kernel->longest_ns[0] : 0;
	lent = plain && own_ns && may_borrow(kernel, key) && lend_is_idle(lend_from) &&
	       !is_narrowed();
	ns = lent && kernel->runs[1] >= LEND_RUNS ? kernel->longest_ns[1] : own_ns;
	if (!has_room(ns, lent))
		wait_for_room(ns, lent);
	/* During the wait, the lender may have gone, or an earlier launch took too long. */
	lent = lent && may_borrow(kernel, key);
	ns = lent ? ns : own_ns;
	call = (struct scope_lend){ lent ? gpu : NULL, .kernel = kernel, .key = key, .ns = ns };
	/* Count the launch now. Otherwise another thread could use the same room. */
	counted_ns += ns;
	lent_ns += lent ? ns : 0;
	nr_calls++;
	pthread_mutex_unlock(&lock);
	scope_lend_begin(&call);
}

void lend_ends(int result)
{
	bool reserved = call.gpu, kept = !result && call.ring, full;
	uint64_t ns;
	bool queued = kept && !records_ended(call.records, call.ring, call.seq - 1, &ns);

	scope_lend_begin(NULL);
	if (kept && call.got)
		atomic_fetch_add_explicit(&report_lend->lent, 1, memory_order_relaxed);
	FORK_HOLD(&lock);
	nr_calls--;
	/* Launches of a stream end in order, so the new launch can replace the last launch. */
	full = kept && nr_outstanding == MAX_OUTSTANDING;
	if (full)
		discount(&outstanding[--nr_outstanding]);
	if (kept)
		outstanding[nr_outstanding++] = (struct outstanding){ call, true, queued };
	else
		counted_ns -= call.ns;
	if (full)
		discount_all();
	lent_ns -= reserved && !(kept && call.got) ? call.ns : 0;
}
