// SPDX-License-Identifier: MIT
/* gpupart set: changes or shows the limit of a running process or job. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/target/drained.h"
#include "cli/target/process_list.h"
#include "cli/target/tenants.h"
#include "cli/target/which_gpu.h"
#include "cli/util/out.h"
#include "cli/util/yaml.h"
#include "lib/private.h"

const char set_help[] =
"Usage: gpupart set -p PID [SET [--wait[=TIME]]] [--gpu GPU] [--json]\n"
"       gpupart set NAME [SET [--wait[=TIME]]] [--gpu GPU] [--json]\n"
"       gpupart set -p PID | NAME --mem SIZE [--gpu GPU] [--json]\n"
"Changes the limit of a running process, or of all processes of the jobs that 'gpupart\n"
"run --name NAME' started, including processes that start later. The new set applies\n"
"from the next launch on. Prints the old set and the new set, or without SET the\n"
"current set. You can change your own processes; root can change all with -p.\n"
"\n"
"SET, several options add up:\n"
"  -t, --tpcs LIST     TPCs: 0,5,8-11 or 0-10:2\n"
"  -g, --gpcs LIST     whole GPCs\n"
"  -u, --ugpus LIST    whole uGPUs (halves of the L2 cache)\n"
"  -n, --nr-tpcs N     choose N TPCs close together that no other set has; for a job\n"
"                      inside another job, TPCs of the outer set. -n 50% is half of\n"
"                      the GPU's TPCs\n"
"      --sms N         choose N SMs, as with -n; rounded up to whole TPCs\n"
"      --shape SHAPE   how -n and --sms choose: packed, gpcs, balanced or spread, as\n"
"                      for run\n"
"  @NAME               a named set of the configuration file\n"
"      --hex MASK      bit i allows TPC i\n"
"  -a, --all           all TPCs of the GPU\n"
"\n"
"      --mem SIZE      change, instead of the set, the memory quota of tenant NAME\n"
"                      ('gpupart run --mem') or of the process's tenant, on all its\n"
"                      GPUs. A quota below the current use frees nothing: allocations\n"
"                      fail until the tenant has freed enough\n"
"\n"
"      --wait[=TIME]   then wait until no launch with TPCs outside the new set is\n"
"                      outstanding, at most TIME (10ms, 5s), and print the time that\n"
"                      this took; fail after TIME, or if launches have no completion\n"
"                      records\n"
"\n"
"  -p, --pid PID       this process, but not the processes that it started\n"
"      --gpu GPU       if a process or job uses several GPUs: a PCI address, as in\n"
"                      'gpupart ps', a UUID or an index in PCI order; the default is\n"
"                      the first GPU with a set for a process, all GPUs for a job\n"
"      --json          print JSON, schema gpupart/1\n"
"\n"
"A running launch keeps its TPCs until it ends. The new set may be wider than the set\n"
"with which the program was started. The set of a job inside another job must stay\n"
"inside the outer set. This command does not know the rules of the program\n"
"('gpupart run --rule'): if the new set has no TPC of a rule's set, the rule's kernels\n"
"get the whole new set.\n"
"\n"
"Exit status: 0 done, 1 a process could not be changed or --wait failed, 2 no such\n"
"process or job, or the set is not allowed.\n"
"\n"
"Examples:\n"
"  gpupart set train\n"
"  gpupart set -p 4711 -g 0-3\n"
"  gpupart set train -u 0 --wait=5s\n"
"  gpupart set train --mem 24G\n";

/* A process or job whose limit this command will change. */
struct target {
	int pid;			/* 0 for a job */
	char job[GPUPART_JOB_STRLEN];	/* "" for a single process */
	char name[64], pci[20], source[512];
	bool simulated;
	bool elsewhere;			/* a job in another pid namespace */
	bool other_version;		/* has another version of gpupart; cannot be changed */
	bool several;			/* there are targets on other GPUs */
	unsigned int uid;		/* owner */
	struct gpupart_topology *topo;	/* of the GPU */
	struct gpupart_tpcset before, set;
};

struct targets {
	const struct args *args;
	bool all, show;			/* @all: -a was given; @show: change no set */
	bool wait;			/* wait for earlier launches */
	uint64_t wait_ns;		/* time limit in ns; 0 for none */
	struct target *list;
	unsigned int nr;
	struct which_gpu which;
	char others[256];		/* GPUs that --gpu does not select */
	struct gpupart_process *processes;
	int nr_processes;
	struct gpupart_process *rows;	/* for jobs: an entry for each GPU of each process */
	int nr_rows;
	struct gpupart_job *jobs;	/* all jobs, as listed before the first change */
	int nr_jobs;
};

