// SPDX-License-Identifier: MIT
/*
 * Tests properties of every run of the pipeline, on random scenarios. Each block of each launch
 * runs once, inside the launch's set, on an SM with enough room. A stream keeps its order. A
 * cluster is in one virtual GPC. A cooperative grid runs as a whole. The order of declarations
 * does not matter. Results are the same on every machine; the test compares a hash of the
 * results. A run with more work never ends earlier, and a run with more TPCs never ends later.
 * Usage: properties [FIRST LAST]. With arguments, only the scenarios FIRST to LAST run.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/pipe/board.h"
#include "tests/tap.h"

#define NR_SCENARIOS	250
#define MAX_THINGS	8
#define MAX_STEPS	48
#define MAX_LAUNCHES	4096
#define ANSWER		0xad08deeefbb83815ull	/* a different model gives a different hash */

struct launch {
	uint64_t *seen;			/* a bit for each block */
	uint16_t *vgpcs;		/* for each cluster, 1 + the cluster's virtual GPC */
	uint64_t nr, first, last;	/* first begin, last end */
	uint64_t last_begin;
	struct pipe_launch told;
	bool done;
};

struct block {
	uint64_t start, end;
	uint16_t gpu, smid, kernel, process;
};

/* A scenario and its results. */
struct made {
	struct pipe_gpu gpus[2];
	struct pipe_kernel kernels[MAX_THINGS];
	struct pipe_set sets[MAX_THINGS][MAX_THINGS];	/* by kernel and stream */
	struct pipe_set own[MAX_THINGS];
	struct pipe_stream streams[MAX_THINGS];
	struct pipe_node nodes[3];
	struct pipe_graph graph;
	struct pipe_step steps[2][MAX_STEPS];
	struct pipe_program programs[2];
	struct pipe_scenario pipe;
	struct pipe_result result;
	struct launch launches[MAX_LAUNCHES];
	struct block *blocks;
	uint64_t nr_blocks, room, nr_launches, hash;
	const char *wrong;
};

/* The number of times that each checked situation occurred. */
static struct {
	uint64_t clusters, whole, evicted, switches, nodes, copies;
} had;

static struct gpupart *gp;
static struct gpupart_topology *topo;
static uint64_t seed;

static unsigned int any(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

static void mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * 1099511628211ull;
	*hash ^= *hash >> 29;
}

/* -------------------------------------------------------------------- creation */

static void make_gpu(struct pipe_gpu *gpu)
{
	static const char *const chips[] = { "gtx1060", "titan-v", "a100", "h200", "h200" };
	unsigned int i = any(5);

	*gpu = (struct pipe_gpu){ .chip = *pipe_chip_find(chips[i]), .turn = any(16) };
	gpu->mps = any(2);
	gpu->chip.slots = any(3) ? gpu->chip.slots : 1 + any(4);
	gpu->chip.slice_ns = 20000;
	gpu->chip.switch_ns = 1000;
	if (i == 3)
		board_map(&gpu->map, topo);
	else
		pipe_map_even(&gpu->map, &gpu->chip);
}

static void make_set(struct pipe_set *set, unsigned int nr_tpcs)
{
	unsigned int i, part = 1 + any(4);

	for (i = 0; i < nr_tpcs; i++)
		if (!any(part))
			set->allowed[i / 64] |= 1ull << i % 64;
	set->allowed[0] |= 1;
}

static void make_kernel(struct pipe_kernel *kernel, unsigned int i, bool clusters)
{
	static const char *const names[MAX_THINGS] = { "a", "b", "c", "d", "e", "f", "g", "h" };

	*kernel = (struct pipe_kernel){
		.name = names[i], .blocks = 1 + any(600), .threads = 1 + any(512),
		.registers = 16 + any(40), .shared = any(3) ? 0 : any(20000),
	};
	if (clusters && !any(3)) {
		kernel->cluster = 2;
		kernel->blocks = 2 * (1 + any(100));
	}
	if (!any(6)) {
		kernel->cooperative = true;
		kernel->blocks = 2 * (1 + any(4));
	}
	if (any(3))
		kernel->ns = 1 + any(20000);
	if (any(2))
		kernel->work = 1 + any(4000);
	if (!any(3) || (!kernel->ns && !kernel->work)) {
		kernel->bytes = 1 + any(100000);
		kernel->from_l2 = any(2);
	}
}

