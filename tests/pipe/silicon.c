// SPDX-License-Identifier: MIT
/*
 * The pipeline against an H200: silicon [-v] [REDUCED CAPTURE]. Each case of
 * tests/gpu/traces.c is run as a scenario. Compared are the SMs that blocks ran on, the order
 * of SMs in the first wave, how many of its blocks each SM had (chi-squared, 1 %), and how
 * long the case took. Whose turn it is when a kernel begins is left behind by what ran before,
 * which the traces do not have: any of the 16 turns may explain an order, but one has to
 * explain all of it. What is known to differ is a table here, and must go on to differ.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gpupart.h>
#include <gpupart_sim.h>
#include "board.h"
#include "tap.h"

#define MAX_KERNELS	6
#define MAX_WAVE	2048
#define MAX_ORDERS	256
#define MAX_LINE	65536
#define TURNS		16

/* Fitted on the cases marked "fit": clocks of a kernel's 16 multiply-adds and its loop. */
#define CHAIN_CLOCKS	67.13	/* each waits for the one before */
#define CHAIN_ISSUE	17.6	/* issue slots */
#define WIDE_CLOCKS	17.67
#define WIDE_ISSUE	17.4
#define MHZ		1980

struct order {
	unsigned int count, nr[MAX_KERNELS];
	uint16_t sms[MAX_KERNELS][264];
};

struct trace {
	char name[64], half[8];
	unsigned int nr_runs, nr_kernels, nr_orders;
	char entry[MAX_KERNELS][16], set[MAX_KERNELS][64];
	struct pipe_kernel kernels[MAX_KERNELS];
	struct pipe_stream streams[MAX_KERNELS];
	struct pipe_set sets[MAX_KERNELS];
	uint64_t start[MAX_KERNELS], end[MAX_KERNELS];
	uint64_t sms[MAX_KERNELS][PIPE_MAX_SMS / 64];
	bool sms_vary[MAX_KERNELS];
	unsigned int nr_wave[MAX_KERNELS];
	uint16_t wave[MAX_KERNELS][MAX_WAVE];
	struct order orders[MAX_ORDERS];
};

/* What a run of the model left behind. */
struct seen {
	uint16_t sm[MAX_KERNELS][MAX_WAVE];
	uint64_t sms[MAX_KERNELS][PIPE_MAX_SMS / 64];
	uint64_t start[MAX_KERNELS], end[MAX_KERNELS];
};

static struct gpupart *gp;
static struct gpupart_topology *topo;
static struct pipe_gpu gpu;
static struct pipe_result result;
static bool verbose;

/* ------------------------------------------------------------------------ the file */

static void read_set(struct trace *trace, unsigned int i)
{
	struct gpupart_tpcset set;

	trace->streams[i].set = NULL;
	if (!strcmp(trace->set[i], "all") || gpupart_set_parse(gp, topo, trace->set[i], &set))
		return;
	memcpy(trace->sets[i].allowed, set.allowed, sizeof(trace->sets[i].allowed));
	trace->streams[i].set = &trace->sets[i];
}

/* What the model is told of a kernel: how long a block takes alone, and its issue slots. */
static void make_kernel(struct pipe_kernel *kernel, const char *entry, unsigned int work)
{
	if (!strcmp(entry, "spin")) {
		kernel->ns = (work + 70) * 1000ull / MHZ;
	} else if (!strcmp(entry, "chain")) {
		kernel->ns = work * CHAIN_CLOCKS * 1000 / MHZ;
		kernel->work = work * CHAIN_ISSUE;
		kernel->every = 1;
	} else if (!strcmp(entry, "wide")) {
		kernel->ns = work * WIDE_CLOCKS * 1000 / MHZ;
		kernel->work = work * WIDE_ISSUE;
		kernel->every = 1;
	} else {
		kernel->ns = work * 1000ull / MHZ;
		kernel->bytes = 64ull * work * kernel->threads;
	}
}

