// SPDX-License-Identifier: MIT
/*
 * Checks a map before the library trusts it. After a check, the user's cache contains the hash of
 * the map. If a map was learnt, the cache also contains this map. Without its hash, a stored map
 * is not valid.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/confine/watched_functions.h"
#include "lib/confine/check_cache.h"
#include "lib/confine/launch.h"
#include "lib/confine/recording.h"
#include "lib/confine/self_check.h"
#include "lib/core/environment.h"
#include "lib/core/hash.h"
#include "lib/core/peek.h"
#include "lib/driver/callback.h"
#include "lib/private.h"

/* this number of launches without a TPC proves the mask bit of the TPC */
#define NR_ROUNDS	3
/* maximum number of rounds; other programs can keep SMs busy, so NR_ROUNDS may be too few */
#define MAX_ROUNDS	9

/*
 * Makes the key of a map. If the launch parameters have the measured size, the key is the hash of
 * the map. If the parameters have another size, the check also proves this size. So the key then
 * contains this size.
 */
static void key_make(const struct gpupart_gpu *gpu, uint32_t params_size, char key[20])
{
	uint64_t hash = tmd_map_hash(&gpu->driver.map, &gpu->driver.topo->info);

	if (params_size != LAUNCH_PARAMS_SIZE)
		hash = hash_bytes(hash, &params_size, sizeof(params_size));
	snprintf(key, 20, "%016" PRIx64, hash);
}

/*
 * Makes the name of the file of a learnt map. The file has one byte for each TPC. This byte is
 * the number of the TPC's mask bit. Without its key in the cache, the file is not valid.
 */
static void learnt_name(const struct gpupart_gpu *gpu, char name[64])
{
	snprintf(name, 64, "%s-%s", tmd_layout_name(gpu->driver.map.layout),
		 gpu->driver.topo->info.uuid);
}

/* ------------------------------------------------------------------ the check */

static bool under_mps(const struct cuda_api *cuda, int device)
{
	const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[4096];
	int mps = 0;

	if (!cuda->device_attr(&mps, CUDA_ATTR_MPS_ENABLED, device))
		return mps;
	/*
	 * Older drivers do not report MPS. With such a driver, the pipe of the control daemon
	 * shows that a process is an MPS client.
	 */
	snprintf(path, sizeof(path), "%s/control", pipe && pipe[0] ? pipe : "/tmp/nvidia-mps");
	return !access(path, F_OK);
}

