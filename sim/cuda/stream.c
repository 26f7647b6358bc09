// SPDX-License-Identifier: MIT
/*
 * Simulates streams, and the memory of a stream that a program could read. A handle points to a
 * word, and this word points to the stream object S. S contains the address of the stream's TMD
 * buffer. The offset of this address differs between processes. Later streams reuse the memory of
 * destroyed streams.
 */
#include <stdlib.h>
#include <string.h>
#include "lib/core/hash.h"
#include "sim/cuda/callback_numbers.h"
#include "sim/cuda/graph.h"

#define OBJECT_BYTES	0x1400
#define OBJECT_WORDS	(OBJECT_BYTES / 8)
#define FIRST_OFFSET	0x100	/* minimum offset of the TMD's address in S */
#define LAST_OFFSET	0x1000
#define NR_STALE	16	/* old TMD addresses, used as decoys */
#define NR_BUCKETS	1024

/* Memory that no stream uses at present. */
struct spare {
	struct spare *next;
	void *memory;
};

static struct spare *handles, *objects, *tmds;
static struct sim_stream *buckets[NR_BUCKETS];
static void *stale[NR_STALE];
static unsigned int nr_tmds;
static uint64_t nr_objects;

/* ------------------------------------------------- memory a program could see */

/*
 * Handles and objects are reused last in, first out. TMDs are reused first in, first out. So an
 * object and its TMD do not stay together.
 */
static void *take(struct spare **list, size_t size)
{
	struct spare *spare = *list;
	void *memory;

	if (!spare)
		return aligned_alloc(16, size);
	*list = spare->next;
	memory = spare->memory;
	free(spare);
	return memory;
}

static void give(struct spare **list, void *memory, bool last)
{
	struct spare *spare = malloc(sizeof(*spare));

	if (!spare || !memory) {
		free(spare);
		return;		/* if memory is out, this block is not reused */
	}
	while (last && *list)
		list = &(*list)->next;
	spare->memory = memory;
	spare->next = *list;
	*list = spare;
}

static uint64_t mix(uint64_t value)
{
	uint64_t seed = sim_faults()->seed;

	return hash_bytes(hash_bytes(HASH_INIT, &seed, sizeof(seed)), &value, sizeof(value)) >> 16;
}

static unsigned int tmd_word(void)
{
	return (FIRST_OFFSET + mix(0) % ((LAST_OFFSET - FIRST_OFFSET) / 8 + 1) * 8) / 8;
}

/*
 * Fills S with arbitrary words. Some words are TMD addresses of other streams, and one word is the
 * TMD address of this stream.
 */
static void object_fill(struct sim_stream *stream)
{
	uint64_t *word = stream->object, serial = ++nr_objects, random;
	bool pointers = !sim_faults()->no_stream_pointer;
	void *other;

	for (unsigned int i = 0; i < OBJECT_WORDS; i++) {
		random = mix(serial * OBJECT_WORDS + i);
		other = stale[random % NR_STALE];
		switch (random >> 8 & 7) {
		case 0:
			word[i] = (uintptr_t)stream->object + random % OBJECT_BYTES / 8 * 8;
			break;
		case 1:
			word[i] = (uintptr_t)stream->ctx;
			break;
		case 2:
			word[i] = random >> 11 & 0xffff;
			break;
		case 3:
			word[i] = pointers && other != stream->tmd && serial % 3 == 0 ?
					  (uintptr_t)other : 0;
			break;
		default:
			word[i] = 0;
		}
	}
	if (pointers)
		word[tmd_word()] = (uintptr_t)stream->tmd;
}

static bool tmd_take(struct sim_stream *stream)
{
	stream->tmd = take(&tmds, SIM_TMD_BYTES);
	if (stream->tmd)
		stale[nr_tmds++ % NR_STALE] = stream->tmd;
	return stream->tmd;
}

void stream_move_tmd(struct sim_stream *stream)
{
	uint64_t *word = stream->object;
	void *old = stream->tmd;

	if (!tmd_take(stream)) {
		stream->tmd = old;
		return;
	}
	give(&tmds, old, true);
	if (word && !sim_faults()->no_stream_pointer)
		word[tmd_word()] = (uintptr_t)stream->tmd;
}

/* ------------------------------------------------------------------ the streams */

static struct sim_stream **bucket(CUstream handle)
{
	return &buckets[((uintptr_t)handle >> 4) % NR_BUCKETS];
}

