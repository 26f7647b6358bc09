// SPDX-License-Identifier: MIT
/*
 * Converts a decoded TMD to a launch of the pipeline, and detects launches that can never
 * finish.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/cuda/sim.h"

/* minimum number of registers of a thread, even if the TMD has a smaller number */
#define MIN_REGISTERS	16

const struct pipe_chip *sim_chip(void)
{
	return pipe_chip_find("h200");
}

/*
 * Computes the resources of a block. @shared is the value in the TMD. This value includes the
 * driver's part.
 */
static void take_room(struct pipe_kernel *kernel, unsigned int threads, unsigned int registers,
		      unsigned int shared)
{
	unsigned int reserved = sim_chip()->shared_reserved;

	kernel->threads = threads;
	kernel->registers = registers < MIN_REGISTERS ? MIN_REGISTERS : registers;
	kernel->shared = shared < reserved ? 0 : shared - reserved;
}

unsigned int dispatch_occupancy(unsigned int threads, unsigned int registers,
				unsigned int shared)
{
	struct pipe_kernel kernel = { 0 };

	take_room(&kernel, threads, registers, shared);
	return pipe_occupancy(sim_chip(), &kernel);
}

static void make_ask(struct sim_kernel *kernel, const struct sim_gpu *gpu)
{
	const struct sim_grid *grid = &kernel->grid;
	struct pipe_kernel *asked = &kernel->ask.kernel;

	asked->name = kernel->code->name;
	asked->blocks = grid->nr_blocks;
	asked->cluster = grid->clustered ? grid->cluster_blocks : 0;
	asked->pack = !grid->spread;
	asked->cooperative = grid->cooperative;
	take_room(asked, grid->threads, grid->registers, grid->shared);
	kernel->code->demand(asked, kernel);
	for (unsigned int tpc = 0; tpc < gpu->nr_tpcs; tpc++)
		if (!(grid->tpc_off[tpc / 64] >> tpc % 64 & 1))
			kernel->ask.set.allowed[tpc / 64] |= 1ull << tpc % 64;
}

/* ------------------------------------------------------ what can never finish */

static bool has_tpc(const struct pipe_set *set)
{
	for (unsigned int i = 0; i < PIPE_SET_WORDS; i++)
		if (set->allowed[i])
			return true;
	return false;
}

static bool can_finish(const struct sim_gpu *gpu, const struct sim_kernel *kernel, char why[160])
{
	const struct sim_grid *grid = &kernel->grid;
	uint64_t units = grid->clustered ? grid->nr_clusters : grid->nr_blocks, room;

	if (!has_tpc(&kernel->ask.set)) {
		snprintf(why, 160, "its mask disables all TPCs");
		return false;
	}
	if (!pipe_occupancy(&gpu->hw.chip, &kernel->ask.kernel)) {
		snprintf(why, 160, "a block of %u threads, %u registers, %u bytes fits on no SM",
			 grid->threads, grid->registers, grid->shared);
		return false;
	}
	room = pipe_fed_room(gpu->fed, &kernel->ask);
	if (!room) {
		snprintf(why, 160, "a cluster of %u blocks fits into no virtual GPC that its "
			 "mask allows",
			 grid->cluster_blocks);
		return false;
	}
	if (grid->cooperative && room < units) {
		snprintf(why, 160, "it is cooperative, but the TPCs of its mask can hold only "
			 "%llu of its %llu %s at once",
			 (unsigned long long)room, (unsigned long long)units,
			 grid->clustered ? "clusters" : "blocks");
		return false;
	}
	if (kernel->code->resident && room < units) {
		snprintf(why, 160,
			 "its blocks wait for each other, but the TPCs of its mask can hold only "
			 "%llu of %llu at once",
			 (unsigned long long)room, (unsigned long long)units);
		return false;
	}
	return true;
}

/* Under MPS, the SMs that a kernel may use are numbered from 0. */
static bool number_sms(struct sim_kernel *kernel, const struct sim_gpu *gpu)
{
	const struct pipe_map *map = &gpu->hw.map;
	unsigned int smid, tpc;
	uint16_t nr = 0;

	if (!sim_faults()->mps)
		return true;
	kernel->smids = calloc(map->nr_sms, sizeof(*kernel->smids));
	if (!kernel->smids)
		return false;
	for (smid = 0; smid < map->nr_sms; smid++) {
		tpc = map->sms[smid].tpc;
		if (kernel->ask.set.allowed[tpc / 64] >> tpc % 64 & 1)
			kernel->smids[smid] = nr++;
	}
	return true;
}

struct sim_kernel *dispatch_prepare(struct sim_gpu *gpu, const struct sim_code *code,
				    const struct sim_args *args, const struct sim_grid *grid,
				    char why[160])
{
	struct sim_kernel *kernel = calloc(1, sizeof(*kernel));

	why[0] = '\0';
	if (!kernel)
		return NULL;
	kernel->code = code;
	kernel->args = *args;
	kernel->grid = *grid;
	make_ask(kernel, gpu);
	if (can_finish(gpu, kernel, why) && number_sms(kernel, gpu))
		return kernel;
	dispatch_free(kernel);
	return NULL;
}

void dispatch_free(struct sim_kernel *kernel)
{
	if (kernel)
		free(kernel->smids);
	free(kernel);
}

/* -------------------------------------------------------------- completed blocks */

/*
 * Returns the grid index of block number @nth in cluster @unit. Without clusters, returns the
 * index of block @unit.
 */
static uint64_t block_index(const struct sim_grid *grid, uint64_t unit, unsigned int nth)
{
	uint64_t at[3];
	unsigned int i, count;

	if (!grid->clustered)
		return unit;
	for (i = 0; i < 3; i++) {
		count = grid->grid[i] / grid->cluster[i];
		at[i] = unit % count * grid->cluster[i] + nth % grid->cluster[i];
		unit /= count;
		nth /= grid->cluster[i];
	}
	return at[0] + grid->grid[0] * (at[1] + grid->grid[1] * at[2]);
}

void dispatch_ran(const struct pipe_block *from)
{
	struct sim_kernel *kernel = (struct sim_kernel *)
		((char *)(uintptr_t)from->ask - offsetof(struct sim_kernel, ask));
	const struct sim_grid *grid = &kernel->grid;
	struct sim_block block = {
		.start = SIM_CLOCK_START + from->start, .end = SIM_CLOCK_START + from->end,
		.index = block_index(grid, from->block / grid->cluster_blocks,
				     from->block % grid->cluster_blocks),
		.cluster = grid->clustered ? from->cluster : 0,
		.smid = kernel->smids ? kernel->smids[from->smid] : from->smid,
	};

	if (kernel->code->finish)
		kernel->code->finish(kernel, &block);
	if (++kernel->nr_ran == grid->nr_blocks)
		release_ended(kernel, block.end);
}
