// SPDX-License-Identifier: MIT
/*
 * Simulates an SM: its blocks, their remaining work and their speed. In each quarter, the oldest
 * block gets as many issue slots as it can use. Then the next oldest block gets issue slots, and
 * so on. The schedulers of an H200 use nearly the same order
 * (Documentation/results/h200-traces.md). Bandwidth is shared evenly.
 */
#include "sim/pipe/pipe.h"

/* -------------------------------------------------------------------------- shapes */

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Returns 1 if quarter @q has one more warp than the minimum, otherwise 0. @rest quarters have
 * one more warp, and @first is the first of these quarters.
 */
static inline unsigned int one_more(const struct shape *shape, unsigned int quarters,
				    unsigned int first, unsigned int q)
{
	return (q < first ? q + quarters - first : q - first) < shape->rest;
}

static void find_needs(struct shape *shape, unsigned int quarters)
{
	unsigned int first, q;

	for (first = 0; first < quarters; first++)
		for (q = 0; q < quarters; q++)
			shape->need[first][q] = shape->issue *
				(shape->each + one_more(shape, quarters, first, q));
}

void shape_make(struct shape *shape, const struct pipe_chip *chip,
		const struct pipe_kernel *kernel)
{
	unsigned int every = kernel->every ? kernel->every : chip->latency;
	unsigned int registers = kernel->registers ? kernel->registers : 32;
	uint64_t work, reads, rate;

	*shape = (struct shape){ .warps = (kernel->threads + 31) / 32 };
	shape->each = shape->warps / chip->quarters;
	shape->rest = shape->warps % chip->quarters;
	shape->warp_registers = (registers * 32 + chip->register_unit - 1) /
				chip->register_unit * chip->register_unit;
	shape->shared = (kernel->shared + chip->shared_reserved + chip->shared_unit - 1) /
			chip->shared_unit * chip->shared_unit;
	if (every < chip->issue)
		every = chip->issue;
	/*
	 * A block that runs alone gets the rate that its warps can demand. The SM's share limits
	 * this rate.
	 */
	rate = shape->warps * chip->warp_rate;
	if (rate > chip->sm_rate)
		rate = chip->sm_rate;
	work = mul_div(kernel->work, 1000ull * every, chip->mhz);
	reads = kernel->bytes ? mul_div(kernel->bytes, 1000, rate) : 0;
	shape->ns = max(1, max(kernel->ns, max(work, reads)));
	if (shape->ns > PIPE_LAST_NS)
		shape->ns = PIPE_LAST_NS + 1;	/* the run ends before the block ends */
	shape->issue = mul_div(kernel->work * chip->issue, 1000ull * ONE,
			       shape->ns * chip->mhz);
	shape->rate = mul_div(kernel->bytes, 16000, shape->ns);
	shape->dram = !kernel->from_l2;
	find_needs(shape, chip->quarters);
}

bool sm_fits(const struct sm *sm, const struct pipe_chip *chip, const struct shape *shape)
{
	unsigned int q, each, registers, more = 0;

	if (sm->blocks >= chip->blocks || sm->shared + shape->shared > chip->shared)
		return false;
	for (q = 0; q < chip->quarters; q++) {
		each = sm->quarter_warps[q] + shape->each;
		registers = sm->quarter_registers[q] + shape->each * shape->warp_registers;
		if (each > chip->warps || registers > chip->registers)
			return false;
		if (each < chip->warps && registers + shape->warp_registers <= chip->registers)
			more++;
	}
	return more >= shape->rest;
}

unsigned int pipe_occupancy(const struct pipe_chip *chip, const struct pipe_kernel *kernel)
{
	struct sm sm = { 0 };
	struct shape shape;
	unsigned int q, nr;

	shape_make(&shape, chip, kernel);
	if (kernel->threads > chip->block_threads ||
	    (chip->block_shared && kernel->shared > chip->block_shared))
		return 0;
	for (nr = 0; nr < MAX_RESIDENT && sm_fits(&sm, chip, &shape); nr++) {
		sm.blocks++;
		sm.shared += shape.shared;
		for (q = 0; q < chip->quarters; q++) {
			unsigned int more = (q + nr * shape.rest) % chip->quarters < shape.rest;

			sm.quarter_warps[q] += shape.each + more;
			sm.quarter_registers[q] += (shape.each + more) * shape.warp_registers;
		}
	}
	return nr;
}

