// SPDX-License-Identifier: MIT
/*
 * Runs a scenario and records the results. The results are sums for each kernel, and a separate
 * record for each of the first launches.
 */
#include <stdio.h>
#include <stdlib.h>
#include "cli/sim/sim.h"
#include "cli/util/alloc.h"

static void add(struct sim_kind *kind, const struct pipe_launch *launch)
{
	uint64_t ns = launch->end - launch->start;

	if (!kind->nr || launch->start < kind->first)
		kind->first = launch->start;
	if (launch->end > kind->last)
		kind->last = launch->end;
	if (!kind->nr || ns < kind->min)
		kind->min = ns;
	if (ns > kind->max)
		kind->max = ns;
	kind->nr++;
	kind->sum += ns;
	kind->waited += launch->start - launch->asked;
	kind->blocks += launch->blocks;
	kind->bytes += launch->bytes;
	kind->evicted += launch->evicted;
	for (unsigned int i = 0; i < PIPE_MAX_SMS / 64; i++)
		kind->sms[launch->gpu][i] |= launch->sms[i];
}

static void take_launch(void *user, const struct pipe_launch *launch)
{
	struct sim_run *run = user;

	add(launch->kernel == UINT32_MAX ? &run->copies : &run->kernels[launch->kernel], launch);
	if (run->nr_rows < SIM_MAX_ROWS)
		run->rows[run->nr_rows++] = *launch;
}

int sim_run(struct sim_run *run)
{
	struct pipe_watch watch = { .user = run, .launch = take_launch };

	run->kernels = alloc_zeroed(run->scenario.pipe.nr_kernels + 1u, sizeof(*run->kernels));
	run->rows = alloc_zeroed(SIM_MAX_ROWS, sizeof(*run->rows));
	return pipe_run(&run->scenario.pipe, &watch, &run->result);
}

void sim_run_free(struct sim_run *run)
{
	free(run->kernels);
	free(run->rows);
	scenario_free(&run->scenario);
}

uint64_t sim_idle(const struct sim_run *run)
{
	const struct pipe_gpu_result *gpu = run->result.gpus;
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned int i = 0; i < run->scenario.pipe.nr_gpus; i++) {
		if (gpu[i].last && gpu[i].first < first)
			first = gpu[i].first;
		if (gpu[i].last > last)
			last = gpu[i].last;
	}
	/* A block begins some nanoseconds after its assignment to an SM. */
	return last && last - first > run->result.busy_ns ? last - first - run->result.busy_ns : 0;
}

unsigned int sim_nr_sms(const struct sim_kind *kind)
{
	unsigned int i, j, nr = 0;

	for (i = 0; i < PIPE_MAX_GPUS; i++)
		for (j = 0; j < PIPE_MAX_SMS / 64; j++)
			nr += __builtin_popcountll(kind->sms[i][j]);
	return nr;
}

const char *sim_time(char text[32], uint64_t ns)
{
	static const struct { uint64_t ns; const char *name; } units[] = {
		{ 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" },
	};

	for (unsigned int i = 0; i < 3; i++)
		if (ns >= units[i].ns) {
			snprintf(text, 32, "%.3f %s", (double)ns / units[i].ns, units[i].name);
			return text;
		}
	snprintf(text, 32, "%u ns", (unsigned int)ns);
	return text;
}

void sim_list(char *text, size_t len, const uint64_t *mask, unsigned int nr)
{
	unsigned int i, from;

	*text = '\0';
	for (i = 0; i < nr; i++) {
		if (!(mask[i / 64] >> i % 64 & 1))
			continue;
		for (from = i; i + 1 < nr && (mask[(i + 1) / 64] >> (i + 1) % 64 & 1); i++)
			;
		out_append(text, len, from == i ? "%s%u" : "%s%u-%u", *text ? "," : "", from, i);
	}
}
