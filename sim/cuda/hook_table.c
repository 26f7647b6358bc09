// SPDX-License-Identifier: MIT
/*
 * The driver's undocumented export table with its launch callback, as measured:
 * slot 0 its size, slot 3 subscribe, slot 4 unsubscribe, slot 6 enable. Works before
 * cuInit. Must not know what subscribers do with a launch.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/api.h"

#define NR_SLOTS	16	/* at most; how many the table says that it has is a setting */
#define SLOT_SUBSCRIBE	3
#define SLOT_UNSUBSCRIBE 4
#define SLOT_ENABLE	6
#define SLOT_FEATURE	9
#define SLOT_NR_FEATURES 10
#define NR_FEATURES	11
#define NR_LAUNCH_CBIDS	4
#define NR_RESOURCE_CBIDS 90
#define NR_API_CBIDS	807
#define NR_CBIDS	(NR_API_CBIDS + NR_RESOURCE_CBIDS + NR_LAUNCH_CBIDS)
#define UPLOADED_BYTES	104	/* params of cbid 2 */
#define NODE_BYTES	168	/* of cbid 3 */
#define TMD_VERSION_BYTE 72
#define RESOURCE_BYTES	24
#define EXEC_BYTES	88	/* params of domain 2, cbid 40 */
#define API_BYTES	104
#define MODULE_BYTES	112	/* of a module that was loaded */
#define MODULE_GOES_BYTES 40

typedef void (*hook_callback)(void *user, int domain, int cbid, const void *params);

static const struct cu_uuid table_id = { {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
} };

static struct {
	bool taken;			/* guarded by subscribe_lock */
	_Atomic(hook_callback) callback;
	_Atomic(void *) user;
	atomic_bool enabled[NR_CBIDS];	/* the domains' cbids one after the other */
} subscribers[SIM_MAX_SUBSCRIBERS];

static pthread_mutex_t subscribe_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ever_subscribed;
unsigned int hook_nr_api;

/* Where a cbid stands in enabled[]; -1: there is none. */
static int place_of(int domain, int cbid)
{
	if (cbid < 0)
		return -1;
	if (domain == HOOK_DOMAIN_API && !sim_faults()->no_api)
		return cbid < NR_API_CBIDS ? cbid : -1;
	if (domain == HOOK_DOMAIN_RESOURCE && !sim_faults()->no_stream_events)
		return cbid < NR_RESOURCE_CBIDS ? NR_API_CBIDS + cbid : -1;
	if (domain == HOOK_DOMAIN_LAUNCH)
		return cbid < NR_LAUNCH_CBIDS ? NR_API_CBIDS + NR_RESOURCE_CBIDS + cbid : -1;
	return -1;
}

/* With subscribe_lock held. */
static void set_enabled(unsigned int nr, int place, bool on)
{
	bool was = atomic_exchange(&subscribers[nr].enabled[place], on);

	if (place < NR_API_CBIDS && was != on)
		__atomic_add_fetch(&hook_nr_api, on ? 1 : -1, __ATOMIC_RELEASE);
}

static int hook_subscribe(uint32_t *handle, hook_callback callback, void *user)
{
	unsigned int nr, most = sim_faults()->subscribers;

	if (!handle || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&subscribe_lock);
	for (nr = 0; nr < most && subscribers[nr].taken; nr++)
		;
	if (nr < most) {
		subscribers[nr].taken = true;
		atomic_store(&subscribers[nr].callback, callback);
		atomic_store(&subscribers[nr].user, user);
		atomic_store(&ever_subscribed, true);
		*handle = nr + 1;
	}
	pthread_mutex_unlock(&subscribe_lock);
	return nr < most ? CUDA_SUCCESS : CUDA_ERROR_ALREADY_ACQUIRED;
}

/* With subscribe_lock held. */
static bool is_subscriber(uint32_t handle)
{
	return handle && handle <= SIM_MAX_SUBSCRIBERS && subscribers[handle - 1].taken;
}

