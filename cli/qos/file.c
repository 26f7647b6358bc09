// SPDX-License-Identifier: MIT
/*
 * Reads a file of tenants and their goals (Documentation/user/qos.md). The policy checks the goals
 * against the GPU.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "cli/target/check.h"
#include "cli/util/alloc.h"

#define MOST_WORDS	256	/* arguments of a program */

/* A tenant whose keys are being read. */
struct entry {
	struct qos_tenant tenant;
	struct qos_spec spec;
	enum qos_file kind;
};

/* ------------------------------------------------------------------------- a goal */

#define ENTRY(member)	YAML_AT(struct entry, member)
#define UNITS		": must be units a second, 0.001 to 1000000000000000, in digits with at " \
			"most three decimals"

/* In the order of enum qos_goal. */
static const struct yaml_key goal_keys[] = {
	{ "alpha", YAML_DECIMAL, ENTRY(tenant.alpha), 1, 1000,
	  ": must be a share, more than 0 and up to 1" },
	{ "rate", YAML_DECIMAL, ENTRY(tenant.rate), 1, 0, UNITS },
	{ "latency", YAML_TIME, ENTRY(tenant.latency_ns), 1, 0, "must be a time such as 20ms" },
	{ "alone", YAML_DECIMAL, ENTRY(tenant.alone), 1, 0, UNITS },
	{ "percentile", YAML_DECIMAL, ENTRY(tenant.percentile), 10, 999,
	  ": must be 1 to 99.9, with at most one decimal", .unit = 100 },
	{ 0 },
};

static void take_goal(struct yaml *yaml, const struct yaml_key *key, yaml_node_t *node, void *to)
{
	struct entry *e = to;
	unsigned int nr = 0;

	if (!yaml_read(yaml, node, key->name, goal_keys, e))
		return;
	for (unsigned int i = 0; i < 3; i++)
		if (yaml_get(yaml, node, goal_keys[i].name)) {
			e->tenant.goal = QOS_ALPHA + i;
			nr++;
		}
	if (nr != 1)
		yaml_fail(yaml, node, "goal: must have exactly one of alpha, rate and latency");
	if (e->tenant.goal != QOS_LATENCY && yaml_get(yaml, node, "percentile"))
		yaml_fail(yaml, node, "percentile: only a latency goal can have a percentile");
	if (e->tenant.goal == QOS_ALPHA && !e->tenant.alone && e->kind == QOS_FILE_PROGRAMS)
		yaml_fail(yaml, node,
			  "alpha needs the solo speed: add 'alone: UNITS_PER_SECOND'; "
			  "'gpupart qos calibrate' measures this speed");
}

/* ----------------------------------------------------------------------- a tenant */

static void take_program(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *node,
			 void *to)
{
	unsigned int nr = yaml_size(node);
	char text[YAML_TEXT], ***program = to, **words = NULL;
	yaml_node_t *key, *word;

	if (!yaml_is_list(yaml, node, row->name))
		return;
	if (nr && nr <= MOST_WORDS)
		words = *program = alloc_zeroed(nr + 1, sizeof(*words));
	if (!words)
		yaml_fail(yaml, node, "program: must be a list of 1 to %d words, such as "
			  "[python3, serve.py]",
			  MOST_WORDS);
	for (unsigned int i = 0; yaml_entry(yaml, node, i, &key, &word); i++) {
		if (!yaml_text(yaml, word, row->name, text))
			return;
		words[i] = alloc_text("%s", text);
	}
}

static void take_lend(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *node, void *to)
{
	struct entry *e = to;
	char text[YAML_TEXT];

	if (!yaml_text(yaml, node, row->name, text))
		return;
	e->tenant.lend = true;
	if (strcmp(text, "auto") &&
	    (!yaml_read_time(text, &e->tenant.lend_ns) || e->tenant.lend_ns < QOS_LEND_LEAST ||
	     e->tenant.lend_ns > QOS_LEND_MOST))
		yaml_fail(yaml, node, "lend: %.40s: must be auto, or a time from 1us to 1s", text);
}

#define TENANT \
	{ "lend", .take = take_lend }, \
	{ "goal", .take = take_goal }, \
	{ "weight", YAML_NUMBER, ENTRY(tenant.weight), 1, 1000 }, \
	{ "floor", YAML_NUMBER, ENTRY(tenant.floor), 1, GPUPART_MAX_TPCS }, \
	{ "ceiling", YAML_NUMBER, ENTRY(tenant.ceiling), 1, GPUPART_MAX_TPCS }

