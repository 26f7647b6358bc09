// SPDX-License-Identifier: MIT
/*
 * Blocks of a run over time, as its pictures need them: one by one while they are few, and
 * summed up in slices of time however many they are. Knows not how they are drawn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim_blocks.h"

#define MOST_CELLS	(8u << 20)
#define LEAST_SLICES	40
#define MOST_UNITS	(4 * SIM_BLOCKS_UNITS)	/* of a row, with holes between blocks */
#define NR_KINDS	(SIM_BLOCKS_COPY + 1)

/* ------------------------------------------------------------------------------ rows */

static bool is_before(const struct sim_blocks *b, const struct sim_row *x,
		      const struct sim_row *y)
{
	if (sim_blocks_gpcs_known(b, x->gpu)) {
		if (x->ugpu != y->ugpu)
			return x->ugpu < y->ugpu;
		if (x->gpc != y->gpc)
			return x->gpc < y->gpc;
	}
	return x->tpc != y->tpc ? x->tpc < y->tpc : x->smid < y->smid;
}

/* SMs by where they are: GPC, TPC. Few, and a stable order that qsort() does not promise. */
static void add_sms(struct sim_blocks *b, unsigned int gpu)
{
	const struct pipe_map *map = &b->run->scenario.pipe.gpus[gpu].map;
	unsigned int first = b->nr_rows, at;
	struct sim_row row;

	for (unsigned int sm = 0; sm < map->nr_sms; sm++) {
		row = (struct sim_row){
			gpu, sm, map->sms[sm].tpc, map->sms[sm].gpc, map->sms[sm].ugpu, 0,
		};
		for (at = b->nr_rows++; at > first && is_before(b, &row, &b->rows[at - 1]); at--)
			b->rows[at] = b->rows[at - 1];
		b->rows[at] = row;
	}
	for (at = first; at < b->nr_rows; at++)
		b->row_of[gpu][b->rows[at].smid] = at;
}

static int make_rows(struct sim_blocks *b)
{
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;
	unsigned int nr = 0;

	for (unsigned int i = 0; i < pipe->nr_gpus; i++)
		nr += pipe->gpus[i].map.nr_sms + pipe->gpus[i].chip.copy_engines;
	b->rows = calloc(nr, sizeof(*b->rows));
	if (!b->rows)
		return -ENOMEM;
	for (unsigned int i = 0; i < pipe->nr_gpus; i++) {
		add_sms(b, i);
		b->engine_of[i] = b->nr_rows;
		for (unsigned int j = 0; b->run->copies.nr && j < pipe->gpus[i].chip.copy_engines;
		     j++)
			b->rows[b->nr_rows++] = (struct sim_row){
				.gpu = i, .smid = SIM_BLOCKS_NO_SM, .engine = j,
			};
	}
	return 0;
}

bool sim_blocks_gpcs_known(const struct sim_blocks *b, unsigned int gpu)
{
	return !b->run->scenario.made_up[gpu];
}

static bool is_engine(const struct sim_row *row)
{
	return row->smid == SIM_BLOCKS_NO_SM;
}

unsigned int sim_blocks_tpc_rows(const struct sim_blocks *b, unsigned int row)
{
	const struct sim_row *first = &b->rows[row];
	unsigned int nr = 1;

	if (is_engine(first))
		return 1;
	while (row + nr < b->nr_rows && b->rows[row + nr].gpu == first->gpu &&
	       !is_engine(&b->rows[row + nr]) && b->rows[row + nr].tpc == first->tpc)
		nr++;
	return nr;
}

unsigned int sim_blocks_gpc_rows(const struct sim_blocks *b, unsigned int row)
{
	const struct sim_row *first = &b->rows[row], *next;
	unsigned int nr = 1;

	for (; row + nr < b->nr_rows; nr++) {
		next = &b->rows[row + nr];
		if (next->gpu != first->gpu || is_engine(next) != is_engine(first))
			break;
		if (!is_engine(first) && sim_blocks_gpcs_known(b, first->gpu) &&
		    next->gpc != first->gpc)
			break;
	}
	return nr;
}

/* ----------------------------------------------------------------------------- kinds */

