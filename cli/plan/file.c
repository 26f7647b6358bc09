// SPDX-License-Identifier: MIT
/* Writes and reads plans as JSON. A file may have any content. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/plan/file.h"
#include "cli/target/args.h"
#include "cli/target/check.h"
#include "cli/util/alloc.h"
#include "cli/util/input.h"
#include "cli/util/message.h"
#include "lib/private.h"

/*
 * The largest plan has less than a tenth of this size. Parsed JSON needs 20 times the memory of its
 * text.
 */
#define MAX_BYTES (1 << 20)

static json_t *json_ugpus(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	json_t *ugpus = json_array();
	struct gpupart_tpcset of;

	for (unsigned int ugpu = 0; ugpu < gpupart_topology_nr_ugpus(topo); ugpu++) {
		of = gpupart_topology_ugpu(topo, ugpu);
		if (gpupart_tpcset_intersects(&of, set))
			json_array_append_new(ugpus, json_integer(ugpu));
	}
	return ugpus;
}

json_t *plan_file_json(const struct gpupart_topology *topo, const struct gpupart_plan *plan,
		       const struct gpupart_tpcset *within, const struct gpupart_tpcset *limit,
		       const uint64_t *mem, const struct args_texts *rules, bool simulated)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	json_t *root = out_json_new("plan", info->simulated || simulated), *tenants = json_array();
	struct gpupart_tpcset left = *within;
	char hash[20];

	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)plan->topology_hash);
	json_object_update_new(root, json_pack("{s:o, s:s, s:o, s:b, s:I, s:o}",
		"gpu", out_json_gpu(info), "topology_hash", hash,
		"limit", limit ? out_json_set(topo, limit) : json_null(), "optimal", plan->optimal,
		"nr_steps", (json_int_t)plan->nr_steps, "tenants", tenants));
	for (unsigned int i = 0; i < plan->nr_tenants; i++) {
		const struct gpupart_plan_tenant *t = &plan->tenants[i];

		json_t *words = json_array();

		for (unsigned int n = 0; rules && n < rules[i].nr; n++)
			json_array_append_new(words, json_string(rules[i].texts[n]));
		json_array_append_new(tenants, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}",
			"name", t->name, "set", out_json_set(topo, &t->set),
			"ugpus", json_ugpus(topo, &t->set),
			"bound_to_ugpu", out_json_index(t->ugpu),
			"mem_bytes", mem && mem[i] ? json_integer(mem[i]) : json_null(),
			"rules", words));
		left = gpupart_tpcset_andnot(&left, &t->set);
	}
	json_object_set_new(root, "left", out_json_set(topo, &left));
	return root;
}

static int refuse(const char *words, const char *what, const char *value)
{
	return usage_error("--plan %s: %s%s%s", words, what, value ? ": " : "", value ? value : "");
}

/*
 * A set has a list, a mask and a number of TPCs, which must agree. In an edited plan, they may
 * differ.
 */
static bool read_set(json_t *set, struct gpupart_tpcset *tpcs)
{
	const char *list = json_string_value(json_object_get(set, "list"));
	const char *hex = json_string_value(json_object_get(set, "hex"));
	struct gpupart_tpcset same;

	return list && hex && !gpupart_tpcset_parse_list(NULL, list, tpcs) &&
	       !gpupart_tpcset_parse_hex(NULL, hex, &same) &&
	       gpupart_tpcset_equal(tpcs, &same) && !gpupart_tpcset_empty(tpcs) &&
	       json_integer_value(json_object_get(set, "nr_tpcs")) == gpupart_tpcset_count(tpcs);
}

/* Reads a quota. Plans of earlier versions have no quotas. */
static bool read_mem(json_t *mem, uint64_t *bytes)
{
	*bytes = json_is_integer(mem) && json_integer_value(mem) > 0 ? json_integer_value(mem) : 0;
	return *bytes || !mem || json_is_null(mem);
}

/* Reads rules by kernel name. Plans of earlier versions have no rules. */
static bool read_rules(json_t *list, struct args_texts *rules)
{
	json_t *rule;
	size_t i;

	json_array_foreach(list, i, rule) {
		if (!json_is_string(rule) || i == ARGS_MAX_TERMS)
			return false;
		rules->texts[rules->nr++] = alloc_text("%s", json_string_value(rule));
	}
	return !list || json_is_array(list);
}

static int read_tenant(const char *words, json_t *json, struct plan_file_tenant *t)
{
	const char *name = json_string_value(json_object_get(json, "name"));

	if (!name)
		return refuse(words, "a tenant has no name", NULL);
	if (!check_is_name(name))
		return refuse(words, "this is not a valid name of a tenant", name);
	if (!read_set(json_object_get(json, "set"), &t->tpcs))
		return refuse(words,
			      "'list', 'hex' and 'nr_tpcs' of a tenant's set contradict each other",
			      name);
	if (!read_mem(json_object_get(json, "mem_bytes"), &t->mem))
		return refuse(words, "'mem_bytes' is not a number of bytes", name);
	if (!read_rules(json_object_get(json, "rules"), &t->rules))
		return refuse(words, "'rules' is not a list of strings", name);
	snprintf(t->name, sizeof(t->name), "%s", name);
	gpupart_tpcset_format_list(&t->tpcs, t->set, sizeof(t->set));
	return 0;
}

