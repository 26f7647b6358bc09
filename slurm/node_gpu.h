/* SPDX-License-Identifier: MIT */
/*
 * A GPU of this node, and how it stands in the file that 'gpupart slurm-node' writes and Slurm's
 * plugin reads.
 */
#ifndef GPUPART_SLURM_NODE_GPU_H
#define GPUPART_SLURM_NODE_GPU_H

#include <gpupart_manage.h>

#define NODE_GPU_FOLDER "/run/gpupart"
#define NODE_GPU_FILE NODE_GPU_FOLDER "/gpus"
#define NODE_GPU_ROW 1024	/* the longest, with its end */
#define NODE_GPU_PATH 64

struct node_gpu {
	unsigned int number;	/* Slurm's, the N of /dev/nvidiaN */
	char pci[20];
	char key[20];		/* of the map of its mask bits, that was checked */
	bool simulated;
	uint64_t memory;	/* bytes; 0 not known */
	char source[512];	/* of its topology */
	struct gpupart_topology *topo;
};

/* Its row, with the line's end. */
void node_gpu_row(const struct node_gpu *gpu, char row[NODE_GPU_ROW]);

/* What a row says, with no topology; false: it is none that node_gpu_row() makes. */
bool node_gpu_read(const char *row, struct node_gpu *gpu);

/* Where the capture of its topology is; and opens it: 0, or as gpupart_topology_open(). */
void node_gpu_capture(const struct node_gpu *gpu, char path[NODE_GPU_PATH]);
int node_gpu_open(struct gpupart *gp, struct node_gpu *gpu);

#endif
