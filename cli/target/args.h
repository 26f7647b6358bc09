/* SPDX-License-Identifier: MIT */
/* Parses the options that commands share, and finds the GPU, source and set they mean. */
#ifndef GPUPART_CLI_TARGET_ARGS_H
#define GPUPART_CLI_TARGET_ARGS_H

#include <gpupart_manage.h>
#include "cli/util/options.h"

/* The shared options that a command accepts. */
#define ARGS_SET	1	/* -t, -g, -u, -n, --sms, --hex, --shape, @NAME */
#define ARGS_GPU	2	/* --gpu */
#define ARGS_SOURCE	4	/* -i: any source */
#define ARGS_SIM	8	/* -i: a capture, which is simulated */
#define ARGS_JSON	16
#define ARGS_OUTPUT	32	/* -o */
#define ARGS_PROGRAM	64	/* [--] PROGRAM ARGS follow */
#define ARGS_NAMES	128	/* arguments among the options, into @program */

/*
 * Fills in @args. Returns 0, an error, or CMD_ENDED after --help. @own ends with an empty entry and
 * may be NULL. @argv begins with the name of the command, not of the program.
 */
int args_parse(struct args *args, unsigned int takes, const struct args_option *own,
	       const char *help, int argc, char **argv);

/*
 * Without -i, sets @source from GPUPART_INPUT or the configuration files, once. Inside a simulated
 * run its GPU is the default. Returns 0 or an error. args_simulate() and args_topology() also call
 * this.
 */
int args_input(struct args *args);

/* The origin of @source, for messages: "-i " or "GPUPART_INPUT=". */
const char *args_source_from(const struct args *args);

/*
 * If -i is a capture, or inside a simulated run, makes this process use the simulated GPU; it may
 * execute the command again. GPUPART_SIM without the simulated driver has no effect. Then sets
 * args->simulated, args->source to the capture's path and args->gpu to the simulated address.
 * Returns 0 or an error.
 */
int args_simulate(struct args *args);

/*
 * Prints the reason @why the GPU cannot be used; without -i and without NVIDIA's driver prints what
 * to do instead. Returns the error for @err (-errno).
 */
int args_fail_gpu(const struct args *args, int err, const char *why);

/* Reads @text, the value of --mem, as bytes. Returns 0 or an error. */
int args_memory(const char *text, uint64_t *bytes);

/* Reads @text, the value of -p, as a process id. Returns 0 or an error. */
int args_pid(const char *text, int *pid);

/* Reads @text, the value of @option, as @least to 3600 seconds. Returns 0 or an error. */
int args_seconds(const char *option, const char *text, double least, double *seconds);

/* Opens the topology selected by -i and --gpu. Returns 0 or an error. */
int args_topology(struct args *args, struct gpupart_topology **topo);

/*
 * Finds the GPU of --gpu, or the first one that CUDA_VISIBLE_DEVICES allows, as a selector for the
 * library (NULL: the first GPU). Returns 0 or an error.
 */
int args_gpu(struct args *args, const char **gpu);

/*
 * Computes the set of -t, -g, -u, -n, --sms and --hex together, which must be inside @within (NULL:
 * all TPCs). -n and --sms choose TPCs that the other options did not, in the shape of --shape. They
 * avoid TPCs in the limits of other programs on the GPU at @pci, or print that they cannot. Returns
 * 0 or an error.
 */
int args_set(const struct args *args, const struct gpupart_topology *topo, const char *pci,
	     const struct gpupart_tpcset *within, struct gpupart_tpcset *set);

/* Checks that @set is inside @within, the outer limit. Returns 0 or an error. */
int args_inside(const struct args *args, const struct gpupart_topology *topo,
		const struct gpupart_tpcset *set, const struct gpupart_tpcset *within);

#endif
