// SPDX-License-Identifier: MIT
/*
 * Compares the pipeline with an H200: silicon [-v] [REDUCED CAPTURE]. Each case of
 * tests/gpu/traces.c runs as a scenario. The program compares the SMs that ran blocks, the order
 * of SMs in the first wave, the number of blocks on each SM (chi-squared, 1 %), and the time of
 * the case. The first turn of a kernel depends on earlier work. The traces do not contain this
 * work. So any of the 32 turns may explain an order, but a single turn must explain the whole
 * order. In some cases, no other work ran between the repetitions, and all blocks began at the
 * same time. In these cases, each repetition must follow from the previous repetition. A table
 * has the known differences. If a known difference no longer exists, the test fails.
 */
#include <errno.h>
#include <math.h>
#include "tests/sim/pipe/traces.h"
#include "tests/tap.h"

#define TURNS		32

/* The results of a run of the model. */
struct seen {
	uint16_t sm[MAX_KERNELS][MAX_WAVE];
	uint64_t sms[MAX_KERNELS][PIPE_MAX_SMS / 64];
	uint64_t start[MAX_KERNELS], end[MAX_KERNELS];
};

static struct pipe_gpu gpu;
static struct pipe_result result;
static bool verbose;

/* ------------------------------------------------------------------------ the model */

struct run {
	struct seen *seen;		/* for each repetition */
	unsigned int nr_kernels, nr_reps;
};

static void take_block(void *user, const struct pipe_block *block)
{
	struct run *run = user;
	struct seen *seen = &run->seen[block->launch / run->nr_kernels % run->nr_reps];
	unsigned int i = block->launch % run->nr_kernels;

	if (block->block < MAX_WAVE)
		seen->sm[i][block->block] = block->smid;
	seen->sms[i][block->smid / 64] |= 1ull << block->smid % 64;
	if (!seen->end[i] || block->start < seen->start[i])
		seen->start[i] = block->start;
	if (block->end > seen->end[i])
		seen->end[i] = block->end;
}

#define AS_IT_STANDS	(-1u)

/* Runs the case @nr_reps times. In the first repetition, kernel k begins at turns[k]. */
static int run_reps(const struct trace *trace, const unsigned int *turns, struct seen *seen,
		    unsigned int nr_reps)
{
	static const char *const process = "main";
	struct pipe_stream streams[MAX_KERNELS];
	struct pipe_step steps[MAX_SEQ * (MAX_KERNELS + 1)] = { 0 };
	struct pipe_program program = { .name = "main", .steps = steps };
	struct pipe_scenario scenario = {
		.host = pipe_host_default, .gpus = &gpu, .nr_gpus = 1, .kernels = trace->kernels,
		.nr_kernels = trace->nr_kernels, .streams = streams,
		.nr_streams = trace->nr_kernels, .processes = &process, .nr_processes = 1,
		.programs = &program, .nr_programs = 1,
	};
	struct run run = { .seen = seen, .nr_kernels = trace->nr_kernels, .nr_reps = nr_reps };
	struct pipe_watch watch = { .user = &run, .block = take_block };
	unsigned int i, j, k;

	memset(seen, 0, nr_reps * sizeof(*seen));
	for (k = 0; k < trace->nr_kernels; k++) {
		streams[k] = trace->streams[k];
		streams[k].process = 0;
	}
	for (i = 0; i < nr_reps; i++) {
		for (k = 0; k < trace->nr_kernels; k++) {
			struct pipe_step *step = &steps[program.nr_steps++];

			step->kind = PIPE_LAUNCH;
			step->what = k;
			step->turn = i ? 0 : 1 + turns[k];
			/*
			 * If several kernels of the traces share a stream, they also share a
			 * stream here. This stream is the stream of the first of these kernels.
			 */
			for (j = 0; trace->streams[j].process != trace->streams[k].process; j++)
				;
			step->stream = j;
			step->set = streams[k].set;
		}
		steps[program.nr_steps++].kind = PIPE_SYNC_ALL;
	}
	return pipe_run(&scenario, &watch, &result);
}

