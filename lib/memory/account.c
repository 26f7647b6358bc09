// SPDX-License-Identifier: MIT
/*
 * Charges a GPU's memory to the tenant. See account.h. The section "Memory" of
 * Documentation/internals/hardware.md contains measurements of the driver's slabs, units and pools.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "lib/memory/account.h"
#include "lib/memory/allocations.h"
#include "lib/memory/nvml_usage.h"
#include "lib/memory/tenant.h"

#define UNIT		(2ull << 20)	/* the driver allocates physical memory in units of this
					 * size */
#define POOL_UNIT	(32ull << 20)	/* pools grow in steps of this size */
/*
 * An additional charge for memory that the driver will allocate for itself. The driver loads a
 * kernel at its first launch. The driver's memory is measured again at the next allocation.
 */
#define SPARE		(64ull << 20)
#define SPARE_SLACK	(8ull << 20)
/*
 * While much of the quota is free, memory is charged in advance for pools. Then most calls need no
 * check. The amount is enough for a few more allocations of the current size. If an amount was used
 * up quickly, the next amount is twice as large. Each amount is at most 1/PLENTY of the free quota.
 */
#define POOL_AHEAD	(64ull << 20)
#define POOL_AHEAD_NR	8
#define POOL_AHEAD_MOST	(256ull << 20)
#define POOL_AHEAD_NS	20000000ull
#define PLENTY		16
#define MEASURE_NS	20000000ull
#define GROWN_WAITS	10	/* maximum time in ms to wait until calls of other threads end */

#define MAX_EMPTY	4	/* maximum number of empty slabs that stay charged */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

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

static uint64_t graphs_reserved(const struct memory_gpu *gpu)
{
	uint64_t bytes = 0;

	if (!gpu->has_graphs || !memory_cuda->graph_mem_attr ||
	    memory_cuda->graph_mem_attr(gpu->device, CUDA_GRAPH_RESERVED, &bytes))
		return 0;
	return bytes;
}

/*
 * Reduces the charge for pools to the sum of @bytes and the bytes that calls in flight may need. If
 * the sum is larger than the charge, changes nothing.
 */
static void pools_lower(struct memory_gpu *gpu, uint64_t bytes)
{
	bytes += gpu->growing;
	if (gpu->pools <= bytes)
		return;
	memory_gpu_release(gpu, gpu->pools - bytes);
	gpu->pools = bytes;
}

/*
 * Reduces the charge for pools to the current size of the pools. So the next allocation from a pool
 * is checked.
 */
static void pools_tighten(struct memory_gpu *gpu)
{
	gpu->ahead = 0;
	gpu->credit = 0;
	pools_lower(gpu, memory_device_pools_reserved(gpu));
}

static int nr_captures;

void memory_gpu_captures(int more)
{
	nr_captures += more;
	if (nr_captures < 0)
		nr_captures = 0;
}

/*
 * Releases unused memory. The driver does the same before it reports that it is out of memory. To
 * release memory that was freed in stream order, the function waits for the GPU. During this wait,
 * other threads may change every member of @gpu. During a capture, the function does not wait,
 * because the wait would end the capture.
 */
static void give_back(struct memory_gpu *gpu)
{
	if (!nr_captures && memory_cuda->ctx_sync && memory_device_pools_reserved(gpu)) {
		memory_device_unlock();
		memory_cuda->ctx_sync();
		memory_device_lock();
	}
	for (unsigned int i = 0; memory_cuda->pool_trim && i < gpu->nr_pools; i++)
		memory_cuda->pool_trim(gpu->known_pools[i], 0);
	if (gpu->has_graphs && memory_cuda->graph_mem_trim &&
	    !memory_cuda->graph_mem_trim(gpu->device)) {
		gpu->trims++;
		memory_gpu_graph_after(gpu);
	}
	pools_tighten(gpu);
}

/*
 * Charges @bytes and the missing part of the charge for code. The missing part must not be used for
 * @bytes.
 */
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
 * Charges @bytes after other calls have ended. A pool may already have grown for a call that has
 * not ended. If another call has read the pool's new size, the growth is counted twice until the
 * first call ends.
 */