/*
 * Reads the tenants. Rejects overlapping sets, because an edited plan may have such sets. Returns 0
 * or an exit status.
 */
static int read_tenants(const char *words, json_t *tenants, struct plan_file *file)
{
	struct gpupart_tpcset all = { 0 };
	struct plan_file_tenant *t;
	int status;
	size_t i;
	json_t *json;

	if (json_array_size(tenants) > GPUPART_PLAN_MAX_TENANTS)
		return refuse(words, "the file has too many tenants for one plan", NULL);
	json_array_foreach(tenants, i, json) {
		t = &file->tenants[file->nr];
		status = read_tenant(words, json, t);
		if (status)
			return status;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(t->name, file->tenants[j].name))
				return refuse(words, "the plan has this tenant twice", t->name);
		if (gpupart_tpcset_intersects(&all, &t->tpcs))
			return refuse(words, "a tenant has TPCs of another tenant", t->name);
		all = gpupart_tpcset_or(&all, &t->tpcs);
		file->nr++;
	}
	return 0;
}

static int read_root(const char *words, json_t *root, struct plan_file *file)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	const char *command = json_string_value(json_object_get(root, "command"));
	const char *hash = json_string_value(json_object_get(root, "topology_hash"));
	const char *pci = json_string_value(json_object_get(json_object_get(root, "gpu"), "pci"));

	if (!schema || strcmp(schema, "gpupart/1") || !command || strcmp(command, "plan"))
		return refuse(
			words,
			"this is not a plan: the file must be the output of 'gpupart plan --json'",
			NULL);
	if (!hash || strlen(hash) != 16 || strspn(hash, "0123456789abcdef") != 16)
		return refuse(words, "'topology_hash' is not a word of 16 hexadecimal digits",
			      hash ? hash : "missing");
	if (pci && strlen(pci) >= sizeof(file->pci))
		return refuse(words, "this is not the address of a GPU", pci);
	file->topology_hash = strtoull(hash, NULL, 16);
	snprintf(file->pci, sizeof(file->pci), "%s", pci ? pci : "");
	return read_tenants(words, json_object_get(root, "tenants"), file);
}

struct bounded {
	FILE *file;
	size_t left;	/* bytes that may still be read */
};

static size_t read_bounded(void *buffer, size_t len, void *arg)
{
	struct bounded *from = arg;
	size_t nr = fread(buffer, 1, len < from->left ? len : from->left, from->file);

	from->left -= nr;
	return nr;
}

/* @words is the value of --plan. This value contains @path, or @path and the name of a tenant. */
static int read_file(const char *words, const char *path, struct plan_file *file)
{
	const char *why;
	struct bounded from = { strcmp(path, "-") ? input_open(path, &why) : stdin, MAX_BYTES };
	json_error_t error;
	json_t *root;
	int status;

	memset(file, 0, sizeof(*file));
	if (!from.file)
		return refuse(words, why, NULL);
	root = json_load_callback(read_bounded, &from, JSON_REJECT_DUPLICATES, &error);
	if (from.file != stdin)
		fclose(from.file);
	if (!from.left)
		status = usage_error("--plan %s: a plan must have at most %d bytes", words,
				     MAX_BYTES - 1);
	else if (!root)
		status = usage_error("--plan %s: line %d: not JSON: %s", words, error.line,
				     error.text);
	else
		status = read_root(words, root, file);
	json_decref(root);
	return status;
}

int plan_file_read(const char *path, struct plan_file *file)
{
	int status = read_file(*path ? path : "''", path, file);

	if (!status && !file->nr)
		return refuse(path, "this plan has no tenants", NULL);
	return status;
}

int plan_file_read_one(const char *words, struct plan_file *file,
		       const struct plan_file_tenant **tenant)
{
	const char *colon = strrchr(words, ':');
	char *path;
	int status;

	if (!colon || colon == words || !colon[1] || strlen(colon + 1) >= sizeof((*tenant)->name))
		return refuse(*words ? words : "''",
			      "the value must be FILE:NAME, where FILE is a plan and NAME is one of "
			      "its tenants",
			      NULL);
	path = alloc_text("%.*s", (int)(colon - words), words);
	/* Standard input belongs to the program, so it cannot be the plan. */
	status = strcmp(path, "-") ? read_file(words, path, file) :
				     refuse(words, "must be a file", NULL);
	free(path);
	for (unsigned int i = 0; i < file->nr && !status; i++)
		if (!strcmp(file->tenants[i].name, colon + 1)) {
			*tenant = &file->tenants[i];
			return 0;
		}
	return status ?: refuse(words, "this plan has no tenant with this name", colon + 1);
}

int plan_file_check(const char *words, const struct gpupart_topology *topo,
		    const struct plan_file *file)
{
	int err = gpupart_plan_check(cmd_gp, topo, file->topology_hash);

	for (unsigned int i = 0; i < file->nr && !err; i++)
		err = gpupart_set_check(cmd_gp, topo, &file->tenants[i].tpcs);
	return err ? refuse(words, gpupart_error(cmd_gp), NULL) : 0;
}
