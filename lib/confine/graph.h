/* SPDX-License-Identifier: MIT */
/*
 * Executable graphs: remembers the sets that their nodes were built with, and makes the driver
 * build the nodes again if other sets apply. The driver builds a node's TMD once and launches
 * it many times.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_H
#define GPUPART_LIB_CONFINE_GRAPH_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

struct graph_node;

/* ------------------------------------------- in the launch callback: nothing can fail */

/*
 * Called before the TMD of a node of the graph that this thread launches is masked. The driver
 * builds a node's TMD again over the old one, including the bits that were put into its mask;
 * these are removed here. Returns the node for graph_node_end(), or NULL.
 */
struct graph_node *graph_node_begin(struct scope_graph *graph, const struct tmd_map *map,
				    void *tmd);
/* @node may be NULL. @records are those of its GPU, or NULL. */
void graph_node_end(struct graph_node *node, const struct tmd_map *map,
		    const struct launch_params *params, struct records *records);

/*
 * Creates an empty table for @graph's nodes, which the caller frees with free(); NULL: out of
 * memory.
 */
struct graph_nodes *graph_nodes_new(const struct cuda_api *cuda, void *graph);

/* ------------------- around the driver's functions, on the thread that calls them */

/* The stream, and so the sets, that a graph is launched into. */
struct graph_place {
	struct scope_id id;
	struct gpupart_gpu *gpu;	/* of the stream; NULL: not attached */
	const struct tmd_allow *set;	/* used instead of the stream's and thread's sets; NULL:
					 * use those */
};

/* The driver made @exec from @source, in the driver call that this thread is in. */
void graph_exec_created(void *exec, void *source);
void graph_exec_destroyed(void *exec);
void graph_destroyed(void *graph);
/*
 * A stream is being destroyed: the one at @object, the default streams of @ctx, or that of the
 * thread with this mark. Graphs that were captured on it keep its set. 0 or NULL matches
 * nothing.
 */
void graph_stream_destroyed(uint64_t object, const void *ctx, const void *thread);

/* An instantiation of @source begins; it may upload, and so build, the graph. */
void graph_instantiate_begin(const struct cuda_api *cuda, void *source, uint64_t flags);
void graph_instantiate_end(const struct cuda_api *cuda, void *source, int result);

/*
 * @launch: it is launched and not only uploaded. Returns the handle that the driver must
 * launch, which is built for the sets that apply. The two functions are always called in pairs;
 * the second returns @exec.
 */
void *graph_launch_begin(const struct cuda_api *cuda, void *exec, const struct graph_place *place,
			 bool launch);
void *graph_launch_end(const struct cuda_api *cuda, int result);

/* The number of sets that @exec may stay built for now; 0: @exec is unknown. */
unsigned int graph_sets(const void *exec);

/*
 * From now on the program can change executables without notice. None is built again, because
 * that would undo its changes.
 */
void graph_changes_unseen(void);

/* @exec was updated to @graph. */
void graph_updated(const struct cuda_api *cuda, void *exec, void *graph);

enum graph_change {
	GRAPH_KERNEL, GRAPH_KERNEL_OLD, GRAPH_MEMSET, GRAPH_MEMCPY,
	GRAPH_OTHER,		/* a change that cannot be repeated on a clone */
	GRAPH_ENABLED,		/* node enabled or disabled: a clone cannot have this, and no
				 * change undoes it */
};
/* The program changed the parameters of @node of @exec. */
void graph_changed(const struct cuda_api *cuda, void *exec, void *node, enum graph_change what,
		   const void *params);

/*
 * @graph was captured on @stream, which still exists. Its GPU may be attached later, and so may
 * the check that tells streams apart.
 */
void graph_captured(const struct scope_id *stream, void *graph);

/* "", or why graphs may keep the sets that their nodes were built with. */
const char *graph_error(void);
/* Sets that reason. The first one is kept. */
__attribute__((format(printf, 1, 2)))
void graph_error_set(const char *fmt, ...);

#endif
