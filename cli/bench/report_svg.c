// SPDX-License-Identifier: MIT
/*
 * Draws the charts of a report as SVG. Each series has a different colour, pattern and letter.
 * Therefore the series can also be distinguished in grey.
 */
#include <math.h>
#include <string.h>
#include "cli/bench/report.h"
#include "cli/bench/stats.h"
#include "cli/draw/page.h"

#define WIDTH		960	/* minimum; a chart with many bars is wider */
#define GROUP_WIDTH	72	/* minimum width of a category with its bars */
#define LEFT		96
#define RIGHT		24
#define PLOT		360	/* height of the plot */
#define BOTTOM		64
#define MAX_ROWS	64
#define ROW_HEIGHT	22
#define ROW_LEFT	190
#define MANY_US		10000	/* if a value is larger, the axis is in ms */
#define FEW		4	/* number of letters on each line */
#define MAX_LABELS	256

struct axis {
	double min, max, step;	/* on a logarithmic axis, log10 of the values */
	bool log;
};

struct frame {
	FILE *file;
	const json_t *chart, *series;
	struct axis x, y;
	double left, top, height;	/* edges and height of the plot */
	double width;			/* width of the page */
	const char *unit;		/* "ms": write values in us as ms; or NULL */
	const char *rows[MAX_ROWS];	/* categories of bars, or rows of a timeline */
	unsigned int nr_rows;
};

/*
 * The letters of points. After the letters, the array has other places that are not free: the
 * middles of lines from a letter to its point, and labels.
 */
struct tags {
	struct tag {
		double x, y;		/* middle */
		unsigned int series;
		const char *label;	/* NULL or "": no label */
	} list[MAX_LABELS];
	unsigned int nr;
};

static double number_at(const json_t *point, size_t at)
{
	return json_number_value(json_array_get(point, at));
}

/* ------------------------------------------------------------------------ axes */

static double scaled(const struct axis *axis, double value)
{
	if (axis->log)
		value = value > 0 ? log10(value) : axis->min;
	return axis->max > axis->min ? (value - axis->min) / (axis->max - axis->min) : 0;
}

static double at_x(const struct frame *f, double value)
{
	return f->left + scaled(&f->x, value) * (f->width - f->left - RIGHT);
}