int check_no_capture(struct gpupart *gp, const struct probe *probe, void *stream)
{
	const struct cuda_api *cuda = probe->cuda;
	int capturing = 0;

	if (cuda->stream_capturing(CUDA_STREAM_LEGACY, &capturing) ==
	    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
		return ctx_fail(gp, -EBUSY,
				"a stream that waits for the legacy default stream is being captured: reading a record would end it");
	if (stream && !cuda->stream_capturing(stream, &capturing) && capturing)
		return ctx_fail(gp, -EBUSY,
				"stream %p is being captured, so a launch would not run",
				stream);
	return 0;
}

int check_without(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream,
		  unsigned int tpc, struct gpupart_tpcset *some, struct gpupart_tpcset *whole)
{
	struct gpupart_tpcset left_out = { { 0 } };
	struct scope_own own = { .mode = OWN_LEAVE_OUT, .gpu = gpu, .left_out = &left_out };
	int err;

	gpupart_tpcset_add(&left_out, tpc);
	err = probe_census(gp, probe, stream, &own, some, whole);
	if (!err && (!own.seen || own.outcome != TMD_CONFINED))
		err = ctx_fail(gp, -EPROTO,
			       "mask bit %u could not be set in a probe launch, because the launch's TMD was not of version %s",
			       gpu->driver.map.bit_of_tpc[tpc],
			       tmd_layout_name(gpu->driver.map.layout));
	return err;
}

/*
 * Proves the map by launches. Each launch leaves out one TPC, and every TPC is left out in turn.
 * The function checks on which SMs each launch ran. Even with a wrong map, the launches are safe.
 * Each launch sets one mask bit, and can run on all TPCs that do not belong to this bit.
 */
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream)
{
	const unsigned int nr_tpcs = gpu->driver.topo->nr_tpcs;
	unsigned int nr_rounds = 0, nr_proven = 0, present[GPUPART_MAX_TPCS] = { 0 };
	struct gpupart_tpcset some, whole;
	int err;

	err = check_no_capture(gp, probe, NULL);
	if (err)
		return err;
	/* A launch needs at least one TPC. So if there is one TPC, nothing is masked. */
	if (nr_tpcs == 1)
		nr_proven = 1;
	for (; nr_rounds < MAX_ROUNDS && nr_proven < nr_tpcs; nr_rounds++) {
		for (unsigned int out = 0; out < nr_tpcs; out++) {
			err = check_without(gp, gpu, probe, stream, out, &some, &whole);
			if (err)
				return err;
			if (gpupart_tpcset_has(&some, out))
				return ctx_fail(gp, -EPROTO,
						"mask bit %u of TMD %s does not disable TPC %u on this GPU: all SMs of this TPC ran blocks of a launch with this bit set; no launch is confined; try `gpupart verify --learn`",
						gpu->driver.map.bit_of_tpc[out],
						tmd_layout_name(gpu->driver.map.layout), out);
			for (unsigned int tpc = 0; tpc < nr_tpcs; tpc++)
				present[tpc] += gpupart_tpcset_has(&whole, tpc);
		}
		nr_proven = 0;
		for (unsigned int tpc = 0; tpc < nr_tpcs; tpc++)
			nr_proven += nr_rounds + 1 >= NR_ROUNDS && present[tpc] >= NR_ROUNDS;
	}
	for (unsigned int tpc = 0; tpc < nr_tpcs && nr_tpcs > 1; tpc++)
		if (present[tpc] < NR_ROUNDS)
			return ctx_fail(gp, -EPROTO,
					"the mask bit of TPC %u could not be proven: this TPC ran blocks in only %u of the %u launches that were allowed to use it; is another program using the GPU?",
					tpc, present[tpc], nr_rounds * (nr_tpcs - 1));
	gpu->check.nr_proven = nr_proven;
	gpu->check.nr_launches = nr_rounds * nr_tpcs;
	return 0;
}

static void trust(struct gpupart_gpu *gpu, bool from_cache)
{
	gpu->check.layout = tmd_layout_name(gpu->driver.map.layout);
	gpu->check.from_cache = from_cache;
	if (from_cache)
		gpu->check.nr_proven = gpu->driver.topo->nr_tpcs;
	key_make(gpu, launch_params_known(), gpu->check.key);
	atomic_store_explicit(&gpu->trusted, true, memory_order_release);
}

/*
 * Returns the size of the launch parameters for which the map was checked. If the map was not
 * checked, returns 0.
 */
static uint32_t params_checked(const struct gpupart_gpu *gpu, const char *key)
{
	char found[20];

	/*
	 * The loop tries the sizes in ascending order. So the loop finds the usual size 88 with
	 * few look-ups in the cache.
	 */
	for (uint32_t size = LAUNCH_MIN_PARAMS_SIZE; launch_params_possible(size); size += 8) {
		key_make(gpu, size, found);
		if ((key && !strncmp(key, found, GPUPART_KEY_LEN)) || cache_has(found))
			return size;
	}
	return 0;
}

/*
 * Builds a map for @layout that was already checked. This map is a learnt map, or the map of the
 * layout's formula. The function sets *params_size to the size of launch parameters for which the
 * map was checked. If no map was checked, it builds the map of the formula and sets *params_size
 * to 0.
 */
static int map_find(struct gpupart *gp, struct gpupart_gpu *gpu, const struct tmd_layout *layout,
		    const char *key, uint32_t *params_size)
{
	const struct gpupart_topology *topo = gpu->driver.topo;
	uint8_t bits[GPUPART_MAX_TPCS];
	const char *maps;
	char name[64];
	ssize_t nr;
	int err;

	err = tmd_map_build(gp, topo, layout, NULL, &gpu->driver.map);
	*params_size = err ? 0 : params_checked(gpu, key);
	learnt_name(gpu, name);
	maps = environment_read().maps;
	nr = *params_size ? -1 : cache_read(NULL, name, bits, sizeof(bits));
	if (nr < 0 && !*params_size && maps)
		nr = cache_read(maps, name, bits, sizeof(bits));
	if (nr != topo->nr_tpcs)
		return err;
	if (!tmd_map_build(NULL, topo, layout, bits, &gpu->driver.map))
		*params_size = params_checked(gpu, key);
	return *params_size ? 0 : tmd_map_build(gp, topo, layout, NULL, &gpu->driver.map);
}

