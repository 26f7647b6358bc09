// SPDX-License-Identifier: MIT
/*
 * The load balancer: hands the blocks of the sorted table's tasks out, the first task's first.
 * What cannot be placed waits, and the next task gets what the first may not use or, on chips
 * that do so, has no room for. Among SMs it takes those with the fewest warps; in which order
 * those with equally many is a column of the chip's row.
 *
 * PIPE_ORDER_VGPC is the order seen on H200s: virtual GPCs in turn, each an SM after the
 * other; TPCs that are a virtual GPC of their own (singletons) before all, in two halves that
 * are a turn each, and again every eight turns (the first time after seven); the rest of a
 * grid that does not go round first to first SMs of TPCs, evenly by GPC, then to second ones.
 * What has gone round leaves the turn where it was, a rest moves it on by one.
 */
#include <stddef.h>
#include <string.h>
#include "pipe.h"

/* ------------------------------------------------------------------------- masks */

static inline bool mask_has(const uint64_t *mask, unsigned int bit)
{
	return mask[bit / 64] >> bit % 64 & 1;
}

static inline void mask_add(uint64_t *mask, unsigned int bit)
{
	mask[bit / 64] |= 1ull << bit % 64;
}

static inline void mask_del(uint64_t *mask, unsigned int bit)
{
	mask[bit / 64] &= ~(1ull << bit % 64);
}

static unsigned int mask_count(const uint64_t *mask, unsigned int words)
{
	unsigned int i, nr = 0;

	for (i = 0; i < words; i++)
		nr += __builtin_popcountll(mask[i]);
	return nr;
}

/* The first set bit from @from on, or -1. */
static int mask_next(const uint64_t *mask, unsigned int words, unsigned int from)
{
	unsigned int i = from / 64;
	uint64_t word;

	if (i >= words)
		return -1;
	word = mask[i] & (~0ull << from % 64);
	while (!word)
		if (++i == words)
			return -1;
		else
			word = mask[i];
	return i * 64 + __builtin_ctzll(word);
}

/* -------------------------------------------------------------------------- ranks */

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
	unsigned int i;

	machine->group_start[machine->nr_groups++] = *rank;
	for (i = 0; i < map->nr_sms; i++)
		if (map->sms[i].vgpc == vgpc)
			machine->by_rank[(*rank)++] = &machine->sms[i];
}

/* Singletons first, then the others by number. */
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