static int charge_when_grown(struct memory_gpu *gpu, uint64_t bytes)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < GROWN_WAITS && gpu->growing; i++) {
		memory_device_unlock();
		nanosleep(&pause, NULL);
		memory_device_lock();
		pools_tighten(gpu);
		if (!charge_now(gpu, bytes))
			return 0;
	}
	return -ENOMEM;
}

/* Returns true if @item is an empty slab of @gpu. */
static bool is_empty(const struct memory_item *item, const void *gpu)
{
	return item->by == MEMORY_BY_SLAB && item->gpu == gpu && !item->nr;
}

static void drop_empty(struct memory_gpu *gpu)
{
	if (gpu->nr_empty)
		memory_gpu_items_destroy(is_empty, gpu);
}

/* Releases charges that are not needed. */
static void tighten(struct memory_gpu *gpu)
{
	pools_tighten(gpu);
	drop_empty(gpu);
}

int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes)
{
	if (!charge_now(gpu, bytes))
		return 0;
	tighten(gpu);
	memory_gpu_measure(gpu, NULL);
	if (!charge_now(gpu, bytes))
		return 0;
	give_back(gpu);
	if (!charge_now(gpu, bytes))
		return 0;
	return charge_when_grown(gpu, bytes);
}

static void take_off(uint64_t *sum, uint64_t bytes)
{
	*sum -= least(bytes, *sum);
}

void memory_gpu_item_destroy(struct memory_item *item)
{
	struct memory_gpu *gpu = item->gpu;

	if (item->foreign) {
		take_off(&gpu->foreign, item->bytes);
	} else if (item->by != MEMORY_BY_EXEC && item->by != MEMORY_BY_MAPPING) {
		take_off(item->by == MEMORY_BY_OWNER ? &gpu->overhead : &gpu->held, item->bytes);
		if (item->unseen)
			take_off(&gpu->unseen, item->bytes);
		if (item->by == MEMORY_BY_SLAB && !item->nr)
			gpu->nr_empty--;
		memory_gpu_release(gpu, item->bytes);
	}
	free(item);
}

void memory_gpu_items_destroy(bool (*which)(const struct memory_item *item, const void *arg),
			      const void *arg)
{
	struct memory_item *next;

	for (struct memory_item *item = memory_table_take_all(which, arg); item; item = next) {
		next = item->next;
		memory_gpu_item_destroy(item);
	}
}

bool memory_gpu_slab_enter(uint64_t address)
{
	struct memory_item *slab = memory_table_find(MEMORY_BY_SLAB, address / MEMORY_SLAB);

	if (slab && !slab->nr++)
		slab->gpu->nr_empty--;
	return slab;
}

int memory_gpu_slab(struct memory_gpu *gpu, uint64_t address, const void *ctx)
{
	struct memory_item *slab;

	if (memory_gpu_charge(gpu, MEMORY_SLAB))
		return -ENOMEM;
	/* While this thread waited for the GPU, another thread may have created the item. */
	if (memory_gpu_slab_enter(address)) {
		memory_gpu_release(gpu, MEMORY_SLAB);
		return 0;
	}
	gpu->held += MEMORY_SLAB;
	slab = memory_table_add(MEMORY_BY_SLAB, address / MEMORY_SLAB);
	if (!slab)
		return 0;	/* this charge is never refunded, but a missing charge would be
				 * worse */
	slab->bytes = MEMORY_SLAB;
	slab->gpu = gpu;
	slab->ctx = ctx;
	slab->nr = 1;
	return 0;
}

void memory_gpu_slab_leave(uint64_t address)
{
	struct memory_item *slab = memory_table_find(MEMORY_BY_SLAB, address / MEMORY_SLAB);

	if (slab && slab->nr && !--slab->nr && ++slab->gpu->nr_empty > MAX_EMPTY)
		drop_empty(slab->gpu);
}

