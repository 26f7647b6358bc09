// SPDX-License-Identifier: MIT
/*
 * See graph.h. What was measured: Documentation/internals/hardware.md, "Graphs". Must not know
 * what a mask bit means, nor how nodes are built again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/confine/graph.h"
#include "lib/confine/graph_rebuild.h"
#include "lib/confine/rules.h"
#include "lib/confine/stream.h"
#include "lib/core/fork.h"
#include "lib/core/hash.h"
#include "lib/core/peek.h"
#include "lib/state/process_block.h"

/*
 * The stream that a graph was captured on, under the lock. Its GPU may be attached later,
 * and its sets come later still: it is looked for in the tables of all.
 */
struct origin {
	bool known, gone;
	struct scope_id id;
	uint64_t object;	/* the driver's; 0 for a default stream */
	struct gpupart_gpu *gpu;	/* it went, and had @set on this one; NULL: none */
	struct tmd_allow set;
};

/* Of a table by the driver's handles: the first member of what it is an entry of. */
struct entry {
	struct entry *next;
	const void *handle;
};

struct executable {
	struct entry entry;
	void *clone;		/* of its graph, with all changes; NULL: cannot be built again */
	struct graph_nodes *nodes;
	struct records_mark *mark;
	struct origin origin;
	unsigned int nr_users;	/* threads that launch it now */
	bool gone;		/* whoever uses it last frees it */
	bool built;		/* launched or uploaded once */
	bool settled;		/* and all of its nodes with what @print stands for */
	bool partial;		/* all but some, which the driver refuses to change */
	unsigned int rules;	/* rules_generation when its functions were matched last */
	uint64_t print;
};

/* A graph that was captured. */
struct captured {
	struct entry entry;
	struct origin origin;
};

#define NR_BUCKETS 256

/* Both tables and what they hold. Never held across a call of the driver. */
static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(graph_lock, 1);	/* before scope.c's */
static struct entry *executables[NR_BUCKETS], *captures[NR_BUCKETS];

/* Clones are no longer what the program made of their executables. */
static atomic_bool changes_unseen;

/* What this thread does; no call of it is inside another of its own, ours apart. */
static _Thread_local struct {
	struct scope_graph scope;
	struct executable *launched;
	uint64_t print;		/* what applies to this launch */
	uint64_t publications;	/* before it was asked for */
	bool stale, rebuilt, partial;
	bool next, captured;	/* it took the thread's next-launch set; and is none */
	void *made;		/* by the instantiation that this thread is in */
	struct records *records;	/* of the stream that it launches into; NULL: none */
} now;

/* ------------------------------------------------------------------------ tables */

static unsigned int bucket_of(const void *handle)
{
	return ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 56;
}

_Static_assert(NR_BUCKETS == 1 << (64 - 56), "bucket_of() gives one");

/* These four under the lock; NULL where there is no entry for @handle. */
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

/* Returns what had the handle before: it went with its context, without a word. */
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

/* The stream that @graph was captured on, if it was; under the lock. */
static struct origin origin_of(const void *graph)
{
	const struct captured *c = (struct captured *)*place_of(captures, graph);

	return c ? c->origin : (struct origin){ 0 };
}

/* Clones whose owner went inside the driver, where it cannot be called; under the lock. */
static struct clone {
	struct clone *next;
	void *graph;
} *garbage;

/* One that there is no memory to note is lost to the driver's. */
static void throw_away(void *graph)
{
	struct clone *clone = graph ? malloc(sizeof(*clone)) : NULL;

	if (!clone)
		return;
	*clone = (struct clone){ garbage, graph };
	garbage = clone;
}

static void collect(const struct cuda_api *cuda)
{
	struct clone *all, *clone;

	pthread_mutex_lock(&graph_lock);
	all = garbage;
	garbage = NULL;
	pthread_mutex_unlock(&graph_lock);
	while ((clone = all)) {
		all = clone->next;
		cuda->graph_destroy(clone->graph);
		free(clone);
	}
}

/* Of one that is in no bucket; under the lock. */
static void executable_free(struct executable *e)
{
	if (!e)
		return;
	e->gone = true;
	if (e->nr_users)
		return;
	throw_away(e->clone);
	records_mark_free(e->mark);
	free(e->nodes);
	free(e);
}

