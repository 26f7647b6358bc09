/* SPDX-License-Identifier: MIT */
/* Results of `gpupart sim`, and functions that print the results. Times are simulated, in ns. */
#ifndef GPUPART_CLI_SIM_SIM_H
#define GPUPART_CLI_SIM_SIM_H

#include "cli/sim/scenario.h"
#include "cli/util/out.h"

#define SIM_MAX_ROWS	10000	/* maximum number of launches with separate records */

/* Sums for all launches of a kernel, or for all copies. */
struct sim_kind {
	uint64_t nr, blocks, bytes;
	uint64_t first, last;		/* start of the first launch; end of the last launch */
	uint64_t sum, min, max;		/* the time of each launch on the GPU */
	uint64_t waited;		/* total time from submission to start */
	uint64_t evicted;
	uint64_t sms[PIPE_MAX_GPUS][PIPE_MAX_SMS / 64];
};

struct sim_run {
	const char *name;		/* NULL: the file has no runs */
	unsigned int nr;		/* index in the file */
	struct scenario scenario;
	struct pipe_result result;
	struct sim_kind *kernels;
	struct sim_kind copies;
	struct pipe_launch *rows;
	unsigned int nr_rows;
};

/*
 * Runs the scenario. Returns 0 or the -errno of pipe_run(). After an error, result.why has the
 * reason.
 */
int sim_run(struct sim_run *run);
void sim_run_free(struct sim_run *run);

struct sim {
	const char *name;	/* as the user gave it */
	const char *path;
	struct yaml yaml;
	struct sim_run *runs;
	unsigned int nr_runs;
	unsigned int nr_expected, nr_failed;
};

/*
 * Returns how long no GPU ran a block. The time before the first block and the time after the last
 * block do not count.
 */
uint64_t sim_idle(const struct sim_run *run);
/* Returns the number of SMs that ran a block. Counts SMs on all GPUs. */
unsigned int sim_nr_sms(const struct sim_kind *kind);
/* Formats a time such as "1.234 ms". Returns @text. */
const char *sim_time(char text[32], uint64_t ns);
/* Formats the numbers of SMs or TPCs in a mask, such as "0-3,8". */
void sim_list(char *text, size_t len, const uint64_t *mask, unsigned int nr);

void sim_text(struct out *out, struct sim *sim);
json_t *sim_json(struct sim *sim);

/*
 * These functions draw the blocks that ran between @from and @to, with the SM of each block. The
 * first function draws SVG with the title @title. The second function prints text of 80 columns.
 */
void sim_svg(struct out *out, const struct sim_run *run, const char *title, uint64_t from,
	     uint64_t to);
void sim_rows(struct out *out, const struct sim_run *run, uint64_t from, uint64_t to);

/* The result of an expectation. */
struct sim_outcome {
	const char *text;
	bool holds;
	char found[128];		/* the two numbers that were compared */
};

/*
 * Checks the expectations of the file. If an expectation belongs to a run that was not selected,
 * skips the expectation. If an expectation cannot be read, prints an error message and returns
 * false.
 */
bool sim_expect(struct sim *sim, struct sim_outcome **outcomes);

#endif