static int make_kinds(struct sim_blocks *b)
{
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;

	b->kind_of = calloc(pipe->nr_kernels + 1u, 1);
	if (!b->kind_of)
		return -ENOMEM;
	for (unsigned int i = 0; i < pipe->nr_kernels; i++) {
		b->kind_of[i] = b->nr_kinds;
		if (!b->run->kernels[i].nr)
			continue;
		if (b->nr_kinds == SIM_BLOCKS_KINDS)
			b->others = true;
		else
			b->kinds[b->nr_kinds++] = (struct sim_kernel){
				&pipe->kernels[i], &b->run->kernels[i],
			};
	}
	return 0;
}

/* --------------------------------------------------------------------------- looking */

double *sim_blocks_cell(const struct sim_blocks *b, unsigned int row, unsigned int slice)
{
	return &b->ns[((size_t)row * b->nr_slices + slice) * NR_KINDS];
}

/* What is shown of a block's time; false: nothing. */
static bool cut(const struct sim_blocks *b, uint64_t *start, uint64_t *end)
{
	if (*start >= b->to || *end <= b->from)
		return false;
	*start = *start > b->from ? *start : b->from;
	*end = *end < b->to ? *end : b->to;
	return true;
}

static void sum_up(struct sim_blocks *b, const struct sim_one *one)
{
	double from = one->start - b->from, to = one->end - b->from, at, next;
	unsigned int slice = from / b->slice_ns;

	for (; slice < b->nr_slices && slice * b->slice_ns < to; slice++) {
		at = slice * b->slice_ns;
		next = at + b->slice_ns;
		sim_blocks_cell(b, one->row, slice)[one->kind] +=
			((to < next ? to : next) - (from > at ? from : at)) * one->high /
			SIM_BLOCKS_UNITS;
	}
}

static void look(struct sim_blocks *b, struct sim_one one)
{
	if (!cut(b, &one.start, &one.end))
		return;
	sum_up(b, &one);
	if (b->nr_all++ < SIM_BLOCKS_MOST)
		b->blocks[b->nr_blocks++] = one;
}

static void take_block(void *user, const struct pipe_block *block)
{
	struct sim_blocks *b = user;
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;
	unsigned int most = pipe_occupancy(&pipe->gpus[block->gpu].chip,
					   &pipe->kernels[block->kernel]);

	look(b, (struct sim_one){
		.high = (SIM_BLOCKS_UNITS + most - 1) / most,
		.start = block->start, .end = block->end, .launch = block->launch,
		.block = block->block, .row = b->row_of[block->gpu][block->smid],
		.kind = b->kind_of[block->kernel],
	});
}

static void take_launch(void *user, const struct pipe_launch *launch)
{
	struct sim_blocks *b = user;

	if (launch->kernel == UINT32_MAX)
		look(b, (struct sim_one){
			.start = launch->start, .end = launch->end, .launch = launch->launch,
			.row = b->engine_of[launch->gpu] + launch->engine - 1,
			.kind = SIM_BLOCKS_COPY, .high = SIM_BLOCKS_UNITS,
		});
}

static int by_row_and_start(const void *left, const void *right)
{
	const struct sim_one *x = left, *y = right;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->launch != y->launch)
		return x->launch < y->launch ? -1 : 1;
	return (x->block > y->block) - (x->block < y->block);
}

/* Where @high units are free in a row from the block's start on: the lowest. */
static unsigned int find_place(const uint64_t ends[MOST_UNITS], const struct sim_one *one)
{
	unsigned int at = 0, nr = 0;

	for (unsigned int i = 0; i < MOST_UNITS && nr < one->high; i++) {
		nr = ends[i] <= one->start ? nr + 1 : 0;
		at = i + 1 - nr;
	}
	return nr < one->high ? 0 : at;
}

/* Blocks that are on an SM together get places of their own in its row. */
static void find_places(struct sim_blocks *b)
{
	uint64_t ends[MOST_UNITS] = { 0 };
	struct sim_one *one;

	for (unsigned int i = 0; i < b->nr_blocks; i++) {
		one = &b->blocks[i];
		if (!i || one->row != one[-1].row)
			memset(ends, 0, sizeof(ends));
		one->at = find_place(ends, one);
		for (unsigned int j = 0; j < one->high; j++)
			ends[one->at + j] = one->end;
		if (is_engine(&b->rows[one->row]))
			continue;
		if (one->at + one->high > (int)b->units)
			b->units = one->at + one->high;
		if (one->high < b->least)
			b->least = one->high;
	}
}