/* A launch while another thread destroys what it launches is wrong, and no reason to crash. */
static struct executable *executable_use(const void *exec)
{
	struct executable *e;

	pthread_mutex_lock(&graph_lock);
	e = executable_of(exec);
	if (e)
		e->nr_users++;
	pthread_mutex_unlock(&graph_lock);
	return e;
}

static void executable_unuse(struct executable *e)
{
	pthread_mutex_lock(&graph_lock);
	if (!--e->nr_users && e->gone)
		executable_free(e);
	pthread_mutex_unlock(&graph_lock);
}

void graph_exec_made(void *exec, void *source)
{
	struct executable *e = calloc(1, sizeof(*e));

	now.made = exec;
	if (!e)
		return;
	pthread_mutex_lock(&graph_lock);
	e->origin = origin_of(source);
	executable_free(put(executables, &e->entry, exec));
	pthread_mutex_unlock(&graph_lock);
}

void graph_exec_destroyed(void *exec)
{
	pthread_mutex_lock(&graph_lock);
	executable_free(take(executables, exec));
	pthread_mutex_unlock(&graph_lock);
}

void graph_destroyed(void *graph)
{
	struct captured *gone;

	pthread_mutex_lock(&graph_lock);
	gone = take(captures, graph);
	pthread_mutex_unlock(&graph_lock);
	free(gone);
}

/* ------------------------------------------------------------------------ origin */

/* The set of the stream at @id on @gpu. */
static bool stream_set(struct gpupart_gpu *gpu, const struct scope_id *id, struct tmd_allow *allow)
{
	struct gpupart_tpcset set;
	bool has = false;

	if (!gpu || !scope_get_known(&gpu->streams, id, &set, &has) || !has)
		return false;
	memset(allow, 0, sizeof(*allow));
	tmd_map_convert(&gpu->driver.map, &set, allow);
	return true;
}

/* The attached GPU on which the stream at @id has a set; NULL: none. */
static struct gpupart_gpu *find_stream_set(const struct scope_id *id, struct tmd_allow *allow)
{
	struct gpupart_gpu *gpu;
	unsigned int n = 0;

	while ((gpu = scope_gpu(n)) && !stream_set(gpu, id, allow))
		n++;
	return gpu;
}

/* Those of a stream that goes; it has its set yet. Under the lock. */
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

void graph_origin_gone(uint64_t object, const void *ctx, const void *thread)
{
	pthread_mutex_lock(&graph_lock);
	for (int b = 0; b < NR_BUCKETS; b++) {
		for (struct entry *c = captures[b]; c; c = c->next)
			origin_gone(&((struct captured *)c)->origin, object, ctx, thread);
		for (struct entry *e = executables[b]; e; e = e->next)
			origin_gone(&((struct executable *)e)->origin, object, ctx, thread);
	}
	pthread_mutex_unlock(&graph_lock);
}

/* The GPU of the set that @e's capture stream has, or had when it went; NULL: none. */
static struct gpupart_gpu *origin_set(struct executable *e, struct tmd_allow *allow)
{
	struct gpupart_gpu *gpu = NULL;

	pthread_mutex_lock(&graph_lock);
	if (e->origin.gone) {
		gpu = e->origin.gpu;
		*allow = e->origin.set;
	} else if (e->origin.known) {
		gpu = find_stream_set(&e->origin.id, allow);
	}
	pthread_mutex_unlock(&graph_lock);
	return gpu;
}

void graph_captured(const struct scope_id *stream, void *graph)
{
	struct captured *c, *old;
	uint64_t object = 0;

	/* Without its mark a later thread's stream would be taken for this one's. */
	if (stream->thread && stream_mark_thread(NULL))
		return;
	/*
	 * Nor would a created one be known from the next at its address. The driver names what its
	 * handle points to when the stream goes. self_check.c finds out whether that is so, perhaps
	 * after this: where it is not, no stream ever has a set.
	 */
	if (!stream->ctx && (!peek_word(stream->handle, &object) || !object))
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->origin = (struct origin){ .known = true, .id = *stream, .object = object };
	pthread_mutex_lock(&graph_lock);
	old = put(captures, &c->entry, graph);
	pthread_mutex_unlock(&graph_lock);
	free(old);
}

