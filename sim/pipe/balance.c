// SPDX-License-Identifier: MIT
/*
 * The load balancer. It assigns the blocks of tasks to SMs. The order of the tasks is the order
 * of the sorted table. A block waits if no SM has room for it. While a task waits, the next task
 * gets the SMs that the waiting task may not use. On some chips the next task also gets the SMs
 * that are too full for a block of the waiting task. For a block, the balancer chooses an SM that
 * has room for the largest number of blocks of this task. If several SMs have room for the same
 * number of blocks, a column of the chip's row selects their order.
 *
 * PIPE_ORDER_VGPC is the order that was measured on H200s. In this order, virtual GPCs take
 * turns. In each turn, one SM of the virtual GPC gets a block. A singleton is a TPC that is a
 * whole virtual GPC. The singletons form two halves. First, each half of the singletons gets a
 * turn. The singletons get their second turn after seven turns, and each later turn after eight
 * turns. After the full rounds, some blocks remain. The balancer assigns the remaining blocks
 * first to singletons, then to the first SMs of TPCs, and then to the second SMs of TPCs, by
 * ascending number of the TPC. The balancer first decides which groups get a remaining block. The
 * turn then decides in which order these groups get their blocks. Clusters are assigned in the
 * same way. In each round, each virtual GPC gets one cluster.
 *
 * Some state persists between kernels. The last served virtual GPC is remembered. The next kernel
 * begins with the virtual GPC after that one. The kernel skips one more virtual GPC in two cases.
 * In the first case, remaining blocks of another kernel are running when the kernel arrives. In
 * the second case, the kernel arrives at an idle GPU and has a set that excludes a virtual GPC.
 * Of the singletons, the next kernel begins with the half that was served last. There is one
 * exception: the previous kernel used SMs, but no SM of the last served half. In this case, the
 * next kernel begins with the other half.
 */
#include <stddef.h>
#include <string.h>
#include "sim/pipe/mask.h"
#include "sim/pipe/pipe.h"

/* Assigns a block to the SM. The balancer and the previous block can delay the start. */
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
	/*
	 * If the previous block has just left the SM, the next block starts a little later. If
	 * the SM has been free for some time, there is no delay.
	 */
	if ((!task->given && !task->resident) || start < task->launch.start)
		task->launch.start = start;
	task->resident++;
	mask_add(task->launch.sms, sm->smid);
	sm_put(pipe, sm, task, block, cluster, start);
}

