// SPDX-License-Identifier: MIT
/*
 * Compares the expectations of a scenario file with the results. An expectation is "[N *] NAME.WHAT
 * < [N *] NAME.WHAT". NAME may begin with the name of a run, for example "packed/K1.end". If NAME
 * contains no run, the expectation must hold in each run.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/sim/sim.h"
#include "cli/util/alloc.h"

/* SIDE_NEVER means that an event did not happen. All comparisons with SIDE_NEVER are false. */
enum side_kind { SIDE_PLAIN, SIDE_TIME, SIDE_NEVER };

struct side {
	double value;
	enum side_kind kind;
};

/* A word WHAT and its value. A list of words ends with an entry without a name. */
struct word {
	const char *name;
	struct side side;
};

static bool pick(const struct word *words, const char *what, struct side *side)
{
	while (words->name && strcmp(words->name, what))
		words++;
	*side = words->side;
	return words->name;
}

static bool of_kind(const struct sim_kind *kind, const char *what, struct side *side)
{
	enum side_kind time = kind->nr ? SIDE_TIME : SIDE_NEVER;
	double nr = kind->nr ? kind->nr : 1;
	const struct word words[] = {
		{ "start", { kind->first, time } }, { "end", { kind->last, time } },
		{ "time", { kind->sum / nr, time } }, { "wait", { kind->waited / nr, time } },
		{ "min", { kind->min, time } }, { "max", { kind->max, time } },
		{ "total", { kind->sum, SIDE_TIME } }, { "launches", { kind->nr, SIDE_PLAIN } },
		{ "blocks", { kind->blocks, SIDE_PLAIN } },
		{ "sms", { sim_nr_sms(kind), SIDE_PLAIN } },
		{ "evicted", { kind->evicted, SIDE_PLAIN } }, { 0 },
	};

	return pick(words, what, side);
}

static bool of_gpu(const struct sim_run *run, const char *what, struct side *side)
{
	double switches = 0;

	for (unsigned int i = 0; i < run->scenario.pipe.nr_gpus; i++)
		switches += run->result.gpus[i].switches;
	return pick((const struct word[]){
		{ "busy", { run->result.busy_ns, SIDE_TIME } },
		{ "idle", { sim_idle(run), SIDE_TIME } }, { "end", { run->result.end, SIDE_TIME } },
		{ "switches", { switches, SIDE_PLAIN } }, { 0 },
	}, what, side);
}

static bool of_program(const struct pipe_program_result *program, const char *what,
		       struct side *side)
{
	return pick((const struct word[]){
		{ "end", { program->end, program->done ? SIDE_TIME : SIDE_NEVER } },
		{ "full", { program->full_ns, SIDE_TIME } },
		{ "sync", { program->sync_ns, SIDE_TIME } }, { 0 },
	}, what, side);
}

/* An expectation while it is being read, and an error message. */
struct reader {
	struct sim *sim;
	const struct sim_run *run;
	bool left_out;			/* the expectation's run was not selected */
	char why[256];
};

__attribute__((format(printf, 2, 3)))
static bool unreadable(struct reader *reader, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(reader->why, sizeof(reader->why), fmt, args);
	va_end(args);
	return false;
}

/*
 * Finds the object with this name that has a value @what. If there are several such objects,
 * returns an error.
 */
