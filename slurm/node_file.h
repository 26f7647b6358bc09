/* SPDX-License-Identifier: MIT */
/* The GPUs of this node, as 'gpupart slurm-node' found them. */
#ifndef GPUPART_SLURM_NODE_FILE_H
#define GPUPART_SLURM_NODE_FILE_H

#include "slurm/node_gpu.h"

/*
 * The one that Slurm calls @number, the N of its /dev/nvidiaN: 0, or -errno with a sentence
 * in @why. boards_close() frees what is in it.
 */
int boards_open(unsigned int number, struct node_gpu *board, char *why, size_t len);
void boards_close(struct node_gpu *board);

/* The same without the topology, which stays NULL: by the GPU's address. */
int boards_find(const char *pci, struct node_gpu *board, char *why, size_t len);

/*
 * The captures of all of them, as GPUPART_SIM has them, which the caller frees; NULL: there are
 * none, or no memory.
 */
char *boards_simulated(void);

#endif
