// SPDX-License-Identifier: MIT
/*
 * Compares a GPU without a scenario with a run of a scenario. Random programs run on both. Both
 * get the same commands at the same times. Every block and every copy must be equal. Also tests
 * full buffers, nodes without kernels and packed clusters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/pipe/gpupart_sim.h"
#include "tests/tap.h"

#define NR_KERNELS	8
#define NR_STREAMS	40	/* more streams than there are channels */
#define NR_STEPS	120
#define NR_GRAPHS	2
#define NR_NODES	5
#define MAX_BLOCKS	200000
#define NR_SEEDS	40

/* Results, ordered by time. */
struct log {
	unsigned int nr;
	struct entry {
		uint64_t start, end, block;
		unsigned int smid, cluster;
	} blocks[MAX_BLOCKS];
	uint64_t done[NR_STREAMS];	/* without a scenario: number of commands of each stream */
	unsigned int nr_nodes, bad;
	struct pipe_fed *fed;
};

static struct log ran, fed_log;
static struct pipe_gpu gpu;
static struct pipe_kernel kernels[NR_KERNELS];
static struct pipe_stream streams[NR_STREAMS];
static struct pipe_step steps[NR_STEPS];
static struct pipe_set sets[3];
static unsigned int edges[NR_GRAPHS][NR_NODES][NR_NODES];
static struct pipe_node nodes[NR_GRAPHS][NR_NODES];
static struct pipe_graph graphs[NR_GRAPHS];

static uint64_t state;

static unsigned int dice(unsigned int sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % sides;
}

static void take(void *user, const struct pipe_block *block)
{
	struct log *log = user;

	if (log->nr < MAX_BLOCKS)
		log->blocks[log->nr] = (struct entry){
			block->start, block->end, block->block, block->smid, block->cluster,
		};
	log->nr++;
}

/* ---------------------------------------------------------------------- random programs */

static void make_kernels(void)
{
	static const unsigned int threads[] = { 32, 64, 96, 128, 256, 512, 1024 };
	unsigned int i;

	for (i = 0; i < NR_KERNELS; i++) {
		struct pipe_kernel *kernel = &kernels[i];

		*kernel = (struct pipe_kernel){
			.name = "k", .threads = threads[dice(7)], .registers = 16 + 8 * dice(4),
			.blocks = 1 + dice(400), .shared = dice(3) * 10000,
		};
		switch (dice(4)) {
		case 0:
			kernel->ns = 500 + dice(20000);
			break;
		case 1:
			kernel->work = 1000 + dice(20000);
			break;
		case 2:
			kernel->bytes = 10000 + dice(100000);
			break;
		default:
			kernel->work = 1000 + dice(5000);
			kernel->bytes = 10000 + dice(100000);
		}
		if (!dice(4)) {
			kernel->cluster = 2 << dice(3);
			kernel->blocks = (1 + dice(30)) * kernel->cluster;
			kernel->pack = dice(2);
		} else if (!dice(5)) {
			kernel->cooperative = true;
			kernel->blocks = 1 + dice(40);
		}
	}
}

static void make_graphs(void)
{
	unsigned int g, n, i;

	for (g = 0; g < NR_GRAPHS; g++) {
		graphs[g] = (struct pipe_graph){ "g", nodes[g], NR_NODES };
		for (n = 0; n < NR_NODES; n++) {
			nodes[g][n] = (struct pipe_node){ dice(NR_KERNELS), edges[g][n], 0 };
			for (i = 0; i < n; i++)
				if (dice(2))
					edges[g][n][nodes[g][n].nr_after++] = i;
		}
	}
}

