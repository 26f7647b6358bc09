// SPDX-License-Identifier: MIT
/*
 * Builds executable graphs for the sets that apply to their launches. See graph.h. The
 * measurements are in Documentation/internals/hardware.md, "Graphs".
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/confine/graph.h"
#include "lib/confine/graph_builds.h"
#include "lib/confine/graph_rebuild.h"
#include "lib/confine/rules.h"
#include "lib/confine/stream.h"
#include "lib/core/environment.h"
#include "lib/core/fork.h"
#include "lib/core/hash.h"
#include "lib/core/peek.h"
#include "lib/driver/callback.h"
#include "lib/state/state_page.h"

/* The stream on which a graph was captured. The lock protects this struct. */
struct origin {
	bool known, gone;
	struct scope_id id;
	uint64_t object;	/* the driver's stream object; 0 for a default stream */
	struct gpupart_gpu *gpu;	/* if @gone: the GPU of @set; NULL: no set */
	struct tmd_allow set;
};

/* An entry of a hash table whose keys are driver handles. Larger structs begin with an entry. */
struct entry {
	struct entry *next;
	const void *handle;
};

struct executable {
	struct entry entry;
	struct graph_builds builds;
	struct records_mark *mark;	/* the mark that all builds share */
	struct origin origin;
	unsigned int nr_users;	/* number of threads that launch this graph now */
	bool gone;		/* the graph was destroyed; the last user frees this struct */
	unsigned int rules;	/* rules_generation when the graph's functions were last matched */
};

/* A graph that was captured. */
struct captured {
	struct entry entry;
	struct origin origin;
};

#define NR_BUCKETS 256

/* Protects both tables and their entries. No thread holds this lock during a driver call. */
static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(graph_lock, 1);	/* a thread acquires this lock before the lock of scope.c */
static struct entry *executables[NR_BUCKETS], *captures[NR_BUCKETS];

static atomic_uint most_builds;	/* maximum number of builds of a graph; 0: not read yet */

/* If true, clones may no longer match their executable graphs. */
static atomic_bool changes_unseen;

/* The state of this thread's driver call. Calls of the program are not nested. */
static _Thread_local struct {
	struct scope_graph scope;
	struct executable *launched;
	struct graph_build *build;	/* the build that this call launches or uploads */
	void *exec;		/* the program's handle */
	struct scope_id stream;
	uint64_t print;		/* fingerprint of the sets that apply to this launch */
	uint64_t publications;	/* publications(), read before the fingerprint */
	bool stale, rebuilt, partial;
	bool launch, next;	/* launch and not upload; a next-launch set is used */
	bool captured;		/* the stream is being captured, so nothing is launched */
	bool varies;		/* a variant is being instantiated */
	void *made;		/* the new executable graph of an instantiation */
	uint64_t flags;		/* flags of the instantiation */
	struct records *records;	/* records of the GPU of the launch; NULL: none */
	uint64_t tmd_offset;	/* see records_ring_of_stream(); 0: unknown */
} now;

/* ------------------------------------------------------------------------ tables */

static unsigned int bucket_of(const void *handle)
{
	return ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 56;
}

_Static_assert(NR_BUCKETS == 1 << (64 - 56), "bucket_of() returns one");

/* The caller of these functions holds the lock. If @handle has no entry, they return NULL. */
static struct entry **place_of(struct entry **table, const void *handle)
{
	struct entry **at = &table[bucket_of(handle)];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

static void *take(struct entry **table, const void *handle)
{
	struct entry **at = place_of(table, handle), *found = *at;

	if (found)
		*at = found->next;
	return found;
}

/* Returns the old entry of @handle. The driver did not report the end of the old object. */
static void *put(struct entry **table, struct entry *entry, const void *handle)
{
	void *old = take(table, handle);

	entry->handle = handle;
	entry->next = table[bucket_of(handle)];
	table[bucket_of(handle)] = entry;
	return old;
}

static struct executable *executable_of(const void *exec)
{
	return (struct executable *)*place_of(executables, exec);
}

/* Returns the stream on which @graph was captured, or zeros. The caller holds the lock. */
static struct origin origin_of(const void *graph)
{
	const struct captured *c = (struct captured *)*place_of(captures, graph);

