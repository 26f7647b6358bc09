// SPDX-License-Identifier: MIT
/*
 * Writes Documentation/internals/hardware-chips.md from the table of chips.
 */
#include <stdio.h>
#include <string.h>
#include "kmod/chip.h"

static bool same_cell(const struct chip_cell *a, const struct chip_cell *b)
{
	return a->tag == b->tag && a->at == b->at && a->at2 == b->at2 && a->kind == b->kind &&
	       a->nr == b->nr && a->source && b->source && !strcmp(a->source, b->source);
}

int main(void)
{
	unsigned int i, j, column;

	puts("<!-- SPDX-License-Identifier: MIT -->\n"
	     "<!-- Written by `make hardware-chips` from kmod/chip.c. "
	     "A test compares the page with the table. -->\n"
	     "# Chips\n\n"
	     "The first table shows for each chip which registers the module reads, and how reliable\n"
	     "their addresses are. The letters mean:\n\n"
	     "* **V**, verified: NVIDIA's headers or drivers for this chip have the address, or the\n"
	     "  register was read on such a chip.\n"
	     "* **R**, reported: a third party's tool that supports this chip has the address.\n"
	     "* **I**, inferred: similar chips have the register at this address.\n"
	     "* **-**: the chip does not have the register, or its address is not published.\n\n"
	     "The module refuses a chip that is not in the table, and shows the chip's id.\n");
	printf("| id | chip | family |");
	for (column = 0; column < CHIP_COLUMNS; column++)
		printf(" %s |", gp_chip_column_name(column));
	printf("\n|---|---|---|");
	for (column = 0; column < CHIP_COLUMNS; column++)
		printf("---|");
	putchar('\n');
	for (i = 0; i < gp_nr_chips; i++) {
		printf("| 0x%03x | %s | %s |", gp_chips[i].id, gp_chips[i].name,
		       gp_chips[i].family);
		for (column = 0; column < CHIP_COLUMNS; column++)
			printf(" %c |", "-VRI"[gp_chips[i].cells[column].tag]);
		putchar('\n');
	}
	for (i = 0; i < gp_nr_chips; i++) {
		const char *note = gp_chips[i].note;

		if (!note)
			continue;
		printf("\n%s", gp_chips[i].name);
		for (; i + 1 < gp_nr_chips && gp_chips[i + 1].note == note; i++)
			printf(", %s", gp_chips[i + 1].name);
		printf(": %s.\n", note);
	}
	puts("\n## Sources\n\n"
	     "OGKM is NVIDIA's open-gpu-kernel-modules, and OGD is NVIDIA's open-gpu-doc.\n\n"
	     "| what | at | tag | source | chips |\n|---|---|---|---|---|");
	for (column = 0; column < CHIP_COLUMNS; column++) {
		for (i = 0; i < gp_nr_chips; i++) {
			const struct chip_cell *cell = gp_chip_cell(&gp_chips[i], column);

			for (j = 0; cell && j < i; j++)
				if (same_cell(cell, &gp_chips[j].cells[column]))
					cell = NULL;
			if (!cell)
				continue;
			printf("| %s | ", gp_chip_column_name(column));
			if (cell->at)
				printf("0x%06x", cell->at);
			if (cell->at2)
				printf(", 0x%06x", cell->at2);
			printf(" | %s | %s |", gp_chip_tag_name(cell->tag), cell->source);
			for (j = i; j < gp_nr_chips; j++)
				if (same_cell(cell, &gp_chips[j].cells[column]))
					printf(" %s", gp_chips[j].name);
			puts(" |");
		}
	}
	return 0;
}