void graph_destroy_end(const struct cuda_api *cuda)
{
	collect(cuda);
}

/* ------------------------------------------------------------------------ errors */

static _Atomic(const char *) why_not = "";

void graph_error_set(const char *fmt, ...)
{
	static atomic_flag taken = ATOMIC_FLAG_INIT;
	static char text[160];
	va_list ap;

	/* Callers of graph_error() hold a pointer to it: it is written once. */
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
	uint64_t print = HASH_INIT;
	const struct gpupart_gpu *gpu;

	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		uint64_t one = scope_print(gpu, graph->has_set && graph->gpu == gpu ? &graph->set :
										      NULL);

		print = hash_bytes(print, &one, sizeof(one));
	}
	/* The same set, but not for functions that have their own. */
	return hash_bytes(print, &graph->is_next, sizeof(graph->is_next));
}

/*
 * How often what scope_print() looks at was set. What applies may change and change back
 * while nodes are being built: that no print tells.
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

/* Of several GPUs, one is not yet known to be that of the nodes. */
static struct records *only_records(void)
{
	return scope_gpu(0) && scope_gpu(1) ? NULL : records_of(scope_gpu(0));
}

void graph_instantiate_begin(const struct cuda_api *cuda, void *source, bool device)
{
	struct scope_graph *scope = &now.scope;

	now.made = NULL;
	memset(scope, 0, sizeof(*scope));
	scope->nodes = graph_nodes_new(cuda, source);
	scope->mark = device ? NULL : records_mark_new(cuda, source);
	records_graph_builds(scope->mark, only_records());
	now.publications = publications();
	now.print = print_of_all(scope);
	scope_graph_begin(scope);
}

void graph_instantiate_end(const struct cuda_api *cuda, void *source, int result)
{
	struct graph_nodes *nodes = now.scope.nodes;
	struct executable *e = NULL;
	void *clone = NULL;

	scope_graph_begin(NULL);
	now.scope.nodes = NULL;
	collect(cuda);
	/* Without a note of what its nodes hold they cannot be built over. */
	if (!result && now.made && nodes && graph_can_rebuild(cuda) &&
	    cuda->graph_clone(&clone, source))
		clone = NULL;
	pthread_mutex_lock(&graph_lock);
	if (!result && now.made)
		e = executable_of(now.made);
	if (e) {
		e->nodes = nodes;
		e->mark = now.scope.mark;
		e->clone = clone;
		e->built = now.scope.nr_built;
		e->settled = now.publications == publications();
		e->print = now.print;
	} else {
		throw_away(clone);
		records_mark_free(now.scope.mark);
		free(nodes);
	}
	pthread_mutex_unlock(&graph_lock);
	now.made = NULL;
}

/* ------------------------------------------------------------------------ launch */

/*
 * No call of the driver names the functions that a graph launches: rules that are newer than @e
 * are matched here. Without a clone nobody knows what is in it.
 */
static __attribute__((noinline)) void match_rules(const struct cuda_api *cuda,
						  struct executable *e)
{
	unsigned int rules = atomic_load_explicit(&rules_generation, memory_order_acquire);

	if (e->rules == rules)
		return;
	e->rules = rules;
	if (e->clone)
		rules_match_graph(cuda, e->clone);
	else if (e->built)
		control_count(CONTROL_GRAPH_STALE);
}

