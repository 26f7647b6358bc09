// SPDX-License-Identifier: MIT
/*
 * The programs of a scenario file: steps, loops of steps, and the events they name. Knows no
 * other section.
 */
#include <string.h>
#include "scenario_parts.h"

#define MOST_STEPS	1000000u	/* after aliases, all loops' bodies */
#define MOST_EVENTS	4096u

static struct pipe_step *make_steps(struct scenario *s, yaml_node_t *list, unsigned int depth,
				    unsigned int *nr);

/* ------------------------------------------------------------------- what is named */

bool scenario_find_kernel(struct scenario *s, const yaml_node_t *map, unsigned int *kernel)
{
	const yaml_node_t *node = yaml_get(s->yaml, map, "kernel");
	char text[YAML_TEXT];
	unsigned int i;

	if (!node) {
		yaml_fail(s->yaml, map, "kernel: is missing");
		return false;
	}
	if (!yaml_text(s->yaml, node, "kernel", text))
		return false;
	for (i = 0; i < s->pipe.nr_kernels; i++)
		if (!strcmp(s->pipe.kernels[i].name, text)) {
			*kernel = i;
			return true;
		}
	yaml_fail(s->yaml, node, "kernel: '%.60s' is not among kernels", text);
	return false;
}

static void find_launch(struct scenario *s, const yaml_node_t *node, struct pipe_step *step)
{
	char text[YAML_TEXT];
	unsigned int i;

	if (!yaml_text(s->yaml, node, "launch", text))
		return;
	for (i = 0; i < s->pipe.nr_kernels; i++)
		if (!strcmp(s->pipe.kernels[i].name, text)) {
			step->what = i;
			return;
		}
	yaml_fail(s->yaml, node, "launch: '%.60s' is not among kernels", text);
}

static void find_graph(struct scenario *s, const yaml_node_t *node, struct pipe_step *step)
{
	char text[YAML_TEXT];
	unsigned int i;

	if (!yaml_text(s->yaml, node, "graph", text))
		return;
	for (i = 0; i < s->pipe.nr_graphs; i++)
		if (!strcmp(s->pipe.graphs[i].name, text)) {
			step->what = i;
			return;
		}
	yaml_fail(s->yaml, node, "graph: '%.60s' is not among graphs", text);
}

static unsigned int find_stream(struct scenario *s, const yaml_node_t *node, const char *what)
{
	char text[YAML_TEXT];
	unsigned int i;

	if (!yaml_text(s->yaml, node, what, text))
		return 0;
	for (i = 0; i < s->pipe.nr_streams && strcmp(s->pipe.streams[i].name, text); i++)
		;
	if (i == s->pipe.nr_streams) {
		yaml_fail(s->yaml, node, "%s: '%.60s' is not among streams", what, text);
		return 0;
	}
	if (s->pipe.streams[i].process != s->program->process)
		yaml_fail(s->yaml, node, "%s: stream %s is of process %s, and program %s of "
			  "process %s", what, text, s->processes[s->pipe.streams[i].process],
			  s->program->name, s->processes[s->program->process]);
	return i;
}

/* Events come to be by being named. */
static unsigned int find_event(struct scenario *s, const yaml_node_t *node, const char *what)
{
	const char **events = (const char **)s->pipe.events;
	const char *name;
	unsigned int i;

	if (!events) {
		events = scenario_new(s, MOST_EVENTS, sizeof(*events));
		s->pipe.events = events;
	}
	name = scenario_name(s, node, what);
	if (!events || !name)
		return 0;
	for (i = 0; i < s->pipe.nr_events; i++)
		if (!strcmp(events[i], name))
			return i;
	if (i == MOST_EVENTS) {
		yaml_fail(s->yaml, node, "%s: there are more than %u events", what, MOST_EVENTS);
		return 0;
	}
	events[s->pipe.nr_events++] = name;
	return i;
}

/* --------------------------------------------------------------------- a step each */

