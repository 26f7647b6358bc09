// SPDX-License-Identifier: MIT
/* Reads the programs of a scenario file: steps, loops of steps, and events. */
#include <string.h>
#include "cli/sim/scenario_parts.h"

#define MOST_STEPS	1000000u	/* limit for all loops together, with aliases expanded */
#define MOST_EVENTS	4096u

/* ----------------------------------------------------------------- values of a step */

static unsigned int find_stream(struct scenario *s, const yaml_node_t *node, const char *what)
{
	unsigned int i = scenario_find_index(s, node, what, &scenario_streams);
	const struct pipe_stream *stream;

	/* After an error, the stream may not exist. */
	if (s->yaml->failed)
		return 0;
	stream = &s->pipe.streams[i];
	if (stream->process != s->program->process)
		yaml_fail(s->yaml, node,
			  "%s: stream %s belongs to process %s, but program %s "
			  "belongs to process %s",
			  what, stream->name, s->processes[stream->process], s->program->name,
			  s->processes[s->program->process]);
	return i;
}

static void take_on(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	((struct pipe_step *)to)->stream = find_stream(yaml->context, node, key->name);
}

static void take_set(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	struct scenario *s = yaml->context;
	struct pipe_step *step = to;

	(void)key;
	step->set = scenario_set(s, node, s->pipe.streams[step->stream].gpu);
}

/* The first step that names an event creates the event. */
static void take_event(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	struct scenario *s = yaml->context;
	struct pipe_step *step = to;

	if (!s->pipe.events)
		s->pipe.events = scenario_new(s, MOST_EVENTS, sizeof(char *));
	step->what = scenario_add(s, node, key->name, (const char **)s->pipe.events,
				  &s->pipe.nr_events, MOST_EVENTS);
}

static void take_sync(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	struct pipe_step *step = to;
	char text[YAML_TEXT];

	if (yaml_text(yaml, node, key->name, text) && !strcmp(text, "all"))
		step->kind = PIPE_SYNC_ALL;
	else
		step->stream = find_stream(yaml->context, node, key->name);
}

static const struct pipe_step *make_steps(struct scenario *s, yaml_node_t *list, unsigned int *nr);

static void take_body(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *list, void *to)
{
	struct scenario *s = yaml->context;
	struct pipe_step *step = to;
	bool endless = true;

	(void)key;
	s->depth++;
	step->body = make_steps(s, list, &step->nr_body);
	s->depth--;
	/* Nested empty loops would take no simulated time, but much real time. */
	for (unsigned int i = 0; i < step->nr_body; i++)
		endless &= step->body[i].kind == PIPE_LOOP && !step->body[i].amount;
	if (endless)
		step->amount = 0;
}

/* -------------------------------------------------------------------------- steps */

#define STEP(member) YAML_AT(struct pipe_step, member)
#define ON	{ "on", .take = take_on, .required = "which stream?" }
#define SET	{ "set", .take = take_set }

/* The first key of each row identifies the step. */
static const struct {
	enum pipe_step_kind kind;
	struct yaml_key keys[4];
} kinds[] = {
	{ PIPE_LAUNCH, { { "launch", .take = scenario_take_index, STEP(what),
			   .with = &scenario_kernels }, ON, SET } },
	{ PIPE_GRAPH, { { "graph", .take = scenario_take_index, STEP(what),
			  .with = &scenario_graphs }, ON, SET } },
	{ PIPE_COPY, { { "copy", YAML_BYTES, STEP(amount), 0, 1ull << 50 },
		       { "to", YAML_WORD, STEP(way), .wants = ": must be gpu or host",
			 .with = (const char *const[]){ "gpu", "host", NULL },
			 .required = "gpu or host?" }, ON } },
	{ PIPE_RECORD, { { "record", .take = take_event }, ON } },
	{ PIPE_WAIT, { { "wait", .take = take_event }, ON } },
	{ PIPE_SYNC, { { "sync", .take = take_sync } } },
	{ PIPE_SYNC_EVENT, { { "await", .take = take_event } } },
	{ PIPE_CPU, { { "cpu", YAML_TIME, STEP(amount) } } },
	{ PIPE_LOOP, { { "repeat", YAML_NUMBER, STEP(amount), 0, 1000000000 },
		       { "do", .take = take_body, .required = "repeat what?" } } },
};

static void make_step(struct scenario *s, yaml_node_t *map, struct pipe_step *step)
{
	unsigned int i = 0, nr = sizeof(kinds) / sizeof(kinds[0]);

	while (i < nr && !yaml_get(s->yaml, map, kinds[i].keys[0].name))
		i++;
	if (i == nr && map->type != YAML_MAPPING_NODE)
		yaml_fail(s->yaml, map, "a step must have keys with values");
	if (i == nr) {
		yaml_fail(s->yaml, map, "a step must have one of the keys launch, graph, copy, "
			  "record, wait, sync, await, cpu and repeat");
		return;
	}
	step->kind = kinds[i].kind;
	step->line = yaml_line(map);
	if (step->kind == PIPE_LOOP && s->depth + 1 >= PIPE_MAX_DEPTH)
		yaml_fail(s->yaml, map, "repeat: there are more than %d nested loops",
			  PIPE_MAX_DEPTH - 1);
	yaml_read(s->yaml, map, kinds[i].keys[0].name, kinds[i].keys, step);
}

static const struct pipe_step *make_steps(struct scenario *s, yaml_node_t *list, unsigned int *nr)
{
	struct pipe_step *steps;
	yaml_node_t *key, *node;

	yaml_is_list(s->yaml, list, "steps");
	s->nr_steps += yaml_size(list);
	if (s->nr_steps > MOST_STEPS)
		yaml_fail(s->yaml, list, "there are more than %u steps", MOST_STEPS);
	steps = s->yaml->failed ? NULL : scenario_new(s, yaml_size(list), sizeof(*steps));
	for (*nr = 0; yaml_entry(s->yaml, list, *nr, &key, &node); ++*nr)
		make_step(s, node, &steps[*nr]);
	return steps;
}

/* ------------------------------------------------------------------------ programs */

static void take_steps(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *list, void *to)
{
	struct pipe_program *program = to;

	(void)key;
	program->steps = make_steps(yaml->context, list, &program->nr_steps);
}

static const struct yaml_key program_keys[] = {
	{ "process", .take = scenario_take_process, YAML_AT(struct pipe_program, process),
	  .always = true },
	{ "start", YAML_TIME, YAML_AT(struct pipe_program, start_ns) },
	{ "steps", .take = take_steps, .required = "" },
	{ 0 },
};

/* Reads a list of steps, or a mapping that contains a list of steps. */
static void make_program(struct scenario *s, yaml_node_t *key, yaml_node_t *node, void *entry)
{
	struct pipe_program *program = entry;

	(void)key;
	s->program = program;
	if (node->type == YAML_MAPPING_NODE) {
		yaml_read(s->yaml, node, program->name, program_keys, program);
		return;
	}
	yaml_read_value(s->yaml, &program_keys[0], NULL, program);
	take_steps(s->yaml, NULL, node, program);
}

const struct section scenario_program_list = {
	SECTION(struct pipe_program, programs), make_program, PIPE_MAX_PROGRAMS,
};