/* A wait is for an earlier record. Each event is recorded one time. */
static unsigned int make_steps(void)
{
	unsigned int i, nr_events = 0;

	for (i = 0; i < NR_STEPS; i++) {
		struct pipe_step *step = &steps[i];

		*step = (struct pipe_step){ .stream = dice(NR_STREAMS), .kind = PIPE_LAUNCH };
		step->what = dice(NR_KERNELS);
		switch (dice(8)) {
		case 0:
			step->kind = PIPE_COPY;
			step->way = dice(2);
			step->amount = dice(1000000);
			break;
		case 1:
			step->kind = PIPE_RECORD;
			step->what = nr_events++;
			break;
		case 2:
			if (nr_events) {
				step->kind = PIPE_WAIT;
				step->what = dice(nr_events);
			}
			break;
		case 3:
			step->kind = PIPE_GRAPH;
			step->what = dice(NR_GRAPHS);
			break;
		case 4:
			step->kind = PIPE_CPU;
			step->amount = dice(30000);
			break;
		default:
			break;
		}
	}
	return nr_events;
}

static void make_sets(void)
{
	unsigned int i;

	for (i = 0; i < NR_STREAMS; i++)
		streams[i] = (struct pipe_stream){
			.name = "s", .priority = dice(3) ? 0 : dice(6),
			.set = dice(2) ? &sets[dice(3)] : NULL,
		};
	for (i = 0; i < 64; i++) {
		sets[0].allowed[0] |= (uint64_t)(i < 40) << i;
		sets[1].allowed[0] |= (uint64_t)(i >= 20) << i;
		sets[2].allowed[0] |= (uint64_t)(i % 8 < 6) << i;
	}
}

static int run_scenario(unsigned int nr_events, const struct pipe_host *host,
			struct pipe_result *result)
{
	static const char *const process = "main";
	static const char *events[NR_STEPS];
	const struct pipe_program program = { .name = "p", .steps = steps, .nr_steps = NR_STEPS };
	const struct pipe_scenario scenario = {
		.host = *host, .gpus = &gpu, .nr_gpus = 1, .kernels = kernels,
		.nr_kernels = NR_KERNELS, .graphs = graphs, .nr_graphs = NR_GRAPHS,
		.streams = streams, .nr_streams = NR_STREAMS, .events = events,
		.nr_events = nr_events, .processes = &process, .nr_processes = 1,
		.programs = &program, .nr_programs = 1,
	};
	const struct pipe_watch watch = { .user = &ran, .block = take };
	unsigned int i;

	for (i = 0; i < nr_events; i++)
		events[i] = "e";
	ran.nr = 0;
	return pipe_run(&scenario, &watch, result);
}

/* ------------------------------------------------------------------- the same, fed */

static void done(void *user, void *of, uint64_t number)
{
	struct log *log = user;
	uint64_t *count = of;

	log->bad += number != ++*count;
}

static const struct pipe_ask *ask_of(struct pipe_ask *ask, unsigned int kernel,
				     const struct pipe_stream *stream)
{
	static const struct pipe_set all = { { ~0ull, ~0ull, ~0ull, ~0ull } };

	*ask = (struct pipe_ask){
		.kernel = kernels[kernel], .set = stream->set ? *stream->set : all,
		.priority = stream->priority,
	};
	return ask;
}

struct marks {
	int stream[NR_STEPS];
	uint64_t number[NR_STEPS];
};

static int64_t put(struct pipe_fed *fed, unsigned int i, int *opened, struct marks *marks)
{
	static struct pipe_ask asks[NR_STEPS][NR_KERNELS];
	static const struct pipe_ask *of_kernels[NR_STEPS][NR_KERNELS];
	const struct pipe_step *step = &steps[i];
	const struct pipe_stream *spec = &streams[step->stream];
	int stream = opened[step->stream];
	unsigned int k;
	int64_t number;

	switch (step->kind) {
	case PIPE_LAUNCH:
		return pipe_fed_launch(fed, stream, ask_of(&asks[i][0], step->what, spec));
	case PIPE_GRAPH:
		for (k = 0; k < NR_KERNELS; k++)
			of_kernels[i][k] = ask_of(&asks[i][k], k, spec);
		return pipe_fed_graph(fed, stream, &graphs[step->what], of_kernels[i]);
	case PIPE_COPY:
		return pipe_fed_copy(fed, stream, step->way, step->amount);
	case PIPE_RECORD:
		number = pipe_fed_record(fed, stream);
		marks->stream[step->what] = stream;
		marks->number[step->what] = number;
		return number;
	case PIPE_WAIT:
		return pipe_fed_wait(fed, stream, marks->stream[step->what],
				     marks->number[step->what]);
	default:
		return 1;
	}
}

