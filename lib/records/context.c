// SPDX-License-Identifier: MIT
/*
 * Manages the records of contexts. Each context has its own mapping of the records. The mapping is
 * registered with the driver. The GPU may write to the mapping until the context is destroyed, so
 * the library keeps the mapping registered. It does not reuse the mapping until the driver accepts
 * the same memory for another context.
 */
#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/core/fork.h"
#include "lib/records/records.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);

/* The records of all GPUs. The child of a fork needs this list. */
static struct records *all[DRIVER_MAX_GPUS];
static atomic_uint nr_all;

/* Returns the index of a GPU in the state page. */
static unsigned int place_of(const struct records *records)
{
	return records->gpu - state_page_own->gpus;
}

static void rings_reset(struct records *records)
{
	for (unsigned int n = 0; n < STATE_NR_RINGS; n++)
		records->rings[n] = (struct records_ring){
			.issued = records_base(n), .room = 2 * records_base(n) + 1,
			.mask = records_base(n), .number = n, .records = records,
			.function = records->shown->functions,
			.shown = &records->shown->rings[n],
		};
	for (unsigned int n = 0; n < 1u << RECORDS_HINT_BITS; n++)
		records->hints[n] = records->rings;
	memset(records->contexts, 0, sizeof(records->contexts));
	memset(records->graphs, 0, sizeof(records->graphs));
	atomic_store(&records->free, ~0ull);
	atomic_store(&records->used, 0);
	atomic_store(&records->folding, false);
	atomic_store(&records->claiming, false);
	records->section = NULL;
}

/*
 * CUDA does not work in the child of a fork. The child must not write or read the parent's records.
 */
static void after_fork(void)
{
	for (unsigned int i = 0; i < nr_all; i++)
		rings_reset(all[i]);
}

int records_possible(struct gpupart *gp, const struct tmd_map *map)
{
	return tmd_release_slots(map) >= 2 ? 0 :
	       ctx_fail(gp, -EOPNOTSUPP, "TMD %s has %u release slots, but gpupart needs 2",
			tmd_layout_name(map->layout), tmd_release_slots(map));
}

int records_start(struct gpupart *gp, struct state_gpu *gpu, const struct tmd_map *map,
		  struct records **started)
{
	struct state_records *shown = state_records(gpu);
	struct records *records;

	if (!shown)
		return ctx_fail(gp, -EOPNOTSUPP, "this process uses more than %d GPUs",
				STATE_MAX_GPUS);
	records = aligned_alloc(_Alignof(struct records), sizeof(*records));
	if (!records || nr_all == DRIVER_MAX_GPUS) {
		free(records);
		return ctx_fail(gp, -ENOMEM, "out of memory for records");
	}
	memset(records, 0, sizeof(*records));
	records->gpu = gpu;
	records->shown = shown;
	records->place[0] = tmd_release_place(map, tmd_release_slots(map) - 1,
					      TMD_RELEASE_TIME);
	records->place[1] = tmd_release_place(map, 1, TMD_RELEASE_TIME);
	rings_reset(records);
	pthread_mutex_lock(&lock);
	if (!nr_all)
		pthread_atfork(NULL, NULL, after_fork);
	all[nr_all] = records;
	atomic_store(&nr_all, nr_all + 1);
	pthread_mutex_unlock(&lock);
	*started = records;
	return 0;
}

