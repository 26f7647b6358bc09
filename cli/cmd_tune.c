// SPDX-License-Identifier: MIT
/* gpupart tune: finds the best sets for programs. It changes the sets while the programs run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/target/check.h"
#include "cli/target/process_list.h"
#include "cli/tune/tune.h"

const char tune_help[] =
"Usage: gpupart tune NAME [NAME] [--goal GOAL] [--seconds S] [--wait S] [--apply]\n"
"                    [-i CAPTURE] [--gpu GPU] [--json] [-o FILE]...\n"
"       gpupart tune [--name NAME]... [--mps] [OPTIONS] -- PROGRAM [: PROGRAM]\n"
"Measures one or two jobs under about forty candidate sets of different sizes and\n"
"shapes, by changing their sets while they run, and prints the best sets for a goal.\n"
"Programs after -- are started, and stopped at the end.\n"
"\n"
"      --goal GOAL     sum: the highest sum of both speeds, each relative to its solo\n"
"                      speed (the default); fair: the highest speed of the slower one;\n"
"                      or [NAME:] with alpha=SHARE, rate=RATE, or latency=TIME and\n"
"                      percentile=P: program NAME (by default the first) reaches this\n"
"                      goal, and the other program is as fast as possible. For one\n"
"                      program: the fewest TPCs that reach the goal (alpha=0.95)\n"
"      --seconds S     time for all candidates together, 1-3600 (60). The best three\n"
"                      are then measured again, for half of that time, for percentiles\n"
"      --wait S        time to wait for the first reports of a program, 1-3600 (30)\n"
"      --apply         keep the best sets and leave the programs running; the default\n"
"                      is to restore the old sets\n"
"      --name NAME     name of a program that is started (default: its file's name)\n"
"      --mps           run the programs at the same time, through NVIDIA MPS: see\n"
"                      'gpupart help run'\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE; for a job, the capture\n"
"                      that it runs on\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write the best sets to FILE as a plan, which run --plan reads;\n"
"                      FILE.svg: a picture of all candidates\n"
"\n"
"Progress is measured by the reports of programs, or by completed launches if these\n"
"have completion records. The old sets are restored at once if a program makes no\n"
"progress, or if this command is killed. Documentation/user/tune.md describes how solo\n"
"speeds are measured.\n"
"\n"
"Exit status: 0 done, 1 failed, or no candidate reaches the goal (the best is\n"
"printed), 2 usage, 128 plus a signal's number; 125 to 127 a program could not be\n"
"started.\n"
"\n"
"Examples:\n"
"  gpupart tune serve train --goal serve:latency=8ms --apply -o plan.json\n"
"  gpupart tune train -o curve.svg\n"
"  gpupart tune --mps --goal fair -- ./serve --batch 16 : ./train\n";

/*
 * Reads the names of jobs, or if "--" is present, "PROGRAM ARGS : PROGRAM ARGS" at @programs. Ends
 * each program with NULL. The values of --name are @given. Returns 0 or an error.
 */
static int take_words(struct tune *tune, const struct args_texts *given, char **jobs,
		      char **programs)
{
	const char **names = tune->qos.tenants.texts;

	if (programs && *jobs)
		return usage_error("'%s' cannot be used with a program after --", *jobs);
	if (!programs && (given->nr || tune->qos.mps))
		return usage_error("%s: needs a program after --",
				   tune->qos.mps ? "--mps" : "--name");
	for (char **word = programs ?: jobs, **end; *word; word = end) {
		bool has_name = tune->nr < given->nr;

		if (tune->nr == TUNE_PROGRAMS)
			return usage_error("'%s': tune can measure at most two jobs or programs",
					   *word);
		for (end = word + 1; programs && *end && strcmp(*end, ":");)
			end++;
		if (programs && (!strcmp(*word, ":") || (*end && !end[1])))
			return usage_error(
				"':' separates two programs, but one of the programs is missing");
		if (programs && *end)
			*end++ = NULL;
		tune->programs[tune->nr] = programs ? word : NULL;
		names[tune->nr] = has_name ? given->texts[tune->nr] :
				  programs ? basename(*word) : *word;
		if (check_name(has_name ? "--name" : programs ? "without --name, the name" : "job",
			       names[tune->nr++]))
			return EXIT_USAGE;
	}
	if (!tune->nr)
		return usage_error(
			"no job was given: use the names of one or two jobs, or programs after --");
	if (given->nr > tune->nr)
		return usage_error("there are more names than programs");
	if (tune->nr > 1 && !strcmp(names[0], names[1]))
		return usage_error("two programs are named %s: name two different jobs, or use "
				   "--name to give two programs different names", names[0]);
	return 0;
}

/*
 * Finds a job of this user. If no option selects a GPU, selects the GPU of the job. Returns 0 or an
 * error.
 */
static int find_job(const char *name, struct args *args)
{
	struct gpupart_job *jobs;
	int nr = shown_jobs(cmd_gp, &jobs), j = 0;

	while (j < nr && (strcmp(jobs[j].name, name) || jobs[j].uid != geteuid() ||
			  jobs[j].other_version))
		j++;
	if (j >= nr)
		return usage_error("you have no running job named '%s' under this version of "
				   "gpupart: see 'gpupart ps'", name);
	/* The list of jobs is not freed, because @args refers to it. */
	if (jobs[j].simulated && !args->source)
		args->source = jobs[j].source;
	else if (!jobs[j].simulated && !args->gpu)
		args->gpu = jobs[j].pci;
	return 0;
}

