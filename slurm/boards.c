// SPDX-License-Identifier: MIT
/*
 * The GPUs of this node, from what 'gpupart slurm-node' wrote when slurmd began: no job's
 * start asks a driver. Must not know a job.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boards.h"

#define CAPTURE "/run/gpupart/gpu-%u.capture"

/* "0 0000:0d:00.0 KEY 0 BYTES SOURCE": cli/node_gpus.c writes it. */
static bool read_row(const char *line, struct board *board)
{
	unsigned long long memory;
	unsigned int simulated;
	char again[1024];

	memset(board, 0, sizeof(*board));
	if (sscanf(line, "%u %19s %19s %u %llu %511[^\n]", &board->number, board->pci,
		   board->key, &simulated, &memory, board->source) != 6 || simulated > 1 ||
	    strspn(board->key, "0123456789abcdef") != strlen(board->key))
		return false;
	/* A number with a sign, or beyond its room, would not be written so. */
	snprintf(again, sizeof(again), "%u %s %s %u %llu %s\n", board->number, board->pci,
		 board->key, simulated, memory, board->source);
	if (strcmp(line, again))
		return false;
	board->simulated = simulated;
	board->memory = memory;
	return true;
}

/* The first for which @pci, or else @number, is right. */
static int find(const char *pci, unsigned int number, struct board *board, char *why, size_t len)
{
	FILE *file = fopen(BOARDS_FILE, "re");
	char line[1024];
	int err = file ? -ENODEV : -errno;

	while (file && err && fgets(line, sizeof(line), file))
		if (read_row(line, board) &&
		    (pci ? !strcmp(board->pci, pci) : board->number == number))
			err = 0;
	if (!file)
		snprintf(why, len,
			 "%s: %s: the GPUs of this node were not looked at: run 'gpupart slurm-node'",
			 BOARDS_FILE, strerror(-err));
	else
		fclose(file);
	if (file && err && pci)
		snprintf(why, len, "%s knows no GPU %s", BOARDS_FILE, pci);
	else if (file && err)
		snprintf(why, len, "%s knows no GPU %u, which Slurm chose", BOARDS_FILE, number);
	return err;
}

int boards_find(const char *pci, struct board *board, char *why, size_t len)
{
	return find(pci, 0, board, why, len);
}

int boards_open(unsigned int number, struct board *board, char *why, size_t len)
{
	char path[64];
	struct gpupart *gp;
	int err = find(NULL, number, board, why, len);

	if (err)
		return err;
	err = gpupart_open(&gp);
	if (err) {
		snprintf(why, len, "no memory");
		return err;
	}
	snprintf(path, sizeof(path), CAPTURE, number);
	err = gpupart_topology_open(gp, path, NULL, &board->topo);
	if (err)
		snprintf(why, len, "%s", gpupart_error(gp));
	gpupart_close(gp);
	return err;
}

void boards_close(struct board *board)
{
	gpupart_topology_close(board->topo);
	board->topo = NULL;
}

bool boards_simulated(char *captures, size_t len)
{
	FILE *file = fopen(BOARDS_FILE, "re");
	struct board board;
	char line[1024];
	size_t used = 0;

	*captures = 0;
	while (file && used < len && fgets(line, sizeof(line), file))
		if (read_row(line, &board))
			used += snprintf(captures + used, len - used, "%s%s", used ? ":" : "",
					 board.source);
	if (file)
		fclose(file);
	return used && used < len;
}
