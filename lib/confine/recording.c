// SPDX-License-Identifier: MIT
/*
 * Turns completion records on. See recording.h. The result of the check is stored in the same
 * directory as the results of the self-check.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "lib/confine/check_cache.h"
#include "lib/confine/graph.h"
#include "lib/confine/recording.h"
#include "lib/core/environment.h"
#include "lib/core/peek.h"
#include "lib/private.h"
#include "lib/records/records.h"

/*
 * Returns true if @result means that the context no longer works. In a process that uses MPS, MPS
 * then also stops working.
 */
static bool loses_context(int result)
{
	static const uint16_t errors[] = {
		214, 700, 702, 709, 714, 715, 716, 717, 718, 719, 805, 806, 807, 810, 999,
	};

	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i] == result)
			return true;
	return false;
}

#define PROVEN		"proven\n"
#define NAME_LEN	32

/*
 * Makes the name of the file that contains the result of the check. The name depends on the map
 * and on its layout row.
 */
static void name_make(const struct gpupart_gpu *gpu, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "records-%016" PRIx64,
		 tmd_map_hash(&gpu->driver.map, &gpu->driver.topo->info));
}

static bool was_proven(const char *name)
{
	char text[16];

	return cache_read(NULL, name, text, sizeof(text)) == sizeof(PROVEN) - 1 &&
	       !memcmp(text, PROVEN, sizeof(PROVEN) - 1);
}

/* Returns 0 if @gpu can have records. Otherwise the error message of @gp gives the reason. */
static int allowed(struct gpupart *gp, const struct gpupart_gpu *gpu)
{
	if (environment_read().no_records)
		return ctx_fail(gp, -ECANCELED, ENVIRONMENT_RECORDS "=0");
	/* If there is such an error, the library would mistake nodes of graphs for launches. */
	if (*graph_error())
		return ctx_fail(gp, -EOPNOTSUPP, "%s", graph_error());
	return records_possible(gp, &gpu->driver.map);
}

static void start(struct gpupart *gp, struct gpupart_gpu *gpu, int err)
{
	struct records *records;

	if (!err)
		err = records_start(gp, gpu->shared, &gpu->driver.map, &records);
	if (err)
		snprintf(gpu->records_why, sizeof(gpu->records_why), "%.190s", gp->error);
	else
		atomic_store_explicit(&gpu->recorder, records, memory_order_release);
}

/*
 * Makes a launch whose record the caller then checks. The launch has one block, and this block
 * records its end time.
 */
static int launch(struct gpupart *gp, struct records_trial *trial, void *arg)
{
	struct probe *probe = ((void **)arg)[0];
	struct probe_launch what = {
		.kernel = PROBE_CENSUS, .stream = ((void **)arg)[1], .blocks = 1, .threads = 32,
		.shared = probe->shared, .argument = PROBE_SPIN_NS,
	};
	struct scope_own own = { .mode = OWN_RECORD, .gpu = probe->gpu, .trial = trial };
	int err = probe_start(gp, probe, &what, &own);

	if (!err)
		err = probe_finish(gp, probe, what.stream, 1);
	trial->ended = err ? 0 : probe->host[0].end;
	return err;
}

/*
 * Searches @key and the cache for a proof that the GPU writes records. Argument @key may be NULL.
 * If there is no proof and @arg is not NULL, the function makes launches for a new proof. The
 * function passes @arg to launch().
 */
static void begin(struct gpupart_gpu *gpu, const char *key, void *arg)
{
	struct gpupart gp = { "" };
	char name[NAME_LEN];
	int err;

	if (atomic_load(&gpu->recorder))
		return;
	err = allowed(&gp, gpu);
	name_make(gpu, name);
	if (!err && !(key && !strncmp(key, gpu->check.key, GPUPART_KEY_LEN) &&
		      key[GPUPART_KEY_LEN] == *GPUPART_KEY_RECORDS) && !was_proven(name)) {
		if (arg)
			err = records_check(&gp, cuda_loaded(), &gpu->driver.map, launch, arg);
		else
			err = ctx_fail(&gp, -EOPNOTSUPP,
				       "completion records were not checked yet on this GPU and driver");
		if (!err)
			cache_write(NULL, name, PROVEN, sizeof(PROVEN) - 1);
	}
	start(&gp, gpu, err);
}

void recording_prove(struct gpupart_gpu *gpu, struct probe *probe, void *stream)
{
	begin(gpu, NULL, (void *[]){ probe, stream });
	recording_context(probe->cuda, probe->ctx);
}

void recording_known(struct gpupart_gpu *gpu, const char *key)
{
	begin(gpu, key, NULL);
}

void gpupart_records_lack(const struct gpupart_gpu *gpu, char *why, size_t len)
{
	const struct records *recorder = atomic_load(&gpu->recorder);

	snprintf(why, len, "%s", atomic_load(&gpu->records) ? "" :
		 !recorder ? gpu->records_why :
		 *recorder->why ? recorder->why : "no context was seen yet");
}

void recording_stop(const char *why)
{
	struct gpupart_gpu *gpu;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++)
		if (atomic_exchange(&gpu->recorder, NULL)) {
			atomic_store(&gpu->records, NULL);
			snprintf(gpu->records_why, sizeof(gpu->records_why), "%.190s", why);
			__atomic_store_n(&state_records(gpu->shared)->on, 0, __ATOMIC_RELEASE);
		}
}

void recording_context(const struct cuda_api *cuda, void *ctx)
{
	struct gpupart_gpu *gpu;
	struct records *records;
	bool was;
	int device;

	if (!ctx || !scope_gpu(0))
		return;
	was = driver_own(true);
	if (!cuda->ctx_push(ctx)) {
		if (!cuda->ctx_device(&device)) {
			driver_context_on(ctx, device);
			gpu = scope_gpu_of(driver_gpu_of_device(device));
			records = gpu ? atomic_load(&gpu->recorder) : NULL;
			if (records && records_context(records, cuda, ctx))
				atomic_store_explicit(&gpu->records, records, memory_order_release);
		}
		cuda->ctx_pop(&(void *){ NULL });
	}
	driver_own(was);
}

void recording_destroyed(uint64_t object, const void *ctx)
{
	struct gpupart_gpu *gpu;
	uint64_t tmd;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		struct records *records = atomic_load(&gpu->records);

		if (!records)
			continue;
		if (object && gpu->streams_known &&
		    peek_word((char *)(uintptr_t)object + gpu->stream_tmd_offset, &tmd))
			records_stream_gone(records, tmd);
		if (ctx)
			records_context_gone(records, ctx);
	}
}

void recording_names(const struct cuda_api *cuda)
{
	struct gpupart_gpu *gpu;
	struct records *records;

	atomic_store(&records_unnamed, false);
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		records = atomic_load(&gpu->records);
		if (records)
			records_names(records->shown->functions, records, cuda);
	}
}

void recording_module_gone(void)
{
	struct gpupart_gpu *gpu;
	struct records *records;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		records = atomic_load(&gpu->records);
		if (records)
			records_module_gone(records);
	}
}

void recording_failed(int result, const void *ctx)
{
	if (loses_context(result))
		recording_destroyed(0, ctx);
}
