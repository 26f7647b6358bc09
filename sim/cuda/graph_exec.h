/* SPDX-License-Identifier: MIT */
/* An executable graph, for the files that instantiate, launch and change it. */
#ifndef GPUPART_SIM_CUDA_GRAPH_EXEC_H
#define GPUPART_SIM_CUDA_GRAPH_EXEC_H

#include "sim/cuda/sim.h"

/* A node, or the end of a child graph: an empty node that waits for all of it. */
struct exec_node {
	struct sim_node *from;		/* there only as long as the graph is */
	uint64_t serial;		/* of that node; 0: none */
	enum cu_node_type type;
	struct sim_work work;
	unsigned int *before, nr_before;	/* places in exec->nodes, counting up */
	bool enabled;
	bool built;			/* its TMDs are what @work says */
	uint64_t number;		/* of the launch when it was built */
	bool uploads;			/* in the launch or upload under way */
	bool used;			/* @host has been built once: its mask stays */
	void *host;			/* TMD as subscribers see it; NULL: has none */
	void *device;			/* the copy that launches read */
};

struct sim_exec {
	struct sim_handle handle;
	char inner;			/* its address: the driver's own copy of the graph */
	bool taken;			/* by a thread that may be calling subscribers */
	struct sim_ctx *ctx;		/* NULL: nothing in it needs one */
	uint64_t flags;
	struct exec_node *nodes;	/* each after what it waits for */
	unsigned int nr_nodes, room, nr_edges;
	struct sim_moment *last;	/* the end of its last launch */
	struct sim_gpu *charged;	/* for itself; NULL: it was never uploaded */
	unsigned int memory_trims;	/* it has its memory: as many as the GPU's then, and 1 */
};

/* Whether it is a kernel: a program's, or the driver's own. */
static inline bool exec_has_tmd(const struct exec_node *node)
{
	return node->work.function && node->work.kind == SIM_OP_KERNEL;
}

/*
 * With sim_lock held. A copy of @graph, not yet a handle. NULL: *error says why, *bad at
 * which node (NULL: at none).
 */
struct sim_exec *exec_of(const struct sim_graph *graph, struct sim_node **bad, CUresult *error);
void exec_free(struct sim_exec *exec);
/*
 * With sim_lock taken either way; the exec is the caller's until exec_give(), so that
 * sim_lock may be left meanwhile. Who had it before may have destroyed it.
 */
CUresult exec_enter(struct sim_exec *exec);
void exec_give(struct sim_exec *exec);

/* What its nodes get, unless it has it from its last launch; false: there is no more. */
bool exec_takes_memory(struct sim_exec *exec, struct sim_gpu *gpu);

#endif
