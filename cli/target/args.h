/* SPDX-License-Identifier: MIT */
/* The options that commands share: one grammar for sets, sources and GPUs. */
#ifndef GPUPART_CLI_TARGET_ARGS_H
#define GPUPART_CLI_TARGET_ARGS_H

#include <gpupart_manage.h>
#include "cli/util/options.h"

/* Which of the shared options a command takes. */
#define ARGS_SET	1	/* -t, -g, -u, -n, --sms, --hex, --shape, @NAME */
#define ARGS_GPU	2	/* --gpu */
#define ARGS_SOURCE	4	/* -i: any source */
#define ARGS_SIM	8	/* -i: a capture, the simulated GPU made of it */
#define ARGS_JSON	16
#define ARGS_OUTPUT	32	/* -o */
#define ARGS_PROGRAM	64	/* [--] PROGRAM ARGS follow */
#define ARGS_NAMES	128	/* words among the options, into @program */

/*
 * Fills @args: 0, an error, or CMD_ENDED after --help. @own ends with an empty entry and may be
 * NULL. @argv is a command's: main()'s begins one before it.
 */
int args_parse(struct args *args, unsigned int takes, const struct args_option *own,
	       const char *help, int argc, char **argv);

/*
 * Takes GPUPART_INPUT, or else the default of the configuration files, for @source where -i is not
 * given, once: 0, or an error. Inside a simulated run its GPU is the default. args_simulate() and
 * args_topology() do this, too.
 */
int args_input(struct args *args);

/* What @source was given by, for messages: "-i " or "GPUPART_INPUT=". */
const char *args_source_from(const struct args *args);

/*
 * Goes on as a process on the simulated GPU where -i asks for one, or stays one inside
 * such a run: GPUPART_SIM alone, without the simulated driver, decides nothing. Then
 * args->simulated is set, args->source is the capture's path and args->gpu the address
 * that is simulated. Returns 0, or an error.
 */
int args_simulate(struct args *args);

/*
 * Reports that the GPU cannot be used, @why, or, if -i was not given and NVIDIA's driver is not
 * there, what to do without one. Returns the error for @err.
 */
int args_fail_gpu(const struct args *args, int err, const char *why);

/* The bytes that @text, --mem's, is: 0, or an error. */
int args_memory(const char *text, uint64_t *bytes);

/* The number of a process, -p's: 0, or an error. */
int args_pid(const char *text, int *pid);

/*
 * The seconds that @text, the value of @option, is: @least to 3600, in decimal: 0, or an error.
 */
int args_seconds(const char *option, const char *text, double least, double *seconds);

/* Opens the topology that -i and --gpu mean: 0, or an error. */
int args_topology(struct args *args, struct gpupart_topology **topo);

/*
 * The GPU that --gpu means, or else the first one CUDA_VISIBLE_DEVICES leaves, as a
 * selector the library takes (NULL: the first): 0, or an error.
 */
int args_gpu(struct args *args, const char **gpu);

/*
 * The set that -t, -g, -u, -n, --sms and --hex add up to. -n and --sms take their TPCs from
 * those of @within (NULL: all) that the others leave, in the shape of --shape, and of these where
 * they can from those that no other program's limit on the GPU at @pci has; where they cannot
 * they say so.
 * 0, or an error: one is that the others are not in @within.
 */
int args_set(const struct args *args, const struct gpupart_topology *topo, const char *pci,
	     const struct gpupart_tpcset *within, struct gpupart_tpcset *set);

/* Whether @set is inside @within, the limit around what @args means: 0, or an error. */
int args_inside(const struct args *args, const struct gpupart_topology *topo,
		const struct gpupart_tpcset *set, const struct gpupart_tpcset *within);

#endif
