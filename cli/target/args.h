/* SPDX-License-Identifier: MIT */
/*
 * Parses options that several commands have. Finds the GPU, the source and the set that these
 * options select.
 */
#ifndef GPUPART_CLI_TARGET_ARGS_H
#define GPUPART_CLI_TARGET_ARGS_H

#include <gpupart_manage.h>
#include "cli/util/options.h"

/* Flags for the shared options that a command accepts. */
#define ARGS_SET	1	/* -t, -g, -u, -n, --sms, --hex, --shape, @NAME */
#define ARGS_GPU	2	/* --gpu */
#define ARGS_SOURCE	4	/* the option -i with any source */
#define ARGS_SIM	8	/* -i with a capture, which is simulated */
#define ARGS_JSON	16
#define ARGS_OUTPUT	32	/* -o */
#define ARGS_PROGRAM	64	/* [--] PROGRAM ARGS follow */
#define ARGS_NAMES	128	/* arguments between options are stored in @program */

/*
 * Parses @argv and fills in @args. The list @own ends with an empty entry, or is NULL. The first
 * entry of @argv is the name of the command, such as "run". Returns 0, an error, or CMD_ENDED after
 * --help.
 */
int args_parse(struct args *args, unsigned int takes, const struct args_option *own,
	       const char *help, int argc, char **argv);

/*
 * If -i is absent, sets args->source to the value of GPUPART_INPUT or to the value in the
 * configuration files. Inside a simulated run, the default is the GPU of this run. Further calls do
 * nothing. Functions args_simulate() and args_topology() also call this function. Returns 0 or an
 * error.
 */
int args_input(struct args *args);

/* Returns the origin of args->source for messages. Examples are "-i " and "GPUPART_INPUT=". */
const char *args_source_from(const struct args *args);

/*
 * Decides whether this process uses a simulated GPU. This is so if -i is a capture, or if this
 * process is inside a simulated run. May execute the command again. If the simulated driver is
 * missing, GPUPART_SIM has no effect. If the GPU is simulated, sets args->simulated, sets
 * args->source to the path of the capture, and sets args->gpu to the simulated address. Returns 0
 * or an error.
 */
int args_simulate(struct args *args);

/*
 * Prints an error message for a GPU that cannot be used. The reason is @why. If -i is absent and
 * NVIDIA's driver is missing, also prints advice. Converts @err, which is a -errno, to an error of
 * message.h, and returns this error.
 */
int args_fail_gpu(const struct args *args, int err, const char *why);

/* Reads a number of bytes from @text. This text is the value of --mem. Returns 0 or an error. */
int args_memory(const char *text, uint64_t *bytes);

/* Reads a process id from @text. This text is the value of -p. Returns 0 or an error. */
int args_pid(const char *text, int *pid);

/*
 * Reads a number of seconds from @text. This text is the value of @option. The number must be from
 * @least to 3600. If @text is NULL, the option is absent, and *seconds keeps its default. Returns 0
 * or an error.
 */
int args_seconds(const char *option, const char *text, double least, double *seconds);

/* Opens the topology of the source and the GPU that -i and --gpu select. Returns 0 or an error. */
int args_topology(struct args *args, struct gpupart_topology **topo);

/*
 * Finds the GPU that --gpu selects. If --gpu is absent, finds the first GPU that
 * CUDA_VISIBLE_DEVICES allows. Sets *gpu to a selector for the library. For the first GPU, sets
 * *gpu to NULL. Returns 0 or an error.
 */
int args_gpu(struct args *args, const char **gpu);

/* Computes the set that -t, -g, -u and --hex select together. Returns 0 or an error. */
int args_set_listed(const struct args *args, const struct gpupart_topology *topo,
		    struct gpupart_tpcset *set);

/*
 * Computes the set that -t, -g, -u, -n, --sms and --hex select together. The set must be inside
 * @within. If @within is NULL, all TPCs are allowed. For -n and --sms, chooses TPCs that the other
 * options did not select, in the shape of --shape. If possible, avoids TPCs in the limits of other
 * programs on the GPU at @pci. If this is not possible, prints a remark. Returns 0 or an error.
 */
int args_set(const struct args *args, const struct gpupart_topology *topo, const char *pci,
	     const struct gpupart_tpcset *within, struct gpupart_tpcset *set);

/* Checks that @set is inside @within, the outer limit. Returns 0 or an error. */
int args_inside(const struct args *args, const struct gpupart_topology *topo,
		const struct gpupart_tpcset *set, const struct gpupart_tpcset *within);

#endif