static int run_model(const struct trace *trace, const unsigned int *turns, struct seen *seen)
{
	return run_reps(trace, turns, seen, 1);
}

/* ----------------------------------------------------------------------- comparison */

struct verdict {
	bool sms, waves;
	unsigned int nr_equal, nr_runs, nr_followed;
	double worst;			/* largest deviation of the time of the whole case */
	/* chi-squared; number of SMs minus 1 degrees of freedom */
	double chi_squared;
	unsigned int freedom;
};

static bool same_order(const struct order *order, const struct seen *seen, unsigned int k)
{
	return !memcmp(order->sms[k], seen->sm[k], order->nr[k] * sizeof(uint16_t));
}

/*
 * Returns true if some turns explain an order. Finds the turns of the kernels in order, one
 * kernel after the other.
 */
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

/*
 * Each later kernel begins with the turn that the previous kernel leaves. Returns true if one
 * turn of the first kernel explains the orders of all kernels.
 */
static bool follows(const struct trace *trace, const struct order *order)
{
	unsigned int k, turns[MAX_KERNELS];
	static struct seen seen;

	for (k = 1; k < MAX_KERNELS; k++)
		turns[k] = AS_IT_STANDS;
	for (turns[0] = 0; turns[0] < TURNS; turns[0]++) {
		if (run_model(trace, turns, &seen))
			return false;
		for (k = 0; k < trace->nr_kernels && same_order(order, &seen, k); k++)
			;
		if (k == trace->nr_kernels)
			return true;
	}
	return false;
}

/* Returns the number of repetitions that a turn of the first kernel explains. */
static unsigned int follow_on(const struct trace *trace)
{
	static struct seen seen[MAX_SEQ];
	unsigned int i, k, turns[MAX_KERNELS], most = 0;

	for (k = 1; k < MAX_KERNELS; k++)
		turns[k] = AS_IT_STANDS;
	for (turns[0] = 0; turns[0] < TURNS; turns[0]++) {
		if (run_reps(trace, turns, seen, trace->nr_seq))
			return 0;
		for (i = 0; i < trace->nr_seq; i++) {
			for (k = 0; k < trace->nr_kernels; k++)
				if (!same_order(&trace->orders[trace->seq[i]], &seen[i], k))
					break;
			if (k < trace->nr_kernels)
				break;
		}
		most = i > most ? i : most;
	}
	return most;
}

/* Returns true if all blocks of all kernels began before the first end of a block. */
static bool one_wave(const struct trace *trace)
{
	unsigned int k;

	for (k = 0; k < trace->nr_kernels; k++)
		if (trace->nr_wave[k] < trace->kernels[k].blocks)
			return false;
	return true;
}

/*
 * Compares the complete first wave of the first run. An order in the traces may have fewer blocks
 * than this wave.
 */
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

/* If the set of SMs of a kernel differs between runs, the kernel is not compared. */
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

/*
 * For each block of the first wave, increases the count of its SM. The order in @sms occurred in
 * @weight runs.
 */
static void count(double *counts, const uint16_t *sms, unsigned int nr, double weight)
{
	unsigned int b;

	for (b = 0; b < nr; b++)
		counts[sms[b]] += weight;
}

/*
 * Used if no turn explains an order. All turns are then equally likely. Computes the model's
 * expectation.
 */
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
		/* For an SM that the model never uses, the count is 1. */
		verdict->chi_squared += (real[i] - model[i]) * (real[i] - model[i]) /
					(model[i] > 1 ? model[i] : 1);
	}
	verdict->freedom -= verdict->freedom > 0;
}

/* Returns the 1 % point of chi-squared, by the approximation of Wilson and Hilferty. */
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
		verdict->nr_followed += follows(trace, order) ? order->count : 0;
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