int check_gpu_known(struct gpupart *gp, struct gpupart_gpu *gpu, const char *key)
{
	const struct tmd_layout *layout;
	uint32_t params_size;
	int err = 0;

	for (unsigned int n = 0;
	     (layout = tmd_layout_of_class(gpu->driver.compute_class, n)); n++) {
		err = map_find(gp, gpu, layout, key, &params_size);
		if (params_size) {
			launch_params_accept(params_size);
			trust(gpu, true);
			return 0;
		}
	}
	if (err)
		return err;
	return ctx_fail(gp, -EOPNOTSUPP,
			"the mask bits of %s (%s) were not checked yet with driver %s: `gpupart run` checks them",
			gpu->driver.topo->info.name, gpu->driver.topo->info.pci,
			gpu->driver.topo->info.driver);
}

/* -------------------------------------------------------------------- streams */

#define OBJECT_WORDS 1024	/* number of words of a stream object in which the code searches
				 * for the TMD's address */

/*
 * Argument @offsets has one bit for each word of a stream object. If a word of this object does
 * not contain the TMD's address, the function clears its bit.
 */
static void keep_offsets(uint64_t object, uint64_t tmd, uint64_t offsets[OBJECT_WORDS / 64])
{
	uint64_t words[OBJECT_WORDS];
	size_t nr = peek((const void *)(uintptr_t)object, words, sizeof(words)) / sizeof(words[0]);

	for (unsigned int i = 0; i < OBJECT_WORDS; i++)
		if (i >= nr || words[i] != tmd)
			offsets[i / 64] &= ~(1ull << (i % 64));
}

/*
 * The object of the stream that is being destroyed. When the driver reports its end, this
 * variable becomes 0.
 */
static _Atomic uint64_t awaited;

static void on_resource(int cbid, const struct resource_params *params)
{
	uint64_t object;

	if (cbid != DRIVER_STREAM_DESTROYED || !RESOURCE_HAS(params, object))
		return;
	object = params->object;
	atomic_compare_exchange_strong(&awaited, &object, 0);
}

#define NR_STREAMS 5

struct learnt {
	void *stream[NR_STREAMS];
	uint64_t object[NR_STREAMS], tmd[NR_STREAMS];
	uint64_t offsets[OBJECT_WORDS / 64];
};

/*
 * Learns the offsets from stream number @i. There are three kinds of streams. If the stream has
 * no permanent TMD, the function sets *why to the reason.
 */
static int learn_stream(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			struct learnt *l, int i, const char **why)
{
	struct probe_launch launch = { .kernel = PROBE_EMPTY, .blocks = 1, .threads = 32 };
	const struct cuda_api *cuda = probe->cuda;
	int result, err;

	if (i % 3 == 2)
		result = cuda->stream_create_priority(&l->stream[i], CUDA_STREAM_NON_BLOCKING, -1);
	else
		result = cuda->stream_create(&l->stream[i], i % 3 ? CUDA_STREAM_NON_BLOCKING : 0);
	if (result) {
		snprintf(gpu->streams_error, sizeof(gpu->streams_error),
			 "no stream could be created to learn from: %s",
			 cuda_strerror(cuda, result));
		*why = gpu->streams_error;
		return 0;
	}
	launch.stream = l->stream[i];
	if (!peek_word(l->stream[i], &l->object[i])) {
		*why = "this driver's stream handles are not pointers";
		return 0;
	}
	for (int turn = 0; turn < 2; turn++) {
		struct scope_own own = { .mode = OWN_UNTOUCHED, .gpu = gpu };

		err = probe_start(gp, probe, &launch, &own);
		if (err)
			return err;
		if (turn && l->tmd[i] != (uintptr_t)own.tmd)
			*why = "this driver moves a stream's TMD from launch to launch";
		l->tmd[i] = (uintptr_t)own.tmd;
	}
	for (int j = 0; j < i && !*why; j++)
		if (l->tmd[j] == l->tmd[i])
			*why = "two streams of this driver share a TMD";
	keep_offsets(l->object[i], l->tmd[i], l->offsets);
	return 0;
}

