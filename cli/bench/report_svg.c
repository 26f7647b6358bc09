// SPDX-License-Identifier: MIT
/*
 * Charts as SVG: lines, bars, timelines. Series differ in lightness, hatching, dashes and
 * marks, so that they also do in grey. Must not know what was measured.
 */
#include <math.h>
#include <string.h>
#include "report.h"
#include "stats.h"
#include "../svg.h"

#define WIDTH		960
#define LEFT		70
#define RIGHT		20
#define TOP		84
#define PLOT		360	/* height of the plot */
#define BOTTOM		56
#define MAX_SERIES	8
#define MAX_ROWS	64
#define ROW_HEIGHT	22
#define ROW_LEFT	190

/* Dark to light; legible apart when printed in grey. */
static const char *const colours[MAX_SERIES] = {
	"#1b2a49", "#b3541e", "#5b8e7d", "#e0a458", "#8fa8c8", "#7a3b69", "#c9c9c9", "#404040",
};
static const char *const dashes[MAX_SERIES] = { "", "7 4", "2 3", "10 3 2 3", "4 2", "1 2",
						"12 4", "6 2 1 2" };

struct axis {
	double min, max, step;	/* of a logarithmic one: log10 of the values */
	bool log;
};

struct frame {
	FILE *file;
	const json_t *chart;
	struct axis x, y;
	double height;		/* of the plot */
	const char *rows[MAX_ROWS];	/* categories of bars, rows of a timeline */
	unsigned int nr_rows;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void label(FILE *file, double x, double y, const char *anchor, int size, const char *text)
{
	fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">", x, y,
		anchor, size);
	svg_escape(file, text);
	fputs("</text>\n", file);
}

/* ------------------------------------------------------------------------ axes */

static double scaled(const struct axis *axis, double value)
{
	if (axis->log)
		value = value > 0 ? log10(value) : axis->min;
	return axis->max > axis->min ? (value - axis->min) / (axis->max - axis->min) : 0;
}

static double at_x(const struct frame *f, double value, double left)
{
	return left + scaled(&f->x, value) * (WIDTH - left - RIGHT);
}

static double at_y(const struct frame *f, double value)
{
	return TOP + f->height * (1 - scaled(&f->y, value));
}

static void axis_include(struct axis *axis, double value, bool *any)
{
	if (axis->log && !(value > 0))
		return;
	if (axis->log)
		value = log10(value);
	if (!*any || value < axis->min)
		axis->min = value;
	if (!*any || value > axis->max)
		axis->max = value;
	*any = true;
}

/* To round ends: from zero on, or whole powers of ten. */
static void axis_round(struct axis *axis, bool from_zero)
{
	if (from_zero && !axis->log && axis->min > 0)
		axis->min = 0;
	if (axis->log) {
		double power = floor(axis->max);

		axis->min = floor(axis->min + 1e-9);
		axis->max = axis->max <= power + log10(2) ? power + log10(2) :
			    axis->max <= power + log10(5) ? power + log10(5) : power + 1;
		axis->step = 1;
	} else {
		axis->step = stats_step(axis->max - axis->min, 8);
		axis->min = floor(axis->min / axis->step) * axis->step;
		axis->max = ceil(axis->max / axis->step - 1e-9) * axis->step;
	}
	if (axis->max <= axis->min)
		axis->max = axis->min + axis->step;
}

static void grid_y(const struct frame *f, double left)
{
	for (double v = f->y.min; v <= f->y.max + f->y.step * 1e-6; v += f->y.step) {
		double value = f->y.log ? pow(10, v) : fabs(v) < f->y.step / 1e6 ? 0 : v,
		       y = at_y(f, value);
		char text[32];

		fprintf(f->file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" "
			"stroke=\"#dddddd\"/>\n", left, y, WIDTH - RIGHT, y);
		snprintf(text, sizeof(text), "%g", value);
		label(f->file, left - 6, y + 4, "end", 12, text);
		/* Between powers of ten, that a factor of two can be read. */
		for (int i = 2; f->y.log && i < 10 && log10(value * i) < f->y.max + 1e-9; i++) {
			y = at_y(f, value * i);
			fprintf(f->file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" "
				"stroke=\"#f0f0f0\"/>\n", left, y, WIDTH - RIGHT, y);
			snprintf(text, sizeof(text), "%g", value * i);
			if (i == 2 || i == 5)
				label(f->file, left - 6, y + 4, "end", 10, text);
		}
	}
	fprintf(f->file, "<text transform=\"translate(18 %.1f) rotate(-90)\" "
		"text-anchor=\"middle\" font-size=\"12\">", TOP + f->height / 2);
	svg_escape(f->file, text_of(f->chart, "y"));
	fputs("</text>\n", f->file);
}

static void grid_x(const struct frame *f, double left)
{
	for (double v = f->x.min; v <= f->x.max + f->x.step / 2; v += f->x.step) {
		char text[32];

		fprintf(f->file, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"#eeeeee\"/>\n", at_x(f, v, left), TOP, at_x(f, v, left),
			TOP + f->height);
		snprintf(text, sizeof(text), "%g", fabs(v) < f->x.step / 1e6 ? 0 : v);
		label(f->file, at_x(f, v, left), TOP + f->height + 18, "middle", 12, text);
	}
	label(f->file, (left + WIDTH - RIGHT) / 2, TOP + f->height + 40, "middle", 12,
	      text_of(f->chart, "x"));
}

