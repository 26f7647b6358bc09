/* SPDX-License-Identifier: MIT */
/* Reports its work and the time of each batch to `gpupart qos`. */
#include <stdio.h>
#include <time.h>
#include <gpupart_manage.h>

static uint64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000ull + at.tv_nsec;
}

int main(void)
{
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	uint64_t start;

	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_process_publish(gp, "example"))
		return 1;
	for (int batch = 0; batch < 3; batch++) {
		start = now();
		/* The work of 4 requests. */
		gpupart_progress_add(4);
		gpupart_latency_report(now() - start);
	}
	printf("reported 12 units of work\n");
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * reported 12 units of work
 */
