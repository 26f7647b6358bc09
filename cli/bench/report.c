// SPDX-License-Identifier: MIT
/* Builds the report of a part of bench as a JSON object. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cli/bench/report.h"

json_t *report_new(const char *name, const char *title, bool simulated)
{
	return json_pack("{s:b, s:s, s:s, s:s, s:n, s:[], s:[], s:[], s:[], s:[]}",
			 "simulated", simulated, "name", name, "title", title,
			 "status", "done", "why", "meaning", "tables", "checks", "charts", "notes");
}

void report_words(json_t *report, const char *list, const char *fmt, ...)
{
	char words[1024];
	va_list ap;

	va_start(ap, fmt);
	/*
	 * A sentence may be quoted alone, so each sentence says that its figures are simulated.
	 */
	if (!strcmp(list, "meaning") && json_is_true(json_object_get(report, "simulated"))) {
		snprintf(words, sizeof(words), "(simulated) %s", fmt);
		fmt = words;
	}
	json_array_append_new(json_object_get(report, list), json_vsprintf(fmt, ap));
	va_end(ap);
}

json_t *report_table(json_t *report, const char *title, const char *columns)
{
	json_t *table = json_pack("{s:s, s:[], s:[]}", "title", title, "columns", "rows"),
	       *list = json_object_get(table, "columns");

	for (const char *at = columns; *at; at += strspn(at, "|")) {
		size_t len = strcspn(at, "|");

		json_array_append_new(list, json_stringn(at, len));
		at += len;
	}
	json_array_append_new(json_object_get(report, "tables"), table);
	return table;
}

json_t *report_table_whole(json_t *report, const char *title, const char *columns)
{
	json_t *table = report_table(report, title, columns);

	json_object_set_new(table, "whole", json_true());
	return table;
}

void report_add(json_t *to, const char *list, const char *fmt, ...)
{
	json_error_t error;
	va_list ap;

	va_start(ap, fmt);
	json_array_append_new(json_object_get(to, list), json_vpack_ex(&error, 0, fmt, ap));
	va_end(ap);
}

json_t *report_find_table(const json_t *report, const char *title)
{
	json_t *table;
	size_t i;

	json_array_foreach(json_object_get(report, "tables"), i, table)
		if (!strcmp(json_string_value(json_object_get(table, "title")), title))
			return table;
	return NULL;
}

void report_figure(json_t *report, const char *title, const char *what, double value,
		   const char *unit)
{
	report_row(report_find_table(report, title), "[s,f,s]", what, value, unit);
}

void report_check(json_t *report, bool judged, const char *what, double value,
		  enum report_relation relation, double limit)
{
	bool holds = relation == REPORT_AT_MOST ? value <= limit : value >= limit;

	json_array_append_new(json_object_get(report, "checks"),
		json_pack("{s:s, s:f, s:s, s:f, s:s}", "what", what, "value", value,
			  "relation", relation == REPORT_AT_MOST ? "at most" : "at least",
			  "limit", limit,
			  "result", !judged ? "not judged" : holds ? "ok" : "not ok"));
}

json_t *report_chart(json_t *report, const char *file, enum report_kind kind, const char *title,
		     const char *x, const char *y, bool log)
{
	static const char *const kinds[] = {
		[REPORT_LINES] = "lines", [REPORT_BARS] = "bars", [REPORT_TIMELINE] = "timeline",
		[REPORT_POINTS] = "points",
	};
	json_t *chart = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:[], s:[]}", "file", file,
				  "kind", kinds[kind], "title", title, "x", x, "y", y, "log", log,
				  "rows", "series");

	json_array_append_new(json_object_get(report, "charts"), chart);
	return chart;
}

void report_chart_near(json_t *chart)
{
	json_object_set_new(chart, "near", json_true());
}

void report_chart_row(json_t *chart, const char *row)
{
	json_array_append_new(json_object_get(chart, "rows"), json_string(row));
}

json_t *report_series(json_t *chart, const char *label)
{
	json_t *series = json_pack("{s:s, s:[]}", "label", label, "points");

	json_array_append_new(json_object_get(chart, "series"), series);
	return series;
}

void report_mark(json_t *chart, const char *label, double x, double y, json_t *words)
{
	json_t *one, *series = NULL;
	size_t i;

	json_array_foreach(json_object_get(chart, "series"), i, one)
		if (!strcmp(report_at(one, "label"), label))
			series = one;
	report_add(series ?: report_series(chart, label), "points", "[f,f,o]", x, y, words);
}

unsigned int report_nr_failed(const json_t *report)
{
	unsigned int nr = 0;
	json_t *check;
	size_t i;

	json_array_foreach(json_object_get(report, "checks"), i, check)
		nr += !strcmp(json_string_value(json_object_get(check, "result")), "not ok");
	return nr;
}

const char *report_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

const char *report_number(double value, char text[32])
{
	double size = fabs(value);

	snprintf(text, 32, "%.*f", size >= 1000 || value == 0 ? 0 : size >= 100 ? 1 :
		 size >= 10 ? 2 : 3, value);
	return text;
}