/*
 * Makes values of qos's option --tenant, from the value of --goal and from the names. Returns 0 or
 * an error.
 */
static int take_goal(struct tune *tune)
{
	const char *goal = tune->qos.goal ?: tune->nr > 1 ? "sum" : "alpha=0.95", *name;
	struct args_texts *tenants = &tune->qos.tenants;
	bool speeds = !strcmp(goal, "sum") || !strcmp(goal, "fair");
	char *demands = alloc_text("%s", speeds ? "" : goal);

	tune->qos.goal = goal;
	if (speeds ? tune->nr == 1 : !strchr(goal, '='))
		return usage_error("--goal '%s': must be [NAME:]alpha=, rate= or latency=, or for "
				   "two programs, sum or fair", goal);
	name = strchr(demands, ':') ? strsep(&demands, ":") : NULL;
	while (name && tune->of < tune->nr && strcmp(tenants->texts[tune->of], name))
		tune->of++;
	if (tune->of == tune->nr)
		return usage_error("--goal %s: none of the programs has this name", goal);
	for (; tenants->nr < tune->nr; tenants->nr++)
		tenants->texts[tenants->nr] = alloc_text("%s:%s", tenants->texts[tenants->nr],
							 tenants->nr == tune->of ? demands : "");
	return 0;
}

/*
 * Finds the running jobs or starts the programs. If there are two programs, each program begins
 * with half of the TPCs. Returns 0 or an error.
 */
static int begin(struct tune *tune)
{
	struct control *c = &tune->c;
	int status = (tune->programs[0] ? 0 : control_adopt(c)) ?:
		     control_begin(c, "not used: TPCs of programs that are not tuned:");
	char list[GPUPART_TPCSET_STRLEN];

	for (unsigned int i = 0; i < tune->nr && !status; i++) {
		const char *name = c->live.tenants[i].name;
		struct gpupart_tpcset left, *old = &c->old[i];

		tune->room[i] = live_available(&c->live, i);
		left = gpupart_tpcset_andnot(&tune->room[i], &c->old[!i]);
		if (gpupart_tpcset_count(&tune->room[i]) < tune->nr)
			return usage_error(
				"%s: the outer limit and other programs leave only %u TPCs for this program",
				name, gpupart_tpcset_count(&tune->room[i]));
		if (tune->programs[i]) {
			gpupart_set_shape(cmd_gp, c->live.topo, GPUPART_SHAPE_PACKED, &left,
					  gpupart_tpcset_count(&left) / (tune->nr - i), old);
			qos_spec_program(&c->setup.specs[i], tune->programs[i]);
			status = control_start(c, i, old);
			continue;
		}
		*old = c->setup.tenants[i].adopted;
		*old = gpupart_tpcset_empty(old) ? tune->room[i] : *old;
		gpupart_tpcset_format_list(old, list, sizeof(list));
		remark("%s has TPCs %s; if tune does not restore this set, run "
		       "'gpupart set %s -t %s'", name, list, name, list);
	}
	return status ?: control_guard(c);
}

static int tune(struct tune *tune)
{
	struct control *c = &tune->c;
	int status;

	c->calibrating = true;
	status = control_open(c, &tune->args, &tune->qos) ?: begin(tune) ?: tune_measure(tune);
	tune->met = !status && tune_value(tune, tune->best) >= 0;
	tune->apply &= tune->met;
	if (tune->apply)
		control_give(c, tune->best->sets);
	control_guard_end(c);
	for (unsigned int i = 0; i < tune->nr && !tune->apply; i++)
		control_end(c, i);
	status = status ?: tune_show(tune);
	control_close(c);
	return status;
}

int cmd_tune(int argc, char **argv)
{
	/*
	 * In the arguments of the tenants, --json is always present. The output of the programs
	 * must not appear between the lines of the table.
	 */
	static struct tune run = { .seconds = 60, .wait = 30, .args = { .json = true } };
	const char *seconds = NULL, *wait = NULL;
	struct args_texts names = { 0 };
	struct args *args = &run.args;
	const struct args_option own[] = {
		{ .name = "goal", .value = &run.qos.goal }, { .name = "json", .given = &run.json },
		{ .name = "seconds", .value = &seconds }, { .name = "wait", .value = &wait },
		{ .name = "apply", .given = &run.apply },
		{ .name = "name", .values = &names }, { .name = "mps", .given = &run.qos.mps },
		{ .name = "output", .letter = 'o', .values = &run.outputs }, { 0 },
	};
	int status, end = 1;

	while (end < argc && strcmp(argv[end], "--"))
		end++;
	argv[end] = NULL;
	status = args_parse(args, ARGS_SIM | ARGS_GPU | ARGS_NAMES, own, tune_help, end, argv) ?:
		 take_words(&run, &names, args->program, end < argc ? &argv[end + 1] : NULL) ?:
		 args_seconds("--seconds", seconds, 1, &run.seconds) ?:
		 args_seconds("--wait", wait, 1, &run.wait);
	for (unsigned int i = 0; i < run.outputs.nr && !status; i++)
		status = out_check(run.outputs.texts[i]);
	for (unsigned int i = 0; i < run.nr && !run.programs[i] && !status; i++)
		status = find_job(run.qos.tenants.texts[i], args);
	status = status ?: take_goal(&run) ?: args_simulate(args);
	/* The tenants take no program from the arguments. */
	args->program = &argv[argc];
	return status ?: tune(&run);
}
