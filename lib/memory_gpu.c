// SPDX-License-Identifier: MIT
/*
 * See memory_gpu.h. What was measured of how the driver takes memory (slabs, units, pools)
 * is in Documentation/hardware.md, "Memory". Must not know which call it was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "memory_gpu.h"
#include "memory_real.h"
#include "memory_table.h"
#include "tenant.h"

#define UNIT		(2ull << 20)	/* of physical memory */
#define POOL_UNIT	(32ull << 20)	/* a pool grows in */
/*
 * Charged beyond what the driver has taken for itself: kernels are loaded when they are
 * launched first, and nobody looks there until memory is asked for again.
 */
#define SPARE		(64ull << 20)
#define SPARE_SLACK	(8ull << 20)
/*
 * Charged ahead for pools where there is plenty, so that most calls need not look: for some
 * more of the size that is asked for now, twice as much where that was used up soon, and at
 * most that part of what is left.
 */
#define POOL_AHEAD	(64ull << 20)
#define POOL_AHEAD_NR	8
#define POOL_AHEAD_MOST	(256ull << 20)
#define POOL_AHEAD_NS	20000000ull
#define PLENTY		16
#define MEASURE_NS	20000000ull
#define GROWN_WAITS	10	/* ms, for calls of other threads to end */

static const struct cuda_api *cuda;
static pthread_mutex_t *turn;
atomic_uint memory_gpu_epoch;
static _Atomic(struct memory_gpu *) by_device[MEMORY_MAX_DEVICES];

void memory_gpu_start(const struct cuda_api *api, pthread_mutex_t *lock)
{
	cuda = api;
	turn = lock;
}

struct memory_gpu *memory_gpu_known(int device)
{
	return device >= 0 && device < MEMORY_MAX_DEVICES ?
		       atomic_load_explicit(&by_device[device], memory_order_acquire) : NULL;
}

bool memory_gpu_any(void)
{
	for (int device = 0; device < MEMORY_MAX_DEVICES; device++)
		if (memory_gpu_known(device))
			return true;
	return false;
}

static bool identify(struct memory_gpu *gpu)
{
	size_t total;

	if (!cuda->device_total || cuda->device_total(&total, gpu->device) ||
	    cuda->device_pci(gpu->pci, sizeof(gpu->pci), gpu->device))
		return false;
	for (char *c = gpu->pci; *c; c++)
		if (*c >= 'A' && *c <= 'F')
			*c += 'a' - 'A';
	gpu->total = total;
	gpu->index = tenant_gpu(gpu->pci);
	return gpu->index >= 0;
}

struct memory_gpu *memory_gpu_of_device(int device)
{
	struct memory_gpu *gpu = memory_gpu_known(device);

	if (gpu || device < 0 || device >= MEMORY_MAX_DEVICES)
		return gpu;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return NULL;
	gpu->device = device;
	if (!identify(gpu)) {
		free(gpu);
		return NULL;
	}
	gpu->due = true;
	atomic_store_explicit(&by_device[device], gpu, memory_order_release);
	return gpu;
}

/* ------------------------------------------------------------------------- charging */

uint64_t memory_gpu_rounded(uint64_t bytes)
{
	if (bytes <= MEMORY_SMALL)
		return bytes;
	return bytes > UINT64_MAX - UNIT ? bytes : (bytes + UNIT - 1) / UNIT * UNIT;
}

void memory_gpu_charge_always(struct memory_gpu *gpu, uint64_t bytes)
{
	ledger_charge_always(tenant_ledger(), gpu->index, bytes);
}

void memory_gpu_release(struct memory_gpu *gpu, uint64_t bytes)
{
	if (bytes)
		ledger_release(tenant_ledger(), gpu->index, bytes);
}

/* What is left of the quota, as far as this process can tell without asking the kernel. */
static uint64_t plenty(const struct memory_gpu *gpu)
{
	uint64_t quota = ledger_quota(tenant_ledger(), gpu->index);
	uint64_t own = ledger_used_own(tenant_ledger(), gpu->index);

	if (!quota || quota > gpu->total)
		quota = gpu->total;
	return own < quota ? (quota - own) / PLENTY : 0;
}

static uint64_t pools_reserved(const struct memory_gpu *gpu)
{
	uint64_t sum = 0, bytes;

	for (unsigned int i = 0; cuda->pool_attr && i < gpu->nr_pools; i++)
		if (!cuda->pool_attr(gpu->known_pools[i], CUDA_POOL_RESERVED, &bytes))
			sum += bytes;
	return sum;
}

