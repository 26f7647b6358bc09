// SPDX-License-Identifier: MIT
/*
 * Distributes bandwidth among SMs. Three parts have a limited bandwidth: the port of each GPC,
 * each half of the L2 cache, and the DRAM. If the total demand is too high, each demand is reduced
 * in the same proportion.
 */
#include "sim/pipe/pipe.h"

/* The order of the levels is: DRAM at index 0, then uGPUs, then GPCs. */
static unsigned int ugpu_level(const struct sm *sm)
{
	return 1 + sm->ugpu;
}

static unsigned int gpc_level(const struct machine *machine, const struct sm *sm)
{
	return 1 + machine->gpu->chip.nr_ugpus + sm->gpc;
}

void memory_init(struct machine *machine)
{
	const struct pipe_chip *chip = &machine->gpu->chip;

	machine->nr_levels = 1 + chip->nr_ugpus + machine->gpu->map.nr_gpcs;
	for (unsigned int i = 0; i < machine->nr_levels; i++) {
		machine->levels[i].rate = ONE;
		machine->levels[i].cap = 16 * (!i ? chip->dram_rate :
					       i <= chip->nr_ugpus ? chip->ugpu_rate :
					       chip->gpc_rate);
	}
}

/*
 * Returns the part of a level's @rate that the reads in @demand use. Reads from DRAM count more,
 * by the ratio of @rate to @dram_rate. @dram_rate is the rate of the level if all reads are from
 * DRAM. If @dram_rate is 0, all reads count the same.
 */
static uint64_t share_of(uint64_t rate, uint64_t dram_rate, const uint64_t demand[2])
{
	if (!dram_rate)
		return demand[0];
	return demand[0] - demand[1] + mul_div(demand[1], rate, dram_rate);
}

static uint32_t rate_of(uint64_t cap, uint64_t demand)
{
	uint64_t rate = demand > cap ? mul_div(cap, ONE, demand) : ONE;

	return rate ? rate : 1;
}

uint32_t memory_rate(const struct machine *machine, const struct sm *sm)
{
	uint32_t rate = rate_of(16 * machine->gpu->chip.sm_rate, sm->demand[0]);
	const struct level *level = machine->levels;

	if (level[ugpu_level(sm)].rate < rate)
		rate = level[ugpu_level(sm)].rate;
	if (level[gpc_level(machine, sm)].rate < rate)
		rate = level[gpc_level(machine, sm)].rate;
	if (sm->demand[1] && level->rate < rate)
		rate = level->rate;
	return rate;
}

/* If the rate of a level has changed, marks each SM that uses this level. */
static void mark_changed_sms(struct machine *machine, uint64_t changed)
{
	struct sm *sm;

	for (unsigned int i = 0; i < machine->gpu->map.nr_sms; i++) {
		sm = &machine->sms[i];
		if (!sm->demand[0])
			continue;
		if (((changed & 1) && sm->demand[1]) || changed >> ugpu_level(sm) & 1 ||
		    changed >> gpc_level(machine, sm) & 1)
			machine_sm_dirty(sm);
	}
}

void memory_settle(struct pipe *pipe, struct machine *machine)
{
	const struct pipe_chip *chip = &machine->gpu->chip;
	uint64_t touched = 0, changed = 0;
	unsigned int i, nr = machine->nr_dirty;
	struct level *level;
	struct sm *sm;

	(void)pipe;
	for (i = 0; i < nr; i++) {
		sm = machine->dirty[i];
		if (sm->demand[0] == sm->counted[0] && sm->demand[1] == sm->counted[1])
			continue;
		machine->levels[0].demand += sm->demand[1] - sm->counted[1];
		machine->levels[ugpu_level(sm)].demand +=
			share_of(chip->ugpu_rate, chip->ugpu_dram_rate, sm->demand) -
			share_of(chip->ugpu_rate, chip->ugpu_dram_rate, sm->counted);
		machine->levels[gpc_level(machine, sm)].demand +=
			share_of(chip->gpc_rate, chip->gpc_dram_rate, sm->demand) -
			share_of(chip->gpc_rate, chip->gpc_dram_rate, sm->counted);
		sm->counted[0] = sm->demand[0];
		sm->counted[1] = sm->demand[1];
		touched |= 1 | 1ull << ugpu_level(sm) | 1ull << gpc_level(machine, sm);
	}
	for (; touched; touched &= touched - 1) {
		level = &machine->levels[__builtin_ctzll(touched)];
		if (level->rate == rate_of(level->cap, level->demand))
			continue;
		level->rate = rate_of(level->cap, level->demand);
		changed |= touched & -touched;
	}
	if (changed)
		mark_changed_sms(machine, changed);
}
