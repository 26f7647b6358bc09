// SPDX-License-Identifier: MIT
/* Creates, chooses and removes the builds of an executable graph. See graph_builds.h. */
#include <stdlib.h>
#include <string.h>
#include "lib/confine/graph.h"
#include "lib/confine/graph_builds.h"
#include "lib/confine/stream.h"

/* ------------------------------------------------------------------------ garbage */

static _Atomic(struct garbage {
	struct garbage *next;
	enum graph_garbage what;
	void *object;
} *) garbage;

void graph_throw_away(enum graph_garbage what, void *object)
{
	struct garbage *g = object ? malloc(sizeof(*g)) : NULL;

	if (!g)
		return;
	*g = (struct garbage){ atomic_load(&garbage), what, object };
	while (!atomic_compare_exchange_weak(&garbage, &g->next, g))
		;
}

void graph_collect(const struct cuda_api *cuda)
{
	struct garbage *all, *g;

	if (!atomic_load_explicit(&garbage, memory_order_relaxed))
		return;
	all = atomic_exchange(&garbage, NULL);
	while ((g = all)) {
		all = g->next;
		(g->what == GARBAGE_GRAPH ? cuda->graph_destroy :
		 g->what == GARBAGE_EXEC ? cuda->exec_destroy : cuda->event_destroy)(g->object);
		free(g);
	}
}

/* ------------------------------------------------------------------- when builds have ended */

/* Forgets a build. If @b was launched last, nothing shows the end of this launch. */
static void drop(struct graph_builds *builds, struct graph_build *b)
{
	if (builds->last == b)
		builds->last = NULL;
	graph_throw_away(GARBAGE_EXEC, b->exec);
	free(b->nodes);
	memset(b, 0, sizeof(*b));
}

/*
 * Records an event in the stream of the last launch. This is not possible if this stream may have
 * been destroyed, if it is captured, or if it may be the default stream of another thread.
 */
static void record_end(const struct cuda_api *cuda, struct graph_builds *builds)
{
	void *stream = builds->stream.handle;

	if (builds->recorded || stream == CUDA_STREAM_PER_THREAD ||
	    atomic_load_explicit(&builds->stream_gone, memory_order_relaxed) ||
	    cuda->ctx_push(builds->ctx))
		return;
	if (!stream_is_captured(cuda, stream) &&
	    (builds->event || !cuda->event_create(&builds->event, CUDA_EVENT_NO_TIMING)))
		builds->recorded = !cuda->event_record(builds->event, stream);
	cuda->ctx_pop(&(void *){ NULL });
}

/* Removes a variant. Later launches of other builds must still wait for its last launch. */
static void remove_build(const struct cuda_api *cuda, struct graph_builds *builds,
			 struct graph_build *b)
{
	if (builds->last == b)
		record_end(cuda, builds);
	drop(builds, b);
}

void graph_builds_drop(const struct cuda_api *cuda, struct graph_builds *builds)
{
	for (unsigned int n = 1; n < GRAPH_MAX_BUILDS; n++)
		remove_build(cuda, builds, &builds->build[n]);
}

void graph_builds_lost(struct graph_builds *builds, const void *ctx)
{
	if (!ctx || builds->ctx != ctx)
		return;
	/* The driver has already destroyed these variants, so do not use their handles. */
	for (unsigned int n = 1; n < GRAPH_MAX_BUILDS; n++) {
		builds->build[n].exec = NULL;
		drop(builds, &builds->build[n]);
	}
	builds->event = builds->ctx = NULL;
	builds->recorded = false;
	builds->stream = (struct scope_id){ 0 };	/* there is no launch to wait for */
	builds->most = 1;
}

void graph_builds_free(struct graph_builds *builds)
{
	for (unsigned int n = 1; n < GRAPH_MAX_BUILDS; n++)
		drop(builds, &builds->build[n]);
	free(builds->build[0].nodes);
	graph_throw_away(GARBAGE_GRAPH, builds->clone);
	graph_throw_away(GARBAGE_EVENT, builds->event);
}

/* ------------------------------------------------------------------------ order */

bool graph_builds_in(const struct graph_builds *builds, const struct scope_id *stream)
{
	return !atomic_load_explicit(&builds->stream_gone, memory_order_relaxed) &&
	       scope_id_equal(&builds->stream, stream);
}

/* Returns the context of @stream. Returns NULL if the context is unknown. */
static void *context_of(const struct cuda_api *cuda, const struct scope_id *stream)
{
	void *ctx = stream->ctx;

	return ctx || !cuda->stream_ctx(stream->handle, &ctx) ? ctx : NULL;
}

/* Returns true if @stream is in the thread's current context and in the context of @builds. */
static bool has_context(const struct cuda_api *cuda, struct graph_builds *builds,
			const struct scope_id *stream)
{
	void *ctx;

	if (cuda->ctx_current(&ctx) || ctx != context_of(cuda, stream))
		return false;
	builds->ctx = builds->ctx ?: ctx;
	return builds->ctx == ctx;
}

/* Waits on the CPU until all launches have ended. */
static void wait_for_all(const struct cuda_api *cuda, const struct graph_builds *builds)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;

	if (cuda->ctx_push(builds->ctx))
		return;
	cuda->capture_mode(&mode);
	cuda->ctx_sync();
	cuda->capture_mode(&mode);
	cuda->ctx_pop(&(void *){ NULL });
}

