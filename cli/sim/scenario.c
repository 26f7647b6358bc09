// SPDX-License-Identifier: MIT
/*
 * Reads a scenario file with GPUs, kernels, graphs and streams. See Documentation/user/scenarios.md
 * for the format. The file scenario_steps.c reads the steps of programs.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "cli/sim/scenario.h"
#include "cli/sim/scenario_parts.h"
#include "cli/util/alloc.h"

#define MOST_BLOCKS	2147483647ull
#define MOST_NODES	4096u	/* in a graph */

/* ------------------------------------------------------------------------- pieces */

void *scenario_new(struct scenario *s, size_t nr, size_t size)
{
	struct scenario_piece *piece = alloc_zeroed(1, sizeof(*piece) + (nr + !nr) * size);

	piece->next = s->pieces;
	s->pieces = piece;
	return piece + 1;
}

void scenario_free(struct scenario *s)
{
	struct scenario_piece *piece;

	while ((piece = s->pieces)) {
		s->pieces = piece->next;
		free(piece);
	}
}

/*
 * Checks a name. Names are printed, so a name may not contain control characters. If a name
 * contains a zero byte, @text is NULL.
 */
static bool check_name(struct yaml *yaml, const yaml_node_t *node, const char *what,
		       const char *text)
{
	const char *c = text;

	while (c && (unsigned char)*c >= ' ' && *c != 127)
		c++;
	if (!text || !*text || *c || strlen(text) > 60)
		yaml_fail(yaml, node, "%s: a name must have 1 to 60 characters and no control "
			  "character", what);
	return !yaml->failed;
}

/* Returns NULL after an error message. */
static char *copy_name(struct scenario *s, const yaml_node_t *node, const char *what)
{
	char text[YAML_TEXT];

	if (!yaml_text(s->yaml, node, what, text) || !check_name(s->yaml, node, what, text))
		return NULL;
	return strcpy(scenario_new(s, strlen(text) + 1, 1), text);
}

unsigned int scenario_add(struct scenario *s, const yaml_node_t *node, const char *what,
			  const char **names, unsigned int *nr, unsigned int most)
{
	const char *name = node ? copy_name(s, node, what) : "main";
	unsigned int i;

	for (i = 0; name && i < *nr; i++)
		if (!strcmp(names[i], name))
			return i;
	if (!name)
		return 0;
	if (i == most) {
		yaml_fail(s->yaml, node, "%s: there are more than %u entries", what, most);
		return 0;
	}
	names[i] = name;
	return (*nr)++;
}

void scenario_take_process(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			   void *to)
{
	struct scenario *s = yaml->context;

	*(unsigned int *)to = scenario_add(s, node, key->name, s->processes,
					   &s->pipe.nr_processes, PIPE_MAX_PROGRAMS);
}

/* ----------------------------------------------------------------------- sections */

unsigned int scenario_find_index(struct scenario *s, const yaml_node_t *node, const char *what,
			    const struct section *section)
{
	const char *entry = *(char **)((char *)s + section->list), *name;
	unsigned int nr = *(unsigned int *)((char *)s + section->nr);
	char text[YAML_TEXT];

	if (!yaml_text(s->yaml, node, what, text))
		return 0;
	for (unsigned int i = 0; i < nr; i++, entry += section->size) {
		name = *(const char *const *)entry;
		if (name && !strcmp(name, text))
			return i;
	}
	yaml_fail(s->yaml, node, "%s: '%.60s' is not one of the %s", what, text, section->name);
	return 0;
}

void scenario_take_index(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			 void *to)
{
	*(unsigned int *)to = scenario_find_index(yaml->context, node, key->name, key->with);
}

