/* SPDX-License-Identifier: MIT */
/* This process is a separate tenant. Its quota is 2 GiB of the GPU's memory, later 1 GiB. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	struct gpupart_tenant tenant;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	const char *pci;
	uint64_t bytes = 2ull << 30;

	if (gpupart_open(&gp))
		return 1;
	if (gpupart_memory_start(gp, NULL, bytes) || gpupart_attach(gp, NULL, NULL, &gpu)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	pci = gpupart_topology_info(gpupart_gpu_topology(gpu))->pci;
	if (gpupart_memory_limit(gp, pci, bytes / 2) ||
	    gpupart_tenant_get(gp, NULL, pci, &tenant)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	printf("quota %llu bytes, processes %u\n", (unsigned long long)tenant.quota,
	       tenant.nr_processes);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * quota 1073741824 bytes, processes 1
 */