static const struct yaml_key program_keys[] = {
	TENANT,
	{ "program", .take = take_program, ENTRY(spec.program) },
	{ "pid", YAML_NUMBER, ENTRY(spec.pid), 1, 0x7fffffff },
	{ "job", YAML_CHARS, ENTRY(spec.job) },
	{ "signal", YAML_WORD, ENTRY(spec.signal),
	  .wants = ": must be auto, reported, launches or kernels",
	  .with = (const char *const[]){ "auto", "reported", "launches", "kernels", NULL } },
	{ "durations", YAML_CHARS, ENTRY(spec.durations) },
	{ 0 },
};

static const struct yaml_key stream_keys[] = {
	TENANT, { "stream", YAML_CHARS, ENTRY(spec.stream) }, { 0 },
};

/*
 * Checks that no two tenants have the same stream, and that exactly one key names the tenant's
 * program.
 */
static void check_tenant(const struct qos_setup *setup, struct yaml *yaml, const yaml_node_t *key,
			 const yaml_node_t *node, const struct entry *e)
{
	const char *stream = e->spec.stream;

	if (e->kind != QOS_FILE_SCENARIO) {
		if (e->tenant.lend && e->spec.pid)
			yaml_fail(yaml, node,
				  "%s: a tenant with 'lend' needs program or job, not pid",
				  e->tenant.name);
		if (!!e->spec.program + !!e->spec.pid + !!*e->spec.job != 1)
			yaml_fail(yaml, node, "%s: must have exactly one of program, pid and job",
				  e->tenant.name);
		if (e->spec.signal != QOS_SIGNAL_KERNELS ? *e->spec.durations != 0 :
		    e->tenant.goal == QOS_LATENCY || (e->tenant.goal && !*e->spec.durations &&
						      e->kind == QOS_FILE_PROGRAMS))
			yaml_fail(yaml, node,
				  "%s: 'signal: kernels' needs alpha or rate, and 'durations: "
				  "FILE'; 'gpupart qos calibrate --json' writes this file",
				  e->tenant.name);
		return;
	}
	for (unsigned int i = 0; i < setup->nr - 1; i++)
		if (!strcmp(setup->specs[i].stream, stream))
			yaml_fail(yaml, key,
				  "%s: stream '%s' already belongs to %s: one stream cannot belong "
				  "to two tenants",
				  e->tenant.name, stream, setup->tenants[i].name);
}

static void take_tenants(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *map, void *to)
{
	enum qos_file kind = *(const enum qos_file *)yaml->context;
	bool scenario = kind == QOS_FILE_SCENARIO;
	struct qos_setup *setup = to;
	yaml_node_t *key, *node;
	char name[YAML_TEXT];

	yaml_only(yaml, map, row->name, NULL);
	if (!yaml_size(map) || yaml_size(map) > QOS_MAX_TENANTS)
		yaml_fail(yaml, map, "there are %u tenants, but there must be 1 to %d",
			  yaml_size(map), QOS_MAX_TENANTS);
	while (yaml_entry(yaml, map, setup->nr, &key, &node)) {
		struct entry e = { .spec = { .line = yaml_line(key) },
				   .tenant = { .percentile = 990 }, .kind = kind };

		if (!yaml_text(yaml, key, row->name, name))
			return;
		if (!check_is_name(name)) {
			yaml_fail(yaml, key, "tenants: '%.60s': " QOS_NAME_RULE, name);
			return;
		}
		strcpy(e.tenant.name, name);
		strcpy(e.spec.stream, scenario ? name : "");
		yaml_read(yaml, node, name, scenario ? stream_keys : program_keys, &e);
		setup->tenants[setup->nr] = e.tenant;
		setup->specs[setup->nr++] = e.spec;
		check_tenant(setup, yaml, key, node, &e);
	}
}

/* ------------------------------------------------------------------------- phases */

static const struct yaml_key phase_keys[] = {
	{ "epochs", YAML_NUMBER, YAML_AT(struct qos_phase, epochs), 1, 100000 },
	{ .name = "run" },
	{ 0 },
};

static void find_run(struct yaml *yaml, const yaml_node_t *map, unsigned int *run)
{
	yaml_node_t *runs = yaml_get(yaml, yaml_root(yaml), "runs"), *name, *value;
	const yaml_node_t *node = yaml_get(yaml, map, "run");
	char text[YAML_TEXT] = "";

	if (node && !yaml_text(yaml, node, "run", text))
		return;
	for (; yaml_entry(yaml, runs, *run, &name, &value); ++*run)
		if (name && yaml_scalar(name) && !strcmp(yaml_scalar(name), text))
			return;
	if (runs || *text)
		yaml_fail(yaml, map, "run: '%.60s': this file has no run with that name", text);
}