static void read_kernel(struct trace *trace, const char *line)
{
	unsigned int i, work, stream;
	unsigned long long footprint;
	struct pipe_kernel *kernel;
	char priority[8];

	i = trace->nr_kernels++;
	kernel = &trace->kernels[i];
	*kernel = (struct pipe_kernel){ .name = "traced" };
	sscanf(line, "kernel %*u %15s blocks %lu threads %u registers %u shared %u cluster %u "
	       "work %u stream %u priority %7s set %63s footprint %llu", trace->entry[i],
	       &kernel->blocks, &kernel->threads, &kernel->registers, &kernel->shared,
	       &kernel->cluster, &work, &stream, priority, trace->set[i], &footprint);
	make_kernel(kernel, trace->entry[i], work);
	kernel->from_l2 = footprint && footprint < 30u << 20;
	trace->streams[i].name = "traced";
	trace->streams[i].priority = strcmp(priority, "high") ? 0 : 5;
	trace->streams[i].process = stream;	/* made one of the program's own below */
	read_set(trace, i);
}

static unsigned int read_numbers(const char *text, uint16_t *numbers, unsigned int most)
{
	unsigned int nr = 0;
	char *end;

	for (; nr < most; text = end) {
		unsigned long value = strtoul(text, &end, 10);

		if (end == text)
			break;
		numbers[nr++] = value;
	}
	return nr;
}

static void read_sms(const char *text, uint64_t *mask)
{
	struct gpupart_tpcset set = { 0 };

	gpupart_tpcset_parse_list(gp, text, &set);
	memcpy(mask, set.allowed, sizeof(set.allowed));
}

static void read_line(struct trace *trace, char *line)
{
	unsigned int i, value;
	struct order *order;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "time %u %lu %lu", &i, &trace->start[0], &trace->end[0]) == 3 && i) {
		trace->start[i] = trace->start[0];
		trace->end[i] = trace->end[0];
	} else if (!strncmp(line, "kernel ", 7)) {
		read_kernel(trace, line);
	} else if (sscanf(line, "sms %u %n", &i, &at) == 1 && at) {
		read_sms(line + at, trace->sms[i]);
	} else if (sscanf(line, "vary %u", &i) == 1) {
		trace->sms_vary[i] = true;
	} else if (sscanf(line, "wave %u%n", &i, &at) == 1 && at) {
		trace->nr_wave[i] = read_numbers(line + at, trace->wave[i], MAX_WAVE);
	} else if (sscanf(line, "order %u", &value) == 1) {
		order = &trace->orders[trace->nr_orders++];
		memset(order, 0, sizeof(*order));
		order->count = value;
	} else if (sscanf(line, "o %u%n", &i, &at) == 1 && at && trace->nr_orders) {
		order = &trace->orders[trace->nr_orders - 1];
		order->nr[i] = read_numbers(line + at, order->sms[i], 264);
	}
}

/* The next case; false: there is none. Its head line was read with the one before. */
static bool read_case(FILE *file, struct trace *trace, char *line)
{
	uint64_t start = 0, end = 0;
	bool first = true;

	while (strncmp(line, "case ", 5))
		if (!fgets(line, MAX_LINE, file))
			return false;
	memset(trace, 0, sizeof(*trace));
	sscanf(line, "case %63s %7s %u", trace->name, trace->half, &trace->nr_runs);
	for (*line = '\0'; fgets(line, MAX_LINE, file) && strncmp(line, "case ", 5); ) {
		read_line(trace, line);
		if (first && trace->end[0]) {
			start = trace->start[0];
			end = trace->end[0];
			first = false;
		}
	}
	if (strncmp(line, "case ", 5))
		*line = '\0';
	trace->start[0] = start;
	trace->end[0] = end;
	return true;
}

/* ------------------------------------------------------------------------ the model */

