// SPDX-License-Identifier: MIT
/*
 * The check of a map before it is trusted. Must not know who will use it. A map that was checked
 * is remembered as a hash in the user's cache; one that was learnt stands there too, and counts
 * only with the hash.
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

#define NR_ROUNDS	3	/* launches that leave a TPC out before it counts as proven */
#define MAX_ROUNDS	9	/* other programs on the GPU can hide SMs from a launch */

/*
 * For the parameters of a launch that were measured the map's hash is enough; that others hold
 * a TMD was proven with the map, and is remembered with it.
 */
static void key_make(const struct gpupart_gpu *gpu, uint32_t params_size, char key[20])
{
	uint64_t hash = tmd_map_hash(&gpu->driver.map, &gpu->driver.topo->info);

	if (params_size != LAUNCH_PARAMS_SIZE)
		hash = hash_bytes(hash, &params_size, sizeof(params_size));
	snprintf(key, 20, "%016" PRIx64, hash);
}

/* The file of a map that was learnt: a byte a TPC, its bit. Only with its key it counts. */
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
	/* Older drivers do not tell: an MPS client is one that finds a control daemon's pipe. */
	snprintf(path, sizeof(path), "%s/control", pipe && pipe[0] ? pipe : "/tmp/nvidia-mps");
	return !access(path, F_OK);
}

static bool tpc_seen(const struct gpupart_tpc *tpc, const unsigned int *sm_blocks, bool any)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < tpc->nr_sms; i++)
		nr += sm_blocks[tpc->sms[i]] != 0;
	return any ? nr : nr == tpc->nr_sms;
}

