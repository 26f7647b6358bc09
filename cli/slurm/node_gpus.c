// SPDX-License-Identifier: MIT
/*
 * Examines the topology, the mask bits and the memory of this node's GPUs. Also finds the number
 * that Slurm uses for each GPU. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/slurm/node_gpus.h"
#include "cli/target/check.h"
#include "cli/target/cuda.h"
#include "cli/util/alloc.h"
#include "cli/util/atomic_file.h"
#include "cli/util/message.h"

/* Returns N of /dev/nvidiaN. If the driver does not report N, returns the position in PCI order. */
static unsigned int device_number(const struct node_gpu *gpu, unsigned int place)
{
	char path[96], line[128];
	unsigned int number = place;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", gpu->pci);
	file = gpu->simulated ? NULL : fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Device Minor: %u", &number) == 1)
			break;
	if (file)
		fclose(file);
	return number;
}

/* The topology of a GPU is open. Checks the mask bits of this GPU, and reads its memory size. */
static int look_closer(struct node_gpus *node)
{
	struct node_gpu *gpu = &node->gpus[node->nr];
	struct check check = { 0 };
	int status;

	status = check_in_child(gpu->pci, &check);
	if (status)
		return status;
	if (*check.pci)
		snprintf(gpu->pci, sizeof(gpu->pci), "%s", check.pci);
	snprintf(gpu->key, sizeof(gpu->key), "%s", check.key);
	gpu->memory = check.memory;
	gpu->number = device_number(gpu, node->nr);
	snprintf(gpu->source, sizeof(gpu->source), "%s", gpupart_topology_info(gpu->topo)->source);
	node->nr++;
	return 0;
}

static int look_at(const struct args *args, struct node_gpus *node, const char *source,
		   const char *selector, const char *pci)
{
	struct node_gpu *gpu = &node->gpus[node->nr];
	int err = gpupart_topology_open(cmd_gp, source, selector, &gpu->topo), status;

	if (err)
		return error_of(err, "%s", gpupart_error(cmd_gp));
	gpu->simulated = args->simulated;
	snprintf(gpu->pci, sizeof(gpu->pci), "%s", pci);
	status = look_closer(node);
	if (status) {
		gpupart_topology_close(gpu->topo);
		gpu->topo = NULL;
	}
	return status;
}

static int look_simulated(const struct args *args, struct node_gpus *node)
{
	struct cuda_simulated found;
	char index[8];
	int status = 0;

	for (unsigned int i = 0; !status && i < NODE_GPUS_MAX; i++) {
		snprintf(index, sizeof(index), "%u", i);
		if (cuda_find_simulated(index, &found))
			break;
		status = look_at(args, node, found.capture, NULL, found.pci);
	}
	return status;
}

int node_gpus_examine(struct args *args, struct node_gpus *node)
{
	struct gpupart_gpu_info *list;
	int nr, status = args_simulate(args);

	if (status)
		return status;
	if (args->simulated)
		return look_simulated(args, node);
	list = alloc_zeroed(NODE_GPUS_MAX, sizeof(*list));
	nr = gpupart_gpu_list(cmd_gp, NULL, list, NODE_GPUS_MAX, sizeof(struct gpupart_gpu_info));
	if (nr < 0)
		status = args_fail_gpu(args, nr, gpupart_error(cmd_gp));
	else if (!nr)
		status = failure("this node has no GPU");
	for (int i = 0; !status && i < nr && i < NODE_GPUS_MAX; i++)
		status = look_at(args, node, NULL, list[i].pci, list[i].pci);
	free(list);
	return status;
}

void node_gpus_close(struct node_gpus *node)
{
	for (unsigned int i = 0; i < node->nr; i++)
		gpupart_topology_close(node->gpus[i].topo);
	node->nr = 0;
}

/* ------------------------------------------------------------------- the file */

static int write_file(const char *path, const char *text)
{
	int err = atomic_file_write(path, text);

	return err ? failure("%s: %s", path, strerror(-err)) : 0;
}

int node_gpus_write(const struct node_gpus *node)
{
	char *text = NULL, path[NODE_GPU_PATH], row[NODE_GPU_ROW];
	int status = 0;
	size_t len;
	FILE *file;

	if (mkdir(NODE_GPU_FOLDER, 0755) && errno != EEXIST)
		return failure(NODE_GPU_FOLDER ": %s", strerror(errno));
	/* Write the captures before the list, because all files in the list must exist. */
	for (unsigned int i = 0; !status && i < node->nr; i++) {
		if (gpupart_topology_capture(cmd_gp, node->gpus[i].topo, "gpupart slurm-node",
					     &text))
			return failure("%s", gpupart_error(cmd_gp));
		node_gpu_capture(&node->gpus[i], path);
		status = write_file(path, text);
		free(text);
		text = NULL;
	}
	if (status)
		return status;
	file = alloc_file(&text, &len);
	for (unsigned int i = 0; i < node->nr; i++) {
		node_gpu_row(&node->gpus[i], row);
		fputs(row, file);
	}
	alloc_file_close(file);
	status = write_file(NODE_GPU_FILE, text);
	free(text);
	return status;
}

static int read_row(struct node_gpus *node, const char *line)
{
	if (node->nr == NODE_GPUS_MAX || !node_gpu_read(line, &node->gpus[node->nr]))
		return failure(NODE_GPU_FILE
			       ": line %u is invalid: run 'gpupart slurm-node' again",
			       node->nr + 1);
	if (node_gpu_open(cmd_gp, &node->gpus[node->nr]))
		return failure("%s", gpupart_error(cmd_gp));
	node->nr++;
	return 0;
}

int node_gpus_read(struct node_gpus *node)
{
	FILE *file = fopen(NODE_GPU_FILE, "re");
	char line[NODE_GPU_ROW];
	int status = 0;

	if (!file)
		return failure(NODE_GPU_FILE ": %s: run 'gpupart slurm-node' as root first",
			       strerror(errno));
	while (!status && fgets(line, sizeof(line), file))
		status = read_row(node, line);
	fclose(file);
	return status;
}

bool node_gpus_simulated(void)
{
	FILE *file = fopen(NODE_GPU_FILE, "re");
	char line[NODE_GPU_ROW];
	struct node_gpu gpu;
	bool simulated = file && fgets(line, sizeof(line), file) && node_gpu_read(line, &gpu) &&
			 gpu.simulated;

	if (file)
		fclose(file);
	return simulated;
}
