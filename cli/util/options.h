/* SPDX-License-Identifier: MIT */
/* The values of the options that commands share. args_parse() fills them. */
#ifndef GPUPART_CLI_UTIL_OPTIONS_H
#define GPUPART_CLI_UTIL_OPTIONS_H

#include <stdbool.h>

#define ARGS_MAX_TERMS	64

/* The values of an option that may be given more than once. */
struct args_texts {
	unsigned int nr;
	const char *texts[ARGS_MAX_TERMS];
};

/* A command's own option. */
struct args_option {
	const char *name;
	char letter;		/* its short form, or 0 */
	bool *given;		/* of one without a value, or whose value may be left out */
	const char **value;	/* of one with a value, the last one given */
	struct args_texts *values;	/* of one with a value, all that are given */
};

struct args {
	const char *cmd;
	int ignored_pid;	/* whose set -n need not avoid, and the processes of that name */
	const char *ignored_name;
	const char *job;	/* that the set is for; NULL: the one that this process is in */
	const char *source;	/* -i, or what stands for it, or NULL */
	const char *source_from;	/* "GPUPART_INPUT=", NULL: -i */
	bool has_defaults;	/* they were looked for */
	bool wants_sim;		/* the default of -i is a capture */
	bool lenient;		/* a wrong configuration file is reported, and no error */
	const char *gpu;	/* --gpu or NULL */
	const char *output;	/* -o or NULL */
	bool json;
	const char *shape;	/* --shape or NULL */
	const struct setting *named;	/* the last set that was given by its name; NULL: none */
	unsigned int nr_terms;
	struct {
		const char *option;	/* "-t" */
		const char *text;
	} terms[ARGS_MAX_TERMS];
	char **program;		/* PROGRAM ARGS NULL, or names NULL */
	bool simulated;		/* args_simulate() made @source and @gpu one simulated GPU */
	char visible[64];	/* room for what args_gpu() finds */
};

#endif
