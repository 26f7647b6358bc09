/* SPDX-License-Identifier: MIT */
/*
 * Reads the traces of tests/gpu/traces.c, and the map of the board. reduce.py has reduced the
 * traces.
 */
#ifndef GPUPART_TESTS_TRACES_H
#define GPUPART_TESTS_TRACES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gpupart_manage.h>
#include "sim/pipe/gpupart_sim.h"
#include "tests/sim/pipe/board.h"

#define MAX_KERNELS	6
#define MAX_WAVE	2048
#define MAX_ORDERS	256
#define MAX_SEQ		24
#define MAX_LINE	65536

/*
 * The clocks of a kernel's 16 multiply-adds, and the clocks of its loop. The values were fitted
 * on the cases with the mark "fit".
 */
#define CHAIN_CLOCKS	67.13	/* each multiply-add waits for the previous multiply-add */
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
	uint16_t seq[MAX_SEQ];		/* order of the first runs */
	unsigned int nr_seq;
};

static struct gpupart *gp;
static struct gpupart_topology *topo;

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

/*
 * Computes the model's input for a kernel: the solo time of a block, and the block's issue slots.
 */
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
	trace->streams[i].process = stream;	/* points to the program data below */
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
	} else if (!strncmp(line, "seq ", 4)) {
		trace->nr_seq = read_numbers(line + 4, trace->seq, MAX_SEQ);
	} else if (sscanf(line, "order %u", &value) == 1) {
		order = &trace->orders[trace->nr_orders++];
		memset(order, 0, sizeof(*order));
		order->count = value;
	} else if (sscanf(line, "o %u%n", &i, &at) == 1 && at && trace->nr_orders) {
		order = &trace->orders[trace->nr_orders - 1];
		order->nr[i] = read_numbers(line + at, order->sms[i], 264);
	}
}

/*
 * Reads the next case. If there is no more case, returns false. The header line of this case was
 * already read with the previous case.
 */
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

#endif