/*
 * While a stream exists, the address of its TMD does not change. The driver's stream object
 * contains this address at the same offset for every stream. This function finds the offset with
 * streams of each kind. So the library needs no table of driver versions. If the function fails,
 * streams cannot have sets, but everything else works.
 */
static int learn_streams(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe)
{
	static const struct driver_observer observer = {
		.name = "self_check", .resource = on_resource,
	};
	const struct cuda_api *cuda = probe->cuda;
	struct learnt l = { 0 };
	const char *why = NULL;
	unsigned int at = 0;
	int err = driver_observe(gp, cuda, &observer);

	if (err)
		return err;
	memset(l.offsets, 0xff, sizeof(l.offsets));
	for (int i = 0; i < NR_STREAMS && !err && !why; i++)
		err = learn_stream(gp, gpu, probe, &l, i, &why);
	while (at < OBJECT_WORDS && !(l.offsets[at / 64] >> (at % 64) & 1))
		at++;
	if (at == OBJECT_WORDS && !why)
		why = "this driver's stream objects hold the TMD's address at different offsets";
	/* The first stream is destroyed last. The driver must report the end of this stream. */
	atomic_store(&awaited, l.object[0]);
	for (int i = NR_STREAMS; i-- > 0; )
		if (l.stream[i]) {
			cuda->stream_sync(l.stream[i]);
			cuda->stream_destroy(l.stream[i]);
		}
	if (err)
		return err;
	if (!why && atomic_load(&awaited))
		why = "this driver does not report destroyed streams: sets could reach others";
	gpu->stream_tmd_offset = why ? 0 : at * 8;
	gpu->check.streams = why ? why : "";
	gpu->streams_known = !why;
	return 0;
}

/* ------------------------------------------------------------------- launches */

/* Makes a probe launch that the driver must report. */
static int launch_one(struct gpupart *gp, struct gpupart_gpu *gpu, bool *reported)
{
	struct probe_launch launch = { .kernel = PROBE_EMPTY, .blocks = 1, .threads = 32 };
	struct scope_own own = { .mode = OWN_UNTOUCHED, .gpu = gpu };
	const struct cuda_api *cuda = cuda_loaded();
	struct probe *probe;
	int err, result, mode;

	err = probe_begin(gp, gpu, &probe, &mode);
	if (err)
		return err;
	result = cuda->stream_create(&launch.stream, CUDA_STREAM_NON_BLOCKING);
	if (result) {
		err = ctx_fail(gp, -EIO, "cuStreamCreate: %s", cuda_strerror(cuda, result));
		goto leave;
	}
	err = probe_start(gp, probe, &launch, &own);
	*reported = api_launch_reported();
	cuda->stream_destroy(launch.stream);
leave:
	probe_leave(probe, mode);
	return err;
}

int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu)
{
	static atomic_bool proven;
	const char *expected;
	bool reported = false;
	int err, cbid;

	if (!atomic_load_explicit(&scope_launches_watched, memory_order_relaxed))
		return ctx_fail(gp, -EOPNOTSUPP,
				"next-launch sets are not available: this driver does not report launches");
	if (!api_other_launch(&cbid)) {
		if (gpu->driver.device < 0 || atomic_load_explicit(&proven, memory_order_relaxed))
			return 0;
		err = launch_one(gp, gpu, &reported);
		if (err)
			return err;
		atomic_store_explicit(&proven, reported, memory_order_relaxed);
		if (reported)
			return 0;
	}
	expected = api_other_launch(&cbid);
	if (expected)
		return ctx_fail(gp, -EOPNOTSUPP,
				"next-launch sets are not available: function %d of this driver is not %s",
				cbid, expected);
	return ctx_fail(gp, -EOPNOTSUPP,
			"next-launch sets are not available: this driver did not report a launch in the known form");
}

/* ------------------------------------------------------------------------ all */

/* Returns an error for a launch callback of an unknown form. */
#define callback_fail(gp, ...) \
	(driver_callback_unusable(), ctx_fail(gp, -EOPNOTSUPP, __VA_ARGS__))

