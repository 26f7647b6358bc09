// SPDX-License-Identifier: MIT
/*
 * Collects what runs by job and GPU, for metrics. Root reads what other users' processes show of
 * themselves, by the library's bounded reads, and opens no file that they name. One thread.
 */
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <jansson.h>
#include "cli/metrics/metrics.h"
#include "cli/target/nvml.h"
#include "cli/target/shown.h"
#include "cli/target/tenants.h"
#include "cli/util/alloc.h"

#define MAX_GPUS	64
#define LOG_END		(256 << 10)	/* bytes of the end of a log that are looked at */
#define LOG_SECONDS	70	/* an epoch is 60 s at most: who writes an older log has ended */

struct look {
	struct metrics *metrics;
	struct gpupart_process *processes;
	struct gpupart_job *jobs;
	int nr_processes, nr_jobs;
	struct tenants tenants;
};

static struct metrics_gpu gpus[MAX_GPUS];
static unsigned int nr_gpus;

/* Opened once; NULL: it cannot be opened, or there is no place for it. */
static const struct metrics_gpu *gpu_of(const struct shown_gpu *shown)
{
	struct metrics_gpu *gpu = gpus;
	struct gpupart_topology *topo;
	char why[160];

	for (; gpu < gpus + nr_gpus; gpu++)
		if (!strcmp(gpu->pci, shown->pci) && gpu->simulated == shown->simulated &&
		    (!gpu->simulated || (gpu->uid == shown->uid &&
					 !strcmp(gpu->source, shown->source))))
			return gpu;
	if (nr_gpus == MAX_GPUS || shown_topology(shown, false, &topo, why, sizeof(why)))
		return NULL;
	nr_gpus++;
	*gpu = (struct metrics_gpu){ .uid = shown->uid, .simulated = shown->simulated,
				     .nr_tpcs = gpupart_topology_nr_tpcs(topo) };
	snprintf(gpu->pci, sizeof(gpu->pci), "%s", shown->pci);
	snprintf(gpu->source, sizeof(gpu->source), "%s", shown->source);
	snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", gpupart_topology_info(topo)->uuid);
	gpupart_topology_close(topo);
	return gpu;
}

/* Those of this machine, also while nothing runs on them. */
static void find_gpus(void)
{
	static struct gpupart_gpu_info list[MAX_GPUS];
	static bool done;
	int nr = done ? 0 : gpupart_gpu_list(cmd_gp, NULL, list, MAX_GPUS, sizeof(list[0]));

	done = true;
	for (int i = 0; i < nr && i < MAX_GPUS; i++)
		gpu_of(&(struct shown_gpu){ .source = list[i].source, .pci = list[i].pci });
}

/* ------------------------------------------------------------------------- rows */

/* @text as one word: a user can put anything into the environment. */
static void copy_word(char *word, size_t len, const char *text)
{
	snprintf(word, len, "%s", *text ? text : "?");
	for (; *word; word++)
		if (*word <= ' ' || *word > '~')
			*word = '?';
}

/* Rows of one user follow each other. */
static const char *user_name(unsigned int uid)
{
	static unsigned int of;
	static char name[33];
	const struct passwd *user;

	if (!*name || of != uid) {
		user = getpwuid(uid);
		snprintf(name, sizeof(name), "%u", uid);
		if (user)
			snprintf(name, sizeof(name), "%s", user->pw_name);
		of = uid;
	}
	return name;
}

static void add(double *value, double more)
{
	*value = isnan(*value) ? more : *value + more;
}

/* The row of @job on the GPU; all rows move when one is made. @name: of who asks. */
static struct metrics_row *row_of(struct look *look, const char *job, const char *name,
				  const struct shown_gpu *gpu)
{
	struct metrics_row new = { .uid = gpu->uid }, *row = look->metrics->rows;
	const struct metrics_gpu *known = gpu_of(gpu);

	copy_word(new.job, sizeof(new.job), job);
	copy_word(new.pci, sizeof(new.pci), gpu->pci);
	for (unsigned int i = 0; i < look->metrics->nr; i++, row++)
		if (row->uid == new.uid && !strcmp(row->job, new.job) && !strcmp(row->pci, new.pci))
			return row;
	for (int i = 0; i < METRIC_NR; i++)
		new.values[i] = NAN;
	new.values[METRIC_PROCESSES] = 0;
	snprintf(new.name, sizeof(new.name), "%s", name);
	snprintf(new.user, sizeof(new.user), "%s", user_name(new.uid));
	if (known) {
		new.uuid = known->uuid;
		new.values[METRIC_SET_TPCS] = known->nr_tpcs;
	}
	look->metrics->rows = alloc_resized(look->metrics->rows, ++look->metrics->nr, sizeof(new));
	row = &look->metrics->rows[look->metrics->nr - 1];
	*row = new;
	return row;
}

