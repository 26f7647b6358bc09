/* SPDX-License-Identifier: MIT */
/*
 * The report of a part of bench as one JSON object: {name, title, status, why, meaning, tables,
 * checks, charts, notes}. Text, Markdown and SVG are made from it.
 */
#ifndef GPUPART_CLI_BENCH_REPORT_H
#define GPUPART_CLI_BENCH_REPORT_H

#include <stdbool.h>
#include "cli/util/out.h"

/* If @simulated, each sentence of "meaning" begins with that word. */
json_t *report_new(const char *name, const char *title, bool simulated);

/*
 * Adds a sentence to @list: "meaning" explains the figures, "notes" the method and what was
 * left out.
 */
__attribute__((format(printf, 3, 4)))
void report_words(json_t *report, const char *list, const char *fmt, ...);
#define report_mean(report, ...) report_words(report, "meaning", __VA_ARGS__)
#define report_note(report, ...) report_words(report, "notes", __VA_ARGS__)

/* @columns: headings, separated by '|'. */
json_t *report_table(json_t *report, const char *title, const char *columns);

/* Adds an array, in the format of json_pack(), to @list of a table or a series. */
void report_add(json_t *to, const char *list, const char *fmt, ...);

/* A row: report_row(table, "[s,f]", "name", 1.0). */
#define report_row(table, ...) report_add(table, "rows", __VA_ARGS__)

/* The table with that title, or NULL. */
json_t *report_find_table(const json_t *report, const char *title);

/* Adds a row to the table @title, with the columns what, value and unit. */
void report_figure(json_t *report, const char *title, const char *what, double value,
		   const char *unit);

enum report_relation { REPORT_AT_MOST, REPORT_AT_LEAST };

/*
 * Adds a check of @value against a limit. If @judged is false, as on the simulated GPU, it
 * never fails.
 */
void report_check(json_t *report, bool judged, const char *what, double value,
		  enum report_relation relation, double limit);

enum report_kind { REPORT_LINES, REPORT_BARS, REPORT_TIMELINE, REPORT_POINTS };

/*
 * @file: "NAME.svg". Lines join points; bars have a value for each category; a timeline has
 * bars from start to end in rows; points are not joined and have labels. @log: the axis of
 * values is logarithmic.
 */
json_t *report_chart(json_t *report, const char *file, enum report_kind kind, const char *title,
		     const char *x, const char *y, bool log);

/* Lets the value axis of lines begin above 0, because the differences are small. */
void report_chart_near(json_t *chart);

/* Adds a row of a timeline, to fix the order of the rows. */
void report_chart_row(json_t *chart, const char *row);

/* A series of a chart. */
json_t *report_series(json_t *chart, const char *label);
/*
 * Adds a value: a point of a line, a bar in a category (in the order of their first use), or a
 * span of a timeline.
 */
#define report_point(series, x, y) \
	report_add(series, "points", "[f,f]", (double)(x), (double)(y))
#define report_bar(series, category, value) \
	report_add(series, "points", "[s,f]", category, (double)(value))
#define report_mark(series, x, y, words) \
	report_add(series, "points", "[f,f,s]", (double)(x), (double)(y), words)
#define report_span(series, row, start, end) \
	report_add(series, "points", "[s,f,f]", row, (double)(start), (double)(end))

/* The number of judged checks that failed. */
unsigned int report_nr_failed(const json_t *report);

/* The string at that key, or "". */
const char *report_at(const json_t *object, const char *key);

/* A number with as many digits as it needs. Returns @text. */
const char *report_number(double value, char text[32]);

/* report_text.c */
void report_text(struct out *out, const json_t *report);
void report_markdown(FILE *file, const json_t *report, bool simulated, const char *gpu);

/* report_svg.c */
void report_svg(FILE *file, const json_t *chart, bool simulated);

#endif