/* ----------------------------------------------------------------- targets */

static struct target *add_target(struct targets *t)
{
	t->list = alloc_resized(t->list, t->nr + 1, sizeof(*t->list));
	return memset(&t->list[t->nr++], 0, sizeof(*t->list));
}

/*
 * Returns true if --gpu is absent or selects this GPU. @index is the index of the GPU in its
 * program.
 */
static bool is_meant(struct targets *t, const char *pci, const char *source, bool simulated,
		     unsigned int index)
{
	if (!t->args->gpu || which_gpu_is(&t->which, pci, source, simulated, index))
		return true;
	if (!strstr(t->others, pci))
		out_append(t->others, sizeof(t->others), "%s%s", *t->others ? ", " : "", pci);
	return false;
}

static void add_row(struct targets *t, const struct gpupart_process *p)
{
	struct target *target = add_target(t);

	target->pid = p->pid;
	target->uid = p->uid;
	target->simulated = p->simulated;
	target->other_version = p->other_version;
	snprintf(target->name, sizeof(target->name), "%s", p->name);
	snprintf(target->pci, sizeof(target->pci), "%s", p->pci);
	snprintf(target->source, sizeof(target->source), "%s", p->source);
	if (*p->limit)
		gpupart_tpcset_parse_list(NULL, p->limit, &target->before);
}

static void add_process(struct targets *t, const struct gpupart_process *p)
{
	struct gpupart_process *rows;
	int nr;

	if (!t->args->gpu) {
		add_row(t, p);
		return;
	}
	nr = shown_rows(cmd_gp, p, 1, &rows);
	for (int i = 0; i < nr; i++)
		if (is_meant(t, rows[i].pci, rows[i].source, rows[i].simulated, i))
			add_row(t, &rows[i]);
	free(rows);
}

static void add_job(struct targets *t, const struct gpupart_job *job)
{
	struct target *target;

	if (!is_meant(t, job->pci, job->source, job->simulated, 0))
		return;
	target = add_target(t);
	snprintf(target->job, sizeof(target->job), "%s", job->id);
	snprintf(target->name, sizeof(target->name), "%s", job->name);
	snprintf(target->pci, sizeof(target->pci), "%s", job->pci);
	snprintf(target->source, sizeof(target->source), "%s", job->source);
	target->simulated = job->simulated;
	target->elsewhere = job->elsewhere;
	target->other_version = job->other_version;
	target->uid = job->uid;
	gpupart_tpcset_parse_list(NULL, job->limit, &target->before);
}

static int list_processes(struct targets *t)
{
	t->nr_processes = shown_processes(cmd_gp, &t->processes);
	if (t->nr_processes < 0)
		return failure("%s", gpupart_error(cmd_gp));
	return 0;
}

/* Adds the jobs with the name or id @name. If @name is NULL, adds the job that @pid started. */
static int find_jobs(struct targets *t, const char *name, int pid)
{
	struct gpupart_job *jobs;
	int nr = shown_jobs(cmd_gp, &jobs);

	for (int i = 0; i < nr; i++)
		if (name ? !strcmp(jobs[i].name, name) || !strcmp(jobs[i].id, name) :
			   jobs[i].pid == pid)
			add_job(t, &jobs[i]);
	free(t->jobs);
	t->jobs = jobs;
	t->nr_jobs = nr < 0 ? 0 : nr;
	return nr < 0 ? failure("%s", gpupart_error(cmd_gp)) : 0;
}

static bool has_job(const struct targets *t, const char *job)
{
	for (unsigned int i = 0; i < t->nr; i++)
		if (*job && !strcmp(t->list[i].job, job))
			return true;
	return false;
}

/* Returns an error: the option --gpu selects no GPU of @whose. */
static int fail_gpu(const struct targets *t, const char *whose)
{
	return usage_error("--gpu %s: %s runs on GPU %s", t->args->gpu, whose, t->others);
}

