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

struct wishes {
	struct qos_options qos;
	const char *goal, *seconds, *wait, *names[TUNE_PROGRAMS];
	struct args_texts name, outputs;
	bool apply;
	char **programs[TUNE_PROGRAMS];	/* command lines to start; NULL for a running job */
	unsigned int nr;
};

/*
 * Reads names of jobs, or "PROGRAM ARGS : PROGRAM ARGS". The number of arguments after "--" is
 * @nr_behind. If "--" is absent, @nr_behind is -1. Returns 0 or an error.
 */
static int take_words(struct wishes *w, char **words, int nr_behind)
{
	bool jobs = nr_behind < 0;
	int nr = 0, len;

	while (words[nr])
		nr++;
	if (!jobs && nr > nr_behind)
		return usage_error("'%s' cannot be used with a program after --", words[0]);
	if (jobs && (w->name.nr || w->qos.mps))
		return usage_error("%s: needs a program after --", w->qos.mps ? "--mps" : "--name");
	for (int at = 0; at < nr; at += len + 1, w->nr++) {
		for (len = jobs ? 0 : 1; !jobs && words[at + len] && strcmp(words[at + len], ":");)
			len++;
		if (w->nr == TUNE_PROGRAMS)
			return usage_error("'%s': tune can measure at most two jobs or programs",
					   words[at]);
		w->names[w->nr] = words[at];
		if (jobs)
			continue;
		if (!strcmp(words[at], ":") || (at + len == nr - 1 && words[at + len]))
			return usage_error(
				"':' separates two programs, but one of the programs is missing");
		w->programs[w->nr] = &words[at];
		words[at + len] = NULL;
		w->names[w->nr] = strrchr(words[at], '/') ? strrchr(words[at], '/') + 1 : words[at];
		if (w->nr < w->name.nr)
			w->names[w->nr] = w->name.texts[w->nr];
		if (w->nr < w->name.nr && check_name("--name", w->names[w->nr]))
			return EXIT_USAGE;
		if (!check_is_name(w->names[w->nr]))
			return usage_error("program '%s': a name " QOS_NAME_RULE ": use --name",
					   w->names[w->nr]);
	}
	if (!w->nr || (!jobs && w->name.nr > w->nr))
		return usage_error("%s", w->nr ? "there are more names than programs" :
				   "no job was given: use the names of one or two jobs, or programs after --");
	return w->nr < 2 || strcmp(w->names[0], w->names[1])
		       ? 0
		       : usage_error("two programs are named %s: %s", w->names[0],
				     jobs ? "name two different jobs"
					  : "use --name to give them different names");
}

/*
 * Finds the jobs of this user. If no option selects a GPU, selects the GPU of the jobs. Returns 0
 * or an error.
 */
static int find_jobs(const struct wishes *w, struct args *args)
{
	struct gpupart_job *jobs;
	int nr = shown_jobs(cmd_gp, &jobs), status = 0;

	for (unsigned int i = 0; i < w->nr && !w->programs[i] && !status; i++) {
		const struct gpupart_job *found = NULL;
		const char *name = w->names[i];

		for (int j = nr; j-- > 0; )
			if (!strcmp(jobs[j].name, name)) {
				found = &jobs[j];
				if (found->uid != geteuid() || found->other_version)
					break;
			}
		if (!found)
			status = usage_error("you have no running job named '%s': see 'gpupart ps'",
					     name);
		else if (found->uid != geteuid())
			status = usage_error("%s is a job of user %u: only that user can tune it",
					     name, found->uid);
		else if (found->other_version)
			status = usage_error("%s runs under another version of gpupart", name);
		else if (found->simulated && !args->source)
			args->source = alloc_text("%s", found->source);
		else if (!found->simulated && !args->gpu)
			args->gpu = alloc_text("%s", found->pci);
	}
	free(jobs);
	return status;
}

/*
 * Returns whether @demands, which has the form KEY=VALUE,.., has keys of a goal and no other key.
 * Other keys of qos do not change a measurement, or would replace the program.
 */
static bool has_only_goal(const char *demands)
{
	unsigned int nr = 0;

	for (size_t len; *demands; demands += len + (demands[len] == ',')) {
		len = strcspn(demands, ",");
		if (len && (!qos_is_goal_word(demands) || !strncmp(demands, "alone=", 6)))
			return false;
		nr += len > 0;
	}
	return nr;
}

/*
 * Makes values of qos's option --tenant, from the value of --goal and from the names. Returns 0 or
 * an error.
 */
static int take_goal(struct wishes *w, struct tune *tune)
{
	const char *colon, *demands;
	size_t len;

	w->goal = w->goal ?: w->nr > 1 ? "sum" : "alpha=0.95";
	tune->kind = !strcmp(w->goal, "sum") ? TUNE_SUM :
		     !strcmp(w->goal, "fair") ? TUNE_FAIR : TUNE_GOAL;
	tune->nr = w->nr;
	if (tune->kind != TUNE_GOAL && w->nr == 1)
		return usage_error("--goal %s: the goals sum and fair need two programs: use "
				   "alpha=, rate= or latency=", w->goal);
	if (tune->kind == TUNE_GOAL && !strchr(w->goal, '='))
		return usage_error("--goal '%s': must be %s[NAME:]alpha=, rate= or latency=",
				   w->goal, w->nr > 1 ? "sum, fair or " : "");
	colon = strchr(w->goal, ':');
	len = colon ? colon - w->goal : 0;
	while (colon && tune->of < w->nr && (strlen(w->names[tune->of]) != len ||
					     strncmp(w->names[tune->of], w->goal, len)))
		tune->of++;
	if (tune->of == w->nr)
		return usage_error("--goal %s: none of the programs has this name", w->goal);
	demands = tune->kind != TUNE_GOAL ? "" : colon ? colon + 1 : w->goal;
	if (tune->kind == TUNE_GOAL && !has_only_goal(demands))
		return usage_error(
			"--goal %s: must be alpha=, rate= or latency=; latency= can also have percentile=",
			w->goal);
	w->qos.words_from = "--goal";
	for (unsigned int i = 0; i < w->nr; i++)
		w->qos.tenants.texts[w->qos.tenants.nr++] =
			alloc_text("%s:job=%s,%s", w->names[i], w->names[i],
				   i == tune->of ? demands : "");
	return 0;
}

