/* SPDX-License-Identifier: MIT */
/* Plans two tenants in different uGPUs: one with whole GPCs, the other with at least 8 TPCs. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	const struct gpupart_demand demands[] = {
		{ .name = "llm", .min_tpcs = 16, .max_tpcs = 33, .gpcs = true, .apart = "batch" },
		{ .name = "batch", .min_tpcs = 8 },
	};
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_topology *topo;
	struct gpupart_plan plan;
	struct gpupart *gp;

	if (gpupart_open(&gp) || gpupart_topology_open(gp, "sample:h200", NULL, &topo))
		return 1;
	if (gpupart_plan_make(gp, topo, NULL, demands, 2, &plan)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	for (unsigned int i = 0; i < plan.nr_tenants; i++) {
		gpupart_tpcset_format_list(&plan.tenants[i].set, list, sizeof(list));
		printf("%s, uGPU %d: %s\n", plan.tenants[i].name, plan.tenants[i].ugpu, list);
	}
	if (gpupart_plan_check(gp, topo, plan.topology_hash))
		return 1;
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * llm, uGPU 0: 0,4-6,8,12-14,16,20-22,24,28-30,35-37,42-44,49-51,56-58,60,62-65
 * batch, uGPU 1: 1-3,7,9-11,15,17-19,23,25-27,31-34,38-41,45-48,52-55,59,61
 */