static int find_name(struct targets *t, const char *name)
{
	int status = find_jobs(t, name, 0);

	/* Also add programs without 'gpupart run --name'. Such a program can set its own name. */
	for (int i = 0; !status && i < t->nr_processes; i++)
		if (!strcmp(t->processes[i].name, name) && t->processes[i].pid &&
		    t->processes[i].uid == geteuid() && !has_job(t, t->processes[i].job) &&
		    *t->processes[i].pci)
			add_process(t, &t->processes[i]);
	if (!status && !t->nr && *t->others)
		return fail_gpu(t, name);
	if (!status && !t->nr)
		return usage_error(
			"you have no running job or program named '%s': see 'gpupart ps'", name);
	return status;
}

static int find_pid(struct targets *t, const char *text)
{
	int pid, status = args_pid(text, &pid);

	if (status)
		return status;
	for (int i = 0; i < t->nr_processes; i++)
		if (t->processes[i].pid == pid && *t->processes[i].pci) {
			add_process(t, &t->processes[i]);
			return t->nr ? 0 : fail_gpu(t, "the process");
		}
	/*
	 * A program of 'gpupart run' may not have called cuInit yet. Until then, only its job is
	 * known.
	 */
	status = find_jobs(t, NULL, pid);
	if (!status && !t->nr && *t->others)
		return fail_gpu(t, "the process");
	if (!status && !t->nr && kill(pid, 0) && errno == ESRCH)
		return usage_error("process %d does not exist", pid);
	if (!status && !t->nr)
		return usage_error(
			"process %d is not known to gpupart: the process has not called cuInit, runs without gpupart, or /dev/shm was full when the process started: see 'gpupart ps'",
			pid);
	return status;
}

/* --------------------------------------------------------------- new sets */

/*
 * Stores the limit of the outer job of @target in @set. Returns NULL if there is no outer job, or
 * if the limit of the outer job also changes.
 */
static const struct gpupart_tpcset *outer_limit(const struct targets *t,
						const struct target *target,
						struct gpupart_tpcset *set)
{
	const struct gpupart_job *around;
	const char *parent = "";

	for (int i = 0; *target->job && i < t->nr_jobs; i++)
		if (!strcmp(t->jobs[i].id, target->job))
			parent = t->jobs[i].parent;
	around = shown_job_on(t->jobs, t->nr_jobs, parent, target->pci);
	return around && !has_job(t, around->id) &&
	       !gpupart_tpcset_parse_list(NULL, around->limit, set) ? set : NULL;
}

static int work_out(struct targets *t, struct target *target)
{
	const struct gpupart_tpcset *outer;
	struct gpupart_tpcset around;
	const struct shown_gpu gpu = {
		.source = target->source, .pci = target->pci, .simulated = target->simulated,
		.uid = target->uid, .pid = target->pid,
	};
	struct args args = *t->args;
	struct gpupart_topology *topo;
	char why[512];
	int err;

	if (target->other_version && *target->job)
		snprintf(why, sizeof(why), "job %.64s",
			 *target->name ? target->name : target->job);
	else
		snprintf(why, sizeof(why), "process %d", target->pid);
	if (target->other_version)
		return failure(
			"%s runs under another version of gpupart: only 'gpupart set' of that version can change its limit",
			why);
	/* If a path is too long, the library stores the end of the path. */
	if (!strncmp(target->source, "...", 3))
		return usage_error(
			"the path of its capture, %s, is longer than %zu characters and cannot be read again: use a shorter path with 'gpupart run -i'",
			target->source, sizeof(target->source) - 1);
	args.simulated = target->simulated;
	args.ignored_pid = target->pid;
	args.ignored_name = *target->job && *target->name ? target->name : NULL;
	args.job = target->job;
	err = shown_topology(&gpu, true, &topo, why, sizeof(why));
	if (err)
		return error_of(err, "%s", why);
	target->topo = topo;
	/*
	 * The option -n needs the path of the capture. If another user named the capture,
	 * shown_topology() has not kept this path.
	 */
	for (unsigned int i = 0; i < args.nr_terms && target->simulated; i++)
		if (!strcmp(args.terms[i].option, "-n") &&
		    strcmp(gpupart_topology_info(topo)->source, target->source))
			return usage_error(
				"-n %s: process %d uses a simulated GPU from a capture of user %u: use -t, -g or -u",
				args.terms[i].text, target->pid, target->uid);
	if (t->show)
		return 0;
	outer = outer_limit(t, target, &around);
	if (!t->all)
		return args_set(&args, topo, target->pci, outer, &target->set);
	target->set = gpupart_topology_all(topo);
	return outer ? args_inside(&args, topo, &target->set, outer) : 0;
}

