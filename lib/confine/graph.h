/* SPDX-License-Identifier: MIT */
/*
 * Applies sets to executable graphs. The driver builds the TMD of a graph node one time and uses
 * this TMD for many launches. So the library records the sets for which the nodes were built. If
 * other sets apply to a launch, the library makes the driver build the nodes again.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_H
#define GPUPART_LIB_CONFINE_GRAPH_H

#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

struct graph_node;

/* ------------------------------------------- in the launch callback: nothing can fail */

/*
 * Called before a node's TMD is masked. The node belongs to the graph that this thread launches.
 * When the driver builds a TMD again, the mask bits of the library stay in the TMD. This function
 * removes these old bits. Returns the node or NULL. The caller passes this result to
 * graph_node_end().
 */
struct graph_node *graph_node_begin(struct scope_graph *graph, const struct tmd_map *map,
				    void *tmd);
/*
 * Called after a node's TMD is masked. Argument @node may be NULL. Argument @records is NULL if
 * the node's GPU has no records.
 */
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
 * Called when the driver has instantiated @exec from @source. The thread is still in this driver
 * call.
 */
void graph_exec_created(void *exec, void *source);
void graph_exec_destroyed(void *exec);
void graph_destroyed(void *graph);
/*
 * Called when streams are being destroyed. These are the stream at @object, the default streams
 * of @ctx, or the per-thread default streams of @thread. The argument @thread is the mark of a
 * thread. If a graph was captured on a destroyed stream, the graph keeps the set of this stream.
 * An argument that is 0 or NULL matches no stream.
 */
void graph_stream_destroyed(uint64_t object, const void *ctx, const void *thread);

/*
 * Called when an instantiation of @source begins. The instantiation may also upload the graph,
 * and the upload builds the nodes.
 */
void graph_instantiate_begin(const struct cuda_api *cuda, void *source, uint64_t flags);
void graph_instantiate_end(const struct cuda_api *cuda, void *source, int result);

/*
 * The first function is called before the driver launches or uploads @exec, and the second
 * function is called afterwards. For an upload, @launch is false. The first function returns the
 * handle that the driver must use. The nodes of this handle are built for the sets that apply.
 * The second function returns @exec. Each call of the first function needs one call of the second
 * function.
 */
void *graph_launch_begin(const struct cuda_api *cuda, void *exec, const struct graph_place *place,
			 bool launch);
void *graph_launch_end(const struct cuda_api *cuda, int result);

/* Returns true if the thread's last launch or upload used a build for other sets. */
bool graph_is_stale(void);

/*
 * Returns for how many sets the library can keep builds of @exec at the same time. If @exec is
 * unknown, returns 0.
 */
unsigned int graph_sets(const void *exec);

/*
 * Called when the driver no longer reports every change of an executable graph. After this call
 * the library builds no graph again, because a new build would undo changes of the program.
 */
void graph_changes_unseen(void);

/* Called when @exec was updated to @graph. */
void graph_updated(const struct cuda_api *cuda, void *exec, void *graph);

enum graph_change {
	GRAPH_KERNEL, GRAPH_KERNEL_OLD, GRAPH_MEMSET, GRAPH_MEMCPY,
	GRAPH_OTHER,		/* a change that the library cannot repeat on a clone */
	/*
	 * A node was enabled or disabled. The library cannot repeat this change on a clone, and
	 * no later change undoes it.
	 */
	GRAPH_ENABLED,
};
/* Called when the program changed the parameters of @node in @exec. */
void graph_changed(const struct cuda_api *cuda, void *exec, void *node, enum graph_change what,
		   const void *params);

/*
 * Called when @graph was captured on @stream. The stream still exists. The GPU of the stream need
 * not be attached yet. The library checks how to distinguish streams, and this check may run
 * later.
 */
void graph_captured(const struct scope_id *stream, void *graph);

/* Returns the reason why graphs may keep old sets. Returns "" if there is no such reason. */
const char *graph_error(void);
/* Sets the reason that graph_error() returns. Later calls change nothing. */
__attribute__((format(printf, 1, 2)))
void graph_error_set(const char *fmt, ...);

#endif