static void add_limit(struct metrics_row *row, const char *limit)
{
	struct gpupart_tpcset set;

	if (!*limit || gpupart_tpcset_parse_list(NULL, limit, &set))
		return;
	row->set = gpupart_tpcset_or(&row->set, &set);
	row->values[METRIC_SET_TPCS] = gpupart_tpcset_count(&row->set);
}

/* Slurm's jobs are grants "0-HEX", and what runs in one is a job inside. */
static void take_slurm(struct metrics_row *row, const struct look *look, const char *job)
{
	for (int i = 0; !*row->ids.slurm && i < look->nr_jobs; i++) {
		const char *id = look->jobs[i].id;

		if (look->jobs[i].uid == row->uid && !strncmp(id, "0-", 2) && id[2] &&
		    strspn(id + 2, "0123456789abcdef") == strlen(id + 2) &&
		    shown_is_inside(look->jobs, look->nr_jobs, job, id))
			snprintf(row->ids.slurm, sizeof(row->ids.slurm), "%lu",
				 strtoul(id + 2, NULL, 16));
	}
}

/* What a process has of the row's GPU, whether it is its first one or not. */
static void add_use(struct look *look, struct metrics_row *row, const struct gpupart_process *p,
		    double *counters)
{
	int64_t bytes = p->simulated ? -1 : nvml_memory(row->pci, p->pid);

	add(&row->values[METRIC_PROCESSES], 1);
	for (int i = 0; p->pid && i < look->tenants.nr_processes; i++)
		if (look->tenants.processes[i].pid == p->pid &&
		    !strcmp(look->tenants.processes[i].pci, row->pci))
			bytes = look->tenants.processes[i].used;
	if (bytes >= 0)
		add(&row->values[METRIC_MEMORY], bytes);
	/* Of another version nothing is known. */
	if (!p->other_version)
		metrics_totals_add(row, p->pid, counters);
}

static void add_process(struct look *look, const struct gpupart_process *p)
{
	const struct gpupart_job *job = shown_job_on(look->jobs, look->nr_jobs, p->job, p->pci);
	const struct gpupart_counters *c = &p->counters;
	double counters[METRIC_NR_COUNTERS] = {
		[METRIC_LAUNCHES] = c->launches,
		[METRIC_OUTSIDE] = c->widened_driver + c->widened_cluster +
			c->widened_cooperative + c->unconfinable_version +
			c->unconfinable_map + c->unconfinable_gpu,
		[METRIC_UNRECORDED] = NAN, [METRIC_BUSY] = NAN,
	};
	const struct shown_gpu gpu = { .source = p->source, .pci = p->pci, .uid = p->uid,
				       .simulated = p->simulated };
	struct metrics_row *row;
	char own[24];

	/* A note that a user has too many, or it uses no GPU yet. */
	if (!*p->pci)
		return;
	snprintf(own, sizeof(own), "pid-%d", p->pid);
	row = row_of(look, job && job->uid == p->uid ? job->id : *p->job ? p->job : own, p->name,
		     &gpu);
	if (!*p->problem)
		add_limit(row, p->limit);
	add_use(look, row, p, counters);
	/* A run on several GPUs is a job on each; its launches are counted once. */
	for (int i = 0; p->nr_gpus > 1 && i < look->nr_jobs; i++) {
		const struct gpupart_job *other = &look->jobs[i];
		double records[] = { NAN, NAN, NAN, NAN };

		struct metrics_row *on_other;

		if (other->uid != p->uid || !strcmp(other->pci, p->pci) ||
		    !shown_is_inside(look->jobs, look->nr_jobs, p->job, other->id))
			continue;
		on_other = row_of(look, other->id, p->name, &(struct shown_gpu){
			.source = other->source, .pci = other->pci, .uid = other->uid,
			.simulated = other->simulated });
		add_limit(on_other, other->limit);
		add_use(look, on_other, p, records);
	}
}

