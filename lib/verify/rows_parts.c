// SPDX-License-Identifier: MIT
/* These rows test the topology, and sets that contain one part of the GPU. */
#include <errno.h>
#include <string.h>
#include "lib/confine/self_check.h"
#include "lib/driver/callback.h"
#include "lib/verify/verify.h"

static int row_topology(struct verify *v)
{
	const char *source = v->topo->info.source, *name = strrchr(source, '/');
	bool was = driver_own(true);
	int nr_sms = 0,
	    result = v->cuda->device_attr(&nr_sms, CUDA_ATTR_MULTIPROCESSORS,
				      v->gpu->driver.device);

	driver_own(was);
	verify_detail(v, "CUDA reports %d SMs; the topology (%s) has %u SMs in %u TPCs",
		   nr_sms, name ? name + 1 : source, v->topo->nr_sms, v->topo->nr_tpcs);
	if (result)
		verify_detail(v, "cuDeviceGetAttribute: %s", cuda_strerror(v->cuda, result));
	return !result && (unsigned int)nr_sms == v->topo->nr_sms;
}

static int row_none(struct verify *v)
{
	return verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &v->all, NULL);
}

static int row_left_out(struct verify *v)
{
	struct gpupart_check kept = v->gpu->check;
	int err = check_map(v->gp, v->gpu, v->probe, v->stream[VERIFY_NON_BLOCKING]);

	if (!err)
		verify_detail(v, "%u TPCs were proven by %u launches", v->gpu->check.nr_proven,
			   v->gpu->check.nr_launches);
	else
		verify_detail(v, "%s", v->gp->error);
	v->gpu->check = kept;
	v->disproven = err == -EPROTO;
	return !err;
}

static struct gpupart_tpcset tpc_alone(const struct gpupart_topology *topo, unsigned int tpc)
{
	struct gpupart_tpcset set = { { 0 } };

	(void)topo;
	gpupart_tpcset_add(&set, tpc);
	return set;
}

static struct gpupart_tpcset gpc_tpcs(const struct gpupart_topology *topo, unsigned int gpc)
{
	return gpc < topo->nr_gpcs ? topo->gpcs[gpc].tpcs : (struct gpupart_tpcset){ { 0 } };
}

/* Makes a launch on each part of the GPU that may be used. The row describes the launches. */
static int row_parts(struct verify *v)
{
	unsigned int tried = 0;

	for (unsigned int i = 0; i < GPUPART_MAX_TPCS; i++) {
		struct probe_launch launch = { .stream = v->stream[VERIFY_NON_BLOCKING],
					       .blocks = v->topo->nr_sms * 2 };
		struct gpupart_tpcset set = v->row->part(v->topo, i);
		unsigned int nr_sms;
		int ran;

		set = gpupart_tpcset_and(&set, &v->all);
		if (gpupart_tpcset_empty(&set))
			continue;
		nr_sms = topo_sms_in(v->topo, &set);
		if (v->row->flags & NEEDS_COOPERATIVE) {
			/*
			 * All blocks run at the same time. There is one block for each SM of the
			 * set, so they fit.
			 */
			launch.cooperative = true;
			launch.blocks = nr_sms;
		} else if (v->row->flags & NEEDS_CLUSTERS) {
			/*
			 * Clusters of two blocks fill every set that has an even number of SMs.
			 * With larger clusters, the driver itself does not use the singletons.
			 */
			launch.cluster = nr_sms % 2 ? 1 : 2;
			launch.blocks = nr_sms * 4;
		}
		ran = gpupart_process_set(v->gp, v->gpu, &set);
		if (!ran)
			ran = verify_ran_as(v, &launch, &set, NULL);
		if (ran <= 0)
			return ran;
		tried++;
	}
	if (v->row->nouns)
		verify_detail(v, "%u %s", tried, v->row->nouns);
	return 1;
}

const struct verify_row verify_rows_parts[] = {
	{ "topology", "the topology counts the SMs that CUDA counts", .run = row_topology },
	{ "none", "without a set every SM that may be used runs", .run = row_none },
	{ "tpc-left-out", "no TPC runs a launch that leaves it out", row_left_out,
	  .flags = NEEDS_ALL | SLOW },
	{ "tpc-alone", "every TPC, allowed alone, runs all of it", row_parts, .flags = SLOW,
	  .part = tpc_alone, .nouns = "TPCs, each alone" },
	{ "gpc", "every GPC's set runs on that GPC and nowhere else", row_parts,
	  .part = gpc_tpcs, .nouns = "GPCs" },
	{ "ugpu", "every uGPU's set runs on that uGPU and nowhere else", row_parts,
	  .flags = NEEDS_UGPUS, .part = gpupart_topology_ugpu, .nouns = "uGPUs" },
	{ "cooperative", "a cooperative grid that fits a GPC runs on that GPC and nowhere else",
	  row_parts, .flags = NEEDS_COOPERATIVE, .part = gpc_tpcs },
	{ "cluster", "a launch with clusters keeps to the set of a virtual GPC", row_parts,
	  .flags = NEEDS_CLUSTERS, .part = gpupart_topology_vgpc },
	{ 0 }
};