	return c ? c->origin : (struct origin){ 0 };
}

/* The caller holds the lock and has removed the entry from its table. */
static void executable_free(struct executable *e)
{
	if (!e)
		return;
	e->gone = true;
	if (e->nr_users)
		return;
	graph_builds_free(&e->builds);
	records_mark_free(e->mark);
	free(e);
}

/* If a program wrongly destroys a graph during a launch, the library must not crash. */
static struct executable *executable_use(const void *exec)
{
	struct executable *e;

	FORK_HOLD(&graph_lock);
	e = executable_of(exec);
	if (e)
		e->nr_users++;
	return e;
}

/* The caller holds the lock. */
static void executable_unuse(struct executable *e)
{
	if (!--e->nr_users && e->gone)
		executable_free(e);
}

void graph_exec_created(void *exec, void *source)
{
	struct executable *e = now.varies ? NULL : calloc(1, sizeof(*e));

	now.made = exec;
	if (!e)
		return;
	e->builds.build[0].exec = exec;
	e->builds.most = atomic_load_explicit(&most_builds, memory_order_relaxed);
	FORK_HOLD(&graph_lock);
	e->origin = origin_of(source);
	executable_free(put(executables, &e->entry, exec));
}

void graph_exec_destroyed(void *exec)
{
	FORK_HOLD(&graph_lock);
	executable_free(take(executables, exec));
}

void graph_destroyed(void *graph)
{
	FORK_HOLD(&graph_lock);
	free(take(captures, graph));
}

/* ------------------------------------------------------------------------ origin */

/* Reads the set that the stream at @id has on @gpu. */
static bool stream_set(struct gpupart_gpu *gpu, const struct scope_id *id, struct tmd_allow *allow)
{
	struct gpupart_tpcset set;

	if (!gpu || !scope_get_known(&gpu->streams, id, &set))
		return false;
	tmd_map_convert(&gpu->driver.map, &set, allow);
	return true;
}

/*
 * Returns the attached GPU on which the stream at @id has a set, or NULL. The stream's GPU may be
 * attached after the capture, so the code searches all GPUs.
 */
static struct gpupart_gpu *find_stream_set(const struct scope_id *id, struct tmd_allow *allow)
{
	struct gpupart_gpu *gpu;
	unsigned int n = 0;

