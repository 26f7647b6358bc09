/* SPDX-License-Identifier: MIT */
/* Executable graphs, for the files that instantiate, launch and change them. */
#ifndef GPUPART_SIM_CUDA_GRAPH_EXEC_H
#define GPUPART_SIM_CUDA_GRAPH_EXEC_H

#include "sim/cuda/sim.h"

/* A node, or the end of a child graph: an empty node that depends on all nodes of it. */
struct exec_node {
	struct sim_node *from;		/* valid only while the graph exists */
	uint64_t serial;		/* serial of that node; 0: none */
	enum cu_node_type type;
	struct sim_work work;
	unsigned int *before, nr_before;	/* indices into exec->nodes, ascending */
	bool enabled;
	bool built;			/* its TMDs correspond to @work */
	uint64_t number;		/* number of the launch that built it */
	bool uploads;			/* part of the present launch or upload */
	bool used;			/* @host was built before: its mask is kept */
	void *host;			/* TMD that subscribers see; NULL: it has none */
	void *device;			/* the copy that launches read */
};

struct sim_exec {
	struct sim_handle handle;
	char inner;	/* its address stands for the driver's copy of the graph */
	bool taken;			/* by a thread that may be calling subscribers */
	struct sim_ctx *ctx;		/* NULL: no node needs one */
	uint64_t flags;
	struct exec_node *nodes;	/* each after its dependencies */
	unsigned int nr_nodes, room, nr_edges;
	struct sim_moment *last;	/* the end of its last launch */
	struct sim_gpu *charged; /* GPU whose memory it uses itself; NULL: it was never uploaded */
	unsigned int memory_trims; /* it has its nodes' memory: 1 + the GPU's count at that time */
};

/* Whether it is a kernel: of the program or of the driver. */
static inline bool exec_has_tmd(const struct exec_node *node)
{
	return node->work.function && node->work.kind == SIM_OP_KERNEL;
}

/*
 * Call with sim_lock held. Copies @graph without making a handle. Returns NULL with *error, and
 * in *bad the node or NULL.
 */
struct sim_exec *exec_of(const struct sim_graph *graph, struct sim_node **bad, CUresult *error);
void exec_free(struct sim_exec *exec);
/*
 * Takes sim_lock, also on an error, and takes the exec until exec_give(), so that sim_lock may
 * be released meanwhile. An earlier owner may have destroyed the exec.
 */
CUresult exec_enter(struct sim_exec *exec);
void exec_give(struct sim_exec *exec);

/*
 * Allocates the memory of its nodes, unless it has it from its last launch. Returns false if
 * there is not enough.
 */
bool exec_takes_memory(struct sim_exec *exec, struct sim_gpu *gpu);

#endif
