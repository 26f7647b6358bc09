// SPDX-License-Identifier: MIT
/*
 * Which block ran on which SM, and when, as SVG: a row an SM, time to the right, a colour a
 * kernel. Knows no scheduling.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"
#include "svg.h"

#define WIDTH	1000
#define LEFT	60
#define TOP	48
#define LANES	32

static const char *const colours[] = {
	"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#882255",
	"#44aa99", "#bbbbbb",
};

#define NR_COLOURS (sizeof(colours) / sizeof(colours[0]))

static int by_start(const void *a, const void *b)
{
	const struct pipe_block *x = a, *y = b;

	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->launch != y->launch)
		return x->launch < y->launch ? -1 : 1;
	return (x->block > y->block) - (x->block < y->block);
}

/* The first lane of an SM that is free when @block starts. */
static unsigned int lane_of(uint64_t free_at[LANES], const struct pipe_block *block)
{
	unsigned int i;

	for (i = 0; i < LANES - 1 && free_at[i] > block->start; i++)
		;
	free_at[i] = block->end;
	return i;
}

static void legend(struct out *out, const struct sim_run *run)
{
	unsigned int i, x = LEFT;

	for (i = 0; i < run->scenario.pipe.nr_kernels; i++) {
		const char *name = run->scenario.pipe.kernels[i].name;

		if (!run->kernels[i].nr || x > LEFT + WIDTH - 100)
			continue;
		fprintf(out->file, "<rect x=\"%u\" y=\"26\" width=\"10\" height=\"10\" "
			"fill=\"%s\"/><text x=\"%u\" y=\"35\">", x, colours[i % NR_COLOURS],
			x + 14);
		svg_escape(out->file, name);
		fputs("</text>\n", out->file);
		x += 30 + 7 * strlen(name);
	}
}

/* Lanes that the fullest SM needs, so that all rows are alike. */
static unsigned int most_lanes(const struct sim_run *run, unsigned int nr_rows, uint8_t *lanes)
{
	uint64_t (*free_at)[LANES] = calloc(nr_rows, sizeof(*free_at));
	unsigned int i, most = 1;

	for (i = 0; free_at && i < run->nr_blocks; i++) {
		const struct pipe_block *block = &run->blocks[i];

		lanes[i] = lane_of(free_at[block->gpu * PIPE_MAX_SMS + block->smid], block);
		if (lanes[i] + 1u > most)
			most = lanes[i] + 1;
	}
	free(free_at);
	return most;
}

static void blocks(struct out *out, const struct sim_run *run, const unsigned int *first_row,
		   const uint8_t *lanes, double lane, uint64_t end, unsigned int most)
{
	unsigned int i;

	for (i = 0; i < run->nr_blocks; i++) {
		const struct pipe_block *b = &run->blocks[i];
		double x = LEFT + (double)b->start * WIDTH / end;
		double width = (double)(b->end - b->start) * WIDTH / end;
		double y = TOP + ((first_row[b->gpu] + b->smid) * most + lanes[i]) * lane;

		fprintf(out->file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
			"fill=\"%s\"/>\n", x, y, width < 0.3 ? 0.3 : width,
			lane > 2 ? lane - 0.4 : lane, colours[b->kernel % NR_COLOURS]);
	}
}

void sim_svg(struct out *out, const struct sim_run *run)
{
	unsigned int first_row[PIPE_MAX_GPUS], rows = 0, i, sm, most;
	uint64_t end = run->result.end ? run->result.end : 1;
	uint8_t *lanes = calloc(run->nr_blocks + 1u, 1);
	double lane, row;
	char text[32];

	if (!lanes)
		return;
	for (i = 0; i < run->scenario.pipe.nr_gpus; i++) {
		first_row[i] = rows;
		rows += run->scenario.pipe.gpus[i].map.nr_sms;
	}
	qsort(run->blocks, run->nr_blocks, sizeof(*run->blocks), by_start);
	most = most_lanes(run, PIPE_MAX_GPUS * PIPE_MAX_SMS, lanes);
	lane = rows * most > 400 ? 800.0 / (rows * most) : most > 1 ? 4 : 10;
	row = lane * most;
	fprintf(out->file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"15\">",
		WIDTH + LEFT + 20, TOP + rows * row + 24, LEFT);
	svg_escape(out->file, run->name ? run->name : run->scenario.pipe.gpus[0].chip.title);
	fprintf(out->file, " (simulated): blocks on SMs, 0 to %s", sim_time(text, end));
	if (run->nr_dropped)
		fprintf(out->file, "; %llu later blocks are left out",
			(unsigned long long)run->nr_dropped);
	fputs("</text>\n", out->file);
	legend(out, run);
	for (i = 0; i < run->scenario.pipe.nr_gpus; i++)
		for (sm = 0; sm < run->scenario.pipe.gpus[i].map.nr_sms; sm++)
			if (row >= 10 || !(sm % 10))
				fprintf(out->file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">"
					"SM %u</text>\n", LEFT - 6,
					TOP + (first_row[i] + sm) * row + 8, sm);
	blocks(out, run, first_row, lanes, lane, end, most);
	fputs("</svg>\n", out->file);
	free(lanes);
}
