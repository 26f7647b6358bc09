// SPDX-License-Identifier: MIT
/*
 * Manages the completion records of executable graphs. A node's TMD is built once and launched many
 * times. So the record of a node cannot contain the number of a launch. Instead, each last kernel
 * of a launch adds 1 to the graph's counter, and overwrites the time of the previous launch. The
 * driver runs the launches of one executable graph one after the other, even if they are on
 * different streams.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/fork.h"
#include "lib/records/totals.h"

#define MAX_FUNCTIONS	8	/* maximum number of functions of last kernels */
/*
 * Maximum number of counted kernels. Additions to the same word wait for each other, so more
 * counted kernels would make the graph slower.
 */
#define MAX_KERNELS	32

struct records_mark {
	struct records *records;	/* @entry belongs to these records */
	struct records_graph *entry;	/* NULL: the graph has no entry yet */
	unsigned int nr_built;		/* number of counted kernels that are built */
	unsigned int nr_kernels;
	unsigned int nr_functions;
	void *functions[MAX_FUNCTIONS];
	bool unknown;
};

/* This lock protects the owners of entries. No thread holds the lock during a driver call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);

/* ------------------------------------------------------------------- counted kernels */

static bool mark_has(const struct records_mark *mark, const void *function)
{
	unsigned int n = 0;

	while (n < mark->nr_functions && mark->functions[n] != function)
		n++;
	return n < mark->nr_functions;
}

