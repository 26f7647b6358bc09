// SPDX-License-Identifier: MIT
/* Prints a report as text for a terminal and as Markdown. */
#include <string.h>
#include "cli/bench/report.h"

#define MAX_COLUMNS	16
#define MAX_TEXT_ROWS	24	/* a longer table is written to files but not printed */

static const char *cell_text(const json_t *cell, char number[32])
{
	if (json_is_string(cell))
		return json_string_value(cell);
	if (json_is_integer(cell))
		snprintf(number, 32, "%lld", (long long)json_integer_value(cell));
	else if (json_is_real(cell))
		return report_number(json_real_value(cell), number);
	else
		snprintf(number, 32, "-");
	return number;
}

static void widths_of(const json_t *table, size_t *widths)
{
	char number[32];
	json_t *row, *cell;
	size_t i, c;

	json_array_foreach(json_object_get(table, "columns"), c, cell)
		if (c < MAX_COLUMNS)
			widths[c] = strlen(json_string_value(cell));
	json_array_foreach(json_object_get(table, "rows"), i, row)
		json_array_foreach(row, c, cell) {
			size_t len = strlen(cell_text(cell, number));

			if (c < MAX_COLUMNS && len > widths[c])
				widths[c] = len;
		}
}

static void print_row(FILE *file, const json_t *row, const size_t *widths)
{
	char number[32];
	json_t *cell;
	size_t c;

	json_array_foreach(row, c, cell) {
		const char *text = cell_text(cell, number);
		bool last = c + 1 == json_array_size(row);

		if (c >= MAX_COLUMNS)
			break;
		/* Aligns text to the left, and numbers to the right. */
		if (json_is_string(cell) && last)
			fprintf(file, "  %s", text);
		else
			fprintf(file, json_is_string(cell) ? "  %-*s" : "  %*s", (int)widths[c],
				text);
	}
	fputc('\n', file);
}

static void print_table(struct out *out, const json_t *table)
{
	size_t widths[MAX_COLUMNS] = { 0 }, nr = json_array_size(json_object_get(table, "rows")), i;
	json_t *row;

	fprintf(out->file, "\n%s\n", report_at(table, "title"));
	if (nr > MAX_TEXT_ROWS && !json_is_true(json_object_get(table, "whole"))) {
		fprintf(out->file, "  %zu rows: see the files of -o, or --json\n",
			nr);
		return;
	}
	widths_of(table, widths);
	print_row(out->file, json_object_get(table, "columns"), widths);
	json_array_foreach(json_object_get(table, "rows"), i, row)
		print_row(out->file, row, widths);
}

/* Formats a value of a check. Writes all significant digits. */
static const char *judged(const json_t *check, const char *key, char text[32])
{
	snprintf(text, 32, "%.5g", json_real_value(json_object_get(check, key)));
	return text;
}

/* Prints a line such as "ok      WHAT: 1.003, at most 1.02". */
static void print_check(struct out *out, const json_t *check)
{
	const char *result = report_at(check, "result");
	bool bad = !strcmp(result, "not ok");
	char value[32], limit[32];

	fprintf(out->file, "%s%-10s%s  %s: %s, %s %s\n", bad ? out->red : "", result,
		bad ? out->plain : "", report_at(check, "what"), judged(check, "value", value),
		report_at(check, "relation"), judged(check, "limit", limit));
}

void report_text(struct out *out, const json_t *report)
{
	const char *why = report_at(report, "why"), *status = report_at(report, "status");
	json_t *item;
	size_t i;

	fprintf(out->file, "\n%s%s%s: %s\n", out->bold, report_at(report, "name"), out->plain,
		report_at(report, "title"));
	if (strcmp(status, "done"))
		fprintf(out->file, "%s: %s\n", status, why);
	json_array_foreach(json_object_get(report, "tables"), i, item)
		print_table(out, item);
	if (json_array_size(json_object_get(report, "meaning")))
		fputc('\n', out->file);
	json_array_foreach(json_object_get(report, "meaning"), i, item)
		out_wrap(out, 2, "", json_string_value(item));
	if (json_array_size(json_object_get(report, "checks")))
		fputc('\n', out->file);
	json_array_foreach(json_object_get(report, "checks"), i, item)
		print_check(out, item);
	out_flush(out);
}

/* ------------------------------------------------------------------- Markdown */

static void markdown_row(FILE *file, const json_t *row)
{
	char number[32];
	json_t *cell;
	size_t c;

	json_array_foreach(row, c, cell) {
		fputs(c ? " | " : "| ", file);
		for (const char *at = cell_text(cell, number); *at; at++) {
			if (*at == '|')
				fputc('\\', file);
			fputc(*at, file);
		}
	}
	fputs(" |\n", file);
}

static void markdown_table(FILE *file, const json_t *table)
{
	json_t *columns = json_object_get(table, "columns"), *row;
	size_t i;

	fprintf(file, "\n## %s\n\n", report_at(table, "title"));
	markdown_row(file, columns);
	for (i = 0; i < json_array_size(columns); i++)
		fputs("|---", file);
	fputs("|\n", file);
	json_array_foreach(json_object_get(table, "rows"), i, row)
		markdown_row(file, row);
}

static void markdown_checks(FILE *file, const json_t *report)
{
	char value[32], limit[32];
	json_t *check;
	size_t i;

	if (!json_array_size(json_object_get(report, "checks")))
		return;
	fputs("\n## Checks\n\n| | what | value | limit |\n|---|---|---|---|\n", file);
	json_array_foreach(json_object_get(report, "checks"), i, check)
		fprintf(file, "| %s | %s | %s | %s %s |\n", report_at(check, "result"),
			report_at(check, "what"), judged(check, "value", value),
			report_at(check, "relation"), judged(check, "limit", limit));
}

void report_markdown(FILE *file, const json_t *report, bool simulated, const char *gpu)
{
	json_t *item;
	size_t i;

	fprintf(file, "# %s: %s\n\n%s%s\n", report_at(report, "name"), report_at(report, "title"),
		gpu, simulated ?
		"\n\n**simulated**: times are not those of a GPU, and ratios are not judged." : "");
	if (strcmp(report_at(report, "status"), "done"))
		fprintf(file, "\n**%s**: %s\n", report_at(report, "status"),
			report_at(report, "why"));
	if (json_array_size(json_object_get(report, "meaning")))
		fputc('\n', file);
	json_array_foreach(json_object_get(report, "meaning"), i, item)
		fprintf(file, "%s\n", json_string_value(item));
	json_array_foreach(json_object_get(report, "charts"), i, item)
		fprintf(file, "\n![%s](%s)\n", report_at(item, "title"), report_at(item, "file"));
	markdown_checks(file, report);
	json_array_foreach(json_object_get(report, "tables"), i, item)
		markdown_table(file, item);
	if (json_array_size(json_object_get(report, "notes")))
		fputs("\n## How\n", file);
	json_array_foreach(json_object_get(report, "notes"), i, item)
		fprintf(file, "\n%s\n", json_string_value(item));
}
