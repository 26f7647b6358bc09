// SPDX-License-Identifier: MIT
/*
 * Which SM a block runs on, and which launch can never finish. Knows the room on SMs,
 * not time and not streams.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"

/* One SM of Hopper: CUDA's programming guide, compute capability 9.0. */
const struct sim_limits sim_limits = {
	.warps = 16, .registers = 16384, .register_unit = 256, .min_registers = 16,
	.shared = 233472, .shared_reserved = 1024, .shared_unit = 128, .shared_default = 49152,
	.blocks = 32, .block_threads = 1024, .cluster = 16, .cluster_portable = 8,
};

/* What a block takes of an SM. */
struct need {
	unsigned int warps, warp_registers, shared;
};

static struct need need_of(unsigned int threads, unsigned int registers, unsigned int shared)
{
	unsigned int unit = sim_limits.register_unit;
	struct need need = { .warps = (threads + 31) / 32, .shared = shared };

	if (registers < sim_limits.min_registers)
		registers = sim_limits.min_registers;
	need.warp_registers = (registers * 32 + unit - 1) / unit * unit;
	return need;
}

/* Warps that one quarter still takes. */
static unsigned int quarter_room(const struct sim_sm *sm, unsigned int quarter,
				 const struct need *need)
{
	unsigned int warps = sim_limits.warps - sm->warps[quarter];
	unsigned int by_registers = (sim_limits.registers - sm->registers[quarter]) /
				    need->warp_registers;

	return warps < by_registers ? warps : by_registers;
}

static bool sm_fits(const struct sim_sm *sm, const struct need *need)
{
	unsigned int i, room = 0;

	if (sm->blocks >= sim_limits.blocks || sm->shared + need->shared > sim_limits.shared)
		return false;
	for (i = 0; i < SIM_QUARTERS; i++)
		room += quarter_room(sm, i, need);
	return room >= need->warps;
}

/* Each warp goes to the quarter with most room. Only after sm_fits(). */
static void sm_take(struct sim_sm *sm, const struct need *need, uint8_t warps[SIM_QUARTERS])
{
	unsigned int i, best, left;

	memset(warps, 0, SIM_QUARTERS);
	sm->blocks++;
	sm->shared += need->shared;
	for (left = need->warps; left; left--) {
		for (best = 0, i = 1; i < SIM_QUARTERS; i++)
			if (quarter_room(sm, i, need) > quarter_room(sm, best, need))
				best = i;
		sm->warps[best]++;
		sm->registers[best] += need->warp_registers;
		warps[best]++;
	}
}

static void sm_give(struct sim_sm *sm, const struct need *need,
		    const uint8_t warps[SIM_QUARTERS])
{
	unsigned int i;

	sm->blocks--;
	sm->shared -= need->shared;
	for (i = 0; i < SIM_QUARTERS; i++) {
		sm->warps[i] -= warps[i];
		sm->registers[i] -= warps[i] * need->warp_registers;
	}
}

unsigned int dispatch_occupancy(unsigned int threads, unsigned int registers,
				unsigned int shared)
{
	struct need need = need_of(threads, registers, shared);
	uint8_t warps[SIM_QUARTERS];
	struct sim_sm sm = { 0 };

	while (sm_fits(&sm, &need))
		sm_take(&sm, &need, warps);
	return sm.blocks;
}

static struct need kernel_need(const struct sim_kernel *kernel)
{
	const struct sim_grid *grid = &kernel->grid;

	return need_of(grid->threads, grid->registers, grid->shared);
}

/* ------------------------------------------------------ what can never finish */

/*
 * Clusters that an idle virtual GPC holds with @sms of its SMs allowed. A spread
 * cluster needs as many SMs as it has blocks; several clusters may share them.
 */
static uint64_t vgpc_holds(const struct sim_grid *grid, unsigned int sms, unsigned int occupancy)
{
	if (grid->spread && sms < grid->cluster_blocks)
		return 0;
	return (uint64_t)sms * occupancy / grid->cluster_blocks;
}