static uint64_t cost(const struct pipe_host *host, const struct pipe_step *step)
{
	switch (step->kind) {
	case PIPE_LAUNCH:
		return host->launch_ns;
	case PIPE_GRAPH:
		return host->graph_ns;
	case PIPE_COPY:
		return host->copy_ns;
	case PIPE_CPU:
		return step->amount;
	default:
		return host->call_ns;
	}
}

static bool feed(const struct pipe_host *host)
{
	struct pipe_fed_watch watch = { .user = &fed_log, .block = take, .done = done };
	static struct marks marks;
	uint64_t now = 0, asked[NR_STREAMS] = { 0 };
	int opened[NR_STREAMS];
	struct pipe_fed *fed;
	unsigned int i;
	bool good = true;

	fed_log.nr = fed_log.bad = 0;
	memset(fed_log.done, 0, sizeof(fed_log.done));
	if (pipe_fed_open(&fed, &gpu, &watch))
		return false;
	for (i = 0; i < NR_STREAMS; i++)
		opened[i] = pipe_fed_stream(fed, &fed_log.done[i]);
	for (i = 0; i < NR_STEPS; i++) {
		now += cost(host, &steps[i]);
		good &= !pipe_fed_until(fed, now) && put(fed, i, opened, &marks) > 0;
		asked[steps[i].stream] += steps[i].kind != PIPE_CPU;
	}
	while (pipe_fed_step(fed) > 0)
		;
	good &= pipe_fed_next(fed) == UINT64_MAX && !fed_log.bad &&
		!memcmp(asked, fed_log.done, sizeof(asked));
	pipe_fed_close(fed);
	return good;
}

static unsigned int first_difference(void)
{
	unsigned int i;

	for (i = 0; i < ran.nr && i < fed_log.nr && i < MAX_BLOCKS; i++)
		if (memcmp(&ran.blocks[i], &fed_log.blocks[i], sizeof(ran.blocks[i])))
			return i;
	return i;
}

static void as_run(enum pipe_order order)
{
	struct pipe_host host = pipe_host_default;
	static struct pipe_result result;
	unsigned int seed, nr_events, i, refused = 0, unlike = 0, unfed = 0, blocks = 0;

	gpu.chip.order = order;
	for (seed = 1; seed <= NR_SEEDS; seed++) {
		state = seed * 0x9e3779b97f4a7c15ull;
		make_kernels();
		for (i = 0; i < NR_KERNELS && order == PIPE_ORDER_TPC; i++)
			kernels[i].cluster = 0;
		make_graphs();
		make_sets();
		nr_events = make_steps();
		/* In half of the programs, calls take no time, like in the simulated driver. */
		host = pipe_host_default;
		if (seed % 2)
			host.launch_ns = host.graph_ns = host.copy_ns = host.call_ns = 0;
		if (run_scenario(nr_events, &host, &result)) {
			refused++;
			continue;
		}
		blocks += ran.nr;
		unfed += !feed(&host);
		if (ran.nr == fed_log.nr && first_difference() == ran.nr)
			continue;
		if (!unlike++)
			printf("# seed %u: %u and %u blocks, the first that differs is %u\n",
			       seed, ran.nr, fed_log.nr, first_difference());
	}
	tap_ok(!refused && blocks > 100000, "order %d: %u programs run, %u blocks; %u do not",
	       order, NR_SEEDS, blocks, refused);
	tap_ok(!unfed, "fed, every command is done, in its stream's order (%u are not)", unfed);
	tap_ok(!unlike, "and every block is on the same SM at the same time (%u are not)", unlike);
}

/* ------------------------------------------------------------------- fed GPUs only */

static void node_came(void *user, void *of, uint64_t number, unsigned int node)
{
	struct log *log = user;

	(void)of;
	log->nr_nodes++;
	/* The graph is 0 -> 1 -> 2, and the middle node has no kernel. */
	log->bad += node != 1 || number != 1 || log->nr != 1;
}