static void take_section(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *map, void *to)
{
	const struct section *section = row->with;
	struct scenario *s = to;
	yaml_node_t *key, *node;
	char *entry = NULL;

	if (!map)
		yaml_fail(yaml, NULL, "has no '%s:'", row->name);
	if (section->most && yaml_size(map) > section->most)
		yaml_fail(yaml, map, "%s: there are more than %u entries", row->name,
			  section->most);
	if (map && yaml_only(yaml, map, row->name, NULL))
		entry = scenario_new(s, yaml_size(map), section->size);
	*(char **)((char *)s + section->list) = entry;
	for (unsigned int i = 0; entry && yaml_entry(yaml, map, i, &key, &node); i++) {
		*(char **)entry = copy_name(s, key, row->name);
		if (!yaml->failed)
			section->make(s, key, node, entry);
		entry += section->size;
	}
	*(unsigned int *)((char *)s + section->nr) = yaml_size(map);
}

/* --------------------------------------------------------------------------- sets */

static const struct kind {
	const char *word, *name;
	size_t at;			/* offset of its number in struct pipe_place */
} kinds[] = {
	{ "tpc", "TPC", offsetof(struct pipe_place, tpc) },
	{ "gpc", "GPC", offsetof(struct pipe_place, gpc) },
	{ "ugpu", "uGPU", offsetof(struct pipe_place, ugpu) },
};

/* Adds the TPCs of the parts that @list names. */
static void add_list(struct scenario *s, const yaml_node_t *node, const struct pipe_map *map,
		     const struct kind *kind, const char *list, struct pipe_set *set)
{
	struct gpupart_tpcset wanted, there = { 0 }, missing;
	unsigned int number, tpc;

	if (gpupart_tpcset_parse_list(cmd_gp, list, &wanted)) {
		yaml_fail(s->yaml, node, "set: %s", gpupart_error(cmd_gp));
		return;
	}
	for (unsigned int i = 0; i < map->nr_sms; i++) {
		number = *(const uint16_t *)((const char *)&map->sms[i] + kind->at);
		tpc = map->sms[i].tpc;
		gpupart_tpcset_add(&there, number);
		if (gpupart_tpcset_has(&wanted, number))
			set->allowed[tpc / 64] |= 1ull << tpc % 64;
	}
	missing = gpupart_tpcset_andnot(&wanted, &there);
	if (!gpupart_tpcset_empty(&missing))
		yaml_fail(s->yaml, node, "set: %s %d does not exist: the GPU has %u", kind->name,
			  gpupart_tpcset_next(&missing, 0), gpupart_tpcset_count(&there));
}

/*
 * Reads a set. Examples are "all", "0-3", "tpc:..", "gpc:1,2" and "ugpu:0". The sign "+" joins
 * several parts.
 */
const struct pipe_set *scenario_set(struct scenario *s, yaml_node_t *node, unsigned int gpu)
{
	char text[YAML_TEXT], *term, *rest = text, *colon;
	struct pipe_set *set;
	unsigned int i;

	if (!node || !yaml_text(s->yaml, node, "set", text) || !strcmp(text, "all"))
		return NULL;
	set = scenario_new(s, 1, sizeof(*set));
	while (!s->yaml->failed && (term = strsep(&rest, "+"))) {
		colon = strchr(term, ':');
		i = 0;
		/* The colon of a stride follows a digit. */
		if (colon && strspn(term, "0123456789-,") != (size_t)(colon - term)) {
			*colon = '\0';
			while (i < 3 && strcmp(term, kinds[i].word))
				i++;
			if (i == 3)
				yaml_fail(s->yaml, node, "set: '%.60s': must be tpc, gpc or ugpu",
					  term);
			term = colon + 1;
		}
		if (i < 3)
			add_list(s, node, &s->pipe.gpus[gpu].map, &kinds[i], term, set);
	}
	return set;
}

/* --------------------------------------------------------------------------- GPUs */

static void map_from_capture(struct scenario *s, const yaml_node_t *node, const char *source,
			     struct pipe_gpu *gpu)
{
	const struct gpupart_tpc *tpc;
	struct gpupart_topology *topo;
	struct pipe_map *map = &gpu->map;
	unsigned int i, j;

