// SPDX-License-Identifier: MIT
/*
 * Sums blocks in slices of time. Finds a place for each block in its row. Prints the rows as text.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/draw/timeline.h"
#include "cli/util/alloc.h"

#define MOST_CELLS	(8u << 20)
#define LEAST_SLICES	40
/* units of a row; includes space for gaps between blocks */
#define MOST_UNITS	(4 * TIMELINE_UNITS)
#define TEXT_COLUMNS	128	/* maximum number of columns of a text */
#define TEXT_TICKS	6
#define TEXT_LIST	14	/* columns for a list of TPCs */

/* ------------------------------------------------------------------- numbers */

uint64_t timeline_step(uint64_t span, unsigned int max)
{
	static const unsigned int factors[] = { 2, 5, 10 };
	uint64_t power = 1, step = 1;

	/* No step is larger than ten times the span, so the step does not overflow. */
	for (unsigned int i = 0; span / step >= max; i = (i + 1) % 3) {
		step = power * factors[i];
		if (i == 2)
			power = step;
	}
	return step;
}

uint64_t timeline_unit(uint64_t step_ns, const char **unit)
{
	static const char *const names[] = { "ns", "us", "ms", "s" };
	uint64_t ns = 1;
	unsigned int i;

	/*
	 * Text has at most one decimal. If the step is less than a second, the unit is not seconds.
	 */
	for (i = 0; i < 3 && step_ns >= (i == 1 ? 1000 : i == 2 ? 1000 : 100) * ns; i++)
		ns *= 1000;
	*unit = names[i];
	return ns;
}

const char *timeline_number(char *text, size_t len, uint64_t ns, uint64_t unit_ns)
{
	uint64_t tenths = (ns % unit_ns) * 10 / unit_ns;

	if (tenths)
		snprintf(text, len, "%" PRIu64 ".%" PRIu64, ns / unit_ns, tenths);
	else
		snprintf(text, len, "%" PRIu64, ns / unit_ns);
	return text;
}

uint64_t timeline_first(uint64_t from, uint64_t step)
{
	return (from + step - 1) / step * step;
}

/* -------------------------------------------------------------------- blocks */

void timeline_make(struct timeline *t, unsigned int nr_rows, unsigned int nr_slices)
{
	unsigned int most = MOST_CELLS / t->nr_kinds / nr_rows;

	most = most < LEAST_SLICES ? LEAST_SLICES : most;
	t->nr_rows = nr_rows;
	t->nr_slices = most < nr_slices ? most : nr_slices;
	t->slice_ns = (double)(t->to - t->from) / t->nr_slices;
	t->units = 1;
	t->least = TIMELINE_UNITS;
	t->rows = alloc_zeroed(nr_rows, sizeof(*t->rows));
	t->cells = alloc_zeroed((size_t)nr_rows * t->nr_slices * t->nr_kinds, sizeof(*t->cells));
	t->blocks = alloc_zeroed(TIMELINE_BLOCKS, sizeof(*t->blocks));
}

void timeline_free(struct timeline *t)
{
	free(t->rows);
	free(t->cells);
	free(t->blocks);
}

double *timeline_cell(const struct timeline *t, unsigned int row, unsigned int slice)
{
	return &t->cells[((size_t)row * t->nr_slices + slice) * t->nr_kinds];
}

void timeline_add(struct timeline *t, struct timeline_block b)
{
	double from, to, at, next;

	if (b.start >= t->to || b.end <= t->from)
		return;
	b.start = b.start > t->from ? b.start : t->from;
	b.end = b.end < t->to ? b.end : t->to;
	from = b.start - t->from;
	to = b.end - t->from;
	for (unsigned int i = from / t->slice_ns; i < t->nr_slices && i * t->slice_ns < to; i++) {
		at = i * t->slice_ns;
		next = at + t->slice_ns;
		timeline_cell(t, b.row, i)[b.kind] +=
			((to < next ? to : next) - (from > at ? from : at)) * b.high /
			TIMELINE_UNITS;
	}
	if (t->nr_all++ < TIMELINE_BLOCKS)
		t->blocks[t->nr_blocks++] = b;
}

