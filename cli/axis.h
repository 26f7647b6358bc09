/* SPDX-License-Identifier: MIT */
/* An axis of time under rows of blocks, in text and in SVG. Knows nothing of the rows. */
#ifndef GPUPART_CLI_AXIS_H
#define GPUPART_CLI_AXIS_H

#include <stdint.h>
#include <stdio.h>

/*
 * A step for an axis of @span_ns with at most @max of them, 1, 2 or 5 times a power of
 * ten, and the unit ("ns", "us", "ms") it is best written in: that many ns.
 */
uint64_t axis_step(uint64_t span_ns, unsigned int max, const char **unit, uint64_t *unit_ns);

/* "12.5" of @ns in @unit_ns. Returns @text. */
const char *axis_number(char *text, size_t len, uint64_t ns, uint64_t unit_ns);

/*
 * Two lines: the unit and @words; then numbers, the first digit of each over its column.
 * Of @columns, behind @label blanks, each @column_ns wide from @from on.
 */
void axis_text(FILE *file, unsigned int label, unsigned int columns, double column_ns,
	       uint64_t from, const char *words);

struct axis_svg {
	double left, width;		/* of the plot */
	double above, below;		/* its upper and lower edge */
	uint64_t from, to;
	const char *words;		/* "time in ms" goes on with them */
};

/* Lines through the rows at round times, the times above and below. */
void axis_svg(FILE *file, const struct axis_svg *axis);

#endif
