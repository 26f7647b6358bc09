// SPDX-License-Identifier: MIT
/* gpupart tune: finds the best sets for programs. It changes the sets while the programs run. */
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
"      --goal GOAL     sum: the highest sum of both speeds, relative to solo speeds\n"
"                      (the default); fair: the highest speed of the slower one; or\n"
"                      [NAME:]alpha=SHARE, rate=RATE, or latency=TIME,percentile=P:\n"
"                      program NAME (the first) reaches it, the other is as fast as\n"
"                      possible; for one: the fewest TPCs that reach it (alpha=0.95)\n"
"      --seconds S     time for all candidates, 1-3600 (60); then half of it to\n"
"                      measure the best three again, for percentiles\n"
"      --wait S        time to wait for the first reports of a program, 1-3600 (30)\n"
"      --apply         keep the best sets and leave the programs running; the default\n"
"                      is to restore the old sets\n"
"      --name NAME     name of a program that is started (default: its file's name)\n"
"      --mps           run the programs at the same time, through NVIDIA MPS\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE, the one that a job runs on\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write the best sets to FILE as a plan, which run --plan reads;\n"
"                      FILE.svg: a picture of all candidates\n"
"\n"
"Speeds come from the reports of programs, or from their completed launches. Programs\n"
"get their old sets if one makes no progress, and at once if this command is killed.\n"
"\n"
"Exit status: 0 done, 1 failed or no candidate reaches the goal, 2 usage, 128 plus a\n"
"signal's number; 125 to 127 a program could not be started.\n"
"\n"
"Examples:\n"
"  gpupart tune serve train --goal serve:latency=8ms --apply -o plan.json\n"
"  gpupart tune --mps --goal fair -- ./serve --batch 16 : ./train\n";

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
	if (jobs[j].simulated)
		args->source = args->source ?: jobs[j].source;
	else
		args->gpu = args->gpu ?: jobs[j].pci;
	return 0;
}

/*
 * Makes values of qos's option --tenant, from the value of --goal, and from names of jobs, or if
 * "--" is present, from "PROGRAM ARGS : PROGRAM ARGS" at @words. Ends each program with NULL. The
 * values of --name are @given. Returns 0 or an error.
 */
