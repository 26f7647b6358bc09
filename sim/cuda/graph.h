/* SPDX-License-Identifier: MIT */
/* Declares graphs, their nodes and memory, and the capture of a stream into a graph. */
#ifndef GPUPART_SIM_CUDA_GRAPH_H
#define GPUPART_SIM_CUDA_GRAPH_H

#include "sim/cuda/sim.h"

/* ------------------------------------------------------------------ graph.c */

bool handle_valid(const void *object, enum sim_handle_kind kind);
void handle_add(struct sim_handle *handle, enum sim_handle_kind kind);
void handle_drop(struct sim_handle *handle);

struct sim_graph *graph_make(void);		/* returns NULL if memory is out */
struct sim_graph *graph_clone(const struct sim_graph *graph);
void graph_free(struct sim_graph *graph);	/* also frees the nodes; @graph may be NULL */
void graph_empty(struct sim_graph *graph);	/* frees the nodes, but not @graph itself */
/*
 * Adds a node that depends on the nodes @before of the same graph. @work may be NULL. Returns
 * NULL if memory is out.
 */
struct sim_node *graph_add(struct sim_graph *graph, enum cu_node_type type,
			   const struct sim_work *work, struct sim_node *const *before,
			   unsigned int nr_before);
/*
 * Takes sim_lock, and keeps the lock even on an error. Fails if @node is not a node. If another
 * argument of the entry point is invalid, @valid is false, and the function fails too.
 */
CUresult graph_enter_node(CUgraphNode node, bool valid);

/* ------------------------------------------------------------- graph_node.c */

/* Sets @work from the parameters of a kernel node. Keeps the launch attributes in @work. */
CUresult graph_kernel_work(const struct cu_kernel_node_params *params, struct sim_work *work);
/*
 * Set @work from the parameters of a fill node or a copy node. If @ctx is NULL, the current
 * context is used.
 */
CUresult graph_set_work(const struct cu_set_node_params *params, CUcontext ctx,
			struct sim_work *work);
CUresult graph_copy_work(const struct cu_copy_3d *params, CUcontext ctx, struct sim_work *work);

/* ---------------------------------------------------------------- capture.c */

/* Adds @work to the graph into which the stream is captured. */
CUresult capture_add(struct sim_stream *stream, enum cu_node_type type,
		     const struct sim_work *work);
/* Called by functions that a capture forbids, such as waits. Invalidates the capture. */
CUresult capture_forbids(struct sim_stream *stream);
CUresult capture_forbids_ctx(struct sim_ctx *ctx);
/*
 * Called by functions that use the legacy default stream. The legacy default stream waits for all
 * blocking streams. If one of these streams is being captured, the call is an error.
 */
CUresult capture_forbids_legacy(struct sim_ctx *ctx);
CUresult capture_record(struct sim_stream *stream, struct sim_event *event);
/* Makes the stream wait for @event. @event or the stream belongs to a capture. */
CUresult capture_wait(struct sim_stream *stream, const struct sim_event *event);
/* Discards the capture of a stream that will be destroyed. */
void capture_discard(struct sim_stream *stream);

/* ---------------------------------------------------------- graph_memory.c */

/*
 * The addresses of the memory of graphs. The first range is for captures, and the second range is
 * for nodes. No kernel writes to these addresses.
 */
#define GRAPH_MEMORY		0x600000000000
#define GRAPH_MEMORY_NODES	0x610000000000
#define GRAPH_MEMORY_END	0x620000000000

/* Returns true if @address is in one of the two ranges. */
bool graph_memory_contains(uint64_t address);

#endif