/*
 * Makes @stream wait until the last launch of any build has ended. If no event shows this end, the
 * event is created, and later launches record it: a graph that was launched into two streams may be
 * launched into two streams again. Returns false if only a launch of the last build waits, because
 * the driver itself orders launches of the same build.
 */
static bool follows(const struct cuda_api *cuda, struct graph_builds *builds,
		    const struct scope_id *stream)
{
	if (graph_builds_in(builds, stream) || !builds->stream.handle)
		return true;
	if (!builds->event && has_context(cuda, builds, stream))
		cuda->event_create(&builds->event, CUDA_EVENT_NO_TIMING);
	if (builds->last && !builds->recorded)
		return false;
	/* The build of the last launch was removed, and its end could not be recorded. */
	if (!builds->recorded) {
		wait_for_all(cuda, builds);
		return true;
	}
	return !cuda->event_wait(stream->handle, builds->event, 0);
}

/* ------------------------------------------------------------------------ variants */

/*
 * If several builds match, returns the build that was launched last. A new launch of this build
 * need not wait for an event.
 */
static struct graph_build *find(struct graph_builds *builds, uint64_t print)
{
	if (builds->last && graph_build_is_for(builds->last, print))
		return builds->last;
	for (unsigned int n = 0; n < GRAPH_MAX_BUILDS; n++)
		if (graph_build_is_for(&builds->build[n], print))
			return &builds->build[n];
	return NULL;
}

/* Applies the program's changes to this build. If this fails, removes the build. */
static bool is_current(const struct cuda_api *cuda, struct graph_builds *builds,
		       struct graph_build *b)
{
	struct cuda_graph_update info = { 0 };

	if (b == builds->build || b->version == builds->version)
		return true;
	b->version = builds->version;
	if (!cuda->graph_update(b->exec, builds->clone, &info))
		return true;
	remove_build(cuda, builds, b);
	return false;
}

/*
 * Instantiates and uploads a build. The upload allocates the memory that launches of this build
 * need. If the function fails, there is no new build.
 */
static bool instantiate(const struct cuda_api *cuda, struct graph_builds *builds,
			struct graph_build *b, const struct graph_want *want)
{
	struct scope_graph *scope = want->scope;
	bool good;

	b->nodes = graph_nodes_new(cuda, builds->clone);
	if (!b->nodes || cuda->graph_instantiate(&b->exec, builds->clone,
						 builds->flags & ~(uint64_t)CUDA_GRAPH_UPLOAD))
		return false;
	/*
	 * The driver cannot update some graphs, for example graphs that kernels change. Such a
	 * graph has one build, which is the program's own.
	 */
	b->version = builds->version - 1;
	if (!is_current(cuda, builds, b))
		return false;
	scope->nodes = b->nodes;
	scope_graph_begin(scope);
	good = !cuda->graph_upload(b->exec, want->stream->handle);
	scope_graph_begin(NULL);
	b->counted = records_mark_built(scope->mark, 0);
	return good;
}

/*
 * Makes a variant. Returns NULL if there are too many builds already, or if the driver cannot
 * make the variant.
 */
static struct graph_build *make(const struct cuda_api *cuda, struct graph_builds *builds,
				struct graph_want *want)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	struct graph_build *b = NULL;
	unsigned int nr = 0;

	for (unsigned int n = 0; n < GRAPH_MAX_BUILDS; n++)
		if (builds->build[n].exec)
			nr++;
		else
			b = &builds->build[n];
	if (nr >= builds->most || !has_context(cuda, builds, want->stream))
		return NULL;
	cuda->capture_mode(&mode);
	want->fresh = instantiate(cuda, builds, b, want);
	cuda->capture_mode(&mode);
	if (want->fresh) {
		b->built = true;
		b->print = want->print;
		return b;
	}
	drop(builds, b);
	graph_collect(cuda);
	builds->most = nr;
	return NULL;
}

/* Chooses the build whose nodes will be built for @want. */
static struct graph_build *choose(const struct cuda_api *cuda, struct graph_builds *builds,
				  struct graph_want *want)
{
	struct graph_build *least = builds->build, *b;

	if (!least->built)
		return least;
	for (b = least; b < builds->build + GRAPH_MAX_BUILDS; b++) {
		/*
		 * A set changed while the driver made this build, so choose it and build it
		 * again.
		 */
		if (b->built && !b->settled)
			return b;
		if (b->exec && b->used < least->used)
			least = b;
	}
	b = make(cuda, builds, want);
	return b ? b : least;
}

struct graph_build *graph_builds_pick(const struct cuda_api *cuda, struct graph_builds *builds,
				      struct graph_want *want)
{
	struct graph_build *b = NULL;

	/* An event of one context cannot be recorded in a stream of another context. */
	if (want->launch && builds->ctx && !graph_builds_in(builds, want->stream) &&
	    context_of(cuda, want->stream) != builds->ctx)
		builds->most = 1;
	if (builds->most < 2 || !builds->clone) {
		graph_builds_drop(cuda, builds);
		b = builds->build;
	}
	while (!b && (b = find(builds, want->print)) && !is_current(cuda, builds, b))
		b = NULL;
	if ((!b || b != builds->last) && want->launch && !follows(cuda, builds, want->stream))
		b = builds->last ? builds->last : builds->build;
	while (!b && !is_current(cuda, builds, b = choose(cuda, builds, want)))
		b = NULL;
	b->used = ++builds->nr_used;
	return b;
}