static void take_phases(struct yaml *yaml, const struct yaml_key *row, yaml_node_t *list, void *to)
{
	struct qos_setup *setup = to;
	yaml_node_t *key, *node;

	yaml_is_list(yaml, list, row->name);
	if (!yaml_size(list) || yaml_size(list) > QOS_MOST_PHASES)
		yaml_fail(yaml, list, "there are %u phases, but there must be 1 to %d",
			  yaml_size(list), QOS_MOST_PHASES);
	while (yaml_entry(yaml, list, setup->nr_phases, &key, &node)) {
		struct qos_phase *phase = &setup->phases[setup->nr_phases++];

		*phase = (struct qos_phase){ .epochs = 1, .line = yaml_line(node) };
		if (yaml_read(yaml, node, row->name, phase_keys, phase))
			find_run(yaml, node, &phase->run);
	}
}

/* ---------------------------------------------------------------------------- all */

#define SETUP(member)	YAML_AT(struct qos_setup, member)
#define RULES \
	{ "step", YAML_NUMBER, SETUP(rules.step), 1, GPUPART_MAX_TPCS }, \
	{ "dwell", YAML_NUMBER, SETUP(rules.dwell), 1, 1000 }, \
	{ "hold", YAML_NUMBER, SETUP(rules.hold), 1, 100000 }, \
	{ "shapes", YAML_BOOL, SETUP(shapes) }, \
	{ "hysteresis", YAML_PERCENT, SETUP(rules.hysteresis), 1, 250, \
	  ": must be 0.1% to 25%, with the percent sign", .unit = 100 }

static const struct yaml_key file_keys[] = {
	{ "epoch", YAML_TIME, SETUP(epoch_ns), 10000000, 60000000000, "must be 10ms to 60s" },
	RULES,
	{ "tenants", .take = take_tenants, .required = "" },
	{ 0 },
};

static const struct yaml_key scenario_keys[] = {
	{ "epoch", YAML_TIME, SETUP(epoch_ns), 1000, 1000000000, "must be 1us to 1s" },
	RULES,
	{ "tenants", .take = take_tenants, .required = "" },
	{ "phases", .take = take_phases, .required = "a list of { run: NAME, epochs: N }" },
	{ 0 },
};

bool qos_setup_read(struct qos_setup *setup, struct yaml *yaml, yaml_node_t *node,
		    enum qos_file kind)
{
	bool scenario = kind == QOS_FILE_SCENARIO;

	/*
	 * Arguments of a program may contain "$PORT". The shell of the program expands this
	 * variable.
	 */
	yaml->verbatim = !scenario;
	yaml->context = &kind;
	*setup = (struct qos_setup){
		.path = yaml->path, .epoch_ns = scenario ? 1000000 : 200000000,
	};
	if (!node)
		yaml_fail(yaml, NULL, "the file is empty: it must have 'tenants:'");
	return node && yaml_read(yaml, node, scenario ? "qos" : "the file",
				 scenario ? scenario_keys : file_keys, setup);
}

void qos_setup_floors(struct qos_setup *setup, const struct qos_board *board)
{
	unsigned int nr = 0, tenth, least = 0;

	for (unsigned int i = 0; i < setup->nr; i++) {
		nr += setup->tenants[i].goal == QOS_BEST_EFFORT;
		least += setup->tenants[i].floor ? setup->tenants[i].floor : 1;
	}
	tenth = nr ? board->nr_tpcs / 10 / nr : 0;
	if (tenth < 2 || least + nr * (tenth - 1) > board->nr_tpcs)
		return;
	for (unsigned int i = 0; i < setup->nr; i++) {
		struct qos_tenant *t = &setup->tenants[i];

		if (t->goal == QOS_BEST_EFFORT && !t->floor)
			t->floor = t->ceiling && t->ceiling < tenth ? t->ceiling : tenth;
	}
}

void qos_spec_program(struct qos_spec *spec, char **program)
{
	unsigned int nr = 0;

	for (char **word = spec->program; word && *word; word++)
		free(*word);
	free(spec->program);
	spec->program = NULL;
	if (!program)
		return;
	while (program[nr])
		nr++;
	spec->program = alloc_zeroed(nr + 1, sizeof(*program));
	for (unsigned int w = 0; w < nr; w++)
		spec->program[w] = alloc_text("%s", program[w]);
}

void qos_setup_free(struct qos_setup *setup)
{
	for (unsigned int i = 0; i < QOS_MAX_TENANTS; i++)
		qos_spec_program(&setup->specs[i], NULL);
}
