// SPDX-License-Identifier: MIT
/*
 * gpupart sim: runs scenarios on the pipeline. The pipeline is a model of the scheduling in a GPU.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/sim/scenario_files.h"
#include "cli/sim/sim.h"
#include "cli/target/args.h"

const char sim_help[] =
"Usage: gpupart sim SCENARIO [--run NAME] [--json | --of FORM] [--span FROM-TO]\n"
"                   [-o FILE]\n"
"       gpupart sim --list [--json] [-o FILE]\n"
"Runs a scenario on a software model of the GPU's scheduling pipeline, prints the\n"
"result, and checks it against what the file expects. A scenario is a YAML file of\n"
"GPUs, kernels, streams and programs: see Documentation/user/scenarios.md.\n"
"\n"
"  SCENARIO            a file, or a name from 'gpupart sim --list'\n"
"      --list          list the scenarios that ship with gpupart, and their titles\n"
"      --run NAME      run only this run of a file with several runs\n"
"      --json          print JSON, schema gpupart/1\n"
"      --of FORM       show which block ran on which SM, and when: text, below the\n"
"                      summary, or svg, a drawing that is legible in grey (the default\n"
"                      for -o FILE.svg). With many blocks it shows totals\n"
"      --span FROM-TO  show only this part of the time: --span 1ms-1.5ms\n"
"  -o, --output FILE   write FILE; FILE.svg: as with --of svg, FILE.json: with --json\n"
"\n"
"Exit status: 0 the result is as expected, 1 the result is not as expected, or the run\n"
"deadlocked, 2 the file is wrong or contains work that can never finish.\n"
"\n"
"Examples:\n"
"  gpupart sim figure-3\n"
"  gpupart sim my.yaml --json | jq '.runs[].kernels[]'\n"
"  gpupart sim figure-3 --of text\n"
"  gpupart sim figure-3 --run partitioned -o blocks.svg\n";

struct options {
	const char *scenario, *run, *form, *span;
	uint64_t from, to;		/* @span in ns; if @to is 0, it ends with the run */
	bool list;
};

/* -------------------------------------------------------------- shipped scenarios */

/* Prints a line "NAME  TITLE" for a scenario. */
static void print_titled(struct out *out, const char *name)
{
	yaml_node_t *title;
	struct yaml yaml = { 0 };
	char path[PATH_MAX];

	if (scenario_find(name, path, sizeof(path)) || yaml_open(&yaml, "", path, "a scenario"))
		return;
	title = yaml_get(&yaml, yaml_root(&yaml), "title");
	fprintf(out->file, "%-16s  %s\n", name, title && title->type == YAML_SCALAR_NODE ?
		out_clean((char *)title->data.scalar.value) : "");
	yaml_close(&yaml);
}

static int print_list(const struct args *args)
{
	json_t *names = args->json ? json_array() : NULL;
	struct dirent **entries;
	struct out out;
	int nr, status;

	status = out_open(&out, args);
	if (status)
		return status;
	nr = scenario_list(&entries);
	for (int i = 0; i < nr; i++) {
		entries[i]->d_name[strlen(entries[i]->d_name) - 5] = 0;
		if (names)
			json_array_append_new(names, out_json_text(entries[i]->d_name));
		else
			print_titled(&out, entries[i]->d_name);
		free(entries[i]);
	}
	if (nr)
		free(entries);
	out_json_list(&out, "sim", true, "scenarios", names);
	return out_close(&out);
}

/* -------------------------------------------------------------------------- runs */

static int fail_run(struct sim *sim, const struct sim_run *run, int err)
{
	const char *in = run->name ? run->name : "";
	int status = err == -EINVAL || err == -EOVERFLOW ? EXIT_USAGE : EXIT_FAILED;

	sim->yaml.failed = true;
	if (run->result.line)
		return cmd_fail(cmd_name, status, "%s:%d: %s%s%s", sim->path, run->result.line, in,
				*in ? ": " : "", run->result.why);
	return cmd_fail(cmd_name, status, "%s: %s%s%s", sim->path, in, *in ? ": " : "",
			run->result.why);
}

