// SPDX-License-Identifier: MIT
/*
 * Prints the list of GPUs and one topology. Both come from the real driver through the source
 * "rm". Then this program prints the time that it took to open the topology. Run it as root and
 * also as an ordinary user, optionally with a selector. If there is no driver, the exit status is
 * 77.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lib/topo/topology.h"
#include "tests/tap.h"

#define NR_RUNS 20

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print_info(const struct gpupart_gpu_info *info)
{
	printf("# %s \"%s\" %s driver %s chip 0x%x MIG %d design %u GPCs of %u TPCs\n", info->pci,
	       info->name, info->uuid, info->driver, info->chip_id, info->mig, info->max_gpcs,
	       info->max_tpcs_per_gpc);
}

static void print_topology(const struct gpupart_topology *topo)
{
	unsigned int i;

	printf("# %u SMs, %u TPCs, %u GPCs, %u uGPUs, virtual GPCs below %u, hash %016llx\n",
	       topo->nr_sms, topo->nr_tpcs, topo->nr_gpcs, topo->nr_ugpus, topo->end_vgpc,
	       (unsigned long long)gpupart_topology_hash(topo));
	printf("# SM order: %s\n# GPC map: %s\n", topo->text_rm, topo->text_gpc_map);
	for (i = 0; i < topo->nr_gpcs; i++)
		printf("# GPC %u: physical %d, present TPCs 0x%x, uGPU %d, %u TPCs\n", i,
		       topo->gpcs[i].gpc_phys, topo->gpcs[i].present_tpcs, topo->gpcs[i].ugpu,
		       gpupart_tpcset_count(&topo->gpcs[i].tpcs));
	printf("# sm gpc local_tpc local_sm tpc vgpc tpc_in_vgpc ugpu cpc virtual_tpc\n");
	for (i = 0; i < topo->nr_sms; i++) {
		const struct topo_sm *sm = &topo->sms[i];

		printf("# %u %d %d %d %d %d %d %d %d %d\n", i, sm->gpc, sm->local_tpc, sm->local_sm,
		       sm->tpc, sm->vgpc, sm->tpc_in_vgpc, sm->ugpu, sm->cpc, sm->virtual_tpc);
	}
}

int main(int argc, char **argv)
{
	const char *gpu = argc > 1 ? argv[1] : NULL;
	struct gpupart_topology *topo = NULL;
	struct gpupart_gpu_info list[32];
	double ms[NR_RUNS], start;
	struct gpupart *gp;
	uint64_t hash = 0;
	int nr, i, err;

	if (gpupart_open(&gp))
		return 1;
	nr = topo_rm_list(gp, list, 32);
	if (access("/dev/nvidiactl", F_OK)) {
		printf("1..0 # SKIP %s\n", gpupart_error(gp));
		gpupart_close(gp);
		return 77;
	}
	tap_ok(nr > 0, "list: %d GPUs %s", nr, gpupart_error(gp));
	for (i = 0; i < nr && i < 32; i++)
		print_info(&list[i]);

	err = topo_rm_open(gp, gpu, &topo);
	if (!tap_ok(!err, "open: %s", err ? gpupart_error(gp) : topo->info.pci))
		goto done;
	print_info(&topo->info);
	print_topology(topo);
	hash = gpupart_topology_hash(topo);
	tap_ok(topo->info.uuid[0] && topo->info.name[0] && topo->info.driver[0] &&
	       topo->info.chip_id, "UUID, name, driver version and chip id are known");
	tap_ok(topo->info.mig >= 0, "the MIG state is known (%d)", topo->info.mig);
	tap_ok(topo->info.max_gpcs && topo->info.max_tpcs_per_gpc, "the design maxima are known");
	tap_ok(topo->gpcs[0].gpc_phys >= 0 && topo->gpcs[0].present_tpcs, "the GPC map is known");

	for (i = 0, err = 0; i < NR_RUNS && !err; i++) {
		gpupart_topology_close(topo);
		topo = NULL;
		start = now_ms();
		err = topo_rm_open(gp, gpu, &topo);
		ms[i] = now_ms() - start;
		if (!err && gpupart_topology_hash(topo) != hash)
			err = -EIO;
	}
	if (!tap_ok(!err, "%d times the same topology", NR_RUNS))
		goto done;
	qsort(ms, NR_RUNS, sizeof(ms[0]), compare);
	tap_ok(ms[NR_RUNS / 2] < 5, "open in under 5 ms: median %.2f, least %.2f, most %.2f",
	       ms[NR_RUNS / 2], ms[0], ms[NR_RUNS - 1]);
done:
	gpupart_topology_close(topo);
	gpupart_close(gp);
	return tap_done();
}
