/* SPDX-License-Identifier: MIT */
/*
 * Experimental: estimates the progress of a program that makes no reports. Each completed launch
 * counts as the solo time of its function. The solo time is the time of a launch when the program
 * runs alone.
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
 * Returns the sum of the solo times, in ns, of all launches that ended between two @looks at one
 * process. The solo times are in @alone. If @learn is true, the program runs alone. Then its
 * launches are added to @alone and count as the time that they took.
 */
uint64_t kernels_work(struct gpupart_records *alone, bool learn, struct kernels_look looks[2]);

/* Returns the solo times in the format of 'gpupart qos calibrate --json'. NULL: no memory. */
json_t *kernels_json(const struct gpupart_records *alone);
/* Reads the kernels of @tenant from the file at @path. Returns 0 or an exit status. */
int kernels_read(struct gpupart_records *alone, const char *path, const char *tenant);

#endif
