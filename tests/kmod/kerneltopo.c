// SPDX-License-Identifier: MIT
/*
 * kerneltopo [GPU]: tests the library's source "kernel" in the guest. For each TPC and for each
 * GPC, prints a row in the form of expected.txt in tests/data. On a failure, prints the error
 * message.
 */
#include <gpupart_manage.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct gpupart_gpu_info list[16];
	struct gpupart_topology *topo;
	struct gpupart *gp;
	unsigned int i, s;
	int nr;

	if (gpupart_open(&gp))
		return 1;
	nr = gpupart_gpu_list(gp, "kernel", list, 16, sizeof(struct gpupart_gpu_info));
	if (nr < 0 || gpupart_topology_open(gp, "kernel", argc > 1 ? argv[1] : NULL, &topo)) {
		printf("error %s\n", gpupart_error(gp));
		return 1;
	}
	printf("source %s gpus %d pci %s chip 0x%x max %ux%u\n",
	       gpupart_topology_info(topo)->source, nr, gpupart_topology_info(topo)->pci,
	       gpupart_topology_info(topo)->chip_id, gpupart_topology_info(topo)->max_gpcs,
	       gpupart_topology_info(topo)->max_tpcs_per_gpc);
	for (i = 0; i < gpupart_topology_nr_tpcs(topo); i++) {
		const struct gpupart_tpc *tpc = gpupart_topology_tpc(topo, i);

		printf("tpc\t%u\t%d\t%d\t", i, tpc->gpc, tpc->ugpu);
		for (s = 0; s < tpc->nr_sms; s++)
			printf("%s%u", s ? "," : "", tpc->sms[s]);
		putchar('\n');
	}
	for (i = 0; i < gpupart_topology_nr_gpcs(topo); i++)
		printf("gpc\t%u\t%d\t0x%x\n", i, gpupart_topology_gpc(topo, i)->gpc_phys,
		       gpupart_topology_gpc(topo, i)->present_tpcs);
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return 0;
}
