// SPDX-License-Identifier: MIT
/*
 * Gives each SM of a GPU a rank. The load balancer uses the SMs in the order of their ranks. Each
 * virtual GPC has a group of ranks. This file also tracks the idle SMs and the SMs with room.
 */
#include <string.h>
#include "sim/pipe/mask.h"
#include "sim/pipe/pipe.h"

static unsigned int group_size(const struct pipe_map *map, unsigned int vgpc)
{
	unsigned int i, nr = 0;

	for (i = 0; i < map->nr_sms; i++)
		if (map->sms[i].vgpc == vgpc && !map->sms[i].sm_in_tpc)
			nr++;
	return nr;
}

static void add_group(struct machine *machine, unsigned int vgpc, unsigned int *rank)
{
	const struct pipe_map *map = &machine->gpu->map;

	machine->group_start[machine->nr_groups++] = *rank;
	for (unsigned int i = 0; i < map->nr_sms; i++)
		if (map->sms[i].vgpc == vgpc)
			machine->by_rank[(*rank)++] = &machine->sms[i];
}

/* The singletons come first, and then the other groups by number. */
static void rank_by_vgpc(struct machine *machine)
{
	const struct pipe_map *map = &machine->gpu->map;
	unsigned int vgpc, rank = 0;

	for (vgpc = 0; vgpc < map->nr_vgpcs; vgpc++)
		if (group_size(map, vgpc) == 1)
			add_group(machine, vgpc, &rank);
	machine->nr_singles = machine->nr_groups;
	for (vgpc = 0; vgpc < map->nr_vgpcs; vgpc++)
		if (group_size(map, vgpc) > 1)
			add_group(machine, vgpc, &rank);
	machine->group_start[machine->nr_groups] = rank;
}

static void rank_by_tpc(struct machine *machine)
{
	const struct pipe_map *map = &machine->gpu->map;
	unsigned int nth, i, rank = 0;

	for (nth = 0; rank < map->nr_sms; nth++)
		for (i = 0; i < map->nr_sms; i++)
			if (map->sms[i].sm_in_tpc == nth)
				machine->by_rank[rank++] = &machine->sms[i];
}

static const struct pipe_place *place_of(const struct machine *machine, unsigned int rank)
{
	return &machine->gpu->map.sms[machine->by_rank[rank]->smid];
}

/* Returns true if the SM of rank @a gets a remaining block before the SM of rank @b. */
static bool rest_before(const struct machine *machine, unsigned int a, unsigned int b)
{
	const struct pipe_place *x = place_of(machine, a), *y = place_of(machine, b);
	unsigned int others = machine->group_start[machine->nr_singles];

	if ((a < others) != (b < others))
		return a < others;
	if (x->sm_in_tpc != y->sm_in_tpc)
		return x->sm_in_tpc < y->sm_in_tpc;
	return x->tpc < y->tpc;
}

static void order_rest(struct machine *machine)
{
	unsigned int i, j;

	for (i = 0; i < machine->gpu->map.nr_sms; i++) {
		for (j = i; j && rest_before(machine, i, machine->by_rest[j - 1]); j--)
			machine->by_rest[j] = machine->by_rest[j - 1];
		machine->by_rest[j] = i;
	}
}

void balance_set_turn(struct machine *machine, unsigned int turn)
{
	machine->turn = turn >> 1 & 7;
	machine->single = (turn & 1) | (turn >> 3 & 2);
}

void balance_init(struct machine *machine)
{
	if (machine->gpu->chip.order == PIPE_ORDER_VGPC)
		rank_by_vgpc(machine);
	else
		rank_by_tpc(machine);
	for (unsigned int i = 0; i < machine->gpu->map.nr_sms; i++) {
		machine->by_rank[i]->rank = i;
		mask_add(machine->idle, i);
	}
	order_rest(machine);
	balance_set_turn(machine, machine->gpu->turn);
}

void balance_mask(const struct machine *machine, const struct pipe_set *set, uint64_t *allowed)
{
	const struct pipe_map *map = &machine->gpu->map;
	unsigned int i, tpc;

	memset(allowed, 0, MAX_WORDS * sizeof(*allowed));
	for (i = 0; i < map->nr_sms; i++) {
		tpc = map->sms[i].tpc;
		if (!set || set->allowed[tpc / 64] >> tpc % 64 & 1)
			mask_add(allowed, machine->sms[i].rank);
	}
}

void balance_idle(struct machine *machine, const struct sm *sm, bool idle)
{
	if (idle)
		mask_add(machine->idle, sm->rank);
	else
		mask_del(machine->idle, sm->rank);
}

void balance_room(struct machine *machine, const struct sm *sm)
{
	struct task *task;

	for (task = machine->sorted; task; task = task->below) {
		mask_del(task->closed, sm->rank);
		task->stuck = false;
	}
}