	while ((gpu = scope_gpu(n)) && !stream_set(gpu, id, allow))
		n++;
	return gpu;
}

/* Called when streams are being destroyed. Their sets still exist. The caller holds the lock. */
static void origin_gone(struct origin *origin, uint64_t object, const void *ctx,
			const void *thread)
{
	if (!origin->known || origin->gone ||
	    !((object && origin->object == object) || (ctx && origin->id.ctx == ctx) ||
	      (thread && origin->id.thread == thread)))
		return;
	origin->gpu = find_stream_set(&origin->id, &origin->set);
	origin->gone = true;
}

/*
 * Returns true if the stream of the last launch may be one of the destroyed streams. Until the
 * driver has destroyed a stream that the program created, the word at its handle is its object.
 */
static bool is_destroyed(const struct scope_id *stream, uint64_t object, const void *ctx,
			 const void *thread)
{
	const struct gpupart_gpu *gpu = scope_gpu(0);
	uint64_t its_object;

	if (stream->ctx || stream->thread)
		return (ctx && stream->ctx == ctx) || (thread && stream->thread == thread);
	if (!object || !gpu || !gpu->stream_tmd_offset)
		return object || ctx;
	return !peek_word(stream->handle, &its_object) || its_object == object;
}

void graph_stream_destroyed(uint64_t object, const void *ctx, const void *thread)
{
	FORK_HOLD(&graph_lock);
	for (int b = 0; b < NR_BUCKETS; b++) {
		for (struct entry *c = captures[b]; c; c = c->next)
			origin_gone(&((struct captured *)c)->origin, object, ctx, thread);
		for (struct entry *at = executables[b]; at; at = at->next) {
			struct executable *e = (struct executable *)at;

			origin_gone(&e->origin, object, ctx, thread);
			/* The handle of the stream may be reused. */
			e->builds.stream_gone |= is_destroyed(&e->builds.stream, object, ctx,
							      thread);
			graph_builds_lost(&e->builds, ctx);
		}
	}
}

/*
 * Returns the GPU on which the capture stream of @e has a set. The graph must have been captured.
 * Here, a destroyed stream still has its last set. If there is no set, returns NULL.
 */
static struct gpupart_gpu *origin_set(struct executable *e, struct tmd_allow *allow)
{
	FORK_HOLD(&graph_lock);
	if (!e->origin.gone)
		return find_stream_set(&e->origin.id, allow);
	*allow = e->origin.set;
	return e->origin.gpu;
}

void graph_captured(const struct scope_id *stream, void *graph)
{
	struct captured *c;
	uint64_t object = 0;

	/* Without a mark, a later thread's stream could be mistaken for this stream. */
	if (stream->thread && stream_mark_thread(NULL))
		return;
	/*
	 * A later stream can have the same handle, but has a different object. When a stream is
	 * destroyed, the driver reports its object. If self_check.c cannot prove this, streams
	 * have no sets.
	 */
	if (!stream->ctx && (!peek_word(stream->handle, &object) || !object))
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->origin = (struct origin){ .known = true, .id = *stream, .object = object };
	FORK_HOLD(&graph_lock);
	free(put(captures, &c->entry, graph));
}

/* ------------------------------------------------------------------------ errors */

static _Atomic(const char *) why_not = "";

void graph_error_set(const char *fmt, ...)
{
	static atomic_flag taken = ATOMIC_FLAG_INIT;
	static char text[160];
	va_list ap;

	/* The text is written one time, because callers of graph_error() keep the pointer. */
	if (atomic_flag_test_and_set(&taken))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	atomic_store_explicit(&why_not, text, memory_order_release);
}

const char *graph_error(void)
{
	return atomic_load_explicit(&why_not, memory_order_acquire);
}

/* ------------------------------------------------------------------ what applies */

static uint64_t print_of_all(const struct scope_graph *graph)
{
	uint64_t print = HASH_INIT, functions = 0;
	const struct gpupart_gpu *gpu;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		uint64_t one = scope_fingerprint(
			gpu, graph->has_set && graph->gpu == gpu ? &graph->set : NULL);

		print = hash_words(print, &one, 1);
		functions |= atomic_load_explicit(&gpu->function_sets, memory_order_acquire);
	}
	/* Unlike a stream's set, a next-launch set replaces the sets of functions. */
	functions = graph->is_next && functions;
	return hash_words(print, &functions, 1);
}

/*
 * Returns how often the sets that scope_fingerprint() reads have changed. While nodes are being
 * built, a set can change and then change back. A fingerprint does not show such changes.
 */
static uint64_t publications(void)
{
	const struct gpupart_gpu *gpu;
	uint64_t nr = 0;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++)
		nr += scope_publications(gpu);
	return nr;
}

static bool any_in_use(void)
{
	const struct gpupart_gpu *gpu;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++)
		if (scope_in_use(gpu) & (SCOPE_USED | SCOPE_USED_FUNCTIONS))
			return true;
	return false;
}

/* ----------------------------------------------------------------- instantiation */

static struct records *records_of(const struct gpupart_gpu *gpu)
{
	return gpu ? atomic_load_explicit(&gpu->records, memory_order_acquire) : NULL;
}