/* Creates the section of @records, in which all rings are empty. */
static bool section_make(struct gpupart *gp, struct records *records)
{
	if (records->section)
		return true;
	records->section = records_file_section(gp, place_of(records));
	if (!records->section)
		return false;
	for (unsigned int n = 0; n < STATE_NR_RINGS; n++) {
		struct records_ring *ring = &records->rings[n];

		ring->cells = &records->section->cells[records_first(n)];
		ring->notes = &records->section->notes[records_first(n)];
		ring->shown->issued = ring->shown->folded = records_base(n);
	}
	for (unsigned int n = 0; n < STATE_NR_GRAPHS; n++) {
		records->graphs[n].shown = &records->shown->graph[n];
		records->graphs[n].cell = &records->section->graphs[n];
	}
	records->shown->fenced = !syscall(SYS_membarrier,
					  MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	records_clock_start(&records->shown->clock);
	return true;
}

/*
 * This function is called when the destruction of context @n has ended. The outstanding launches of
 * the context have also ended, at an unknown time.
 */
static void rings_revive(struct records *records, unsigned int n)
{
	for (unsigned int i = 0; i < STATE_NR_RINGS; i++) {
		struct records_ring *ring = &records->rings[i];
		uint64_t last = atomic_load(&ring->issued);

		if (!ring->shown->lost || ring->context != n)
			continue;
		/* In a broken ring, any entry may have the number of another launch. */
		for (uint64_t seq = last - ring->mask; seq <= last; seq++) {
			if (records_has(&ring->cells[seq & ring->mask], seq))
				continue;
			atomic_store(&ring->notes[seq & ring->mask].submitted, 0);
			atomic_store(&ring->cells[seq & ring->mask].payload, seq);
		}
		ring->shown->waiting = 0;
		atomic_store(&ring->broken, false);
		__atomic_store_n(&ring->shown->lost, 0, __ATOMIC_RELEASE);
		atomic_fetch_or(&records->free, 1ull << i);
	}
}

/*
 * If the driver has released the memory of an earlier context, reuses this memory. Otherwise maps
 * new memory. The caller holds the lock.
 */
static int add(struct gpupart *gp, struct records *records, const struct cuda_api *cuda,
	       const void *ctx)
{
	struct records_context *context;
	int result = -1;
	bool again = false;

	if (!cuda->host_register || !cuda->host_pointer)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver has no function that registers host memory");
	if (!section_make(gp, records))
		return -ENOMEM;
	for (unsigned int n = 0; n < RECORDS_MAX_CONTEXTS; n++) {
		context = &records->contexts[n];
		if (atomic_load(&context->ctx))
			continue;
		again = context->mapped;
		if (!again)
			context->mapped = records_file_again(place_of(records));
		if (!context->mapped)
			return ctx_fail(gp, -ENOMEM, "out of memory for records");
		result = cuda->host_register(context->mapped, RECORDS_REGISTERED,
					     CUDA_HOST_DEVICEMAP);
		if (!result && again) {
			rings_revive(records, n);
			records_graphs_gone(records, n, true);
		}
		if (!result)
			result = cuda->host_pointer(&context->address, context->mapped, 0);
		if (!result)
			atomic_store(&context->ctx, ctx);
		if (!result || !again)
			break;
	}
	if (!result)
		return 0;
	if (result < 0 || again)
		return ctx_fail(gp, -EBUSY, "this process has more than %d contexts",
				RECORDS_MAX_CONTEXTS);
	return ctx_fail(gp, -EIO, "cuMemHostRegister: %s", cuda_strerror(cuda, result));
}

bool records_context(struct records *records, const struct cuda_api *cuda, void *ctx)
{
	struct gpupart gp = { "" };
	bool was, good;

	if (records_context_of(records, ctx) < RECORDS_MAX_CONTEXTS)
		return true;
	was = driver_own(true);
	pthread_mutex_lock(&lock);
	good = records_context_of(records, ctx) < RECORDS_MAX_CONTEXTS ||
	       !add(&gp, records, cuda, ctx);
	if (good)
		__atomic_store_n(&records->shown->on, 1, __ATOMIC_RELEASE);
	else
		snprintf(records->why, sizeof(records->why), "%.191s", gp.error);
	pthread_mutex_unlock(&lock);
	driver_own(was);
	return good;
}

__attribute__((cold)) void records_settle(void)
{
	for (unsigned int i = 0; i < atomic_load(&nr_all); i++) {
		struct records *records = all[i];
		uint64_t left = atomic_load(&records->used);

		if (!left || !records_totals_try(records))
			continue;
		if (records->nr_running)
			records->fold_graphs(records);
		for (; left; left &= left - 1) {
			struct records_ring *ring = &records->rings[__builtin_ctzll(left)];

			if (!ring->shown->lost)
				while (records_fold_ring(records->shown, ring, UINT_MAX, false))
					;
		}
		records_totals_unlock(records, records->shown);
	}
}