static int run_one(struct sim *sim, struct sim_run *run, unsigned int i)
{
	int err;

	if (!scenario_make(&run->scenario, &sim->yaml, i))
		return EXIT_USAGE;
	err = sim_run(run);
	return err ? fail_run(sim, run, err) : 0;
}

/* Writes the names of the runs in the file to @names. Returns @names. */
static const char *run_names(struct sim *sim, char *names, size_t len)
{
	const char *name;

	*names = 0;
	for (unsigned int i = 0; scenario_run_name(&sim->yaml, i, &name); i++)
		out_append(names, len, "%s%s", i ? ", " : "", name ? name : "");
	return names;
}

static int run_all(struct sim *sim, const struct options *options)
{
	char names[512];
	unsigned int i, nr = 0;
	const char *name;
	int status = 0;

	if (!yaml_root(&sim->yaml))
		return usage_error("%s: the file is empty", sim->path);
	while (scenario_run_name(&sim->yaml, nr, &name))
		nr++;
	sim->runs = alloc_zeroed(nr + 1u, sizeof(*sim->runs));
	for (i = 0; i < nr && !status; i++) {
		scenario_run_name(&sim->yaml, i, &name);
		if (options->run && (!name || strcmp(name, options->run)))
			continue;
		sim->runs[sim->nr_runs].name = name;
		sim->runs[sim->nr_runs].nr = i;
		status = run_one(sim, &sim->runs[sim->nr_runs++], i);
	}
	if (!status && !nr)
		return usage_error("%s: the list 'runs' is empty", sim->path);
	if (!status && !sim->nr_runs)
		return usage_error("--run %s: %s has no such run: its runs are %s",
				   options->run ? options->run : "", sim->name,
				   run_names(sim, names, sizeof(names)));
	return status;
}

static bool is_form(const struct options *options, const char *form)
{
	return options->form && !strcmp(options->form, form);
}

/*
 * Returns the time, in ns, at which the drawn part of a run ends. If the run ended before the start
 * of the part, returns 0.
 */
static uint64_t drawn_to(const struct sim_run *run, const struct options *options)
{
	uint64_t end = run->result.end ? run->result.end : 1;

	if (options->to && options->to < end)
		return options->to;
	return options->from < end ? end : 0;
}

static void draw(struct out *out, struct sim *sim, const struct options *options)
{
	const yaml_node_t *node = yaml_get(&sim->yaml, yaml_root(&sim->yaml), "title");
	const char *title = node && node->type == YAML_SCALAR_NODE ?
			    (const char *)node->data.scalar.value : NULL;

	if (is_form(options, "svg")) {
		sim_svg(out, &sim->runs[0], title, options->from,
			drawn_to(&sim->runs[0], options));
		return;
	}
	for (unsigned int i = 0; i < sim->nr_runs; i++) {
		fputc('\n', out->file);
		if (sim->runs[i].name)
			fprintf(out->file, "%sblocks of run %s%s\n", out->bold,
				sim->runs[i].name, out->plain);
		sim_rows(out, &sim->runs[i], options->from, drawn_to(&sim->runs[i], options));
	}
}

/* Checks the expectations and the drawing options. Returns 0 or an error. */
static int check(struct sim *sim, const struct options *options)
{
	struct sim_outcome *outcomes = NULL;
	bool good = sim_expect(sim, &outcomes);
	char names[512];
	char end[32];

	free(outcomes);
	if (!good)
		return EXIT_USAGE;
	if (is_form(options, "svg") && sim->nr_runs > 1)
		return usage_error("--of svg: %s has %u runs: choose one of these with --run: %s",
				   sim->name, sim->nr_runs, run_names(sim, names, sizeof(names)));
	for (unsigned int i = 0; i < sim->nr_runs; i++)
		if (!drawn_to(&sim->runs[i], options))
			return usage_error("--span %s: %s%sends earlier, at %s", options->span,
					   sim->runs[i].name ? sim->runs[i].name : "",
					   sim->runs[i].name ? " " : "the run ",
					   sim_time(end, sim->runs[i].result.end));
	return 0;
}

