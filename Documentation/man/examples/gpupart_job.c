/* SPDX-License-Identifier: MIT */
/* Begins a job. Programs that this process starts may use 8 TPCs, and later 16 TPCs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gpupart_manage.h>

#define MAX 64

int main(void)
{
	static struct gpupart_job list[MAX];
	struct gpupart_tpcset set = gpupart_tpcset_first(8), wider = gpupart_tpcset_first(16);
	struct gpupart_topology *topo;
	char id[GPUPART_JOB_STRLEN];
	struct gpupart *gp;
	int nr;

	if (gpupart_open(&gp) || gpupart_topology_open(gp, "sample:h200", NULL, &topo))
		return 1;
	if (gpupart_job_begin(gp, "example", topo, "0000:0d:00.0", &set, id)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	setenv("GPUPART_JOB", id, 1);
	if (gpupart_job_limit_set(gp, id, &wider, NULL))
		return 1;
	nr = gpupart_job_list(gp, list, MAX, sizeof(struct gpupart_job));
	for (int i = 0; i < nr && i < MAX; i++)
		if (!strcmp(list[i].id, id))
			printf("job %s: limit %s\n", list[i].name, list[i].limit);
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return nr < 0;
}

/* Prints:
 * job example: limit 0-15
 */
