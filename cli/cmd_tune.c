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

/* Adds a running job, or a program to start. Returns 0 or an error. */
static int add(struct tune *tune, const char *name, char **program)
{
	if (tune->nr == TUNE_PROGRAMS)
		return usage_error("'%s': tune can measure at most two jobs or programs", name);
	tune->programs[tune->nr] = program;
	tune->names[tune->nr++] = name;
	return 0;
}

/* Splits "PROGRAM ARGS : PROGRAM ARGS". Ends each program with NULL. Returns 0 or an error. */
static int add_programs(struct tune *tune, const struct args_texts *given, char **words)
{
	int status = 0;

	while (*words && !status) {
		bool has_name = tune->nr < given->nr;
		const char *name = has_name ? given->texts[tune->nr] : basename(*words);
		char **program = words;

		while (*words && strcmp(*words, ":"))
			words++;
		if (words == program || (*words && !words[1]))
			return usage_error(
				"':' separates two programs, but one of the programs is missing");
		if (*words)
			*words++ = NULL;
		if (!check_is_name(name))
			return has_name ? check_name("--name", name) :
			       usage_error("program '%s': a name " QOS_NAME_RULE ": use --name",
					   name);
		status = add(tune, name, program);
	}
	return status;
}

/*
 * Reads the names of jobs, or the programs after "--". If "--" is absent, @programs is NULL. The
 * values of --name are @given. Returns 0 or an error.
 */
static int take_words(struct tune *tune, const struct args_texts *given, char **jobs,
		      char **programs)
{
	int status = 0;

	if (programs && *jobs)
		return usage_error("'%s' cannot be used with a program after --", *jobs);
	if (!programs && (given->nr || tune->qos.mps))
		return usage_error("%s: needs a program after --",
				   tune->qos.mps ? "--mps" : "--name");
	if (programs)
		status = add_programs(tune, given, programs);
	for (; *jobs && !status; jobs++)
		status = add(tune, *jobs, NULL);
	if (status)
		return status;
	if (!tune->nr)
		return usage_error(
			"no job was given: use the names of one or two jobs, or programs after --");
	if (given->nr > tune->nr)
		return usage_error("there are more names than programs");
	if (tune->nr > 1 && !strcmp(tune->names[0], tune->names[1]))
		return usage_error("two programs are named %s: name two different jobs, or use "
				   "--name to give two programs different names", tune->names[0]);
	return 0;
}

/*
 * Finds a job of this user. If no option selects a GPU, selects the GPU of the job. Returns 0 or an
 * error.
 */
static int find_job(const char *name, struct args *args)
{
	struct gpupart_job *jobs, *job;
	int nr = shown_jobs(cmd_gp, &jobs), j = 0;

	while (j < nr && (strcmp(jobs[j].name, name) || jobs[j].uid != geteuid() ||
			  jobs[j].other_version))
		j++;
	job = j < nr ? &jobs[j] : NULL;
	if (job && job->simulated && !args->source)
		args->source = alloc_text("%s", job->source);
	else if (job && !job->simulated && !args->gpu)
		args->gpu = alloc_text("%s", job->pci);
	free(jobs);
	return j < nr ? 0 :
	       usage_error("you have no running job named '%s' under this version of gpupart: see "
			   "'gpupart ps'", name);
}

/*
 * Makes values of qos's option --tenant, from the value of --goal and from the names. Returns 0 or
 * an error.
 */
