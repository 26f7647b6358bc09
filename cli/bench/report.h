/* SPDX-License-Identifier: MIT */
/*
 * What a part of bench found, as one JSON object: {name, title, status, why, meaning, tables,
 * checks, charts, notes}. Text, Markdown and SVG are drawn from it.
 */
#ifndef GPUPART_CLI_BENCH_REPORT_H
#define GPUPART_CLI_BENCH_REPORT_H

#include <stdbool.h>
#include "cli/util/out.h"

/* Each sentence of what a @simulated one means begins with that word. */
json_t *report_new(const char *name, const char *title, bool simulated);

/* Adds a sentence to @list: what the figures mean; how it was measured, what was left out. */
__attribute__((format(printf, 3, 4)))
void report_words(json_t *report, const char *list, const char *fmt, ...);
#define report_mean(report, ...) report_words(report, "meaning", __VA_ARGS__)
#define report_note(report, ...) report_words(report, "notes", __VA_ARGS__)

/* @columns: headings parted by '|'. */
json_t *report_table(json_t *report, const char *title, const char *columns);

/* Adds an array as json_pack() has them to @list of a table or a series. */
void report_add(json_t *to, const char *list, const char *fmt, ...);

/* A row: report_row(table, "[s,f]", "name", 1.0). */
#define report_row(table, ...) report_add(table, "rows", __VA_ARGS__)

/* The table with that title; NULL: the report has none. */
json_t *report_find_table(const json_t *report, const char *title);

/* Adds a row to the table @title, whose columns are what, value and unit. */
void report_figure(json_t *report, const char *title, const char *what, double value,
		   const char *unit);

enum report_relation { REPORT_AT_MOST, REPORT_AT_LEAST };

/* A claim about @value; not judged where @judged is false (the simulated GPU). */
void report_check(json_t *report, bool judged, const char *what, double value,
		  enum report_relation relation, double limit);

enum report_kind { REPORT_LINES, REPORT_BARS, REPORT_TIMELINE, REPORT_POINTS };

/*
 * @file: "NAME.svg". Lines have series of points; bars a value a category; a timeline
 * bars from start to end in rows; points are not joined, and have words. @log: the value's axis
 * is logarithmic.
 */
json_t *report_chart(json_t *report, const char *file, enum report_kind kind, const char *title,
		     const char *x, const char *y, bool log);

/* Lines whose axis does not begin at 0: what differs is little beside the value. */
void report_chart_near(json_t *chart);

/* Rows of a timeline in another order than that in which they come. */
void report_chart_row(json_t *chart, const char *row);

/* A series of a chart. */
json_t *report_series(json_t *chart, const char *label);
/* Its points: of lines; of bars, in categories that stand in the order they come; of a timeline. */
#define report_point(series, x, y) \
	report_add(series, "points", "[f,f]", (double)(x), (double)(y))
#define report_bar(series, category, value) \
	report_add(series, "points", "[s,f]", category, (double)(value))
#define report_mark(series, x, y, words) \
	report_add(series, "points", "[f,f,s]", (double)(x), (double)(y), words)
#define report_span(series, row, start, end) \
	report_add(series, "points", "[s,f,f]", row, (double)(start), (double)(end))

/* How many checks were judged and did not hold. */
unsigned int report_nr_failed(const json_t *report);

/* The string of that key; "": there is none. */
const char *report_at(const json_t *object, const char *key);

/* A number with as many places as it needs. */
const char *report_number(double value, char text[32]);

/* report_text.c */
void report_text(struct out *out, const json_t *report);
void report_markdown(FILE *file, const json_t *report, bool simulated, const char *gpu);

/* report_svg.c */
void report_svg(FILE *file, const json_t *chart, bool simulated);

#endif
