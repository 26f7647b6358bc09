// SPDX-License-Identifier: MIT
/*
 * Prints the tables of lib/tmd/layouts.c for scripts/support-matrix. Each row is one compute
 * class. The columns are separated by tabs: chips, class, layouts with their mask bits, tried on,
 * refused layouts.
 */
#include <stdio.h>
#include "lib/tmd/layouts.h"

static const struct tmd_layout *layout_of(unsigned int i, unsigned int compute_class)
{
	for (unsigned int k = 0; k < 8 && tmd_layouts[i].classes[k]; k++)
		if (tmd_layouts[i].classes[k] == compute_class)
			return &tmd_layouts[i];
	return NULL;
}

#define NAME(id, compute_class, name) #name,
static const char *const chip_names[] = { TMD_CHIPS(NAME) };

static void print_class(unsigned int compute_class)
{
	const struct tmd_layout *row;
	const char *comma = "";

	for (unsigned int c = 0; c < tmd_nr_chips; c++)
		if (tmd_chips[c].compute_class == compute_class) {
			printf("%s%s", comma, chip_names[c]);
			comma = ", ";
		}
	printf("\t%x\t", compute_class);
	comma = "";
	for (unsigned int i = tmd_nr_layouts; i-- > 0; ) {
		row = layout_of(i, compute_class);
		if (!row || row->refused)
			continue;
		printf("%s%s (%u bits)", comma, row->name, row->nr_words * 64 +
		       row->extension[0].width + row->extension[1].width);
		comma = ", ";
	}
	putchar('\t');
	comma = "";
	for (unsigned int i = tmd_nr_layouts; i-- > 0; ) {
		row = layout_of(i, compute_class);
		if (!row || !row->tested_on)
			continue;
		printf("%slayout %s on %s", comma, row->name, row->tested_on);
		comma = "; ";
	}
	printf("%s\t", *comma ? "" : "untried");
	comma = "";
	for (unsigned int i = tmd_nr_layouts; i-- > 0; ) {
		row = layout_of(i, compute_class);
		if (!row || !row->refused)
			continue;
		printf("%slayout %s, because %s", comma, row->name, row->refused);
		comma = "; ";
	}
	putchar('\n');
}

int main(void)
{
	/*
	 * Prints each class one time, the newest class first. The chips of one class may be far
	 * from each other in the table.
	 */
	for (unsigned int c = tmd_nr_chips; c-- > 0; ) {
		unsigned int later = c + 1;

		while (later < tmd_nr_chips &&
		       tmd_chips[later].compute_class != tmd_chips[c].compute_class)
			later++;
		if (later == tmd_nr_chips)
			print_class(tmd_chips[c].compute_class);
	}
	return 0;
}
