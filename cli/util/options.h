/* SPDX-License-Identifier: MIT */
/* Values of the options that commands share. Function args_parse() fills in the values. */
#ifndef GPUPART_CLI_UTIL_OPTIONS_H
#define GPUPART_CLI_UTIL_OPTIONS_H

#include <stdbool.h>

#define ARGS_MAX_TERMS	64

/* The values of an option that a user may give more than once. */
struct args_texts {
	unsigned int nr;
	const char *texts[ARGS_MAX_TERMS];
};

/* An option that a single command has. */
struct args_option {
	const char *name;
	char letter;		/* its letter as a short option, or 0 */
	bool *given;		/* for an option whose value can be absent */
	const char **value;	/* for an option with a value: the last value */
	struct args_texts *values;	/* for an option with values: all values */
};

struct args {
	const char *cmd;
	int ignored_pid;	/* -n may use TPCs of this process and of job @ignored_name */
	const char *ignored_name;
	const char *job;	/* the job for the set; NULL: the job of this process */
	bool rule;		/* the set is for a rule, and the outer set is the run's set */
	const char *source;	/* -i or its default, or NULL */
	const char *source_from; /* origin of the default, such as "GPUPART_INPUT="; NULL: -i */
	bool has_defaults;	/* the defaults were read */
	bool wants_sim;		/* -i takes a capture */
	bool lenient;		/* if a configuration file has mistakes, print them and continue */
	const char *gpu;	/* --gpu or NULL */
	const char *output;	/* -o or NULL */
	bool json;
	const char *shape;	/* --shape or NULL */
	const struct setting *named;	/* the last named set (@NAME), or NULL */
	unsigned int nr_terms;
	struct {
		const char *option;	/* such as "-t" */
		const char *text;
	} terms[ARGS_MAX_TERMS];
	char **program;		/* PROGRAM and ARGS, or names; NULL ends the list */
	bool simulated;		/* args_simulate() chose the simulated GPU @gpu of @source */
	char visible[64];	/* buffer of args_gpu() */
};

#endif