/* Each wait comes after a record of the same event in the same program. */
static void make_steps(struct made *m, unsigned int p)
{
	struct pipe_step *steps = m->steps[p];
	unsigned int nr = 5 + any(MAX_STEPS - 6), i, recorded = 0;

	for (i = 0; i < nr; i++) {
		steps[i] = (struct pipe_step){ .line = i };
		do {
			steps[i].stream = any(m->pipe.nr_streams);
		} while (m->streams[steps[i].stream].process != p);
		switch (any(10)) {
		case 0:
			steps[i].kind = PIPE_COPY;
			steps[i].amount = any(1000000);
			steps[i].way = any(2);
			break;
		case 1:
			steps[i].kind = PIPE_RECORD;
			steps[i].what = p;
			recorded = 1;
			break;
		case 2:
			steps[i].kind = recorded ? PIPE_WAIT : PIPE_SYNC;
			steps[i].what = p;
			break;
		case 3:
			steps[i].kind = any(2) ? PIPE_SYNC_ALL : PIPE_CPU;
			steps[i].amount = any(5000);
			break;
		case 4:
			steps[i].kind = PIPE_GRAPH;
			break;
		default:
			steps[i].kind = PIPE_LAUNCH;
			steps[i].what = any(MAX_THINGS - 3);
			steps[i].set = &m->sets[steps[i].what][steps[i].stream];
		}
	}
	m->programs[p] = (struct pipe_program){
		.name = p ? "two" : "one", .process = p, .steps = steps, .nr_steps = nr,
	};
}

/*
 * The last three kernels are the nodes of a graph. In this graph, the third node waits for the
 * other two nodes.
 */
static void make_graph(struct made *m)
{
	static const unsigned int both[] = { 0, 1 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		m->nodes[i] = (struct pipe_node){ .kernel = MAX_THINGS - 3 + i };
		m->kernels[MAX_THINGS - 3 + i].cooperative = false;
		m->kernels[MAX_THINGS - 3 + i].cluster = 0;
	}
	m->nodes[2].after = both;
	m->nodes[2].nr_after = 2;
	m->graph = (struct pipe_graph){ .name = "graph", .nodes = m->nodes, .nr_nodes = 3 };
}

static void make(struct made *m, uint64_t nth)
{
	static const char *const names[] = { "one", "two" };
	static const char *const streams[] = { "s", "t", "u", "v", "w", "x", "y", "z" };
	unsigned int i, k;
	bool clusters = true;

	memset(m, 0, offsetof(struct made, blocks));
	seed = nth * 0x9e3779b97f4a7c15ull + 1;
	m->pipe = (struct pipe_scenario){
		.host = pipe_host_default, .gpus = m->gpus, .nr_gpus = 1 + any(2),
		.kernels = m->kernels, .nr_kernels = MAX_THINGS, .graphs = &m->graph,
		.nr_graphs = 1, .streams = m->streams, .nr_streams = 4 + any(MAX_THINGS - 4),
		.events = names, .nr_events = 2, .processes = names, .nr_processes = 2,
		.programs = m->programs, .nr_programs = 2,
	};
	for (i = 0; i < m->pipe.nr_gpus; i++) {
		make_gpu(&m->gpus[i]);
		clusters = clusters && m->gpus[i].chip.cluster;
	}
	for (i = 0; i < MAX_THINGS; i++)
		make_kernel(&m->kernels[i], i, clusters);
	make_graph(m);
	for (i = 0; i < m->pipe.nr_streams; i++) {
		m->streams[i] = (struct pipe_stream){
			.name = streams[i], .gpu = any(m->pipe.nr_gpus), .process = i % 2,
			.priority = any(3), .set = any(2) ? &m->own[i] : NULL,
		};
		make_set(&m->own[i], m->gpus[m->streams[i].gpu].map.nr_tpcs);
		for (k = 0; k < MAX_THINGS; k++)
			make_set(&m->sets[k][i], m->gpus[m->streams[i].gpu].map.nr_tpcs);
	}
	make_steps(m, 0);
	make_steps(m, 1);
}