/* ------------------------------------------------------------------------ progress */

/* A block makes no progress before its start. */
static uint64_t begun_since(const struct resident *resident, uint64_t last, uint64_t now)
{
	if (resident->start > last)
		last = resident->start;
	return now > last ? now - last : 0;
}

void sm_advance(const struct pipe *pipe, struct sm *sm)
{
	uint64_t last = sm->last, ns = pipe->now - last, done;
	bool all = last >= sm->begins;
	struct resident *resident;

	if (!ns)
		return;
	sm->last = pipe->now;
	for (unsigned int i = 0; i < sm->blocks; i++) {
		resident = &sm->residents[sm->age[i]];
		done = (all ? ns : begun_since(resident, last, pipe->now)) * resident->rate;
		resident->left = done < resident->left ? resident->left - done : 0;
	}
}

/* in units of 1 / ONE issue slot: fewer slots are a rounding error */
#define CRUMB	64

/*
 * Allocates issue slots to a block whose speed is at most @rate. Returns its speed. A quarter
 * that does not exist needs no slots.
 */
static uint32_t take_slots(uint32_t *slots, const uint32_t *need, uint32_t rate)
{
	for (unsigned int q = 0; q < MAX_QUARTERS; q++) {
		if (need[q] <= slots[q])
			continue;
		if (!slots[q])
			return 0;
		if ((uint64_t)slots[q] * ONE / need[q] < rate)
			rate = (uint64_t)slots[q] * ONE / need[q];
	}
	for (unsigned int q = 0; q < MAX_QUARTERS; q++) {
		slots[q] -= rate == ONE ? need[q] : (uint64_t)need[q] * rate / ONE;
		if (slots[q] < CRUMB)
			slots[q] = 0;
	}
	return rate;
}

/*
 * Returns true if a quarter has no issue slots left. A block that needs all quarters then gets no
 * issue slots.
 */
static bool is_dry(const uint32_t *slots)
{
	for (unsigned int q = 0; q < MAX_QUARTERS; q++)
		if (!slots[q])
			return true;
	return false;
}

/*
 * If there are too few issue slots, the oldest block gets only this share of its slots. The other
 * blocks get the remaining slots. The value was fitted to measurements.
 */
#define SQUEEZE	(ONE * 16 / 17)

static uint32_t squeeze(const struct sm *sm, unsigned int quarters)
{
	uint32_t most = ONE;

	for (unsigned int q = 0; q < quarters; q++)
		if (sm->quarter_issue[q] > most)
			most = sm->quarter_issue[q];
	if (most == ONE)
		return ONE;
	return most > ONE / 16 * 17 ? SQUEEZE : (uint64_t)ONE * ONE / most;
}

/*
 * Computes the speed that the issue slots allow for each block. This speed changes when blocks
 * start or end.
 */
static void share_slots(struct sm *sm, unsigned int quarters)
{
	uint32_t slots[MAX_QUARTERS] = { ONE, ONE, ONE, ONE };
	uint32_t most = squeeze(sm, quarters);
	struct resident *resident;
	const struct shape *shape;
	bool dry = false;

	for (unsigned int i = 0; i < sm->blocks; i++) {
		resident = &sm->residents[sm->age[i]];
		shape = resident->task->shape;
		resident->by_slots = ONE;
		/* If there are enough slots for all blocks, the order does not matter. */
		if (!shape->issue || most == ONE)
			continue;
		if (shape->each && dry)
			resident->by_slots = 0;
		else
			resident->by_slots = take_slots(slots, shape->need[resident->first],
							most);
		dry = dry || is_dry(slots);
	}
}