void graph_launch_begin(const struct cuda_api *cuda, void *exec, const struct graph_place *place,
			bool launch)
{
	struct scope_graph *scope = &now.scope;
	struct executable *e = executable_use(exec);

	memset(scope, 0, sizeof(*scope));
	now.launched = e;
	now.stale = now.rebuilt = now.partial = false;
	if (e && atomic_load_explicit(&rules_used, memory_order_acquire))
		match_rules(cuda, e);
	scope->gpu = place->gpu;
	scope->nodes = e ? e->nodes : NULL;
	scope->mark = e ? e->mark : NULL;
	now.records = launch ? records_of(place->gpu) : NULL;
	control_graph_begins();
	if (launch)
		records_graph_begins(scope->mark, now.records);
	else
		records_graph_builds(scope->mark, records_of(place->gpu));
	now.next = launch && place->gpu && scope_next_take(place->gpu, &scope->set);
	now.captured = now.next && stream_is_captured(cuda, place->id.handle);
	if (now.next && !now.captured) {
		scope->has_set = true;
		scope->is_next = true;
	} else {
		scope->has_set = stream_set(place->gpu, &place->id, &scope->set);
	}
	if (!scope->has_set && e) {
		struct gpupart_gpu *gpu = origin_set(e, &scope->set);

		scope->has_set = gpu;
		if (gpu)
			scope->gpu = gpu;
	}
	now.publications = publications();
	now.print = print_of_all(scope);
	if (e && e->built && (!e->settled || e->print != now.print)) {
		if (e->clone && !atomic_load_explicit(&changes_unseen, memory_order_relaxed) &&
		    graph_rebuild(cuda, exec, e->clone, &now.partial)) {
			now.rebuilt = true;
			control_count(CONTROL_GRAPH_REAPPLIED);
		} else {
			now.stale = true;
		}
		if (launch && (now.stale || now.partial))
			control_count(CONTROL_GRAPH_STALE);
	} else if (e && e->partial && launch) {
		control_count(CONTROL_GRAPH_STALE);
	} else if (!e && launch && any_in_use()) {
		/* It was there before us: whatever its nodes carry. */
		control_count(CONTROL_GRAPH_STALE);
	}
	scope_graph_begin(scope);
}

void graph_launch_end(int result)
{
	struct executable *e = now.launched;
	bool any = now.scope.nr_built;

	scope_graph_begin(NULL);
	records_graph_ends(now.scope.mark, now.records, result);
	control_graph_ends();
	now.launched = NULL;
	if (now.next && (result || now.captured))
		control_count(CONTROL_NEXT_DROPPED);
	if (!e)
		return;
	if (any)
		/* Only a launch that went well says that none was left as it was before. */
		e->settled = !result && !now.stale && now.publications == publications();
	else if (!result && !e->built)
		e->settled = true;
	if (any || !result)
		e->built = true;
	if (!result && !now.stale)
		e->print = now.print;
	if (now.rebuilt)
		e->partial = now.partial;
	executable_unuse(e);
}

/* ----------------------------------------------------------------------- changes */

/* @graph: what it is now, NULL: what it was. */
static void clone_replace(void *exec, void *clone, const void *graph)
{
	struct executable *e;

	pthread_mutex_lock(&graph_lock);
	e = executable_of(exec);
	if (e) {
		throw_away(e->clone);
		e->clone = clone;
		if (graph)
			e->origin = origin_of(graph);
	} else {
		throw_away(clone);
	}
	pthread_mutex_unlock(&graph_lock);
}

void graph_changes_unseen(void)
{
	atomic_store_explicit(&changes_unseen, true, memory_order_relaxed);
}

void graph_updated(const struct cuda_api *cuda, void *exec, void *graph)
{
	struct executable *e;
	void *clone = NULL;

	if (graph_can_rebuild(cuda) && cuda->graph_clone(&clone, graph))
		clone = NULL;
	clone_replace(exec, clone, graph);
	e = executable_use(exec);
	if (e) {
		records_mark_updated(e->mark, cuda, graph);
		executable_unuse(e);
	}
	collect(cuda);
}

/* Both kinds of parameters begin with it. */
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
	bool has_clone = e && e->clone;
	void *copy = NULL;
	int result = has_clone ? -1 : 0;
	bool same = what == GRAPH_MEMSET || what == GRAPH_MEMCPY;

	if (has_clone && what != GRAPH_OTHER && cuda->graph_find && params &&
	    !cuda->graph_find(&copy, node, e->clone)) {
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
	if (e && !same)
		records_mark_unknown(e->mark);
	if (e)
		executable_unuse(e);
	/* A clone that is another graph would undo what the program did. */
	if (result)
		clone_replace(exec, NULL, NULL);
	collect(cuda);
}