/* ------------------------------------------------------------------------ checks */

static void must(struct made *m, bool good, const char *what)
{
	if (!good && !m->wrong)
		m->wrong = what;
}

static bool is_node(unsigned int kernel)
{
	return kernel >= MAX_THINGS - 3;
}

static bool is_allowed(const struct made *m, const struct pipe_block *block, unsigned int tpc)
{
	const struct pipe_set *set = is_node(block->kernel) ? m->streams[block->stream].set :
				     &m->sets[block->kernel][block->stream];

	return !set || (set->allowed[tpc / 64] >> tpc % 64 & 1);
}

static void keep(struct made *m, const struct pipe_block *block)
{
	if (m->nr_blocks == m->room) {
		m->room = m->room ? 2 * m->room : 4096;
		m->blocks = realloc(m->blocks, m->room * sizeof(*m->blocks));
	}
	m->blocks[m->nr_blocks++] = (struct block){
		block->start, block->end, block->gpu, block->smid, block->kernel,
		m->gpus[block->gpu].mps ? 0 : m->streams[block->stream].process,
	};
}

static void check_cluster(struct made *m, struct launch *launch, const struct pipe_block *block)
{
	unsigned int size = m->kernels[block->kernel].cluster;
	uint16_t vgpc = 1 + m->gpus[block->gpu].map.sms[block->smid].vgpc;

	if (!size)
		return;
	must(m, block->cluster == block->block / size, "a cluster's number");
	if (!launch->vgpcs)
		launch->vgpcs = calloc(m->kernels[block->kernel].blocks, sizeof(uint16_t));
	must(m, !launch->vgpcs[block->cluster] || launch->vgpcs[block->cluster] == vgpc,
	     "a cluster in two virtual GPCs");
	launch->vgpcs[block->cluster] = vgpc;
}

static void take_block(void *user, const struct pipe_block *block)
{
	struct made *m = user;
	struct launch *launch = &m->launches[block->launch];
	const struct pipe_kernel *kernel = &m->kernels[block->kernel];
	unsigned int tpc = m->gpus[block->gpu].map.sms[block->smid].tpc;

	must(m, block->launch < MAX_LAUNCHES && block->block < kernel->blocks, "a block's number");
	must(m, block->smid < m->gpus[block->gpu].map.nr_sms, "an SM that is not there");
	must(m, block->start < block->end, "a block's times");
	must(m, block->end - block->start >= kernel->ns, "a block is shorter than asked for");
	must(m, !launch->done, "a block after its launch was done");
	must(m, is_allowed(m, block, tpc), "a block outside of its set");
	if (m->wrong)
		return;
	if (!launch->seen)
		launch->seen = calloc(kernel->blocks / 64 + 1, 8);
	must(m, !(launch->seen[block->block / 64] >> block->block % 64 & 1), "a block twice");
	launch->seen[block->block / 64] |= 1ull << block->block % 64;
	launch->first = !launch->nr || block->start < launch->first ? block->start :
			launch->first;
	launch->last = block->end > launch->last ? block->end : launch->last;
	launch->last_begin = block->start > launch->last_begin ? block->start :
			     launch->last_begin;
	launch->nr++;
	check_cluster(m, launch, block);
	keep(m, block);
	mix(&m->hash, block->launch);
	mix(&m->hash, block->block);
	mix(&m->hash, block->smid);
	mix(&m->hash, block->start);
	mix(&m->hash, block->end);
}