/*
 * Finds the layout of this driver's TMDs. Also proves that slot 4 of the launch parameters
 * contains the address of a TMD. For this proof, the function makes several launches. The TMD of
 * each launch must have a known version and must contain the launch's grid. Before this proof,
 * the library does not change any TMD.
 */
static int prove_params(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			void *stream, const struct tmd_layout **layout)
{
	static const unsigned int blocks[] = { 3, 61, 7 };
	struct scope_own own;
	int err = 0;

	for (unsigned int i = 0; !err && i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		struct probe_launch launch = {
			.kernel = PROBE_EMPTY, .stream = stream, .blocks = blocks[i], .threads = 32,
		};

		own = (struct scope_own){ .mode = OWN_UNTOUCHED, .gpu = gpu };
		err = probe_start(gp, probe, &launch, &own);
		if (!err)
			err = probe_finish(gp, probe, stream, 0);
		if (err)
			return err;
		if (!own.params_size)
			return callback_fail(gp, "the driver did not call the launch callback");
		if (!launch_params_possible(own.params_size))
			return callback_fail(gp,
					"the driver's launch callback has parameters of %u bytes: must be a multiple of 8 from %d to %d",
					own.params_size, LAUNCH_MIN_PARAMS_SIZE,
					LAUNCH_MAX_PARAMS_SIZE);
		if (own.nr_bytes >= TMD_MIN_SIZE)
			err = tmd_identify(gp, gpu->driver.compute_class, own.bytes, layout);
		if (own.nr_bytes < TMD_MIN_SIZE ||
		    (!err && !tmd_grid_is(*layout, own.bytes, blocks[i])))
			return callback_fail(gp,
					"slot 4 of the driver's launch parameters (%u bytes) does not point to a TMD: the memory at %p does not describe a launch of %u blocks",
					own.params_size, own.tmd, blocks[i]);
	}
	if (!err)
		launch_params_accept(own.params_size);
	return err;
}

/*
 * Proves the fields of a layout row that was never tried on a GPU. If a field were wrong, a
 * launch could get too few TPCs and never end. The function makes unmasked launches of known
 * shapes, and checks that the fields in their TMDs have the right values. The two blocks of a
 * cluster run in one TPC. Every GPU can run 24 small blocks at the same time. If a GPU could not
 * run these blocks, the driver would refuse the launch.
 */
static int prove_fields(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			void *stream, const struct tmd_layout *layout)
{
	static const struct tmd_shape shapes[] = {
		{ { 5, 3, 2 }, { 8, 4, 2 }, .shared = 8192 },
		{ { 4, 3, 2 }, { 4, 2, 8 }, .cooperative = true, .shared = 24576 },
		{ { 6, 5, 3 }, { 32, 1, 1 }, .cluster = { 2, 1, 1 } },
		{ { 3, 2, 1 }, { 32, 1, 1 }, .cluster = { 1, 2, 1 } },
		{ { 2, 1, 2 }, { 32, 1, 1 }, .cluster = { 1, 1, 2 } },
		{ { 4, 3, 2 }, { 32, 1, 1 }, .cluster = { 2, 1, 1 }, .cooperative = true },
	};
	const struct cuda_api *cuda = probe->cuda;
	int err = 0;

	for (unsigned int i = 0; !err && tmd_layout_needs_shapes(layout) &&
	     i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct scope_own own = { .mode = OWN_UNTOUCHED, .gpu = gpu };
		struct tmd_shape shape = shapes[i];
		struct probe_launch launch = {
			.kernel = shape.cluster[0] ? PROBE_CLUSTER : PROBE_EMPTY,
			.stream = stream, .shape = &shape,
		};
		const char *field;
		int nr = 0;

		/* On a GPU without clusters this field is not used. */
		if (!probe->function[launch.kernel])
			break;
		if (!cuda->launch_ex || !cuda->func_attr ||
		    cuda->func_attr(&nr, CUDA_FUNC_ATTR_REGISTERS, probe->function[launch.kernel]))
			return ctx_fail(gp, -EOPNOTSUPP,
					"TMD %s was not checked yet, and this driver lacks functions that the check needs",
					tmd_layout_name(layout));
		shape.registers = nr;
		err = probe_start(gp, probe, &launch, &own);
		if (!err)
			err = probe_finish(gp, probe, stream, 0);
		if (err)
			return err;
		field = own.nr_bytes == sizeof(own.bytes)
			? tmd_shape_differs(layout, own.bytes, &shape) : "last";
		if (field)
			return ctx_fail(gp, -EPROTO,
					"TMD %s has the wrong %s field in a launch of known shape, so no launch is confined",
					tmd_layout_name(layout), field);
	}
	return err;
}