static void take_block(void *user, const struct pipe_block *block)
{
	struct seen *seen = user;
	unsigned int i = block->launch;

	if (block->block < MAX_WAVE)
		seen->sm[i][block->block] = block->smid;
	seen->sms[i][block->smid / 64] |= 1ull << block->smid % 64;
	if (!seen->end[i] || block->start < seen->start[i])
		seen->start[i] = block->start;
	if (block->end > seen->end[i])
		seen->end[i] = block->end;
}

/* The case with kernel k beginning at turns[k]. */
static int run_model(const struct trace *trace, const unsigned int *turns, struct seen *seen)
{
	static const char *const process = "main";
	struct pipe_stream streams[MAX_KERNELS];
	struct pipe_step steps[MAX_KERNELS] = { 0 };
	struct pipe_program program = {
		.name = "main", .steps = steps, .nr_steps = trace->nr_kernels,
	};
	struct pipe_scenario scenario = {
		.host = pipe_host_default, .gpus = &gpu, .nr_gpus = 1, .kernels = trace->kernels,
		.nr_kernels = trace->nr_kernels, .streams = streams,
		.nr_streams = trace->nr_kernels, .processes = &process, .nr_processes = 1,
		.programs = &program, .nr_programs = 1,
	};
	struct pipe_watch watch = { .user = seen, .block = take_block };
	unsigned int i, j;

	memset(seen, 0, sizeof(*seen));
	for (i = 0; i < trace->nr_kernels; i++) {
		streams[i] = trace->streams[i];
		streams[i].process = 0;
		steps[i].kind = PIPE_LAUNCH;
		steps[i].what = i;
		steps[i].turn = 1 + turns[i];
		/* Kernels of one stream of the traces go to the first of its entries here. */
		for (j = 0; trace->streams[j].process != trace->streams[i].process; j++)
			;
		steps[i].stream = j;
		steps[i].set = streams[i].set;
	}
	return pipe_run(&scenario, &watch, &result);
}

/* ----------------------------------------------------------------------- comparison */

struct verdict {
	bool sms, waves;
	unsigned int nr_equal, nr_runs;
	double worst;			/* of the whole case's time */
	double chi_squared;		/* with as many SMs less one degrees of freedom */
	unsigned int freedom;
};

static bool same_order(const struct order *order, const struct seen *seen, unsigned int k)
{
	return !memcmp(order->sms[k], seen->sm[k], order->nr[k] * sizeof(uint16_t));
}

/* Whether there are turns that explain an order, each kernel's after those before it. */
static bool explain(const struct trace *trace, const struct order *order, unsigned int *turns,
		    struct seen *seen)
{
	unsigned int k, turn;

	memset(turns, 0, MAX_KERNELS * sizeof(*turns));
	for (k = 0; k < trace->nr_kernels; k++) {
		for (turn = 0; turn < TURNS; turn++) {
			turns[k] = turn;
			if (!run_model(trace, turns, seen) && same_order(order, seen, k))
				break;
		}
		if (turn == TURNS)
			return false;
	}
	return true;
}

/* The whole first wave of the first run, which may be longer than an order. */
static bool same_waves(const struct trace *trace, const struct seen *seen)
{
	unsigned int k;

	for (k = 0; k < trace->nr_kernels; k++)
		if (memcmp(trace->wave[k], seen->sm[k], trace->nr_wave[k] * sizeof(uint16_t)))
			return false;
	return true;
}

static bool is_first(const struct trace *trace, const struct order *order)
{
	unsigned int k;

	for (k = 0; k < trace->nr_kernels; k++)
		if (memcmp(order->sms[k], trace->wave[k], order->nr[k] * sizeof(uint16_t)))
			return false;
	return true;
}

/* Kernels whose set of SMs was another in some runs are not compared. */
static bool same_sms(const struct trace *trace, const struct seen *seen)
{
	unsigned int k;

	for (k = 0; k < trace->nr_kernels; k++)
		if (!trace->sms_vary[k] &&
		    memcmp(trace->sms[k], seen->sms[k], sizeof(seen->sms[k]) / 2))
			return false;
	return true;
}