static int show(struct sim *sim, const struct args *args, const struct options *options)
{
	int status = check(sim, options);
	struct out out;

	if (!status)
		status = out_open(&out, args);
	if (status)
		return status;
	if (args->json)
		out_json_write(&out, sim_json(sim));
	else if (!is_form(options, "svg"))
		sim_text(&out, sim);
	if (options->form)
		draw(&out, sim, options);
	status = out_close(&out);
	if (sim->yaml.failed)
		return EXIT_USAGE;
	return sim->nr_failed ? EXIT_FAILED : status;
}

static int sim_file(struct sim *sim, const struct args *args, const struct options *options)
{
	int status;

	status = yaml_open(&sim->yaml, "", sim->path, "a scenario");
	if (!status) {
		status = run_all(sim, options) ?: show(sim, args, options);
		for (unsigned int i = 0; i < sim->nr_runs; i++)
			sim_run_free(&sim->runs[i]);
		free(sim->runs);
		yaml_close(&sim->yaml);
	}
	return status;
}

/* Reads a span such as "1ms-1.5ms". Returns 0 or an error. */
static int read_span(struct options *options)
{
	const char *dash = options->span ? strchr(options->span, '-') : NULL;
	char from[64];

	if (!options->span)
		return 0;
	snprintf(from, sizeof(from), "%.*s", dash ? (int)(dash - options->span) : 0,
		 options->span);
	if (!dash || !yaml_read_time(from, &options->from) ||
	    !yaml_read_time(dash + 1, &options->to) || options->from >= options->to)
		return usage_error(
			"--span %s: must be two points in time such as 1ms-1.5ms, with the earlier point first",
			options->span);
	return 0;
}

/* Rejects options that exclude each other. Returns 0 or an error. */
static int check_options(const struct args *args, struct options *options)
{
	const char *extra = options->list || !*args->program ? *args->program : args->program[1];

	if (extra)
		return usage_error("unexpected argument '%s': see 'gpupart sim --help'", extra);
	if (options->list && (options->run || options->form || options->span))
		return usage_error("--list and %s %s: use only one of them",
				   options->run	 ? "--run" :
				   options->form ? "--of" :
						   "--span",
				   options->run	 ? options->run :
				   options->form ? options->form :
						   options->span);
	if (options->list)
		return 0;
	options->scenario = *args->program;
	if (!options->scenario)
		return usage_error("no scenario: see 'gpupart sim --help'");
	if (!options->form && !args->json && out_is_svg(args->output))
		options->form = "svg";
	if (options->form && !is_form(options, "text") && !is_form(options, "svg"))
		return usage_error("--of %s: must be text or svg", options->form);
	if (options->form && args->json)
		return usage_error("--json and --of %s: use only one of them", options->form);
	if (options->span && !options->form)
		return usage_error("--span %s: needs --of text or svg", options->span);
	return read_span(options);
}

int cmd_sim(int argc, char **argv)
{
	struct options options = { 0 };
	const struct args_option own[] = {
		{ .name = "run", .value = &options.run }, { .name = "of", .value = &options.form },
		{ .name = "span", .value = &options.span },
		{ .name = "list", .given = &options.list }, { 0 },
	};
	struct args args = { 0 };
	struct sim sim = { 0 };
	char path[PATH_MAX];
	int status;

	status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT | ARGS_NAMES, own, sim_help, argc,
			    argv) ?:
		 check_options(&args, &options);
	if (status)
		return status;
	if (options.list)
		return print_list(&args);
	status = scenario_find(options.scenario, path, sizeof(path));
	if (status)
		return status;
	sim.name = options.scenario;
	sim.path = path;
	return sim_file(&sim, &args, &options);
}
