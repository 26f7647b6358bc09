// SPDX-License-Identifier: MIT
/*
 * Prints the rows of lib/tmd_layout.c for scripts/support-matrix, tab-separated: compute
 * classes, chips, layout, mask bits, state, tried on, source. Knows no Markdown.
 */
#include <stdio.h>
#include "tmd_layout.h"

static unsigned int mask_bits(const struct tmd_layout *layout)
{
	unsigned int nr = layout->nr_words * 64;

	for (unsigned int i = 0; i < 2; i++)
		nr += layout->extension[i].width;
	return nr;
}

static void print_classes(const struct tmd_layout *layout)
{
	for (unsigned int i = 0; i < 8 && layout->classes[i]; i++)
		printf("%s%04x", i ? " " : "", layout->classes[i]);
}

/* The chips of its classes, in the table's order. */
static void print_chips(const struct tmd_layout *layout)
{
	const char *gap = "";

	for (unsigned int i = 0; i < 8 && layout->classes[i]; i++) {
		for (unsigned int chip = 0; chip < tmd_nr_chips; chip++) {
			if (tmd_chips[chip].compute_class != layout->classes[i])
				continue;
			printf("%s%s", gap, tmd_chips[chip].name);
			gap = " ";
		}
	}
}

int main(void)
{
	for (unsigned int i = 0; i < tmd_nr_layouts; i++) {
		const struct tmd_layout *layout = &tmd_layouts[i];

		print_classes(layout);
		putchar('\t');
		print_chips(layout);
		printf("\t%s\t%u\t", layout->name, mask_bits(layout));
		if (layout->refused)
			printf("refused: %s", layout->refused);
		else
			printf("%s", layout->tested_on ? "tried" : "untried");
		printf("\t%s\t%s\n", layout->tested_on ? layout->tested_on : "", layout->source);
	}
	return 0;
}
