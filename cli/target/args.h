/* SPDX-License-Identifier: MIT */
/*
 * Parses the options that commands share. Finds the GPU, the source and the set that the options
 * select.
 */
#ifndef GPUPART_CLI_TARGET_ARGS_H
#define GPUPART_CLI_TARGET_ARGS_H

#include <gpupart_manage.h>
#include "cli/util/options.h"

/* The shared options that a command accepts. */
#define ARGS_SET	1	/* -t, -g, -u, -n, --sms, --hex, --shape, @NAME */
#define ARGS_GPU	2	/* --gpu */
#define ARGS_SOURCE	4	/* -i with any source */
#define ARGS_SIM	8	/* -i with a capture, which is simulated */
#define ARGS_JSON	16
#define ARGS_OUTPUT	32	/* -o */
#define ARGS_PROGRAM	64	/* [--] PROGRAM ARGS follow */
#define ARGS_NAMES	128	/* arguments mixed with the options are stored in @program */

/*
 * Fills in @args. Returns 0, an error, or CMD_ENDED after --help. @own ends with an empty entry and
 * may be NULL. @argv begins with the name of the command, not of the program.
 */
int args_parse(struct args *args, unsigned int takes, const struct args_option *own,
	       const char *help, int argc, char **argv);

/*
 * Without -i, sets @source to the value of GPUPART_INPUT or of the configuration files. Does this
 * only once. Inside a simulated run, the default is the GPU of this run. Returns 0 or an error.
 * args_simulate() and args_topology() also call this function.
 */
int args_input(struct args *args);

/* Returns the origin of @source for messages, such as "-i " or "GPUPART_INPUT=". */
const char *args_source_from(const struct args *args);

/*
 * Makes this process use the simulated GPU if -i is a capture or if this process is inside a
 * simulated run. May execute the command again. GPUPART_SIM has no effect without the simulated
 * driver. If the GPU is simulated, sets args->simulated, sets args->source to the capture's path,
 * and sets args->gpu to the simulated address. Returns 0 or an error.
 */
int args_simulate(struct args *args);

/*
 * Prints @why, the reason why the GPU cannot be used. If -i is absent and NVIDIA's driver is
 * missing, prints what to do instead. Returns the error for @err (-errno).
 */
int args_fail_gpu(const struct args *args, int err, const char *why);

/* Reads @text, the value of --mem, as bytes. Returns 0 or an error. */
int args_memory(const char *text, uint64_t *bytes);

/* Reads @text, the value of -p, as a process id. Returns 0 or an error. */
int args_pid(const char *text, int *pid);

/*
 * Reads @text, the value of @option, as a number of seconds from @least to 3600. Returns 0 or an
 * error.
 */
int args_seconds(const char *option, const char *text, double least, double *seconds);

/* Opens the topology that -i and --gpu select. Returns 0 or an error. */
int args_topology(struct args *args, struct gpupart_topology **topo);

/*
 * Finds the GPU of --gpu, or else the first GPU that CUDA_VISIBLE_DEVICES allows. Sets *gpu to a
 * selector for the library, or to NULL for the first GPU. Returns 0 or an error.
 */
int args_gpu(struct args *args, const char **gpu);

/*
 * Computes the set that -t, -g, -u, -n, --sms and --hex select together. The set must be inside
 * @within (NULL: all TPCs). -n and --sms choose TPCs that the other options did not select, in
 * the shape of --shape. They avoid TPCs in the limits of other programs on the GPU at @pci. If
 * these TPCs cannot be avoided, -n and --sms print a remark. Returns 0 or an error.
 */
int args_set(const struct args *args, const struct gpupart_topology *topo, const char *pci,
	     const struct gpupart_tpcset *within, struct gpupart_tpcset *set);

/* Checks that @set is inside @within, the outer limit. Returns 0 or an error. */
int args_inside(const struct args *args, const struct gpupart_topology *topo,
		const struct gpupart_tpcset *set, const struct gpupart_tpcset *within);

#endif
