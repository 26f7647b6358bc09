/* SPDX-License-Identifier: MIT */
/* What `gpupart sim` keeps of a run and how it shows it. */
#ifndef GPUPART_CLI_SIM_SIM_H
#define GPUPART_CLI_SIM_SIM_H

#include "cli/sim/scenario.h"
#include "cli/util/out.h"

#define SIM_MAX_ROWS	10000	/* launches that are kept one by one */

/* All launches of a kernel, or all copies in one direction (engine). */
struct sim_kind {
	uint64_t nr, blocks, bytes;
	uint64_t first, last;		/* start of the first, end of the last */
	uint64_t sum, min, max;		/* of how long each was on the GPU */
	uint64_t waited;		/* from when the CPU had asked */
	uint64_t evicted;
	uint64_t sms[PIPE_MAX_GPUS][PIPE_MAX_SMS / 64];
};

struct sim_run {
	const char *name;		/* NULL: the file has no runs */
	unsigned int nr;		/* in the file */
	struct scenario scenario;
	struct pipe_result result;
	struct sim_kind *kernels;
	struct sim_kind copies;
	struct pipe_launch *rows;
	unsigned int nr_rows;
};

/* Runs it: 0, or a negative errno of pipe_run() with result.why. */
int sim_run(struct sim_run *run);
void sim_run_free(struct sim_run *run);

struct sim {
	const char *name;	/* as it was asked for */
	const char *path;
	struct yaml yaml;
	struct sim_run *runs;
	unsigned int nr_runs;
	unsigned int nr_expected, nr_failed;
};

/* Between the first block and the last one of all GPUs, how long there was none on any. */
uint64_t sim_idle(const struct sim_run *run);
/* On how many SMs, of all GPUs, there was a block. */
unsigned int sim_nr_sms(const struct sim_kind *kind);
/* "1.234 ms" */
const char *sim_time(char text[32], uint64_t ns);
/* "0-3,8": SMs, or TPCs, of a mask. */
void sim_list(char *text, size_t len, const uint64_t *mask, unsigned int nr);

void sim_text(struct out *out, struct sim *sim);
json_t *sim_json(struct sim *sim);

/*
 * Pictures of which block ran on which SM from @from to @to: as SVG, @title over it; in 80
 * columns.
 */
void sim_svg(struct out *out, const struct sim_run *run, const char *title, uint64_t from,
	     uint64_t to);
void sim_rows(struct out *out, const struct sim_run *run, uint64_t from, uint64_t to);

/* What the file's "expect" says, an outcome each. */
struct sim_outcome {
	const char *text;
	bool holds;
	char found[128];		/* the numbers behind it */
};

/*
 * False: what is expected cannot be read; a line was written. What is expected of runs that were
 * not asked for is left out.
 */
bool sim_expect(struct sim *sim, struct sim_outcome **outcomes);

#endif