int check_no_capture(struct gpupart *gp, const struct probe *probe, void *stream)
{
	const struct cuda_api *cuda = probe->cuda;
	int capturing = 0;

	if (cuda->stream_capturing(CUDA_STREAM_LEGACY, &capturing) ==
	    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
		return ctx_fail(gp, -EBUSY,
				"a stream that is captured waits for the legacy default stream: a launch that records where it ran would spoil the capture");
	if (stream && !cuda->stream_capturing(stream, &capturing) && capturing)
		return ctx_fail(gp, -EBUSY,
				"stream %p is captured: a launch in it would not run now", stream);
	return 0;
}

/*
 * Leaves out one TPC a launch, every TPC in turn, and looks which SMs ran. Safe
 * whatever the bits truly mean: one bit is set, so all TPCs but one, or but those
 * that this bit stands for, remain.
 */
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream)
{
	const struct gpupart_topology *topo = gpu->driver.topo;
	unsigned int sm_blocks[TOPO_MAX_SMS];
	uint16_t absent[GPUPART_MAX_TPCS] = { 0 }, present[GPUPART_MAX_TPCS] = { 0 };
	unsigned int nr_launches = 0, nr_proven = 0;
	int err;

	err = check_no_capture(gp, probe, NULL);
	if (err)
		return err;
	for (int round = 0; round < MAX_ROUNDS && nr_proven < topo->nr_tpcs; round++) {
		for (unsigned int out = 0; out < topo->nr_tpcs; out++) {
			struct gpupart_tpcset left_out = { { 0 } };
			struct scope_own own = {
				.mode = OWN_LEAVE_OUT, .gpu = gpu, .left_out = &left_out,
			};

			if (topo->nr_tpcs == 1)
				break;	/* it cannot be left out; nothing to mask either */
			gpupart_tpcset_add(&left_out, out);
			err = probe_census(gp, probe, stream, &own, sm_blocks);
			if (err)
				return err;
			nr_launches++;
			if (!own.seen || own.outcome != TMD_CONFINED)
				return ctx_fail(gp, -EPROTO,
						"the driver's callback did not let TPC %u be left out: its TMD is %s one time and something else another",
						out, tmd_layout_name(gpu->driver.map.layout));
			for (unsigned int tpc = 0; tpc < topo->nr_tpcs; tpc++) {
				if (tpc != out) {
					present[tpc] +=
						tpc_seen(&topo->tpcs[tpc], sm_blocks, false);
				} else if (!tpc_seen(&topo->tpcs[tpc], sm_blocks, true)) {
					absent[tpc]++;
				} else {
					return ctx_fail(gp, -EPROTO,
						"mask bit %u of TMD %s does not stand for TPC %u on this GPU: its SMs ran in a launch that left it out; nothing is masked: try `gpupart verify --learn`",
						gpu->driver.map.bit_of_tpc[tpc],
						tmd_layout_name(gpu->driver.map.layout),
						tpc);
				}
			}
		}
		nr_proven = 0;
		for (unsigned int tpc = 0; tpc < topo->nr_tpcs; tpc++)
			nr_proven += (absent[tpc] >= NR_ROUNDS && present[tpc] >= NR_ROUNDS) ||
				     topo->nr_tpcs == 1;
	}
	for (unsigned int tpc = 0; tpc < topo->nr_tpcs && topo->nr_tpcs > 1; tpc++)
		if (present[tpc] < NR_ROUNDS)
			return ctx_fail(gp, -EPROTO,
					"TPC %u could not be proven: its SMs were seen in %u of %u launches that did not leave it out; is another program using the GPU?",
					tpc, present[tpc], nr_launches - absent[tpc]);
	gpu->check.nr_proven = nr_proven;
	gpu->check.nr_launches = nr_launches;
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

/* The size of parameters with which the map was checked; 0: with none. */
static uint32_t params_checked(const struct gpupart_gpu *gpu, const char *key)
{
	char found[20];

	/* From below: the usual 88 costs few looks into the cache. */
	for (uint32_t size = LAUNCH_MIN_PARAMS_SIZE; launch_params_possible(size); size += 8) {
		key_make(gpu, size, found);
		if ((key && !strncmp(key, found, GPUPART_KEY_LEN)) || cache_has(found))
			return size;
	}
	return 0;
}

/*
 * Builds the map of @layout that was checked with parameters of @params_size bytes: by the formula,
 * or as it was learnt. 0: neither was checked, the map is the formula's.
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
			"the mask bits of %s (%s) were not checked yet with driver %s: `gpupart run` does it",
			gpu->driver.topo->info.name, gpu->driver.topo->info.pci,
			gpu->driver.topo->info.driver);
}

/* -------------------------------------------------------------------- streams */

#define OBJECT_WORDS 1024	/* of a stream object, that may hold the TMD's address */

/* What is left of @offsets (a bit a word) once this stream's object was looked at. */
static void keep_offsets(uint64_t object, uint64_t tmd, uint64_t offsets[OBJECT_WORDS / 64])
{
	uint64_t words[OBJECT_WORDS];
	size_t nr = peek((const void *)(uintptr_t)object, words, sizeof(words)) / sizeof(words[0]);

	for (unsigned int i = 0; i < OBJECT_WORDS; i++)
		if (i >= nr || words[i] != tmd)
			offsets[i / 64] &= ~(1ull << (i % 64));
}

static _Atomic uint64_t last_stream_gone[4];
static atomic_uint nr_streams_gone;

static void on_resource(int cbid, const struct resource_params *params)
{
	unsigned int n;

	if (cbid != DRIVER_STREAM_GOES || !RESOURCE_HAS(params, object))
		return;
	n = atomic_fetch_add(&nr_streams_gone, 1) % 4;
	atomic_store_explicit(&last_stream_gone[n], params->object, memory_order_release);
}

/* Whether the driver told of a stream whose object was at @object that it goes; forgets it. */
static bool saw_stream_go(uint64_t object)
{
	for (int i = 0; i < 4; i++) {
		uint64_t expected = object;

		if (atomic_compare_exchange_strong(&last_stream_gone[i], &expected, 0))
			return true;
	}
	return false;
}

#define NR_STREAMS 5

struct learnt {
	void *stream[NR_STREAMS];
	uint64_t object[NR_STREAMS], tmd[NR_STREAMS];
	uint64_t offsets[OBJECT_WORDS / 64];
};

/* The @i'th stream, of one of three kinds. *@why: it has no TMD of its own that stays. */
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
		snprintf(gpu->streams_why, sizeof(gpu->streams_why),
			 "no stream to learn from: %s", cuda_words(cuda, result));
		*why = gpu->streams_why;
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
 * A stream's TMD stands at one address for the stream's life, and the driver's
 * stream object holds that address at the same offset in every stream: found with
 * streams of each kind, so no table of driver versions is needed. A failure here
 * costs stream sets, nothing else.
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
		why = "this driver's stream object does not hold its TMD's address where others do";
	/* The first one last: the driver's word of it is looked for. */
	for (int i = NR_STREAMS; i-- > 0; )
		if (l.stream[i]) {
			cuda->stream_sync(l.stream[i]);
			cuda->stream_destroy(l.stream[i]);
		}
	if (err)
		return err;
	if (!why && !saw_stream_go(l.object[0]))
		why = "this driver does not tell when a stream goes: its set could reach another";
	gpu->stream_tmd_offset = at * 8;
	gpu->check.streams = why ? why : "";
	gpu->streams_known = !why;
	return 0;
}

/* ------------------------------------------------------------------- launches */

/* One of our own, that the driver should tell of. */
static int launch_one(struct gpupart *gp, struct gpupart_gpu *gpu, bool *told)
{
	struct probe_launch launch = { .kernel = PROBE_EMPTY, .blocks = 1, .threads = 32 };
	struct scope_own own = { .mode = OWN_UNTOUCHED, .gpu = gpu };
	const struct cuda_api *cuda = cuda_loaded();
	struct probe *probe;
	int err, result, mode;

	err = probe_get(gp, cuda, gpu, gpu->driver.device, &probe);
	if (!err)
		err = probe_enter(gp, probe, &mode);
	if (err)
		return err;
	result = cuda->stream_create(&launch.stream, CUDA_STREAM_NON_BLOCKING);
	if (result) {
		err = ctx_fail(gp, -EIO, "cuStreamCreate: %s", cuda_words(cuda, result));
		goto leave;
	}
	err = probe_start(gp, probe, &launch, &own);
	*told = api_launch_told();
	cuda->stream_destroy(launch.stream);
leave:
	probe_leave(probe, mode);
	return err;
}

