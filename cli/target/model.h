/* SPDX-License-Identifier: MIT */
/*
 * Jobs and their programs on each GPU, with busy time, memory and QoS score since the last update.
 * One thread at a time.
 */
#ifndef GPUPART_CLI_TARGET_MODEL_H
#define GPUPART_CLI_TARGET_MODEL_H

#include "cli/target/process_table.h"
#include "cli/target/usage.h"

#define MODEL_MAX_GPUS	65	/* the last entry stands for all further GPUs */
#define MODEL_KEY_STRLEN 160

struct model_gpu {
	char pci[20], source[512];	/* @pci "": programs that use no GPU so far */
	bool simulated;
	const struct gpupart_topology *topo;	/* NULL if not known */
};

/* A job on one GPU, or a program of it. A program without a job also gets a row as a job. */
struct model_row {
	char key[MODEL_KEY_STRLEN];	/* unique */
	char id[GPUPART_JOB_STRLEN];	/* the job on this GPU, or "" */
	char run[GPUPART_JOB_STRLEN];	/* the same on all GPUs; pid-4711 without a job */
	char name[64];
	char pci[20];
	unsigned int uid, gpu;
	int job;			/* index of the program's job; -1 for a job */
	unsigned int nr;		/* number of programs */
	const struct gpupart_process *process;	/* the program, or the job's last one, or NULL */
	const struct usage_row *usage;	/* of a program, else NULL */
	bool limited;			/* false: @set is all TPCs */
	struct gpupart_tpcset set;
	/* For a job the sums of its programs; below 0 if not known. */
	double busy, gpu_busy, launches_per_s;	/* 0 to 1, of the set and of the GPU */
	bool partial;			/* @busy lacks some launches */
	/* Launches are counted on the program's first GPU: their GPU is not known. */
	int64_t launches, outside, memory, quota;
	double score;			/* progress relative to the goal: 1 meets it */
	bool goal_met;
	const char *problem;		/* why the program is not confined, or "" */
	/* For the caller, kept for the row with this key; initially -1 and false. */
	int letter;
	bool open;
};

/* Zeroed before model_begin(). */
struct model {
	struct look look;
	struct usage usage;
	struct gpupart_process *processes;	/* one for each GPU of a process */
	unsigned int nr_processes, nr_gpus, nr_rows;
	struct model_gpu gpus[MODEL_MAX_GPUS];
	struct model_row *rows;
};

/* Finds this machine's GPUs, or if @source is not NULL the simulated GPU of it at @pci. */
void model_begin(struct model *model, const char *pci, const char *source);

/* Updates all rows; @age as for look_take(). Returns 0 or an error. */
int model_take(struct model *model, double age);
void model_end(struct model *model);

/* Returns the row with this key, or NULL. */
struct model_row *model_find(const struct model *model, const char *key);

#endif
