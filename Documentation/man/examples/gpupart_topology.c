/* SPDX-License-Identifier: MIT */
/* Prints the GPCs of an H200. This machine need not have an H200. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_topology *topo;
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	if (gpupart_topology_open(gp, "sample:h200", NULL, &topo)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	printf("%s, %u TPCs\n", gpupart_topology_info(topo)->name, gpupart_topology_nr_tpcs(topo));
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_gpc *row = gpupart_topology_gpc(topo, gpc);

		gpupart_tpcset_format_list(&row->tpcs, list, sizeof(list));
		printf("GPC %u, uGPU %d: %s\n", gpc, row->ugpu, list);
	}
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * NVIDIA H200, 66 TPCs
 * GPC 0, uGPU 0: 6,14,22,30,37,44,51,58,60
 * GPC 1, uGPU 0: 0,8,16,24,62-65
 * GPC 2, uGPU 1: 1,9,17,25,32,39,46,53
 * GPC 3, uGPU 1: 2,10,18,26,33,40,47,54
 * GPC 4, uGPU 1: 3,11,19,27,34,41,48,55
 * GPC 5, uGPU 0: 4,12,20,28,35,42,49,56
 * GPC 6, uGPU 0: 5,13,21,29,36,43,50,57
 * GPC 7, uGPU 1: 7,15,23,31,38,45,52,59,61
 */