/* Units that the idle GPU holds at once; fills @why where not one fits. */
static uint64_t gpu_holds(const struct sim_kernel *kernel, char why[160])
{
	const struct sim_grid *grid = &kernel->grid;
	unsigned int occupancy = dispatch_occupancy(grid->threads, grid->registers, grid->shared);
	unsigned int sms[SIM_MAX_VGPCS] = { 0 };
	uint64_t units = 0;
	unsigned int i;

	if (!kernel->nr_places) {
		snprintf(why, 160, "its mask leaves no TPC");
		return 0;
	}
	if (!occupancy) {
		snprintf(why, 160, "a block of %u threads, %u registers, %u bytes fits on no SM",
			 grid->threads, grid->registers, grid->shared);
		return 0;
	}
	if (!grid->clustered)
		return (uint64_t)kernel->nr_places * occupancy;
	for (i = 0; i < kernel->nr_places; i++)
		sms[kernel->places[i].sm->vgpc]++;
	for (i = 0; i < SIM_MAX_VGPCS; i++)
		units += vgpc_holds(grid, sms[i], occupancy);
	if (!units)
		snprintf(why, 160, "a cluster of %u blocks fits into no virtual GPC of its mask",
			 grid->cluster_blocks);
	return units;
}

static bool can_finish(const struct sim_kernel *kernel, char why[160])
{
	uint64_t units = gpu_holds(kernel, why);

	if (!units)
		return false;
	if (kernel->grid.cooperative && units < kernel->nr_units) {
		snprintf(why, 160, "cooperative, and its mask holds %llu of its %llu %s at once",
			 (unsigned long long)units, (unsigned long long)kernel->nr_units,
			 kernel->grid.clustered ? "clusters" : "blocks");
		return false;
	}
	return true;
}

/* First SMs of TPCs before second ones, so that few blocks take many TPCs. */
static void kernel_choose(struct sim_kernel *kernel, struct sim_gpu *gpu)
{
	uint32_t smids[SIM_MAX_SMS];
	unsigned int smid, rank = 0, nth, tpc;
	struct sim_sm *sm;

	for (smid = 0; smid < gpu->nr_sms; smid++) {
		tpc = gpu->sms[smid].tpc;
		if (kernel->grid.tpc_off[tpc / 64] >> tpc % 64 & 1)
			smids[smid] = UINT32_MAX;
		else
			smids[smid] = sim_faults()->mps ? rank++ : smid;
	}
	for (nth = 0; nth < GPUPART_MAX_SMS_PER_TPC; nth++)
		for (smid = 0; smid < gpu->nr_sms; smid++) {
			sm = &gpu->sms[smid];
			if (sm->sm_in_tpc == nth && smids[smid] != UINT32_MAX)
				kernel->places[kernel->nr_places++] =
					(struct sim_place){ sm, smids[smid] };
		}
}

struct sim_kernel *dispatch_prepare(struct sim_gpu *gpu, const struct sim_code *code,
				    const struct sim_args *args, const struct sim_grid *grid,
				    char why[160])
{
	struct sim_kernel *kernel = calloc(1, sizeof(*kernel));

	why[0] = '\0';
	if (!kernel)
		return NULL;
	kernel->places = calloc(gpu->nr_sms, sizeof(*kernel->places));
	if (!kernel->places)
		goto free_kernel;
	kernel->code = code;
	kernel->args = *args;
	kernel->grid = *grid;
	kernel->nr_units = grid->clustered ? grid->nr_clusters : grid->nr_blocks;
	kernel_choose(kernel, gpu);
	if (!can_finish(kernel, why))
		goto free_kernel;
	return kernel;

free_kernel:
	dispatch_free(kernel);
	return NULL;
}

void dispatch_free(struct sim_kernel *kernel)
{
	if (kernel)
		free(kernel->places);
	free(kernel);
}

/* ------------------------------------------------------------------ placement */

/* Where block @nth of cluster @unit (without clusters: block @unit) stands in the grid. */
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

static struct sim_block *block_put(struct sim_gpu *gpu, struct sim_kernel *kernel,
				   const struct need *need, const struct sim_place *place,
				   unsigned int nth)
{
	struct sim_block *block = gpu->free_blocks;

	gpu->free_blocks = block->next;
	block->kernel = kernel;
	block->sm = place->sm;
	block->smid = place->smid;
	block->index = block_index(&kernel->grid, kernel->placed, nth);
	block->cluster = kernel->grid.clustered ? kernel->placed : 0;
	sm_take(place->sm, need, block->warps);
	kernel->resident++;
	return block;
}

void dispatch_retire(struct sim_gpu *gpu, struct sim_block *block)
{
	struct need need = kernel_need(block->kernel);

	sm_give(block->sm, &need, block->warps);
	block->kernel->resident--;
	block->next = gpu->free_blocks;
	gpu->free_blocks = block;
}