check_learner *check_learn;

/*
 * Stores a proven map. A learnt map has @bits; for the map of the formula, @bits is NULL. If the
 * cache cannot be written, the next process repeats the check. But no other process would have a
 * learnt map, so for a learnt map the function returns an error.
 */
static int cache_map(struct gpupart *gp, const struct gpupart_gpu *gpu, const uint8_t *bits)
{
	char name[64], line[24];
	int err;

	learnt_name(gpu, name);
	err = bits ? cache_write(gp, name, bits, gpu->driver.topo->nr_tpcs) : 0;
	key_make(gpu, launch_params_known(), name);
	snprintf(line, sizeof(line), "%.16s\n", name);
	if (!err)
		err = cache_write(bits ? gp : NULL, name, line, 17);
	return !err || !bits ? 0 : ctx_fail_because(gp, err,
		"the order of the mask bits was learnt, but cannot be stored for other programs");
}

/*
 * Proves the map of the formula. If this fails, learns and proves a map. If the map of the
 * formula could not be built, the caller passes the error @err.
 */
static int prove_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
		     void *stream, int err)
{
	const struct tmd_layout *layout = gpu->driver.map.layout;
	uint8_t bits[GPUPART_MAX_TPCS];

	if (!err)
		err = check_map(gp, gpu, probe, stream);
	if (!err)
		return cache_map(gp, gpu, NULL);
	if (!check_learn)
		return err;
	err = check_learn(gp, gpu, probe, stream, tmd_layout_nr_bits(layout), bits);
	if (!err)
		err = tmd_map_build(gp, gpu->driver.topo, layout, bits, &gpu->driver.map);
	if (!err)
		err = check_map(gp, gpu, probe, stream);
	return err ? err : cache_map(gp, gpu, bits);
}

int check_gpu(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe)
{
	const struct cuda_api *cuda = probe->cuda;
	bool known = atomic_load_explicit(&gpu->trusted, memory_order_acquire);
	const struct tmd_layout *layout;
	uint32_t params_size = 0;
	int built = 0, err, result, mode, device = 0;
	void *stream;

	err = probe_enter(gp, probe, &mode);
	if (err)
		return err;
	cuda->ctx_device(&device);
	result = cuda->stream_create(&stream, CUDA_STREAM_NON_BLOCKING);
	if (result) {
		err = ctx_fail(gp, -EIO, "cuStreamCreate: %s", cuda_strerror(cuda, result));
		goto leave;
	}
	err = prove_params(gp, gpu, probe, stream, &layout);
	if (err)
		goto destroy;
	/*
	 * If a map is already trusted, do not change it, because launches of other threads read
	 * the map.
	 */
	if (!known) {
		built = map_find(gp, gpu, layout, NULL, &params_size);
	} else if (gpu->driver.map.layout != layout) {
		err = ctx_fail(gp, -EPROTO,
			       "this driver builds TMDs of version %s, but the limit of this process was set for TMDs of version %s",
			       tmd_layout_name(layout), tmd_layout_name(gpu->driver.map.layout));
		goto destroy;
	}
	if (known || params_size == launch_params_known()) {
		trust(gpu, true);
	} else if (under_mps(cuda, device)) {
		err = ctx_fail(gp, -EOPNOTSUPP,
			       "the mask bits were not checked yet on %s with driver %s, and cannot be checked under MPS: run `gpupart verify` once without MPS",
			       gpu->driver.topo->info.pci, gpu->driver.topo->info.driver);
		goto destroy;
	} else {
		err = prove_fields(gp, gpu, probe, stream, layout);
		if (!err)
			err = prove_map(gp, gpu, probe, stream, built);
		if (err)
			goto destroy;
		trust(gpu, false);
	}
	err = learn_streams(gp, gpu, probe);
	if (!err)
		recording_prove(gpu, probe, stream);
destroy:
	cuda->stream_destroy(stream);
leave:
	probe_leave(probe, mode);
	return err;
}
