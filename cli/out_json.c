// SPDX-License-Identifier: MIT
/*
 * Results as JSON, schema "gpupart/1": names are stable, what is not known is null, an
 * index is named by its space. Must not know where a topology comes from.
 */
#include <string.h>
#include "out.h"

json_t *out_json_new(const char *command, bool simulated)
{
	return json_pack("{s:s, s:s, s:b}", "schema", "gpupart/1", "command", command,
			 "simulated", simulated);
}

json_t *out_json_index(int value)
{
	return value < 0 ? json_null() : json_integer(value);
}

json_t *out_json_text(const char *text)
{
	json_t *string = *text ? json_string(text) : NULL;

	/* What is no UTF-8 cannot stand in JSON. */
	return string ? string : json_null();
}

static json_t *count_or_null(unsigned int value)
{
	return value ? json_integer(value) : json_null();
}

json_t *out_json_gpu(const struct gpupart_gpu_info *info)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}",
			 "name", out_json_text(info->name),
			 "pci", out_json_text(info->pci),
			 "uuid", out_json_text(info->uuid),
			 "driver", out_json_text(info->driver),
			 "chip_id", count_or_null(info->chip_id),
			 "mig", info->mig < 0 ? json_null() : json_boolean(info->mig),
			 "max_gpcs", count_or_null(info->max_gpcs),
			 "max_tpcs_per_gpc", count_or_null(info->max_tpcs_per_gpc),
			 "simulated", info->simulated,
			 "source", out_json_text(info->source),
			 "origin", out_json_text(info->origin));
}

json_t *out_json_set(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	json_t *gpcs = json_array();
	char list[GPUPART_TPCSET_STRLEN], hex[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(set, list, sizeof(list));
	gpupart_tpcset_format_hex(set, hex, sizeof(hex));
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);

		if (!gpupart_tpcset_empty(&g->tpcs) && gpupart_tpcset_subset(&g->tpcs, set))
			json_array_append_new(gpcs, json_integer(gpc));
	}
	return json_pack("{s:s, s:s, s:i, s:o}", "list", list, "hex", hex, "nr_tpcs",
			 gpupart_tpcset_count(set), "whole_gpcs", gpcs);
}

json_t *out_json_counters(const struct gpupart_counters *c)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "launches", (json_int_t)c->launches,
			 "confined", (json_int_t)c->confined,
			 "widened_empty", (json_int_t)c->widened_empty,
			 "widened_driver", (json_int_t)c->widened_driver,
			 "widened_cluster", (json_int_t)c->widened_cluster,
			 "widened_cooperative", (json_int_t)c->widened_cooperative,
			 "unconfinable_version", (json_int_t)c->unconfinable_version,
			 "unconfinable_map", (json_int_t)c->unconfinable_map,
			 "unconfinable_gpu", (json_int_t)c->unconfinable_gpu,
			 "graphs_reapplied", (json_int_t)c->graphs_reapplied,
			 "graphs_stale", (json_int_t)c->graphs_stale,
			 "next_dropped", (json_int_t)c->next_dropped,
			 "device_launches", (json_int_t)c->device_launches);
}

static json_t *tpc_numbers(const struct gpupart_tpcset *set)
{
	json_t *array = json_array();

	for (int tpc = gpupart_tpcset_next(set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(set, tpc + 1))
		json_array_append_new(array, json_integer(tpc));
	return array;
}

/* The positions that @present has, or has not, below @max; null where not told. */
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
	json_t *array = json_array();

	if (!gpupart_topology_end_vgpc(topo)) {
		json_decref(array);
		return json_null();
	}
	for (unsigned int vgpc = 0; vgpc < gpupart_topology_end_vgpc(topo); vgpc++) {
		struct gpupart_tpcset tpcs = gpupart_topology_vgpc(topo, vgpc);

		if (gpupart_tpcset_empty(&tpcs))
			continue;
		json_array_append_new(array, json_pack("{s:i, s:b, s:o}", "vgpc", vgpc,
			"singleton", out_is_singleton(topo, gpupart_tpcset_next(&tpcs, 0)),
			"tpcs", tpc_numbers(&tpcs)));
	}
	return array;
}

static json_t *ugpus(const struct gpupart_topology *topo)
{
	json_t *array = json_array();

	if (!gpupart_topology_nr_ugpus(topo)) {
		json_decref(array);
		return json_null();
	}
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

void out_json_topology(json_t *root, const struct gpupart_topology *topo)
{
	char hash[20];

	snprintf(hash, sizeof(hash), "%016lx", (unsigned long)gpupart_topology_hash(topo));
	json_object_set_new(root, "gpu", out_json_gpu(gpupart_topology_info(topo)));
	json_object_set_new(root, "nr_sms", json_integer(gpupart_topology_nr_sms(topo)));
	json_object_set_new(root, "nr_tpcs", json_integer(gpupart_topology_nr_tpcs(topo)));
	json_object_set_new(root, "nr_gpcs", count_or_null(gpupart_topology_nr_gpcs(topo)));
	json_object_set_new(root, "nr_ugpus", count_or_null(gpupart_topology_nr_ugpus(topo)));
	json_object_set_new(root, "hash", json_string(hash));
	json_object_set_new(root, "ugpus", ugpus(topo));
	json_object_set_new(root, "gpcs", gpcs(topo));
	json_object_set_new(root, "vgpcs", vgpcs(topo));
	json_object_set_new(root, "tpcs", tpcs(topo));
}

void out_json_write(struct out *out, json_t *root)
{
	/* What does not arrive is seen by out_close(). */
	json_dumpf(root, out->file, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(4));
	fputc('\n', out->file);
	json_decref(root);
}