static bool look_up(struct reader *reader, const struct sim_run *run, const char *name,
		    const char *what, struct side *side)
{
	const struct pipe_scenario *pipe = &run->scenario.pipe;
	bool kernel = false, program = false, named = false;
	struct side of_program_named;

	if (!strcmp(name, "gpu") || !strcmp(name, "copies"))
		return (*name == 'g' ? of_gpu(run, what, side) :
			of_kind(&run->copies, what, side)) ||
		       unreadable(reader, "%s has no '%.40s'", name, what);
	for (unsigned int i = 0; i < pipe->nr_kernels; i++)
		if (!strcmp(pipe->kernels[i].name, name)) {
			named = true;
			kernel = of_kind(&run->kernels[i], what, side);
		}
	for (unsigned int i = 0; i < pipe->nr_programs; i++)
		if (!strcmp(pipe->programs[i].name, name)) {
			named = true;
			program = of_program(&run->result.programs[i], what, &of_program_named);
		}
	if (kernel && program)
		return unreadable(reader, "a kernel and a program are named '%.60s'", name);
	if (!named)
		return unreadable(reader, "there is no kernel or program '%.60s'", name);
	if (!kernel && !program)
		return unreadable(reader, "%.60s has no '%.40s'", name, what);
	if (program)
		*side = of_program_named;
	return true;
}

/*
 * Finds the run with this name. If the run is in the file but was not selected, skips the
 * expectation.
 */
static const struct sim_run *find_run(struct reader *reader, const char *wanted)
{
	const struct sim *sim = reader->sim;
	const char *name;

	for (unsigned int i = 0; i < sim->nr_runs; i++)
		if (sim->runs[i].name && !strcmp(sim->runs[i].name, wanted))
			return &sim->runs[i];
	for (unsigned int i = 0; scenario_run_name(&reader->sim->yaml, i, &name); i++)
		if (name && !strcmp(name, wanted)) {
			reader->left_out = true;
			return reader->run;
		}
	unreadable(reader, "there is no run '%.60s'", wanted);
	return NULL;
}

static bool find_value(struct reader *reader, char *word, struct side *side)
{
	char *slash = strchr(word, '/'), *dot = strrchr(word, '.');
	const struct sim_run *run = reader->run;
	uint64_t ns;

	if (yaml_read_time(word, &ns)) {
		*side = (struct side){ ns, SIDE_TIME };
		return true;
	}
	if (!dot || dot < slash)
		return unreadable(reader, "'%.60s': must be a number, a time or NAME.WHAT",
				  word);
	if (slash) {
		*slash = '\0';
		run = find_run(reader, word);
		word = slash + 1;
	}
	if (!run)
		return false;
	*dot = '\0';
	return look_up(reader, run, word, dot + 1, side);
}

/* Reads a number that is not negative. Rejects "nan" and "inf". */
static bool read_factor(const char *text, double *value, char **end)
{
	text += strspn(text, " ");
	*value = strtod(text, end);
	return isdigit((unsigned char)*text) && isfinite(*value);
}

/* Reads "[N *] WORD" or a number. Modifies the string @text. */
static bool read_side(struct reader *reader, char *text, struct side *side)
{
	double factor = 1;
	char *star = strchr(text, '*'), *end;

	text[strcspn(text, "\n")] = '\0';
	if (star) {
		if (!read_factor(text, &factor, &end) || end + strspn(end, " ") != star)
			return unreadable(reader, "the value before * must be a number");
		text = star + 1;
	}
	text += strspn(text, " ");
	for (end = text + strlen(text); end > text && end[-1] == ' '; )
		*--end = '\0';
	*side = (struct side){ 0, SIDE_PLAIN };
	if ((!read_factor(text, &side->value, &end) || *end) && !find_value(reader, text, side))
		return false;
	side->value *= factor;
	return true;
}

static const char *const relations[] = { "<=", ">=", "<", ">", "=" };

static bool holds(const char *relation, const struct side *sides)
{
	double left = sides[0].value, right = sides[1].value;

	if (sides[0].kind == SIDE_NEVER || sides[1].kind == SIDE_NEVER)
		return false;
	switch (relation[0]) {
	case '<':
		return relation[1] ? left <= right : left < right;
	case '>':
		return relation[1] ? left >= right : left > right;
	default:
		return left == right;
	}
}

