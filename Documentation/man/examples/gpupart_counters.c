/* SPDX-License-Identifier: MIT */
/* Prints how many launches were confined, and how many launches were made. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	struct gpupart_tpcset set = gpupart_tpcset_first(8), seen;
	struct gpupart_counters before, after;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_process_set(gp, gpu, &set))
		return 1;
	gpupart_counters_get(&before);
	if (gpupart_census(gp, gpu, NULL, &seen))
		return 1;
	gpupart_counters_get(&after);
	printf("confined: %llu of %llu\n",
	       (unsigned long long)(after.confined - before.confined),
	       (unsigned long long)(after.launches - before.launches));
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * confined: 1 of 1
 */
