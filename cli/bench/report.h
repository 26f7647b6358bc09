/* SPDX-License-Identifier: MIT */
/*
 * The report of a part is one JSON object. Its keys are name, title, status, why, meaning, tables,
 * checks, charts and notes. Other functions convert the report to text, Markdown and SVG.
 */
#ifndef GPUPART_CLI_BENCH_REPORT_H
#define GPUPART_CLI_BENCH_REPORT_H

#include <stdbool.h>
#include "cli/util/out.h"

/* If @simulated is true, each sentence of "meaning" begins with "(simulated)". */
json_t *report_new(const char *name, const char *title, bool simulated);

/*
 * Adds a sentence to @list. The list "meaning" explains the figures. The list "notes" describes the
 * method and the omissions.
 */
__attribute__((format(printf, 3, 4)))
void report_words(json_t *report, const char *list, const char *fmt, ...);
#define report_mean(report, ...) report_words(report, "meaning", __VA_ARGS__)
#define report_note(report, ...) report_words(report, "notes", __VA_ARGS__)

/* @columns contains the headings, separated by '|'. */
json_t *report_table(json_t *report, const char *title, const char *columns);
/* Does the same. report_text() prints all rows of this table, even if there are many. */
json_t *report_table_whole(json_t *report, const char *title, const char *columns);

/*
 * Adds an array to the list @list of a table or series. The format of @fmt is the format of
 * json_pack().
 */
void report_add(json_t *to, const char *list, const char *fmt, ...);

/* Adds a row. Example: report_row(table, "[s,f]", "name", 1.0). */
#define report_row(table, ...) report_add(table, "rows", __VA_ARGS__)

/* Returns the table with the title @title, or NULL. */
json_t *report_find_table(const json_t *report, const char *title);

/* Adds a row to the table @title. The columns are @what, @value and @unit. */
void report_figure(json_t *report, const char *title, const char *what, double value,
		   const char *unit);

enum report_relation { REPORT_AT_MOST, REPORT_AT_LEAST };

/*
 * Adds a check that compares @value with @limit. If @judged is false, the check never fails. This
 * is so on the simulated GPU.
 */
void report_check(json_t *report, bool judged, const char *what, double value,
		  enum report_relation relation, double limit);

enum report_kind { REPORT_LINES, REPORT_BARS, REPORT_TIMELINE, REPORT_POINTS };

/*
 * @file has the form "NAME.svg". A chart of lines joins the points of a series. A chart of bars
 * shows a value for each category. A timeline has rows of bars, from a start to an end. A chart of
 * points has labels and no lines. If @log is true, the axis of values is logarithmic.
 */
json_t *report_chart(json_t *report, const char *file, enum report_kind kind, const char *title,
		     const char *x, const char *y, bool log);

/* Permits an axis of values that begins above 0. Call this function if the lines differ little. */
void report_chart_near(json_t *chart);

/* Adds an empty row to a timeline. The order of these calls is the order of the rows. */
void report_chart_row(json_t *chart, const char *row);

/* Adds a series to a chart. */
json_t *report_series(json_t *chart, const char *label);
/*
 * These functions add a value to a series: a point, a bar, or a span of a timeline. Categories are
 * drawn in the order of their first use.
 */
#define report_point(series, x, y) \
	report_add(series, "points", "[f,f]", (double)(x), (double)(y))
#define report_bar(series, category, value) \
	report_add(series, "points", "[s,f]", category, (double)(value))
#define report_span(series, row, start, end) \
	report_add(series, "points", "[s,f,f]", row, (double)(start), (double)(end))

/*
 * Adds a point with the string @words to the series @label of a chart of points. Takes over the
 * caller's reference to @words. If the chart has no such series, adds the series.
 */
void report_mark(json_t *chart, const char *label, double x, double y, json_t *words);

/* Returns the number of judged checks that failed. */
unsigned int report_nr_failed(const json_t *report);

/* Returns the string with the key @key, or "". */
const char *report_at(const json_t *object, const char *key);

/* Writes a number to @text. Uses as few digits as possible. Returns @text. */
const char *report_number(double value, char text[32]);

/* report_text.c */
void report_text(struct out *out, const json_t *report);
void report_markdown(FILE *file, const json_t *report, bool simulated, const char *gpu);

/* report_svg.c */
void report_svg(FILE *file, const json_t *chart, bool simulated);

#endif
