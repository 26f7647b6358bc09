// SPDX-License-Identifier: MIT
/* Adds up what was measured of a program's processes and says what bounds it. */
#include <string.h>
#include "cli/stat/stat.h"

/* The GPU works all the time; it waits more than it works. */
#define BUSY_GPU_BOUND	0.90
#define IDLE_CPU_BOUND	0.50
/* Copies alone take so much of the time, and more of it than kernels. */
#define COPIES_BOUND	0.40

static double share(double part, double whole)
{
	return whole <= 0 ? 0 : part < 0 ? 0 : part > whole ? 1 : part / whole;
}

static void add_gpu(struct gpupart_stat_gpu *sum, const struct gpupart_stat_gpu *gpu)
{
	uint64_t *to = &sum->timed;
	const uint64_t *from = &gpu->timed;
	uint64_t depth_max = sum->depth_max;

	/* From timed on they are counts, one after the other; one of them is a maximum. */
	for (; to <= &sum->depths[GPUPART_STAT_NR_DEPTHS - 1]; to++, from++)
		*to += *from;
	sum->depth_max = depth_max > gpu->depth_max ? depth_max : gpu->depth_max;
	if (gpu->nr_sms > sum->nr_sms)
		sum->nr_sms = gpu->nr_sms;
}

static void add_process(struct stat_result *result, const struct gpupart_stat_process *process)
{
	struct gpupart_stat_process *sum = &result->sum;
	uint64_t *to = &sum->kernels;
	const uint64_t *from = &process->kernels;

	/* From kernels on as far as wait_ns likewise. */
	for (; to <= &sum->wait_ns; to++, from++)
		*to += *from;
	sum->own_ns += process->own_ns;
	sum->unresolved += process->unresolved;
	for (unsigned int i = 0; i < process->nr_gpus; i++)
		add_gpu(&sum->gpus[0], &process->gpus[i]);
}

/* From its first work to its last call, or as long as its work was seen to take. */
static uint64_t span_of(const struct gpupart_stat_process *process)
{
	uint64_t span = 0;

	if (!process->first_ns)
		return 0;
	if (process->last_ns > process->first_ns)
		span = process->last_ns - process->first_ns;
	for (unsigned int i = 0; i < process->nr_gpus; i++)
		if (process->gpus[i].stretches_ns > span)
			span = process->gpus[i].stretches_ns;
	return span;
}

/* All processes have one clock: what runs at once is no longer than the longest. */
static double span_of_all(const struct stat_result *result)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned int i = 0; i < result->nr_processes; i++) {
		const struct gpupart_stat_process *p = &result->processes[i];
		uint64_t span = span_of(p);

		if (!span)
			continue;
		first = p->first_ns < first ? p->first_ns : first;
		last = p->first_ns + span > last ? p->first_ns + span : last;
	}
	return last ? (last - first) / 1e9 : 0;
}

/* Adds what a process did on a GPU in its @part of the span to @shares; false if nothing. */
static bool add_shares(double shares[], const struct gpupart_stat_gpu *gpu, double part)
{
	double starved = 0, held, own = gpu->own_ns, all;

	/* The GPU was idle while we measured, and would have been given work sooner. */
	if (own < gpu->starved_ns)
		starved = gpu->starved_ns - own;
	own -= gpu->starved_ns - starved;
	held = own < gpu->held_ns ? gpu->held_ns - own : 0;
	all = gpu->busy_ns + starved + held;
	shares[STAT_BUSY] += part * share(gpu->busy_ns, all);
	shares[STAT_KERNELS] += part * share(gpu->kernels_ns, all);
	shares[STAT_COPIES] += part * share(gpu->copies_ns, all);
	shares[STAT_BOTH] +=
		part * share((double)gpu->kernels_ns + gpu->copies_ns - gpu->busy_ns, all);
	shares[STAT_HELD] += part * share(held, all);
	return all > 0;
}

/* Adds the shares of the GPU at @pci to @sum. It does no more at once than it can: processes
 * take turns. */
static bool add_shares_of(const struct stat_result *result, const char *pci, double sum[])
{
	double shares[STAT_NR_SHARES] = { 0 }, both;
	bool seen = false;

	for (unsigned int i = 0; i < result->nr_processes; i++) {
		const struct gpupart_stat_process *p = &result->processes[i];
		struct gpupart_stat_gpu gpu = { 0 };

		for (unsigned int g = 0; g < p->nr_gpus; g++)
			if (!strcmp(p->gpus[g].pci, pci))
				add_gpu(&gpu, &p->gpus[g]);
		seen |= add_shares(shares, &gpu, share(span_of(p) / 1e9, result->span));
	}
	for (int s = STAT_BUSY; s <= STAT_COPIES; s++)
		shares[s] = share(shares[s], 1);
	both = shares[STAT_KERNELS] + shares[STAT_COPIES] - shares[STAT_BUSY];
	if (both > shares[STAT_BOTH])
		shares[STAT_BOTH] = both;
	shares[STAT_HELD] = share(shares[STAT_HELD], 1 - shares[STAT_BUSY]);
	for (int s = 0; s < STAT_NR_SHARES && seen; s++)
		sum[s] += shares[s];
	return seen;
}

