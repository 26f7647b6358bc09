/* SPDX-License-Identifier: MIT */
/* Declares executable graphs. Several files instantiate, launch and change executable graphs. */
#ifndef GPUPART_SIM_CUDA_GRAPH_EXEC_H
#define GPUPART_SIM_CUDA_GRAPH_EXEC_H

#include "sim/cuda/graph.h"

/*
 * A step is a node, or the end of a child graph. The end of a child graph is an empty node that
 * depends on all nodes of the child graph.
 */
struct exec_node {
	struct sim_node *from;		/* valid only while the graph exists */
	uint64_t serial;		/* serial of the node @from; 0: no node */
	enum cu_node_type type;
	struct sim_work work;
	unsigned int *before, nr_before;	/* indices into exec->nodes, ascending */
	bool enabled;
	bool built;			/* the TMDs of this step correspond to @work */
	uint64_t number;		/* number of the launch that built the TMD */
	bool uploads;			/* the step is a part of the present launch or upload */
	bool used;			/* @host was built before, so its mask is kept */
	/* the TMD that subscribers see; NULL: the step has no TMD */
	void *host;
	void *device;			/* each launch reads this copy of the TMD */
};

struct sim_exec {
	struct sim_handle handle;
	/* for subscribers, the address of this member is the driver's copy of the graph */
	char inner;
	/* a thread has reserved this exec, possibly to call subscribers */
	bool taken;
	struct sim_ctx *ctx;		/* NULL: no node needs a context */
	uint64_t flags;
	/* each step is stored after all steps on which it depends */
	struct exec_node *nodes;
	unsigned int nr_nodes, room, nr_edges;
	struct sim_moment *last;	/* the end of the most recent launch of this executable
					 * graph */
	/* the GPU with the memory of this executable graph; NULL: the graph was never uploaded */
	struct sim_gpu *charged;
	/* 1 + the GPU's trim count at the time of the nodes' allocation; 0: not allocated */
	unsigned int memory_trims;
};

/* Returns true if the step is a kernel of the program or of the driver. */
static inline bool exec_has_tmd(const struct exec_node *node)
{
	return node->work.function && node->work.kind == SIM_OP_KERNEL;
}

/*
 * Call with sim_lock held. Copies @graph without making a handle. On failure, returns NULL and
 * sets *error. If a node caused the failure, sets *bad to this node; otherwise sets *bad to NULL.
 */
struct sim_exec *exec_of(const struct sim_graph *graph, struct sim_node **bad, CUresult *error);
void exec_free(struct sim_exec *exec);
/*
 * Takes sim_lock, and keeps the lock even on an error. Reserves the exec for this thread until
 * exec_give(). Until then, the thread may release sim_lock. An earlier owner may have destroyed
 * the exec.
 */
CUresult exec_enter(struct sim_exec *exec);
void exec_give(struct sim_exec *exec);

/*
 * Allocates the memory of the nodes. If the exec still has this memory from its last launch, does
 * nothing. If there is not enough memory, returns false.
 */
bool exec_takes_memory(struct sim_exec *exec, struct sim_gpu *gpu);

#endif
