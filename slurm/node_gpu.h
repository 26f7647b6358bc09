/* SPDX-License-Identifier: MIT */
/*
 * A GPU of this node, and its row in a file. 'gpupart slurm-node' writes the file, and Slurm's
 * plugin reads it.
 */
#ifndef GPUPART_SLURM_NODE_GPU_H
#define GPUPART_SLURM_NODE_GPU_H

#include <gpupart_manage.h>

#define NODE_GPU_FOLDER "/run/gpupart"
#define NODE_GPU_FILE NODE_GPU_FOLDER "/gpus"
#define NODE_GPU_ROW 1024	/* size of the longest row */
#define NODE_GPU_PATH 64

struct node_gpu {
	unsigned int number;	/* Slurm's number of the GPU: the N of /dev/nvidiaN */
	char pci[20];
	char key[20];		/* key of the checked map of the GPU's mask bits */
	bool simulated;
	uint64_t memory;	/* memory of the GPU in bytes; 0: unknown */
	char source[512];	/* source of the GPU's topology */
	struct gpupart_topology *topo;
};

/* Formats the row, including the line feed. */
void node_gpu_row(const struct node_gpu *gpu, char row[NODE_GPU_ROW]);

/*
 * Reads a row, but not the topology. If the row does not have the form that node_gpu_row()
 * writes, returns false.
 */
bool node_gpu_read(const char *row, struct node_gpu *gpu);

/*
 * A capture contains the topology of the GPU. The first function returns the path of this
 * capture. Like gpupart_topology_open(), the second function opens the topology.
 */
void node_gpu_capture(const struct node_gpu *gpu, char path[NODE_GPU_PATH]);
int node_gpu_open(struct gpupart *gp, struct node_gpu *gpu);

#endif
