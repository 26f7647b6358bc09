/* SPDX-License-Identifier: MIT */
/*
 * Jobs and their programs on each GPU, with their busy time, memory and QoS score, from one look at
 * what runs to the next. One thread at a time.
 */
#ifndef GPUPART_CLI_TARGET_MODEL_H
#define GPUPART_CLI_TARGET_MODEL_H

#include "cli/target/look.h"
#include "cli/target/usage.h"

#define MODEL_MAX_GPUS	65	/* the last stands for all for which there is no room */
#define MODEL_KEY_STRLEN 160

struct model_gpu {
	char pci[20], source[512];	/* @pci "": of programs that use no GPU yet */
	bool simulated;
	const struct gpupart_topology *topo;	/* NULL: not known */
};

/* A job on one GPU, or a program of it. A program that is in no job is one of its own too. */
struct model_row {
	char key[MODEL_KEY_STRLEN];	/* no other row's */
	char id[GPUPART_JOB_STRLEN];	/* the job on this GPU, or "" */
	char run[GPUPART_JOB_STRLEN];	/* one word for the job on all GPUs; pid-4711 of none */
	char name[64];
	char pci[20];
	unsigned int uid, gpu;
	int job;			/* place of a program's job; -1: this is a job */
	unsigned int nr;		/* programs */
	const struct gpupart_process *process;	/* the program, of a job the last; NULL: none */
	const struct usage_row *usage;	/* of a program */
	bool limited;			/* else @set is all TPCs */
	struct gpupart_tpcset set;
	/* Of a job the sums of its programs; below 0: not known. */
	double busy, gpu_busy, launches_per_s;	/* @busy 0 to 1; @gpu_busy of the whole GPU */
	bool partial;			/* there were launches that are not in @busy */
	/* A program's launches count on its first GPU: which one they were on is not known. */
	int64_t launches, outside, memory, quota;
	double score;			/* against its goal: 1 meets it */
	bool goal_met;
	const char *problem;		/* why one is not confined, or "" */
	/* The caller's, and kept for the row with this key; of a new one -1 and false. */
	int letter;
	bool open;
};

/* Begins as all zero. */
struct model {
	struct look look;
	struct usage usage;
	struct gpupart_process *processes;	/* one for each GPU of a process */
	unsigned int nr_processes, nr_gpus, nr_rows;
	struct model_gpu gpus[MODEL_MAX_GPUS];
	struct model_row *rows;
};

/* Finds this machine's GPUs, or the simulated one at @pci that is made of @source (not NULL). */
void model_begin(struct model *model, const char *pci, const char *source);

/* Replaces all rows by those of now, as look_take() does with lists: 0, or an error. */
int model_take(struct model *model, double age);
void model_end(struct model *model);

/* The row with that key, or NULL. */
struct model_row *model_find(const struct model *model, const char *key);

#endif
