// SPDX-License-Identifier: MIT
/*
 * Measures the speed of the scheduling pipeline on one core. The units are block events per
 * second and launches per second. A block event is a begin or an end of a block. Also measures
 * the memory of the pipeline. If the speed is below the required speed, the program fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "sim/pipe/gpupart_sim.h"

#define WANTED	5e6	/* block events per second */
#define REPEATS	3	/* the fastest counts */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static struct pipe_gpu gpu;

static const struct pipe_kernel kernels[] = {
	{ .name = "short", .blocks = 100000, .threads = 256, .ns = 10000 },
	{ .name = "work", .blocks = 100000, .threads = 256, .work = 5000 },
	{ .name = "other", .blocks = 70000, .threads = 96, .work = 7001 },
	{ .name = "reads", .blocks = 70000, .threads = 128, .work = 1000, .bytes = 65536 },
	{ .name = "one", .blocks = 1, .threads = 32, .ns = 1000 },
	{ .name = "clusters", .blocks = 100000, .threads = 256, .cluster = 4, .ns = 10000 },
};

static const struct pipe_stream streams[] = {
	{ .name = "a" }, { .name = "b" }, { .name = "c" },
};

static const char *const process = "main";

static int run(const char *what, const struct pipe_step *body, unsigned int nr, uint64_t rounds,
	       double wanted)
{
	const struct pipe_step loop = {
		.kind = PIPE_LOOP, .amount = rounds, .body = body, .nr_body = nr,
	};
	const struct pipe_program program = { .name = "main", .steps = &loop, .nr_steps = 1 };
	const struct pipe_scenario scenario = {
		.host = pipe_host_default, .gpus = &gpu, .nr_gpus = 1,
		.kernels = kernels, .nr_kernels = sizeof(kernels) / sizeof(kernels[0]),
		.streams = streams, .nr_streams = sizeof(streams) / sizeof(streams[0]),
		.processes = &process, .nr_processes = 1, .programs = &program, .nr_programs = 1,
	};
	struct pipe_result *result = malloc(sizeof(*result));
	double best = 0, start, seconds, rate;
	unsigned int i;
	struct rusage usage;

	/* Other load on the machine can only make the pipeline slower. */
	for (i = 0; i < REPEATS; i++) {
		start = now();
		if (!result || pipe_run(&scenario, NULL, result)) {
			printf("%s: %s\n", what, result ? result->why : "no memory");
			free(result);
			return 1;
		}
		seconds = now() - start;
		best = !i || seconds < best ? seconds : best;
	}
	rate = 2 * result->blocks / best;
	getrusage(RUSAGE_SELF, &usage);
	printf("%-22s %9llu blocks %8llu launches %6.2f s %6.2f M block events/s %6ld KiB  %s\n",
	       what, (unsigned long long)result->blocks, (unsigned long long)result->launches,
	       best, rate / 1e6, usage.ru_maxrss, rate < wanted ? "too slow" : "ok");
	free(result);
	return rate < wanted;
}

int main(void)
{
	const struct pipe_step alike[] = { { .kind = PIPE_LAUNCH, .what = 0 } };
	const struct pipe_step shared[] = { { .kind = PIPE_LAUNCH, .what = 1 } };
	const struct pipe_step mixed[] = {
		{ .kind = PIPE_LAUNCH, .what = 1 }, { .kind = PIPE_LAUNCH, .what = 2, .stream = 1 },
	};
	const struct pipe_step reads[] = {
		{ .kind = PIPE_LAUNCH, .what = 3 }, { .kind = PIPE_LAUNCH, .what = 2, .stream = 1 },
	};
	const struct pipe_step clusters[] = { { .kind = PIPE_LAUNCH, .what = 5 } };
	const struct pipe_step small[] = { { .kind = PIPE_LAUNCH, .what = 4 } };
	int failed = 0;

	gpu.chip = *pipe_chip_find("h200");
	pipe_map_even(&gpu.map, &gpu.chip);
	failed |= run("waves of equal blocks", alike, 1, 20, WANTED);
	failed |= run("shared issue slots", shared, 1, 20, WANTED);
	failed |= run("two kernels mixed", mixed, 2, 10, WANTED);
	failed |= run("memory-bound, mixed", reads, 2, 5, WANTED);
	failed |= run("clusters", clusters, 1, 20, WANTED);
	failed |= run("a million launches", small, 1, 1000000, 0);
	return failed;
}
