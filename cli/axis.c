// SPDX-License-Identifier: MIT
/* An axis of time under rows of blocks, in text and in SVG. Knows nothing of the rows. */
#include <inttypes.h>
#include <string.h>
#include "axis.h"
#include "page.h"

#define TEXT_COLUMNS	128	/* the most that a text has */
#define TEXT_TICKS	6
#define SVG_TICKS	12

uint64_t axis_step(uint64_t span_ns, unsigned int max, const char **unit, uint64_t *unit_ns)
{
	static const unsigned int factors[] = { 2, 5, 10 };
	uint64_t power = 1, step = 1;

	/* The last step is at most ten times the span, which fits. */
	for (unsigned int i = 0; span_ns / step >= max; i = (i + 1) % 3) {
		step = power * factors[i];
		if (i == 2)
			power = step;
	}
	*unit_ns = step >= 1000000 ? 1000000 : step >= 100 ? 1000 : 1;
	*unit = *unit_ns == 1 ? "ns" : *unit_ns == 1000 ? "us" : "ms";
	return step;
}

const char *axis_number(char *text, size_t len, uint64_t ns, uint64_t unit_ns)
{
	uint64_t tenths = (ns % unit_ns) * 10 / unit_ns;

	if (tenths)
		snprintf(text, len, "%" PRIu64 ".%" PRIu64, ns / unit_ns, tenths);
	else
		snprintf(text, len, "%" PRIu64, ns / unit_ns);
	return text;
}

/* The first round time from @from on. */
static uint64_t first_tick(uint64_t from, uint64_t step)
{
	return (from + step - 1) / step * step;
}

void axis_text(FILE *file, unsigned int label, unsigned int columns, double column_ns,
	       uint64_t from, const char *words)
{
	char line[TEXT_COLUMNS + 32], number[32];
	uint64_t unit_ns, step, ns, span = columns * column_ns;
	unsigned int at, end = 0;
	const char *unit;

	step = axis_step(span, TEXT_TICKS, &unit, &unit_ns);
	memset(line, ' ', sizeof(line));
	for (ns = first_tick(from, step); ns - from <= span; ns += step) {
		at = (ns - from) / column_ns;
		axis_number(number, sizeof(number), ns, unit_ns);
		if (at + strlen(number) > columns)
			break;
		memcpy(line + at, number, strlen(number));
		end = at + strlen(number);
	}
	line[end] = 0;
	fprintf(file, "%*s%s %s\n%*s%s\n", label, "", unit, words, label, "", line);
}

void axis_svg(FILE *file, const struct axis_svg *axis)
{
	uint64_t unit_ns, step, ns, span = axis->to - axis->from;
	const char *unit;
	char text[160];
	double x;

	step = axis_step(span, SVG_TICKS, &unit, &unit_ns);
	for (ns = first_tick(axis->from, step); ns <= axis->to; ns += step) {
		x = axis->left + (double)(ns - axis->from) / span * axis->width;
		fprintf(file,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#777777\" "
			"stroke-width=\"0.5\" stroke-dasharray=\"2 3\"/>\n",
			x, axis->above, x, axis->below);
		axis_number(text, sizeof(text), ns, unit_ns);
		svg_text(file, x, axis->above - 4, SMALL, MIDDLE, text);
		svg_text(file, x, axis->below + 13, SMALL, MIDDLE, text);
	}
	snprintf(text, sizeof(text), "time in %s %s", unit, axis->words);
	svg_text(file, axis->left + axis->width / 2, axis->below + 29, SMALL, MIDDLE, text);
}