/* Whether no earlier context, of process @i or of one before it, is on the GPU of context @g. */
static bool is_first(const struct stat_result *result, unsigned int i, unsigned int g)
{
	const char *pci = result->processes[i].gpus[g].pci;

	for (unsigned int j = 0; j <= i; j++)
		for (unsigned int h = 0; h < (j < i ? result->processes[j].nr_gpus : g); h++)
			if (!strcmp(result->processes[j].gpus[h].pci, pci))
				return false;
	return true;
}

/* Takes the mean of all GPUs. */
static void take_shares(struct stat_result *result)
{
	double *shares = result->shares;
	unsigned int nr = 0;

	memset(result->shares, 0, sizeof(result->shares));
	for (unsigned int i = 0; i < result->nr_processes; i++)
		for (unsigned int g = 0; g < result->processes[i].nr_gpus; g++)
			if (is_first(result, i, g))
				nr += add_shares_of(result, result->processes[i].gpus[g].pci,
						    shares);
	for (int s = 0; s < STAT_NR_SHARES; s++)
		shares[s] = share(shares[s], nr);
	if (nr)
		shares[STAT_STARVED] = share(1 - shares[STAT_BUSY] - shares[STAT_HELD], 1);
}

static uint64_t median_depth(const struct gpupart_stat_gpu *gpu)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < GPUPART_STAT_NR_DEPTHS; i++) {
		seen += gpu->depths[i];
		if (2 * seen >= gpu->timed)
			return gpupart_stat_depth(i);
	}
	return gpu->depth_max;
}

void stat_add_up(struct stat_result *result)
{
	const struct gpupart_stat_gpu *gpu = &result->sum.gpus[0];
	const struct gpupart_stat_process *sum = &result->sum;
	double spans = 0;

	memset(&result->sum, 0, sizeof(result->sum));
	result->span = result->window > 0 ? result->window : span_of_all(result);
	for (unsigned int i = 0; i < result->nr_processes; i++) {
		add_process(result, &result->processes[i]);
		spans += span_of(&result->processes[i]) / 1e9;
	}
	take_shares(result);
	result->rate = result->span > 0 ? (sum->kernels + sum->graphs) / result->span : 0;
	result->starved_waiting = share(gpu->both_ns, gpu->starved_ns);
	result->blocked = share(gpu->blocked_ns, gpu->stretches_ns);
	result->cpu_waits = spans > 0 ? sum->wait_ns / 1e9 / spans : 0;
	result->cpu_launches = spans > 0 ? sum->launch_ns / 1e9 / spans : 0;
	result->cost = spans > 0 ? sum->own_ns / 1e9 / spans : 0;
	result->depth = gpu->timed ? (double)gpu->depth_sum / gpu->timed : 0;
	result->depth_median = median_depth(gpu);
}

static const struct {
	const char *word, *why, *advice;	/* @why: NULL: the shares */
} verdicts[] = {
	[STAT_NO_CALL] = { "no CUDA call", "the program made no CUDA call", NULL },
	[STAT_NOT_MEASURED] = {
		"not measured", "it called CUDA and could not be measured: it said why", NULL },
	[STAT_NO_WORK] = { "no work", "the program called CUDA and gave the GPU no work", NULL },
	[STAT_NOT_SEEN] = {
		"no work", "nothing of what the program gave the GPU was seen to end", NULL },
	[STAT_GPU_BOUND] = { "GPU-bound", .advice =
		"its speed depends on its partition: it is slower in a smaller one, the less the more its kernels wait for memory",
	},
	[STAT_CPU_BOUND] = { "CPU-bound", .advice =
		"the GPU waits for the CPU: more work before each wait, or a graph, keeps both busy",
	},
	[STAT_COPY_BOUND] = { "copy-bound", .advice =
		"from pinned memory and in a stream of their own copies run beside kernels",
	},
	[STAT_NEITHER] = { "neither", NULL, NULL },
};

static enum stat_verdict bound_by(const struct stat_result *result)
{
	const struct gpupart_stat_process *sum = &result->sum;
	const double *shares = result->shares;
	double copies_alone = shares[STAT_COPIES] - shares[STAT_BOTH];

	if (!result->nr_processes)
		return result->nr_lost ? STAT_NOT_MEASURED : STAT_NO_CALL;
	if (!sum->gpus[0].timed)
		return sum->kernels + sum->graphs + sum->fills ? STAT_NOT_SEEN : STAT_NO_WORK;
	if (copies_alone >= COPIES_BOUND && copies_alone > shares[STAT_KERNELS])
		return STAT_COPY_BOUND;
	if (shares[STAT_BUSY] >= BUSY_GPU_BOUND)
		return STAT_GPU_BOUND;
	return shares[STAT_STARVED] >= IDLE_CPU_BOUND ? STAT_CPU_BOUND : STAT_NEITHER;
}

void stat_judge(struct stat_result *result)
{
	const double *shares = result->shares;
	enum stat_verdict verdict;

	stat_add_up(result);
	verdict = bound_by(result);
	result->verdict = verdicts[verdict].word;
	result->advice = verdicts[verdict].advice;
	snprintf(result->why, sizeof(result->why), "%s", verdicts[verdict].why ?: "");
	if (!verdicts[verdict].why)
		snprintf(result->why, sizeof(result->why),
			 "the GPU was busy %.0f%% of the time (kernels %.0f%%, copies %.0f%%), had nothing to do %.0f%%, and %.0f%% its work waited for something else",
			 100 * shares[STAT_BUSY], 100 * shares[STAT_KERNELS],
			 100 * shares[STAT_COPIES], 100 * shares[STAT_STARVED],
			 100 * shares[STAT_HELD]);
}
