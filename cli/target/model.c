// SPDX-License-Identifier: MIT
/* Builds rows for jobs and programs on each GPU; see model.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/model.h"
#include "cli/target/nvml.h"
#include "cli/target/scores.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "lib/private.h"

#define MAX_SUM 1e18
#define RUN_DASHES 3	/* id: PID-START-NAMESPACE; for more GPUs, -NUMBER follows */

/* ------------------------------------------------------------------- GPUs */

/* Returns the index of the GPU of @p. If the GPU is not in the list, adds the GPU. */
static unsigned int find_gpu(struct model *model, const struct gpupart_process *p)
{
	struct model_gpu *gpu = model->gpus;

	for (; gpu < model->gpus + model->nr_gpus; gpu++)
		if (gpu->simulated == p->simulated && !strcmp(gpu->pci, p->pci) &&
		    (!gpu->simulated || !strcmp(gpu->source, p->source)))
			break;
	/* Limit the list of GPUs, because users can invent any number of GPUs. */
	if (gpu >= model->gpus + MODEL_MAX_GPUS - 1) {
		gpu = &model->gpus[MODEL_MAX_GPUS - 1];
		*gpu = (struct model_gpu){ .pci = "others", .simulated = true };
		model->nr_gpus = MODEL_MAX_GPUS;
		return MODEL_MAX_GPUS - 1;
	}
	if (gpu == model->gpus + model->nr_gpus) {
		*gpu = (struct model_gpu){ .simulated = p->simulated };
		strcpy(gpu->pci, p->pci);
		strcpy(gpu->source, p->source);
		model->nr_gpus++;
	}
	if (!gpu->topo)
		gpu->topo = look_topology(p);
	return gpu - model->gpus;
}

void model_begin(struct model *model, const char *pci, const char *source)
{
	struct gpupart_gpu_info infos[MODEL_MAX_GPUS];
	int nr = source ? 1 : gpupart_gpu_list(NULL, NULL, infos, MODEL_MAX_GPUS,
					       sizeof(infos[0]));

	process_table_save_memory();
	for (int i = 0; i < nr && i < MODEL_MAX_GPUS; i++) {
		struct gpupart_process p = { .uid = geteuid(), .simulated = source };

		snprintf(p.pci, sizeof(p.pci), "%s", source ? pci : infos[i].pci);
		snprintf(p.source, sizeof(p.source), "%s", source ? source : infos[i].source);
		find_gpu(model, &p);
	}
}

/* ------------------------------------------------------------------- rows */

static struct model_row *find(struct model_row *rows, unsigned int nr, const char *key)
{
	for (unsigned int i = 0; i < nr; i++)
		if (!strcmp(rows[i].key, key))
			return &rows[i];
	return NULL;
}

struct model_row *model_find(const struct model *model, const char *key)
{
	return find(model->rows, model->nr_rows, key);
}

/*
 * Writes the id of a run. The job @id belongs to this run. A user can write any bytes to a job's
 * id, so this function writes only printable ASCII.
 */
static void put_run(char run[GPUPART_JOB_STRLEN], const char *id, int pid)
{
	unsigned int dashes = 0;

	if (*id)
		snprintf(run, GPUPART_JOB_STRLEN, "%s", id);
	else
		snprintf(run, GPUPART_JOB_STRLEN, "pid-%d", pid);
	for (; *run; run++) {
		dashes += *run == '-';
		if (dashes == RUN_DASHES)
			*run-- = 0;
		else if (*run <= ' ' || *run > '~')
			*run = '?';
	}
}

static struct model_row *add_row(struct model *model, const char *key, unsigned int gpu,
				 const struct gpupart_process *from)
{
	struct model_row *row;

	if (!(model->nr_rows & (model->nr_rows + 1)))
		model->rows = alloc_resized(model->rows, 2 * model->nr_rows + 2,
					    sizeof(*model->rows));
	row = &model->rows[model->nr_rows++];
	*row = (struct model_row){
		.gpu = gpu, .uid = from->uid, .job = -1, .busy = -1, .gpu_busy = -1, .launches = -1,
		.outside = -1, .launches_per_s = -1, .memory = -1, .quota = -1, .score = -1,
		.problem = "", .letter = -1,
	};
	strcpy(row->key, key);
	strcpy(row->name, from->name);
	strcpy(row->pci, from->pci);
	row->limited = *from->limit && !gpupart_tpcset_parse_list(NULL, from->limit, &row->set);
	if (!row->limited && model->gpus[gpu].topo)
		row->set = gpupart_topology_all(model->gpus[gpu].topo);
	return row;
}

/*
 * Finds the row of job @id. The job belongs to the user of @from. If there is no such row, adds the
 * row. Returns its index.
 */
