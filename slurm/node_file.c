// SPDX-License-Identifier: MIT
/*
 * Finds GPUs of this node in a file. 'gpupart slurm-node' wrote this file at the start of slurmd.
 * So the start of a job needs no driver calls.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slurm/node_file.h"

/* Finds the GPU at @pci. If @pci is NULL, finds the GPU with the number @number. */
static int find(const char *pci, unsigned int number, struct node_gpu *board, char *why, size_t len)
{
	FILE *file = fopen(NODE_GPU_FILE, "re");
	char line[NODE_GPU_ROW];
	int err = file ? -ENODEV : -errno;

	while (file && err && fgets(line, sizeof(line), file))
		if (node_gpu_read(line, board) &&
		    (pci ? !strcmp(board->pci, pci) : board->number == number))
			err = 0;
	if (!file)
		snprintf(why, len,
			 "%s: %s: the GPUs of this node were not examined: run 'gpupart slurm-node'",
			 NODE_GPU_FILE, strerror(-err));
	else
		fclose(file);
	if (file && err && pci)
		snprintf(why, len, "%s does not contain GPU %s: run 'gpupart slurm-node'",
			 NODE_GPU_FILE, pci);
	else if (file && err)
		snprintf(why, len,
			 "%s does not contain GPU %u, which Slurm chose: run 'gpupart slurm-node'",
			 NODE_GPU_FILE, number);
	return err;
}

int boards_find(const char *pci, struct node_gpu *board, char *why, size_t len)
{
	return find(pci, 0, board, why, len);
}

int boards_open(unsigned int number, struct node_gpu *board, char *why, size_t len)
{
	struct gpupart *gp;
	int err = find(NULL, number, board, why, len);

	if (err)
		return err;
	err = gpupart_open(&gp);
	if (err) {
		snprintf(why, len, "no memory");
		return err;
	}
	err = node_gpu_open(gp, board);
	if (err)
		snprintf(why, len, "%s", gpupart_error(gp));
	gpupart_close(gp);
	return err;
}

void boards_close(struct node_gpu *board)
{
	gpupart_topology_close(board->topo);
	board->topo = NULL;
}

char *boards_simulated(void)
{
	FILE *file = fopen(NODE_GPU_FILE, "re");
	char line[NODE_GPU_ROW], *captures = NULL, *longer;
	struct node_gpu board;

	while (file && fgets(line, sizeof(line), file)) {
		if (!node_gpu_read(line, &board))
			continue;
		if (asprintf(&longer, "%s%s%s", captures ?: "", captures ? ":" : "",
			     board.source) < 0)
			longer = NULL;
		free(captures);
		captures = longer;
		if (!captures)
			break;
	}
	if (file)
		fclose(file);
	return captures;
}