static void only_fed(void)
{
	struct pipe_fed_watch watch = {
		.user = &fed_log, .block = take, .done = done, .node = node_came,
	};
	struct pipe_ask ask = {
		.kernel = { .name = "k", .blocks = 1, .threads = 32, .ns = 1000 },
		.set = { { 1 } },
	};
	const struct pipe_ask *asks[] = { &ask };
	const unsigned int after[] = { 0, 1 };
	const struct pipe_node chain[] = {
		{ 0, NULL, 0 }, { PIPE_NO_KERNEL, &after[0], 1 }, { 0, &after[1], 1 },
	};
	const struct pipe_graph graph = { "g", chain, 3 };
	uint64_t count = 0, other_count = 0;
	struct pipe_fed *fed;
	int stream, other;
	unsigned int i;
	int64_t put = 0;

	fed_log.nr = fed_log.bad = 0;
	if (!tap_ok(!pipe_fed_open(&fed, &gpu, &watch), "opens"))
		return;
	stream = pipe_fed_stream(fed, &count);
	other = pipe_fed_stream(fed, &other_count);
	tap_ok(pipe_fed_step(fed) == 0 && pipe_fed_now(fed) == 0, "idle, nothing comes");
	tap_ok(!pipe_fed_until(fed, 5000) && pipe_fed_now(fed) == 5000, "but time can go by");
	tap_ok(pipe_fed_graph(fed, stream, &graph, asks) == 1, "a graph");
	while (pipe_fed_step(fed) > 0)
		;
	tap_ok(fed_log.nr == 2 && fed_log.nr_nodes == 1 && !fed_log.bad && count == 1,
	       "a node without a kernel starts between the others");
	tap_ok(fed_log.blocks[0].start > 5000, "no block began in the past");

	for (i = 0; i < 5000 && (put = pipe_fed_launch(fed, stream, &ask)) > 0; i++)
		;
	tap_ok(put == -EAGAIN && i == pipe_host_default.ring, "a full buffer after %u", i);
	tap_ok(pipe_fed_wait(fed, other, stream, count + i) == 1, "another stream waits for all");
	while (other_count < 1 && pipe_fed_step(fed) > 0)
		;
	tap_ok(count == 1 + i && other_count == 1, "and it is all done when that goes on");
	tap_ok(pipe_fed_launch(fed, stream, &ask) == 2 + i, "there is room again");
	while (pipe_fed_step(fed) > 0)
		;
	pipe_fed_stream_close(fed, other);
	tap_ok(pipe_fed_stream(fed, &other_count) == other && pipe_fed_record(fed, other) == 2,
	       "a stream that is closed is given out again, and counts on");

	/* A TPC has two SMs. Two blocks of 1024 threads fit on each SM. */
	ask.kernel.threads = 1024;
	tap_ok(pipe_fed_room(fed, &ask) == 4, "what fits at once into one TPC: %lu",
	       (unsigned long)pipe_fed_room(fed, &ask));
	ask.kernel.cluster = 4;
	tap_ok(pipe_fed_room(fed, &ask) == 0, "no cluster of 4, an SM each");
	ask.kernel.pack = true;
	tap_ok(pipe_fed_room(fed, &ask) == 1, "but one that may share them");
	ask.kernel.blocks = 4;
	fed_log.nr = 0;
	tap_ok(pipe_fed_launch(fed, stream, &ask) > 0, "it is launched");
	while (pipe_fed_step(fed) > 0)
		;
	tap_ok(fed_log.nr == 4 && fed_log.blocks[0].smid < 2 && fed_log.blocks[3].smid < 2,
	       "and runs there");
	ask.set.allowed[0] = 0;
	tap_ok(pipe_fed_room(fed, &ask) == 0, "nothing fits into no TPC");
	pipe_fed_close(fed);
	pipe_fed_close(NULL);
}

int main(void)
{
	gpu.chip = *pipe_chip_find("h200");
	pipe_map_even(&gpu.map, &gpu.chip);
	as_run(PIPE_ORDER_VGPC);
	as_run(PIPE_ORDER_TPC);
	gpu.chip.order = PIPE_ORDER_VGPC;
	only_fed();
	return tap_done();
}