static void stream_link(struct sim_stream *stream)
{
	struct sim_stream **link = bucket(stream->handle);

	if (stream->handle) {
		stream->next_hash = *link;
		*link = stream;
	}
	stream->next = stream->ctx->streams;
	stream->ctx->streams = stream;
}

static void stream_unlink(struct sim_stream *stream)
{
	struct sim_stream **link;

	if (stream->handle) {
		for (link = bucket(stream->handle); *link != stream; link = &(*link)->next_hash)
			;
		*link = stream->next_hash;
	}
	for (link = &stream->ctx->streams; *link != stream; link = &(*link)->next)
		;
	*link = stream->next;
}

static void stream_free(struct sim_stream *stream)
{
	free(stream->tips);
	give(&handles, stream->handle, false);
	give(&objects, stream->object, false);
	give(&tmds, stream->tmd, true);
	pthread_mutex_destroy(&stream->launch);
	free(stream);
}

static struct sim_stream *stream_make(struct sim_ctx *ctx, struct sim_ctx *green,
				      bool default_one)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->ctx = ctx;
	stream->green = green;
	stream->blocking = true;
	stream->pipe = -1;
	pthread_mutex_init(&stream->launch, NULL);
	if (!tmd_take(stream))
		goto free_stream;
	if (!default_one) {
		stream->handle = take(&handles, 64);
		stream->object = take(&objects, OBJECT_BYTES);
		if (!stream->handle || !stream->object)
			goto free_stream;
		object_fill(stream);
		stream->handle[0] = stream->object;
	}
	stream_link(stream);
	return stream;

free_stream:
	stream_free(stream);
	return NULL;
}

/* Finishes the queued work of the stream. If the work cannot finish, discards the work. */
static void stream_end(struct sim_stream *stream)
{
	struct sim_ctx *ctx = stream->ctx, *own = stream->green ? stream->green : ctx;

	while (stream->head && engine_step(ctx->gpu))
		;
	if (own->legacy == stream)
		own->legacy = NULL;
	capture_discard(stream);
	stream_unlink(stream);
	engine_discard(stream);
	stream_free(stream);
}

void stream_destroy_all(struct sim_ctx *ctx)
{
	struct sim_stream *stream = ctx->base ? ctx->base->streams : ctx->streams, *next;

	for (; stream; stream = next) {
		next = stream->next;
		if (!ctx->base || stream->green == ctx)
			stream_end(stream);
	}
}

/* --------------------------------------------------- per-thread default streams */

static pthread_key_t thread_key;
static uint64_t nr_threads;
static __thread uint64_t thread_number;

/* Destroys the default streams of a thread that ends. */
static void thread_end(void *number)
{
	struct sim_stream *stream, *next;
	struct sim_ctx *ctx;

	sim_enter();
	for (ctx = ctx_first(); ctx; ctx = ctx->next)
		for (stream = ctx->streams; stream; stream = next) {
			next = stream->next;
			if (stream->thread == (uintptr_t)number)
				stream_end(stream);
		}
	sim_leave();
}

static void thread_setup(void)
{
	pthread_key_create(&thread_key, thread_end);
}

static struct sim_stream *get_per_thread(struct sim_ctx *ctx, struct sim_ctx *green)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sim_stream *stream;

	if (!thread_number) {
		pthread_once(&once, thread_setup);
		thread_number = ++nr_threads;
		pthread_setspecific(thread_key, (void *)(uintptr_t)thread_number);
	}
	for (stream = ctx->streams; stream; stream = stream->next)
		if (stream->thread == thread_number && stream->green == green)
			return stream;
	stream = stream_make(ctx, green, true);
	if (stream)
		stream->thread = thread_number;
	return stream;
}

static struct sim_stream *get_legacy(struct sim_ctx *ctx, struct sim_ctx *green)
{
	struct sim_ctx *own = green ? green : ctx;

	if (!own->legacy) {
		own->legacy = stream_make(ctx, green, true);
		if (own->legacy)
			own->legacy->legacy = true;
	}
	return own->legacy;
}

struct sim_stream *stream_get(struct sim_ctx *ctx, CUstream handle, CUresult *error)
{
	struct sim_stream *stream;