static unsigned int find_job(struct model *model, const struct gpupart_process *from,
			     const char *id)
{
	unsigned int gpu = find_gpu(model, from);
	char key[MODEL_KEY_STRLEN], run[GPUPART_JOB_STRLEN];
	struct model_row *row;

	put_run(run, id, from->pid);
	snprintf(key, sizeof(key), "%s %u %u", run, from->uid, gpu);
	row = model_find(model, key);
	if (!row) {
		row = add_row(model, key, gpu, from);
		strcpy(row->id, id);
		strcpy(row->run, run);
	}
	return row - model->rows;
}

/* Adds all jobs, even jobs that have no program on a GPU so far. */
static void list_jobs(struct model *model)
{
	for (int i = 0; i < model->table.nr_jobs; i++) {
		const struct gpupart_job *job = &model->table.jobs[i];
		struct gpupart_process as = { .uid = job->uid, .simulated = job->simulated };

		strcpy(as.pci, job->pci);
		strcpy(as.source, job->source);
		strcpy(as.limit, job->limit);
		strcpy(as.name, job->name);
		find_job(model, &as, job->id);
	}
}

/*
 * Returns the sum of two values. A damaged page may contain any values, so limits the sum to the
 * range of int64_t.
 */
static double sum(double a, double b)
{
	const double both = a < 0 ? b : b < 0 ? a : a + b;

	return both < MAX_SUM ? both : MAX_SUM;
}

/*
 * Finds the GPU memory of a process. Uses the memory that is charged to the tenant of the process.
 * If there is no such charge, uses the value of NVIDIA's management library.
 */
static void find_memory(const struct model *model, struct model_row *row)
{
	const struct gpupart_process *p = row->process;
	const struct tenants *tenants = &model->table.tenants;
	const struct gpupart_tenant_process *use = NULL;

	row->memory = p->simulated ? -1 : nvml_memory(p->pci, p->pid);
	for (int i = 0; p->pid && !use && i < tenants->nr_processes; i++)
		if (tenants->processes[i].pid == p->pid && tenants->processes[i].uid == p->uid &&
		    !strcmp(tenants->processes[i].pci, p->pci))
			use = &tenants->processes[i];
	if (use)
		row->memory = sum(use->used, -1);
	for (int i = 0; use && i < tenants->nr; i++)
		if (tenants->list[i].uid == p->uid && !strcmp(tenants->list[i].pci, p->pci) &&
		    !strcmp(tenants->list[i].name, use->tenant) && tenants->list[i].quota)
			row->quota = tenants->list[i].quota;
}

/*
 * A bound without a lender applies to all GPUs of the process. But only the row for the first GPU
 * of the process shows this bound.
 */
static void find_lending(const struct model *model, unsigned int n, struct model_row *row,
			 bool first)
{
	struct gpupart_lending *lending = &model->lendings[n];

	if (lending_of(row->process, lending) &&
	    (*lending->pci ? !strcmp(lending->pci, row->pci) : first))
		row->lending = lending;
}

static void find_gpu_busy(const struct model *model, struct model_row *row)
{
	const struct gpupart_topology *topo = model->gpus[row->gpu].topo;

	if (row->busy > 1)
		row->busy = 1;
	if (row->busy >= 0 && topo)
		row->gpu_busy = row->busy * gpupart_tpcset_count(&row->set) /
				gpupart_topology_nr_tpcs(topo);
}

/*
 * Adds a row for process @n on one GPU. Adds the values of the process to its job. If the GPU is
 * the first GPU of the process, @first is true.
 */
static void add_program(struct model *model, unsigned int n, bool first)
{
	const struct gpupart_process *p = &model->processes[n];
	const struct gpupart_job *on = shown_job_on(model->table.jobs, model->table.nr_jobs, p->job,
						    p->pci);
	const struct gpupart_counters *c = &p->counters;
	/*
	 * The environment of a process can name another user's job. Do not count such a process in
	 * that job.
	 */
	unsigned int place = find_job(model, p, on && on->uid == p->uid ? on->id : p->job);
	char key[MODEL_KEY_STRLEN];
	struct model_row *row, *job;

	snprintf(key, sizeof(key), "%.120s/%d", model->rows[place].key, p->pid);
	row = add_row(model, key, model->rows[place].gpu, p);
	job = &model->rows[place];
	row->job = place;
	row->process = job->process = p;
	row->usage = usage_of(&model->usage, n);
	strcpy(row->id, job->id);
	strcpy(row->run, job->run);
	row->busy = row->usage->busy;
	row->partial = row->usage->partial;
	if (first && !p->other_version) {
		row->launches_per_s = row->usage->launches_per_s;
		row->launches = c->launches;
		row->outside = c->widened_driver + c->widened_cluster + c->widened_cooperative +
			       c->unconfinable_version + c->unconfinable_map + c->unconfinable_gpu;
	}
	find_memory(model, row);
	find_gpu_busy(model, row);
	find_lending(model, n, row, first);
	row->nr = 1;
	job->nr++;
	job->busy = sum(job->busy, row->busy);
	job->launches_per_s = sum(job->launches_per_s, row->launches_per_s);
	job->memory = sum(job->memory, row->memory);
	job->partial |= row->partial;
	job->launches = sum(job->launches, row->launches);
	job->outside = sum(job->outside, row->outside);
	job->quota = row->quota >= 0 ? row->quota : job->quota;
	job->lending = row->lending ?: job->lending;
	row->problem = p->problem;
	if (*p->problem)
		job->problem = p->problem;
}

