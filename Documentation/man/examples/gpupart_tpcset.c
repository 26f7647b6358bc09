/* SPDX-License-Identifier: MIT */
/* Prints the TPCs and the SMs of a set. */
#include <stdio.h>
#include <gpupart.h>

int main(void)
{
	struct gpupart_tpcset set, low = gpupart_tpcset_first(4);
	char text[GPUPART_TPCSET_STRLEN];

	if (gpupart_tpcset_parse_list(NULL, "0-10:2,16", &set))
		return 1;
	gpupart_tpcset_add(&set, 17);
	set = gpupart_tpcset_andnot(&set, &low);
	if (gpupart_tpcset_format_list(&set, text, sizeof(text)) < 0)
		return 1;
	printf("%u TPCs: %s\n", gpupart_tpcset_count(&set), text);
	for (int tpc = gpupart_tpcset_next(&set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&set, tpc + 1))
		printf("SMs %d and %d\n", 2 * tpc, 2 * tpc + 1);
	return 0;
}

/* Prints:
 * 6 TPCs: 4,6,8,10,16-17
 * SMs 8 and 9
 * SMs 12 and 13
 * SMs 16 and 17
 * SMs 20 and 21
 * SMs 32 and 33
 * SMs 34 and 35
 */