static uint64_t graphs_reserved(const struct memory_gpu *gpu)
{
	uint64_t bytes = 0;

	if (!gpu->has_graphs || !cuda->graph_mem_attr ||
	    cuda->graph_mem_attr(gpu->device, CUDA_GRAPH_RESERVED, &bytes))
		return 0;
	return bytes;
}

static void credits_end(struct memory_gpu *gpu)
{
	atomic_fetch_add(&memory_gpu_epoch, 1);
	gpu->lent = 0;
}

/* No more than @bytes, and what the calls under way may take, is charged for pools. */
static void pools_lower(struct memory_gpu *gpu, uint64_t bytes)
{
	bytes += gpu->growing;
	if (gpu->pools <= bytes)
		return;
	memory_gpu_release(gpu, gpu->pools - bytes);
	gpu->pools = bytes;
}

/* No more is charged for pools than they have: what they hand out next is looked at. */
static void pools_tighten(struct memory_gpu *gpu)
{
	credits_end(gpu);
	gpu->ahead = 0;
	pools_lower(gpu, pools_reserved(gpu));
}

static int nr_captures;

void memory_gpu_captures(int more)
{
	nr_captures += more;
	if (nr_captures < 0)
		nr_captures = 0;
}

/*
 * As the driver does it by itself before it says that memory is out. What was freed in a
 * stream's order goes back once somebody has waited, which would end a capture. Meanwhile
 * other threads may have changed all that is told of @gpu.
 */
static void give_back(struct memory_gpu *gpu)
{
	if (!nr_captures && cuda->ctx_sync && pools_reserved(gpu)) {
		pthread_mutex_unlock(turn);
		cuda->ctx_sync();
		pthread_mutex_lock(turn);
	}
	for (unsigned int i = 0; cuda->pool_trim && i < gpu->nr_pools; i++)
		cuda->pool_trim(gpu->known_pools[i], 0);
	if (gpu->has_graphs && cuda->graph_mem_trim && !cuda->graph_mem_trim(gpu->device)) {
		gpu->trims++;
		memory_gpu_graph_after(gpu);
	}
	pools_tighten(gpu);
}

/* With what is lacking for code: the program does not get what that may need. */
static int charge_now(struct memory_gpu *gpu, uint64_t bytes)
{
	if (bytes > UINT64_MAX - gpu->lacking ||
	    ledger_charge(tenant_ledger(), gpu->index, bytes + gpu->lacking))
		return -ENOMEM;
	gpu->overhead += gpu->lacking;
	gpu->lacking = 0;
	return 0;
}

/*
 * A pool that has grown for a call whose end is yet to come counts twice until then, if
 * another call has asked how large it is.
 */
static int charge_when_grown(struct memory_gpu *gpu, uint64_t bytes)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < GROWN_WAITS && gpu->growing; i++) {
		pthread_mutex_unlock(turn);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(turn);
		pools_tighten(gpu);
		if (!charge_now(gpu, bytes))
			return 0;
	}
	return -ENOMEM;
}

int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes)
{
	int err;

	if (!charge_now(gpu, bytes))
		return 0;
	pools_tighten(gpu);
	memory_gpu_drop_empty(gpu);
	memory_gpu_measure(gpu, false, &err);
	if (!charge_now(gpu, bytes))
		return 0;
	give_back(gpu);
	if (!charge_now(gpu, bytes))
		return 0;
	return charge_when_grown(gpu, bytes);
}

/* ---------------------------------------------------------------------------- slabs */

int memory_gpu_slab(struct memory_gpu *gpu, uint64_t address, const void *ctx)
{
	struct memory_item *item;

	if (memory_gpu_charge(gpu, MEMORY_SLAB))
		return -ENOMEM;
	/* Another thread may have made it while a GPU was waited for. */
	if (memory_slab_enter(address)) {
		memory_gpu_release(gpu, MEMORY_SLAB);
		return 0;
	}
	item = memory_slab_make(address) ?
		       memory_table_add(MEMORY_BY_SLAB, address / MEMORY_SLAB) : NULL;
	gpu->held += MEMORY_SLAB;
	if (!item)
		return 0;	/* charged for ever: better than not at all */
	item->bytes = MEMORY_SLAB;
	item->gpu = gpu;
	item->ctx = ctx;
	return 0;
}

