// SPDX-License-Identifier: MIT
/*
 * This row tests virtual GPCs. All blocks of a cluster run in one virtual GPC, so launches can find
 * out which SMs are in the same virtual GPC.
 */
#include <errno.h>
#include "lib/verify/verify.h"

static unsigned int group_of(unsigned int *group, unsigned int sm)
{
	while (group[sm] != sm)
		sm = group[sm] = group[group[sm]];
	return sm;
}

/*
 * Makes one launch with clusters and without a mask. Returns 0, or 1 if clusters of this size do
 * not fit on the GPU.
 */
static int cluster_launch(struct verify *v, unsigned int size, unsigned int *group)
{
	unsigned int seen[32], nr_clusters = v->topo->nr_sms * 2 / size;
	struct probe_launch launch = {
		.kernel = PROBE_CLUSTER, .stream = v->stream[VERIFY_NON_BLOCKING], .threads = 32,
		.shared = v->probe->shared, .cluster = size, .blocks = nr_clusters * size,
		.argument = PROBE_SPIN_NS,
	};
	int err;

	if (!probe_clusters_held(v->probe, size))
		return 1;
	err = probe_start(v->gp, v->probe, &launch, NULL);
	if (!err)
		err = probe_finish(v->gp, v->probe, v->stream[VERIFY_NON_BLOCKING], launch.blocks);
	if (err)
		return err;
	for (unsigned int c = 0; c < nr_clusters; c++) {
		for (unsigned int b = 0; b < size; b++) {
			const struct probe_record *r = &v->probe->host[c * size + b];

			if (r->cluster != c || r->smid >= v->topo->nr_sms)
				return ctx_fail(
					v->gp, -EIO,
					"block %u recorded a wrong cluster or SM: cluster %u, SM %u",
					c * size + b, r->cluster, r->smid);
			seen[b] = r->smid;
			group[group_of(group, seen[b])] = group_of(group, seen[0]);
		}
	}
	return 0;
}

static int row_vgpcs(struct verify *v)
{
	static const unsigned int sizes[] = { 16, 8, 2, 7, 6, 5, 4, 3 };
	unsigned int group[TOPO_MAX_SMS], nr_groups = 0, nr_vgpcs = 0, turn;

	for (unsigned int sm = 0; sm < v->topo->nr_sms; sm++)
		group[sm] = sm;
	for (unsigned int vgpc = 0; vgpc < v->topo->end_vgpc; vgpc++) {
		struct gpupart_tpcset tpcs = gpupart_topology_vgpc(v->topo, vgpc);

		nr_vgpcs += !gpupart_tpcset_empty(&tpcs);
	}
	for (turn = 0; turn < 96 && nr_groups != nr_vgpcs; turn++) {
		int err = cluster_launch(v, sizes[turn % 8], group);

		if (err < 0)
			return err;
		nr_groups = 0;
		for (unsigned int sm = 0; sm < v->topo->nr_sms; sm++)
			nr_groups += group_of(group, sm) == sm;
		/*
		 * There are fewer groups of SMs than virtual GPCs, so at least one cluster ran
		 * in two virtual GPCs.
		 */
		if (nr_groups < nr_vgpcs)
			break;
	}
	for (unsigned int a = 0; a < v->topo->nr_sms; a++)
		for (unsigned int b = 0; b < a; b++) {
			int va = v->topo->tpcs[gpupart_topology_sm_tpc(v->topo, a)].vgpc;
			int vb = v->topo->tpcs[gpupart_topology_sm_tpc(v->topo, b)].vgpc;

			if (group_of(group, a) == group_of(group, b) && va != vb) {
				verify_detail(v,
					"SMs %u and %u (TPCs %d and %d) ran blocks of one cluster, but belong to virtual GPCs %d and %d",
					b, a, gpupart_topology_sm_tpc(v->topo, b),
					gpupart_topology_sm_tpc(v->topo, a), vb, va);
				return 0;
			}
		}
	if (nr_groups != nr_vgpcs) {
		verify_detail(v,
			"the SMs that ran blocks of the same cluster form %u groups after %u launches, but the topology has %u virtual GPCs",
			nr_groups, turn, nr_vgpcs);
		return 0;
	}
	verify_detail(v, "the %u virtual GPCs were confirmed by %u cluster launches", nr_vgpcs,
		      turn);
	return 1;
}

const struct verify_row verify_rows_vgpcs[] = {
	{ "vgpc-clusters", "clusters of blocks find the virtual GPCs that the topology has",
	  row_vgpcs, .flags = NEEDS_ALL | NEEDS_CLUSTERS | SLOW },
	{ 0 }
};
