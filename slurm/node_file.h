/* SPDX-License-Identifier: MIT */
/* Finds GPUs of this node in the file that 'gpupart slurm-node' wrote. */
#ifndef GPUPART_SLURM_NODE_FILE_H
#define GPUPART_SLURM_NODE_FILE_H

#include "slurm/node_gpu.h"

/*
 * Finds the GPU with Slurm's number @number, and opens the topology of this GPU. @number is the N
 * of /dev/nvidiaN. Returns 0, or -errno with a reason in @why. boards_close() closes the
 * topology.
 */
int boards_open(unsigned int number, struct node_gpu *board, char *why, size_t len);
void boards_close(struct node_gpu *board);

/* Finds a GPU by its address. Does not open the topology. */
int boards_find(const char *pci, struct node_gpu *board, char *why, size_t len);

/*
 * Returns the captures of all GPUs, in the form of the variable GPUPART_SIM. The caller must free
 * the string. If there are no captures or there is not enough memory, returns NULL.
 */
char *boards_simulated(void);

#endif
