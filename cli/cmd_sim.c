// SPDX-License-Identifier: MIT
/* gpupart sim: scenarios on the simulated GPU's scheduling pipeline. Knows no stage of it. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "args.h"
#include "cmd.h"
#include "paths.h"
#include "sim.h"

const char sim_help[] =
"Usage: gpupart sim SCENARIO [--run NAME] [--json | --of FORM] [-o FILE]\n"
"Runs a scenario (a YAML file: GPUs, kernels, streams, programs) on the scheduling\n"
"pipeline in software and says what came of it, and whether it is what the file\n"
"expects. Documentation/scenarios.md says how to write one.\n"
"\n"
"  SCENARIO            a file, or the name of one that ships: see 'gpupart sim --list'\n"
"      --list          the scenarios that ship\n"
"      --run NAME      of a file with several runs only that one\n"
"      --json          as JSON, schema gpupart/1\n"
"      --of FORM       text (the default) or svg: which block ran on which SM when\n"
"  -o, --output FILE   write there\n"
"\n"
"Exit status: 0 it is what was expected, 1 it is not, or came to a standstill, 2 the\n"
"file is wrong or asks for what can never finish.\n"
"\n"
"Examples:\n"
"  gpupart sim figure-3\n"
"  gpupart sim my.yaml --json | jq '.runs[].kernels[]'\n"
"  gpupart sim figure-3 --run partitioned --of svg -o blocks.svg\n";

struct options {
	const char *scenario, *run, *form;
	bool list;
};

/* --------------------------------------------------------------- those that ship */

static bool folder_of(unsigned int i, char *folder, size_t len)
{
	char package[PATH_MAX];

	if (i > 1)
		return false;
	if (i || paths_package("../../share/gpupart/scenarios", package, sizeof(package)) ||
	    paths_full(package, folder, len))
		snprintf(folder, len, "%s", GPUPART_DATADIR "/scenarios");
	return true;
}

static int is_scenario(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 5 && !strcmp(entry->d_name + len - 5, ".yaml");
}

/* The first folder that has any: how many. */
static int list_scenarios(struct dirent ***entries)
{
	char folder[PATH_MAX];
	unsigned int i;
	int nr;

	for (i = 0; folder_of(i, folder, sizeof(folder)); i++) {
		nr = scandir(folder, entries, is_scenario, alphasort);
		if (nr > 0)
			return nr;
		if (!nr)
			free(*entries);
	}
	return 0;
}

static int print_list(const struct args *args)
{
	struct dirent **entries;
	int i, nr = list_scenarios(&entries), status;
	struct out out;

	status = out_open(&out, args);
	for (i = 0; i < nr; i++) {
		if (status < 0)
			fprintf(out.file, "%.*s\n", (int)strlen(entries[i]->d_name) - 5,
				entries[i]->d_name);
		free(entries[i]);
	}
	if (nr)
		free(entries);
	return status < 0 ? out_close(&out, args->cmd) : status;
}

void scenario_find(const char *name, char *path, size_t len)
{
	char folder[PATH_MAX];
	unsigned int i;

	for (i = 0; !strchr(name, '/') && access(name, F_OK) &&
	     folder_of(i, folder, sizeof(folder)); i++)
		if (snprintf(path, len, "%s/%s.yaml", folder, name) < (int)len &&
		    !access(path, F_OK))
			return;
	snprintf(path, len, "%s", name);
}

/* -------------------------------------------------------------------------- runs */

static void standstill(struct sim *sim, const struct sim_run *run, int err)
{
	const char *in = run->name ? run->name : "";
	int status = err == -EINVAL || err == -EOVERFLOW ? EXIT_USAGE : EXIT_FAILED;

	sim->yaml.failed = true;
	if (run->result.line)
		cmd_fail("sim", status, "%s:%d: %s%s%s", sim->path, run->result.line, in,
			 *in ? ": " : "", run->result.why);
	else
		cmd_fail("sim", status, "%s: %s%s%s", sim->path, in, *in ? ": " : "",
			 run->result.why);
}

static int run_one(struct sim *sim, struct sim_run *run, unsigned int i)
{
	int err;

	if (!scenario_make(&run->scenario, &sim->yaml, sim->gp, i))
		return EXIT_USAGE;
	err = sim_run(run);
	if (!err)
		return -1;
	standstill(sim, run, err);
	return err == -EINVAL || err == -EOVERFLOW ? EXIT_USAGE : EXIT_FAILED;
}

