/* SPDX-License-Identifier: MIT */
/*
 * Applies sets to executable graphs. The driver builds the TMD of a graph node one time and
 * launches it many times. So the library records the sets with which the nodes were built, and
 * makes the driver build the nodes again if other sets apply.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_H
#define GPUPART_LIB_CONFINE_GRAPH_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

struct graph_node;

/* ------------------------------------------- in the launch callback: nothing can fail */

/*
 * Called before a node's TMD is masked. The node belongs to the graph that this thread launches.
 * When the driver builds the TMD again, the TMD still contains the mask bits that the library
 * put into the old TMD. This function removes these mask bits. Returns the node for
 * graph_node_end(), or NULL.
 */
struct graph_node *graph_node_begin(struct scope_graph *graph, const struct tmd_map *map,
				    void *tmd);
/* @node may be NULL. @records are the records of the node's GPU, or NULL. */
void graph_node_end(struct graph_node *node, const struct tmd_map *map,
		    const struct launch_params *params, struct records *records);

/*
 * Creates an empty table for the nodes of @graph. The caller must free the table with free().
 * Returns NULL if there is not enough memory.
 */
struct graph_nodes *graph_nodes_new(const struct cuda_api *cuda, void *graph);

/* ------------------- around the driver's functions, on the thread that calls them */

/* The stream into which a graph is launched. The stream determines the sets that apply. */
struct graph_place {
	struct scope_id id;
	struct gpupart_gpu *gpu;	/* GPU of the stream; NULL: the GPU is not attached */
	/* If this member is not NULL, this set replaces the sets of the stream and the thread. */
	const struct tmd_allow *set;
};

/*
 * Called when the driver has instantiated @exec from @source. This thread's driver call has not
 * ended yet.
 */
void graph_exec_created(void *exec, void *source);
void graph_exec_destroyed(void *exec);
void graph_destroyed(void *graph);
/*
 * Called when streams are being destroyed: the stream at @object, the default streams of @ctx,
 * or the per-thread default streams of the thread that has this mark. Graphs that were captured
 * on such a stream keep the set of the stream. An argument that is 0 or NULL matches no stream.
 */
void graph_stream_destroyed(uint64_t object, const void *ctx, const void *thread);

/*
 * Called when an instantiation of @source begins. The instantiation may also upload the graph,
 * which builds its nodes.
 */
void graph_instantiate_begin(const struct cuda_api *cuda, void *source, uint64_t flags);
void graph_instantiate_end(const struct cuda_api *cuda, void *source, int result);

/*
 * Called before and after the driver launches or uploads @exec. @launch is true for a launch and
 * false for an upload. The first function returns the handle that the driver must launch. The
 * nodes of this handle are built for the sets that apply. The second function returns @exec. The
 * two functions are always called in pairs.
 */
void *graph_launch_begin(const struct cuda_api *cuda, void *exec, const struct graph_place *place,
			 bool launch);
void *graph_launch_end(const struct cuda_api *cuda, int result);

/*
 * Returns the number of sets for which @exec can be kept built at the same time, or 0 if @exec
 * is unknown.
 */
unsigned int graph_sets(const void *exec);

/*
 * Called if the driver no longer reports all changes that the program makes to executable
 * graphs. After this call no graph is built again, because building it again would undo the
 * program's changes.
 */
void graph_changes_unseen(void);

/* Called when @exec was updated to @graph. */
void graph_updated(const struct cuda_api *cuda, void *exec, void *graph);

enum graph_change {
	GRAPH_KERNEL, GRAPH_KERNEL_OLD, GRAPH_MEMSET, GRAPH_MEMCPY,
	GRAPH_OTHER,		/* the program made a change that the library cannot repeat on a
				 * clone */
	/*
	 * A node was enabled or disabled. The library cannot repeat this change on a clone, and
	 * no later change undoes it.
	 */
	GRAPH_ENABLED,
};
/* Called when the program changed the parameters of @node of @exec. */
void graph_changed(const struct cuda_api *cuda, void *exec, void *node, enum graph_change what,
		   const void *params);

/*
 * Called when @graph was captured on @stream. The stream still exists. The GPU of the stream may
 * be attached after this call. The check that finds out how to distinguish streams may also run
 * after this call.
 */
void graph_captured(const struct scope_id *stream, void *graph);

/* Returns "", or the reason why graphs may keep the sets with which their nodes were built. */
const char *graph_error(void);
/* Sets the reason that graph_error() returns. Only the first reason is kept. */
__attribute__((format(printf, 1, 2)))
void graph_error_set(const char *fmt, ...);

#endif