/* ------------------------------------------------------------------ change */

struct changed {
	struct shown_result result;
	struct gpupart_tpcset before;
};

static void change(const void *arg, void *result)
{
	const struct target *target = arg;
	struct changed *changed = result;
	int *err = &changed->result.err;

	if (*target->job)
		*err = gpupart_job_limit_set(cmd_gp, target->job, &target->set, &changed->before);
	else
		*err = gpupart_process_limit_set(cmd_gp, target->pid, target->pci, &target->set,
						 &changed->before);
	if (*err)
		snprintf(changed->result.why, sizeof(changed->result.why), "%s",
			 gpupart_error(cmd_gp));
}

static void change_target(const struct target *target, struct changed *changed)
{
	struct changed first;

	memset(changed, 0, sizeof(*changed));
	/* Root changes the grant. The user of the processes changes the limits of the processes. */
	if (target->uid == geteuid() || *target->job)
		change(target, changed);
	first = *changed;
	if (target->uid == geteuid() || changed->result.err)
		return;
	shown_as(target->uid, target->pid, change, target, &changed->result, sizeof(*changed));
	if (*target->job)
		changed->before = first.before;
}

/* ------------------------------------------------------------------- print */

/* Prints a line such as "pid 4711's new set: 0-7". */
static void print_set(struct out *out, const struct target *target, const char *when,
		      const struct gpupart_tpcset *set)
{
	char text[OUT_SET_STRLEN];

	if (target->pid)
		fprintf(out->file, "pid %d", target->pid);
	else
		fprintf(out->file, "job %s", *target->name ? target->name : target->job);
	fprintf(out->file, "'s %s set%s%s: %s%s\n", when, target->several ? " on " : "",
		target->several ? target->pci : "", gpupart_tpcset_empty(set) ? "all" :
		out_set(text, sizeof(text), target->topo, set),
		target->simulated ? " (simulated)" : "");
}

/*
 * Reports a set or a change of a set. For a set, @before is NULL. A change is from @before to @set.
 * If @rows is NULL, prints text. Otherwise adds a row to @rows.
 */
static void report(struct out *out, json_t *rows, const struct target *target,
		   const struct gpupart_tpcset *before, const struct gpupart_tpcset *set)
{
	json_t *row;

	if (!rows) {
		print_set(out, target, "current", before ?: set);
		if (before)
			print_set(out, target, "new", set);
		return;
	}
	row = json_pack("{s:o, s:o, s:o, s:s}",
			"pid", target->pid ? json_integer(target->pid) : json_null(),
			"job", out_json_text(target->job), "name", out_json_text(target->name),
			"gpu", target->pci);
	if (before)
		json_object_set_new(row, "before", out_json_tpcs(before));
	json_object_set_new(row, "set", out_json_tpcs(set));
	json_array_append_new(rows, row);
}

/*
 * Returns whether to report the process @row with the job @job. Each process is reported once. If
 * several listed jobs contain the process, it is reported with the last of these jobs.
 */
static bool is_reported(const struct targets *t, const struct gpupart_process *row,
			const struct target *job)
{
	const char *id = row->job;
	bool inside = !strcmp(row->pci, job->pci) &&
		      shown_is_inside(t->jobs, t->nr_jobs, id, job->job);

	for (const struct target *later = job + 1; inside && later < t->list + t->nr; later++)
		inside = !*later->job || strcmp(later->pci, job->pci) ||
			 !shown_is_inside(t->jobs, t->nr_jobs, id, later->job);
	return inside;
}

/*
 * Changes limits of processes that belong to the job but now run as other users. These limits are
 * in the state pages of the other users. The new limit is the job's limit that the library has
 * stored. The library has already restricted this limit to the limits of outer jobs.
 */