	if (gpupart_topology_open(cmd_gp, source, NULL, &topo)) {
		yaml_fail(s->yaml, node, "topology: %s", gpupart_error(cmd_gp));
		return;
	}
	memset(map, 0, sizeof(*map));
	map->nr_sms = gpupart_topology_nr_sms(topo);
	map->nr_tpcs = gpupart_topology_nr_tpcs(topo);
	map->nr_gpcs = gpupart_topology_nr_gpcs(topo);
	map->nr_vgpcs = gpupart_topology_end_vgpc(topo);
	for (i = 0; i < map->nr_tpcs && map->nr_sms <= PIPE_MAX_SMS; i++) {
		tpc = gpupart_topology_tpc(topo, i);
		for (j = 0; j < tpc->nr_sms; j++)
			map->sms[tpc->sms[j]] = (struct pipe_place){
				.tpc = i, .sm_in_tpc = j, .gpc = tpc->gpc < 0 ? 0 : tpc->gpc,
				.vgpc = tpc->vgpc >= 0 ? tpc->vgpc : tpc->gpc < 0 ? 0 : tpc->gpc,
				.ugpu = tpc->ugpu > 0 ? tpc->ugpu : 0,
			};
	}
	if (!map->nr_vgpcs)
		map->nr_vgpcs = map->nr_gpcs;
	if (map->nr_sms > PIPE_MAX_SMS)
		yaml_fail(s->yaml, node, "topology: there are %u SMs: must be at most %u",
			  map->nr_sms, PIPE_MAX_SMS);
	if (gpupart_topology_nr_ugpus(topo) > gpu->chip.nr_ugpus)
		gpu->chip.nr_ugpus = gpupart_topology_nr_ugpus(topo);
	gpupart_topology_close(topo);
}