static void take_launch(void *user, const struct pipe_launch *told)
{
	struct made *m = user;
	struct launch *launch = &m->launches[told->launch];

	must(m, told->launch < MAX_LAUNCHES && !launch->done, "a launch's number");
	must(m, told->asked <= told->issued && told->issued <= told->start &&
	     told->start <= told->end, "a launch's times");
	if (m->wrong)
		return;
	m->nr_launches++;
	had.evicted += told->evicted > 0;
	had.copies += told->kernel == UINT32_MAX;
	launch->done = true;
	launch->told = *told;
	if (told->kernel == UINT32_MAX)
		return;
	had.whole += m->kernels[told->kernel].cooperative;
	had.clusters += m->kernels[told->kernel].cluster > 0;
	had.nodes += is_node(told->kernel);
	must(m, launch->nr == told->blocks && told->blocks == m->kernels[told->kernel].blocks,
	     "a launch is done without all of its blocks");
	must(m, told->start == launch->first && told->end == launch->last,
	     "a launch's times are not its blocks'");
	/*
	 * Checks that all blocks start at the same time. Two delays are allowed: the time of the
	 * load balancer, and the time of an SM that has just become free.
	 */
	must(m, !m->kernels[told->kernel].cooperative || launch->last_begin - launch->first <=
	     told->blocks + m->gpus[told->gpu].chip.begin_ns,
	     "a cooperative grid not there whole");
}

/* ---------------------------------------------------------------- checks at the end */

/* Launch numbers increase in each stream. No launch begins before the previous launch has ended. */
static void check_streams(struct made *m)
{
	uint64_t end[MAX_THINGS] = { 0 }, graph_end[MAX_THINGS] = { 0 };
	unsigned int i, nodes[MAX_THINGS] = { 0 };
	const struct pipe_launch *told;

	for (i = 0; i < MAX_LAUNCHES && m->launches[i].done; i++) {
		told = &m->launches[i].told;
		must(m, told->start >= end[told->stream], "a stream's order");
		if (told->kernel == UINT32_MAX || !is_node(told->kernel)) {
			end[told->stream] = told->end;
			continue;
		}
		/* Two nodes run at the same time. The third node runs after these two nodes. */
		must(m, nodes[told->stream] < 2 || told->start >= graph_end[told->stream],
		     "a graph's order");
		if (told->end > graph_end[told->stream])
			graph_end[told->stream] = told->end;
		nodes[told->stream] = (nodes[told->stream] + 1) % 3;
		if (!nodes[told->stream])
			end[told->stream] = graph_end[told->stream];
	}
	must(m, i == m->nr_launches, "launches do not count up");
}

static int by_place_and_time(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (x->gpu != y->gpu || x->smid != y->smid || x->process != y->process)
		return x->gpu != y->gpu ? x->gpu - y->gpu : x->smid != y->smid ?
		       x->smid - y->smid : x->process - y->process;
	return (x->start > y->start) - (x->start < y->start);
}

static bool is_together(const struct block *x, const struct block *y)
{
	return x->gpu == y->gpu && x->smid == y->smid && x->process == y->process;
}

/*
 * blocks[at] started last. Checks that this block and the other blocks on its SM do not exceed
 * the SM's resources.
 */
static void check_room(struct made *m, uint64_t at, uint64_t first)
{
	const struct pipe_chip *chip = &m->gpus[m->blocks[at].gpu].chip;
	unsigned int nr = 0, warps = 0, registers = 0, shared = 0, each;
	uint64_t i;

	for (i = first; i <= at; i++) {
		const struct pipe_kernel *kernel = &m->kernels[m->blocks[i].kernel];

		if (m->blocks[i].end <= m->blocks[at].start)
			continue;
		each = (kernel->threads + 31) / 32;
		nr++;
		warps += each;
		registers += each * 32 * kernel->registers;
		shared += kernel->shared + chip->shared_reserved;
	}
	must(m, nr <= chip->blocks && warps <= chip->quarters * chip->warps &&
	     registers <= chip->quarters * chip->registers && shared <= chip->shared,
	     "more on an SM than it has room for");
}

static void check_rooms(struct made *m)
{
	uint64_t i, first = 0;

	qsort(m->blocks, m->nr_blocks, sizeof(*m->blocks), by_place_and_time);
	for (i = 0; i < m->nr_blocks; i++) {
		if (!is_together(&m->blocks[i], &m->blocks[first]))
			first = i;
		while (m->blocks[first].end <= m->blocks[i].start && first < i)
			first++;
		check_room(m, i, first);
	}
}