/*
 * Raises the charge for the driver's own memory to at least @bytes. If the new charge would exceed
 * the quota, returns false.
 */
static bool overhead_fits(struct memory_gpu *gpu, uint64_t bytes)
{
	if (bytes <= gpu->overhead)
		return true;
	if (ledger_charge(tenant_ledger(), gpu->index, bytes - gpu->overhead))
		return false;
	gpu->overhead = bytes;
	return true;
}

/*
 * Charges the @taken bytes that the driver has allocated, and some spare bytes. If necessary,
 * reduces the charge for pools.
 */
static int overhead_grows(struct memory_gpu *gpu, uint64_t taken, bool strict)
{
	if (overhead_fits(gpu, taken + SPARE))
		return 0;
	tighten(gpu);
	if (overhead_fits(gpu, taken + SPARE))
		return 0;
	if (memory_device_pools_unused(gpu)) {
		give_back(gpu);
		/* The wait may have taken a long time, so the measurement may be outdated. */
		gpu->due = true;
		if (overhead_fits(gpu, taken + SPARE))
			return 0;
	}
	if (!overhead_fits(gpu, taken)) {
		if (strict)
			return -ENOMEM;
		memory_gpu_charge_always(gpu, taken - gpu->overhead);
		gpu->overhead = taken;
	}
	gpu->lacking = taken + SPARE - gpu->overhead;
	return 0;
}

static int set_overhead(struct memory_gpu *gpu, uint64_t taken, bool strict)
{
	uint64_t want = taken ? taken + SPARE : 0;

	gpu->lacking = 0;
	/*
	 * The charge is accurate enough. It would take too long to change the charge for every
	 * kernel.
	 */
	if (gpu->overhead >= want - (taken ? SPARE / 2 : 0) && gpu->overhead <= want + SPARE_SLACK)
		return 0;
	if (want > gpu->overhead)
		return overhead_grows(gpu, taken, strict);
	memory_gpu_release(gpu, gpu->overhead - want);
	gpu->overhead = want;
	return 0;
}

/* If the process has disappeared from the driver's list, the process has no memory. */
static bool own_figure(struct memory_gpu *gpu, uint64_t *own)
{
	int err = memory_real_own(gpu->pci, gpu->device, own);

	if (err == -ENOENT && gpu->reported)
		*own = err = 0;
	gpu->reported |= !err;
	return !err;
}

bool memory_gpu_measure(struct memory_gpu *gpu, int *err)
{
	uint64_t own, known, taken;

	gpu->due = gpu->in_flight;
	if (gpu->due)
		return true;
	gpu->measured_ns = memory_device_ns();
	if (!own_figure(gpu, &own))
		return false;
	known = gpu->held - gpu->unseen + gpu->foreign + memory_device_pools_reserved(gpu) +
		graphs_reserved(gpu);
	taken = own > known ? own - known : 0;
	if (set_overhead(gpu, taken, err != NULL))
		*err = -ENOMEM;
	return true;
}

void memory_gpu_measure_soon(struct memory_gpu *gpu)
{
	if (gpu->due || memory_device_ns() - gpu->measured_ns >= MEASURE_NS)
		memory_gpu_measure(gpu, NULL);
}