int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu)
{
	static atomic_bool proven;
	const char *expected;
	bool told = false;
	int err, cbid;

	if (!atomic_load_explicit(&scope_launches_watched, memory_order_relaxed))
		return ctx_fail(gp, -EOPNOTSUPP,
				"no next-launch sets here: this driver does not tell of launches");
	if (!api_other_launch(&cbid)) {
		if (gpu->driver.device < 0 || atomic_load_explicit(&proven, memory_order_relaxed))
			return 0;
		err = launch_one(gp, gpu, &told);
		if (err)
			return err;
		atomic_store_explicit(&proven, told, memory_order_relaxed);
		if (told)
			return 0;
	}
	expected = api_other_launch(&cbid);
	if (expected)
		return ctx_fail(gp, -EOPNOTSUPP,
				"no next-launch sets here: what this driver tells of as function %d is not %s",
				cbid, expected);
	return ctx_fail(gp, -EOPNOTSUPP,
			"no next-launch sets here: this driver did not tell of a launch as we know it");
}

/* ------------------------------------------------------------------------ all */

/*
 * Finds the layout of this driver's TMDs, and proves that slot 4 of a launch's parameters holds
 * one: its version is known and its grid is that of each of these launches. Nothing is edited
 * before, whatever size the parameters have.
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
			return ctx_fail(gp, -EOPNOTSUPP,
					"the driver did not call back for a launch");
		if (!launch_params_possible(own.params_size))
			return ctx_fail(gp, -EOPNOTSUPP,
					"the driver did not call back with parameters that we know: they have %u bytes, not a multiple of 8 from %d to %d",
					own.params_size, LAUNCH_MIN_PARAMS_SIZE,
					LAUNCH_MAX_PARAMS_SIZE);
		if (own.nr_bytes >= TMD_MIN_SIZE)
			err = tmd_identify(gp, gpu->driver.compute_class, own.bytes, layout);
		if (own.nr_bytes < TMD_MIN_SIZE ||
		    (!err && !tmd_grid_is(*layout, own.bytes, blocks[i])))
			return ctx_fail(gp, -EOPNOTSUPP,
					"the driver did not call back with a TMD in slot 4 of its %u bytes of parameters: at %p is not the grid of a launch of %u blocks",
					own.params_size, own.tmd, blocks[i]);
	}
	if (!err)
		launch_params_accept(own.params_size);
	return err;
}

/*
 * By a wrong field a launch would get fewer TPCs than it needs, and never end: a row that was not
 * tried shows each in launches of known shape, none of them masked. Two blocks of a cluster are
 * in one TPC, 24 small ones in any GPU at once, else the driver refuses them.
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

		/* A GPU without clusters has none to misjudge. */
		if (!probe->function[launch.kernel])
			break;
		if (!cuda->launch_ex || !cuda->func_attr ||
		    cuda->func_attr(&nr, CUDA_FUNC_ATTR_REGISTERS, probe->function[launch.kernel]))
			return ctx_fail(gp, -EOPNOTSUPP,
					"TMD %s was not tried yet, and this driver has not what its check needs",
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
					"TMD %s does not show a launch of known shape in its %s field: nothing is masked",
					tmd_layout_name(layout), field);
	}
	return err;
}

check_learner *check_learn;

/*
 * Remembers a map that was proven. Where the cache cannot be written the check is made again next
 * time, which does no harm; a map that was learnt, of these @bits, no other process would have.
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
		"the order of the mask bits was learnt, but cannot be kept for other programs");
}

/* Proves the formula's map, which could be built unless @err, or one that is learnt. */
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
		err = ctx_fail(gp, -EIO, "cuStreamCreate: %s", cuda_words(cuda, result));
		goto leave;
	}
	err = prove_params(gp, gpu, probe, stream, &layout);
	if (err)
		goto destroy;
	/* A map that was trusted before stays as it is: other threads' launches read it. */
	if (!known) {
		built = map_find(gp, gpu, layout, NULL, &params_size);
	} else if (gpu->driver.map.layout != layout) {
		err = ctx_fail(gp, -EPROTO,
			       "this driver builds TMDs %s: the limit of this process was given for %s",
			       tmd_layout_name(layout), tmd_layout_name(gpu->driver.map.layout));
		goto destroy;
	}
	if (known || params_size == launch_params_known()) {
		trust(gpu, true);
	} else if (under_mps(cuda, device)) {
		err = ctx_fail(gp, -EOPNOTSUPP,
			       "the mask bits were not checked yet on %s with driver %s, and under MPS they cannot be: run `gpupart verify` once without MPS",
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