/* All runs of the file, or the one that is asked for: -1 to go on, or a status. */
static int run_all(struct sim *sim, const struct options *options)
{
	unsigned int i, nr = 0;
	const char *name;
	int status = -1;

	while (scenario_run_name(&sim->yaml, nr, &name))
		nr++;
	sim->runs = calloc(nr + 1u, sizeof(*sim->runs));
	if (!sim->runs)
		return cmd_fail("sim", EXIT_FAILED, "no memory");
	for (i = 0; i < nr && status < 0; i++) {
		scenario_run_name(&sim->yaml, i, &name);
		if (options->run && (!name || strcmp(name, options->run)))
			continue;
		sim->runs[sim->nr_runs].name = name;
		sim->runs[sim->nr_runs].want_blocks = options->form &&
						      !strcmp(options->form, "svg");
		status = run_one(sim, &sim->runs[sim->nr_runs++], i);
	}
	if (status < 0 && !sim->nr_runs)
		return cmd_fail("sim", EXIT_USAGE, "--run %s: %s has no such run",
				options->run ? options->run : "", sim->path);
	return status;
}

static int show(struct sim *sim, const struct args *args, const struct options *options)
{
	bool svg = options->form && !strcmp(options->form, "svg");
	struct sim_outcome *outcomes = NULL;
	struct out out;
	int status;

	/* What cannot be read is said before anything is written. */
	if (!options->run && !sim_expect(sim, &outcomes)) {
		free(outcomes);
		return EXIT_USAGE;
	}
	free(outcomes);
	if (svg && sim->nr_runs > 1)
		return cmd_fail("sim", EXIT_USAGE,
				"--of svg: %s has %u runs: choose one with --run",
				sim->path, sim->nr_runs);
	status = out_open(&out, args);
	if (status >= 0)
		return status;
	if (svg)
		sim_svg(&out, &sim->runs[0]);
	else if (args->json)
		out_json_write(&out, sim_json(sim, !options->run));
	else
		sim_text(&out, sim, !options->run);
	status = out_close(&out, args->cmd);
	if (sim->yaml.failed)
		return EXIT_USAGE;
	return sim->nr_failed ? EXIT_FAILED : status;
}

static int sim_file(struct sim *sim, const struct args *args, const struct options *options)
{
	unsigned int i;
	int status;

	if (gpupart_open(&sim->gp))
		return cmd_fail("sim", EXIT_FAILED, "no memory");
	status = yaml_open(&sim->yaml, "sim", sim->path);
	if (status < 0) {
		status = run_all(sim, options);
		if (status < 0)
			status = show(sim, args, options);
		for (i = 0; i < sim->nr_runs; i++)
			sim_run_free(&sim->runs[i]);
		free(sim->runs);
		yaml_close(&sim->yaml);
	}
	gpupart_close(sim->gp);
	return status;
}

/* SCENARIO stands first, or last behind options. */
static char *take_scenario(int *argc, char ***argv)
{
	char *name;

	if (*argc > 1 && (*argv)[1][0] != '-') {
		name = (*argv)[1];
		(*argv)[1] = (*argv)[0];
		(*argv)++;
		(*argc)--;
		return name;
	}
	if (*argc > 2 && (*argv)[*argc - 1][0] != '-')
		return (*argv)[--*argc];
	return NULL;
}

int cmd_sim(int argc, char **argv)
{
	struct options options = { .scenario = take_scenario(&argc, &argv) };
	const struct args_option own[] = {
		{ .name = "run", .value = &options.run }, { .name = "of", .value = &options.form },
		{ .name = "list", .given = &options.list }, { 0 },
	};
	struct args args = { 0 };
	struct sim sim = { 0 };
	char path[PATH_MAX];
	int status;

	status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT, own, sim_help, argc, argv);
	if (status >= 0)
		return status;
	if (options.list)
		return print_list(&args);
	if (!options.scenario)
		return cmd_fail(args.cmd, EXIT_USAGE, "no scenario: see 'gpupart sim --help'");
	if (options.form && strcmp(options.form, "text") && strcmp(options.form, "svg"))
		return cmd_fail(args.cmd, EXIT_USAGE, "--of %s: wants text or svg", options.form);
	if (options.form && args.json)
		return cmd_fail(args.cmd, EXIT_USAGE, "--json and --of %s: take one", options.form);
	scenario_find(options.scenario, path, sizeof(path));
	sim.path = path;
	return sim_file(&sim, &args, &options);
}