static void take_chip(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	const struct pipe_chip *chip;
	struct pipe_gpu *gpu = to;
	char text[YAML_TEXT], names[256] = "";

	(void)key;
	if (!yaml_text(yaml, node, "gpu", text))
		return;
	chip = pipe_chip_find(text);
	if (chip) {
		gpu->chip = *chip;
		return;
	}
	for (unsigned int i = 0; pipe_chip_row(i); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", pipe_chip_row(i)->name);
	yaml_fail(yaml, node, "gpu: '%.60s' is not known: must be one of %s", text, names);
}

static void take_topology(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			  void *to)
{
	char text[YAML_TEXT];

	if (yaml_text(yaml, node, key->name, text))
		map_from_capture(yaml->context, node, text, to);
}

static void take_gpu_name(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			  void *to)
{
	struct scenario *s = yaml->context;

	(void)to;
	s->gpu_names[s->pipe.nr_gpus] = copy_name(s, node, key->name);
}

#define TOO_LONG "must be at most 1s"
#define GPU(member) YAML_AT(struct pipe_gpu, member)

static const struct yaml_key gpu_keys[] = {
	{ "chip", .take = take_chip, .required = "" },
	{ "topology", .take = take_topology },
	{ "name", .take = take_gpu_name },
	{ "mps", YAML_BOOL, GPU(mps) },
	{ "one-queue", YAML_BOOL, GPU(one_queue) },
	{ "slots", YAML_NUMBER, GPU(chip.slots), 1, 1024 },
	{ "channels", YAML_NUMBER, GPU(chip.channels), 1, 1024 },
	{ "copy-engines", YAML_NUMBER, GPU(chip.copy_engines), 1, 16 },
	{ "turn", YAML_NUMBER, GPU(turn), 0, 31 },
	{ "slice", YAML_TIME, GPU(chip.slice_ns), 0, 1000000000, TOO_LONG },
	{ 0 },
};

static void make_gpu(struct scenario *s, yaml_node_t *node, struct pipe_gpu *gpu)
{
	unsigned int nth = s->pipe.nr_gpus;

	gpu->line = yaml_line(node);
	if (node->type == YAML_MAPPING_NODE)
		yaml_read(s->yaml, node, "gpu", gpu_keys, gpu);
	else
		take_chip(s->yaml, NULL, node, gpu);
	s->made_up[nth] = !gpu->map.nr_sms && !gpu->chip.sample;
	if (s->yaml->failed)
		return;
	if (s->made_up[nth])
		pipe_map_even(&gpu->map, &gpu->chip);
	else if (!gpu->map.nr_sms)
		map_from_capture(s, node, gpu->chip.sample, gpu);
	/*
	 * A process needs a time slice that is longer than a switch. Otherwise it makes no
	 * progress, and the run may not end.
	 */
	if (gpu->chip.slice_ns < gpu->chip.switch_ns)
		yaml_fail(s->yaml, yaml_get(s->yaml, node, "slice"), "slice: %uns is too short: a "
			  "switch between processes takes %uus", gpu->chip.slice_ns,
			  gpu->chip.switch_ns / 1000);
}

static void check_gpu_name(struct scenario *s, const yaml_node_t *node, unsigned int nth)
{
	if (!s->gpu_names[nth])
		yaml_fail(s->yaml, node, "gpus: GPU number %u has no name", nth + 1);
	for (unsigned int i = 0; !s->yaml->failed && i < nth; i++)
		if (!strcmp(s->gpu_names[i], s->gpu_names[nth]))
			yaml_fail(s->yaml, node, "gpus: two GPUs have the name '%s'",
				  s->gpu_names[nth]);
}

static void take_gpus(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *one, void *to)
{
	yaml_node_t *list = yaml_get(yaml, yaml_root(yaml), "gpus"), *none, *node = one;
	unsigned int nr = list ? yaml_size(list) : 1;
	struct scenario *s = to;
	struct pipe_gpu *gpus;

	(void)key;
	if (!one == !list)
		yaml_fail(yaml, NULL, "must have exactly one of gpu and gpus");
	else if (list && yaml_is_list(yaml, list, "gpus") && (!nr || nr > PIPE_MAX_GPUS))
		yaml_fail(yaml, list, "gpus: there must be 1 to %d GPUs", PIPE_MAX_GPUS);
	gpus = scenario_new(s, nr, sizeof(*gpus));
	s->gpu_names = scenario_new(s, nr, sizeof(*s->gpu_names));
	s->pipe.gpus = gpus;
	for (; s->pipe.nr_gpus < nr && !yaml->failed; s->pipe.nr_gpus++) {
		if (list)
			yaml_entry(yaml, list, s->pipe.nr_gpus, &none, &node);
		make_gpu(s, node, &gpus[s->pipe.nr_gpus]);
		if (nr > 1 && !yaml->failed)
			check_gpu_name(s, node, s->pipe.nr_gpus);
	}
}

/* ------------------------------------------------------------------------ kernels */

#define KERNEL(member) YAML_AT(struct pipe_kernel, member)

static const struct yaml_key kernel_keys[] = {
	{ "blocks", YAML_NUMBER, KERNEL(blocks), 1, MOST_BLOCKS, "must be at least 1" },
	{ "threads", YAML_NUMBER, KERNEL(threads), 1, 65536 },
	{ "registers", YAML_NUMBER, KERNEL(registers), 1, 255 },
	{ "shared", YAML_BYTES, KERNEL(shared), 0, 1 << 30 },
	{ "cluster", YAML_NUMBER, KERNEL(cluster), 1, 64 },
	{ "cooperative", YAML_BOOL, KERNEL(cooperative) },
	{ "time", YAML_TIME, KERNEL(ns) },
	{ "work", YAML_NUMBER, KERNEL(work), 0, 100000000000ull },
	{ "every", YAML_NUMBER, KERNEL(every), 1, 10000 },
	{ "reads", YAML_BYTES, KERNEL(bytes), 0, 1ull << 40 },
	{ "from", YAML_WORD, KERNEL(from_l2), .wants = ": must be l2 or dram",
	  .with = (const char *const[]){ "dram", "l2", NULL } },
	{ 0 },
};

static void make_kernel(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry)
{
	struct pipe_kernel *kernel = entry;

	kernel->line = yaml_line(key);
	kernel->blocks = 1;
	kernel->threads = 128;
	if (yaml_read(s->yaml, node, kernel->name, kernel_keys, kernel) &&
	    !kernel->ns && !kernel->work && !kernel->bytes)
		yaml_fail(s->yaml, key, "kernel %s: must have the key time, work or reads",
			  kernel->name);
}

const struct section scenario_kernels = { SECTION(struct pipe_kernel, kernels), make_kernel, 0 };

/* ------------------------------------------------------------------------- graphs */

static int by_name(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void take_after(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *list, void *to)
{
	struct scenario *s = yaml->context;
	unsigned int i, *after = scenario_new(s, yaml_size(list), sizeof(*after));
	struct pipe_node *out = to;
	yaml_node_t *key, *node;
	char text[YAML_TEXT];
	const char *name = text;
	void *found;

	yaml_is_list(yaml, list, row->name);
	for (i = 0; yaml_entry(yaml, list, i, &key, &node); i++) {
		if (!yaml_text(yaml, node, "after", text))
			return;
		found = tfind(&name, &s->nodes.tree, by_name);
		if (found)
			after[i] = *(const char ***)found - s->nodes.names;
		else
			yaml_fail(yaml, node, "after: there is no node '%.60s' above this line",
				  text);
	}
	out->after = after;
	out->nr_after = i;
}

/*
 * Stores the name of a node. No earlier node may have this name. Later nodes can refer to this
 * name.
 */
static void take_node_name(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node,
			   void *to)
{
	struct scenario *s = yaml->context;
	const char **place = &s->nodes.names[s->nodes.nr];
	void *entry;

	(void)to;
	*place = copy_name(s, node, key->name);
	if (!*place)
		return;
	entry = tsearch(place, &s->nodes.tree, by_name);
	if (!entry)
		yaml_fail(yaml, NULL, "no memory");
	else if (*(const char ***)entry != place)
		yaml_fail(yaml, node, "node: '%s' is given twice", *place);
}

static const struct yaml_key node_keys[] = {
	{ "kernel", .take = scenario_take_index, YAML_AT(struct pipe_node, kernel),
	  .with = &scenario_kernels, .required = "" },
	{ "after", .take = take_after },
	{ "node", .take = take_node_name },
	{ 0 },
};

static void keep(void *place)
{
	(void)place;	/* a pointer into the scenario */
}

static void make_graph(struct scenario *s, yaml_node_t *key, yaml_node_t *list, void *entry)
{
	struct pipe_node *nodes = scenario_new(s, yaml_size(list), sizeof(*nodes));
	struct pipe_graph *graph = entry;
	yaml_node_t *node;

	s->nodes.names = scenario_new(s, yaml_size(list), sizeof(char *));
	s->nodes.tree = NULL;
	yaml_is_list(s->yaml, list, graph->name);
	if (!yaml_size(list))
		yaml_fail(s->yaml, list, "graph %s has no nodes", graph->name);
	if (yaml_size(list) > MOST_NODES)
		yaml_fail(s->yaml, list, "graph %s has more than %u nodes", graph->name,
			  MOST_NODES);
	for (s->nodes.nr = 0; yaml_entry(s->yaml, list, s->nodes.nr, &key, &node); s->nodes.nr++)
		yaml_read(s->yaml, node, graph->name, node_keys, &nodes[s->nodes.nr]);
	tdestroy(s->nodes.tree, keep);
	graph->nodes = nodes;
	graph->nr_nodes = s->nodes.nr;
}

const struct section scenario_graphs = { SECTION(struct pipe_graph, graphs), make_graph, 0 };

/* ------------------------------------------------------------------------ streams */

static void take_priority(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *node,
			  void *to)
{
	struct scenario *s = yaml->context;
	struct pipe_stream *stream = to;
	unsigned int highest = s->pipe.gpus[stream->gpu].chip.priorities - 1;
	struct yaml_key number = { row->name, YAML_NUMBER,
				   YAML_AT(struct pipe_stream, priority), 0, highest };
	char text[YAML_TEXT];

	if (!yaml_text(yaml, node, row->name, text) || !strcmp(text, "low"))
		return;
	if (!strcmp(text, "high"))
		stream->priority = highest;
	else
		yaml_read_value(yaml, &number, node, stream);
}

static void take_set(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	struct pipe_stream *stream = to;

	(void)key;
	stream->set = scenario_set(yaml->context, node, stream->gpu);
}

static const struct section gpus = {
	"gpus", offsetof(struct scenario, gpu_names), offsetof(struct scenario, pipe.nr_gpus),
	sizeof(char *), NULL, 0,
};

static const struct yaml_key stream_keys[] = {
	{ "gpu", .take = scenario_take_index, YAML_AT(struct pipe_stream, gpu), .with = &gpus },
	{ "process", .take = scenario_take_process, YAML_AT(struct pipe_stream, process),
	  .always = true },
	{ "priority", .take = take_priority },
	{ "set", .take = take_set },
	{ 0 },
};

static void make_stream(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry)
{
	struct pipe_stream *stream = entry;

	stream->line = yaml_line(key);
	yaml_read(s->yaml, node, stream->name, stream_keys, stream);
}

const struct section scenario_streams = { SECTION(struct pipe_stream, streams), make_stream, 0 };

/* ---------------------------------------------------------------------------- all */

#define HOST(member) YAML_AT(struct pipe_host, member)

static const struct yaml_key host_keys[] = {
	{ "launch", YAML_TIME, HOST(launch_ns), 0, 1000000000, TOO_LONG },
	{ "graph", YAML_TIME, HOST(graph_ns), 0, 1000000000, TOO_LONG },
	{ "copy", YAML_TIME, HOST(copy_ns), 0, 1000000000, TOO_LONG },
	{ "call", YAML_TIME, HOST(call_ns), 0, 1000000000, TOO_LONG },
	{ "sync", YAML_TIME, HOST(sync_ns), 0, 1000000000, TOO_LONG },
	{ "ring", YAML_NUMBER, HOST(ring), 1, 1 << 20 },
	{ 0 },
};

static const struct yaml_key scenario_keys[] = {
	{ "gpu", .take = take_gpus, .always = true },
	{ "cpu", YAML_MAP, YAML_AT(struct scenario, pipe.host), .with = host_keys },
	{ "kernels", .take = take_section, .with = &scenario_kernels },
	{ "graphs", .take = take_section, .with = &scenario_graphs },
	{ "streams", .take = take_section, .with = &scenario_streams },
	{ "programs", .take = take_section, .with = &scenario_program_list, .always = true },
	{ "stop",
		YAML_TIME, YAML_AT(struct scenario, pipe.stop_ns), 1, 0, "must be more than 0" },
	/* Other functions read the following sections. */
	{ .name = "title" }, { .name = "about" }, { .name = "gpus" }, { .name = "runs" },
	{ .name = "expect" }, { .name = "qos" },
	{ 0 },
};

static yaml_node_t *runs(struct yaml *yaml)
{
	return yaml_get(yaml, yaml_root(yaml), "runs");
}

bool scenario_run_name(struct yaml *yaml, unsigned int i, const char **name)
{
	yaml_node_t *map = runs(yaml), *key, *value;

	*name = NULL;
	if (!map)
		return !i;
	if (!yaml_entry(yaml, map, i, &key, &value))
		return false;
	*name = key && yaml_scalar(key) ? yaml_scalar(key) : "?";
	return true;
}

void scenario_choose_run(struct yaml *yaml, unsigned int i)
{
	yaml_node_t *map = runs(yaml), *key, *value;

	yaml->variables = NULL;
	if (!map || !yaml_only(yaml, map, "runs", NULL))
		return;
	if (!yaml_size(map))
		yaml_fail(yaml, map, "runs: is empty");
	else if (yaml_entry(yaml, map, i, &key, &value) &&
		 check_name(yaml, key, "runs", yaml_scalar(key)) &&
		 yaml_only(yaml, value, yaml_scalar(key), NULL))
		yaml->variables = value;
}

bool scenario_make(struct scenario *s, struct yaml *yaml, unsigned int i)
{
	*s = (struct scenario){ .yaml = yaml, .pipe.host = pipe_host_default };
	yaml->context = s;
	s->pipe.processes = s->processes;
	if (!yaml_only(yaml, yaml_root(yaml), "scenario", scenario_keys))
		return false;
	scenario_choose_run(yaml, i);
	return !yaml->failed && yaml_read(yaml, yaml_root(yaml), "scenario", scenario_keys, s);
}