static double makespan_error(const struct trace *trace, const struct seen *seen)
{
	uint64_t first = UINT64_MAX, last = 0, real = 0;
	unsigned int k;

	for (k = 0; k < trace->nr_kernels; k++) {
		first = seen->start[k] < first ? seen->start[k] : first;
		last = seen->end[k] > last ? seen->end[k] : last;
		real = trace->end[k] > real ? trace->end[k] : real;
	}
	return (double)(last - first) / real - 1;
}

static void show_difference(const struct trace *trace, const struct seen *seen)
{
	unsigned int k, b;

	for (k = 0; k < trace->nr_kernels; k++)
		for (b = 0; b < trace->nr_wave[k]; b++)
			if (trace->wave[k][b] != seen->sm[k][b]) {
				printf("#   kernel %u block %u: SM %u, here %u\n", k, b,
				       trace->wave[k][b], seen->sm[k][b]);
				break;
			}
}

/* Blocks of the first wave an SM: @weight runs had this order. */
static void count(double *counts, const uint16_t *sms, unsigned int nr, double weight)
{
	unsigned int b;

	for (b = 0; b < nr; b++)
		counts[sms[b]] += weight;
}

/* What the model expects where no turn explains an order: all turns alike. */
static void count_all_turns(const struct trace *trace, const struct order *order, double *counts)
{
	unsigned int turns[MAX_KERNELS], k, turn;
	static struct seen seen;

	for (turn = 0; turn < TURNS; turn++) {
		for (k = 0; k < MAX_KERNELS; k++)
			turns[k] = turn;
		if (run_model(trace, turns, &seen))
			continue;
		for (k = 0; k < trace->nr_kernels; k++)
			count(counts, seen.sm[k], order->nr[k], (double)order->count / TURNS);
	}
}

static void chi_squared(struct verdict *verdict, const double *real, const double *model)
{
	unsigned int i;

	for (i = 0; i < PIPE_MAX_SMS; i++) {
		if (real[i] <= 0 && model[i] <= 0)
			continue;
		verdict->freedom++;
		/* A place that the model never uses counts as one it used once. */
		verdict->chi_squared += (real[i] - model[i]) * (real[i] - model[i]) /
					(model[i] > 1 ? model[i] : 1);
	}
	verdict->freedom -= verdict->freedom > 0;
}

/* The 1 % point, by Wilson and Hilferty. */
static double chi_limit(unsigned int freedom)
{
	double k = freedom, z = 2.3263, c = 1 - 2 / (9 * k) + z * sqrt(2 / (9 * k));

	return freedom ? k * c * c * c : 0;
}

static void compare_orders(const struct trace *trace, struct verdict *verdict)
{
	double real[PIPE_MAX_SMS] = { 0 }, model[PIPE_MAX_SMS] = { 0 };
	unsigned int i, k, turns[MAX_KERNELS];
	const struct order *order;
	static struct seen seen;

	for (i = 0; i < trace->nr_orders; i++) {
		order = &trace->orders[i];
		verdict->nr_runs += order->count;
		for (k = 0; k < trace->nr_kernels; k++)
			count(real, order->sms[k], order->nr[k], order->count);
		if (!explain(trace, order, turns, &seen)) {
			count_all_turns(trace, order, model);
			if (verbose) {
				printf("# %s: %u runs\n", trace->name, order->count);
				show_difference(trace, &seen);
			}
			continue;
		}
		verdict->nr_equal += order->count;
		for (k = 0; k < trace->nr_kernels; k++)
			count(model, seen.sm[k], order->nr[k], order->count);
		if (is_first(trace, order) && !same_waves(trace, &seen))
			verdict->waves = false;
	}
	chi_squared(verdict, real, model);
}