/* -------------------------------------------------------------------- known differences */

enum what { WHAT_ORDER = 1, WHAT_TIME = 2, WHAT_COUNTS = 4, WHAT_SEQUENCE = 8 };

/* Documentation/results/h200-traces.md describes each difference. */
static const struct {
	const char *name;
	enum what what;
} known[] = {
	{ "interleaved", WHAT_ORDER | WHAT_SEQUENCE },
	{ "rest-1", WHAT_ORDER },
	{ "rest-2", WHAT_ORDER },
	{ "rest-4", WHAT_ORDER },
	{ "rest-2-of-5", WHAT_ORDER },
	{ "rest-4-of-5", WHAT_ORDER },
	{ "odd-1", WHAT_ORDER | WHAT_SEQUENCE },
	{ "chain-1056x192", WHAT_TIME },
	{ "part-l2-4", WHAT_TIME },
	{ "part-dram-4", WHAT_TIME },
};

static unsigned int known_of(const struct trace *trace)
{
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, trace->name))
			return known[i].what;
	return 0;
}

/*
 * The allowed deviation. Cases with reads measure bandwidth instead of compute, so the limit of 5
 * % does not apply to these cases.
 */
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
	if (trace->nr_orders && trace->nr_kernels > 1)
		tap_ok(verdict->nr_followed == verdict->nr_equal,
		       "%s: whose turn it is follows from the kernel before (%u of %u)",
		       trace->name, verdict->nr_followed, verdict->nr_equal);
	if (trace->nr_seq && one_wave(trace)) {
		unsigned int nr = follow_on(trace);

		tap_ok((nr == trace->nr_seq) == !(expected & WHAT_SEQUENCE),
		       "%s: %u of %u repetitions follow one from the other%s", trace->name, nr,
		       trace->nr_seq, expected & WHAT_SEQUENCE ? ", is known to differ" : "");
	}
	if (trace->nr_orders)
		tap_ok(!((differs ^ expected) & WHAT_COUNTS), "%s: blocks an SM%s", trace->name,
		       expected & WHAT_COUNTS ? " are known to differ" : "");
	tap_ok(!((differs ^ expected) & WHAT_TIME), "%s: its time, within %.0f %%%s", trace->name,
	       100 * most_error(trace), expected & WHAT_TIME ? ", is known to differ" : "");
}

static int compare_board(const char *reduced, const char *capture)
{
	FILE *file = fopen(reduced, "r");
	static struct trace trace;
	static char line[MAX_LINE];
	struct verdict verdict;
	unsigned int nr = 0;

	if (!file || gpupart_topology_open(gp, capture, NULL, &topo)) {
		printf("Bail out! usage: silicon [-v] [REDUCED CAPTURE]\n");
		return -1;
	}
	board_map(&gpu.map, topo);
	*line = '\0';
	for (; read_case(file, &trace, line); nr++) {
		if (!tap_ok(!compare(&trace, &verdict), "%s: runs on the pipeline", trace.name))
			continue;
		judge(&trace, &verdict);
	}
	tap_ok(nr > 100, "%s has %u cases", reduced, nr);
	fclose(file);
	gpupart_topology_close(topo);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const boards[] = {
		"tests/data/traces/h200.txt", "tests/data/traces/h200.capture",
		"tests/data/traces/h200-2.txt", "tests/data/traces/h200-2.capture",
	};
	unsigned int i;

	verbose = argc > 1 && !strcmp(argv[1], "-v");
	gpu.chip = *pipe_chip_find("h200");
	if (gpupart_open(&gp))
		return 1;
	if (argc > 2 + verbose)
		return compare_board(argv[1 + verbose], argv[2 + verbose]) ? 1 : tap_done();
	for (i = 0; i < sizeof(boards) / sizeof(*boards); i += 2)
		if (compare_board(boards[i], boards[i + 1]))
			return 1;
	gpupart_close(gp);
	return tap_done();
}