unsigned int timeline_group_rows(const struct timeline *t, unsigned int row)
{
	unsigned int nr = 1;

	while (row + nr < t->nr_rows && t->rows[row + nr].group == t->rows[row].group)
		nr++;
	return nr;
}

unsigned int timeline_unit_rows(const struct timeline *t, unsigned int row)
{
	unsigned int nr = 1, end = row + timeline_group_rows(t, row);

	while (row + nr < end && t->rows[row + nr].unit == t->rows[row].unit)
		nr++;
	return nr;
}

int timeline_longest(const struct timeline *t, unsigned int row, unsigned int nr,
		     unsigned int slice)
{
	double most = 0, sum;
	int found = -1;

	for (unsigned int kind = 0; kind < t->nr_kinds; kind++) {
		sum = 0;
		for (unsigned int i = row; i < row + nr; i++)
			sum += timeline_cell(t, i, slice)[kind];
		if (sum > most) {
			most = sum;
			found = kind;
		}
	}
	return found;
}

bool timeline_has(const struct timeline *t, unsigned int row, unsigned int nr, unsigned int kind)
{
	for (unsigned int i = row; i < row + nr; i++)
		for (unsigned int slice = 0; slice < t->nr_slices; slice++)
			if (timeline_cell(t, i, slice)[kind] > 0)
				return true;
	return false;
}

bool timeline_is_idle(const struct timeline *t, unsigned int row)
{
	unsigned int nr = timeline_unit_rows(t, row);

	for (unsigned int slice = 0; slice < t->nr_slices; slice++)
		if (timeline_longest(t, row, nr, slice) >= 0)
			return false;
	return true;
}

struct gpupart_tpcset timeline_idle(const struct timeline *t, unsigned int gpu)
{
	struct gpupart_tpcset idle = { { 0 } };

	for (unsigned int row = 0; row < t->nr_rows; row += timeline_unit_rows(t, row))
		if (t->rows[row].gpu == gpu && t->rows[row].smid >= 0 && timeline_is_idle(t, row))
			gpupart_tpcset_add(&idle, t->rows[row].unit);
	return idle;
}