static void retire_until(struct sim_gpu *gpu, struct sim_block **list, struct sim_block *stop)
{
	struct sim_block *block;

	while (*list != stop) {
		block = *list;
		*list = block->next;
		dispatch_retire(gpu, block);
	}
}

static bool in_cluster(const struct sim_block *block, const struct sim_block *stop,
		       const struct sim_sm *sm)
{
	for (; block != stop; block = block->next)
		if (block->sm == sm)
			return true;
	return false;
}

/*
 * The least loaded SM that takes a block. @vgpc -1: any. Blocks of @list up to @stop
 * belong to the same cluster.
 */
static struct sim_place *choose(struct sim_kernel *kernel, const struct need *need, int vgpc,
				const struct sim_block *list, const struct sim_block *stop)
{
	struct sim_place *place, *best = NULL;
	unsigned int i;

	for (i = 0; i < kernel->nr_places; i++) {
		place = &kernel->places[i];
		if (vgpc >= 0 && place->sm->vgpc != vgpc)
			continue;
		if (best && place->sm->blocks >= best->sm->blocks)
			continue;
		if (!sm_fits(place->sm, need))
			continue;
		if (vgpc >= 0 && kernel->grid.spread && in_cluster(list, stop, place->sm))
			continue;
		best = place;
		if (!best->sm->blocks)
			break;
	}
	return best;
}

/* All blocks of the next cluster into @vgpc, or none. */
static bool place_cluster(struct sim_gpu *gpu, struct sim_kernel *kernel,
			  const struct need *need, int vgpc, struct sim_block **list)
{
	struct sim_block *stop = *list, *block;
	struct sim_place *place;
	unsigned int nth;

	for (nth = 0; nth < kernel->grid.cluster_blocks; nth++) {
		place = choose(kernel, need, vgpc, *list, stop);
		if (!place) {
			retire_until(gpu, list, stop);
			return false;
		}
		block = block_put(gpu, kernel, need, place, nth);
		block->next = *list;
		*list = block;
	}
	return true;
}

/* The next cluster into the virtual GPC with the fewest blocks an allowed SM that takes it. */
static bool place_somewhere(struct sim_gpu *gpu, struct sim_kernel *kernel,
			    const struct need *need, struct sim_block **list)
{
	unsigned int sms[SIM_MAX_VGPCS] = { 0 }, blocks[SIM_MAX_VGPCS] = { 0 };
	bool tried[SIM_MAX_VGPCS] = { false };
	int vgpc, best;
	unsigned int i;

	for (i = 0; i < kernel->nr_places; i++) {
		vgpc = kernel->places[i].sm->vgpc;
		sms[vgpc]++;
		blocks[vgpc] += kernel->places[i].sm->blocks;
	}
	for (;;) {
		best = -1;
		for (vgpc = 0; vgpc < SIM_MAX_VGPCS; vgpc++) {
			if (!sms[vgpc] || tried[vgpc])
				continue;
			if (best < 0 || (uint64_t)blocks[vgpc] * sms[best] <
					(uint64_t)blocks[best] * sms[vgpc])
				best = vgpc;
		}
		if (best < 0)
			return false;
		if (place_cluster(gpu, kernel, need, best, list))
			return true;
		tried[best] = true;
	}
}

static bool place_unit(struct sim_gpu *gpu, struct sim_kernel *kernel,
		       const struct need *need, struct sim_block **list)
{
	struct sim_place *place;
	struct sim_block *block;

	if (kernel->grid.clustered) {
		if (!place_somewhere(gpu, kernel, need, list))
			return false;
	} else {
		place = choose(kernel, need, -1, NULL, NULL);
		if (!place)
			return false;
		block = block_put(gpu, kernel, need, place, 0);
		block->next = *list;
		*list = block;
	}
	kernel->placed++;
	return true;
}

struct sim_block *dispatch_place(struct sim_gpu *gpu)
{
	struct sim_block *list = NULL, *stop;
	struct sim_kernel *kernel;
	struct need need;

	for (kernel = gpu->active; kernel; kernel = kernel->next) {
		need = kernel_need(kernel);
		stop = list;
		while (kernel->placed < kernel->nr_units)
			if (!place_unit(gpu, kernel, &need, &list))
				break;
		/* A cooperative grid starts whole or waits. */
		if (kernel->grid.cooperative && kernel->placed < kernel->nr_units) {
			retire_until(gpu, &list, stop);
			kernel->placed = 0;
		}
	}
	return list;
}