static int change_others(struct targets *t, const struct target *job,
			 const struct gpupart_process *now, int nr)
{
	struct target one = *job;
	const struct gpupart_job *holds;
	struct gpupart_job *jobs;
	struct changed changed;
	int nr_jobs, failed = 0;

	*one.job = 0;
	nr_jobs = shown_jobs(cmd_gp, &jobs);
	for (int i = 0; i < nr; i++) {
		if (now[i].uid == geteuid() || !now[i].pid ||
		    !shown_is_inside(t->jobs, t->nr_jobs, now[i].job, job->job))
			continue;
		holds = shown_job_on(jobs, nr_jobs, now[i].job, job->pci);
		if (!holds)
			continue;
		one.pid = now[i].pid;
		one.uid = now[i].uid;
		gpupart_tpcset_parse_list(NULL, holds->limit, &one.set);
		change_target(&one, &changed);
		/* Ignore a process that has ended or does not use this GPU. */
		if (changed.result.err && changed.result.err != -ESRCH &&
		    (changed.result.err != -ENODEV || !strcmp(now[i].pci, job->pci)))
			failed = failure("pid %d, now with user %u: %s", one.pid, one.uid,
					 changed.result.why);
	}
	free(jobs);
	return failed;
}

/* Makes a target from a process of @job. Stores the process's current set in @before. */
static struct target as_target(const struct gpupart_process *row, const struct target *job)
{
	struct target one = {
		.pid = row->pid, .simulated = row->simulated, .topo = job->topo,
		.several = job->several,
	};

	snprintf(one.name, sizeof(one.name), "%s", row->name);
	snprintf(one.pci, sizeof(one.pci), "%s", row->pci);
	gpupart_tpcset_parse_list(NULL, row->limit, &one.before);
	return one;
}

/* Reports the sets of a job's processes. If @failed is true, reports only sets that changed. */
static void report_processes(struct targets *t, struct out *out, json_t *rows,
			     const struct target *job, bool failed)
{
	struct gpupart_process *list, *now;
	int nr = shown_processes(cmd_gp, &list);

	nr = shown_rows(cmd_gp, list, nr, &now);
	for (int i = 0; i < nr; i++) {
		struct gpupart_tpcset before = { 0 };
		struct target one;

		if (!is_reported(t, &now[i], job))
			continue;
		for (int k = 0; k < t->nr_rows; k++)
			if (t->rows[k].pid == now[i].pid && t->rows[k].uid == now[i].uid &&
			    !strcmp(t->rows[k].pci, now[i].pci))
				gpupart_tpcset_parse_list(NULL, t->rows[k].limit, &before);
		one = as_target(&now[i], job);
		if (!failed || !gpupart_tpcset_equal(&before, &one.before))
			report(out, rows, &one, &before, &one.before);
	}
	free(now);
	free(list);
}

/*
 * Returns whether a process of the job is visible. For a job in this pid namespace, always returns
 * true.
 */
static bool is_seen(const struct target *job, const struct gpupart_process *now, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(now[i].job, job->job))
			return true;
	return !job->elsewhere;
}

/*
 * Changes the limits of processes that belong to the job but to other users. Reports all changes.
 * Returns 0 or EXIT_FAILED.
 */
static int report_job(struct targets *t, struct out *out, json_t *rows, const struct target *job,
		      const struct changed *changed)
{
	struct gpupart_process *now;
	int nr = shown_processes(cmd_gp, &now);
	int failed = change_others(t, job, now, nr);
	bool seen = is_seen(job, now, nr);

	free(now);
	if (!seen) {
		remark(
			"job %s was started in another pid namespace, and its processes are not visible: the set applies to processes that start later",
			*job->name ? job->name : job->job);
		return failed;
	}
	report(out, rows, job, &changed->before, &job->set);
	report_processes(t, out, rows, job, false);
	return failed;
}

static int change_all(struct targets *t)
{
	json_t *rows = t->args->json ? json_array() : NULL, *root;
	bool simulated = false;
	struct drained drained = { .nr = 0 };
	struct out out;
	int status = out_open(&out, t->args), failed = 0;

	if (status)
		return status;
	for (unsigned int i = 0; i < t->nr; i++) {
		const struct target *target = &t->list[i];
		struct changed changed;

		change_target(target, &changed);
		simulated |= target->simulated;
		if (changed.result.err)
			failed = failure("%s", changed.result.why);
		else if (*target->job)
			failed |= report_job(t, &out, rows, target, &changed);
		else
			report(&out, rows, target, &changed.before, &target->set);
		if (changed.result.err && *target->job)
			report_processes(t, &out, rows, target, true);
		if (t->wait && !changed.result.err)
			failed |= drained_add(&drained, target->pid, target->job, target->pci,
					      t->jobs, t->nr_jobs);
	}
	root = rows ? out_json_new("set", simulated) : NULL;
	if (root)
		json_object_set_new(root, "changes", rows);
	if (t->wait) {
		out_flush(&out);
		drained_wait(&drained, t->wait_ns);
		failed |= drained_report(&drained, &out, root);
		drained_drop(&drained);
	}
	if (root)
		out_json_write(&out, root);
	status = out_close(&out);
	return failed ?: status;
}