static int compare(const struct trace *trace, struct verdict *verdict)
{
	unsigned int turns[MAX_KERNELS] = { 0 };
	static struct seen seen;

	*verdict = (struct verdict){ .waves = true };
	if (run_model(trace, turns, &seen)) {
		printf("# %s: %s\n", trace->name, result.why);
		return -1;
	}
	verdict->worst = makespan_error(trace, &seen);
	verdict->sms = !trace->nr_wave[0] || same_sms(trace, &seen);
	compare_orders(trace, verdict);
	return 0;
}

/* --------------------------------------------------------------- what is known to differ */

enum what { WHAT_ORDER = 1, WHAT_TIME = 2, WHAT_COUNTS = 4 };

/* Documentation/results/h200-traces.md says of each what differs. */
static const struct {
	const char *name;
	enum what what;
} known[] = {
	{ "interleaved", WHAT_ORDER },
	{ "few", WHAT_ORDER },
	{ "streams-three", WHAT_ORDER },
	{ "cluster8", WHAT_ORDER | WHAT_COUNTS },
	{ "chain-1056x192", WHAT_TIME },
};

static unsigned int known_of(const struct trace *trace)
{
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, trace->name))
			return known[i].what;
	return 0;
}

/* What is allowed. Reads are bandwidth, not compute: 5 % is not promised of them. */
static double most_error(const struct trace *trace)
{
	return strcmp(trace->entry[0], "read") ? 0.05 : 0.1;
}

static void judge(const struct trace *trace, const struct verdict *verdict)
{
	unsigned int differs = 0, expected = known_of(trace);

	if (verdict->nr_equal != verdict->nr_runs || !verdict->waves)
		differs |= WHAT_ORDER;
	if (fabs(verdict->worst) > most_error(trace))
		differs |= WHAT_TIME;
	if (verdict->chi_squared > chi_limit(verdict->freedom))
		differs |= WHAT_COUNTS;
	printf("# %-22s %-4s orders %u of %u, chi-squared %.1f (limit %.1f), time %+.1f %%\n",
	       trace->name, trace->half, verdict->nr_equal, verdict->nr_runs,
	       verdict->chi_squared, chi_limit(verdict->freedom), 100 * verdict->worst);
	tap_ok(verdict->sms, "%s: the same SMs", trace->name);
	if (trace->nr_orders)
		tap_ok(!((differs ^ expected) & WHAT_ORDER), "%s: the order of the first wave%s",
		       trace->name, expected & WHAT_ORDER ? " is known to differ" : "");
	if (trace->nr_orders)
		tap_ok(!((differs ^ expected) & WHAT_COUNTS), "%s: blocks an SM%s", trace->name,
		       expected & WHAT_COUNTS ? " are known to differ" : "");
	tap_ok(!((differs ^ expected) & WHAT_TIME), "%s: its time, within %.0f %%%s", trace->name,
	       100 * most_error(trace), expected & WHAT_TIME ? ", is known to differ" : "");
}

int main(int argc, char **argv)
{
	const char *reduced = "tests/data/traces/h200.txt";
	const char *capture = "tests/data/traces/h200.capture";
	static struct trace trace;
	static char line[MAX_LINE];
	struct verdict verdict;
	unsigned int nr = 0;
	FILE *file;

	verbose = argc > 1 && !strcmp(argv[1], "-v");
	if (argc > 2 + verbose) {
		reduced = argv[1 + verbose];
		capture = argv[2 + verbose];
	}
	file = fopen(reduced, "r");
	if (!file || gpupart_open(&gp) || gpupart_topology_open(gp, capture, NULL, &topo)) {
		printf("Bail out! usage: silicon [-v] [REDUCED CAPTURE]\n");
		return 1;
	}
	gpu.chip = *pipe_chip_find("h200");
	board_map(&gpu.map, topo);
	for (; read_case(file, &trace, line); nr++) {
		if (!tap_ok(!compare(&trace, &verdict), "%s: runs on the pipeline", trace.name))
			continue;
		judge(&trace, &verdict);
	}
	tap_ok(nr > 100, "there are %u cases", nr);
	fclose(file);
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return tap_done();
}
