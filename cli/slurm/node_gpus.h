/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this node, for Slurm's plugin and slurm.conf. The GPUs are examined once, and the
 * results are stored in a file of root.
 */
#ifndef GPUPART_CLI_SLURM_NODE_GPUS_H
#define GPUPART_CLI_SLURM_NODE_GPUS_H

#include "cli/target/args.h"
#include "slurm/node_gpu.h"

#define NODE_GPUS_MAX 32

struct node_gpus {
	unsigned int nr;
	struct node_gpu gpus[NODE_GPUS_MAX];
};

/* Examines the GPUs, real or simulated. Returns 0 or an error. */
int node_gpus_examine(struct args *args, struct node_gpus *node);

/*
 * The first function atomically writes the file and a capture for each GPU. The second function
 * reads all these files. Both functions return 0 or an error.
 */
int node_gpus_write(const struct node_gpus *node);
int node_gpus_read(struct node_gpus *node);

/* Returns whether the file lists simulated GPUs and was written after the node booted. */
bool node_gpus_simulated(void);

void node_gpus_close(struct node_gpus *node);

#endif
