// SPDX-License-Identifier: MIT
/*
 * Blocks of a run for a terminal, in 80 columns: a row a TPC, a column a slice of time, a
 * kernel's letter where its blocks had most of it. TPCs of a GPC that look alike share a row.
 * Knows no scheduling.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "axis.h"
#include "sim_blocks.h"

#define LABEL	21	/* "GPC 0 0,8,16-40,44 " */
#define LIST	14	/* columns of a list of TPCs */
#define SLICES	58
#define MAX_NAME 60

struct rows {
	struct out *out;
	const struct sim_blocks *blocks;
	bool *printed;			/* by row */
	int8_t (*longest)[SLICES];	/* kinds, by the first row of a TPC */
};

static bool look_alike(const struct rows *rows, unsigned int x, unsigned int y)
{
	return !memcmp(rows->longest[x], rows->longest[y], sizeof(rows->longest[x]));
}

static int find_longest(struct rows *rows)
{
	const struct sim_blocks *b = rows->blocks;
	unsigned int nr;

	rows->printed = calloc(b->nr_rows, sizeof(*rows->printed));
	rows->longest = malloc(b->nr_rows * sizeof(*rows->longest));
	if (!rows->printed || !rows->longest)
		return -ENOMEM;
	memset(rows->longest, -1, b->nr_rows * sizeof(*rows->longest));
	for (unsigned int row = 0; row < b->nr_rows; row += nr) {
		nr = sim_blocks_tpc_rows(b, row);
		for (unsigned int slice = 0; slice < b->nr_slices; slice++)
			rows->longest[row][slice] = sim_blocks_longest(b, row, nr, slice);
	}
	return 0;
}

/* TPCs of [@row, @end) that look as the first does: their list, and each is printed now. */
static void list_alike(struct rows *rows, unsigned int row, unsigned int end, char *text,
		       size_t len)
{
	const struct sim_blocks *b = rows->blocks;
	uint64_t mask[PIPE_SET_WORDS] = { 0 };
	unsigned int nr = 0;

	for (unsigned int i = row; i < end; i += sim_blocks_tpc_rows(b, i)) {
		if (rows->printed[i] || !look_alike(rows, row, i))
			continue;
		rows->printed[i] = true;
		mask[b->rows[i].tpc / 64] |= 1ull << b->rows[i].tpc % 64;
		nr++;
	}
	sim_list(text, len, mask, 64 * PIPE_SET_WORDS);
	if (strlen(text) > LIST)
		snprintf(text, len, "%u TPCs", nr);
}

static void print_row(struct rows *rows, const char *gpc, const char *label, unsigned int row)
{
	const struct sim_blocks *b = rows->blocks;
	int kind, before = -1;

	fprintf(rows->out->file, "%-6s%-*s ", gpc, LABEL - 7, label);
	for (unsigned int slice = 0; slice < b->nr_slices; slice++) {
		kind = rows->longest[row][slice];
		picture_slice(rows->out, kind, before);
		before = kind;
	}
	fprintf(rows->out->file, "%s\n", before >= 0 ? rows->out->plain : "");
}

/* Rows of a GPC, or of a GPU whose GPCs are not known; then those of its copy engines. */
static void print_gpc(struct rows *rows, unsigned int row, unsigned int end)
{
	const struct sim_blocks *b = rows->blocks;
	const struct sim_row *first = &b->rows[row];
	bool engine = first->smid == SIM_BLOCKS_NO_SM;
	char gpc[16] = "", label[1024];

	if (!engine && sim_blocks_gpcs_known(b, first->gpu))
		snprintf(gpc, sizeof(gpc), "GPC %u", first->gpc);
	for (unsigned int i = row; i < end; i += sim_blocks_tpc_rows(b, i)) {
		if (rows->printed[i] || sim_blocks_idle(b, i))
			continue;
		if (engine)
			snprintf(label, sizeof(label), "engine %u", b->rows[i].engine);
		else
			list_alike(rows, i, end, label, sizeof(label));
		print_row(rows, engine ? "copy" : gpc, label, i);
		*gpc = '\0';
	}
}

static void print_idle(struct rows *rows, unsigned int gpu)
{
	char list[1024];

	sim_blocks_idle_list(rows->blocks, gpu, list, sizeof(list));
	if (*list)
		out_wrap(rows->out, 0, "No block on TPCs", list);
}

static void print_kind(struct rows *rows, unsigned int kind)
{
	char name[4 * MAX_NAME + 1], text[2048], tag[PICTURE_TAG_LEN];

	picture_line(sim_blocks_name(rows->blocks, kind), MAX_NAME, name, sizeof(name));
	fprintf(rows->out->file, "%s%-3s%s%s\n", rows->out->bold, picture_tag(kind, tag),
		out_clean(name), rows->out->plain);
	sim_blocks_words(rows->blocks, kind, text, sizeof(text));
	if (*text)
		out_wrap(rows->out, 2, "", out_clean(text));
}

static void print_all(struct rows *rows)
{
	const struct sim_blocks *b = rows->blocks;
	unsigned int gpu = PIPE_MAX_GPUS, nr;
	char text[2048];

	for (unsigned int i = 0; i < b->nr_kinds; i++)
		print_kind(rows, i);
	if (b->others)
		print_kind(rows, SIM_BLOCKS_KINDS);
	if (b->run->copies.nr)
		print_kind(rows, SIM_BLOCKS_COPY);
	sim_blocks_streams(b, text, sizeof(text));
	if (*text)
		out_wrap(rows->out, 0, "Streams", out_clean(text));
	for (unsigned int i = 0; i < b->nr_rows; i += nr) {
		nr = sim_blocks_gpc_rows(b, i);
		if (b->rows[i].gpu != gpu) {
			gpu = b->rows[i].gpu;
			sim_blocks_gpu(b, gpu, text, sizeof(text));
			fprintf(rows->out->file, "\n%s\n", out_clean(text));
			axis_text(rows->out->file, LABEL, b->nr_slices, b->slice_ns, b->from,
				  "of simulated time; a row is a TPC, or several alike");
		}
		print_gpc(rows, i, i + nr);
		if (i + nr == b->nr_rows || b->rows[i + nr].gpu != gpu)
			print_idle(rows, gpu);
	}
}

int sim_rows(struct out *out, const struct sim_run *run, uint64_t from, uint64_t to)
{
	struct sim_blocks blocks;
	struct rows rows = { .out = out, .blocks = &blocks };
	int err = sim_blocks_make(&blocks, run, from, to, SLICES);

	if (!err)
		err = find_longest(&rows);
	if (!err)
		print_all(&rows);
	free(rows.printed);
	free(rows.longest);
	sim_blocks_free(&blocks);
	return err;
}