static int by_address(const void *a, const void *b)
{
	const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

static bool walk(const struct cuda_api *cuda, void *graph, bool last, struct records_mark *mark);

/*
 * If @last is true, no other node waits for this node, so the function of this node must be
 * counted. If @last is false, the node is counted if its function is counted.
 */
static bool walk_node(const struct cuda_api *cuda, void *node, bool last,
		      struct records_mark *mark)
{
	struct cuda_kernel_node kernel;
	void *function, *child;
	int type;

	if (cuda->node_type(node, &type) || type == CUDA_NODE_CONDITIONAL)
		return false;
	if (type == CUDA_NODE_GRAPH)
		return !cuda->graph_child(node, &child) && walk(cuda, child, last, mark);
	if (type != CUDA_NODE_KERNEL)
		return !last;
	if (cuda->kernel_get(node, &kernel))
		return false;
	function = kernel.function;
	if (!function &&
	    (!cuda->kernel_function || cuda->kernel_function(&function, kernel.kernel)))
		return false;
	if (!last)
		return !mark_has(mark, function) || ++mark->nr_kernels <= MAX_KERNELS;
	if (mark_has(mark, function))
		return true;
	if (mark->nr_functions == MAX_FUNCTIONS)
		return false;
	mark->functions[mark->nr_functions++] = function;
	return true;
}

/*
 * Visits nodes of the graph. If @last is true, visits the nodes for which no other node waits.
 * Otherwise visits all nodes. If an edge has extra data, returns an error.
 */
static bool walk(const struct cuda_api *cuda, void *graph, bool last, struct records_mark *mark)
{
	size_t nr = 0, nr_edges = 0;
	void **nodes, **from;
	bool good;

	if (cuda->graph_nodes(graph, NULL, &nr) || !nr ||
	    cuda->graph_edges(graph, NULL, NULL, &nr_edges))
		return !nr && !last;
	nodes = calloc(nr + 2 * nr_edges, sizeof(*nodes));
	from = nodes + nr;
	good = nodes && !cuda->graph_nodes(graph, nodes, &nr) &&
	       (!nr_edges || !cuda->graph_edges(graph, from, from + nr_edges, &nr_edges));
	if (good)
		qsort(from, nr_edges, sizeof(*from), by_address);
	for (size_t n = 0; good && n < nr; n++)
		if (!last || !bsearch(&nodes[n], from, nr_edges, sizeof(*from), by_address))
			good = walk_node(cuda, nodes[n], last, mark);
	free(nodes);
	return good;
}

static bool mark_fill(struct records_mark *mark, const struct cuda_api *cuda, void *graph)
{
	/* A driver with this function also has the other functions that this code calls. */
	return cuda->graph_edges && cuda->kernel_get && walk(cuda, graph, true, mark) &&
	       walk(cuda, graph, false, mark);
}

struct records_mark *records_mark_new(const struct cuda_api *cuda, void *graph)
{
	struct records_mark *mark = calloc(1, sizeof(*mark));

	if (mark && mark_fill(mark, cuda, graph))
		return mark;
	free(mark);
	return NULL;
}

void records_mark_updated(struct records_mark *mark, const struct cuda_api *cuda, void *graph)
{
	struct records_mark now = { .records = NULL };
	bool same;

	if (!mark)
		return;
	same = mark_fill(&now, cuda, graph) && now.nr_kernels == mark->nr_kernels &&
	       now.nr_functions == mark->nr_functions;
	for (unsigned int n = 0; same && n < now.nr_functions; n++)
		same = mark_has(mark, now.functions[n]);
	if (!same)
		records_mark_unknown(mark);
}

/* ------------------------------------------------------------------- entries */

/* The callers of the following functions hold the lock. */
static int32_t entry_left(const struct records_graph *graph)
{
	return records_graph_left(graph->shown, graph->cell);
}

static void graphs_fold(struct records *records);

static void since_set(struct records *records, struct state_graph *shown, uint64_t counter)
{
	if (counter) {
		records->fold_graphs = graphs_fold;
		atomic_fetch_or(&records->used, 2);
	}
	records->nr_running += !!counter - !!shown->since;
	__atomic_store_n(&shown->since, counter, __ATOMIC_RELAXED);
}

/* Returns the running graph that was launched first after @since, or NULL. */
static struct records_graph *next_running(struct records *records, uint64_t since)
{
	struct records_graph *graph, *next = NULL;

	/* Do not trust the numbers in the state page, because other processes can write to them. */
	for (unsigned int n = 0; n < STATE_NR_GRAPHS && n < records->shown->nr_graphs; n++) {
		graph = &records->graphs[n];
		if (graph->shown->since > since &&
		    (!next || graph->shown->since < next->shown->since))
			next = graph;
	}
	return next;
}

/*
 * Adds the time of the graph's launches that have ended to the busy time of their stream. First
 * adds the kernels that ran on this stream before the graph. Kernels after the graph must be added
 * later, because the times of a stream are added in the order of the ends.
 */
static void stream_add(struct records *records, struct records_graph *graph)
{
	const uint64_t end = atomic_load(&graph->cell->end.time);
	struct state_clock *clock = &records->shown->clock;
	struct records_ring *ring = graph->ring;
	uint64_t begin = graph->added, submitted, last;
	int before;	/* number of kernels before the graph that are not folded yet */

	if (end <= begin || !ring || atomic_load(&ring->tmd) != graph->tmd)
		return;
	graph->added = end;
	before = graph->before - records_folded(ring);
	records_fold_ring(records->shown, ring, before > 0 ? before : 0, false);
	last = ring->shown->last_end;
	/* Later kernels of the stream are in the totals already. Their times include the graph. */
	if (end <= last)
		return;
	if (!graph->previous && !graph->mixed)
		graph->previous = last;
	records_clock_seen(clock, end);
	submitted = submitted_ns(clock, graph->shown->since);
	if (begin < submitted)
		begin = submitted;
	if (begin < last)
		begin = last;
	if (end > begin) {
		ring->shown->busy_ns += end - begin;
		ring->shown->last_end = end;
	}
}

/*
 * If all launches of a graph have ended, adds the time of the graph to the totals. This time is
 * one interval. It begins at the submission of the graph's first launch, or at the end of the
 * previous launch on the stream, whichever is later. It ends at the end of the last kernel. The
 * caller holds records->folding.
 */
__attribute__((cold)) static void times_add(struct records *records)
{
	struct records_ring *ring = &records->rings[RECORDS_GRAPH_RING];
	struct records_graph *graph;
	uint64_t since = 0, seq, at;

	for (unsigned int n = 0; records->nr_running && n < STATE_NR_GRAPHS; n++) {
		graph = next_running(records, since);
		if (!graph)
			return;
		since = graph->shown->since;
		stream_add(records, graph);
		if (graph->launching || entry_left(graph) > 0)
			continue;
		seq = atomic_load(&ring->issued) + 1;
		at = seq & ring->mask;
		ring->notes[at] = (struct records_note){ since, RECORDS_GRAPH_KEY };
		ring->cells[at] = (struct records_cell){ seq, atomic_load(&graph->cell->end.time) };
		atomic_store_explicit(&ring->issued, seq, memory_order_relaxed);
		__atomic_store_n(&ring->shown->issued, seq, __ATOMIC_RELEASE);
		ring->shown->last_end = graph->previous;
		records_fold_ring(records->shown, ring, 1, true);
		ring->notes[at].function = graph->previous;
		graph->previous = 0;
		since_set(records, graph->shown, 0);
	}
}

/* Adds the times of graphs to the totals. The caller holds records->folding. Never waits. */
static void graphs_fold(struct records *records)
{
	if (pthread_mutex_trylock(&lock))
		return;
	times_add(records);
	pthread_mutex_unlock(&lock);
}

/* The launch callback must not call this function. */
static void times_add_all(struct records *records)
{
	if (!records->nr_running || !records_totals_lock(records))
		return;
	times_add(records);
	records_totals_unlock(records, records->shown);
}

/*
 * Assigns an entry to an executable graph without built nodes. If no entry is free, the ends of the
 * graph's launches are unknown.
 */
static void entry_take(struct records *records, struct records_mark *mark)
{
	unsigned int n = 0;
	struct records_graph *graph = records->graphs;

	times_add_all(records);
	while (records->section && n < STATE_NR_GRAPHS &&
	       (graph->owner || graph->spoilt || entry_left(graph))) {
		graph++;
		n++;
	}
	mark->unknown = !records->section || n == STATE_NR_GRAPHS;
	if (mark->unknown)
		return;
	since_set(records, graph->shown, 0);
	/* While the number of kernels is 0, no launch of the graph counts as outstanding. */
	__atomic_store_n(&graph->shown->kernels, 0, __ATOMIC_RELEASE);
	atomic_store(&graph->cell->count, (uint32_t)graph->shown->issued * mark->nr_kernels);
	__atomic_store_n(&graph->shown->kernels, mark->nr_kernels, __ATOMIC_RELEASE);
	if (records->shown->nr_graphs <= n)
		__atomic_store_n(&records->shown->nr_graphs, n + 1, __ATOMIC_RELEASE);
	graph->owner = mark;
	graph->context = 0;
	mark->records = records;
	mark->entry = graph;
}

static void entry_need(struct records *records, struct records_mark *mark)
{
	if (mark && !mark->entry && !mark->unknown)
		entry_take(records, mark);
}

static void spoil(struct records_mark *mark)
{
	if (mark->entry)
		mark->entry->spoilt = true;
	mark->unknown = true;
}

void records_mark_unknown(struct records_mark *mark)
{
	if (!mark)
		return;
	FORK_HOLD(&lock);
	spoil(mark);
}

unsigned int records_mark_built(struct records_mark *mark, unsigned int nr)
{
	unsigned int before = mark ? mark->nr_built : 0;

	if (mark)
		mark->nr_built = nr;
	return before;
}

/* The entry stays in use until the launches of its graph have ended. */
void records_mark_free(struct records_mark *mark)
{
	if (!mark)
		return;
	FORK_HOLD(&lock);
	if (mark->entry)
		mark->entry->owner = NULL;
	free(mark);
}

void records_graphs_gone(struct records *records, unsigned int n, bool ended)
{
	FORK_HOLD(&lock);
	for (unsigned int i = 0; i < STATE_NR_GRAPHS; i++) {
		struct records_graph *graph = &records->graphs[i];

		if (graph->context != n + 1)
			continue;
		if (graph->owner) {
			graph->owner->unknown = true;
			graph->owner->entry = NULL;
			graph->owner = NULL;
			graph->launching = false;
		}
		if (ended && entry_left(graph)) {
			since_set(records, graph->shown, 0);
			atomic_store(&graph->cell->count,
				     (uint32_t)graph->shown->issued * graph->shown->kernels);
		}
		graph->spoilt = !ended && (graph->spoilt || entry_left(graph));
		__atomic_store_n(&graph->shown->lost, !ended && entry_left(graph),
				 __ATOMIC_RELEASE);
	}
}

/* ------------------------------------------------------------------- in the launch callback */

/*
 * Removes old records from a node's TMD. The driver may have reused the memory of a destroyed
 * executable graph for this node.
 */
static void node_clear(const struct records *records, const struct tmd_map *map, void *tmd)
{
	struct tmd_release_seen seen;

	for (unsigned int slot = 1; slot < tmd_release_slots(map); slot++)
		for (unsigned int n = 0; n < RECORDS_MAX_CONTEXTS; n++)
			if (records->contexts[n].address &&
			    tmd_release_read(map, tmd, slot, &seen) &&
			    seen.address - records->contexts[n].address -
			    offsetof(struct records_section, graphs) <
			    sizeof(records->section->graphs))
				tmd_release_clear(map, tmd, slot, seen.address);
}

/*
 * The GPU writes the slot with the time before it writes the slot with the count. So a reader
 * that sees the count also sees the time.
 */
static bool node_put(const struct tmd_map *map, void *tmd, uint64_t address)
{
	const unsigned int slot = tmd_release_slots(map) - 1;
	const struct tmd_release add = { address, 1, TMD_RELEASE_ADD };
	const struct tmd_release time = {
		address + offsetof(struct records_graph_cell, end), 1, TMD_RELEASE_TIME,
	};

	if (slot < 2 || !tmd_release_write(map, tmd, slot, &add))
		return false;
	if (tmd_release_write(map, tmd, slot - 1, &time))
		return true;
	tmd_release_clear(map, tmd, slot, address);
	return false;
}

bool records_mark_node(struct records_mark *mark, struct records *records,
		       const struct tmd_map *map, const struct launch_params *params, bool was)
{
	unsigned int n = records_context_of(records, params->ctx);
	struct records_graph *entry;

	node_clear(records, map, params->tmd);
	if (!mark || mark->unknown)
		return false;
	mark->nr_built -= was;
	if (!mark_has(mark, params->function))
		return false;
	entry = mark->records == records ? mark->entry : NULL;
	if (entry && !entry->context)
		entry->context = n + 1;
	mark->unknown = !entry || entry->context != n + 1 || n == RECORDS_MAX_CONTEXTS ||
			!node_put(map, params->tmd, records->contexts[n].address +
				  ((char *)entry->cell - (char *)records->section));
	mark->nr_built += !mark->unknown;
	return !mark->unknown;
}

/* ------------------------------------------------------------------- around a launch */

void records_graph_builds(struct records_mark *mark, struct records *records)
{
	if (!mark || !records)
		return;
	FORK_HOLD(&lock);
	entry_need(records, mark);
}

/*
 * Returns whether the launches of the graph are counted in its entry for @records. The caller
 * holds the lock.
 */
static bool is_known(const struct records_mark *mark, const struct records *records)
{
	return mark && !mark->unknown && mark->entry && mark->records == records &&
	       records->section;
}

/* Notes the stream of the next launch. The graph has @left outstanding launches. */
static void entry_stream(struct records *records, struct records_graph *graph, const void *stream,
			 uint64_t offset, int32_t left)
{
	struct records_ring *ring = graph->ring;
	bool moved;

	if (graph->stream != stream || !ring || atomic_load(&ring->tmd) != graph->tmd)
		records_ring_of_stream(records, stream, offset, true, &ring);
	moved = ring != graph->ring;
	graph->mixed = left > 0 && (graph->mixed || moved);
	if (ring && (left <= 0 || moved))
		graph->before = atomic_load(&ring->issued);
	graph->stream = stream;
	graph->tmd = ring ? atomic_load(&ring->tmd) : 0;
	graph->ring = ring;
}

void records_graph_begins(struct records_mark *mark, struct records *records, const void *stream,
			  uint64_t offset)
{
	if (!records)
		return;
	__atomic_fetch_add(&records->shown->launching, 1, __ATOMIC_RELEASE);
	FORK_HOLD(&lock);
	entry_need(records, mark);
	if (is_known(mark, records)) {
		int32_t left = entry_left(mark->entry);

		if (left <= 0 || mark->entry->stream != stream)
			times_add_all(records);
		/* A launch of the graph was not reported to the library. */
		if (left < 0)
			spoil(mark);
		else if (!left)
			since_set(records, mark->entry->shown, records_counter());
		entry_stream(records, mark->entry, stream, offset, left);
		mark->entry->launching = true;
	}
}

void records_graph_ends(struct records_mark *mark, struct records *records, const void *stream,
			uint64_t offset, int result)
{
	const bool maybe_made = !result || !records_not_made(result);
	struct records_ring *ring;
	bool known, counts;

	if (!records)
		return;
	FORK_HOLD(&lock);
	known = is_known(mark, records) && mark->nr_built == mark->nr_kernels;
	if (mark && mark->entry)
		mark->entry->launching = false;
	counts = known && !result;
	if (counts)
		__atomic_fetch_add(&mark->entry->shown->issued, 1, __ATOMIC_RELEASE);
	else if (maybe_made) {
		records_ring_of_stream(records, stream, offset, true, &ring);
		if (ring)
			records_unrecorded(ring);
		else
			__atomic_fetch_add(&records->shown->graphs, 1, __ATOMIC_RELEASE);
	} else if (is_known(mark, records) && !entry_left(mark->entry)) {
		since_set(records, mark->entry->shown, 0);
	}
	if (mark && !counts && (maybe_made || (!known && mark->nr_built)))
		spoil(mark);
	__atomic_fetch_sub(&records->shown->launching, 1, __ATOMIC_RELEASE);
}