static double at_y(const struct frame *f, double value)
{
	return f->top + f->height * (1 - scaled(&f->y, value));
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

/*
 * Rounds the ends of the axis. A logarithmic axis begins at a power of ten. If @from_zero is true,
 * any other axis begins at zero.
 */
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

/* Formats a number on an axis, in the unit of the axis. */
static const char *format_tick(const struct frame *f, double value, char text[32])
{
	return page_number(f->unit ? value / 1000 : value, text);
}

/* Formats the name of an axis, with its unit. */
static const char *axis_name(const struct frame *f, const char *key, char text[128])
{
	const char *name = report_at(f->chart, key);

	if (f->unit && !strncmp(name, "us", 2))
		snprintf(text, 128, "%s%s", f->unit, name + 2);
	else
		snprintf(text, 128, "%s", name);
	return text;
}

static void grid_y(const struct frame *f)
{
	char text[32], name[128];

	for (double v = f->y.min; v <= f->y.max + f->y.step * 1e-6; v += f->y.step) {
		double value = f->y.log ? pow(10, v) : fabs(v) < f->y.step / 1e6 ? 0 : v;

		/* Also draw lines between powers of ten. Then a reader can see a factor of two. */
		for (int i = 1; i < (f->y.log ? 10 : 2); i++) {
			double y = at_y(f, value * i);

			if (f->y.log && log10(value * i) > f->y.max + 1e-9)
				break;
			svg_line(f->file, f->left, y, f->width - RIGHT, y, i == 1 ? THIN : DOTTED);
			if (i == 1 || i == 2 || i == 5)
				svg_text(f->file, f->left - 6, y + 4, SMALL, END,
					 format_tick(f, value * i, text));
		}
	}
	svg_text(f->file, MARGIN, f->top - 14, SMALL, BOLD, axis_name(f, "y", name));
}

static void grid_x(const struct frame *f)
{
	double bottom = f->top + f->height;
	char text[32], name[128];

	for (double v = f->x.min; v <= f->x.max + f->x.step / 2; v += f->x.step) {
		svg_line(f->file, at_x(f, v), f->top, at_x(f, v), bottom, DOTTED);
		svg_text(f->file, at_x(f, v), bottom + 18, SMALL, MIDDLE,
			 format_tick(f, fabs(v) < f->x.step / 1e6 ? 0 : v, text));
	}
	svg_text(f->file, (f->left + f->width - RIGHT) / 2, bottom + 40, SMALL, MIDDLE,
		 axis_name(f, "x", name));
}

/* ---------------------------------------------------------------------- series */

static void draw_box(const struct frame *f, size_t series, double x, double y, double width,
		     double height)
{
	char fill[16];

	svg_rect(f->file, x, y, width, height, palette_fill(series, fill), PALETTE_INK,
		 " stroke-width=\"0.5\"");
}

/* Draws the legend below the title, and puts the plot below it. */
static void legend(struct frame *f)
{
	double x = MARGIN, y = 50;
	json_t *series;
	size_t i;

	json_array_foreach(f->series, i, series) {
		double wide = 46 +
			      page_text_width(picture_columns(report_at(series, "label")), SMALL);

		if (x + wide > f->width - RIGHT && x > MARGIN) {
			x = MARGIN;
			y += 18;
		}
		draw_box(f, i, x, y - 10, 24, 12);
		svg_tag(f->file, x + 12, y - 4, i);
		svg_text(f->file, x + 30, y, SMALL, "", report_at(series, "label"));
		x += wide;
	}
	f->top = y + 46;
}

static void add_tag(struct tags *tags, double x, double y, unsigned int series, const char *label)
{
	if (tags->nr < MAX_LABELS)
		tags->list[tags->nr++] = (struct tag){ x, y, series, label };
}

/*
 * Returns whether (@x, @y) is in the plot, and whether a box around (@x, @y) contains none of the
 * first @nr tags. Ignores tag @own.
 */
static bool is_free(const struct frame *f, const struct tags *tags, unsigned int nr,
		    unsigned int own, double x, double y, double width, double height)
{
	for (unsigned int n = 0; n < nr; n++)
		if (n != own && fabs(tags->list[n].x - x) < width &&
		    fabs(tags->list[n].y - y) < height)
			return false;
	return x > f->left - 1 && x < f->width - RIGHT + 1 && y > f->top - 1 &&
	       y < f->top + f->height + 1;
}

/*
 * Moves a letter that would cover another letter to a place near its point, and joins this place
 * and the point with a line. If there is no free place, the letter stays at its point.
 */
static void place_letter(const struct frame *f, struct tags *tags, unsigned int own)
{
	struct tag *tag = &tags->list[own];

	if (is_free(f, tags, own, own, tag->x, tag->y, 11, 12))
		return;
	for (int i = 0; i < 32; i++) {
		/* Try diagonal directions first, because many lines of a chart are not diagonal. */
		double angle = (i % 8 < 4 ? 2 * i + 1 : 2 * i) * M_PI / 4, away = 22 + 11 * (i / 8);
		double x = tag->x + away * cos(angle), y = tag->y + away * sin(angle);

		if (!is_free(f, tags, tags->nr, own, x, y, 13, 14))
			continue;
		svg_line(f->file, tag->x, tag->y, x, y, " stroke=\"" PALETTE_INK "\"");
		svg_rect(f->file, tag->x - 2, tag->y - 2, 4, 4, PALETTE_INK, "none", " rx=\"1\"");
		add_tag(tags, (tag->x + x) / 2, (tag->y + y) / 2, 0, NULL);
		*tag = (struct tag){ x, y, tag->series, tag->label };
		return;
	}
}

/* Writes the label of a tag in a free place next to the letter. Without such a place, omits it. */
static void place_label(const struct frame *f, struct tags *tags, unsigned int own)
{
	static const signed char places[][2] = {
		{ 15, -9 }, { 15, 7 }, { -15, -9 }, { -15, 7 }, { 0, -11 }, { 0, 12 },
	};

	for (unsigned int i = 0; i < 6 && tags->nr < MAX_LABELS; i++) {
		double x = tags->list[own].x + places[i][0], y = tags->list[own].y + places[i][1];

		if (!is_free(f, tags, tags->nr, own, x, y, 16, 10))
			continue;
		add_tag(tags, x, y, 0, NULL);
		svg_text(f->file, x, y + 4, TINY, MIDDLE, tags->list[own].label);
		return;
	}
}

/* Draws the letters and the labels. */
static void draw_tags(const struct frame *f, struct tags *tags)
{
	unsigned int nr = tags->nr;

	for (unsigned int i = 0; i < nr; i++)
		place_letter(f, tags, i);
	for (unsigned int i = 0; i < nr; i++)
		svg_tag(f->file, tags->list[i].x, tags->list[i].y, tags->list[i].series);
	for (unsigned int i = 0; i < nr; i++)
		if (tags->list[i].label && *tags->list[i].label)
			place_label(f, tags, i);
}

static void draw_lines(const struct frame *f)
{
	struct tags tags = { .nr = 0 };
	json_t *series, *point;
	size_t i, p;

	grid_x(f);
	grid_y(f);
	json_array_foreach(f->series, i, series) {
		json_t *points = json_object_get(series, "points");
		size_t nr = json_array_size(points);
		size_t every = nr > FEW ? nr / 12 + json_array_size(f->series) : 1;

		/* Draw a dark outline around a light colour. */
		for (int ink = 1; ink >= 0; ink--) {
			fprintf(f->file, "<polyline fill=\"none\" stroke=\"%s\" "
				"stroke-width=\"%s\" points=\"",
				ink ? PALETTE_INK : palette_tenant(i)->fill, ink ? "2.8" : "1.8");
			json_array_foreach(points, p, point)
				fprintf(f->file, "%.1f,%.1f ", at_x(f, number_at(point, 0)),
					at_y(f, number_at(point, 1)));
			fputs("\"/>\n", f->file);
		}
		json_array_foreach(points, p, point)
			if (p % every == i * every / json_array_size(f->series))
				add_tag(&tags, at_x(f, number_at(point, 0)),
					at_y(f, number_at(point, 1)), i, NULL);
	}
	draw_tags(f, &tags);
}

static void draw_points(const struct frame *f)
{
	struct tags tags = { .nr = 0 };
	json_t *series, *point;
	size_t i, p;

	grid_x(f);
	grid_y(f);
	json_array_foreach(f->series, i, series)
		json_array_foreach(json_object_get(series, "points"), p, point)
			add_tag(&tags, at_x(f, number_at(point, 0)), at_y(f, number_at(point, 1)),
				i, json_string_value(json_array_get(point, 2)));
	draw_tags(f, &tags);
}

static int row_of(const struct frame *f, const json_t *point)
{
	const char *name = json_string_value(json_array_get(point, 0));

	for (unsigned int i = 0; name && i < f->nr_rows; i++)
		if (!strcmp(f->rows[i], name))
			return i;
	return -1;
}

/* Writes the name of a category below its bars, wrapped to the width of the bars. */
static void category(const struct frame *f, double x, double width, const char *name)
{
	unsigned int columns = width / page_text_width(1, TINY);
	double y = f->top + f->height + 4;
	char text[256];

	while (*name && y < f->top + f->height + BOTTOM - 8) {
		name = picture_line(name, columns ? columns : 1, text, sizeof(text));
		svg_text(f->file, x, y += TINY + 2, TINY, MIDDLE, text);
	}
}

static const char *format_value(const struct frame *f, double value, char text[32])
{
	value = f->unit ? value / 1000 : value;
	if (value >= 1000)
		return page_number(round(value), text);
	snprintf(text, 32, value < 2 ? "%.4g" : "%.3g", value);
	return text;
}

/* Returns the first value of a series in row @row, or NAN. */
static double value_in(const struct frame *f, const json_t *series, unsigned int row)
{
	json_t *point;
	size_t p;

	json_array_foreach(json_object_get(series, "points"), p, point)
		if (row_of(f, point) == (int)row)
			return number_at(point, 1);
	return NAN;
}

/*
 * Draws a bar from @base to @y. On some axes, the length of a bar has no meaning. In this case,
 * draws a letter at @y instead.
 */
static void draw_value(const struct frame *f, size_t series, double x, double y, double bar,
		       double base, double value)
{
	bool letter = f->y.log && f->y.min > 0.5;
	char text[32];

	if (letter)
		svg_tag(f->file, x + bar / 2, y, series);
	else
		draw_box(f, series, x, y, bar, base - y);
	fprintf(f->file, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" "
		"font-size=\"9\">%s</text>\n", x + bar / 2 + 3, y - (letter ? 11 : 3),
		format_value(f, value, text));
}

/*
 * Draws bars that begin at 0 or at 1. If a logarithmic axis begins at another value, draws letters
 * instead of bars.
 */
static void draw_bars(const struct frame *f)
{
	size_t nr_series = json_array_size(f->series), i;
	double group = (f->width - f->left - RIGHT) / (f->nr_rows ? f->nr_rows : 1);
	double bar = group * 0.84 / (nr_series ? nr_series : 1), base = f->top + f->height;
	unsigned int nr_bars = 0;
	json_t *series;

	bar = bar > 48 ? 48 : bar;
	grid_y(f);
	for (unsigned int r = 0; r < f->nr_rows; r++) {
		double middle = f->left + group * (r + 0.5);

		category(f, middle, group - 4, f->rows[r]);
		json_array_foreach(f->series, i, series) {
			double value = value_in(f, series, r);

			if (isnan(value))
				continue;
			draw_value(f, i, middle + bar * (i - nr_series / 2.0),
				   fmin(at_y(f, value), base), bar, base, value);
			nr_bars++;
		}
	}
	if (!nr_bars)
		svg_text(f->file, (f->left + f->width - RIGHT) / 2, f->top + f->height / 2,
			 NORMAL, MIDDLE, "no value: see the report");
}

static void draw_spans(const struct frame *f)
{
	json_t *series, *point;
	char name[128];
	size_t i, p;

	grid_x(f);
	for (unsigned int r = 0; r < f->nr_rows; r++)
		svg_text(f->file, f->left - 8, f->top + ROW_HEIGHT * r + 15, SMALL, END,
			 f->rows[r]);
	svg_text(f->file, f->left - 8, f->top - 8, SMALL, BOLD END, axis_name(f, "y", name));
	json_array_foreach(f->series, i, series)
		json_array_foreach(json_object_get(series, "points"), p, point) {
			double start = at_x(f, number_at(point, 1));

			if (row_of(f, point) >= 0)
				draw_box(f, i, start, f->top + ROW_HEIGHT * row_of(f, point) + 3,
					 fmax(at_x(f, number_at(point, 2)) - start, 1),
					 ROW_HEIGHT - 6);
		}
}

/* Finds the rows and the ends of the axes from the points. */
static void find_ranges(struct frame *f, const char *kind)
{
	bool lines = !strcmp(kind, "lines") || !strcmp(kind, "points"), any_x = false,
	     any_y = false;
	json_t *series, *point;
	size_t i, p;

	json_array_foreach(json_object_get(f->chart, "rows"), i, point)
		if (f->nr_rows < MAX_ROWS)
			f->rows[f->nr_rows++] = json_string_value(point);
	json_array_foreach(f->series, i, series)
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
	/*
	 * Bars begin at 0. An exception is a logarithmic axis with values near 1, on which bars
	 * begin at 1.
	 */
	if (f->y.log && f->y.min > -0.2 && f->y.min < 1 && !lines)
		f->y.min = 0;
	if (!strncmp(report_at(f->chart, "y"), "us", 2) &&
	    (f->y.log ? pow(10, f->y.max) : f->y.max) > MANY_US)
		f->unit = "ms";
	if (!strncmp(report_at(f->chart, "x"), "us", 2) && f->x.max > MANY_US)
		f->unit = "ms";
	axis_round(&f->y, !json_is_true(json_object_get(f->chart, "near")));
}

void report_svg(FILE *file, const json_t *chart, bool simulated)
{
	const char *kind = report_at(chart, "kind"), *title = report_at(chart, "title");
	struct frame f = { .chart = chart, .series = json_object_get(chart, "series") };
	struct page page;
	struct out out = { .file = file };
	bool spans = !strcmp(kind, "timeline");

	f.y.log = json_is_true(json_object_get(chart, "log"));
	find_ranges(&f, kind);
	f.left = spans ? ROW_LEFT : LEFT;
	f.width = WIDTH;
	if (!strcmp(kind, "bars"))
		f.width = fmax(WIDTH, LEFT + RIGHT + GROUP_WIDTH * f.nr_rows);
	page = (struct page){ .width = f.width };
	page_begin(&page);
	f.file = page.file;
	f.height = spans ? ROW_HEIGHT * (f.nr_rows ? f.nr_rows : 1) : PLOT;
	svg_text(f.file, MARGIN, 26, BIG, BOLD, title);
	svg_text(f.file, f.width - RIGHT, 26, NORMAL, END, simulated ? "simulated" : "");
	legend(&f);
	if (!strcmp(kind, "lines"))
		draw_lines(&f);
	else if (!strcmp(kind, "points"))
		draw_points(&f);
	else if (spans)
		draw_spans(&f);
	else
		draw_bars(&f);
	page.y = f.top + f.height + BOTTOM - MARGIN;
	page_end(&page, &out, title, json_array_size(f.series));
}