static void find_fullest(struct sim_blocks *b)
{
	double sum;

	for (unsigned int row = 0; row < b->nr_rows; row++)
		for (unsigned int slice = 0; slice < b->nr_slices; slice++) {
			sum = 0;
			for (unsigned int kind = 0; kind < SIM_BLOCKS_COPY; kind++)
				sum += sim_blocks_cell(b, row, slice)[kind];
			b->full = sum > b->full ? sum : b->full;
		}
}

int sim_blocks_make(struct sim_blocks *b, const struct sim_run *run, uint64_t from,
		    uint64_t to, unsigned int nr_slices)
{
	const struct pipe_watch watch = {
		.user = b, .block = take_block, .launch = take_launch,
	};
	struct pipe_result *result;

	*b = (struct sim_blocks){ .run = run, .from = from, .to = to, .units = 1,
				 .least = SIM_BLOCKS_UNITS };
	if (make_rows(b) || make_kinds(b))
		return -ENOMEM;
	b->nr_slices = MOST_CELLS / NR_KINDS / b->nr_rows;
	b->nr_slices = b->nr_slices < LEAST_SLICES ? LEAST_SLICES :
		       b->nr_slices < nr_slices ? b->nr_slices : nr_slices;
	b->slice_ns = (double)(to - from) / b->nr_slices;
	b->ns = calloc((size_t)b->nr_rows * b->nr_slices * NR_KINDS, sizeof(*b->ns));
	b->blocks = malloc(SIM_BLOCKS_MOST * sizeof(*b->blocks));
	result = malloc(sizeof(*result));
	/* It ran to its end before, and will again. */
	if (b->ns && b->blocks && result)
		pipe_run(&run->scenario.pipe, &watch, result);
	free(result);
	if (!b->ns || !b->blocks || !result)
		return -ENOMEM;
	b->one_by_one = b->nr_all <= SIM_BLOCKS_MOST;
	if (b->one_by_one) {
		qsort(b->blocks, b->nr_blocks, sizeof(*b->blocks), by_row_and_start);
		find_places(b);
	} else {
		b->nr_blocks = 0;
	}
	find_fullest(b);
	return 0;
}

void sim_blocks_free(struct sim_blocks *b)
{
	free(b->rows);
	free(b->kind_of);
	free(b->ns);
	free(b->blocks);
}

int sim_blocks_longest(const struct sim_blocks *b, unsigned int row, unsigned int nr,
		   unsigned int slice)
{
	double sums[NR_KINDS] = { 0 };
	int longest = -1;

	for (unsigned int i = row; i < row + nr; i++)
		for (unsigned int kind = 0; kind < NR_KINDS; kind++)
			sums[kind] += sim_blocks_cell(b, i, slice)[kind];
	for (unsigned int kind = 0; kind < NR_KINDS; kind++)
		if (sums[kind] > (longest < 0 ? 0 : sums[longest]))
			longest = kind;
	return longest;
}

bool sim_blocks_idle(const struct sim_blocks *b, unsigned int row)
{
	unsigned int nr = sim_blocks_tpc_rows(b, row);

	for (unsigned int slice = 0; slice < b->nr_slices; slice++)
		if (sim_blocks_longest(b, row, nr, slice) >= 0)
			return false;
	return true;
}

void sim_blocks_idle_list(const struct sim_blocks *b, unsigned int gpu, char *text, size_t len)
{
	uint64_t mask[PIPE_SET_WORDS] = { 0 };

	for (unsigned int row = 0; row < b->nr_rows; row += sim_blocks_tpc_rows(b, row))
		if (b->rows[row].gpu == gpu && !is_engine(&b->rows[row]) && sim_blocks_idle(b, row))
			mask[b->rows[row].tpc / 64] |= 1ull << b->rows[row].tpc % 64;
	sim_list(text, len, mask, 64 * PIPE_SET_WORDS);
}