static void on_stream(struct scenario *s, const yaml_node_t *map, struct pipe_step *step)
{
	const yaml_node_t *on = yaml_get(s->yaml, map, "on");

	if (!on) {
		yaml_fail(s->yaml, map, "on: is missing: which stream?");
		return;
	}
	step->stream = find_stream(s, on, "on");
	if (s->pipe.nr_streams)
		step->set = scenario_set(s, map, s->pipe.streams[step->stream].gpu);
}

static void make_copy(struct scenario *s, const yaml_node_t *map, struct pipe_step *step)
{
	const yaml_node_t *to = yaml_get(s->yaml, map, "to");
	char text[YAML_TEXT];

	on_stream(s, map, step);
	yaml_bytes(s->yaml, map, "copy", 1ull << 50, &step->amount);
	if (!to) {
		yaml_fail(s->yaml, map, "to: is missing: gpu or host?");
		return;
	}
	if (!yaml_text(s->yaml, to, "to", text))
		return;
	step->way = !strcmp(text, "gpu") ? PIPE_TO_GPU : PIPE_FROM_GPU;
	if (step->way == PIPE_FROM_GPU && strcmp(text, "host"))
		yaml_fail(s->yaml, to, "to: '%.60s' is neither gpu nor host", text);
}

static void make_sync(struct scenario *s, const yaml_node_t *node, struct pipe_step *step)
{
	char text[YAML_TEXT];

	if (!yaml_text(s->yaml, node, "sync", text))
		return;
	if (!strcmp(text, "all"))
		step->kind = PIPE_SYNC_ALL;
	else
		step->stream = find_stream(s, node, "sync");
}

static bool does_anything(const struct pipe_step *steps, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (steps[i].kind != PIPE_LOOP || steps[i].amount)
			return true;
	return false;
}

static void make_repeat(struct scenario *s, const yaml_node_t *map, struct pipe_step *step,
			unsigned int depth)
{
	yaml_node_t *body = yaml_get(s->yaml, map, "do");

	yaml_number(s->yaml, map, "repeat", 1000000000, &step->amount);
	if (!body) {
		yaml_fail(s->yaml, map, "do: is missing: repeat what?");
		return;
	}
	if (depth + 1 >= PIPE_MAX_DEPTH) {
		yaml_fail(s->yaml, map, "repeat: more than %d loops in each other",
			  PIPE_MAX_DEPTH - 1);
		return;
	}
	step->body = make_steps(s, body, depth + 1, &step->nr_body);
	/* Loops of loops of nothing would take no simulated time, and all of the real. */
	if (!does_anything(step->body, step->nr_body))
		step->amount = 0;
}

static const struct {
	const char *key;
	enum pipe_step_kind kind;
	const char *keys[5];		/* that go with it */
} kinds[] = {
	{ "launch", PIPE_LAUNCH, { "launch", "on", "set" } },
	{ "graph", PIPE_GRAPH, { "graph", "on", "set" } },
	{ "copy", PIPE_COPY, { "copy", "to", "on" } },
	{ "record", PIPE_RECORD, { "record", "on" } },
	{ "wait", PIPE_WAIT, { "wait", "on" } },
	{ "sync", PIPE_SYNC, { "sync" } },
	{ "await", PIPE_SYNC_EVENT, { "await" } },
	{ "cpu", PIPE_CPU, { "cpu" } },
	{ "repeat", PIPE_LOOP, { "repeat", "do" } },
};

