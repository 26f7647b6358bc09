// SPDX-License-Identifier: MIT
/*
 * From what was measured of a program to what bounds it, and to what that means for the
 * size of its partition: an estimate, and it says so. Must not know how it is shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "stat.h"

/* Above, another TPC is felt; below, the GPU waits more than it works. */
#define BUSY_GPU_BOUND	0.90
#define IDLE_CPU_BOUND	0.50
/* Copies alone take so much of the time, and more of it than kernels. */
#define COPIES_BOUND	0.40
/* Worth a word. */
#define COPIES_MANY	0.10
#define COPIES_BESIDE	0.25	/* of their time: that they run beside kernels */
#define WAITS_MANY	0.30
#define FILL_SMALL	0.50
#define UNTIMED_MANY	0.50

static double share(double part, double whole)
{
	return whole <= 0 ? 0 : part < 0 ? 0 : part > whole ? 1 : part / whole;
}

static void add_gpu(struct gpupart_stat_gpu *sum, const struct gpupart_stat_gpu *gpu)
{
	uint64_t *to = &sum->timed;
	const uint64_t *from = &gpu->timed;
	uint64_t depth_max = sum->depth_max, max_blocks = sum->max_blocks;

	/* From timed on they are counts, one after the other; two of them are maxima. */
	for (; to <= &sum->max_blocks; to++, from++)
		*to += *from;
	sum->depth_max = depth_max > gpu->depth_max ? depth_max : gpu->depth_max;
	sum->max_blocks = max_blocks > gpu->max_blocks ? max_blocks : gpu->max_blocks;
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

/* -------------------------------------------------------------------- wall time */

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

/* Shares of the span of all. */
struct shares {
	double busy, kernels, copies, both, held;
	bool seen;
};

/* What one process has of a GPU's time, for its own part of the span. */
static void add_shares(struct shares *shares, const struct gpupart_stat_gpu *gpu, double part)
{
	double starved = 0, held, own = gpu->own_ns, all;

	/* The GPU was idle while we measured, and would have been given work sooner. */
	if (own < gpu->starved_ns)
		starved = gpu->starved_ns - own;
	own -= gpu->starved_ns - starved;
	held = own < gpu->held_ns ? gpu->held_ns - own : 0;
	all = gpu->busy_ns + starved + held;
	shares->seen |= all > 0;
	shares->busy += part * share(gpu->busy_ns, all);
	shares->kernels += part * share(gpu->kernels_ns, all);
	shares->copies += part * share(gpu->copies_ns, all);
	shares->both += part * share((double)gpu->kernels_ns + gpu->copies_ns - gpu->busy_ns, all);
	shares->held += part * share(held, all);
}

/* The GPU at @pci, which does not do more at once than it can: processes take turns. */
static struct shares shares_of(const struct stat_result *result, const char *pci)
{
	struct shares shares = { 0 };

	for (unsigned int i = 0; i < result->nr_processes; i++) {
		const struct gpupart_stat_process *p = &result->processes[i];
		struct gpupart_stat_gpu sum = { 0 };

		for (unsigned int g = 0; g < p->nr_gpus; g++)
			if (!strcmp(p->gpus[g].pci, pci))
				add_gpu(&sum, &p->gpus[g]);
		add_shares(&shares, &sum, share(span_of(p) / 1e9, result->span));
	}
	shares.busy = share(shares.busy, 1);
	shares.kernels = share(shares.kernels, 1);
	shares.copies = share(shares.copies, 1);
	if (shares.kernels + shares.copies - shares.busy > shares.both)
		shares.both = shares.kernels + shares.copies - shares.busy;
	shares.held = share(shares.held, 1 - shares.busy);
	return shares;
}

/* Whether the GPU of process @i's context @g was not met before. */
static bool is_first(const struct stat_result *result, unsigned int i, unsigned int g)
{
	const char *pci = result->processes[i].gpus[g].pci;

	for (unsigned int j = 0; j <= i; j++)
		for (unsigned int h = 0; h < (j < i ? result->processes[j].nr_gpus : g); h++)
			if (!strcmp(result->processes[j].gpus[h].pci, pci))
				return false;
	return true;
}

/* Of several GPUs the average. */
static void take_shares(struct stat_result *result)
{
	struct shares sum = { 0 };
	unsigned int nr = 0;

	for (unsigned int i = 0; i < result->nr_processes; i++)
		for (unsigned int g = 0; g < result->processes[i].nr_gpus; g++) {
			struct shares one;

			if (!is_first(result, i, g))
				continue;
			one = shares_of(result, result->processes[i].gpus[g].pci);
			if (!one.seen)
				continue;
			nr++;
			sum.busy += one.busy;
			sum.kernels += one.kernels;
			sum.copies += one.copies;
			sum.both += one.both;
			sum.held += one.held;
		}
	result->busy = share(sum.busy, nr);
	result->kernels = share(sum.kernels, nr);
	result->copies = share(sum.copies, nr);
	result->both = share(sum.both, nr);
	result->held = share(sum.held, nr);
	result->starved = nr ? share(1 - result->busy - result->held, 1) : 0;
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
	result->fill = gpu->sized_ns ? (double)gpu->filled_ns / gpu->sized_ns : -1;
	result->depth = gpu->timed ? (double)gpu->depth_sum / gpu->timed : 0;
	result->depth_median = median_depth(gpu);
}

/* --------------------------------------------------------------------- verdict */

static enum stat_verdict bound_by(const struct stat_result *result)
{
	double copies_alone = result->copies - result->both;

	if (!result->nr_processes)
		return result->nr_lost ? STAT_NOT_MEASURED : STAT_NO_CALL;
	if (!result->sum.gpus[0].timed)
		return STAT_NO_WORK;
	if (copies_alone >= COPIES_BOUND && copies_alone > result->kernels)
		return STAT_COPY_BOUND;
	if (result->busy >= BUSY_GPU_BOUND)
		return STAT_GPU_BOUND;
	return result->starved >= IDLE_CPU_BOUND ? STAT_CPU_BOUND : STAT_NEITHER;
}

const char *stat_word(enum stat_verdict verdict)
{
	static const char *const words[] = {
		[STAT_NO_CALL] = "no CUDA call", [STAT_NOT_MEASURED] = "not measured",
		[STAT_NO_WORK] = "no work",
		[STAT_GPU_BOUND] = "GPU-bound", [STAT_CPU_BOUND] = "CPU-bound",
		[STAT_COPY_BOUND] = "copy-bound", [STAT_NEITHER] = "neither",
	};

	return words[verdict];
}

static void explain(struct stat_result *result)
{
	char *why = result->why;
	size_t len = sizeof(result->why);
	const struct gpupart_stat_process *sum = &result->sum;

	*why = 0;
	switch (result->verdict) {
	case STAT_NO_CALL:
		out_append(why, len, "the program made no CUDA call");
		break;
	case STAT_NOT_MEASURED:
		out_append(why, len, "it called CUDA and could not be measured: it said why");
		break;
	case STAT_NO_WORK:
		if (sum->kernels + sum->graphs + sum->fills)
			out_append(why, len,
				   "nothing of what the program gave the GPU was seen to end");
		else
			out_append(why, len, "the program called CUDA and gave the GPU no work");
		break;
	case STAT_GPU_BOUND:
		out_append(why, len, "the GPU was busy %.0f%% of the time", 100 * result->busy);
		break;
	case STAT_CPU_BOUND:
		out_append(why, len,
			   "the GPU was busy %.0f%% of the time, and %.0f%% it had nothing to do: it waited for the CPU",
			   100 * result->busy, 100 * result->starved);
		break;
	case STAT_COPY_BOUND:
		out_append(why, len,
			   "copies ran %.0f%% of the time, kernels %.0f%%, both at once %.0f%%",
			   100 * result->copies, 100 * result->kernels, 100 * result->both);
		break;
	case STAT_NEITHER:
		out_append(why, len,
			   "the GPU was busy %.0f%% of the time, had nothing to do %.0f%%, and %.0f%% what it had waited for something else",
			   100 * result->busy, 100 * result->starved, 100 * result->held);
		break;
	}
}

/* ---------------------------------------------------------------------- advice */

static char *next_advice(struct stat_result *result)
{
	char *advice = result->advice[result->nr_advice];

	if (result->nr_advice < sizeof(result->advice) / sizeof(result->advice[0]) - 1)
		result->nr_advice++;
	*advice = 0;
	return advice;
}

#define ADVISE(result, ...) \
	out_append(next_advice(result), sizeof((result)->advice[0]), __VA_ARGS__)

#define PLAIN_LETTERS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"

/* In quotes where a shell would not take it as it is; false: it cannot be shown. */
static bool print_word(FILE *to, const char *word)
{
	for (const char *c = word; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return false;
	if (*word && strspn(word, PLAIN_LETTERS) == strlen(word)) {
		fprintf(to, " %s", word);
		return true;
	}
	fputs(" '", to);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word, to);
	fputc('\'', to);
	return true;
}

/* The same program on @nr TPCs: as a line that can be run, or in general words. */
static void try_on(struct stat_result *result, unsigned int nr)
{
	size_t len = 0;
	FILE *to = open_memstream(&result->again, &len);
	bool good = true;

	if (!to)
		return;
	fputs("gpupart stat", to);
	if (result->source) {
		fputs(" -i", to);
		good &= print_word(to, result->source);
	}
	if (result->gpu) {
		fputs(" --gpu", to);
		good &= print_word(to, result->gpu);
	}
	fprintf(to, " -n %u --", nr);
	for (char **word = result->program; *word && good; word++)
		good &= print_word(to, *word);
	/* What is no UTF-8 cannot stand in JSON, nor a control character on a terminal. */
	if (!good) {
		rewind(to);
		fprintf(to, "gpupart stat -n %u -- PROGRAM", nr);
	}
	fclose(to);
}

/* How many TPCs hold all blocks of the largest kernel, one an SM; 0: not known. */
static unsigned int tpcs_of_largest(const struct stat_result *result)
{
	const struct gpupart_stat_gpu *gpu = &result->sum.gpus[0];
	double sms_a_tpc;

	if (!result->gpu_tpcs || !gpu->max_blocks || result->sum.graphs || gpu->untimed)
		return 0;
	sms_a_tpc = (double)gpu->nr_sms / result->gpu_tpcs;
	if (gpu->max_blocks >= result->nr_tpcs * sms_a_tpc)
		return 0;
	return gpu->max_blocks / sms_a_tpc + 0.999;
}

/*
 * If a kernel takes N times as long on an N'th of the TPCs, the GPU is busy all the time
 * when as many TPCs are taken away as its idle time is worth. Memory-bound kernels need
 * fewer; and the program then waits for kernels that take longer.
 */
static void advise_smaller(struct stat_result *result)
{
	unsigned int largest = tpcs_of_largest(result);
	unsigned int nr = result->kernels * result->nr_tpcs + 0.999;

	if (!result->nr_tpcs) {
		ADVISE(result,
		       "estimate: %.0f%% of the TPCs may do, as kernels ran that part of the time; gpupart topology says why they cannot be counted here",
		       100 * result->kernels);
		return;
	}
	if (largest && largest < nr)
		nr = largest;
	if (nr < 1)
		nr = 1;
	if (nr < result->nr_tpcs)
		ADVISE(result,
		       "estimate: kernels ran %.0f%% of the time, so %u of %u TPCs may do; the rest is free for others",
		       100 * result->kernels, nr, result->nr_tpcs);
	if (nr < result->nr_tpcs)
		try_on(result, nr);
	if (largest)
		ADVISE(result, "its largest kernel has %llu blocks: %u TPCs give each an SM",
		       (unsigned long long)result->sum.gpus[0].max_blocks, largest);
}

static void advise_gpu(struct stat_result *result)
{
	unsigned int largest = tpcs_of_largest(result);

	if (largest)
		ADVISE(result,
		       "estimate: its largest kernel has %llu blocks, so %u of %u TPCs give each an SM: more make it no faster",
		       (unsigned long long)result->sum.gpus[0].max_blocks, largest,
		       result->nr_tpcs);
	else if (result->fill >= 0 && result->fill < FILL_SMALL)
		ADVISE(result,
		       "its kernels have blocks for %.0f%% of the GPU's SMs, by their time: measure it in smaller sets",
		       100 * result->fill);
	else if (result->nr_tpcs == 1)
		ADVISE(result,
		       "its speed depends on its partition, which has one TPC: a larger one makes it faster");
	else
		ADVISE(result,
		       "its speed depends on its partition: it is slower in a smaller one, the less the more its kernels wait for memory");
	if (largest)
		try_on(result, largest);
	else if (result->nr_tpcs > 1)
		try_on(result, result->nr_tpcs / 2);
}

static void advise_copies(struct stat_result *result)
{
	double beside = result->copies > 0 ? result->both / result->copies : 0;

	if (result->copies < COPIES_MANY)
		return;
	if (beside < COPIES_BESIDE)
		ADVISE(result,
		       "copies ran beside kernels %.0f%% of their time: from pinned memory and in a stream of their own they can",
		       100 * beside);
}

void stat_judge(struct stat_result *result)
{
	stat_add_up(result);
	result->verdict = bound_by(result);
	result->nr_advice = 0;
	explain(result);
	if (result->verdict <= STAT_NO_WORK)
		return;
	if (result->verdict == STAT_GPU_BOUND)
		advise_gpu(result);
	else
		advise_smaller(result);
	advise_copies(result);
	if (result->verdict == STAT_CPU_BOUND && result->cpu_waits >= WAITS_MANY)
		ADVISE(result,
		       "the CPU, too, waited %.0f%% of the time: it submits and waits in turns. More work before each wait, or a graph, keeps both busy",
		       100 * result->cpu_waits);
}
