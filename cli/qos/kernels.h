/* SPDX-License-Identifier: MIT */
/*
 * Experimental: estimates the progress of a program that reports none. Each completed launch
 * counts for the time that a launch of its function takes when the program runs alone.
 */
#ifndef GPUPART_CLI_QOS_KERNELS_H
#define GPUPART_CLI_QOS_KERNELS_H

#include <jansson.h>
#include <gpupart_manage.h>

struct kernels_look {
	uint64_t at_ns;		/* 0: not read yet */
	struct gpupart_records records;
};

/*
 * Returns the solo time, in ns, of the launches that ended between two @looks at one process.
 * Uses only the functions of @alone. If @learn is true, the program runs alone: its launches are
 * added to @alone and count for the time that they took.
 */
uint64_t kernels_work(struct gpupart_records *alone, bool learn, struct kernels_look looks[2]);

/* The format of 'gpupart qos calibrate --json'. NULL: no memory. */
json_t *kernels_json(const struct gpupart_records *alone);
/* Reads the kernels of @tenant from the file at @path. Returns 0 or an exit status. */
int kernels_read(struct gpupart_records *alone, const char *path, const char *tenant);

#endif