static int take_words(struct tune *tune, const struct args_texts *given, char **jobs, char **words)
{
	const char **names = tune->qos.tenants.texts, *goal = tune->qos.goal, *of;
	char *demands;
	int status = 0;

	if (words && *jobs)
		return usage_error("'%s' cannot be used with a program after --", *jobs);
	if (!words && tune->qos.mps)
		return usage_error("--mps: needs a program after --");
	for (; *jobs && tune->nr <= TUNE_PROGRAMS; jobs++)
		names[tune->nr++] = *jobs;
	while (words && *words && tune->nr <= TUNE_PROGRAMS) {
		names[tune->nr] = tune->nr < given->nr ? given->texts[tune->nr] : basename(*words);
		tune->programs[tune->nr] = words;
		while (*words && strcmp(*words, ":"))
			words++;
		if (words == tune->programs[tune->nr++] || (*words && !words[1]))
			return usage_error("':': one of the programs is missing");
		if (*words)
			*words++ = NULL;
	}
	if (tune->nr > TUNE_PROGRAMS)
		return usage_error("'%s': tune can measure at most two jobs or programs",
				   names[TUNE_PROGRAMS]);
	if (!tune->nr)
		return usage_error(
			"no job was given: use the names of one or two jobs, or programs after --");
	if (given->nr > (words ? tune->nr : 0))
		return usage_error("there are more names than programs");
	if (tune->nr > 1 && !strcmp(names[0], names[1]))
		return usage_error("two programs are named %s: name two different jobs, or use "
				   "--name to give two programs different names", names[0]);
	goal = tune->qos.goal = goal ?: tune->nr > 1 ? "sum" : "alpha=0.95";
	demands = alloc_text("%s", !strcmp(goal, "sum") || !strcmp(goal, "fair") ? "" : goal);
	if (*demands || !*goal ? !strchr(goal, '=') : tune->nr == 1)
		return usage_error("--goal '%s': must be [NAME:]alpha=, rate= or latency=, or for "
				   "two programs, sum or fair", goal);
	of = strchr(demands, ':') ? strsep(&demands, ":") : names[0];
	while (tune->of < tune->nr && strcmp(names[tune->of], of))
		tune->of++;
	if (tune->of == tune->nr)
		return usage_error("--goal %s: none of the programs has this name", goal);
	for (unsigned int i = 0; i < tune->nr && !status; i++) {
		status = !words ? find_job(names[i], &tune->args) : check_name(i < given->nr ?
			 "--name" : "without --name, the name", names[i]);
		names[i] = alloc_text("%s:%s", names[i], i == tune->of ? demands : "");
	}
	tune->qos.tenants.nr = tune->nr;
	return status;
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
		const struct live_tenant *t = &c->live.tenants[i];
		struct gpupart_tpcset left, *old = &c->old[i];

		tune->room[i] = live_available(&c->live, i);
		if (!tune->programs[i]) {
			*old = c->setup.tenants[i].adopted;
			*old = gpupart_tpcset_empty(old) ? tune->room[i] : *old;
			gpupart_tpcset_format_list(old, list, sizeof(list));
			remark("%s has TPCs %s; if tune does not restore this set, run "
			       "'gpupart set %s -t %s'", t->name, list, live_job_name(t), list);
			continue;
		}
		left = gpupart_tpcset_andnot(&tune->room[i], &c->old[!i]);
		if (gpupart_set_shape(cmd_gp, c->live.topo, GPUPART_SHAPE_PACKED, &left,
				      gpupart_tpcset_count(&left) / (tune->nr - i), old))
			return usage_error(
				"%s: the outer limit and other programs leave only %u TPCs for this program",
				t->name, gpupart_tpcset_count(&left));
		qos_spec_program(&c->setup.specs[i], tune->programs[i]);
		/* The guard first: this process may be killed while the programs start. */
		status = control_guard(c) ?: control_start(c, i, old);
	}
	return status ?: control_guard(c);
}

int cmd_tune(int argc, char **argv)
{
	static struct tune t = { .seconds = 60, .wait = 30, .c = { .calibrating = true } };
	const char *seconds = NULL, *wait = NULL;
	struct args_texts names = { 0 };
	const struct args_option own[] = {
		{ .name = "goal", .value = &t.qos.goal }, { .name = "json", .given = &t.args.json },
		{ .name = "seconds", .value = &seconds }, { .name = "wait", .value = &wait },
		{ .name = "apply", .given = &t.apply },
		{ .name = "name", .values = &names }, { .name = "mps", .given = &t.qos.mps },
		{ .name = "output", .letter = 'o', .values = &t.outputs }, { 0 },
	};
	int status, end = 1;

	while (end < argc && strcmp(argv[end], "--"))
		end++;
	argv[end] = NULL;
	out_json_alloc();
	status = args_parse(&t.args, ARGS_SIM | ARGS_GPU | ARGS_NAMES, own, tune_help, end, argv) ?:
		 take_words(&t, &names, t.args.program, end < argc ? &argv[end + 1] : NULL) ?:
		 args_seconds("--seconds", seconds, 1, &t.seconds) ?:
		 args_seconds("--wait", wait, 1, &t.wait) ?: args_simulate(&t.args);
	for (unsigned int i = 0; i < t.outputs.nr && !status; i++)
		status = out_check(t.outputs.texts[i]);
	/* The tenants take no program from the arguments. */
	t.args.program = &argv[argc];
	if (status)
		return status;
	status = control_open(&t.c, &t.args, &t.qos) ?: begin(&t) ?: tune_measure(&t);
	t.apply &= t.met;
	for (unsigned int i = 0; i < t.nr && !t.apply; i++)
		control_end(&t.c, i);
	status = status ?: tune_show(&t);
	if (status && t.apply)
		remark("the programs have the best sets, although an output failed");
	control_close(&t.c);
	return status;
}