/* If there are several GPUs, the GPU of the nodes is not known yet. */
static struct records *only_records(void)
{
	return scope_gpu(0) && scope_gpu(1) ? NULL : records_of(scope_gpu(0));
}

void graph_instantiate_begin(const struct cuda_api *cuda, void *source, uint64_t flags)
{
	struct scope_graph *scope = &now.scope;

	/* With variants, a profiler would see handles that the program does not have. */
	if (!atomic_load_explicit(&most_builds, memory_order_relaxed))
		atomic_store(&most_builds, cuda->graph_instantiate && driver_tools(NULL) ?
						   environment_read().graph_sets : 1);
	now.made = NULL;
	now.flags = flags;
	memset(scope, 0, sizeof(*scope));
	scope->nodes = graph_nodes_new(cuda, source);
	scope->mark = flags & CUDA_DEVICE_LAUNCH ? NULL : records_mark_new(cuda, source);
	records_graph_builds(scope->mark, only_records());
	now.publications = publications();
	now.print = print_of_all(scope);
	scope_graph_begin(scope);
}

void graph_instantiate_end(const struct cuda_api *cuda, void *source, int result)
{
	struct graph_nodes *nodes = now.scope.nodes;
	struct executable *e;
	void *clone = NULL;

	scope_graph_begin(NULL);
	now.scope.nodes = NULL;
	graph_collect(cuda);
	/* @nodes is the table of masks. Without this table, the nodes cannot be built again. */
	if (!result && now.made && nodes && graph_can_rebuild(cuda) &&
	    cuda->graph_clone(&clone, source))
		clone = NULL;
	FORK_HOLD(&graph_lock);
	e = result || !now.made ? NULL : executable_of(now.made);
	if (e) {
		struct graph_build *own = e->builds.build;

		e->mark = now.scope.mark;
		e->builds.clone = clone;
		e->builds.flags = now.flags;
		/* If the GPU itself launches a graph, the graph must keep its handle. */
		if (now.flags & CUDA_DEVICE_LAUNCH)
			e->builds.most = 1;
		own->nodes = nodes;
		own->counted = records_mark_built(e->mark, 0);
		own->built = now.scope.nr_built;
		own->settled = now.publications == publications();
		own->print = now.print;
	} else {
		graph_throw_away(GARBAGE_GRAPH, clone);
		records_mark_free(now.scope.mark);
		free(nodes);
	}
}

/* ------------------------------------------------------------------------ launch */

/* If the rules changed, matches the functions again. The clone contains the functions of @e. */
static __attribute__((noinline)) void match_rules(const struct cuda_api *cuda,
						  struct executable *e)
{
	unsigned int rules = atomic_load_explicit(&rules_generation, memory_order_acquire);

	if (e->rules == rules)
		return;
	e->rules = rules;
	if (e->builds.clone)
		rules_match_graph(cuda, e->builds.clone);
	else if (e->builds.build[0].built)
		state_count(STATE_GRAPH_STALE);
}

/* Builds the nodes again because they were built for other sets. */
static void rebuild(const struct cuda_api *cuda, struct graph_builds *builds,
		    struct graph_build *b)
{
	now.rebuilt = builds->clone &&
		      !atomic_load_explicit(&changes_unseen, memory_order_relaxed) &&
		      graph_rebuild(cuda, b->exec, builds->clone, &now.partial);
	now.stale = !now.rebuilt;
	if (now.rebuilt) {
		b->version = builds->version;
		state_count(STATE_GRAPH_REAPPLIED);
	}
	if (now.launch && (now.stale || now.partial))
		state_count(STATE_GRAPH_STALE);
}

/* Chooses the build to launch or upload. During a capture, this is the program's own build. */
static struct graph_build *pick(const struct cuda_api *cuda, struct executable *e)
{
	struct graph_want want = { &now.scope, &now.stream, now.print, now.launch, false };
	struct graph_builds *builds = &e->builds;
	struct graph_build *b = builds->build;

