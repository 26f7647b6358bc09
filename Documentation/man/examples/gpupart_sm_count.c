/* SPDX-License-Identifier: MIT */
/* A program on 8 TPCs sees a GPU with 16 SMs. */
#include <stdio.h>
#include <gpupart.h>

int main(void)
{
	struct gpupart_tpcset set = gpupart_tpcset_first(8);
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	unsigned int nr_sms;

	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_process_set(gp, gpu, &set))
		return 1;
	if (gpupart_sm_count_tell(gp, gpu, true)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	if (gpupart_sm_count_get(gpu, &nr_sms))
		printf("told: %u SMs of %u\n", nr_sms,
		       gpupart_topology_nr_sms(gpupart_gpu_topology(gpu)));
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * told: 16 SMs of 132
 */
