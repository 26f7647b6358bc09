/* SPDX-License-Identifier: MIT */
/* Confines this process to GPC 1, and its next launch to TPC 40. Then adds a limit. */
#include <stdio.h>
#include <gpupart_manage.h>

static struct gpupart *gp;
static struct gpupart_gpu *gpu;

static void show(const char *when)
{
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_tpcset seen;

	if (gpupart_census(gp, gpu, NULL, &seen)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return;
	}
	gpupart_tpcset_format_list(&seen, list, sizeof(list));
	printf("%s: %s\n", when, list);
}

int main(void)
{
	const struct gpupart_topology *topo;
	struct gpupart_tpcset set;

	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu))
		return 1;
	topo = gpupart_gpu_topology(gpu);
	if (gpupart_set_parse(gp, topo, "gpc:1", &set) || gpupart_process_set(gp, gpu, &set))
		return 1;
	show("process");
	if (gpupart_set_parse(gp, topo, "40", &set) || gpupart_next_set(gp, gpu, &set))
		return 1;
	show("next launch");
	show("process again");
	if (gpupart_set_parse(gp, topo, "0-15", &set) || gpupart_limit_set(gp, gpu, &set))
		return 1;
	show("limit AND process");
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * process: 0,8,16,24,62-65
 * next launch: 40
 * process again: 0,8,16,24,62-65
 * limit AND process: 0,8
 */
