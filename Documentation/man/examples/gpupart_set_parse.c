/* SPDX-License-Identifier: MIT */
/* Parses a set in text form, and then a set that the GPU does not have. */
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_topology *topo;
	struct gpupart_tpcset set;
	struct gpupart *gp;

	if (gpupart_open(&gp) || gpupart_topology_open(gp, "sample:h200", NULL, &topo) ||
	    gpupart_set_parse(gp, topo, "gpc:1+40-43", &set))
		return 1;
	gpupart_tpcset_format_list(&set, list, sizeof(list));
	printf("%s\n", list);
	gpupart_tpcset_add(&set, 66);
	if (gpupart_set_check(gp, topo, &set))
		printf("%s\n", gpupart_error(gp));
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * 0,8,16,24,40-43,62-65
 * TPC 66 does not exist: this GPU has TPCs 0-65
 */
