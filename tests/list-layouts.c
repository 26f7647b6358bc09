// SPDX-License-Identifier: MIT
/*
 * The tables of lib/tmd_layout.c as tab-separated rows, a layout and compute class
 * each: class, chips, layout, mask bits, state, tested on, source. README's support
 * matrix is made of them.
 */
#include <stdio.h>
#include "tmd_layout.h"

static void print_chips(unsigned int compute_class)
{
	const char *comma = "";

	for (unsigned int c = 0; c < tmd_nr_chips; c++)
		if (tmd_chips[c].compute_class == compute_class) {
			printf("%s%s", comma, tmd_chips[c].name);
			comma = ", ";
		}
}

int main(void)
{
	for (unsigned int i = tmd_nr_layouts; i-- > 0; ) {
		const struct tmd_layout *row = &tmd_layouts[i];

		for (unsigned int k = 0; k < 8 && row->classes[k]; k++) {
			printf("%#x\t", row->classes[k]);
			print_chips(row->classes[k]);
			printf("\t%s\t%u\t%s\t%s\t%s\n", row->name,
			       row->nr_words * 64 + row->extension[0].width +
				       row->extension[1].width,
			       row->refused	? "refused"
			       : row->tested_on ? "tested"
						: "untried",
			       row->tested_on ? row->tested_on
			       : row->refused ? row->refused
					      : "-",
			       row->source);
		}
	}
	return 0;
}