/* Prints the current set of each job, and the current sets of the job's processes. */
static int show_all(struct targets *t)
{
	json_t *rows = t->args->json ? json_array() : NULL;
	bool simulated = false;
	struct out out;
	int status = out_open(&out, t->args);

	if (status)
		return status;
	for (unsigned int i = 0; i < t->nr; i++) {
		const struct target *target = &t->list[i];

		simulated |= target->simulated;
		report(&out, rows, target, NULL, &target->before);
		for (int k = 0; k < t->nr_rows && *target->job; k++) {
			struct target one = as_target(&t->rows[k], target);

			if (is_reported(t, &t->rows[k], target))
				report(&out, rows, &one, NULL, &one.before);
		}
	}
	out_json_list(&out, "set", simulated, "sets", rows);
	return out_close(&out);
}

static int set(struct targets t, const char *pid, const char *name)
{
	const struct args *args = t.args;
	int status;

	t.show = !t.all && !args->nr_terms;
	t.which = (struct which_gpu){ .selector = args->gpu };
	status = list_processes(&t) ?:
		 pid ? find_pid(&t, pid) : find_name(&t, name);
	/* Compute all sets before the first change. If a computation fails, nothing is changed. */
	for (unsigned int i = 0; !status && i < t.nr; i++) {
		for (unsigned int k = 0; k < t.nr; k++)
			t.list[i].several |= strcmp(t.list[i].pci, t.list[k].pci) != 0;
		if (*t.list[i].job && !t.rows)
			t.nr_rows = shown_rows(cmd_gp, t.processes, t.nr_processes, &t.rows);
		status = work_out(&t, &t.list[i]);
	}
	if (!status)
		status = t.show ? show_all(&t) : change_all(&t);
	for (unsigned int i = 0; i < t.nr; i++)
		gpupart_topology_close(t.list[i].topo);
	free(t.list);
	free(t.jobs);
	free(t.processes);
	free(t.rows);
	return status;
}

int cmd_set(int argc, char **argv)
{
	const char *pid = NULL, *name = NULL, *mem = NULL, *wait = NULL;
	struct targets t = { .args = NULL };
	uint64_t bytes;
	bool all = false;
	const struct args_option own[] = { { .name = "pid", .letter = 'p', .value = &pid },
					   { .name = "all", .letter = 'a', .given = &all },
					   { .name = "mem", .value = &mem },
					   { .name = "wait", .given = &t.wait, .value = &wait },
					   { 0 } };
	struct args args = { 0 };
	int status;

	/* The first argument is NAME, unless it looks like an option. */
	if (argc > 1 && *argv[1] && *argv[1] != '-') {
		name = argv[1];
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	status = args_parse(&args, ARGS_SET | ARGS_GPU | ARGS_JSON, own, set_help, argc, argv);
	if (status)
		return status;
	if (!pid == !name)
		return usage_error(
			pid ? "-p %s and the name '%s': use only one of them" :
			      "no process or job: use -p PID, or put the job's NAME before the options",
			pid, name);
	if (mem && (args.nr_terms || all))
		return usage_error("--mem %s and %s%s%s: use only one of them", mem,
				   all ? "-a" : args.terms[0].option, all ? "" : " ",
				   all ? "" : args.terms[0].text);
	if (mem) {
		status = args_memory(mem, &bytes);
		return status ?: tenants_set(&args, name, pid, bytes);
	}
	if (args.shape && !args.nr_terms)
		return usage_error("--shape %s: needs -n or --sms", args.shape);
	if (args.nr_terms && all)
		return usage_error("-a and %s %s: use only one of them", args.terms[0].option,
				   args.terms[0].text);
	if (t.wait && !args.nr_terms && !all)
		return usage_error("--wait: needs a SET");
	if (wait && (!yaml_read_time(wait, &t.wait_ns) || !t.wait_ns))
		return usage_error("--wait=%s: must be a time above 0, such as 10ms or 5s", wait);
	t.args = &args;
	t.all = all;
	return set(t, pid, name);
}
