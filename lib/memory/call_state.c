// SPDX-License-Identifier: MIT
/* Handles the state of the driver call that a thread is making. See call_state.h. */
#include <gpupart_manage.h>
#include <stdatomic.h>
#include "lib/memory/call_state.h"
#include "lib/memory/tenant.h"

static atomic_ulong nr_refused, nr_uncounted;
static _Atomic(const char *) uncounted_name;
struct memory_gpu *_Atomic memory_only_gpu;

void memory_uncounted(const char *name)
{
	unsigned long nr = atomic_fetch_add(&nr_uncounted, 1) + 1;

	/*
	 * If this process has joined the tenant, write the count to the tenant's file, too. Other
	 * processes read this file.
	 */
	ledger_record_uncounted(tenant_ledger(), nr);
	if (name)
		atomic_store(&uncounted_name, name);
}

void gpupart_memory_counters_get(struct gpupart_memory_counters *counters)
{
	counters->refused = atomic_load(&nr_refused);
	counters->uncounted = atomic_load(&nr_uncounted);
	counters->uncounted_call = atomic_load(&uncounted_name);
}

void memory_now_forked(void)
{
	atomic_store(&nr_uncounted, 0);
}

struct memory_gpu *memory_now_device(int device)
{
	struct memory_gpu *gpu = memory_device_known(device);
	int count;

	if (gpu)
		return gpu;
	gpu = memory_device_join(device);
	if (!gpu)
		return NULL;
	/* The number includes the calls before this process joined the tenant. */
	ledger_record_uncounted(tenant_ledger(), atomic_load(&nr_uncounted));
	if (!device && !memory_cuda->device_count(&count) && count == 1)
		atomic_store_explicit(&memory_only_gpu, gpu, memory_order_release);
	return gpu;
}

struct memory_gpu *memory_now_gpu(void)
{
	struct memory_gpu *only = memory_now_only_gpu();
	int device;

	if (only)
		return only;
	return memory_cuda->ctx_device(&device) ? NULL : memory_now_device(device);
}

void memory_now_flight_begins(struct memory_now *now, struct memory_gpu *gpu)
{
	now->gpu = gpu;
	now->in_flight = true;
	gpu->in_flight++;
}

void memory_now_flight_ends(struct memory_now *now)
{
	if (now->in_flight)
		now->gpu->in_flight--;
	now->in_flight = false;
	if (now->grows)
		memory_gpu_pool_ends(now->gpu, now->grows);
	now->grows = 0;
}

struct memory_item *memory_now_note(const struct memory_now *now, enum memory_key by,
				    uint64_t key, uint64_t bytes)
{
	struct memory_item *item = memory_table_add(by, key);

	if (!item) {
		memory_uncounted(now->params->name);
		return NULL;
	}
	item->bytes = bytes;
	item->gpu = now->gpu;
	return item;
}

void memory_now_refuse(struct memory_now *now)
{
	now->refused = true;
	memory_calls_refuse(now->call, now->words, &now->change);
}

void memory_now_out_of_memory(const struct memory_now *now)
{
	/*
	 * A measurement has shown that the driver returns this value to the program as the result
	 * of the call.
	 */
	*(int *)(uintptr_t)now->params->result = CUDA_ERROR_OUT_OF_MEMORY;
	atomic_fetch_add(&nr_refused, 1);
}

void memory_now_undo(const struct memory_now *now)
{
	if (!now->handler->undo)
		return;
	memory_device_unlock();
	now->handler->undo(now, memory_now_out(now));
	memory_device_lock();
	*(uint64_t *)(uintptr_t)memory_now_first(now) = 0;
}
