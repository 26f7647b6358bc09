/* SPDX-License-Identifier: MIT */
/*
 * The model of jobs and their programs on each GPU. The model contains the busy time of each job
 * and program since the last update, its memory and its QoS score. Use a model from one thread
 * at a time.
 */
#ifndef GPUPART_CLI_TARGET_MODEL_H
#define GPUPART_CLI_TARGET_MODEL_H

#include "cli/target/lending.h"
#include "cli/target/process_table.h"
#include "cli/target/usage.h"

#define MODEL_MAX_GPUS	65	/* the last entry stands for all further GPUs */
#define MODEL_KEY_STRLEN 160

struct model_gpu {
	char pci[20], source[512]; /* @pci is "" for programs that have not used a GPU so far */
	bool simulated;
	const struct gpupart_topology *topo;	/* NULL if not known */
};

/*
 * A job on one GPU, or a program of such a job. A program without a job also gets a row as a job.
 */
struct model_row {
	char key[MODEL_KEY_STRLEN];	/* unique */
	char id[GPUPART_JOB_STRLEN];	/* the job on this GPU, or "" */
	/* the run's id, equal on all GPUs; "pid-4711" without a job */
	char run[GPUPART_JOB_STRLEN];
	char name[64];
	char pci[20];
	unsigned int uid, gpu;
	int job;			/* index of the program's job; -1 for a job */
	unsigned int nr;		/* number of programs */
	/* the process of the program, or the last process of the job, or NULL */
	const struct gpupart_process *process;
	const struct usage_row *usage;	/* the usage of a program; NULL for a job */
	bool limited;			/* false: @set is all TPCs */
	struct gpupart_tpcset set;
	/*
	 * The values of a job are the sums over its programs. A value below 0 means that it is not
	 * known.
	 */
	double busy, gpu_busy, launches_per_s;	/* busy share of the set and of the GPU: 0 to 1 */
	bool partial;			/* @busy does not include some launches */
	/* All launches are counted on the program's first GPU, because their GPU is not known. */
	int64_t launches, outside, memory, quota;
	double score;			/* progress relative to the goal; 1 is the goal */
	bool goal_met;
	/* NULL: no bound applies to its launches. The counts are for the whole job */
	const struct gpupart_lending *lending;
	const char *problem;		/* why the program is not confined, or "" */
	/*
	 * Values that only the caller sets. They are initially -1 and false. An update copies
	 * them to the new row with the same key.
	 */
	int letter;
	bool open;
};

/* The caller must zero this struct before model_begin(). */
struct model {
	struct look look;
	struct usage usage;
	struct gpupart_process *processes;	/* one for each GPU of a process */
	struct gpupart_lending *lendings;	/* one for each of @processes */
	unsigned int nr_processes, nr_gpus, nr_rows;
	struct model_gpu gpus[MODEL_MAX_GPUS];
	struct model_row *rows;
};

/* Finds this machine's GPUs. If @source is not NULL, finds its simulated GPU at @pci instead. */
void model_begin(struct model *model, const char *pci, const char *source);

/* Updates all rows. look_take() describes @age. Returns 0 or an error. */
int model_take(struct model *model, double age);
void model_end(struct model *model);

/* Returns the row with this key, or NULL. */
struct model_row *model_find(const struct model *model, const char *key);

#endif
