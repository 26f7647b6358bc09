// SPDX-License-Identifier: MIT
/*
 * Simulates the driver's undocumented export table, which provides the launch callback. As
 * measured, slot 0 contains the size of the table, slots 3 and 11 subscribe, slot 4 unsubscribes,
 * and slots 6 to 8 enable callbacks. The table works before cuInit, and is in read-only memory.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "sim/cuda/callback_numbers.h"

#define NR_SLOTS	16	/* maximum number of slots; a setting gives the actual number */
#define SLOT_SUBSCRIBE	3
#define SLOT_UNSUBSCRIBE 4
#define SLOT_ENABLE	6
#define SLOT_ENABLE_DOMAIN 7
#define SLOT_ENABLE_ALL	8
#define SLOT_FEATURE	9
#define SLOT_NR_FEATURES 10
#define SLOT_SUBSCRIBE_NAMED 11
#define FEATURE_GREEN	7
#define NR_LAUNCH_CBIDS	4
#define NR_RESOURCE_CBIDS 90
#define NR_API_CBIDS	807
#define NR_CBIDS	(NR_API_CBIDS + NR_RESOURCE_CBIDS + NR_LAUNCH_CBIDS)
#define UPLOADED_BYTES	104	/* size of the parameters of callback cbid 2 */
#define NODE_BYTES	168	/* size of the parameters of callback cbid 3 */
#define TMD_VERSION_BYTE 72
#define RESOURCE_BYTES	24
#define EXEC_BYTES	88	/* parameter size for domain 2, cbid 40 */
#define API_BYTES	104
#define MODULE_BYTES	112	/* parameter size for a loaded module */
#define MODULE_GOES_BYTES 40

typedef void (*hook_callback)(void *user, int domain, int cbid, const void *params);

static const struct cu_uuid table_id = { {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
} };

static struct {
	bool taken, green;		/* guarded by subscribe_lock */
	_Atomic(hook_callback) callback;
	_Atomic(void *) user;
	char name[64];
	atomic_bool enabled[NR_CBIDS];	/* the cbids of all domains, one domain after the other */
} subscribers[SIM_MAX_SUBSCRIBERS];

static pthread_mutex_t subscribe_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint nr_no_green;	/* number of present and past subscriptions without the feature */
unsigned int hook_nr_api;

/* Returns the index of a cbid in enabled[], or -1 if there is no such cbid. */
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

/* Call with subscribe_lock held. */
static void set_enabled(unsigned int nr, int place, bool on)
{
	bool was = atomic_exchange(&subscribers[nr].enabled[place], on);

	if (place < NR_API_CBIDS && was != on)
		__atomic_add_fetch(&hook_nr_api, on ? 1 : -1, __ATOMIC_RELEASE);
}

static int hook_subscribe_named(uint32_t *handle, hook_callback callback, void *user,
				const char *name, char *other, size_t other_len)
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
		subscribers[nr].green = false;
		atomic_fetch_add(&nr_no_green, 1);
		snprintf(subscribers[nr].name, sizeof(subscribers[nr].name), "%s",
			 name ? name : "<not provided>");
		*handle = nr + 1;
	} else if (other && other_len) {
		snprintf(other, other_len, "%s", subscribers[0].name);
	}
	pthread_mutex_unlock(&subscribe_lock);
	return nr < most ? CUDA_SUCCESS : CUDA_ERROR_ALREADY_ACQUIRED;
}

static int hook_subscribe(uint32_t *handle, hook_callback callback, void *user)
{
	return hook_subscribe_named(handle, callback, user, NULL, NULL, 0);
}

/* Call with subscribe_lock held. */
static bool is_subscriber(uint32_t handle)
{
	return handle && handle <= SIM_MAX_SUBSCRIBERS && subscribers[handle - 1].taken;
}