	/*
	 * In the usual case, nothing changed since the last launch, and this build ran last. Then
	 * a capture makes no difference.
	 */
	if (b == builds->last && !graph_builds_record(builds) &&
	    graph_builds_in(builds, &now.stream) &&
	    graph_build_is_for(b, now.print) && !b->partial) {
		b->used = ++builds->nr_used;
		return b;
	}
	now.captured = now.captured || stream_is_captured(cuda, now.stream.handle);
	if (atomic_load_explicit(&changes_unseen, memory_order_relaxed))
		builds->most = 1;
	if (!now.captured) {
		now.varies = true;
		b = graph_builds_pick(cuda, builds, &want);
		now.varies = false;
	}
	if (want.fresh)
		state_count(STATE_GRAPH_REAPPLIED);
	else if (b->built && !graph_build_is_for(b, now.print))
		rebuild(cuda, builds, b);
	else if (b->partial && now.launch)
		state_count(STATE_GRAPH_STALE);
	return b;
}

void *graph_launch_begin(const struct cuda_api *cuda, void *exec, const struct graph_place *place,
			 bool launch)
{
	struct scope_graph *scope = &now.scope;
	struct executable *e = executable_use(exec);

	memset(scope, 0, sizeof(*scope));
	now.launched = e;
	now.exec = exec;
	now.stream = place->id;
	now.launch = launch;
	now.tmd_offset = place->gpu ? place->gpu->stream_tmd_offset : 0;
	now.stale = now.rebuilt = now.partial = false;
	if (e && atomic_load_explicit(&rules_used, memory_order_acquire))
		match_rules(cuda, e);
	scope->gpu = place->gpu;
	scope->mark = e ? e->mark : NULL;
	now.records = launch ? records_of(place->gpu) : NULL;
	state_graph_begin();
	if (launch)
		records_graph_begins(scope->mark, now.records, now.stream.handle, now.tmd_offset);
	else
		records_graph_builds(scope->mark, records_of(place->gpu));
	now.next = launch && place->gpu && scope_next_take(place->gpu, &scope->set);
	now.captured = now.next && stream_is_captured(cuda, place->id.handle);
	if (now.next && !now.captured) {
		scope->has_set = true;
		scope->is_next = true;
	} else if (place->set) {
		scope->has_set = true;
		scope->set = *place->set;
	} else {
		scope->has_set = stream_set(place->gpu, &place->id, &scope->set);
	}
	if (!scope->has_set && e && e->origin.known) {
		struct gpupart_gpu *gpu = origin_set(e, &scope->set);

		scope->has_set = gpu;
		scope->gpu = gpu ?: scope->gpu;
	}
	now.publications = publications();
	now.print = print_of_all(scope);
	if (e) {
		now.build = pick(cuda, e);
		exec = now.build->exec;
		scope->nodes = now.build->nodes;
		records_mark_built(e->mark, now.build->counted);
	} else if (launch && any_in_use()) {
		/* The graph is older than the attach, so its nodes may contain any set. */
		state_count(STATE_GRAPH_STALE);
	}
	scope_graph_begin(scope);
	return exec;
}

bool graph_is_stale(void)
{
	return now.stale;
}

void *graph_launch_end(const struct cuda_api *cuda, int result)
{
	struct executable *e = now.launched;
	struct graph_build *b = now.build;
	bool any = now.scope.nr_built, launched = now.launch && !result && !now.captured, recorded;
	/* Without a mark, a later thread's stream could be mistaken for this stream. */
	bool unmarked = now.stream.thread && stream_mark_thread(NULL);

	scope_graph_begin(NULL);
	records_graph_ends(now.scope.mark, now.records, now.stream.handle, now.tmd_offset, result);
	state_graph_end();
	now.launched = NULL;
	if (now.next && (result || now.captured))
		state_count(STATE_NEXT_DROPPED);
	if (!e)
		return now.exec;
	b->counted = records_mark_built(e->mark, 0);
	if (any)
		/* If the launch failed, some nodes may still have an earlier set. */
		b->settled = !result && !now.stale && now.publications == publications();
	else if (!result && !b->built)
		b->settled = true;
	if (any || !result)
		b->built = true;
	if (!result && !now.stale)
		b->print = now.print;
	if (now.rebuilt)
		b->partial = now.partial;
	recorded = launched && graph_builds_record(&e->builds) &&
		   !cuda->event_record(e->builds.event, now.stream.handle);
	FORK_HOLD(&graph_lock);
	if (launched) {
		e->builds.recorded = recorded;
		e->builds.last = b;
		e->builds.stream = now.stream;
		atomic_store_explicit(&e->builds.stream_gone, unmarked, memory_order_relaxed);
	}
	executable_unuse(e);
	return now.exec;
}