static int hook_unsubscribe(uint32_t handle)
{
	bool good;
	int place;

	pthread_mutex_lock(&subscribe_lock);
	good = is_subscriber(handle);
	for (place = 0; good && place < NR_CBIDS; place++)
		set_enabled(handle - 1, place, false);
	if (good)
		subscribers[handle - 1].taken = false;
	pthread_mutex_unlock(&subscribe_lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int hook_enable(uint32_t on, uint32_t handle, int domain, int cbid)
{
	int place = place_of(domain, cbid);
	bool good;

	pthread_mutex_lock(&subscribe_lock);
	good = place >= 0 && is_subscriber(handle);
	if (good)
		set_enabled(handle - 1, place, on);
	pthread_mutex_unlock(&subscribe_lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int hook_feature(uint32_t on, uint32_t handle, uint32_t feature)
{
	return on == 1 && handle && feature < NR_FEATURES ? CUDA_SUCCESS :
							     CUDA_ERROR_INVALID_VALUE;
}

static int hook_nr_features(uint32_t *count, uint32_t zero, uint32_t handle)
{
	if (!count || zero || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	*count = NR_FEATURES;
	return CUDA_SUCCESS;
}

/* The slots that nobody has a use for here. */
static int hook_other(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Behind the end of the table: other memory of the driver's. */
static int hook_beyond(void)
{
	sim_say("a slot was called that the table does not have");
	abort();
}

static const void *table[NR_SLOTS];

static void table_setup(void)
{
	unsigned int i;

	for (i = 1; i < NR_SLOTS; i++)
		table[i] = (const void *)hook_other;
	table[0] = (const void *)(uintptr_t)sim_faults()->table_size;
	table[SLOT_SUBSCRIBE] = (const void *)hook_subscribe;
	table[SLOT_UNSUBSCRIBE] = (const void *)hook_unsubscribe;
	table[SLOT_ENABLE] = (const void *)hook_enable;
	table[SLOT_FEATURE] = (const void *)hook_feature;
	table[SLOT_NR_FEATURES] = (const void *)hook_nr_features;
	for (i = sim_faults()->table_size / sizeof(table[0]); i && i < NR_SLOTS; i++)
		table[i] = (const void *)hook_beyond;
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
	return atomic_load(&ever_subscribed);
}

static void call(int domain, int cbid, const void *params)
{
	int place = place_of(domain, cbid);
	hook_callback callback;
	unsigned int i;

	for (i = 0; place >= 0 && i < SIM_MAX_SUBSCRIBERS; i++) {
		if (!atomic_load(&subscribers[i].enabled[place]))
			continue;
		callback = atomic_load(&subscribers[i].callback);
		callback(atomic_load(&subscribers[i].user), domain, cbid, params);
	}
}

void hook_launch(CUcontext ctx, CUfunction function, void *tmd, uint64_t last, int cbid)
{
	uint64_t params[NODE_BYTES / 8] = { 0 };

	static uint8_t first[SIM_TMD_BYTES];
	static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
	uint32_t size;

	if (sim_faults()->drop_callback)
		return;
	if (sim_faults()->stale_tmd && cbid == HOOK_TMD_BUILT) {
		pthread_mutex_lock(&first_lock);
		if (!first[TMD_VERSION_BYTE])
			memcpy(first, tmd, sizeof(first));
		pthread_mutex_unlock(&first_lock);
		tmd = first;
	}
	if (sim_faults()->tmd_pointer && cbid == HOOK_TMD_BUILT)
		tmd = (void *)(uintptr_t)sim_faults()->tmd_pointer;
	params[0] = cbid == HOOK_TMD_BUILT ? sim_faults()->params_size :
		    cbid == HOOK_TMD_UPLOADED ? UPLOADED_BYTES : NODE_BYTES;
	params[1] = (uintptr_t)ctx;
	params[2] = (uintptr_t)function->module;
	params[3] = (uintptr_t)function;
	params[4] = (uintptr_t)tmd;
	params[5] = last;
	/* Behind their end is anything. */
	for (size = params[0] / 8; size && size < NODE_BYTES / 8; size++)
		params[size] = 0xdead0000dead0000;
	call(HOOK_DOMAIN_LAUNCH, cbid, params);
}

void hook_resource(CUcontext ctx, void *object, int cbid)
{
	uint64_t params[MODULE_GOES_BYTES / 8] = { RESOURCE_BYTES };

	if (cbid == HOOK_MODULE_DYING || cbid == HOOK_MODULE_UNLOADED)
		params[0] = MODULE_GOES_BYTES;
	params[1] = (uintptr_t)ctx;
	params[2] = (uintptr_t)object;
	call(HOOK_DOMAIN_RESOURCE, cbid, params);
}

void hook_graph_destroyed(const void *graph)
{
	uint64_t params[RESOURCE_BYTES / 8] = { RESOURCE_BYTES, (uintptr_t)graph };

	call(HOOK_DOMAIN_RESOURCE, HOOK_GRAPH_DESTROYED, params);
}

void hook_exec_created(CUcontext ctx, CUgraph graph, CUgraphExec exec)
{
	uint64_t params[EXEC_BYTES / 8] = {
		EXEC_BYTES, (uintptr_t)ctx, (uintptr_t)graph, (uintptr_t)exec,
	};

	call(HOOK_DOMAIN_RESOURCE, HOOK_EXEC_CREATED, params);
}

void hook_exec_dying(CUgraphExec exec)
{
	uint64_t params[RESOURCE_BYTES / 8] = { RESOURCE_BYTES, (uintptr_t)exec };

	call(HOOK_DOMAIN_RESOURCE, HOOK_EXEC_DYING, params);
}

void hook_api(struct api_call *api, bool ended)
{
	uint64_t params[API_BYTES / 8] = { API_BYTES, 1 };
	CUresult ignored;

	params[5] = (uintptr_t)&api->result;
	params[6] = (uintptr_t)(api->cbid == sim_faults()->renamed ? "cuRenamed" : api->name);
	params[7] = (uintptr_t)api->args;
	params[8] = (uintptr_t)ctx_current(&ignored);
	params[10] = (uint64_t)ended << 32 | api->cbid;
	call(HOOK_DOMAIN_API, api->cbid, params);
}

void hook_module(CUmodule module, const void *image, size_t size, enum hook_module_kind kind)
{
	uint64_t params[MODULE_BYTES / 8] = { MODULE_BYTES };

	params[1] = (uintptr_t)module->ctx;
	params[2] = (uintptr_t)module;
	params[4] = (uintptr_t)image;
	params[5] = size;
	params[6] = (uintptr_t)"";
	params[7] = kind;
	call(HOOK_DOMAIN_RESOURCE, HOOK_MODULE_LOADED, params);
}
