/* SPDX-License-Identifier: MIT */
/*
 * Progress of a program that reports nothing, experimental: each launch that ended counts for as
 * long as a launch of its function takes when the program runs alone.
 */
#ifndef GPUPART_CLI_QOS_KERNELS_H
#define GPUPART_CLI_QOS_KERNELS_H

#include <jansson.h>
#include <gpupart_manage.h>

struct kernels_look {
	uint64_t at_ns;		/* 0: none yet */
	struct gpupart_records records;
};

/*
 * The time alone, in ns, of launches that ended between two @looks at one process. Of @alone only
 * functions are used. @learn: it runs alone; its launches are added to @alone, and count for the
 * time that they took.
 */
uint64_t kernels_work(struct gpupart_records *alone, bool learn, struct kernels_look looks[2]);

/* As 'gpupart qos calibrate --json' writes them; NULL: no memory. */
json_t *kernels_json(const struct gpupart_records *alone);
/* Reads those of @tenant from the file at @path: 0, or an error. */
int kernels_read(struct gpupart_records *alone, const char *path, const char *tenant);

#endif
