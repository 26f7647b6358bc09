// SPDX-License-Identifier: MIT
/* Writes and reads a row of the file that lists a node's GPUs. */
#include <stdio.h>
#include <string.h>
#include "slurm/node_gpu.h"

void node_gpu_row(const struct node_gpu *gpu, char row[NODE_GPU_ROW])
{
	snprintf(row, NODE_GPU_ROW, "%u %s %s %u %llu %s\n", gpu->number, gpu->pci, gpu->key,
		 gpu->simulated, (unsigned long long)gpu->memory, gpu->source);
}

bool node_gpu_read(const char *row, struct node_gpu *gpu)
{
	unsigned long long memory;
	unsigned int simulated;
	char again[NODE_GPU_ROW];

	memset(gpu, 0, sizeof(*gpu));
	if (sscanf(row, "%u %19s %19s %u %llu %511[^\n]", &gpu->number, gpu->pci, gpu->key,
		   &simulated, &memory, gpu->source) != 6 || simulated > 1 ||
	    strspn(gpu->key, "0123456789abcdef") != strlen(gpu->key))
		return false;
	gpu->simulated = simulated;
	gpu->memory = memory;
	/*
	 * Reject a number with a sign, and a number that is out of range. gpupart would write
	 * such a number in a different form.
	 */
	node_gpu_row(gpu, again);
	return !strcmp(row, again);
}

void node_gpu_capture(const struct node_gpu *gpu, char path[NODE_GPU_PATH])
{
	snprintf(path, NODE_GPU_PATH, NODE_GPU_FOLDER "/gpu-%u.capture", gpu->number);
}

int node_gpu_open(struct gpupart *gp, struct node_gpu *gpu)
{
	char path[NODE_GPU_PATH];

	node_gpu_capture(gpu, path);
	return gpupart_topology_open(gp, path, NULL, &gpu->topo);
}