static int hook_unsubscribe(uint32_t handle)
{
	bool good;

	pthread_mutex_lock(&subscribe_lock);
	good = is_subscriber(handle);
	for (int place = 0; good && place < NR_CBIDS; place++)
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

/* Enables or disables all cbids of @domain. If @domain is -1, changes all domains. */
static int enable_many(uint32_t on, uint32_t handle, int domain)
{
	int nr = 0;

	for (int of = 0; of <= HOOK_DOMAIN_LAUNCH; of++)
		for (int cbid = 0; (domain < 0 || of == domain) && place_of(of, cbid) >= 0; cbid++)
			nr += !hook_enable(on, handle, of, cbid);
	return nr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int hook_enable_domain(uint32_t on, uint32_t handle, int domain)
{
	return domain < 0 ? CUDA_ERROR_INVALID_VALUE : enable_many(on, handle, domain);
}

static int hook_enable_all(uint32_t on, uint32_t handle)
{
	return enable_many(on, handle, -1);
}

static int hook_feature(uint32_t on, uint32_t handle, uint32_t feature)
{
	bool good;

	pthread_mutex_lock(&subscribe_lock);
	good = on == 1 && is_subscriber(handle) && feature < sim_faults()->features;
	if (good && feature == FEATURE_GREEN && !subscribers[handle - 1].green) {
		subscribers[handle - 1].green = true;
		atomic_fetch_sub(&nr_no_green, 1);
	}
	pthread_mutex_unlock(&subscribe_lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int hook_nr_features(uint32_t *count, uint32_t zero, uint32_t handle)
{
	if (!count || zero || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim_faults()->features;
	return CUDA_SUCCESS;
}

/* All slots that the simulation does not use contain this function. */
static int hook_other(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Memory of the driver after the end of the table. */
static int hook_beyond(void)
{
	sim_print("a slot beyond the end of the table was called");
	abort();
}

static const void *const *table;

/* Returns a copy of @slots that cannot be made writable. */
static const void *const *sealed(const void *const *slots, size_t bytes)
{
	int fd = memfd_create("callback-table", MFD_CLOEXEC), reader;
	char path[32];
	void *at;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, slots, bytes) != (ssize_t)bytes)
		abort();
	reader = open(path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, reader, 0);
	if (at == MAP_FAILED)
		abort();
	close(reader);
	close(fd);
	return at;
}

/*
 * Returns a read-only copy of @slots that can be made writable. The copy is not in a file,
 * because `ulimit -f 0` limits files.
 */
static const void *const *read_only(const void *const *slots, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	memcpy(at, slots, bytes);
	if (mprotect(at, bytes, PROT_READ))
		abort();
	return at;
}

static void table_setup(void)
{
	const void *slots[NR_SLOTS];

	for (unsigned int i = 1; i < NR_SLOTS; i++)
		slots[i] = (const void *)hook_other;
	slots[0] = (const void *)(uintptr_t)sim_faults()->table_size;
	slots[SLOT_SUBSCRIBE] = (const void *)hook_subscribe;
	slots[SLOT_UNSUBSCRIBE] = (const void *)hook_unsubscribe;
	slots[SLOT_ENABLE] = (const void *)hook_enable;
	slots[SLOT_ENABLE_DOMAIN] = (const void *)hook_enable_domain;
	slots[SLOT_ENABLE_ALL] = (const void *)hook_enable_all;
	slots[SLOT_FEATURE] = (const void *)hook_feature;
	slots[SLOT_NR_FEATURES] = (const void *)hook_nr_features;
	slots[SLOT_SUBSCRIBE_NAMED] = (const void *)hook_subscribe_named;
	for (unsigned int i = sim_faults()->table_size / sizeof(slots[0]); i && i < NR_SLOTS; i++)
		slots[i] = (const void *)hook_beyond;
	table = sim_faults()->sealed_table ? sealed(slots, sizeof(slots)) :
					     read_only(slots, sizeof(slots));
}

CUresult cuGetExportTable(const void **out, const struct cu_uuid *id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!out || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(id, &table_id, sizeof(table_id)) || sim_faults()->no_table)
		return CUDA_ERROR_NOT_FOUND;
	pthread_once(&once, table_setup);
	*out = (const void *)table;
	return CUDA_SUCCESS;
}

bool hook_no_green(void)
{
	return atomic_load(&nr_no_green);
}

static void call(int domain, int cbid, const void *params)
{
	int place = place_of(domain, cbid);
	hook_callback callback;

	for (unsigned int i = 0; place >= 0 && i < SIM_MAX_SUBSCRIBERS; i++) {
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
	/* The bytes after the end of the parameters are undefined. */
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
	struct sim_ctx *ctx, *green;
	CUresult ignored;

	params[5] = (uintptr_t)&api->result;
	params[6] = (uintptr_t)(api->cbid == sim_faults()->renamed ? "cuRenamed" : api->name);
	params[7] = (uintptr_t)api->args;
	ctx = ctx_current(&ignored);
	green = ctx ? ctx_current_green(ctx) : NULL;
	params[8] = (uintptr_t)(green ? green : ctx);
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
