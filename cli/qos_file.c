// SPDX-License-Identifier: MIT
/*
 * A file of tenants with their goals (Documentation/qos.md). Knows no program that runs and
 * no GPU; what contradicts the GPU the policy says.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "cupti.h"
#include "qos.h"

#define MOST_WORDS	256	/* of a program's command line */

/* ----------------------------------------------------------------------- numbers */

/* "0.6", "1200", "12.5%": thousandths, at most three digits behind the point. */
static bool read_thousandths(const char *text, bool percent, uint64_t *value)
{
	uint64_t n = 0, unit = percent ? 10 : 1000, digits = 0;

	if (!isdigit((unsigned char)*text) || yaml_has_zero(text))
		return false;
	for (; isdigit((unsigned char)*text); text++) {
		if (n > UINT64_MAX / 100000)
			return false;
		n = n * 10 + (*text - '0');
	}
	n *= unit;
	if (*text == '.') {
		text++;
		for (; isdigit((unsigned char)*text); text++, digits++) {
			unit /= 10;
			n += unit * (*text - '0');
		}
		if (!digits || digits > 3)
			return false;
	}
	*value = n;
	return !strcmp(text, percent ? "%" : "");
}

/* @text is not what is wanted: @what. */
static void refuse_number(struct yaml *yaml, const yaml_node_t *node, const char *key,
			  const char *text, const char *what)
{
	yaml_fail(yaml, node, "%s: '%.60s': wants %s%s", key, text, what,
		  yaml_has_zero(text) ? ", without a 0 before it" : "");
}

static void take_thousandths(struct yaml *yaml, const yaml_node_t *map, const char *key,
			     uint64_t least, uint64_t most, const char *what, uint64_t *value)
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	char text[YAML_TEXT];

	if (!node || !yaml_text(yaml, node, key, text))
		return;
	if (!read_thousandths(text, false, value) || *value < least || *value > most)
		refuse_number(yaml, node, key, text, what);
}

static void take_count(struct yaml *yaml, const yaml_node_t *map, const char *key,
		       unsigned int least, unsigned int most, unsigned int *value)
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	uint64_t n = least;

	yaml_number(yaml, map, key, most, &n);
	if (!node || yaml->failed)
		return;
	if (n < least)
		yaml_fail(yaml, node, "%s: 0: wants %u to %u", key, least, most);
	*value = n;
}

/* ------------------------------------------------------------------------- a goal */

static void take_percentile(struct yaml *yaml, const yaml_node_t *map, struct qos_spec *spec)
{
	const yaml_node_t *node = yaml_get(yaml, map, "percentile");
	uint64_t value = 99000;
	char text[YAML_TEXT];

	if (node && yaml_text(yaml, node, "percentile", text) &&
	    (!read_thousandths(text, false, &value) || value < 1000 || value > 99900 ||
	     value % 100))
		refuse_number(yaml, node, "percentile", text,
			      "1 to 99.9, one digit behind the point");
	spec->percentile = value / 100;
}

static void take_goal(struct yaml *yaml, const yaml_node_t *map, struct qos_tenant *tenant,
		      struct qos_spec *spec, enum qos_file kind)
{
	static const char *const known[] = {
		"alpha", "rate", "latency", "percentile", "alone", NULL,
	};
	static const char *const goals[] = { "alpha", "rate", "latency" };
	const yaml_node_t *node = yaml_get(yaml, map, "goal");
	uint64_t value = 0;
	unsigned int nr = 0;