/* True of what it made go. */
static bool drop_empty(const struct memory_item *item, const void *gpu)
{
	return item->by == MEMORY_BY_SLAB && item->gpu == gpu &&
	       memory_slab_drop(item->key * MEMORY_SLAB, true);
}

void memory_gpu_drop_empty(struct memory_gpu *gpu)
{
	struct memory_item *item;
	unsigned int at = 0;

	atomic_store_explicit(&gpu->nr_empty, 0, memory_order_relaxed);
	while ((item = memory_table_take_if(drop_empty, gpu, &at))) {
		gpu->held -= item->bytes;
		memory_gpu_release(gpu, item->bytes);
		free(item);
	}
}

/* ------------------------------------------------------------------------ measuring */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Whether pools keep anything that nobody uses. */
static bool pools_unused(const struct memory_gpu *gpu)
{
	uint64_t reserved, used;

	for (unsigned int i = 0; cuda->pool_attr && i < gpu->nr_pools; i++)
		if (!cuda->pool_attr(gpu->known_pools[i], CUDA_POOL_RESERVED, &reserved) &&
		    !cuda->pool_attr(gpu->known_pools[i], CUDA_POOL_USED, &used) && used < reserved)
			return true;
	return false;
}

/* No less than @bytes are charged, if they fit. */
static bool overhead_fits(struct memory_gpu *gpu, uint64_t bytes)
{
	if (bytes <= gpu->overhead)
		return true;
	if (ledger_charge(tenant_ledger(), gpu->index, bytes - gpu->overhead))
		return false;
	gpu->overhead = bytes;
	return true;
}

/* The driver has taken @taken: it and some more is charged for, at the cost of pools. */
static int overhead_grows(struct memory_gpu *gpu, uint64_t taken, bool strict)
{
	if (overhead_fits(gpu, taken + SPARE))
		return 0;
	pools_tighten(gpu);
	memory_gpu_drop_empty(gpu);
	if (overhead_fits(gpu, taken + SPARE))
		return 0;
	if (pools_unused(gpu)) {
		give_back(gpu);
		/* That may have taken time, and what was measured be old. */
		gpu->due = true;
		if (overhead_fits(gpu, taken + SPARE))
			return 0;
	}
	if (!overhead_fits(gpu, taken)) {
		if (strict)
			return -ENOMEM;
		ledger_charge_always(tenant_ledger(), gpu->index, taken - gpu->overhead);
		gpu->overhead = taken;
	}
	gpu->lacking = taken + SPARE - gpu->overhead;
	return 0;
}

static int set_overhead(struct memory_gpu *gpu, uint64_t taken, bool strict)
{
	uint64_t want = taken ? taken + SPARE : 0;

	gpu->lacking = 0;
	/* Near enough: not up and down with every kernel. */
	if (gpu->overhead >= want - (taken ? SPARE / 2 : 0) && gpu->overhead <= want + SPARE_SLACK)
		return 0;
	if (want > gpu->overhead)
		return overhead_grows(gpu, taken, strict);
	memory_gpu_release(gpu, gpu->overhead - want);
	gpu->overhead = want;
	return 0;
}

/* Who was among those that have something and no longer is, has nothing. */
static bool own_figure(struct memory_gpu *gpu, uint64_t *own)
{
	int err = memory_real_own(gpu->pci, gpu->device, own);

	if (err == -ENOENT && gpu->told)
		*own = err = 0;
	gpu->told |= !err;
	return !err;
}

bool memory_gpu_measure(struct memory_gpu *gpu, bool strict, int *err)
{
	uint64_t own, known, taken;

	*err = 0;
	gpu->due = gpu->in_flight;
	if (gpu->due)
		return true;
	gpu->measured_ns = now_ns();
	if (!own_figure(gpu, &own))
		return false;
	known = gpu->held - gpu->unseen + gpu->foreign + pools_reserved(gpu) +
		graphs_reserved(gpu);
	taken = own > known ? own - known : 0;
	*err = set_overhead(gpu, taken, strict);
	return true;
}

void memory_gpu_measure_soon(struct memory_gpu *gpu)
{
	int err;

	if (gpu->due || now_ns() - gpu->measured_ns >= MEASURE_NS)
		memory_gpu_measure(gpu, false, &err);
}

/* ---------------------------------------------------------------------------- pools */

