/* SPDX-License-Identifier: MIT */
/* Prepares CUDA's first device, and prints how its mask bits became trusted. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	struct gpupart_check check;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	if (gpupart_attach(gp, "cuda:0", NULL, &gpu)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	gpupart_gpu_check(gpu, &check);
	printf("%s%s\n", gpupart_topology_info(gpupart_gpu_topology(gpu))->name,
	       gpupart_topology_info(gpupart_gpu_topology(gpu))->simulated ? " (simulated)" : "");
	printf("TMD %s, %u TPCs proven\n", check.layout, check.nr_proven);
	if (gpupart_process_publish(gp, "example"))
		fprintf(stderr, "%s\n", gpupart_error(gp));
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * NVIDIA H200 (simulated)
 * TMD V04_00, 66 TPCs proven
 */
