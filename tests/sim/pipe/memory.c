// SPDX-License-Identifier: MIT
/*
 * Tests the memory of the pipeline. It must depend on the work in progress, not on the length of
 * the scenario. All memory must be freed. The program is linked with --wrap, so that it counts
 * every allocation.
 */
#include <stdlib.h>
#include "sim/pipe/gpupart_sim.h"
#include "tests/tap.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void __real_free(void *where);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void __wrap_free(void *where);

static size_t held, most;

#define HEAD 16		/* the size of a block, stored before the block */

static void *count(char *piece, size_t size)
{
	if (!piece)
		return NULL;
	*(size_t *)piece = size;
	held += size;
	most = held > most ? held : most;
	return piece + HEAD;
}

void *__wrap_malloc(size_t size)
{
	return count(__real_malloc(HEAD + size), size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return count(__real_calloc(1, HEAD + nr * size), nr * size);
}

void __wrap_free(void *where)
{
	if (!where)
		return;
	held -= *(size_t *)((char *)where - HEAD);
	__real_free((char *)where - HEAD);
}

/* ----------------------------------------------------------------------- scenarios */

static struct pipe_gpu gpu;
static struct pipe_result result;

static const struct pipe_kernel kernels[] = {
	{ .name = "one", .blocks = 1, .threads = 32, .ns = 10000 },
	{ .name = "grid", .blocks = 2000, .threads = 256, .work = 100, .bytes = 1000 },
};

static const unsigned int first[] = { 0 };
static const struct pipe_node nodes[] = { { .kernel = 0 }, { .kernel = 0, first, 1 } };
static const struct pipe_graph graph = { .name = "graph", .nodes = nodes, .nr_nodes = 2 };
static const struct pipe_stream streams[] = { { .name = "a" }, { .name = "b" } };
static const char *const process = "main", *const event = "event";

static const struct pipe_step small[] = { { .kind = PIPE_LAUNCH } };
static const struct pipe_step grids[] = { { .kind = PIPE_LAUNCH, .what = 1 } };
static const struct pipe_step all_kinds[] = {
	{ .kind = PIPE_LAUNCH }, { .kind = PIPE_GRAPH, .stream = 1 },
	{ .kind = PIPE_COPY, .amount = 1000 }, { .kind = PIPE_RECORD },
	{ .kind = PIPE_WAIT, .stream = 1 },
};

/*
 * Returns the maximum memory in a run. The run has @rounds rounds of @body, and room for @ring
 * commands.
 */
static size_t peak(const struct pipe_step *body, unsigned int nr, uint64_t rounds,
		   unsigned int ring)
{
	const struct pipe_step loop = {
		.kind = PIPE_LOOP, .amount = rounds, .body = body, .nr_body = nr,
	};
	const struct pipe_program program = { .name = "main", .steps = &loop, .nr_steps = 1 };
	struct pipe_scenario scenario = {
		.host = pipe_host_default, .gpus = &gpu, .nr_gpus = 1, .kernels = kernels,
		.nr_kernels = 2, .graphs = &graph, .nr_graphs = 1, .streams = streams,
		.nr_streams = 2, .processes = &process, .nr_processes = 1, .events = &event,
		.nr_events = 1, .programs = &program, .nr_programs = 1,
	};

	scenario.host.ring = ring;
	most = held = 0;
	if (!tap_ok(!pipe_run(&scenario, NULL, &result), "%llu rounds of %u steps run",
		    (unsigned long long)rounds, nr))
		printf("# %s\n", result.why);
	tap_ok(held == 0, "all of it is given back: %zu bytes are left", held);
	return most;
}

static void compare(const char *what, const struct pipe_step *body, unsigned int nr,
		    uint64_t rounds, uint64_t more)
{
	size_t less = peak(body, nr, rounds, 1024), peaked = peak(body, nr, more, 1024);

	tap_ok(less && peaked == less, "%s: %zu bytes for %llu rounds, %zu for %llu", what, less,
	       (unsigned long long)rounds, peaked, (unsigned long long)more);
}

int main(void)
{
	size_t few, many;
	double each;

	gpu.chip = *pipe_chip_find("h200");
	pipe_map_even(&gpu.map, &gpu.chip);
	compare("launches", small, 1, 10000, 1000000);
	compare("grids", grids, 1, 10, 100);
	compare("launches, graphs, copies, events", all_kinds, 5, 10000, 100000);
	/* Measures the cost of more work in progress. All this work waits in the buffer. */
	few = peak(small, 1, 200000, 10000);
	many = peak(small, 1, 200000, 100000);
	each = ((double)many - few) / 90000;
	tap_ok(each > 32 && each < 128, "a launch more in flight is %.0f bytes", each);
	return tap_done();
}
