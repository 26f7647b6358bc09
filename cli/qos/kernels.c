// SPDX-License-Identifier: MIT
/*
 * Computes progress from completion records. The progress is the sum of the solo times of ended
 * launches.
 */
#include <stdio.h>
#include <string.h>
#include "cli/qos/kernels.h"
#include "cli/qos/pace.h"
#include "cli/util/message.h"

static struct gpupart_records_function *find(struct gpupart_records *records, const char *name)
{
	for (unsigned int i = 0; i < records->nr_functions; i++)
		if (!strcmp(records->functions[i].name, name))
			return &records->functions[i];
	return NULL;
}

static void learn_times(struct gpupart_records *alone, const char *name, uint64_t count,
			uint64_t ns)
{
	struct gpupart_records_function *row = find(alone, name);

	if (!row && alone->nr_functions < GPUPART_RECORDS_NR_FUNCTIONS) {
		row = &alone->functions[alone->nr_functions++];
		snprintf(row->name, sizeof(row->name), "%s", name);
	}
	if (row) {
		row->count += count;
		row->ns += ns;
	}
}

/* Sets the count of graphs to the number of ended launches that no other entry counts. */
static void count_graphs(struct gpupart_records *records)
{
	struct gpupart_records_function *graphs = find(records, "(CUDA graphs)");
	uint64_t others = records->untimed;

	for (unsigned int i = 0; i < records->nr_functions; i++)
		if (&records->functions[i] != graphs)
			others += records->functions[i].count;
	if (graphs)
		graphs->count = pace_increase(records->ended, others);
}

uint64_t kernels_work(struct gpupart_records *alone, bool learn, struct kernels_look looks[2])
{
	struct gpupart_records *before = &looks[0].records, *now = &looks[1].records;
	double work = 0, known_ns = 0, other_ns = 0, one, longest = 0, part = 0;
	const uint64_t span = pace_increase(now->last_end_ns, before->last_end_ns);

	count_graphs(before);
	count_graphs(now);
	for (unsigned int i = 0; i < now->nr_functions; i++) {
		const struct gpupart_records_function *f = &now->functions[i];
		const struct gpupart_records_function *was = find(before, f->name);
		const struct gpupart_records_function *row = learn ? NULL : find(alone, f->name);
		uint64_t count = pace_increase(f->count, was ? was->count : 0);
		uint64_t ns = pace_increase(f->ns, was ? was->ns : 0);

		/* A function counts as soon as its name is known. */
		if (!count || !*f->name)
			continue;
		one = row ? (double)row->ns / row->count : (double)ns / count;
		longest = one > longest ? one : longest;
		work += row ? count * one : 0;
		*(row ? &known_ns : &other_ns) += ns;
		if (learn)
			learn_times(alone, f->name, count, ns);
	}
	/* Assume that unknown functions slow down as much as known functions. */
	work += other_ns * (known_ns > 0 ? work / known_ns : 1);
	/*
	 * The measured work lies between two completions. A running launch counts as at most one
	 * launch.
	 */
	if (before->last_end_ns && span)
		part = work * ((double)pace_increase(looks[1].at_ns, looks[0].at_ns) / span - 1);
	work += part > longest ? longest : part < -longest ? -longest : part;
	return work < 0 ? 0 : work < 1e18 ? work : 1e18;
}

json_t *kernels_json(const struct gpupart_records *alone)
{
	json_t *times = json_object();

	for (unsigned int i = 0; i < alone->nr_functions; i++)
		json_object_set_new(times, alone->functions[i].name,
				    json_integer(alone->functions[i].ns /
						 (alone->functions[i].count ?: 1)));
	return times;
}

int kernels_read(struct gpupart_records *alone, const char *path, const char *tenant)
{
	json_error_t error;
	json_t *o, *times, *ns, *root = json_load_file(path, 0, &error);
	const char *name;
	size_t i;

	if (!root)
		return usage_error("%s: %s", path, error.text);
	json_array_foreach(json_object_get(root, "tenants"), i, o)
		if (!json_unpack(o, "{s:s, s:o}", "name", &name, "kernels_ns", &times) &&
		    !strcmp(name, tenant))
			json_object_foreach(times, name, ns)
				if (json_integer_value(ns) > 0)
					learn_times(alone, name, 1, json_integer_value(ns));
	json_decref(root);
	return alone->nr_functions ? 0 :
	       usage_error("%s has no kernels of %s: it must be a file that 'gpupart qos "
			   "calibrate --json' wrote",
			   path, tenant);
}