static void fill_step(struct scenario *s, const yaml_node_t *map, struct pipe_step *step,
		      const yaml_node_t *node, const char *key, unsigned int depth)
{
	switch (step->kind) {
	case PIPE_LAUNCH:
		on_stream(s, map, step);
		find_launch(s, node, step);
		break;
	case PIPE_GRAPH:
		on_stream(s, map, step);
		find_graph(s, node, step);
		break;
	case PIPE_COPY:
		make_copy(s, map, step);
		break;
	case PIPE_RECORD:
	case PIPE_WAIT:
		on_stream(s, map, step);
		step->what = find_event(s, node, key);
		break;
	case PIPE_SYNC:
		make_sync(s, node, step);
		break;
	case PIPE_SYNC_EVENT:
		step->what = find_event(s, node, key);
		break;
	case PIPE_CPU:
		yaml_time(s->yaml, map, key, &step->amount);
		break;
	default:
		make_repeat(s, map, step, depth);
	}
}

static void make_step(struct scenario *s, yaml_node_t *map, struct pipe_step *step,
		      unsigned int depth)
{
	const yaml_node_t *node;
	unsigned int i;

	if (!yaml_is_map(s->yaml, map, "a step"))
		return;
	step->line = yaml_line(map);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		node = yaml_get(s->yaml, map, kinds[i].key);
		if (!node)
			continue;
		step->kind = kinds[i].kind;
		if (yaml_only(s->yaml, map, kinds[i].key, kinds[i].keys))
			fill_step(s, map, step, node, kinds[i].key, depth);
		return;
	}
	yaml_fail(s->yaml, map, "a step has one of launch, graph, copy, record, wait, sync, await, "
		  "cpu and repeat");
}

static struct pipe_step *make_steps(struct scenario *s, yaml_node_t *list, unsigned int depth,
				    unsigned int *nr)
{
	struct pipe_step *steps;
	yaml_node_t *key, *node;
	unsigned int i;

	*nr = 0;
	if (!yaml_is_list(s->yaml, list, "steps"))
		return NULL;
	s->nr_steps += yaml_size(list);
	if (s->nr_steps > MOST_STEPS) {
		yaml_fail(s->yaml, list, "there are more than %u steps", MOST_STEPS);
		return NULL;
	}
	steps = scenario_new(s, yaml_size(list), sizeof(*steps));
	for (i = 0; steps && yaml_entry(s->yaml, list, i, &key, &node) && !s->yaml->failed; i++)
		make_step(s, node, &steps[i], depth);
	*nr = i;
	return steps;
}

/* ------------------------------------------------------------------------ programs */

static void make_program(struct scenario *s, const yaml_node_t *key, yaml_node_t *node,
			 struct pipe_program *program)
{
	static const char *const known[] = { "process", "start", "steps", NULL };
	yaml_node_t *steps = node;

	program->name = scenario_name(s, key, "programs");
	if (!program->name)
		return;
	if (node->type == YAML_MAPPING_NODE) {
		if (!yaml_only(s->yaml, node, program->name, known))
			return;
		steps = yaml_get(s->yaml, node, "steps");
		yaml_time(s->yaml, node, "start", &program->start_ns);
		if (!steps) {
			yaml_fail(s->yaml, node, "steps: is missing");
			return;
		}
	}
	program->process = scenario_process(s, node);
	s->program = program;
	program->steps = make_steps(s, steps, 0, &program->nr_steps);
}

void scenario_programs(struct scenario *s)
{
	yaml_node_t *map = yaml_get(s->yaml, yaml_root(s->yaml), "programs"), *key, *node;
	struct pipe_program *programs;
	unsigned int i;

	if (!map) {
		yaml_fail(s->yaml, NULL, "has no programs");
		return;
	}
	if (!yaml_only(s->yaml, map, "programs", NULL))
		return;
	if (yaml_size(map) > PIPE_MAX_PROGRAMS) {
		yaml_fail(s->yaml, map, "programs: are more than %d", PIPE_MAX_PROGRAMS);
		return;
	}
	programs = scenario_new(s, yaml_size(map), sizeof(*programs));
	for (i = 0; programs && yaml_entry(s->yaml, map, i, &key, &node) && !s->yaml->failed; i++)
		make_program(s, key, node, &programs[i]);
	s->pipe.programs = programs;
	s->pipe.nr_programs = yaml_size(map);
}
