// SPDX-License-Identifier: MIT
/* Writes a topology as JSON. */
#include "cli/draw/topology.h"
#include "lib/private.h"

static json_t *tpc_numbers(const struct gpupart_tpcset *set)
{
	json_t *array = json_array();

	for (int tpc = gpupart_tpcset_next(set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(set, tpc + 1))
		json_array_append_new(array, json_integer(tpc));
	return array;
}

/*
 * Returns positions below @max. If @are_present is true, returns positions that are set in
 * @present. Otherwise returns positions that are not set. If the positions are not known, returns
 * null.
 */
static json_t *positions(uint32_t present, unsigned int max, bool are_present)
{
	json_t *array;

	if (!present || (!max && !are_present))
		return json_null();
	array = json_array();
	for (unsigned int i = 0; i < (max && max < 32 ? max : 32); i++)
		if ((present >> i & 1) == are_present)
			json_array_append_new(array, json_integer(i));
	return array;
}

static json_t *gpcs(const struct gpupart_topology *topo)
{
	unsigned int max = gpupart_topology_info(topo)->max_tpcs_per_gpc;
	json_t *array = json_array();

	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);

		json_array_append_new(array, json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}",
			"gpc", gpc, "gpc_phys", out_json_index(g->gpc_phys),
			"ugpu", out_json_index(g->ugpu), "tpcs", tpc_numbers(&g->tpcs),
			"present_tpc_phys", positions(g->present_tpcs, max, true),
			"floorswept_tpc_phys", positions(g->present_tpcs, max, false)));
	}
	return array;
}

static json_t *vgpcs(const struct gpupart_topology *topo)
{
	json_t *array = gpupart_topology_end_vgpc(topo) ? json_array() : json_null();

	for (unsigned int vgpc = 0; vgpc < gpupart_topology_end_vgpc(topo); vgpc++) {
		struct gpupart_tpcset tpcs = gpupart_topology_vgpc(topo, vgpc);

		if (gpupart_tpcset_empty(&tpcs))
			continue;
		json_array_append_new(array, json_pack("{s:i, s:b, s:o}", "vgpc", vgpc,
			"singleton", topology_is_singleton(topo, gpupart_tpcset_next(&tpcs, 0)),
			"tpcs", tpc_numbers(&tpcs)));
	}
	return array;
}

static json_t *ugpus(const struct gpupart_topology *topo)
{
	json_t *array = gpupart_topology_nr_ugpus(topo) ? json_array() : json_null();

	for (unsigned int ugpu = 0; ugpu < gpupart_topology_nr_ugpus(topo); ugpu++) {
		struct gpupart_tpcset tpcs = gpupart_topology_ugpu(topo, ugpu);

		json_array_append_new(array, json_pack("{s:i, s:o}", "ugpu", ugpu, "tpcs",
						       tpc_numbers(&tpcs)));
	}
	return array;
}

static json_t *tpcs(const struct gpupart_topology *topo)
{
	json_t *array = json_array();

	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++) {
		const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);
		json_t *sms = json_array();

		for (unsigned int i = 0; i < t->nr_sms; i++)
			json_array_append_new(sms, json_integer(t->sms[i]));
		json_array_append_new(array,
				      json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
						"tpc", tpc, "gpc", out_json_index(t->gpc),
						"tpc_in_gpc", out_json_index(t->tpc_in_gpc), "vgpc",
						out_json_index(t->vgpc), "tpc_in_vgpc",
						out_json_index(t->tpc_in_vgpc), "cpc",
						out_json_index(t->cpc), "ugpu",
						out_json_index(t->ugpu), "measured_tmd_bit",
						out_json_index(t->measured_bit), "smids", sms));
	}
	return array;
}

void topology_json(json_t *root, const struct gpupart_topology *topo)
{
	char hash[20];

	snprintf(hash, sizeof(hash), "%016lx", (unsigned long)gpupart_topology_hash(topo));
	json_object_update_new(root, json_pack(
		"{s:o, s:o, s:i, s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o}",
		"gpu", out_json_gpu(gpupart_topology_info(topo)),
		"compute_class", out_json_count(gpupart_topology_compute_class(topo)),
		"nr_sms", gpupart_topology_nr_sms(topo), "nr_tpcs", gpupart_topology_nr_tpcs(topo),
		"nr_gpcs", out_json_count(gpupart_topology_nr_gpcs(topo)),
		"nr_ugpus", out_json_count(gpupart_topology_nr_ugpus(topo)), "hash", hash,
		"ugpus", ugpus(topo), "gpcs", gpcs(topo), "vgpcs", vgpcs(topo),
		"tpcs", tpcs(topo)));
}