	if (!node || !yaml_only(yaml, node, "goal", known))
		return;
	for (unsigned int i = 0; i < 3; i++)
		if (yaml_get(yaml, node, goals[i])) {
			tenant->goal = QOS_ALPHA + i;
			nr++;
		}
	if (nr != 1) {
		yaml_fail(yaml, node, "goal: wants one of alpha, rate and latency");
		return;
	}
	take_thousandths(yaml, node, "alpha", 1, 1000, "a share, more than 0 and up to 1", &value);
	tenant->alpha = value;
	take_thousandths(yaml, node, "rate", 1, UINT64_MAX, "units a second, more than 0",
			 &tenant->rate);
	take_thousandths(yaml, node, "alone", 1, UINT64_MAX, "units a second, more than 0",
			 &tenant->alone);
	yaml_time(yaml, node, "latency", &tenant->latency_ns);
	if (tenant->goal == QOS_LATENCY && !tenant->latency_ns && !yaml->failed)
		yaml_fail(yaml, node, "latency: 0: wants a time such as 20ms");
	take_percentile(yaml, node, spec);
	if (tenant->goal != QOS_LATENCY && yaml_get(yaml, node, "percentile"))
		yaml_fail(yaml, node, "percentile: is for a latency");
	if (tenant->goal == QOS_ALPHA && !tenant->alone && kind == QOS_FILE_PROGRAMS &&
	    !yaml->failed)
		yaml_fail(yaml, node,
			  "alpha: wants the speed alone: alone: UNITS A SECOND, as 'gpupart qos calibrate' measures it");
}

/* ----------------------------------------------------------------------- a tenant */

static char **new_words(struct yaml *yaml, const yaml_node_t *node, unsigned int nr)
{
	char **words = nr && nr <= MOST_WORDS ? calloc(nr + 1, sizeof(*words)) : NULL;

	if (!words)
		yaml_fail(yaml, node, "program: wants a list of 1 to %d words: [python3, serve.py]",
			  MOST_WORDS);
	return words;
}

static void take_program(struct yaml *yaml, const yaml_node_t *map, struct qos_spec *spec)
{
	yaml_node_t *node = yaml_get(yaml, map, "program"), *key, *word;
	char text[YAML_TEXT];
	unsigned int i;

	if (!node || !yaml_is_list(yaml, node, "program"))
		return;
	spec->program = new_words(yaml, node, yaml_size(node));
	for (i = 0; spec->program && yaml_entry(yaml, node, i, &key, &word); i++) {
		if (!yaml_text(yaml, word, "program", text))
			return;
		spec->program[i] = strdup(text);
		if (!spec->program[i])
			yaml_fail(yaml, word, "no memory");
	}
}

static void take_signal(struct yaml *yaml, const yaml_node_t *map, struct qos_spec *spec)
{
	static const char *const names[] = { "auto", "reported", "launches" };
	const yaml_node_t *node = yaml_get(yaml, map, "signal");
	char text[YAML_TEXT], why[512];

	if (!node || !yaml_text(yaml, node, "signal", text))
		return;
	for (unsigned int i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			spec->signal = i;
			return;
		}
	if (!strcmp(text, "ipc"))
		yaml_fail(yaml, node, "signal: ipc: %s", cupti_why_not(why, sizeof(why)));
	else
		yaml_fail(yaml, node, "signal: '%.60s': wants auto, reported or launches", text);
}

static void take_name(struct yaml *yaml, const yaml_node_t *map, const char *key, char name[64])
{
	const yaml_node_t *node = yaml_get(yaml, map, key);
	char text[YAML_TEXT];

	if (!node || !yaml_text(yaml, node, key, text))
		return;
	if (!*text || strlen(text) > 63)
		yaml_fail(yaml, node, "%s: '%.60s': wants 1 to 63 letters", key, text);
	else
		strcpy(name, text);
}

/* Where the program is: one way of three. */
static void take_whom(struct yaml *yaml, const yaml_node_t *map, const char *name,
		      struct qos_spec *spec)
{
	unsigned int pid = 0, nr;

	take_program(yaml, map, spec);
	take_count(yaml, map, "pid", 1, 0x7fffffff, &pid);
	spec->pid = pid;
	take_name(yaml, map, "job", spec->job);
	take_signal(yaml, map, spec);
	nr = !!spec->program + !!spec->pid + !!*spec->job;
	if (nr != 1 && !yaml->failed)
		yaml_fail(yaml, map, "%s: wants one of program, pid and job", name);
}