void *memory_gpu_pool(struct memory_gpu *gpu, void *pool)
{
	void **more;

	if (!pool && !gpu->pool &&
	    (!cuda->device_pool || cuda->device_pool(&gpu->pool, gpu->device)))
		gpu->pool = NULL;
	if (!pool)
		pool = gpu->pool;
	for (unsigned int i = 0; pool && i < gpu->nr_pools; i++)
		if (gpu->known_pools[i] == pool)
			return pool;
	more = pool ? realloc(gpu->known_pools, (gpu->nr_pools + 1) * sizeof(*more)) : NULL;
	if (!more)
		return pool;
	gpu->known_pools = more;
	more[gpu->nr_pools++] = pool;
	return pool;
}

static bool is_pool_of(const void *pool, int device)
{
	void *own;

	return (cuda->device_pool && !cuda->device_pool(&own, device) && own == pool) ||
	       (cuda->default_pool && !cuda->default_pool(&own, device) && own == pool);
}

struct memory_gpu *memory_gpu_of_pool(const void *pool)
{
	struct memory_gpu *gpu;
	int count;

	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = memory_gpu_known(device);
		for (unsigned int i = 0; gpu && i < gpu->nr_pools; i++)
			if (gpu->known_pools[i] == pool)
				return gpu;
	}
	/* One that nobody had to make. */
	if (cuda->device_count(&count))
		return NULL;
	for (int device = 0; device < count && device < MEMORY_MAX_DEVICES; device++)
		if (is_pool_of(pool, device))
			return memory_gpu_of_device(device);
	return NULL;
}