static void set_rates(struct sm *sm)
{
	uint32_t memory = sm->demand[0] ? memory_rate(sm->machine, sm) : ONE;
	struct resident *resident;

	if (sm->changed)
		share_slots(sm, sm->machine->gpu->chip.quarters);
	sm->changed = false;
	for (unsigned int i = 0; i < sm->blocks; i++) {
		resident = &sm->residents[sm->age[i]];
		resident->rate = resident->by_slots;
		if (resident->reads && memory < resident->rate)
			resident->rate = memory;
	}
}

/* Returns the time that the remaining work @left takes at the speed @rate. */
static uint64_t time_for(uint64_t left, uint32_t rate)
{
	if (!left)
		return 0;
	if (!rate)
		return NEVER;
	return rate == ONE ? divide_up(left, ONE) : divide_up(left, rate);
}

/*
 * Returns the end time of the SM's next block at the present speeds. Blocks of similar age often
 * have the same speed.
 */
static uint64_t next_end(const struct pipe *pipe, const struct sm *sm)
{
	uint64_t next = NEVER, least = NEVER, ns, left;
	bool all = pipe->now >= sm->begins;
	const struct resident *resident;
	uint32_t rate = ONE;

	for (unsigned int i = 0; i < sm->blocks; i++) {
		resident = &sm->residents[sm->age[i]];
		if (resident->rate != rate) {
			ns = least == NEVER ? NEVER : time_for(least, rate);
			next = ns < next ? ns : next;
			rate = resident->rate;
			least = NEVER;
		}
		left = resident->left;
		if (!all && resident->start > pipe->now)
			left += (resident->start - pipe->now) * rate;
		if (left < least)
			least = left;
	}
	ns = least == NEVER ? NEVER : time_for(least, rate);
	next = ns < next ? ns : next;
	return next == NEVER ? NEVER : pipe->now + next;
}

void sm_settle(struct pipe *pipe, struct sm *sm)
{
	sm_advance(pipe, sm);
	set_rates(sm);
	queue_set(&pipe->queue, &sm->queue_event, next_end(pipe, sm));
}

void sm_freeze(struct pipe *pipe, struct sm *sm)
{
	sm_advance(pipe, sm);
	pipe->result->gpus[sm->machine->gpu_index].sm_ns += pipe->now - sm->busy_from;
	queue_set(&pipe->queue, &sm->queue_event, NEVER);
}

/* If a block has not started yet, delays the block. All these blocks have the same delay. */
static uint64_t put_off(const struct pipe *pipe, const struct sm *sm, uint64_t start)
{
	return start > sm->last && start < pipe->now ? start + pipe->now - sm->last : start;
}

void sm_thaw(struct pipe *pipe, struct sm *sm)
{
	struct resident *resident;

	for (unsigned int i = 0; i < sm->blocks; i++) {
		resident = &sm->residents[sm->age[i]];
		resident->start = put_off(pipe, sm, resident->start);
		resident->task->launch.start = put_off(pipe, sm, resident->task->launch.start);
	}
	sm->begins = put_off(pipe, sm, sm->begins);
	sm->last = pipe->now;
	sm->busy_from = pipe->now;
	if (sm->used)
		queue_set(&pipe->queue, &sm->queue_event, next_end(pipe, sm));
}

/* ------------------------------------------------------ blocks start and end */

static void take_room(struct sm *sm, const struct shape *shape, unsigned int first, int sign)
{
	unsigned int quarters = sm->machine->gpu->chip.quarters, q;
	int warps;

	sm->changed = true;
	sm->blocks += sign;
	sm->warps += sign * (int)shape->warps;
	sm->shared += sign * (int)shape->shared;
	for (q = 0; q < quarters; q++) {
		warps = shape->each;
		if (shape->rest)
			warps += one_more(shape, quarters, first, q);
		warps *= sign;
		sm->quarter_warps[q] += warps;
		sm->quarter_registers[q] += warps * (int)shape->warp_registers;
		sm->quarter_issue[q] += (uint32_t)warps * shape->issue;
	}
	sm->demand[0] += (int64_t)sign * (int64_t)shape->rate;
	if (shape->dram)
		sm->demand[1] += (int64_t)sign * (int64_t)shape->rate;
}