bool qos_name_good(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *name && *name != '-' && strlen(name) < 64 && strspn(name, letters) == strlen(name);
}

/* What a stream did is one tenant's. */
static void check_stream(const struct qos_setup *setup, struct yaml *yaml, const yaml_node_t *key)
{
	unsigned int last = setup->nr - 1;

	for (unsigned int i = 0; i < last; i++)
		if (!strcmp(setup->specs[i].stream, setup->specs[last].stream))
			yaml_fail(yaml, key,
				  "%s: its stream '%s' is that of %s: one stream cannot be two tenants",
				  setup->tenants[last].name, setup->specs[last].stream,
				  setup->tenants[i].name);
}

static void take_tenant(struct qos_setup *setup, struct yaml *yaml, const yaml_node_t *key,
			const yaml_node_t *node, enum qos_file kind)
{
	bool scenario = kind == QOS_FILE_SCENARIO;
	static const char *const known[] = {
		"goal", "weight", "floor", "ceiling", "program", "pid", "job", "signal", NULL,
	};
	static const char *const known_there[] = {
		"goal", "weight", "floor", "ceiling", "stream", NULL,
	};
	struct qos_tenant *tenant = &setup->tenants[setup->nr];
	struct qos_spec *spec = &setup->specs[setup->nr++];
	char name[YAML_TEXT];

	if (!yaml_text(yaml, key, "tenants", name))
		return;
	if (!qos_name_good(name)) {
		yaml_fail(yaml, key, "tenants: '%.60s': " QOS_NAME_WANTS, name);
		return;
	}
	strcpy(tenant->name, name);
	spec->line = yaml_line(key);
	spec->percentile = 990;
	if (!yaml_only(yaml, node, name, scenario ? known_there : known))
		return;
	take_goal(yaml, node, tenant, spec, kind);
	take_count(yaml, node, "weight", 1, 1000, &tenant->weight);
	take_count(yaml, node, "floor", 1, GPUPART_MAX_TPCS, &tenant->floor);
	take_count(yaml, node, "ceiling", 1, GPUPART_MAX_TPCS, &tenant->ceiling);
	if (scenario)
		take_name(yaml, node, "stream", spec->stream);
	else
		take_whom(yaml, node, name, spec);
	if (!scenario || yaml->failed)
		return;
	if (!*spec->stream)
		strcpy(spec->stream, name);
	check_stream(setup, yaml, key);
}

static void take_tenants(struct qos_setup *setup, struct yaml *yaml, const yaml_node_t *map,
			 enum qos_file kind)
{
	yaml_node_t *tenants = yaml_get(yaml, map, "tenants"), *key, *node;
	unsigned int i;

	if (!tenants) {
		yaml_fail(yaml, map, "tenants: is missing");
		return;
	}
	if (!yaml_only(yaml, tenants, "tenants", NULL))
		return;
	if (!yaml_size(tenants) || yaml_size(tenants) > QOS_MAX_TENANTS) {
		yaml_fail(yaml, tenants, "tenants: are %u: wants 1 to %d", yaml_size(tenants),
			  QOS_MAX_TENANTS);
		return;
	}
	for (i = 0; yaml_entry(yaml, tenants, i, &key, &node) && !yaml->failed; i++)
		take_tenant(setup, yaml, key, node, kind);
}

/* ------------------------------------------------------------------------ the rest */