static void check_sums(struct made *m)
{
	const struct pipe_gpu_result *gpu;
	uint64_t span;
	unsigned int i;

	must(m, m->nr_launches == m->result.launches + m->result.copies &&
	     m->nr_blocks == m->result.blocks, "the result's counts");
	for (i = 0; i < m->pipe.nr_gpus; i++) {
		gpu = &m->result.gpus[i];
		had.switches += gpu->switches;
		span = gpu->last - gpu->first;
		must(m, gpu->busy_ns <= m->result.end && gpu->last <= m->result.end &&
		     gpu->sm_ns <= (span + m->result.end) * m->gpus[i].map.nr_sms, "sums of times");
	}
}

/*
 * Returns 0 or the error of the run. One error is allowed: -EINVAL for a grid that does not fit
 * into its set.
 */
static int run(struct made *m)
{
	const struct pipe_watch watch = { .user = m, .block = take_block, .launch = take_launch };
	unsigned int i;
	int err;

	m->nr_blocks = m->nr_launches = 0;
	m->hash = 14695981039346656037ull;
	m->wrong = NULL;
	err = pipe_run(&m->pipe, &watch, &m->result);
	if (!err) {
		check_streams(m);
		check_rooms(m);
		check_sums(m);
		mix(&m->hash, m->result.end);
	}
	for (i = 0; i < MAX_LAUNCHES; i++) {
		free(m->launches[i].seen);
		free(m->launches[i].vgpcs);
		m->launches[i] = (struct launch){ 0 };
	}
	return err;
}

/* ------------------------------------------------------------------- another order */

#define NR_LAUNCHED	(MAX_THINGS - 3)

/* Declares kernels, events and streams in reverse order, and one unused object of each kind. */
static void turn_round(struct made *to, const struct made *from)
{
	unsigned int nr = from->pipe.nr_streams, i, k, p;
	struct pipe_step *step;

	for (k = 0; k < NR_LAUNCHED; k++)
		to->kernels[NR_LAUNCHED - 1 - k] = from->kernels[k];
	for (i = 0; i < nr; i++) {
		to->streams[nr - 1 - i] = from->streams[i];
		to->own[nr - 1 - i] = from->own[i];
		to->streams[nr - 1 - i].set = from->streams[i].set ? &to->own[nr - 1 - i] : NULL;
		for (k = 0; k < NR_LAUNCHED; k++)
			to->sets[NR_LAUNCHED - 1 - k][nr - 1 - i] = from->sets[k][i];
	}
	for (p = 0; p < 2; p++)
		for (i = 0; i < to->programs[p].nr_steps; i++) {
			step = &to->steps[p][i];
			step->stream = nr - 1 - step->stream;
			if (step->kind == PIPE_RECORD || step->kind == PIPE_WAIT)
				step->what = 1 - step->what;
			if (step->kind != PIPE_LAUNCH)
				continue;
			step->what = NR_LAUNCHED - 1 - step->what;
			step->set = &to->sets[step->what][step->stream];
		}
}

/* --------------------------------------------------------------------- more work */

/*
 * Makes one launch without other launches. Returns the time from its first block to its last
 * block.
 */
static uint64_t alone(struct made *m, const struct pipe_kernel *kernel, const struct pipe_set *set)
{
	static const char *const process = "main";
	const struct pipe_stream stream = { .name = "s", .set = set };
	const struct pipe_step step = { .kind = PIPE_LAUNCH };
	const struct pipe_program program = { .name = "main", .steps = &step, .nr_steps = 1 };
	const struct pipe_scenario pipe = {
		.host = pipe_host_default, .gpus = m->gpus, .nr_gpus = 1, .kernels = kernel,
		.nr_kernels = 1, .streams = &stream, .nr_streams = 1, .processes = &process,
		.nr_processes = 1, .programs = &program, .nr_programs = 1,
	};

	if (pipe_run(&pipe, NULL, &m->result))
		return 0;
	return m->result.gpus[0].last - m->result.gpus[0].first;
}

