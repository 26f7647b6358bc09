/* SPDX-License-Identifier: MIT */
/*
 * A model of the jobs and programs on each GPU. For each job and program, the model has the memory,
 * the QoS score, and the busy time since the previous update. Use a model from one thread at a
 * time.
 */
#ifndef GPUPART_CLI_TARGET_MODEL_H
#define GPUPART_CLI_TARGET_MODEL_H

#include "cli/target/lending.h"
#include "cli/target/process_table.h"
#include "cli/target/usage.h"

#define MODEL_MAX_GPUS	65	/* the last entry is for all other GPUs */
#define MODEL_KEY_STRLEN 160

struct model_gpu {
	char pci[20], source[512]; /* @pci is "" for programs that have not used a GPU so far */
	bool simulated;
	const struct gpupart_topology *topo;	/* NULL if not known */
};

/*
 * A row is for a job on one GPU, or for a program of such a job. A program without a job has two
 * rows: one as a job, and one as a program.
 */
struct model_row {
	char key[MODEL_KEY_STRLEN];	/* unique */
	char id[GPUPART_JOB_STRLEN];	/* the job on this GPU, or "" */
	/* id of the run, equal on all GPUs; or, without a job, "pid-4711" */
	char run[GPUPART_JOB_STRLEN];
	char name[64];
	char pci[20];
	unsigned int uid, gpu;
	int job;			/* index of the program's job; -1 for a job */
	unsigned int nr;		/* number of programs */
	/* for a program: its process; for a job: its last process or NULL */
	const struct gpupart_process *process;
	const struct usage_row *usage;	/* usage of the program; for a job: NULL */
	bool limited;			/* false: @set is all TPCs */
	struct gpupart_tpcset set;
	/*
	 * The values of a job are sums over its programs. If a value is below 0, the value is not
	 * known.
	 */
	double busy, gpu_busy, launches_per_s;	/* busy share of the set and of the GPU: 0 to 1 */
	bool partial;			/* @busy does not include some launches */
	/* The GPU of a launch is not known. So the first GPU of a program has all its launches. */
	int64_t launches, outside, memory, quota;
	double score;			/* progress relative to the goal; 1 is the goal */
	bool goal_met;
	/* NULL: no bound applies to the launches; the counts are for the whole job */
	const struct gpupart_lending *lending;
	const char *problem;		/* why the program is not confined, or "" */
	/*
	 * The caller sets these values. Their initial values are -1 and false. An update copies the
	 * values to the new row with the same key.
	 */
	int letter;
	bool open;
};

/* The caller must zero this struct before model_begin(). */
struct model {
	struct process_table table;
	struct usage usage;
	struct gpupart_process *processes;	/* one for each GPU of a process */
	struct gpupart_lending *lendings;	/* one for each of @processes */
	unsigned int nr_processes, nr_gpus, nr_rows;
	struct model_gpu gpus[MODEL_MAX_GPUS];
	struct model_row *rows;
};

/*
 * If @source is NULL, finds the GPUs of this machine. Otherwise finds the simulated GPU of @source
 * at @pci.
 */
void model_begin(struct model *model, const char *pci, const char *source);

/* Updates all rows. See process_table_read() for @age. Returns 0 or an error. */
int model_take(struct model *model, double age);
void model_end(struct model *model);

/* Returns the row with this key. If there is no such row, returns NULL. */
struct model_row *model_find(const struct model *model, const char *key);

#endif