void memory_gpu_pool_goes(void *pool)
{
	struct memory_gpu *gpu;

	/* Another may come to be at its address. */
	atomic_fetch_add(&memory_gpu_epoch, 1);
	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = memory_gpu_known(device);
		if (gpu)
			gpu->pool = NULL;
		for (unsigned int i = 0; gpu && i < gpu->nr_pools; i++)
			if (gpu->known_pools[i] == pool)
				gpu->known_pools[i--] = gpu->known_pools[--gpu->nr_pools];
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The most that a pool can grow for so many bytes. */
static uint64_t growth(uint64_t bytes)
{
	return (bytes + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
}

/* Charged for pools becomes no less than @bytes, or stays. */
static int pools_raise(struct memory_gpu *gpu, uint64_t bytes)
{
	if (bytes <= gpu->pools)
		return 0;
	if (ledger_charge(tenant_ledger(), gpu->index, bytes - gpu->pools))
		return -ENOMEM;
	gpu->pools = bytes;
	return 0;
}

/* Charged for pools becomes @bytes, and what the calls under way may take, or not. */
static int pools_set(struct memory_gpu *gpu, uint64_t bytes)
{
	pools_lower(gpu, bytes);
	return pools_raise(gpu, bytes + gpu->growing);
}

/* Whether it fits into what the pool has already, as far as one can tell. */
static bool pool_has_room(const struct memory_gpu *gpu, void *pool, uint64_t bytes)
{
	uint64_t reserved, used;

	bytes += gpu->growing;
	return !cuda->pool_attr(pool, CUDA_POOL_RESERVED, &reserved) &&
	       !cuda->pool_attr(pool, CUDA_POOL_USED, &used) && used < reserved &&
	       reserved - used >= bytes;
}

/*
 * A part of what is charged ahead for this thread: all where it is the only one. Where too
 * little is left what others have ends, and all begin anew.
 */
static uint64_t credit_of(struct memory_gpu *gpu, uint64_t ahead, const void *thread)
{
	uint64_t share;

	if (gpu->last_thread && gpu->last_thread != thread)
		gpu->many_threads = true;
	gpu->last_thread = thread;
	share = (ahead - least(gpu->lent, ahead)) / (gpu->many_threads ? 4 : 1);
	if (share < ahead / 8) {
		credits_end(gpu);
		share = ahead / (gpu->many_threads ? 4 : 1);
	}
	gpu->lent += share;
	return share;
}

static uint64_t ahead_wanted(struct memory_gpu *gpu, uint64_t bytes)
{
	uint64_t ahead = POOL_AHEAD + POOL_AHEAD_NR * bytes, now = now_ns();

	if (now - gpu->ahead_ns <= POOL_AHEAD_NS && gpu->ahead * 2 > ahead)
		ahead = gpu->ahead * 2;
	gpu->ahead_ns = now;
	return least(ahead, POOL_AHEAD_MOST);
}

bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes, const void *thread,
			   uint64_t *credit)
{
	uint64_t ahead;

	/* The end of such a call is not seen: a large one's growth would be anybody's. */
	if (!cuda->pool_attr || gpu->lacking || bytes > POOL_AHEAD)
		return false;
	ahead = least(plenty(gpu), ahead_wanted(gpu, bytes));
	if (ahead < POOL_UNIT ||
	    pools_set(gpu, pools_reserved(gpu) + growth(bytes) + ahead))
		return false;
	gpu->ahead = ahead;
	/* Each use may take twice what it asks for, and one unit for all of them. */
	*credit = credit_of(gpu, ahead - POOL_UNIT, thread) / 2;
	return true;
}

/* What threads may yet use of what they were lent. */
static uint64_t lent_out(const struct memory_gpu *gpu)
{
	return gpu->lent ? gpu->lent + POOL_UNIT : 0;
}

static int pool_charge(struct memory_gpu *gpu, void *pool, uint64_t bytes)
{
	uint64_t reserved;

	if (!cuda->pool_attr || bytes > gpu->total)
		return bytes > gpu->total ? -ENOMEM : 0;
	reserved = pools_reserved(gpu);
	if (gpu->lent && !gpu->lacking &&
	    !pools_raise(gpu, reserved + gpu->growing + lent_out(gpu) + growth(bytes)))
		return 0;
	credits_end(gpu);
	gpu->ahead = 0;
	/* What another stream has freed may not be this one's yet, and the pool grows. */
	if (!gpu->many_streams && pool_has_room(gpu, pool, bytes))
		return 0;
	/* What is given back on the way changes what is reserved. */
	if (!gpu->lacking && !pools_set(gpu, reserved + growth(bytes)))
		return 0;
	pools_tighten(gpu);
	if (!memory_gpu_charge(gpu, growth(bytes))) {
		gpu->pools += growth(bytes);
		return 0;
	}
	return -ENOMEM;
}

int memory_gpu_pool_before(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes)
{
	int err;

	if (!stream)
		stream = gpu;	/* the default stream: anything but NULL */
	gpu->many_streams |= gpu->stream && gpu->stream != stream;
	gpu->stream = stream;
	err = pool_charge(gpu, pool, bytes);

	if (!err)
		gpu->growing += growth(bytes);
	return err;
}

void memory_gpu_pool_ends(struct memory_gpu *gpu, uint64_t bytes)
{
	gpu->growing -= growth(bytes);
}

int memory_gpu_pool_after(struct memory_gpu *gpu)
{
	uint64_t reserved = pools_reserved(gpu);

	pools_lower(gpu, reserved + lent_out(gpu));
	return pools_raise(gpu, reserved);
}

void memory_gpu_pool_undone(struct memory_gpu *gpu)
{
	uint64_t reserved;

	give_back(gpu);
	reserved = pools_reserved(gpu);
	pools_lower(gpu, reserved);
	if (reserved <= gpu->pools)
		return;
	memory_gpu_charge_always(gpu, reserved - gpu->pools);
	gpu->pools = reserved;
}

/* --------------------------------------------------------------------------- graphs */

int memory_gpu_graph_before(struct memory_gpu *gpu, uint64_t bytes)
{
	int err = memory_gpu_charge(gpu, bytes);

	if (!err)
		gpu->graphs += bytes;
	return err;
}

void memory_gpu_graph_after(struct memory_gpu *gpu)
{
	uint64_t reserved = graphs_reserved(gpu);

	if (reserved > gpu->graphs)
		ledger_charge_always(tenant_ledger(), gpu->index, reserved - gpu->graphs);
	else
		memory_gpu_release(gpu, gpu->graphs - reserved);
	gpu->graphs = reserved;
}

/* --------------------------------------------------------------------------- answer */

void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free_bytes, uint64_t *total)
{
	uint64_t quota = ledger_quota(tenant_ledger(), gpu->index), used, left;

	if (!quota)
		return;
	memory_gpu_measure_soon(gpu);
	pools_tighten(gpu);
	memory_gpu_drop_empty(gpu);
	used = ledger_used(tenant_ledger(), gpu->index) + gpu->lacking;
	left = used < quota ? quota - used : 0;
	if (*free_bytes > left)
		*free_bytes = left;
	if (*total > quota)
		*total = quota;
}