/* ------------------------------------------------------------------- jobs */

/* Finds the quota of a job. The programs of the job may not have used the GPU yet. */
static void find_quota(const struct model *model, struct model_row *job)
{
	const struct tenants *tenants = &model->table.tenants;

	for (int i = 0; job->quota < 0 && i < tenants->nr; i++) {
		const struct gpupart_tenant *tenant = &tenants->list[i];

		if (tenant->quota && tenant->uid == job->uid && !strcmp(tenant->pci, job->pci) &&
		    (!strcmp(tenant->name, job->name) || !strcmp(tenant->name, job->id)))
			job->quota = tenant->quota;
	}
}

static bool is_tenant(const struct model *model, const struct model_row *row,
		      const struct score *score)
{
	if (*score->job)
		return shown_is_inside(model->table.jobs, model->table.nr_jobs, row->process->job,
				       score->job);
	return row->process->pid && row->process->pid == score->pid;
}

/*
 * Reads the score file of a user for a GPU. For the second and later programs of the user on the
 * GPU, does nothing.
 */
static void find_scores(struct model *model, unsigned int first)
{
	const struct model_row *of = &model->rows[first];
	struct score scores[SCORES_MAX];
	unsigned int nr;

	for (unsigned int i = 0; i < first; i++)
		if (model->rows[i].job >= 0 && model->rows[i].uid == of->uid &&
		    !strcmp(model->rows[i].pci, of->pci))
			return;
	nr = scores_read(of->uid, of->pci, scores);
	for (unsigned int i = first; nr && i < model->nr_rows; i++) {
		struct model_row *row = &model->rows[i];

		if (row->job < 0 || row->uid != of->uid || strcmp(row->pci, of->pci))
			continue;
		for (const struct score *score = scores; score < scores + nr; score++)
			if (!score->idle && is_tenant(model, row, score)) {
				row->score = model->rows[row->job].score = score->milli / 1e3;
				row->goal_met = model->rows[row->job].goal_met = score->met;
			}
	}
}

/*
 * Makes an entry for each GPU of each process. Returns an array with a flag for each entry. If the
 * entry is for the first GPU of the process, the flag is true.
 */
static bool *take_processes(struct model *model)
{
	struct gpupart_process on[MODEL_MAX_GPUS];
	bool *first = NULL;
	unsigned int room = 0;

	free(model->processes);
	model->processes = NULL;
	model->nr_processes = 0;
	for (int i = 0; i < model->table.nr; i++) {
		const struct gpupart_process *p = &model->table.list[i];
		int nr = p->nr_gpus < 2 ? 0 :
			 gpupart_process_gpu_list(NULL, p, on, MODEL_MAX_GPUS, sizeof(on[0]));

		nr = nr > MODEL_MAX_GPUS ? MODEL_MAX_GPUS : nr;
		if (model->nr_processes + nr + 1 > room) {
			room = 2 * room + nr + 1;
			model->processes = alloc_resized(model->processes, room, sizeof(on[0]));
			first = alloc_resized(first, room, sizeof(*first));
		}
		for (int n = 0; n < nr || !n; n++) {
			first[model->nr_processes] = nr <= 0 || !strcmp(on[n].pci, p->pci);
			model->processes[model->nr_processes++] = nr <= 0 ? *p : on[n];
		}
	}
	return first;
}

int model_take(struct model *model, double age)
{
	struct model_row *before = model->rows, *old;
	unsigned int nr_before = model->nr_rows;
	int status = process_table_read(&model->table, age);
	bool *first;

	if (status)
		return status;
	first = take_processes(model);
	free(model->lendings);
	model->lendings = alloc_zeroed(model->nr_processes + 1, sizeof(*model->lendings));
	usage_update(&model->usage, model->processes, model->nr_processes, model->table.at_ns);
	model->rows = NULL;
	model->nr_rows = 0;
	list_jobs(model);
	for (unsigned int i = 0; i < model->nr_processes; i++)
		add_program(model, i, first[i]);
	for (unsigned int i = 0; i < model->nr_rows; i++) {
		if (model->rows[i].job >= 0) {
			find_scores(model, i);
			continue;
		}
		find_gpu_busy(model, &model->rows[i]);
		find_quota(model, &model->rows[i]);
		old = find(before, nr_before, model->rows[i].key);
		if (old) {
			model->rows[i].letter = old->letter;
			model->rows[i].open = old->open;
		}
	}
	free(before);
	free(first);
	return 0;
}

void model_end(struct model *model)
{
	process_table_free(&model->table);
	usage_drop(&model->usage);
	free(model->processes);
	free(model->lendings);
	free(model->rows);
}