/* Returns how many more blocks fit on the SM. Counts the blocks one at a time. */
static unsigned int count_room(const struct sm *sm, const struct pipe_chip *chip,
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

static unsigned int at_most(unsigned int limit, unsigned int used, unsigned int each)
{
	return used > limit ? 0 : each ? (limit - used) / each : MAX_RESIDENT;
}

/* Like count_room(), but only for blocks with the same number of warps in each quarter. */
static unsigned int room_on(const struct sm *sm, const struct pipe_chip *chip,
			    const struct shape *shape)
{
	unsigned int q, nr, limit;

	if (shape->rest)
		return count_room(sm, chip, shape);
	nr = at_most(chip->blocks, sm->blocks, 1);
	limit = at_most(chip->shared, sm->shared, shape->shared);
	nr = limit < nr ? limit : nr;
	for (q = 0; q < chip->quarters; q++) {
		limit = at_most(chip->warps, sm->quarter_warps[q], shape->each);
		nr = limit < nr ? limit : nr;
		limit = at_most(chip->registers, sm->quarter_registers[q],
				shape->each * shape->warp_registers);
		nr = limit < nr ? limit : nr;
	}
	return nr < MAX_RESIDENT ? nr : MAX_RESIDENT;
}

/*
 * Stores in @found the SMs of @open that have room for the largest number of blocks. Marks each
 * SM on which no block fits as closed for the task.
 */
static unsigned int most_room(struct task *task, uint64_t *open, uint64_t *found)
{
	struct machine *machine = task->machine;
	const struct pipe_chip *chip = &machine->gpu->chip;
	unsigned int room, best = 1, nr = 0, w, rank;
	uint64_t both, bit;

	/*
	 * All idle SMs are equal and have the most room. A block fits on an idle SM, because
	 * check.c has checked this condition.
	 */
	for (w = 0; w < machine->words; w++) {
		found[w] = open[w] & machine->idle[w];
		if (found[w] && !nr)
			best = room_on(machine->by_rank[w * 64 + __builtin_ctzll(found[w])], chip,
				       task->shape);
		nr += __builtin_popcountll(found[w]);
	}
	for (w = 0; w < machine->words; w++)
		for (both = open[w] & ~machine->idle[w]; both; both ^= bit) {
			rank = w * 64 + __builtin_ctzll(both);

			bit = both & -both;
			room = room_on(machine->by_rank[rank], chip, task->shape);
			if (!room) {
				mask_add(task->closed, rank);
				open[w] ^= bit;
			}
			if (room < best)
				continue;
			if (room > best) {
				memset(found, 0, machine->words * sizeof(*found));
				nr = 0;
				best = room;
			}
			found[w] |= bit;
			nr++;
		}
	return nr;
}

/* -------------------------------------------------- the order of an H200's balancer */

struct wave {
	struct pipe *pipe;
	struct task *task;
	const uint64_t *open, *found;
	uint64_t left;
};

static void give(struct wave *wave, unsigned int rank)
{
	struct task *task = wave->task;

	place(wave->pipe, task, task->machine->by_rank[rank], task->given, 0);
	task->given++;
	wave->left--;
}

/* Assigns one block to each SM that is in the group and in @which. */
static void give_group(struct wave *wave, unsigned int group, const uint64_t *which)
{
	struct machine *machine = wave->task->machine;
	unsigned int rank, others = machine->nr_groups - machine->nr_singles;

	for (rank = machine->group_start[group]; rank < machine->group_start[group + 1]; rank++)
		if (mask_has(which, rank) && wave->left) {
			give(wave, rank);
			if (group < machine->nr_singles)
				machine->served_half = 1 + (group >= machine->nr_singles / 2);
			else
				machine->turn = (group + 1 - machine->nr_singles) % others;
		}
}

/*
 * Each of these functions returns the group with turn number @nth. The first function numbers
 * only singletons, and the second function numbers only the other groups.
 */
static unsigned int single_at(const struct machine *machine, unsigned int nth)
{
	unsigned int nr = machine->nr_singles;

	return machine->single & 1 ? (nth + nr / 2) % nr : nth;
}

static unsigned int group_at(const struct machine *machine, unsigned int nth)
{
	unsigned int others = machine->nr_groups - machine->nr_singles;

	return machine->nr_singles + (machine->turn + nth) % others;
}

static bool has_any(const struct machine *machine, const uint64_t *which, unsigned int group)
{
	int rank = mask_next(which, machine->words, machine->group_start[group]);

	return rank >= 0 && rank < machine->group_start[group + 1];
}

static bool has_found(const struct wave *wave, unsigned int group)
{
	return has_any(wave->task->machine, wave->found, group);
}

/* Advances the turn before a round. In the round, each SM in @which gets one block. */
static void pass_begins(const struct wave *wave, const uint64_t *which)
{
	struct machine *machine = wave->task->machine;
	unsigned int i, others = machine->nr_groups - machine->nr_singles;

	if (!mask_count_range(which, 0, machine->group_start[machine->nr_singles]))
		machine->single ^= 1;
	for (i = 0; machine->skip && i < others; i++)
		if (has_any(machine, which, group_at(machine, i))) {
			machine->turn = (machine->turn + i + 1) % others;
			machine->skip = false;
		}
}

/* Assigns fewer blocks than SMs. First chooses the groups, and then assigns in turn. */
static void give_rest(struct wave *wave)
{
	struct machine *machine = wave->task->machine;
	unsigned int i, rank, singles = machine->nr_singles, others = machine->nr_groups - singles;
	uint64_t which[MAX_WORDS] = { 0 }, left = wave->left;
	bool any = false;
	unsigned int turn;

	for (i = 0; i < machine->gpu->map.nr_sms && left; i++) {
		rank = machine->by_rest[i];
		if (!mask_has(wave->found, rank))
			continue;
		mask_add(which, rank);
		any |= rank >= machine->group_start[singles];
		left--;
	}
	pass_begins(wave, which);
	for (i = 0; i < singles; i++)
		give_group(wave, single_at(machine, i), which);
	for (i = 0, turn = machine->turn; i < others; i++)
		give_group(wave, singles + (turn + i) % others, which);
	machine->rested |= any;
}

/*
 * Returns the number of possible full rounds over the found SMs. If not all open SMs were found,
 * or if the open SMs are not equal, the result is at most 1.
 */
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

/* measured number of turns between the first and the second blocks of singletons */
#define SINGLES_FIRST	7
#define SINGLES_AGAIN	8	/* turns between later blocks of a singleton */

/* Returns the number of singleton turns: one turn for each half that has a found SM. */
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

/* Assigns @rounds blocks to each found SM. */
static void give_rounds(struct wave *wave, uint64_t rounds)
{
	struct machine *machine = wave->task->machine;
	unsigned int i, others = 0, at, step;
	uint64_t singles = 0, turns = 0, until = 0, all;

	pass_begins(wave, wave->found);
	for (i = machine->nr_singles; i < machine->nr_groups; i++)
		others += has_found(wave, i);
	all = others * rounds;
	for (;;) {
		if (singles < rounds && (turns >= until || turns == all)) {
			for (i = 0; i < machine->nr_singles; i++)
				give_group(wave, single_at(machine, i), wave->found);
			step = (singles ? SINGLES_AGAIN : SINGLES_FIRST) - halves(wave);
			until += step < others ? step : others;
			singles++;
		}
		if (turns == all) {
			if (singles == rounds)
				return;
			continue;
		}
		for (at = 0; !has_found(wave, group_at(machine, at)); at++)
			;
		give_group(wave, group_at(machine, at), wave->found);
		turns++;
	}
}

static void give_by_vgpc(struct wave *wave, unsigned int nr)
{
	uint64_t rounds;

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

/*
 * The SMs for the blocks of a cluster. @load is the largest number of warps on one of these SMs.
 */
struct picked {
	uint64_t sms[MAX_WORDS];	/* by rank */
	uint8_t blocks[PIPE_MAX_SMS];	/* number of blocks by rank, if blocks may share an SM */
	unsigned int load;
};

/*
 * Chooses SMs of a group for one cluster. Used only for a cluster whose blocks may share SMs.
 * Each block gets the SM with the lowest load at that moment.
 */
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

/*
 * If one more block fits on an SM of the group, stores the rank of the SM. Marks the other SMs of
 * the group as closed for the task.
 */
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

/*
 * Chooses SMs of a group for one cluster: the SMs with the lowest load. Each chosen SM gets one
 * block.
 */
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

/* Returns the group with turn number @nth for clusters. */
static unsigned int cluster_at(const struct machine *machine, unsigned int nth)
{
	unsigned int singles = machine->nr_singles;

	return nth < singles ? (nth + machine->single) % singles :
	       group_at(machine, nth - singles);
}

static void cluster_moves_on(struct machine *machine, unsigned int nth)
{
	unsigned int singles = machine->nr_singles, others = machine->nr_groups - singles;

	if (nth < singles)
		machine->single = (machine->single + nth + 1) % singles;
	else
		machine->turn = (machine->turn + nth - singles + 1) % others;
}

static bool pick_for(struct task *task, uint64_t *open, unsigned int group,
		     struct picked *picked)
{
	return task->kernel->pack ? pick_packed(task, open, group, picked) :
				    pick(task, open, group, picked->sms, &picked->load);
}

/* Counts the clusters of a group on SMs that have more blocks than a given load. */
static unsigned int clusters_beyond(const struct task *task, unsigned int group, unsigned int load)
{
	const struct machine *machine = task->machine;
	unsigned int rank, nr = 0;

	for (rank = machine->group_start[group]; rank < machine->group_start[group + 1]; rank++)
		nr += machine->by_rank[rank]->warps > load;
	return divide_up(nr, task->cluster);
}

/*
 * Stores the groups that get the next clusters. The groups whose SMs have the lowest load are
 * chosen. Among groups of equal load, the groups with the fewest clusters are chosen. If fewer
 * clusters than chosen groups remain, the groups with the lowest numbers get the clusters.
 */
static bool groups_for_clusters(struct task *task, uint64_t *open, uint64_t *which)
{
	const struct machine *machine = task->machine;
	uint64_t left = task->units - task->given, keys[PIPE_MAX_SMS], least = UINT64_MAX;
	struct picked picked;

	for (unsigned int group = 0; group < machine->nr_groups; group++) {
		keys[group] = UINT64_MAX;
		if (!pick_for(task, open, group, &picked))
			continue;
		keys[group] = (uint64_t)picked.load << 32 |
			      clusters_beyond(task, group, picked.load);
		if (keys[group] < least)
			least = keys[group];
	}
	for (unsigned int group = 0; group < machine->nr_groups && least != UINT64_MAX; group++)
		if (keys[group] == least && left) {
			mask_add(which, group);
			left--;
		}
	return least != UINT64_MAX;
}

static bool place_cluster(struct pipe *pipe, struct task *task, uint64_t *open)
{
	struct machine *machine = task->machine;
	uint64_t block = task->given * task->cluster, which[MAX_WORDS] = { 0 };
	unsigned int nth = 0, nr;
	struct picked picked;
	int rank = -1;

	if (!groups_for_clusters(task, open, which))
		return false;
	while (!mask_has(which, cluster_at(machine, nth)))
		nth++;
	pick_for(task, open, cluster_at(machine, nth), &picked);
	cluster_moves_on(machine, nth);
	while ((rank = mask_next(picked.sms, machine->words, rank + 1)) >= 0)
		for (nr = task->kernel->pack ? picked.blocks[rank] : 1; nr; nr--)
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
		/*
		 * Several clusters may share an SM, but the blocks of one cluster are on
		 * different SMs.
		 */
		if (kernel->pack || sms >= kernel->cluster)
			units += sms * each / kernel->cluster;
	}
	return units;
}

/*
 * Returns true if this number of clusters fits on the SMs of a group. All blocks of one cluster
 * must be on different SMs.
 */
static bool group_takes(const uint8_t *rooms, unsigned int nr, const struct task *task,
			uint64_t clusters)
{
	uint64_t blocks = 0;

	for (unsigned int i = 0; i < nr; i++)
		blocks += task->kernel->pack || rooms[i] < clusters ? rooms[i] : clusters;
	return blocks >= clusters * task->cluster;
}

static uint64_t clusters_now(const struct task *task, const uint64_t *open, unsigned int group)
{
	const struct machine *machine = task->machine;
	unsigned int from = machine->group_start[group], to = machine->group_start[group + 1];
	uint8_t rooms[PIPE_MAX_SMS] = { 0 };
	uint64_t clusters = 0;

	for (unsigned int rank = from; rank < to; rank++)
		if (mask_has(open, rank))
			rooms[rank - from] = room_on(machine->by_rank[rank], &machine->gpu->chip,
						     task->shape);
	while (group_takes(rooms, to - from, task, clusters + 1))
		clusters++;
	return clusters;
}

/* Returns the number of blocks or clusters of a cooperative grid that fit on the SMs now. */
static uint64_t room_now(const struct task *task, const uint64_t *open)
{
	const struct machine *machine = task->machine;
	uint64_t nr = 0;
	int rank = -1;

	for (unsigned int group = 0; task->cluster && group < machine->nr_groups; group++)
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
		nr = most_room(task, open, found);
		if (!nr)
			return;
		if (nr == 1 || machine->gpu->chip.order == PIPE_ORDER_TPC)
			give_by_rank(&wave, machine->words);
		else
			give_by_vgpc(&wave, nr);
	}
}

/* Returns true if the set of the task excludes all SMs of a virtual GPC. */
static bool leaves_out(const struct task *task)
{
	const struct machine *machine = task->machine;

	for (unsigned int group = machine->nr_singles; group < machine->nr_groups; group++)
		if (!has_any(machine, task->allowed, group))
			return true;
	return false;
}

/* Called before a task's first blocks. The last served half of the singletons is first. */
static void begin(struct task *task)
{
	struct machine *machine = task->machine;

	if (task->begun)
		return;
	task->begun = true;
	if (!task->cluster && machine->served_half)
		machine->single = (machine->single & ~1u) | (machine->served_half - 1);
	machine->skip = machine->nr_resident ? machine->rested : leaves_out(task);
	machine->rested = false;
	if (task->turn) {
		balance_set_turn(machine, task->turn - 1);
		machine->skip = false;
	}
}

static void place_task(struct pipe *pipe, struct task *task, uint64_t *open)
{
	begin(task);
	/* If not all blocks of a cooperative grid fit at the same time, assign no block. */
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
		/*
		 * As measured, while an earlier task has unassigned blocks, a later task does not
		 * use the SMs of the earlier task.
		 */
		for (w = 0; w < machine->words; w++)
			barred[w] |= task->allowed[w];
	}
}
