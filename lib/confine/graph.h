/* SPDX-License-Identifier: MIT */
/*
 * Executable graphs: which sets their nodes were built with, and having the driver build
 * them again when others apply. The driver builds a node's TMD once and launches it many
 * times. Knows no mask bit's polarity.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_H
#define GPUPART_LIB_CONFINE_GRAPH_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

struct graph_node;

/* ------------------------------------------- in the launch callback: nothing can fail */

/*
 * A TMD of the graph that this thread launches is about to be masked. The driver builds a
 * node's TMD again over the old one, with what was put into its mask before: that is taken
 * out. Returns the node for graph_node_end(), or NULL.
 */
struct graph_node *graph_node_begin(struct scope_graph *graph, const struct tmd_map *map,
				    void *tmd);
/* @node may be NULL; @records is where its GPU's records are, or NULL. */
void graph_node_end(struct graph_node *node, const struct tmd_map *map,
		    const struct launch_params *params, struct records *records);

/* The table of @graph's nodes, empty: the caller frees it with free(); NULL: no memory. */
struct graph_nodes *graph_nodes_new(const struct cuda_api *cuda, void *graph);

/* ------------------- around the driver's functions, on the thread that calls them */

/* Which stream, and so whose sets, a graph is launched into. */
struct graph_place {
	struct scope_id id;
	struct gpupart_gpu *gpu;	/* of the stream; NULL: not attached */
	const struct tmd_allow *set;	/* in place of theirs; NULL: theirs */
};

/* The driver made @exec of @source, in the call that this thread is in. */
void graph_exec_made(void *exec, void *source);
void graph_exec_destroyed(void *exec);
void graph_destroyed(void *graph);
/*
 * The stream at @object goes, the default streams of @ctx or that of the thread with this
 * mark: what was captured on them keeps the set that they have. 0 or NULL matches nothing.
 */
void graph_origin_gone(uint64_t object, const void *ctx, const void *thread);

/* Of @source, which may be uploaded, and so built, meanwhile. */
void graph_instantiate_begin(const struct cuda_api *cuda, void *source, uint64_t flags);
void graph_instantiate_end(const struct cuda_api *cuda, void *source, int result);

/*
 * @launch: it is launched, not only uploaded. Returns what the driver is to launch, which is built
 * for the sets that apply. The two always come in pairs; the second returns @exec.
 */
void *graph_launch_begin(const struct cuda_api *cuda, void *exec, const struct graph_place *place,
			 bool launch);
void *graph_launch_end(const struct cuda_api *cuda, int result);

/* How many sets @exec may stay built for now; 0: nothing is known of it. */
unsigned int graph_sets(const void *exec);

/*
 * From now on the program changes executables without a word: none is built again, since
 * that would undo what it did.
 */
void graph_changes_unseen(void);

/* @exec was updated to what @graph is. */
void graph_updated(const struct cuda_api *cuda, void *exec, void *graph);

enum graph_change {
	GRAPH_KERNEL, GRAPH_KERNEL_OLD, GRAPH_MEMSET, GRAPH_MEMCPY,
	GRAPH_OTHER,		/* one that cannot be repeated */
	GRAPH_ENABLED,		/* or disabled: no clone has that, and none undoes it */
};
/* The program gave @node of @exec other parameters. */
void graph_changed(const struct cuda_api *cuda, void *exec, void *node, enum graph_change what,
		   const void *params);

/*
 * @graph was captured on @stream, which is there yet. Its GPU may be attached later, and how
 * streams are told apart there be learnt later.
 */
void graph_captured(const struct scope_id *stream, void *graph);

/* "" or why graphs may keep the sets that their nodes were built with. */
const char *graph_error(void);
/* The driver shows that now; what it showed first stays. */
__attribute__((format(printf, 1, 2)))
void graph_error_set(const char *fmt, ...);

#endif