static void take_phases(struct qos_setup *setup, struct yaml *yaml, const yaml_node_t *map)
{
	static const char *const known[] = { "run", "epochs", NULL };
	yaml_node_t *list = yaml_get(yaml, map, "phases"), *key, *node;
	unsigned int i;

	if (!list) {
		yaml_fail(yaml, map, "phases: is missing: a list of { run: NAME, epochs: N }");
		return;
	}
	if (!yaml_is_list(yaml, list, "phases"))
		return;
	if (!yaml_size(list) || yaml_size(list) > QOS_MOST_PHASES) {
		yaml_fail(yaml, list, "phases: are %u: wants 1 to %d", yaml_size(list),
			  QOS_MOST_PHASES);
		return;
	}
	for (i = 0; yaml_entry(yaml, list, i, &key, &node) && !yaml->failed; i++) {
		struct qos_phase *phase = &setup->phases[i];
		yaml_node_t *runs = yaml_get(yaml, yaml_root(yaml), "runs"), *name, *value;
		char text[YAML_TEXT] = "";
		bool found = false;

		if (!yaml_only(yaml, node, "phases", known))
			return;
		phase->epochs = 1;
		phase->line = yaml_line(node);
		take_count(yaml, node, "epochs", 1, 100000, &phase->epochs);
		value = yaml_get(yaml, node, "run");
		if (value && !yaml_text(yaml, value, "run", text))
			return;
		for (unsigned int r = 0; yaml_entry(yaml, runs, r, &name, &value) && !found; r++) {
			found = name && !strcmp((const char *)name->data.scalar.value, text);
			phase->run = r;
		}
		if (!found && (runs || *text))
			yaml_fail(yaml, node, "run: '%.60s': the file has no such run", text);
	}
	setup->nr_phases = i;
}

static void take_rules(struct qos_setup *setup, struct yaml *yaml, const yaml_node_t *map)
{
	const yaml_node_t *node = yaml_get(yaml, map, "hysteresis");
	struct qos_rules *rules = &setup->rules;
	uint64_t value = 0;
	char text[YAML_TEXT];

	take_count(yaml, map, "step", 1, GPUPART_MAX_TPCS, &rules->step);
	take_count(yaml, map, "dwell", 1, 1000, &rules->dwell);
	take_count(yaml, map, "hold", 1, 100000, &rules->hold);
	if (!node || !yaml_text(yaml, node, "hysteresis", text))
		return;
	if (!read_thousandths(text, true, &value) || !value || value > 250)
		refuse_number(yaml, node, "hysteresis", text, "0.1% to 25%, with the sign");
	rules->hysteresis = value;
}

bool qos_setup_read(struct qos_setup *setup, struct yaml *yaml, yaml_node_t *node,
		    enum qos_file kind)
{
	bool scenario = kind == QOS_FILE_SCENARIO;
	static const char *const known[] = {
		"epoch", "step", "hysteresis", "dwell", "hold", "tenants", NULL,
	};
	static const char *const known_there[] = {
		"epoch", "step", "hysteresis", "dwell", "hold", "tenants", "phases", NULL,
	};
	uint64_t least = scenario ? 1000 : 10000000, most = scenario ? 1000000000 : 60000000000;

	/* What a shell in a program makes of "$PORT" is the shell's. */
	yaml->verbatim = !scenario;
	*setup = (struct qos_setup){
		.path = yaml->path, .epoch_ns = scenario ? 1000000 : 200000000,
	};
	if (!node)
		yaml_fail(yaml, NULL, "nothing is in it: wants tenants");
	if (!node)
		return false;
	if (!yaml_only(yaml, node, scenario ? "qos" : "the file", scenario ? known_there : known))
		return false;
	yaml_time(yaml, node, "epoch", &setup->epoch_ns);
	if (!yaml->failed && (setup->epoch_ns < least || setup->epoch_ns > most))
		yaml_fail(yaml, yaml_get(yaml, node, "epoch"), "epoch: wants %s",
			  scenario ? "1us to 1s" : "10ms to 60s");
	if (!yaml->failed)
		take_rules(setup, yaml, node);
	if (!yaml->failed)
		take_tenants(setup, yaml, node, kind);
	if (!yaml->failed && scenario)
		take_phases(setup, yaml, node);
	return !yaml->failed;
}

void qos_setup_free(struct qos_setup *setup)
{
	for (unsigned int i = 0; i < QOS_MAX_TENANTS; i++) {
		for (char **word = setup->specs[i].program; word && *word; word++)
			free(*word);
		free(setup->specs[i].program);
		setup->specs[i].program = NULL;
	}
}
