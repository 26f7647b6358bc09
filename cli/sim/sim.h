/* SPDX-License-Identifier: MIT */
/* The results of `gpupart sim` and how it prints them. Times are simulated, in ns. */
#ifndef GPUPART_CLI_SIM_SIM_H
#define GPUPART_CLI_SIM_SIM_H

#include "cli/sim/scenario.h"
#include "cli/util/out.h"

#define SIM_MAX_ROWS	10000	/* launches that are recorded one by one */

/* All launches of a kernel, or all copies in one direction (@engine). */
struct sim_kind {
	uint64_t nr, blocks, bytes;
	uint64_t first, last;		/* start of the first launch, end of the last */
	uint64_t sum, min, max;		/* of the time of each launch on the GPU */
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

/* Runs it. Returns 0, or a negative errno of pipe_run() with result.why set. */
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

/* The time between the first and the last block during which no GPU ran a block. */
uint64_t sim_idle(const struct sim_run *run);
/* The number of SMs, of all GPUs, that ran a block. */
unsigned int sim_nr_sms(const struct sim_kind *kind);
/* Formats a time: "1.234 ms". Returns @text. */
const char *sim_time(char text[32], uint64_t ns);
/* The numbers of a mask, of SMs or TPCs: "0-3,8". */
void sim_list(char *text, size_t len, const uint64_t *mask, unsigned int nr);

void sim_text(struct out *out, struct sim *sim);
json_t *sim_json(struct sim *sim);

/*
 * Draw which block ran on which SM between @from and @to: as SVG with @title; as text of 80
 * columns.
 */
void sim_svg(struct out *out, const struct sim_run *run, const char *title, uint64_t from,
	     uint64_t to);
void sim_rows(struct out *out, const struct sim_run *run, uint64_t from, uint64_t to);

/* The result of one expectation of the file. */
struct sim_outcome {
	const char *text;
	bool holds;
	char found[128];		/* the numbers that were compared */
};

/*
 * Checks the expectations of the file. Skips those of runs that were not selected. Returns
 * false after an error message if one cannot be read.
 */
bool sim_expect(struct sim *sim, struct sim_outcome **outcomes);

#endif