	*error = CUDA_SUCCESS;
	if (!handle || handle == CU_STREAM_LEGACY)
		stream = get_legacy(ctx, ctx ? ctx_current_green(ctx) : NULL);
	else if (handle == CU_STREAM_PER_THREAD)
		stream = get_per_thread(ctx, ctx ? ctx_current_green(ctx) : NULL);
	else {
		for (stream = *bucket(handle); stream && stream->handle != handle; )
			stream = stream->next_hash;
		if (!stream)
			*error = CUDA_ERROR_INVALID_HANDLE;
	}
	if (!stream && !*error)
		*error = CUDA_ERROR_OUT_OF_MEMORY;
	return stream;
}

/* ----------------------------------------------------------------- entry points */

struct sim_stream *stream_new(struct sim_ctx *ctx, struct sim_ctx *green, unsigned int flags,
			      int priority)
{
	struct sim_stream *stream = stream_make(ctx, green, false);

	if (stream) {
		stream->blocking = !(flags & CU_STREAM_NON_BLOCKING);
		stream->priority = -(int)launch_priority(priority);
	}
	return stream;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
	struct sim_stream *stream = NULL;
	struct sim_ctx *ctx;
	CUresult error;
	void *object;

	if (!out || flags & ~CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	sim_enter();
	ctx = ctx_current(&error);
	if (ctx) {
		stream = stream_new(ctx, ctx_current_green(ctx), flags, priority);
		if (stream) {
			*out = stream->handle;
			object = stream->object;
		} else {
			error = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	sim_leave();
	if (stream)
		hook_resource(ctx, object, HOOK_STREAM_CREATED);
	return error;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

struct sim_stream *stream_enter(CUstream handle, CUresult *error)
{
	struct sim_ctx *ctx;

	sim_enter();
	ctx = ctx_current(error);
	return ctx ? stream_get(ctx, handle, error) : NULL;
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct sim_stream *stream;
	CUresult error;
	CUcontext ctx = NULL;
	void *object = NULL;

	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	stream = stream_enter(handle, &error);
	if (stream) {
		ctx = stream->ctx;
		object = stream->object;
	}
	sim_leave();
	if (!stream)
		return error;
	hook_resource(ctx, object, HOOK_STREAM_DYING);
	stream = stream_enter(handle, &error);
	if (stream)
		stream_end(stream);
	sim_leave();
	hook_resource(ctx, object, HOOK_STREAM_DESTROYED);
	return error;
}

/*
 * During a sleep, another thread may destroy the stream. So find the stream again after each
 * sleep.
 */
static CUresult synchronize(CUstream handle)
{
	struct sim_stream *stream;
	uint64_t idle_ns;
	CUresult error;

	do {
		stream = stream_enter(handle, &error);
		if (stream)
			error = capture_forbids(stream);
		idle_ns = error || stream->ctx->error ? 0 : engine_idle_ns(stream->ctx->gpu);
		if (!error && !stream->head)
			idle_ns = 0;
		if (!error && !idle_ns)
			error = engine_finish_stream(stream);
		if (!idle_ns && stream)
			pool_waited(stream->ctx->gpu);
		sim_leave();
		if (idle_ns)
			engine_sleep(idle_ns);
	} while (idle_ns);
	return error;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return API_CALL(cuStreamSynchronize, synchronize(stream), (uintptr_t)stream);
}

static CUresult query(CUstream handle)
{
	struct sim_stream *stream;
	CUresult error;

	stream = stream_enter(handle, &error);
	if (stream)
		error = capture_forbids(stream);
	if (!error) {
		if (stream->head && !stream->ctx->error)
			engine_polled(stream->ctx->gpu);
		error = stream->ctx->error;
		if (!error && stream->head)
			error = CUDA_ERROR_NOT_READY;
	}
	return sim_leave_with(error);
}

CUresult cuStreamQuery(CUstream stream)
{
	return API_CALL(cuStreamQuery, query(stream), (uintptr_t)stream);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
	struct sim_stream *stream;
	CUresult error;

	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_enter(handle, &error);
	if (stream)
		*ctx = stream->green ? stream->green : stream->ctx;
	return sim_leave_with(error);
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	struct sim_stream *stream;
	CUresult error;

	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_enter(handle, &error);
	if (stream)
		*priority = stream->priority;
	return sim_leave_with(error);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	CUresult error;

	if (!ctx_current(&error))
		return error;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = 1 - SIM_PRIORITIES;
	return CUDA_SUCCESS;
}
