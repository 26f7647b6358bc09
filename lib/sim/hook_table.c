// SPDX-License-Identifier: MIT
/*
 * The driver's undocumented export table with its launch callback, as measured:
 * slot 0 its size, slot 3 subscribe, slot 6 enable. Works before cuInit. Must not
 * know what subscribers do with a launch.
 */
#include <stdatomic.h>
#include <string.h>
#include "sim.h"

#define NR_SLOTS	12
#define SLOT_SUBSCRIBE	3
#define SLOT_ENABLE	6
#define MAX_SUBSCRIBERS	4
#define NR_LAUNCH_CBIDS	4
#define NR_RESOURCE_CBIDS 32
#define UPLOADED_BYTES	104	/* params of cbid 2 */
#define NODE_BYTES	168	/* of cbid 3 */
#define RESOURCE_BYTES	24

typedef void (*hook_callback)(void *user, int domain, int cbid, const void *params);

static const struct cu_uuid table_id = { {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
} };

static struct {
	hook_callback callback;
	void *user;
	atomic_uint launch, resource;	/* bit = cbid that is enabled */
} subscribers[MAX_SUBSCRIBERS];

static pthread_mutex_t subscribe_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint nr_subscribers;

static int hook_subscribe(uint32_t *handle, hook_callback callback, void *user)
{
	unsigned int nr;

	if (!handle || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&subscribe_lock);
	nr = atomic_load(&nr_subscribers);
	if (nr < MAX_SUBSCRIBERS) {
		subscribers[nr].callback = callback;
		subscribers[nr].user = user;
		atomic_store(&nr_subscribers, nr + 1);
		*handle = nr + 1;
	}
	pthread_mutex_unlock(&subscribe_lock);
	return nr < MAX_SUBSCRIBERS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int hook_enable(uint32_t on, uint32_t handle, int domain, int cbid)
{
	atomic_uint *enabled;

	if (!handle || handle > atomic_load(&nr_subscribers) || cbid < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain == HOOK_DOMAIN_LAUNCH && cbid < NR_LAUNCH_CBIDS)
		enabled = &subscribers[handle - 1].launch;
	else if (domain == HOOK_DOMAIN_RESOURCE && cbid < NR_RESOURCE_CBIDS &&
		 !sim_faults()->no_stream_events)
		enabled = &subscribers[handle - 1].resource;
	else
		return CUDA_ERROR_INVALID_VALUE;
	if (on)
		atomic_fetch_or(enabled, 1u << cbid);
	else
		atomic_fetch_and(enabled, ~(1u << cbid));
	return CUDA_SUCCESS;
}

/* The slots that nobody has a use for here. */
static int hook_other(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static const void *table[NR_SLOTS];

static void table_setup(void)
{
	unsigned int i;

	for (i = 1; i < NR_SLOTS; i++)
		table[i] = (const void *)hook_other;
	table[0] = (const void *)(uintptr_t)sim_faults()->table_size;
	table[SLOT_SUBSCRIBE] = (const void *)hook_subscribe;
	table[SLOT_ENABLE] = (const void *)hook_enable;
}

CUresult cuGetExportTable(const void **out, const struct cu_uuid *id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!out || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(id, &table_id, sizeof(table_id)) || sim_faults()->no_table)
		return CUDA_ERROR_NOT_FOUND;
	pthread_once(&once, table_setup);
	*out = table;
	return CUDA_SUCCESS;
}

bool hook_subscribed(void)
{
	return atomic_load(&nr_subscribers);
}

static void call(int domain, int cbid, const void *params)
{
	unsigned int i, nr = atomic_load(&nr_subscribers), enabled;

	for (i = 0; i < nr && i < MAX_SUBSCRIBERS; i++) {
		enabled = atomic_load(domain == HOOK_DOMAIN_LAUNCH ? &subscribers[i].launch :
								      &subscribers[i].resource);
		if (enabled >> cbid & 1)
			subscribers[i].callback(subscribers[i].user, domain, cbid, params);
	}
}

void hook_launch(CUcontext ctx, CUfunction function, void *tmd, uint64_t last, int cbid)
{
	uint64_t params[NODE_BYTES / 8] = { 0 };

	if (sim_faults()->drop_callback)
		return;
	params[0] = cbid == HOOK_TMD_BUILT ? sim_faults()->params_size :
		    cbid == HOOK_TMD_UPLOADED ? UPLOADED_BYTES : NODE_BYTES;
	params[1] = (uintptr_t)ctx;
	params[2] = (uintptr_t)function->module;
	params[3] = (uintptr_t)function;
	params[4] = (uintptr_t)tmd;
	params[5] = last;
	call(HOOK_DOMAIN_LAUNCH, cbid, params);
}

void hook_resource(CUcontext ctx, void *stream_object, int cbid)
{
	uint64_t params[RESOURCE_BYTES / 8] = { RESOURCE_BYTES };

	params[1] = (uintptr_t)ctx;
	params[2] = (uintptr_t)stream_object;
	call(HOOK_DOMAIN_RESOURCE, cbid, params);
}