/* Jobs that have no process now, and what there is of each job as a whole. */
static void add_jobs(struct look *look)
{
	for (int i = 0; i < look->nr_jobs; i++) {
		const struct gpupart_job *job = &look->jobs[i];
		struct metrics_row *row = row_of(look, job->id, job->name, &(struct shown_gpu){
			.source = job->source, .pci = job->pci, .uid = job->uid,
			.simulated = job->simulated });

		if (!row->values[METRIC_PROCESSES])
			add_limit(row, job->limit);
		take_slurm(row, look, job->id);
	}
	for (unsigned int n = 0; n < look->metrics->nr; n++) {
		struct metrics_row *row = &look->metrics->rows[n];

		metrics_totals_sum(row);
		for (int i = 0; i < look->tenants.nr; i++) {
			const struct gpupart_tenant *tenant = &look->tenants.list[i];

			if (tenant->quota && tenant->uid == row->uid &&
			    !strcmp(tenant->pci, row->pci) &&
			    (!strcmp(tenant->name, row->name) || !strcmp(tenant->name, row->job)))
				row->values[METRIC_QUOTA] = tenant->quota;
		}
	}
}

/* ------------------------------------------------------------------------ scores */

/* The newest whole line of a log that is written now, or NULL. */
static json_t *newest_line(const char *path, struct stat *st)
{
	FILE *file = !stat(path, st) && S_ISREG(st->st_mode) &&
		     st->st_mtime + LOG_SECONDS >= time(NULL) ? fopen(path, "re") : NULL;
	char *text = NULL, *last = NULL;
	json_t *line = NULL;
	size_t room = 0;

	if (file && st->st_size > LOG_END)
		fseek(file, -LOG_END, SEEK_END);
	while (file && getline(&text, &room, file) > 0 && strchr(text, '\n')) {
		free(last);
		last = text;
		text = NULL;
	}
	if (last)
		line = json_loads(last, 0, NULL);
	free(last);
	free(text);
	if (file)
		fclose(file);
	return line;
}

static void add_scores(struct metrics *metrics, const char *path)
{
	struct stat st = { 0 };
	json_t *line = newest_line(path, &st), *tenant;
	size_t n;

	json_array_foreach(json_object_get(json_object_get(line, "decision"), "tenants"), n,
			   tenant) {
		const char *name = json_string_value(json_object_get(tenant, "name"));
		const char *state = json_string_value(json_object_get(tenant, "state"));
		double score = json_integer_value(json_object_get(tenant, "score_milli")) / 1e3;
		bool missed = state && (!strcmp(state, "missed") || !strcmp(state, "stuck"));

		/* Of best effort there is no score; of one that waits or idles, none now. */
		for (unsigned int i = 0; name && state && i < metrics->nr; i++) {
			struct metrics_row *row = &metrics->rows[i];

			if (row->uid != st.st_uid || strcmp(row->name, name) ||
			    !(missed || (!strcmp(state, "good") && score > 0)))
				continue;
			row->values[METRIC_SCORE] = score;
			row->values[METRIC_GOAL_MET] = !missed;
		}
	}
	json_decref(line);
}

static struct gpupart_job *jobs;
static int nr_jobs = -1;
static struct tenants tenants;

/* 0, or an error. A process of this user in a job that is not known makes new lists needed. */
static int list_jobs(const struct look *look, int age)
{
	static time_t at;
	bool known = nr_jobs >= 0 && time(NULL) - at < age;

	for (int i = 0; known && i < look->nr_processes; i++) {
		const struct gpupart_process *p = &look->processes[i];
		int n = 0;

		while (n < nr_jobs && strcmp(jobs[n].id, p->job))
			n++;
		known = n < nr_jobs || !*p->job || p->uid != geteuid();
	}
	if (known)
		return 0;
	free(jobs);
	tenants_drop(&tenants);
	at = time(NULL);
	nr_jobs = shown_jobs(cmd_gp, &jobs);
	return nr_jobs < 0 ? failure("%s", gpupart_error(cmd_gp)) : tenants_take(&tenants);
}

int metrics_collect(struct metrics *metrics, const char *const *logs, unsigned int nr_logs,
		    int age)
{
	struct look look = { .metrics = metrics };
	int status;

	free(metrics->rows);
	*metrics = (struct metrics){ .gpus = gpus };
	nvml_forget();
	find_gpus();
	look.nr_processes = shown_processes(cmd_gp, &look.processes);
	status = look.nr_processes < 0 ? failure("%s", gpupart_error(cmd_gp)) :
					 list_jobs(&look, age);
	look.jobs = jobs;
	look.nr_jobs = nr_jobs;
	look.tenants = tenants;
	for (int i = 0; !status && i < look.nr_processes; i++)
		add_process(&look, &look.processes[i]);
	if (!status) {
		metrics_totals_end();
		add_jobs(&look);
	}
	for (unsigned int i = 0; i < nr_logs; i++)
		add_scores(metrics, logs[i]);
	metrics->nr_gpus = nr_gpus;
	free(look.processes);
	return status;
}
