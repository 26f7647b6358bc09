/* SPDX-License-Identifier: MIT */
/*
 * Blocks of a run over time, as its pictures need them: one by one while they are few, and
 * summed up in slices of time however many they are. Knows not how they are drawn.
 */
#ifndef GPUPART_CLI_SIM_BLOCKS_H
#define GPUPART_CLI_SIM_BLOCKS_H

#include "picture.h"
#include "sim.h"

#define SIM_BLOCKS_MOST		20000	/* that are kept one by one */
/* Kernels with a letter of their own; all others are one kind more, then copies. */
#define SIM_BLOCKS_KINDS	(PICTURE_SHORT_TAGS - 2)
#define SIM_BLOCKS_COPY		(SIM_BLOCKS_KINDS + 1)
#define SIM_BLOCKS_NO_SM	UINT32_MAX

/* A row of a picture: an SM, or a copy engine. */
struct sim_row {
	unsigned int gpu, smid;		/* smid: SIM_BLOCKS_NO_SM of a copy engine */
	unsigned int tpc, gpc, ugpu, engine;
};

/* Its part of an SM is one of as many as an empty SM takes: @high of SIM_BLOCKS_UNITS or more. */
#define SIM_BLOCKS_UNITS 64

struct sim_one {
	uint64_t start, end, launch, block;
	unsigned int row, kind;
	uint16_t at, high;		/* units: where in its row it stands */
};

struct sim_kernel {
	const struct pipe_kernel *kernel;
	const struct sim_kind *sum;
};

struct sim_blocks {
	const struct sim_run *run;
	uint64_t from, to;		/* what is shown of the run's time */
	unsigned int nr_slices;
	double slice_ns;
	unsigned int nr_rows, room;
	struct sim_row *rows;	/* in the order they are drawn */
	unsigned int row_of[PIPE_MAX_GPUS][PIPE_MAX_SMS];
	unsigned int engine_of[PIPE_MAX_GPUS];	/* the row of its first copy engine */
	unsigned int nr_kinds;		/* kernels that have a letter */
	bool others;			/* there are more: their kind is SIM_BLOCKS_KINDS */
	struct sim_kernel kinds[SIM_BLOCKS_KINDS];
	uint8_t *kind_of;		/* by kernel */
	double *ns;			/* part of an SM times ns: [row][slice][kind] */
	double full;			/* the most of it in a slice of an SM, in ns */
	unsigned int units;		/* that the fullest row needs, where blocks are kept */
	unsigned int least;		/* units of the smallest block */
	uint64_t nr_all;		/* blocks and copies in that time */
	bool one_by_one;
	struct sim_one *blocks;	/* by row and start; none where they are too many */
	unsigned int nr_blocks;
};

/*
 * Runs @run again to look at each block from @from to @to, in @nr_slices slices or fewer.
 * 0 or -ENOMEM; sim_blocks_free() either way.
 */
int sim_blocks_make(struct sim_blocks *blocks, const struct sim_run *run, uint64_t from,
		    uint64_t to, unsigned int nr_slices);
void sim_blocks_free(struct sim_blocks *blocks);

/* What blocks of a kind had of a row in a slice: their parts of an SM, times ns. */
double *sim_blocks_cell(const struct sim_blocks *blocks, unsigned int row, unsigned int slice);

/* The kind that had most of a slice in rows @row and the @nr - 1 after it; -1 none had any. */
int sim_blocks_longest(const struct sim_blocks *blocks, unsigned int row, unsigned int nr,
		   unsigned int slice);

/* How many rows from @row on are of its TPC (its GPC, where those are known; its engine). */
unsigned int sim_blocks_tpc_rows(const struct sim_blocks *blocks, unsigned int row);
unsigned int sim_blocks_gpc_rows(const struct sim_blocks *blocks, unsigned int row);

/* Whether the TPC whose rows begin at @row had no block; a list of such TPCs of a GPU. */
bool sim_blocks_idle(const struct sim_blocks *blocks, unsigned int row);
void sim_blocks_idle_list(const struct sim_blocks *blocks, unsigned int gpu, char *text,
			  size_t len);

/* Whether GPCs are known and not made up. */
bool sim_blocks_gpcs_known(const struct sim_blocks *blocks, unsigned int gpu);

/* A kind's name, and what a legend says of it. */
const char *sim_blocks_name(const struct sim_blocks *blocks, unsigned int kind);
void sim_blocks_words(const struct sim_blocks *blocks, unsigned int kind, char *text, size_t len);

/* "GPU a: H200 (simulated), 132 SMs of 66 TPCs in 8 GPCs". */
void sim_blocks_gpu(const struct sim_blocks *blocks, unsigned int gpu, char *text, size_t len);

/* "A: TPCs 0-3, priority 5, process P; B: ..": streams, and what is said of them. */
void sim_blocks_streams(const struct sim_blocks *blocks, char *text, size_t len);

#endif