unsigned int graph_sets(const void *exec)
{
	const struct executable *e;

	FORK_HOLD(&graph_lock);
	e = executable_of(exec);
	return !e ? 0 : e->builds.clone ? e->builds.most : 1;
}

/* ----------------------------------------------------------------------- changes */

static void clone_replace(const struct cuda_api *cuda, struct graph_builds *builds, void *clone)
{
	graph_throw_away(GARBAGE_GRAPH, builds->clone);
	builds->clone = clone;
	builds->version++;
	if (!clone)
		graph_builds_drop(cuda, builds);
}

void graph_changes_unseen(void)
{
	atomic_store_explicit(&changes_unseen, true, memory_order_relaxed);
}

void graph_updated(const struct cuda_api *cuda, void *exec, void *graph)
{
	struct executable *e = executable_use(exec);
	void *clone = NULL;

	if (e && graph_can_rebuild(cuda) && cuda->graph_clone(&clone, graph))
		clone = NULL;
	if (e) {
		clone_replace(cuda, &e->builds, clone);
		records_mark_updated(e->mark, cuda, graph);
		FORK_HOLD(&graph_lock);
		e->origin = origin_of(graph);
		executable_unuse(e);
	}
	graph_collect(cuda);
}

/* Both versions of the parameters begin with the function. */
static bool has_function(const struct cuda_api *cuda, void *node, const void *params)
{
	struct cuda_kernel_node is;

	return !cuda->kernel_get(node, &is) && is.function &&
	       is.function == *(void *const *)params;
}

void graph_changed(const struct cuda_api *cuda, void *exec, void *node, enum graph_change what,
		   const void *params)
{
	struct executable *e = executable_use(exec);
	bool has_clone = e && e->builds.clone && what != GRAPH_ENABLED;
	void *copy = NULL;
	int result = has_clone ? -1 : 0;
	bool same = what == GRAPH_MEMSET || what == GRAPH_MEMCPY;

	if (has_clone && what != GRAPH_OTHER && cuda->graph_find && params &&
	    !cuda->graph_find(&copy, node, e->builds.clone)) {
		if (what == GRAPH_KERNEL || what == GRAPH_KERNEL_OLD)
			same = has_function(cuda, copy, params);
		if (what == GRAPH_KERNEL)
			result = cuda->kernel_set(copy, params);
		else if (what == GRAPH_KERNEL_OLD && cuda->kernel_set_old)
			result = cuda->kernel_set_old(copy, params);
		else if (what == GRAPH_MEMSET)
			result = cuda->memset_set(copy, params);
		else if (what == GRAPH_MEMCPY)
			result = cuda->memcpy_set(copy, params);
	}
	if (e && what == GRAPH_ENABLED) {
		graph_builds_drop(cuda, &e->builds);
		e->builds.most = 1;
	} else if (e && !same) {
		records_mark_unknown(e->mark);
	}
	if (e) {
		e->builds.version++;
		/* A clone that differs from the graph would undo the program's changes. */
		if (result)
			clone_replace(cuda, &e->builds, NULL);
		FORK_HOLD(&graph_lock);
		executable_unuse(e);
	}
	graph_collect(cuda);
}