static int by_row_and_start(const void *left, const void *right)
{
	const struct timeline_block *x = left, *y = right;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->launch != y->launch)
		return x->launch < y->launch ? -1 : 1;
	return x->block != y->block ? (x->block < y->block ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/*
 * Returns a place in a row at which @high units are free at the block's start. Returns the lowest
 * such place.
 */
static unsigned int find_place(const uint64_t ends[MOST_UNITS], const struct timeline_block *block)
{
	unsigned int at = 0, nr = 0;

	for (unsigned int i = 0; i < MOST_UNITS && nr < block->high; i++) {
		nr = ends[i] <= block->start ? nr + 1 : 0;
		at = i + 1 - nr;
	}
	return nr < block->high ? 0 : at;
}

void timeline_place(struct timeline *t)
{
	uint64_t ends[MOST_UNITS] = { 0 };
	struct timeline_block *one;

	qsort(t->blocks, t->nr_blocks, sizeof(*t->blocks), by_row_and_start);
	for (unsigned int i = 0; i < t->nr_blocks; i++) {
		one = &t->blocks[i];
		if (!i || one->row != one[-1].row)
			memset(ends, 0, sizeof(ends));
		one->at = find_place(ends, one);
		for (unsigned int j = 0; j < one->high; j++)
			ends[one->at + j] = one->end;
		if (t->rows[one->row].smid < 0)
			continue;
		if (one->at + one->high > (int)t->units)
			t->units = one->at + one->high;
		if (one->high < t->least)
			t->least = one->high;
	}
}

/* ---------------------------------------------------------------------- text */

static bool look_alike(const struct timeline *t, unsigned int x, unsigned int y)
{
	unsigned int nr_x = timeline_unit_rows(t, x), nr_y = timeline_unit_rows(t, y);

	for (unsigned int i = 0; i < t->nr_slices; i++)
		if (timeline_longest(t, x, nr_x, i) != timeline_longest(t, y, nr_y, i))
			return false;
	return true;
}

/*
 * Returns whether an earlier TPC in the group has the same text as @row. The group begins with row
 * @first.
 */
static bool is_printed(const struct timeline *t, unsigned int first, unsigned int row)
{
	for (; first < row; first += timeline_unit_rows(t, first))
		if (look_alike(t, first, row))
			return true;
	return false;
}

/* Lists the TPCs of a group that have the same text as @row, such as "0-3,8". */
static void list_alike(const struct timeline *t, unsigned int row, unsigned int end, char *text,
		       size_t len)
{
	struct gpupart_tpcset set = { { 0 } };

	for (unsigned int i = row; i < end; i += timeline_unit_rows(t, i))
		if (look_alike(t, row, i))
			gpupart_tpcset_add(&set, t->rows[i].unit);
	gpupart_tpcset_format_list(&set, text, len);
	if (strlen(text) > TEXT_LIST)
		snprintf(text, len, "%u TPCs", gpupart_tpcset_count(&set));
}

static void print_axis(const struct timeline *t, FILE *file, unsigned int label)
{
	uint64_t span = t->nr_slices * t->slice_ns, unit_ns, step = timeline_step(span, TEXT_TICKS);
	char text[TEXT_COLUMNS + 32], number[32];
	unsigned int at, end = 0;
	const char *unit;

	unit_ns = timeline_unit(step, &unit);
	memset(text, ' ', sizeof(text));
	for (uint64_t ns = timeline_first(t->from, step); ns - t->from <= span; ns += step) {
		at = (ns - t->from) / t->slice_ns;
		timeline_number(number, sizeof(number), ns, unit_ns);
		if (at + strlen(number) > t->nr_slices)
			break;
		memcpy(text + at, number, strlen(number));
		end = at + strlen(number);
	}
	text[end] = 0;
	fprintf(file, "%*s%s %s\n%*s%s\n", label, "", unit, t->when, label, "", text);
}

static void print_group(const struct timeline *t, struct out *out, unsigned int first,
			unsigned int end)
{
	const char *name = t->rows[first].smid < 0 ? "copy" : t->rows[first].name;
	char label[GPUPART_TPCSET_STRLEN];
	int kind, before;

	for (unsigned int row = first; row < end; row += timeline_unit_rows(t, row)) {
		bool list = t->lists && t->rows[row].smid >= 0;

		if (timeline_is_idle(t, row) || (list && is_printed(t, first, row)))
			continue;
		if (list)
			list_alike(t, row, end, label, sizeof(label));
		else
			snprintf(label, sizeof(label), "%s%u",
				 t->rows[row].smid < 0 ? "engine " : "", t->rows[row].unit);
		fprintf(out->file, t->lists ? "%-6s%-14s " : "%-7s%4s ", name, label);
		before = -1;
		for (unsigned int slice = 0; slice < t->nr_slices; slice++, before = kind) {
			kind = timeline_longest(t, row, timeline_unit_rows(t, row), slice);
			picture_slice(out, kind, before);
		}
		fprintf(out->file, "%s\n", before >= 0 ? out->plain : "");
		name = t->rows[row].smid < 0 ? name : "";
	}
}

void timeline_text(const struct timeline *t, struct out *out, unsigned int row, unsigned int end)
{
	unsigned int nr;

	print_axis(t, out->file, t->lists ? 6 + TEXT_LIST + 1 : 12);
	for (; row < end; row += nr)
		print_group(t, out, row, row + (nr = timeline_group_rows(t, row)));
}