void balance_init(struct machine *machine)
{
	unsigned int i;

	if (machine->gpu->chip.order == PIPE_ORDER_VGPC)
		rank_by_vgpc(machine);
	else
		rank_by_tpc(machine);
	for (i = 0; i < machine->gpu->map.nr_sms; i++) {
		machine->by_rank[i]->rank = i;
		mask_add(machine->with_load[0], i);
		if (i && place_of(machine, i)->tpc == place_of(machine, i - 1)->tpc)
			mask_add(machine->follows, i);
	}
	machine->loads[0] = 1;
	machine->turn = machine->gpu->turn >> 1;
	machine->swapped = machine->gpu->turn & 1;
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

/* ------------------------------------------------------------------- what is where */

void balance_moved(struct machine *machine, struct sm *sm, unsigned int before)
{
	mask_del(machine->with_load[before], sm->rank);
	if (!machine->with_load[before][0] &&
	    !mask_count(machine->with_load[before], machine->words))
		machine->loads[before / 64] &= ~(1ull << before % 64);
	mask_add(machine->with_load[sm->warps], sm->rank);
	machine->loads[sm->warps / 64] |= 1ull << sm->warps % 64;
}

void balance_room(struct machine *machine, const struct sm *sm)
{
	struct task *task;

	for (task = machine->sorted; task; task = task->below) {
		mask_del(task->closed, sm->rank);
		task->stuck = false;
	}
}

/* The next SM: not before the balancer has time, nor before a block that ended is gone. */
static void place(struct pipe *pipe, struct task *task, struct sm *sm, uint64_t block,
		  uint32_t cluster)
{
	struct machine *machine = task->machine;
	const struct pipe_chip *chip = &machine->gpu->chip;
	uint64_t start = pipe->now + (sm->ended == pipe->now ? chip->begin_ns : 0);

	if (machine->balancer_ps < pipe->now * 1000)
		machine->balancer_ps = pipe->now * 1000;
	machine->balancer_ps += chip->place_ps;
	if (start < machine->balancer_ps / 1000)
		start = machine->balancer_ps / 1000;
	/* An SM whose block has just gone begins later than one that is handed its own after it. */
	if ((!task->given && !task->resident) || start < task->launch.start)
		task->launch.start = start;
	task->resident++;
	mask_add(task->launch.sms, sm->smid);
	sm_put(pipe, sm, task, block, cluster, start);
}

/*
 * SMs of @open with the fewest warps that take a block, into @found. What takes none is
 * closed for the task.
 */
static unsigned int least_loaded(struct task *task, uint64_t *open, uint64_t *found)
{
	struct machine *machine = task->machine;
	const struct pipe_chip *chip = &machine->gpu->chip;
	unsigned int i, w, rank, nr = 0;
	uint64_t loads, both;

	for (i = 0; i < 2; i++)
		for (loads = machine->loads[i]; loads; loads &= loads - 1) {
			const uint64_t *with = machine->with_load[i * 64 + __builtin_ctzll(loads)];

			for (w = 0; w < machine->words; w++) {
				found[w] = 0;
				/* check.c has seen to it that an idle one takes a block. */
				if (with == machine->with_load[0]) {
					found[w] = with[w] & open[w];
					nr += __builtin_popcountll(found[w]);
					continue;
				}
				for (both = with[w] & open[w]; both; both &= both - 1) {
					rank = w * 64 + __builtin_ctzll(both);
					if (sm_fits(machine->by_rank[rank], chip, task->shape)) {
						found[w] |= both & -both;
						nr++;
					} else {
						mask_add(task->closed, rank);
						open[w] &= ~(both & -both);
					}
				}
			}
			if (nr)
				return nr;
		}
	return 0;
}

/* -------------------------------------------------- the order of an H200's balancer */

struct wave {
	struct pipe *pipe;
	struct task *task;
	const uint64_t *open, *found;
	uint64_t left;
	uint64_t seconds[MAX_WORDS];
};

static void give(struct wave *wave, unsigned int rank)
{
	struct task *task = wave->task;

	place(wave->pipe, task, task->machine->by_rank[rank], task->given, 0);
	task->given++;
	wave->left--;
}

/* One block for each found SM of a group. */
static void give_group(struct wave *wave, unsigned int group)
{
	const struct machine *machine = wave->task->machine;
	unsigned int rank;

	for (rank = machine->group_start[group]; rank < machine->group_start[group + 1]; rank++)
		if (mask_has(wave->found, rank) && wave->left)
			give(wave, rank);
}

/* The @nth group to have its turn, singles among themselves and the others. */
static unsigned int single_at(const struct machine *machine, unsigned int nth)
{
	unsigned int nr = machine->nr_singles;

	return machine->swapped ? (nth + nr / 2) % nr : nth;
}

static unsigned int group_at(const struct machine *machine, unsigned int nth)
{
	unsigned int others = machine->nr_groups - machine->nr_singles;

	return machine->nr_singles + (machine->turn + nth) % others;
}

/* Bits [from, to) that are set. */
static unsigned int mask_count_range(const uint64_t *mask, unsigned int from, unsigned int to)
{
	unsigned int w, nr = 0;
	uint64_t word;

	for (w = from / 64; w * 64 < to; w++) {
		word = mask[w];
		if (w == from / 64)
			word &= ~0ull << from % 64;
		if (to - w * 64 < 64)
			word &= ~(~0ull << (to - w * 64));
		nr += __builtin_popcountll(word);
	}
	return nr;
}

/* Found SMs that follow another found one of their TPC. */
static void find_seconds(struct wave *wave)
{
	const struct machine *machine = wave->task->machine;
	unsigned int w;

	for (w = 0; w < machine->words; w++)
		wave->seconds[w] = wave->found[w] & machine->follows[w] &
			(wave->found[w] << 1 | (w ? wave->found[w - 1] >> 63 : 0));
}

/* Found SMs of a group that are first (@second: second) ones of their TPCs. */
static unsigned int half_of(const struct wave *wave, unsigned int group, bool second)
{
	const struct machine *machine = wave->task->machine;
	unsigned int from = machine->group_start[group], to = machine->group_start[group + 1];
	unsigned int seconds = mask_count_range(wave->seconds, from, to);

	return second ? seconds : mask_count_range(wave->found, from, to) - seconds;
}

static bool has_found(const struct wave *wave, unsigned int group)
{
	const struct machine *machine = wave->task->machine;
	int rank = mask_next(wave->found, machine->words, machine->group_start[group]);

	return rank >= 0 && rank < machine->group_start[group + 1];
}

/* Shares @left out one at a time among groups [@from, @to), at most @caps each. */
static uint64_t share_out(unsigned int *quotas, const unsigned int *caps, unsigned int from,
			  unsigned int to, uint64_t left)
{
	bool any = true;
	unsigned int i;

	while (left && any) {
		any = false;
		for (i = from; i < to && left; i++)
			if (quotas[i] < caps[i]) {
				quotas[i]++;
				left--;
				any = true;
			}
	}
	return left;
}

/* First SMs of TPCs, as many as @quota has, second ones of the first TPCs for the rest. */
static void give_quota(struct wave *wave, unsigned int group, unsigned int quota)
{
	const struct machine *machine = wave->task->machine;
	const struct pipe_map *map = &machine->gpu->map;
	unsigned int firsts = half_of(wave, group, false), seconds, rank;
	int tpc = -1;

	seconds = quota > firsts ? quota - firsts : 0;
	for (rank = machine->group_start[group];
	     rank < machine->group_start[group + 1] && quota && wave->left; rank++) {
		if (!mask_has(wave->found, rank))
			continue;
		if (map->sms[machine->by_rank[rank]->smid].tpc == tpc) {
			if (!seconds)
				continue;
			seconds--;
		}
		tpc = map->sms[machine->by_rank[rank]->smid].tpc;
		quota--;
		give(wave, rank);
	}
}

/* Fewer blocks than SMs: singles have theirs first, the others evenly. */
static void give_rest(struct wave *wave)
{
	struct machine *machine = wave->task->machine;
	unsigned int quotas[PIPE_MAX_SMS] = { 0 }, caps[PIPE_MAX_SMS];
	unsigned int i, second, singles = machine->nr_singles, groups = machine->nr_groups;
	uint64_t left = wave->left;
	bool others;

	for (i = 0; i < singles; i++)
		caps[i] = half_of(wave, i, false);
	left = share_out(quotas, caps, 0, singles, left);
	for (i = 0; i < singles; i++)
		caps[i] += half_of(wave, i, true);
	left = share_out(quotas, caps, 0, singles, left);
	others = left;
	for (second = 0; second < 2; second++) {
		for (i = singles; i < groups; i++)
			caps[i] = quotas[i] + half_of(wave, i, second);
		left = share_out(quotas, caps, singles, groups, left);
	}
	for (i = 0; i < singles; i++)
		give_quota(wave, single_at(machine, i), quotas[single_at(machine, i)]);
	for (i = 0; i < groups - singles; i++)
		give_quota(wave, group_at(machine, i), quotas[group_at(machine, i)]);
	if (others)
		machine->turn = (machine->turn + 1) % (groups - singles);
}

/* Blocks more that an SM takes, as it is now. */
static unsigned int room_on(const struct sm *sm, const struct pipe_chip *chip,
			    const struct shape *shape)
{
	unsigned int nr = 0, q;
	struct sm more;

	memcpy(&more, sm, offsetof(struct sm, residents));
	for (; nr < MAX_RESIDENT && sm_fits(&more, chip, shape); nr++) {
		more.blocks++;
		more.shared += shape->shared;
		for (q = 0; q < chip->quarters; q++) {
			unsigned int warps = shape->each +
				((q + nr * shape->rest) % chip->quarters < shape->rest);

			more.quarter_warps[q] += warps;
			more.quarter_registers[q] += warps * shape->warp_registers;
		}
	}
	return nr;
}

/* How often all found SMs take a block more, where all that are open are found, and alike. */
static uint64_t whole_rounds(const struct wave *wave, unsigned int nr)
{
	const struct machine *machine = wave->task->machine;
	const struct sm *first, *sm;
	uint64_t rounds, room;
	int rank;

	if (mask_count(wave->open, machine->words) != nr)
		return 1;
	rank = mask_next(wave->found, machine->words, 0);
	first = machine->by_rank[rank];
	while ((rank = mask_next(wave->found, machine->words, rank + 1)) >= 0) {
		sm = machine->by_rank[rank];
		if (sm->blocks != first->blocks || sm->shared != first->shared)
			return 1;
	}
	rounds = wave->left / nr;
	room = room_on(first, &machine->gpu->chip, wave->task->shape);
	return rounds < room ? rounds : room;
}

#define SINGLES_FIRST	7	/* turns from the singletons' first to their second, measured */
#define SINGLES_AGAIN	8	/* and from then on; a half of them is a turn */

/* Turns that the singletons take: one for each of their halves that has a found SM. */
static unsigned int halves(const struct wave *wave)
{
	const struct machine *machine = wave->task->machine;
	unsigned int i, nr = machine->nr_singles, first = 0, second = 0;

	for (i = 0; i < nr; i++)
		if (has_found(wave, i)) {
			first |= i < nr / 2;
			second |= i >= nr / 2;
		}
	return first + second;
}

/* All found SMs get @rounds blocks each. */
static void give_rounds(struct wave *wave, uint64_t rounds)
{
	struct machine *machine = wave->task->machine;
	unsigned int i, others = 0, at = 0, step;
	uint64_t singles = 0, turns = 0, until = 0, all;

	for (i = machine->nr_singles; i < machine->nr_groups; i++)
		others += has_found(wave, i);
	all = others * rounds;
	for (;;) {
		if (singles < rounds && (turns >= until || turns == all)) {
			for (i = 0; i < machine->nr_singles; i++)
				give_group(wave, single_at(machine, i));
			step = (singles ? SINGLES_AGAIN : SINGLES_FIRST) - halves(wave);
			until += step < others ? step : others;
			singles++;
		}
		if (turns == all) {
			if (singles == rounds)
				return;
			continue;
		}
		while (!has_found(wave, group_at(machine, at)))
			at++;
		give_group(wave, group_at(machine, at++));
		turns++;
	}
}

static void give_by_vgpc(struct wave *wave, unsigned int nr)
{
	uint64_t rounds;

	find_seconds(wave);
	if (wave->left < nr) {
		give_rest(wave);
		return;
	}
	rounds = whole_rounds(wave, nr);
	wave->left = rounds * nr;
	give_rounds(wave, rounds);
}

static void give_by_rank(struct wave *wave, unsigned int words)
{
	int rank = -1;

	while (wave->left && (rank = mask_next(wave->found, words, rank + 1)) >= 0)
		give(wave, rank);
}

/* ----------------------------------------------------------------------- clusters */

/* Where a cluster's blocks go; @load: warps on the fullest of the SMs. */
struct picked {
	uint64_t sms[MAX_WORDS];	/* by rank */
	uint8_t blocks[PIPE_MAX_SMS];	/* by rank, where they may share an SM */
	unsigned int load;
};

/* SMs of a group for a cluster that may share them: each block to the least loaded one. */
static unsigned int pick_packed(const struct task *task, const uint64_t *open,
				unsigned int group, struct picked *picked)
{
	const struct machine *machine = task->machine;
	const struct pipe_chip *chip = &machine->gpu->chip;
	unsigned int from = machine->group_start[group], to = machine->group_start[group + 1];
	unsigned int nr, rank, best, load, best_load = 0;

	memset(picked->sms, 0, machine->words * sizeof(*picked->sms));
	memset(picked->blocks + from, 0, to - from);
	picked->load = 0;
	for (nr = 0; nr < task->cluster; nr++) {
		for (best = to, rank = from; rank < to; rank++) {
			load = machine->by_rank[rank]->warps +
			       picked->blocks[rank] * task->shape->warps;
			if (!mask_has(open, rank) || (best < to && load >= best_load) ||
			    picked->blocks[rank] >=
				    room_on(machine->by_rank[rank], chip, task->shape))
				continue;
			best = rank;
			best_load = load;
		}
		if (best == to)
			return 0;
		mask_add(picked->sms, best);
		picked->blocks[best]++;
		picked->load = best_load;
	}
	return nr;
}

/* SMs of a group that take a block more, by rank; what takes none is closed for the task. */
static unsigned int find_fitting(struct task *task, uint64_t *open, unsigned int group,
				 uint16_t *ranks)
{
	struct machine *machine = task->machine;
	unsigned int from = machine->group_start[group], to = machine->group_start[group + 1];
	unsigned int nr = 0, rank;

	if (mask_count_range(open, from, to) < task->cluster)
		return 0;
	for (rank = from; rank < to; rank++) {
		if (!mask_has(open, rank))
			continue;
		if (sm_fits(machine->by_rank[rank], &machine->gpu->chip, task->shape)) {
			ranks[nr++] = rank;
			continue;
		}
		mask_add(task->closed, rank);
		mask_del(open, rank);
	}
	return nr;
}

/* SMs of a group for one cluster: the least loaded ones, one block each. */
static unsigned int pick(struct task *task, uint64_t *open, unsigned int group,
			 uint64_t *picked, unsigned int *load)
{
	const struct machine *machine = task->machine;
	uint16_t ranks[PIPE_MAX_SMS];
	unsigned int i, nr, best, left, room = find_fitting(task, open, group, ranks);

	if (room < task->cluster)
		return 0;
	memset(picked, 0, machine->words * sizeof(*picked));
	*load = 0;
	for (nr = 0; nr < task->cluster; nr++) {
		for (i = 1, best = 0; i < room; i++)
			if (machine->by_rank[ranks[i]]->warps <
			    machine->by_rank[ranks[best]]->warps)
				best = i;
		mask_add(picked, ranks[best]);
		*load = machine->by_rank[ranks[best]]->warps;
		for (left = --room; best < left; best++)
			ranks[best] = ranks[best + 1];
	}
	return nr;
}

/* The next cluster to the group whose SMs for it are least loaded, in turn. */
static bool place_cluster(struct pipe *pipe, struct task *task, uint64_t *open)
{
	struct machine *machine = task->machine;
	unsigned int i, singles = machine->nr_singles, nth = 0, nr;
	uint64_t block = task->given * task->cluster;
	struct picked picked, best = { .load = ~0u };
	bool pack = task->kernel->pack;
	int rank = -1;

	for (i = 0; i < machine->nr_groups; i++) {
		unsigned int group = i < singles ? (i + machine->swapped) % singles :
				     group_at(machine, i - singles);

		nr = pack ? pick_packed(task, open, group, &picked) :
			    pick(task, open, group, picked.sms, &picked.load);
		if (!nr || picked.load >= best.load)
			continue;
		nth = i;
		memcpy(best.sms, picked.sms, sizeof(best.sms));
		if (pack)
			memcpy(best.blocks, picked.blocks, sizeof(best.blocks));
		best.load = picked.load;
	}
	if (best.load == ~0u)
		return false;
	if (nth >= singles)
		machine->turn = (machine->turn + nth - singles + 1) %
				(machine->nr_groups - singles);
	while ((rank = mask_next(best.sms, machine->words, rank + 1)) >= 0)
		for (nr = pack ? best.blocks[rank] : 1; nr; nr--)
			place(pipe, task, machine->by_rank[rank], block++, task->given);
	task->given++;
	return true;
}

/* --------------------------------------------------------------------- capacity */

uint64_t balance_capacity(const struct machine *machine, const struct pipe_kernel *kernel,
			  const uint64_t *allowed)
{
	uint64_t each = pipe_occupancy(&machine->gpu->chip, kernel), units = 0;
	unsigned int group, rank, sms;

	if (!kernel->cluster)
		return each * mask_count(allowed, machine->words);
	for (group = 0; group < machine->nr_groups; group++) {
		for (sms = 0, rank = machine->group_start[group];
		     rank < machine->group_start[group + 1]; rank++)
			sms += mask_has(allowed, rank);
		/* Several clusters may share SMs, but each has its blocks on different ones. */
		if (kernel->pack || sms >= kernel->cluster)
			units += sms * each / kernel->cluster;
	}
	return units;
}

/* Whether the rooms of a group's SMs take so many clusters, with an SM for each block of one. */
static bool group_takes(const uint8_t *rooms, unsigned int nr, const struct task *task,
			uint64_t clusters)
{
	uint64_t blocks = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		blocks += task->kernel->pack || rooms[i] < clusters ? rooms[i] : clusters;
	return blocks >= clusters * task->cluster;
}

static uint64_t clusters_now(const struct task *task, const uint64_t *open, unsigned int group)
{
	const struct machine *machine = task->machine;
	unsigned int from = machine->group_start[group], to = machine->group_start[group + 1];
	uint8_t rooms[PIPE_MAX_SMS] = { 0 };
	uint64_t clusters = 0;
	unsigned int rank;

	for (rank = from; rank < to; rank++)
		if (mask_has(open, rank))
			rooms[rank - from] = room_on(machine->by_rank[rank], &machine->gpu->chip,
						     task->shape);
	while (group_takes(rooms, to - from, task, clusters + 1))
		clusters++;
	return clusters;
}

/* Blocks, or clusters, of a cooperative grid that there is room for now. */
static uint64_t room_now(const struct task *task, const uint64_t *open)
{
	const struct machine *machine = task->machine;
	unsigned int group;
	uint64_t nr = 0;
	int rank = -1;

	for (group = 0; task->cluster && group < machine->nr_groups; group++)
		nr += clusters_now(task, open, group);
	while (!task->cluster && (rank = mask_next(open, machine->words, rank + 1)) >= 0)
		nr += room_on(machine->by_rank[rank], &machine->gpu->chip, task->shape);
	return nr;
}

/* ------------------------------------------------------------------------ the loop */

static void place_blocks(struct pipe *pipe, struct task *task, uint64_t *open)
{
	struct machine *machine = task->machine;
	uint64_t found[MAX_WORDS];
	struct wave wave = { .pipe = pipe, .task = task, .open = open, .found = found };
	unsigned int nr;

	while ((wave.left = task->units - task->given)) {
		nr = least_loaded(task, open, found);
		if (!nr)
			return;
		if (nr == 1 || machine->gpu->chip.order == PIPE_ORDER_TPC)
			give_by_rank(&wave, machine->words);
		else
			give_by_vgpc(&wave, nr);
	}
}

/* A task's first blocks: the singletons' halves change places. */
static void begin(struct task *task)
{
	if (task->begun)
		return;
	task->begun = true;
	task->machine->swapped = !task->machine->swapped;
	if (task->turn) {
		task->machine->turn = (task->turn - 1) >> 1;
		task->machine->swapped = (task->turn - 1) & 1;
	}
}

static void place_task(struct pipe *pipe, struct task *task, uint64_t *open)
{
	begin(task);
	/* All of its blocks at once, or none. */
	if (task->kernel->cooperative && room_now(task, open) < task->units - task->given)
		return;
	if (!task->cluster) {
		place_blocks(pipe, task, open);
		return;
	}
	while (!task->stuck && task->given < task->units)
		task->stuck = !place_cluster(pipe, task, open);
}

void balance(struct pipe *pipe, struct machine *machine)
{
	bool beside = machine->gpu->chip.beside;
	uint64_t barred[MAX_WORDS] = { 0 }, open[MAX_WORDS];
	struct task *task, *below;
	unsigned int w;
	uint64_t any;

	for (task = machine->sorted; task; task = below) {
		below = task->below;
		for (w = 0, any = 0; w < machine->words; w++) {
			open[w] = task->allowed[w] & ~task->closed[w] & ~barred[w];
			any |= open[w];
		}
		if (any)
			place_task(pipe, task, open);
		if (task->given == task->units) {
			wdu_unsort(task);
			continue;
		}
		for (w = 0; w < machine->words && !beside; w++)
			barred[w] |= task->allowed[w];
	}
}
