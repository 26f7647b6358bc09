// SPDX-License-Identifier: MIT
/*
 * A scenario file (Documentation/scenarios.md) as what the pipeline runs: GPUs, kernels,
 * graphs, streams. The steps of programs are scenario_steps.c's. Knows nothing of what
 * comes out.
 */
#include <stdlib.h>
#include <string.h>
#include "scenario.h"
#include "scenario_parts.h"

#define MOST_BLOCKS	2147483647ull
#define MOST_NODES	4096u	/* of a graph */

/* ------------------------------------------------------------------------- pieces */

void *scenario_new(struct scenario *s, size_t nr, size_t size)
{
	struct scenario_piece *piece = calloc(1, sizeof(*piece) + (nr + !nr) * size);

	if (!piece) {
		yaml_fail(s->yaml, NULL, "no memory");
		return NULL;
	}
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

char *scenario_name(struct scenario *s, const yaml_node_t *node, const char *what)
{
	char text[YAML_TEXT], *name, *c;

	if (!yaml_text(s->yaml, node, what, text))
		return NULL;
	for (c = text; *c && ((unsigned char)*c >= ' ' && *c != 127); c++)
		;
	if (!*text || *c || strlen(text) > 60) {
		yaml_fail(s->yaml, node, "%s: a name has 1 to 60 characters, none of them a "
			  "control character", what);
		return NULL;
	}
	name = scenario_new(s, strlen(text) + 1, 1);
	return name ? strcpy(name, text) : NULL;
}

/* The entries of a section; false: it is not there. */
static bool section(struct scenario *s, const char *key, yaml_node_t **node)
{
	*node = yaml_get(s->yaml, yaml_root(s->yaml), key);
	return *node && yaml_only(s->yaml, *node, key, NULL);
}

/* --------------------------------------------------------------------------- sets */

static bool add_list(struct scenario *s, const yaml_node_t *node, const struct pipe_map *map,
		     const char *kind, const char *list, struct pipe_set *set)
{
	struct gpupart_tpcset wanted;
	unsigned int i, of;
	bool any = false;

	if (gpupart_tpcset_parse_list(s->gp, list, &wanted)) {
		yaml_fail(s->yaml, node, "set: %s", gpupart_error(s->gp));
		return false;
	}
	for (i = 0; i < map->nr_sms; i++) {
		of = !strcmp(kind, "gpc") ? map->sms[i].gpc :
		     !strcmp(kind, "ugpu") ? map->sms[i].ugpu : map->sms[i].tpc;
		if (!gpupart_tpcset_has(&wanted, of))
			continue;
		set->allowed[map->sms[i].tpc / 64] |= 1ull << map->sms[i].tpc % 64;
		any = true;
	}
	for (i = 0; !strcmp(kind, "tpc") && i < 256; i++)
		if (gpupart_tpcset_has(&wanted, i) && i >= map->nr_tpcs) {
			yaml_fail(s->yaml, node, "set: TPC %u is not there: the GPU has %u", i,
				  map->nr_tpcs);
			return false;
		}
	if (!any)
		yaml_fail(s->yaml, node, "set: '%.60s' has no TPC of this GPU", list);
	return any;
}

/* "0-3", "tpc:..", "gpc:1,2", "ugpu:0", joined by "+", or all. */
const struct pipe_set *scenario_set(struct scenario *s, const yaml_node_t *map,
				    unsigned int gpu)
{
	const yaml_node_t *node = yaml_get(s->yaml, map, "set");
	char text[YAML_TEXT], *term, *next, *colon;
	struct pipe_set *set;

	if (!node || !yaml_text(s->yaml, node, "set", text) || !strcmp(text, "all"))
		return NULL;
	set = scenario_new(s, 1, sizeof(*set));
	for (term = text; set && term; term = next) {
		next = strchr(term, '+');
		if (next)
			*next++ = '\0';
		colon = strchr(term, ':');
		/* A stride has a colon too, after a digit. */
		if (colon && strspn(term, "0123456789-,") != (size_t)(colon - term)) {
			*colon++ = '\0';
			if (strcmp(term, "tpc") && strcmp(term, "gpc") && strcmp(term, "ugpu")) {
				yaml_fail(s->yaml, node, "set: '%.60s' is none of tpc, gpc, ugpu",
					  term);
				return NULL;
			}
		} else {
			colon = term;
			term = (char *)"tpc";
		}
		if (!add_list(s, node, &s->pipe.gpus[gpu].map, term, colon, set))
			return NULL;
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

	if (gpupart_topology_open(s->gp, source, NULL, &topo)) {
		yaml_fail(s->yaml, node, "topology: %s", gpupart_error(s->gp));
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
		yaml_fail(s->yaml, node, "topology: %u SMs are more than %u", map->nr_sms,
			  PIPE_MAX_SMS);
	if (gpupart_topology_nr_ugpus(topo) > gpu->chip.nr_ugpus)
		gpu->chip.nr_ugpus = gpupart_topology_nr_ugpus(topo);
	gpupart_topology_close(topo);
}

static void find_chip(struct scenario *s, const yaml_node_t *node, struct pipe_gpu *gpu)
{
	const struct pipe_chip *chip;
	char text[YAML_TEXT], names[256] = "";
	unsigned int i;

	if (!yaml_text(s->yaml, node, "gpu", text))
		return;
	chip = pipe_chip_find(text);
	if (chip) {
		gpu->chip = *chip;
		return;
	}
	for (i = 0; pipe_chip_row(i); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", pipe_chip_row(i)->name);
	yaml_fail(s->yaml, node, "gpu: '%.60s' is not known; there are %s", text, names);
}

static void number(struct scenario *s, const yaml_node_t *map, const char *key, uint64_t least,
		   uint64_t most, unsigned int *value)
{
	const yaml_node_t *node = yaml_get(s->yaml, map, key);
	uint64_t read = *value;

	yaml_number(s->yaml, map, key, most, &read);
	if (node && read < least)
		yaml_fail(s->yaml, node, "%s: %llu is less than %llu", key,
			  (unsigned long long)read, (unsigned long long)least);
	*value = read;
}

static void short_time(struct scenario *s, const yaml_node_t *map, const char *key,
		       unsigned int *ns)
{
	uint64_t read = *ns;

	yaml_time(s->yaml, map, key, &read);
	if (read > 1000000000)
		yaml_fail(s->yaml, yaml_get(s->yaml, map, key), "%s: is longer than 1s", key);
	*ns = read;
}

static void make_gpu(struct scenario *s, const yaml_node_t *node, struct pipe_gpu *gpu,
		     const char **name, bool *made_up)
{
	static const char *const known[] = {
		"name", "chip", "topology", "mps", "one-queue", "slots", "channels",
		"copy-engines", "slice", "turn", NULL,
	};
	const yaml_node_t *chip = node, *source, *named;
	char text[YAML_TEXT];

	gpu->line = yaml_line(node);
	if (node->type == YAML_MAPPING_NODE) {
		chip = yaml_get(s->yaml, node, "chip");
		if (!yaml_only(s->yaml, node, "gpu", known))
			return;
		if (!chip) {
			yaml_fail(s->yaml, node, "gpu: has no chip");
			return;
		}
	}
	find_chip(s, chip, gpu);
	if (s->yaml->failed)
		return;
	source = yaml_get(s->yaml, node, "topology");
	if (source && yaml_text(s->yaml, source, "topology", text))
		map_from_capture(s, source, text, gpu);
	else if (gpu->chip.sample)
		map_from_capture(s, node, gpu->chip.sample, gpu);
	else
		pipe_map_even(&gpu->map, &gpu->chip);
	*made_up = !source && !gpu->chip.sample;
	named = yaml_get(s->yaml, node, "name");
	*name = named ? scenario_name(s, named, "name") : NULL;
	yaml_bool(s->yaml, node, "mps", &gpu->mps);
	yaml_bool(s->yaml, node, "one-queue", &gpu->one_queue);
	number(s, node, "slots", 1, 1024, &gpu->chip.slots);
	number(s, node, "channels", 1, 1024, &gpu->chip.channels);
	number(s, node, "copy-engines", 1, 16, &gpu->chip.copy_engines);
	number(s, node, "turn", 0, 31, &gpu->turn);
	short_time(s, node, "slice", &gpu->chip.slice_ns);
	if (!gpu->chip.slice_ns)
		yaml_fail(s->yaml, node, "slice: 0 is no time");
}

static void check_gpu_name(struct scenario *s, const yaml_node_t *node, unsigned int nth)
{
	unsigned int i;

	for (i = 0; s->gpu_names[nth] && i < nth; i++)
		if (s->gpu_names[i] && !strcmp(s->gpu_names[i], s->gpu_names[nth]))
			yaml_fail(s->yaml, node, "gpus: two are named '%s'", s->gpu_names[nth]);
}

static void make_gpus(struct scenario *s)
{
	yaml_node_t *list = yaml_get(s->yaml, yaml_root(s->yaml), "gpus"), *key, *node;
	yaml_node_t *one = yaml_get(s->yaml, yaml_root(s->yaml), "gpu");
	unsigned int i, nr = list ? yaml_size(list) : 1;
	struct pipe_gpu *gpus;

	if (!one == !list || (list && !yaml_is_list(s->yaml, list, "gpus"))) {
		yaml_fail(s->yaml, NULL, "wants one of gpu and gpus");
		return;
	}
	if (!nr || nr > PIPE_MAX_GPUS) {
		yaml_fail(s->yaml, list, "gpus: wants 1 to %d", PIPE_MAX_GPUS);
		return;
	}
	gpus = scenario_new(s, nr, sizeof(*gpus));
	for (i = 0; gpus && i < nr && !s->yaml->failed; i++) {
		node = one;
		if (list)
			yaml_entry(s->yaml, list, i, &key, &node);
		make_gpu(s, node, &gpus[i], &s->gpu_names[i], &s->made_up[i]);
		if (i)
			check_gpu_name(s, node, i);
	}
	s->pipe.gpus = gpus;
	s->pipe.nr_gpus = nr;
}

/* ------------------------------------------------------------------------ kernels */

static void make_kernel(struct scenario *s, const yaml_node_t *key, const yaml_node_t *node,
			struct pipe_kernel *kernel)
{
	static const char *const known[] = {
		"blocks", "threads", "registers", "shared", "cluster", "cooperative", "time",
		"work", "every", "reads", "from", NULL,
	};
	const yaml_node_t *from = yaml_get(s->yaml, node, "from");
	uint64_t shared = 0, blocks = 1;
	char text[YAML_TEXT];

	kernel->name = scenario_name(s, key, "kernels");
	kernel->line = yaml_line(key);
	kernel->threads = 128;
	if (!kernel->name || !yaml_only(s->yaml, node, kernel->name, known))
		return;
	yaml_number(s->yaml, node, "blocks", MOST_BLOCKS, &blocks);
	if (!blocks)
		yaml_fail(s->yaml, yaml_get(s->yaml, node, "blocks"), "blocks: 0 is no grid");
	kernel->blocks = blocks;
	number(s, node, "threads", 1, 65536, &kernel->threads);
	number(s, node, "registers", 1, 255, &kernel->registers);
	yaml_bytes(s->yaml, node, "shared", 1 << 30, &shared);
	kernel->shared = shared;
	number(s, node, "cluster", 1, 64, &kernel->cluster);
	yaml_bool(s->yaml, node, "cooperative", &kernel->cooperative);
	yaml_time(s->yaml, node, "time", &kernel->ns);
	yaml_number(s->yaml, node, "work", 100000000000ull, &kernel->work);
	number(s, node, "every", 1, 10000, &kernel->every);
	yaml_bytes(s->yaml, node, "reads", 1ull << 40, &kernel->bytes);
	if (from && yaml_text(s->yaml, from, "from", text)) {
		kernel->from_l2 = !strcmp(text, "l2");
		if (!kernel->from_l2 && strcmp(text, "dram"))
			yaml_fail(s->yaml, from, "from: '%.60s' is neither l2 nor dram", text);
	}
	if (!kernel->ns && !kernel->work && !kernel->bytes)
		yaml_fail(s->yaml, key, "kernel %s: has none of time, work and reads",
			  kernel->name);
}

static void make_kernels(struct scenario *s)
{
	struct pipe_kernel *kernels;
	yaml_node_t *map, *key, *node;
	unsigned int i;

	if (!section(s, "kernels", &map))
		return;
	kernels = scenario_new(s, yaml_size(map), sizeof(*kernels));
	for (i = 0; kernels && yaml_entry(s->yaml, map, i, &key, &node) && !s->yaml->failed; i++)
		make_kernel(s, key, node, &kernels[i]);
	s->pipe.kernels = kernels;
	s->pipe.nr_kernels = yaml_size(map);
}

/* ------------------------------------------------------------------------- graphs */

static bool find_after(struct scenario *s, const yaml_node_t *list, const char *const *names,
		       unsigned int nr, struct pipe_node *out)
{
	unsigned int i, j, *after = scenario_new(s, yaml_size(list), sizeof(*after));
	yaml_node_t *key, *node;
	char text[YAML_TEXT];

	if (!after || !yaml_is_list(s->yaml, list, "after"))
		return false;
	for (i = 0; yaml_entry(s->yaml, list, i, &key, &node); i++) {
		if (!yaml_text(s->yaml, node, "after", text))
			return false;
		for (j = 0; j < nr && strcmp(names[j], text); j++)
			;
		if (j == nr) {
			yaml_fail(s->yaml, node, "after: no node above is named '%.60s'", text);
			return false;
		}
		after[i] = j;
	}
	out->after = after;
	out->nr_after = yaml_size(list);
	return true;
}

/* A name that no node above has. */
static const char *node_name(struct scenario *s, const yaml_node_t *node,
			     const char *const *names, unsigned int nr)
{
	const char *name = scenario_name(s, node, "node");
	unsigned int i;

	for (i = 0; name && i < nr; i++)
		if (!strcmp(names[i], name)) {
			yaml_fail(s->yaml, node, "node: '%s' is there twice", name);
			return NULL;
		}
	return name;
}

static void make_graph(struct scenario *s, const yaml_node_t *list, struct pipe_graph *graph)
{
	static const char *const known[] = { "node", "kernel", "after", NULL };
	const char **names = scenario_new(s, yaml_size(list), sizeof(*names));
	struct pipe_node *nodes = scenario_new(s, yaml_size(list), sizeof(*nodes));
	yaml_node_t *key, *node, *name, *after;
	unsigned int i;

	if (!names || !nodes || !yaml_is_list(s->yaml, list, graph->name))
		return;
	if (yaml_size(list) > MOST_NODES)
		yaml_fail(s->yaml, list, "graph %s: has more than %u nodes", graph->name,
			  MOST_NODES);
	for (i = 0; !s->yaml->failed && yaml_entry(s->yaml, list, i, &key, &node); i++) {
		if (!yaml_only(s->yaml, node, graph->name, known))
			return;
		name = yaml_get(s->yaml, node, "node");
		names[i] = name ? node_name(s, name, names, i) : "";
		if (!scenario_find_kernel(s, node, &nodes[i].kernel))
			return;
		after = yaml_get(s->yaml, node, "after");
		if (!names[i] || (after && !find_after(s, after, names, i, &nodes[i])))
			return;
	}
	if (!i)
		yaml_fail(s->yaml, list, "graph %s: has no node", graph->name);
	graph->nodes = nodes;
	graph->nr_nodes = i;
}

static void make_graphs(struct scenario *s)
{
	struct pipe_graph *graphs;
	yaml_node_t *map, *key, *node;
	unsigned int i;

	if (!section(s, "graphs", &map))
		return;
	graphs = scenario_new(s, yaml_size(map), sizeof(*graphs));
	for (i = 0; graphs && yaml_entry(s->yaml, map, i, &key, &node) && !s->yaml->failed; i++) {
		graphs[i].name = scenario_name(s, key, "graphs");
		if (graphs[i].name)
			make_graph(s, node, &graphs[i]);
	}
	s->pipe.graphs = graphs;
	s->pipe.nr_graphs = yaml_size(map);
}

/* ------------------------------------------------------------------------ streams */

unsigned int scenario_process(struct scenario *s, const yaml_node_t *map)
{
	const yaml_node_t *node = yaml_get(s->yaml, map, "process");
	const char *name = node ? scenario_name(s, node, "process") : "main";
	unsigned int i;

	if (!name)
		return 0;
	for (i = 0; i < s->pipe.nr_processes; i++)
		if (!strcmp(s->processes[i], name))
			return i;
	if (i == PIPE_MAX_PROGRAMS) {
		yaml_fail(s->yaml, node, "process: there are more than %d", PIPE_MAX_PROGRAMS);
		return 0;
	}
	s->processes[s->pipe.nr_processes++] = name;
	return i;
}

static unsigned int find_gpu(struct scenario *s, const yaml_node_t *map)
{
	const yaml_node_t *node = yaml_get(s->yaml, map, "gpu");
	char text[YAML_TEXT];
	unsigned int i;

	if (!node || !yaml_text(s->yaml, node, "gpu", text))
		return 0;
	for (i = 0; i < s->pipe.nr_gpus; i++)
		if (s->gpu_names[i] && !strcmp(s->gpu_names[i], text))
			return i;
	yaml_fail(s->yaml, node, "gpu: none of gpus is named '%.60s'", text);
	return 0;
}

static void find_priority(struct scenario *s, const yaml_node_t *map, struct pipe_stream *stream)
{
	unsigned int levels = s->pipe.gpus[stream->gpu].chip.priorities;
	const yaml_node_t *node = yaml_get(s->yaml, map, "priority");
	uint64_t level = 0;
	char text[YAML_TEXT];

	if (!node || !yaml_text(s->yaml, node, "priority", text))
		return;
	if (!strcmp(text, "high"))
		level = levels - 1;
	else if (strcmp(text, "low"))
		yaml_number(s->yaml, map, "priority", levels - 1, &level);
	stream->priority = level;
}

static void make_streams(struct scenario *s)
{
	static const char *const known[] = { "set", "priority", "gpu", "process", NULL };
	struct pipe_stream *streams;
	yaml_node_t *map, *key, *node;
	unsigned int i;

	if (!section(s, "streams", &map))
		return;
	streams = scenario_new(s, yaml_size(map), sizeof(*streams));
	for (i = 0; streams && yaml_entry(s->yaml, map, i, &key, &node) && !s->yaml->failed; i++) {
		streams[i].name = scenario_name(s, key, "streams");
		streams[i].line = yaml_line(key);
		if (!streams[i].name || !yaml_only(s->yaml, node, streams[i].name, known))
			return;
		streams[i].gpu = find_gpu(s, node);
		streams[i].process = scenario_process(s, node);
		find_priority(s, node, &streams[i]);
		streams[i].set = scenario_set(s, node, streams[i].gpu);
	}
	s->pipe.streams = streams;
	s->pipe.nr_streams = yaml_size(map);
}

/* ---------------------------------------------------------------------------- all */

static void make_host(struct scenario *s)
{
	static const char *const known[] = {
		"launch", "graph", "copy", "call", "sync", "ring", NULL,
	};
	const yaml_node_t *node = yaml_get(s->yaml, yaml_root(s->yaml), "cpu");
	struct pipe_host *host = &s->pipe.host;

	*host = pipe_host_default;
	if (!node || !yaml_only(s->yaml, node, "cpu", known))
		return;
	short_time(s, node, "launch", &host->launch_ns);
	short_time(s, node, "graph", &host->graph_ns);
	short_time(s, node, "copy", &host->copy_ns);
	short_time(s, node, "call", &host->call_ns);
	short_time(s, node, "sync", &host->sync_ns);
	number(s, node, "ring", 1, 1 << 20, &host->ring);
}

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

/* It stands in every output. */
static bool is_run_name(struct yaml *yaml, const yaml_node_t *key)
{
	const char *name = yaml_scalar(key), *c;

	for (c = name; c && (unsigned char)*c >= ' ' && *c != 127; c++)
		;
	if (!name || *c || !*name || strlen(name) > 60)
		yaml_fail(yaml, key, "runs: a name has 1 to 60 characters, none of them a control "
			  "character");
	return !yaml->failed;
}

static void choose_run(struct yaml *yaml, unsigned int i)
{
	yaml_node_t *map = runs(yaml), *key, *value;

	yaml->variables = NULL;
	if (!map || !yaml_only(yaml, map, "runs", NULL))
		return;
	if (!yaml_size(map))
		yaml_fail(yaml, map, "runs: has none");
	else if (yaml_entry(yaml, map, i, &key, &value) && is_run_name(yaml, key) &&
		 yaml_only(yaml, value, yaml_scalar(key), NULL))
		yaml->variables = value;
}

bool scenario_make(struct scenario *s, struct yaml *yaml, struct gpupart *gp, unsigned int i)
{
	static const char *const known[] = {
		"title", "about", "gpu", "gpus", "cpu", "kernels", "graphs", "streams", "programs",
		"stop", "runs", "expect", "qos", NULL,
	};

	const yaml_node_t *stop;

	*s = (struct scenario){ .yaml = yaml, .gp = gp };
	if (!yaml_only(yaml, yaml_root(yaml), "scenario", known))
		return false;
	choose_run(yaml, i);
	if (!yaml->failed)
		make_gpus(s);
	if (!yaml->failed)
		make_host(s);
	if (!yaml->failed)
		make_kernels(s);
	if (!yaml->failed)
		make_graphs(s);
	if (!yaml->failed)
		make_streams(s);
	if (!yaml->failed)
		scenario_programs(s);
	stop = yaml_get(yaml, yaml_root(yaml), "stop");
	yaml_time(yaml, yaml_root(yaml), "stop", &s->pipe.stop_ns);
	if (stop && !s->pipe.stop_ns)
		yaml_fail(yaml, stop, "stop: 0 is no time");
	s->pipe.processes = s->processes;
	return !yaml->failed;
}
