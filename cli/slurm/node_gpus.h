/* SPDX-License-Identifier: MIT */
/*
 * The GPUs of this node as Slurm's plugin and slurm.conf know them: looked at once, and noted in a
 * file of root's.
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

/* Asks the driver, or the simulated one: 0, or an error. */
int node_gpus_look(struct args *args, struct node_gpus *node);

/* Writes the file and a capture each, whole or not at all; and reads them. Likewise. */
int node_gpus_write(const struct node_gpus *node);
int node_gpus_read(struct node_gpus *node);

/* Whether simulated GPUs were noted since the node booted: no driver tells of those. */
bool node_gpus_simulated(void);

void node_gpus_close(struct node_gpus *node);

#endif