static int take_goal(struct tune *tune)
{
	char *demands, *name;
	bool speeds;

	tune->qos.goal = tune->qos.goal ?: tune->nr > 1 ? "sum" : "alpha=0.95";
	tune->fair = !strcmp(tune->qos.goal, "fair");
	speeds = tune->fair || !strcmp(tune->qos.goal, "sum");
	if (speeds && tune->nr == 1)
		return usage_error("--goal %s: the goals sum and fair need two programs: use "
				   "alpha=, rate= or latency=", tune->qos.goal);
	if (!speeds && !strchr(tune->qos.goal, '='))
		return usage_error("--goal '%s': must be sum, fair or [NAME:]alpha=, rate= or "
				   "latency=", tune->qos.goal);
	demands = alloc_text("%s", tune->qos.goal);
	name = strchr(demands, ':') ? strsep(&demands, ":") : NULL;
	while (name && tune->of < tune->nr && strcmp(tune->names[tune->of], name))
		tune->of++;
	if (tune->of == tune->nr)
		return usage_error("--goal %s: none of the programs has this name", tune->qos.goal);
	if (speeds)
		*demands = 0;
	for (unsigned int i = 0; i < tune->nr; i++)
		tune->qos.tenants.texts[i] = alloc_text("%s:%s", tune->names[i],
						       i == tune->of ? demands : "");
	tune->qos.tenants.nr = tune->nr;
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
	unsigned int nr;

	for (unsigned int i = 0; i < tune->nr && !status; i++) {
		const struct gpupart_tpcset *adopted = &c->setup.tenants[i].adopted;

		tune->room[i] = live_available(&c->live, i);
		nr = gpupart_tpcset_count(&tune->room[i]);
		if (nr < tune->nr)
			return usage_error(
				"%s: the outer limit and other programs leave only %u TPCs for this program",
				tune->names[i], nr);
		c->old[i] = gpupart_tpcset_empty(adopted) ? tune->room[i] : *adopted;
		if (!tune->programs[i]) {
			gpupart_tpcset_format_list(&c->old[i], list, sizeof(list));
			remark("%s has TPCs %s; if tune does not restore this set, run "
			       "'gpupart set %s -t %s'", tune->names[i], list, tune->names[i], list);
			continue;
		}
		if (i)
			c->old[i] = gpupart_tpcset_andnot(&tune->room[i], &c->old[0]);
		else if (tune->nr > 1)
			gpupart_set_shape(cmd_gp, c->live.topo, GPUPART_SHAPE_PACKED, &tune->room[i],
					  nr / 2, &c->old[i]);
		qos_spec_program(&c->setup.specs[i], tune->programs[i]);
		status = control_start(c, i, &c->old[i]);
	}
	return status ?: control_guard(c);
}

static int tune(struct tune *tune)
{
	struct control *c = &tune->c;
	struct args inner = *tune->args;
	int status;

	/* The output of the programs must not appear between the lines of the table. */
	inner.json = true;
	c->calibrating = true;
	status = control_open(c, &inner, &tune->qos) ?: begin(tune) ?: tune_measure(tune);
	tune->met = !status && tune_value(tune, tune->best) >= 0;
	tune->applied = tune->met && tune->apply;
	if (tune->applied)
		control_give(c, tune->best->sets);
	control_guard_end(c);
	for (unsigned int i = 0; i < tune->nr && !tune->applied; i++)
		control_end(c, i);
	status = status ?: tune_show(tune);
	control_close(c);
	return status;
}

int cmd_tune(int argc, char **argv)
{
	static struct tune run = { .seconds = 60, .wait = 30 };
	const char *seconds = NULL, *wait = NULL;
	struct args_texts names = { 0 };
	struct args args = { 0 };
	const struct args_option own[] = {
		{ .name = "goal", .value = &run.qos.goal },
		{ .name = "seconds", .value = &seconds }, { .name = "wait", .value = &wait },
		{ .name = "apply", .given = &run.apply },
		{ .name = "name", .values = &names }, { .name = "mps", .given = &run.qos.mps },
		{ .name = "output", .letter = 'o', .values = &run.outputs }, { 0 },
	};
	int status, end = 1;

	while (end < argc && strcmp(argv[end], "--"))
		end++;
	argv[end] = NULL;
	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_NAMES, own, tune_help,
			    end, argv) ?:
		 take_words(&run, &names, args.program, end < argc ? &argv[end + 1] : NULL) ?:
		 args_seconds("--seconds", seconds, 1, &run.seconds) ?:
		 args_seconds("--wait", wait, 1, &run.wait);
	for (unsigned int i = 0; i < run.outputs.nr && !status; i++)
		status = out_check(run.outputs.texts[i]);
	status = status ?: take_goal(&run);
	for (unsigned int i = 0; i < run.nr && !run.programs[i] && !status; i++)
		status = find_job(run.names[i], &args);
	status = status ?: args_simulate(&args);
	/* The tenants take no program from the arguments. */
	args.program = &argv[argc];
	run.args = &args;
	return status ?: tune(&run);
}
