/* SPDX-License-Identifier: MIT */
/*
 * A GPU of this node, and its row in the file that 'gpupart slurm-node' writes and Slurm's plugin
 * reads.
 */
#ifndef GPUPART_SLURM_NODE_GPU_H
#define GPUPART_SLURM_NODE_GPU_H

#include <gpupart_manage.h>

#define NODE_GPU_FOLDER "/run/gpupart"
#define NODE_GPU_FILE NODE_GPU_FOLDER "/gpus"
#define NODE_GPU_ROW 1024	/* size of the longest row */
#define NODE_GPU_PATH 64

struct node_gpu {
	unsigned int number;	/* Slurm's number, N of /dev/nvidiaN */
	char pci[20];
	char key[20];		/* of the checked map of its mask bits */
	bool simulated;
	uint64_t memory;	/* bytes; 0 if not known */
	char source[512];	/* of its topology */
	struct gpupart_topology *topo;
};

/* Formats the row, with a line feed. */
void node_gpu_row(const struct node_gpu *gpu, char row[NODE_GPU_ROW]);

/* Reads a row, without the topology; false if node_gpu_row() would not write it so. */
bool node_gpu_read(const char *row, struct node_gpu *gpu);

/* The path of the capture of its topology; opens it, as gpupart_topology_open() does. */
void node_gpu_capture(const struct node_gpu *gpu, char path[NODE_GPU_PATH]);
int node_gpu_open(struct gpupart *gp, struct node_gpu *gpu);

#endif
