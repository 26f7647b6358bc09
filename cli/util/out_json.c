// SPDX-License-Identifier: MIT
/*
 * Writes results as JSON with the schema "gpupart/1". Names are stable. An unknown value is null.
 * The name of an index says what the index counts.
 */
#include <stdlib.h>
#include "cli/util/alloc.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"
#include "lib/private.h"

static void *allocate(size_t size)
{
	return alloc_resized(NULL, 1, size);
}

void out_json_alloc(void)
{
	json_set_alloc_funcs(allocate, free);
}

json_t *out_json_new(const char *command, bool simulated)
{
	return json_pack("{s:s, s:s, s:b}", "schema", "gpupart/1", "command", command,
			 "simulated", simulated);
}

json_t *out_json_index(json_int_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

json_t *out_json_text(const char *text)
{
	json_t *string = *text ? json_string(text) : NULL;

	/* JSON cannot contain text that is not UTF-8. */
	return string ? string : json_null();
}

json_t *out_json_count(unsigned int value)
{
	return value ? json_integer(value) : json_null();
}

json_t *out_json_gpu(const struct gpupart_gpu_info *info)
{
	char source[280];

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}",
			 "name", out_json_text(info->name),
			 "pci", out_json_text(info->pci),
			 "uuid", out_json_text(info->uuid),
			 "driver", out_json_text(info->driver),
			 "chip_id", out_json_count(info->chip_id),
			 "mig", info->mig < 0 ? json_null() : json_boolean(info->mig),
			 "max_gpcs", out_json_count(info->max_gpcs),
			 "max_tpcs_per_gpc", out_json_count(info->max_tpcs_per_gpc),
			 "simulated", info->simulated,
			 "source", out_json_text(paths_source(info->source, source,
							       sizeof(source))),
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

json_t *out_json_tpcs(const struct gpupart_tpcset *set)
{
	char list[GPUPART_TPCSET_STRLEN];

	if (gpupart_tpcset_empty(set))
		return json_null();
	gpupart_tpcset_format_list(set, list, sizeof(list));
	return json_pack("{s:s, s:i}", "list", list, "nr_tpcs", gpupart_tpcset_count(set));
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

void out_json_write(struct out *out, json_t *root)
{
	/* Ignore write errors here, because out_close() reports them. */
	json_dumpf(root, out->file, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(4));
	fputc('\n', out->file);
	json_decref(root);
}

void out_json_list(struct out *out, const char *command, bool simulated, const char *key,
		   json_t *rows)
{
	json_t *root = rows ? out_json_new(command, simulated) : NULL;

	if (!root)
		return;
	json_object_set_new(root, key, rows);
	out_json_write(out, root);
}