/*
 * Finds the running jobs or starts the programs. If there are two programs, each program begins
 * with half of the TPCs. Returns 0 or an error.
 */
static int begin(struct tune_run *run, struct wishes *w)
{
	struct control *c = &run->c;
	int status = (w->programs[0] ? 0 : control_adopt(c)) ?: control_take_signals(c);
	char list[GPUPART_TPCSET_STRLEN];
	unsigned int nr;

	if (status)
		return status;
	run->tune.goal = c->setup.tenants[run->tune.of];
	for (unsigned int i = 0; i < w->nr; i++) {
		qos_spec_program(&c->setup.specs[i], w->programs[i]);
		c->live.tenants[i].by_records = true;
	}
	live_open_socket(&c->live);
	live_find(&c->live, true);
	live_print_new_others(&c->live, "not used: TPCs of programs that are not tuned:");
	for (unsigned int i = 0; i < w->nr && !status; i++) {
		run->room[i] = c->old[i] = live_available(&c->live, i);
		nr = gpupart_tpcset_count(&run->room[i]);
		if (nr < w->nr)
			return usage_error(
				"%s: the outer limit and other programs leave only %u TPCs for this program",
				w->names[i], nr);
		if (!w->programs[i]) {
			if (!gpupart_tpcset_empty(&c->setup.tenants[i].adopted))
				c->old[i] = c->setup.tenants[i].adopted;
			gpupart_tpcset_format_list(&c->old[i], list, sizeof(list));
			remark(
				"%s has TPCs %s; if tune does not restore this set, run 'gpupart set %s -t %s'",
			       w->names[i], list, w->names[i], list);
			continue;
		}
		if (i)
			c->old[i] = gpupart_tpcset_andnot(&run->room[i], &c->old[0]);
		else if (w->nr > 1)
			gpupart_set_shape(cmd_gp, c->live.topo, GPUPART_SHAPE_PACKED, &run->room[0],
					  nr / 2, &c->old[0]);
		status = control_start(c, i, &c->old[i]);
	}
	return status ?: control_guard(c);
}

static int tune(struct tune_run *run, struct wishes *w)
{
	struct control *c = &run->c;
	struct args inner = *run->args;
	char *none = NULL;
	int status;

	/* The output of the programs must not appear between the lines of the table. */
	inner.json = true;
	inner.program = &none;
	c->calibrating = true;
	status = control_open(c, &inner, &w->qos) ?: begin(run, w) ?: tune_measure(run);
	run->applied = !status && w->apply && tune_value(&run->tune, run->tune.best) >= 0;
	if (run->applied) {
		memcpy(c->old, run->tune.best->sets, sizeof(run->tune.best->sets));
		control_restore(c);
	}
	control_guard_end(c);
	for (unsigned int i = 0; i < w->nr && !run->applied; i++)
		control_end(c, i);
	status = status ?: tune_show(run, &w->outputs);
	control_close(c);
	return status;
}

int cmd_tune(int argc, char **argv)
{
	static struct tune_run run;
	struct wishes w = { 0 };
	struct args args = { 0 };
	const struct args_option own[] = {
		{ .name = "goal", .value = &w.goal }, { .name = "seconds", .value = &w.seconds },
		{ .name = "wait", .value = &w.wait }, { .name = "apply", .given = &w.apply },
		{ .name = "name", .values = &w.name }, { .name = "mps", .given = &w.qos.mps },
		{ .name = "output", .letter = 'o', .values = &w.outputs }, { 0 },
	};
	double seconds = 60, wait = 30;
	char **words = alloc_zeroed(argc + 1, sizeof(*words));
	int status, behind = -1;

	/*
	 * Do not change argv, because the command may be executed again with argv. This happens for
	 * the simulated GPU.
	 */
	memcpy(words, argv, argc * sizeof(*words));
	for (int i = 1; i < argc && behind < 0; i++)
		behind = !strcmp(argv[i], "--") ? argc - i - 1 : -1;
	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_NAMES, own, tune_help,
			    argc, words) ?: take_words(&w, args.program, behind) ?:
		 args_seconds("--seconds", w.seconds, 1, &seconds) ?:
		 args_seconds("--wait", w.wait, 1, &wait);
	for (unsigned int i = 0; i < w.outputs.nr && !status; i++)
		status = out_check(w.outputs.texts[i]);
	status = status ?: take_goal(&w, &run.tune) ?: find_jobs(&w, &args) ?: args_simulate(&args);
	run.args = &args;
	run.goal = w.goal;
	run.budget_ns = seconds * 1e9;
	run.wait_ns = wait * 1e9;
	status = status ?: tune(&run, &w);
	free(words);
	return status;
}