/* Returns the largest amount by which a pool can grow for @bytes. */
static uint64_t growth(uint64_t bytes)
{
	return (bytes + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
}

/*
 * Raises the charge for pools to at least @bytes. If the new charge would exceed the quota, changes
 * nothing and returns -ENOMEM.
 */
static int pools_raise(struct memory_gpu *gpu, uint64_t bytes)
{
	if (bytes <= gpu->pools)
		return 0;
	if (ledger_charge(tenant_ledger(), gpu->index, bytes - gpu->pools))
		return -ENOMEM;
	gpu->pools = bytes;
	return 0;
}

/*
 * Sets the charge for pools to the sum of @bytes and the bytes that calls in flight may need. If
 * the new charge would exceed the quota, returns -ENOMEM.
 */
static int pools_set(struct memory_gpu *gpu, uint64_t bytes)
{
	pools_lower(gpu, bytes);
	return pools_raise(gpu, bytes + gpu->growing);
}

static uint64_t ahead_wanted(struct memory_gpu *gpu, uint64_t bytes)
{
	uint64_t quota = ledger_quota(tenant_ledger(), gpu->index), now = memory_device_ns();
	/* Use only the charge of this process. It is a single value, so the read is fast. */
	uint64_t own = ledger_used_own(tenant_ledger(), gpu->index);
	uint64_t ahead = POOL_AHEAD + POOL_AHEAD_NR * bytes;

	if (now - gpu->ahead_ns <= POOL_AHEAD_NS && gpu->ahead * 2 > ahead)
		ahead = gpu->ahead * 2;
	gpu->ahead_ns = now;
	quota = quota ? least(quota, gpu->total) : gpu->total;
	return least(own < quota ? (quota - own) / PLENTY : 0, least(ahead, POOL_AHEAD_MOST));
}

bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes)
{
	uint64_t ahead;

	/*
	 * If a call is charged in advance, its end is not observed. A large call could make a pool
	 * grow, and the library could not attribute the growth to this call.
	 */
	if (!memory_cuda->pool_attr || gpu->lacking || bytes > POOL_AHEAD)
		return false;
	ahead = ahead_wanted(gpu, bytes);
	if (ahead < POOL_UNIT ||
	    pools_set(gpu, memory_device_pools_reserved(gpu) + growth(bytes) + ahead))
		return false;
	gpu->ahead = ahead;
	/*
	 * Each allocation may need twice its size. All allocations together may need one additional
	 * unit.
	 */
	gpu->credit = (ahead - POOL_UNIT) / 2;
	return true;
}

static int pool_charge(struct memory_gpu *gpu, void *pool, uint64_t bytes)
{
	uint64_t reserved;

	if (!memory_cuda->pool_attr || bytes > gpu->total)
		return bytes > gpu->total ? -ENOMEM : 0;
	reserved = memory_device_pools_reserved(gpu);
	if (gpu->ahead && !gpu->lacking &&
	    !pools_raise(gpu, reserved + gpu->growing + gpu->ahead + growth(bytes)))
		return 0;
	gpu->ahead = 0;
	gpu->credit = 0;
	/*
	 * Memory that another stream has freed may not be available to this stream yet. Then the
	 * pool grows.
	 */
	if (!gpu->many_streams && memory_device_pool_unused(pool) >= bytes + gpu->growing)
		return 0;
	/* The following calls may release memory, so they may change the reserved size. */
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
		stream = gpu;	/* the default stream; any value except NULL can stand for it */
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
	uint64_t reserved = memory_device_pools_reserved(gpu);

	pools_lower(gpu, reserved + gpu->ahead);
	return pools_raise(gpu, reserved);
}

void memory_gpu_pools_changed(struct memory_gpu *gpu)
{
	gpu->pool = NULL;
	gpu->credit = 0;
	if (memory_gpu_pool_after(gpu))
		memory_gpu_pool_undone(gpu);
}

void memory_gpu_pool_undone(struct memory_gpu *gpu)
{
	uint64_t reserved;

	give_back(gpu);
	reserved = memory_device_pools_reserved(gpu);
	if (reserved <= gpu->pools)
		return;
	memory_gpu_charge_always(gpu, reserved - gpu->pools);
	gpu->pools = reserved;
}

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
		memory_gpu_charge_always(gpu, reserved - gpu->graphs);
	else
		memory_gpu_release(gpu, gpu->graphs - reserved);
	gpu->graphs = reserved;
}

void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free_bytes, uint64_t *total)
{
	uint64_t quota = ledger_quota(tenant_ledger(), gpu->index), used, left;

	if (!quota)
		return;
	memory_gpu_measure_soon(gpu);
	tighten(gpu);
	used = ledger_used(tenant_ledger(), gpu->index) + gpu->lacking;
	left = used < quota ? quota - used : 0;
	if (*free_bytes > left)
		*free_bytes = left;
	if (*total > quota)
		*total = quota;
}