/* ---------------------------------------------------------------------- series */

/* A fill of its own for each: plain or hatched, in its colour. */
static void define_fills(const struct frame *f)
{
	static const char *const strokes[MAX_SERIES] = {
		NULL, "M0 6L6 0", NULL, "M0 0L6 6", "M0 3H6", "M3 0V6", NULL, "M0 6L6 0M0 0L6 6",
	};

	fputs("<defs>\n", f->file);
	for (int i = 0; i < MAX_SERIES; i++) {
		fprintf(f->file, "<pattern id=\"s%d\" width=\"6\" height=\"6\" "
			"patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
			"fill=\"%s\"/>", i, colours[i]);
		if (strokes[i])
			fprintf(f->file, "<path d=\"%s\" stroke=\"#ffffff\" "
				"stroke-width=\"1.4\"/>", strokes[i]);
		fputs("</pattern>\n", f->file);
	}
	fputs("</defs>\n", f->file);
}

static void mark(FILE *file, size_t series, double x, double y)
{
	const char *colour = colours[series % MAX_SERIES];

	switch (series % 4) {
	case 0:
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y,
			colour);
		break;
	case 1:
		fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" "
			"fill=\"#ffffff\" stroke=\"%s\"/>\n", x - 3, y - 3, colour);
		break;
	case 2:
		fprintf(file, "<path d=\"M%.1f %.1fl4 7h-8z\" fill=\"%s\"/>\n", x, y - 4, colour);
		break;
	default:
		fprintf(file, "<path d=\"M%.1f %.1fl6 6m0 -6l-6 6\" stroke=\"%s\"/>\n", x - 3,
			y - 3, colour);
	}
}

static void legend(const struct frame *f)
{
	bool lines = !strcmp(text_of(f->chart, "kind"), "lines");
	double x = 20, y = 50;
	json_t *series;
	size_t i;

	json_array_foreach(json_object_get(f->chart, "series"), i, series) {
		double wide = 44 + 7.0 * strlen(text_of(series, "label"));

		if (x + wide > WIDTH - RIGHT && x > 20) {
			x = 20;
			y += 18;
		}
		if (lines) {
			fprintf(f->file, "<path d=\"M%.1f %.1fh24\" stroke=\"%s\" "
				"stroke-width=\"2\" stroke-dasharray=\"%s\"/>\n", x, y - 4,
				colours[i % MAX_SERIES], dashes[i % MAX_SERIES]);
			mark(f->file, i, x + 12, y - 4);
		} else {
			fprintf(f->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"24\" height=\"12\" "
				"fill=\"url(#s%zu)\" stroke=\"#222222\" "
				"stroke-width=\"0.5\"/>\n", x, y - 10, i % MAX_SERIES);
		}
		label(f->file, x + 30, y, "start", 12, text_of(series, "label"));
		x += wide;
	}
}

static double number_at(const json_t *point, size_t at)
{
	return json_number_value(json_array_get(point, at));
}

static void draw_lines(struct frame *f)
{
	json_t *series, *point;
	size_t i, p;

	grid_x(f, LEFT);
	grid_y(f, LEFT);
	json_array_foreach(json_object_get(f->chart, "series"), i, series) {
		json_t *points = json_object_get(series, "points");
		size_t nr = json_array_size(points), every = nr / 40 + 1;

		fprintf(f->file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" "
			"stroke-dasharray=\"%s\" points=\"", colours[i % MAX_SERIES],
			dashes[i % MAX_SERIES]);
		json_array_foreach(points, p, point)
			fprintf(f->file, "%.1f,%.1f ", at_x(f, number_at(point, 0), LEFT),
				at_y(f, number_at(point, 1)));
		fputs("\"/>\n", f->file);
		json_array_foreach(points, p, point)
			if (!(p % every))
				mark(f->file, i, at_x(f, number_at(point, 0), LEFT),
				     at_y(f, number_at(point, 1)));
	}
}

static int row_of(const struct frame *f, const json_t *point)
{
	const char *name = json_string_value(json_array_get(point, 0));

	for (unsigned int i = 0; name && i < f->nr_rows; i++)
		if (!strcmp(f->rows[i], name))
			return i;
	return -1;
}

/* "compute / L2 reads" on two lines, under its bars. */
static void category(const struct frame *f, double x, const char *name)
{
	const char *second = strstr(name, " / ");
	char first[64];

	if (!second || f->nr_rows < 5) {
		label(f->file, x, TOP + f->height + 16, "middle", 11, name);
		return;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(second - name), name);
	label(f->file, x, TOP + f->height + 16, "middle", 10, first);
	label(f->file, x, TOP + f->height + 30, "middle", 10, second + 1);
}

