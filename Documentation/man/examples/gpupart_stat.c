/* SPDX-License-Identifier: MIT */
/* Measures this process for itself: how many kernels it launched. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	static struct gpupart_stat_process process;
	struct gpupart_stat *stat;
	struct gpupart_tpcset seen;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	const char *id;

	if (gpupart_open(&gp) || gpupart_stat_open(gp, &stat, &id))
		return 1;
	if (gpupart_stat_start(gp, id) || gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_census(gp, gpu, NULL, &seen) || gpupart_stat_get(stat, 0, &process)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	printf("%s, processes not measured: %u\n",
	       process.kernels ? "kernels were seen" : "no kernel", gpupart_stat_lost(stat));
	printf("the second of depths[] counts from %llu on\n",
	       (unsigned long long)gpupart_stat_depth(1));
	gpupart_stat_close(stat);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * kernels were seen, processes not measured: 0
 * the second of depths[] counts from 1 on
 */