/*
 * Returns the first quarter for the remaining warps of a block. The quarters with the fewest
 * warps get these warps.
 */
static unsigned int first_quarter(const struct sm *sm, const struct shape *shape)
{
	unsigned int quarters = sm->machine->gpu->chip.quarters, q, best = 0;

	if (!shape->rest)
		return 0;
	for (q = 1; q < quarters; q++)
		if (sm->quarter_warps[q] < sm->quarter_warps[best])
			best = q;
	return best;
}

void sm_put(struct pipe *pipe, struct sm *sm, struct task *task, uint64_t block,
	    uint32_t cluster, uint64_t start)
{
	const struct shape *shape = task->shape;
	unsigned int i = __builtin_ctz(~sm->used), first;
	struct resident *resident = &sm->residents[i];

	sm_advance(pipe, sm);
	first = first_quarter(sm, shape);
	sm->age[sm->blocks] = i;
	if (!sm->used) {
		balance_idle(sm->machine, sm, false);
		sm->busy_from = pipe->now;
		if (!sm->machine->nr_running++)
			machine_busy(pipe, sm->machine);
	}
	take_room(sm, shape, first, 1);
	sm->used |= 1u << i;
	resident->task = task;
	resident->block = block;
	resident->cluster = cluster;
	resident->start = start;
	resident->first = first;
	resident->reads = shape->rate;
	resident->rate = 0;
	resident->left = shape->ns * ONE;
	if (start > sm->begins)
		sm->begins = start;
	sm->machine->nr_resident++;
	machine_sm_dirty(sm);
}

static void report_block(struct pipe *pipe, const struct sm *sm, const struct resident *resident)
{
	const struct task *task = resident->task;
	struct pipe_block block = {
		.gpu = sm->machine->gpu_index, .smid = sm->smid, .kernel = task->launch.kernel,
		.stream = task->launch.stream, .cluster = resident->cluster,
		.launch = task->launch.launch, .block = resident->block,
		.start = resident->start, .end = pipe->now, .ask = task->ask,
	};

	pipe->watch->block(pipe->watch->user, &block);
}

static void went(struct pipe *pipe, struct sm *sm, unsigned int i)
{
	struct pipe_gpu_result *result = &pipe->result->gpus[sm->machine->gpu_index];
	struct resident *resident = &sm->residents[i];
	struct task *task = resident->task;

	take_room(sm, task->shape, resident->first, -1);
	sm->used &= ~(1u << i);
	sm->ended = pipe->now;
	sm->machine->nr_resident--;
	if (!sm->used) {
		balance_idle(sm->machine, sm, true);
		result->sm_ns += pipe->now - sm->busy_from;
		if (!--sm->machine->nr_running)
			machine_idle(pipe, sm->machine);
	}
	if (pipe->watch && pipe->watch->block)
		report_block(pipe, sm, resident);
	pipe->result->blocks++;
	wdu_block_done(pipe, task);
}

/* Called when at least one block has ended. */
static void on_block_end(struct pipe *pipe, struct queue_event *what)
{
	struct sm *sm = (struct sm *)what;
	unsigned int i, nr = sm->blocks, kept = 0;

	sm_advance(pipe, sm);
	for (i = 0; i < nr; i++)
		if (sm->residents[sm->age[i]].left)
			sm->age[kept++] = sm->age[i];
		else
			went(pipe, sm, sm->age[i]);
	if (kept < nr)
		balance_room(sm->machine, sm);
	machine_sm_dirty(sm);
}

void sm_init(struct sm *sm, struct machine *machine, unsigned int smid)
{
	const struct pipe_place *place = &machine->gpu->map.sms[smid];

	sm->queue_event.come = on_block_end;
	sm->machine = machine;
	sm->smid = smid;
	sm->ended = NEVER;
	sm->vgpc = place->vgpc;
	sm->gpc = place->gpc;
	sm->ugpu = place->ugpu;
}