static void draw_bars(struct frame *f)
{
	size_t nr_series = json_array_size(json_object_get(f->chart, "series")), i, p;
	double group = (double)(WIDTH - LEFT - RIGHT) / (f->nr_rows ? f->nr_rows : 1),
	       bar = group * 0.84 / (nr_series ? nr_series : 1);
	double base = TOP + f->height;
	json_t *series, *point;

	if (bar > 48)
		bar = 48;
	grid_y(f, LEFT);
	for (unsigned int r = 0; r < f->nr_rows; r++)
		category(f, LEFT + group * (r + 0.5), f->rows[r]);
	json_array_foreach(json_object_get(f->chart, "series"), i, series)
		json_array_foreach(json_object_get(series, "points"), p, point) {
			int row = row_of(f, point);
			double x = LEFT + group * (row + 0.5) - bar * nr_series / 2 + bar * i,
			       y = at_y(f, number_at(point, 1));
			char text[32];

			if (row < 0)
				continue;
			if (y > base)
				y = base;
			fprintf(f->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				"height=\"%.1f\" fill=\"url(#s%zu)\" stroke=\"#222222\" "
				"stroke-width=\"0.5\"/>\n", x, y, bar, base - y, i % MAX_SERIES);
			snprintf(text, sizeof(text), number_at(point, 1) < 2 ? "%.4g" :
				 number_at(point, 1) < 1000 ? "%.3g" : "%.0f",
				 number_at(point, 1));
			fprintf(f->file, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" "
				"font-size=\"9\">%s</text>\n", x + bar / 2 + 3, y - 3, text);
		}
}

static void draw_timeline(struct frame *f)
{
	json_t *series, *point;
	size_t i, p;

	grid_x(f, ROW_LEFT);
	for (unsigned int r = 0; r < f->nr_rows; r++)
		label(f->file, ROW_LEFT - 8, TOP + ROW_HEIGHT * r + 15, "end", 12, f->rows[r]);
	json_array_foreach(json_object_get(f->chart, "series"), i, series)
		json_array_foreach(json_object_get(series, "points"), p, point) {
			double start = at_x(f, number_at(point, 1), ROW_LEFT),
			       end = at_x(f, number_at(point, 2), ROW_LEFT);
			int row = row_of(f, point);

			if (row < 0)
				continue;
			fprintf(f->file, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
				"fill=\"url(#s%zu)\" stroke=\"#222222\" stroke-width=\"0.5\"/>\n",
				start, TOP + ROW_HEIGHT * row + 3,
				end - start > 1 ? end - start : 1,
				ROW_HEIGHT - 6, i % MAX_SERIES);
		}
}

/* Rows and ends of axes, from the points. */
static void look_at_points(struct frame *f, const char *kind)
{
	bool lines = !strcmp(kind, "lines"), any_x = false, any_y = false;
	json_t *series, *point;
	size_t i, p;

	json_array_foreach(json_object_get(f->chart, "rows"), i, point)
		if (f->nr_rows < MAX_ROWS)
			f->rows[f->nr_rows++] = json_string_value(point);

	json_array_foreach(json_object_get(f->chart, "series"), i, series)
		json_array_foreach(json_object_get(series, "points"), p, point) {
			const char *name = json_string_value(json_array_get(point, 0));

			if (name && row_of(f, point) < 0 && f->nr_rows < MAX_ROWS)
				f->rows[f->nr_rows++] = name;
			if (!strcmp(kind, "timeline")) {
				axis_include(&f->x, number_at(point, 1), &any_x);
				axis_include(&f->x, number_at(point, 2), &any_x);
				continue;
			}
			if (lines)
				axis_include(&f->x, number_at(point, 0), &any_x);
			axis_include(&f->y, number_at(point, 1), &any_y);
		}
	axis_round(&f->x, true);
	/* Bars begin at 0, or where the axis is logarithmic at 1 if they are about that. */
	if (f->y.log && f->y.min > -0.2 && !lines)
		f->y.min = 0;
	axis_round(&f->y, !json_is_true(json_object_get(f->chart, "near")));
}

void report_svg(FILE *file, const json_t *chart, bool simulated)
{
	const char *kind = text_of(chart, "kind");
	struct frame f = { .file = file, .chart = chart, .height = PLOT };

	f.y.log = json_is_true(json_object_get(chart, "log"));
	look_at_points(&f, kind);
	if (!strcmp(kind, "timeline"))
		f.height = ROW_HEIGHT * (f.nr_rows ? f.nr_rows : 1);
	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\">\n<rect width=\"100%%\" "
		"height=\"100%%\" fill=\"#ffffff\"/>\n", WIDTH, TOP + f.height + BOTTOM, WIDTH,
		TOP + f.height + BOTTOM);
	define_fills(&f);
	label(file, 20, 26, "start", 16, text_of(chart, "title"));
	if (simulated)
		label(file, WIDTH - RIGHT, 26, "end", 14, "simulated");
	legend(&f);
	if (!strcmp(kind, "lines"))
		draw_lines(&f);
	else if (!strcmp(kind, "bars"))
		draw_bars(&f);
	else
		draw_timeline(&f);
	fputs("</svg>\n", file);
}
