/* SPDX-License-Identifier: MIT */
/* Opens a context, and prints the library's error message for an invalid list. */
#include <stdio.h>
#include <gpupart.h>

int main(void)
{
	struct gpupart_tpcset set;
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	printf("version %s\n", gpupart_version());
	if (gpupart_tpcset_parse_list(gp, "0-7,x", &set))
		printf("%s\n", gpupart_error(gp));
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * version 0.2.0
 * "x" in "x" is not valid: write a list of TPC numbers as "0,5,8-11" or "0-10:2"
 */