static void check_more(struct made *m, unsigned int nth, unsigned int *nr)
{
	struct pipe_kernel kernel = m->kernels[0], more = kernel;
	struct pipe_set set = m->own[0], larger = set;
	uint64_t time, blocks, work, tpcs;
	unsigned int i;

	/*
	 * This check uses kernels without reads. A kernel that reads less leaves more bandwidth
	 * to other kernels. So with reads, a run with more TPCs could end later.
	 */
	kernel.cooperative = false;
	kernel.cluster = kernel.bytes = 0;
	if (!kernel.work)
		kernel.ns++;
	more = kernel;
	for (i = 0; i < m->gpus[0].map.nr_tpcs; i++)
		if (!any(3))
			larger.allowed[i / 64] |= 1ull << i % 64;
	time = alone(m, &kernel, &set);
	more.blocks += 1 + any(200);
	blocks = alone(m, &more, &set);
	more.blocks = kernel.blocks;
	if (kernel.work)
		more.work += any(1000);
	else
		more.ns += any(5000);
	work = alone(m, &more, &set);
	tpcs = alone(m, &kernel, &larger);
	if (!time)
		return;
	++*nr;
	if (blocks < time || work < time)
		tap_ok(false, "%u: more work takes less time: %llu ns, with more blocks %llu, "
		       "with longer ones %llu", nth, (unsigned long long)time,
		       (unsigned long long)blocks, (unsigned long long)work);
	/* For a first wave with more blocks, the load balancer takes longer. */
	if (tpcs > time + kernel.blocks)
		tap_ok(false, "%u: more TPCs take longer: %llu ns, then %llu", nth,
		       (unsigned long long)time, (unsigned long long)tpcs);
}

/* ------------------------------------------------------------------------------ all */

static struct made made, turned;

static bool check_one(unsigned int nth, uint64_t *answer)
{
	uint64_t hash;
	int err;

	make(&made, nth);
	turned = made;
	turned.blocks = NULL;
	turned.room = 0;
	make(&turned, nth);
	err = run(&made);
	if (err) {
		if (err != -EINVAL)
			tap_ok(false, "%u: %s", nth, made.result.why);
		return false;
	}
	hash = made.hash;
	if (made.wrong)
		tap_ok(false, "%u: %s", nth, made.wrong);
	mix(answer, hash);
	turn_round(&turned, &made);
	if (run(&turned) || turned.hash != hash)
		tap_ok(false, "%u: declared in another order it is another answer: %s", nth,
		       turned.result.why);
	if (turned.wrong)
		tap_ok(false, "%u: declared in another order: %s", nth, turned.wrong);
	free(turned.blocks);
	return true;
}

int main(int argc, char **argv)
{
	unsigned int first = argc > 1 ? atoi(argv[1]) : 0, nr = 0, nr_more = 0, i;
	unsigned int last = argc > 2 ? atoi(argv[2]) : NR_SCENARIOS;
	uint64_t answer = 14695981039346656037ull;

	if (gpupart_open(&gp) ||
	    gpupart_topology_open(gp, "tests/data/traces/h200.capture", NULL, &topo)) {
		printf("Bail out! no capture\n");
		return 1;
	}
	for (i = first; i < last; i++) {
		nr += check_one(i, &answer);
		check_more(&made, i, &nr_more);
	}
	if (argc > 1)
		return tap_done();
	tap_ok(nr > NR_SCENARIOS * 3 / 4, "%u of %u scenarios run, each with all that must hold",
	       nr, NR_SCENARIOS);
	tap_ok(had.clusters > 100 && had.whole > 100 && had.evicted > 100 && had.switches > 100 &&
	       had.nodes > 100 && had.copies > 100, "among them launches with clusters %llu, "
	       "cooperative %llu, evicted %llu, nodes %llu, copies %llu; switches %llu",
	       (unsigned long long)had.clusters, (unsigned long long)had.whole,
	       (unsigned long long)had.evicted, (unsigned long long)had.nodes,
	       (unsigned long long)had.copies, (unsigned long long)had.switches);
	tap_ok(nr_more > NR_SCENARIOS * 3 / 4, "%u kernels alone: more work no faster, more TPCs "
	       "no slower", nr_more);
	tap_ok(answer == ANSWER, "the answer is the same on every machine: %016llx",
	       (unsigned long long)answer);
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return tap_done();
}