static void say_side(char *text, size_t len, const struct side *side)
{
	char time[32];

	if (side->kind == SIDE_TIME)
		out_append(text, len, "%s", sim_time(time, side->value));
	else if (side->kind == SIDE_NEVER)
		out_append(text, len, "never");
	else
		out_append(text, len, "%g", side->value);
}

/* Reads both sides and the operator. On failure, stores an error message and returns false. */
static bool read_both(struct reader *reader, char *left, struct side *sides,
		      const char **relation)
{
	char *right, *at = NULL;

	for (unsigned int i = 0; i < sizeof(relations) / sizeof(relations[0]) && !at; i++) {
		*relation = relations[i];
		at = strstr(left, *relation);
	}
	if (!at)
		return unreadable(reader,
				  "an expectation must have one of < <= > >= = between two values");
	right = at + strlen(*relation);
	*at = '\0';
	if (!read_side(reader, left, &sides[0]) || !read_side(reader, right, &sides[1]))
		return false;
	if ((sides[0].kind == SIDE_PLAIN) != (sides[1].kind == SIDE_PLAIN))
		return unreadable(reader, "a time cannot be compared with a number");
	return true;
}

/* Checks the expectation in one run. If the expectation cannot be read, returns false. */
static bool judge(struct reader *reader, const yaml_node_t *node, struct sim_outcome *outcome)
{
	struct yaml *yaml = &reader->sim->yaml;
	char text[YAML_TEXT];
	const char *relation;
	struct side sides[2];

	scenario_choose_run(yaml, reader->run->nr);
	if (!yaml_text(yaml, node, "expect", text))
		return false;
	if (!read_both(reader, text, sides, &relation)) {
		yaml_fail(yaml, node, "expect: cannot read '%.100s': %s", outcome->text,
			  reader->why);
		return false;
	}
	if (!outcome->holds || reader->left_out)
		return true;	/* keep the numbers of the earlier run */
	outcome->holds = holds(relation, sides);
	outcome->found[0] = '\0';
	say_side(outcome->found, sizeof(outcome->found), &sides[0]);
	out_append(outcome->found, sizeof(outcome->found), " %s ", relation);
	say_side(outcome->found, sizeof(outcome->found), &sides[1]);
	return true;
}

/*
 * Checks the expectation in all runs. If the expectation names a run that was not selected, sets
 * *counts to false. If the expectation cannot be read, returns false.
 */
static bool judge_all(struct sim *sim, const yaml_node_t *node, struct sim_outcome *outcome,
		      bool *counts)
{
	struct reader reader = { .sim = sim };

	if (node->type != YAML_SCALAR_NODE) {
		yaml_fail(&sim->yaml, node, "expect: must be 'NAME.WHAT < NAME.WHAT'");
		return false;
	}
	*outcome = (struct sim_outcome){
		.text = (const char *)node->data.scalar.value, .holds = true,
	};
	for (unsigned int i = 0; i < sim->nr_runs; i++) {
		reader.run = &sim->runs[i];
		if (!judge(&reader, node, outcome))
			return false;
	}
	*counts = !reader.left_out;
	return true;
}

bool sim_expect(struct sim *sim, struct sim_outcome **outcomes)
{
	yaml_node_t *list = yaml_get(&sim->yaml, yaml_root(&sim->yaml), "expect"), *key, *node;
	struct sim_outcome *outcome;
	bool counts;

	*outcomes = NULL;
	sim->nr_expected = sim->nr_failed = 0;
	if (!list)
		return true;
	if (!yaml_is_list(&sim->yaml, list, "expect"))
		return false;
	*outcomes = alloc_zeroed(yaml_size(list) + 1u, sizeof(**outcomes));
	for (unsigned int i = 0; yaml_entry(&sim->yaml, list, i, &key, &node); i++) {
		outcome = &(*outcomes)[sim->nr_expected];
		if (!judge_all(sim, node, outcome, &counts))
			return false;
		sim->nr_expected += counts;
		sim->nr_failed += counts && !outcome->holds;
	}
	return true;
}
