// SPDX-License-Identifier: MIT
/*
 * Reads a file with data about memory and processes. The simulated management library reports
 * this data. Each query reads the file again. README.md describes the format of the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/nvml/nvml.h"

static const char *const kinds[NR_USAGE_KINDS] = { "compute", "graphics", "mps" };

static bool read_process(const char *line, unsigned int gpu, struct usage *usage)
{
	struct usage_process *process = &usage->processes[usage->nr];
	char kind[16], used[32], rest;
	unsigned int of, k = 0;
	char *end;

	if (sscanf(line, "process %u %15s %u %31s %c", &of, kind, &process->pid, used, &rest) != 4)
		return false;
	while (k < NR_USAGE_KINDS && strcmp(kind, kinds[k]))
		k++;
	process->kind = k;
	process->used = NVML_NOT_AVAILABLE;
	if (strcmp(used, "-")) {
		process->used = strtoull(used, &end, 10);
		if (*end)
			return false;
	}
	if (of == gpu && k < NR_USAGE_KINDS && usage->nr < USAGE_MAX_PROCESSES - 1)
		usage->nr++;
	return k < NR_USAGE_KINDS;
}

static bool read_memory(const char *line, unsigned int gpu, struct usage *usage)
{
	unsigned long long total, reserved, used;
	unsigned int of;
	char rest;

	if (sscanf(line, "memory %u %llu %llu %llu %c", &of, &total, &reserved, &used, &rest) != 4)
		return false;
	if (of == gpu) {
		usage->total = total;
		usage->reserved = reserved;
		usage->used = used;
	}
	return true;
}

nvmlReturn_t usage_read(unsigned int gpu, struct usage *usage)
{
	const char *path = sim_faults()->nvml;
	FILE *file = path ? fopen(path, "re") : NULL;
	nvmlReturn_t rc = NVML_SUCCESS;
	char line[256];

	usage->nr = 0;
	usage->total = sim_faults()->memory;
	usage->reserved = usage->used = 0;
	if (path && !file) {
		sim_print("GPUPART_SIM_FAULTS: nvml=%s cannot be read", path);
		return NVML_ERROR_UNKNOWN;
	}
	while (file && rc == NVML_SUCCESS && fgets(line, sizeof(line), file)) {
		if (*line == '#' || *line == '\n' || read_memory(line, gpu, usage) ||
		    read_process(line, gpu, usage))
			continue;
		line[strcspn(line, "\n")] = 0;
		sim_print("GPUPART_SIM_FAULTS: nvml=%s: '%s' is not a valid line", path, line);
		rc = NVML_ERROR_UNKNOWN;
	}
	if (file)
		fclose(file);
	return rc;
}
