// SPDX-License-Identifier: MIT
/* Jobs and their programs on each GPU, from one look at what runs. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/cuda.h"
#include "cli/target/shown.h"
#include "cli/top/top.h"
#include "cli/util/alloc.h"
#include "lib/private.h"

const char *top_user(unsigned int uid)
{
	static struct {
		unsigned int uid;
		char name[33];
	} known[64];
	static unsigned int nr;
	const struct passwd *user;
	unsigned int i = 0;

	while (i < nr && known[i].uid != uid)
		i++;
	if (i < nr)
		return known[i].name;
	/* More users than that are asked for again and again. */
	i = nr < 64 ? nr++ : 63;
	user = getpwuid(uid);
	known[i].uid = uid;
	if (user)
		snprintf(known[i].name, sizeof(known[i].name), "%s", user->pw_name);
	else
		snprintf(known[i].name, sizeof(known[i].name), "%u", uid);
	for (char *c = known[i].name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	return known[i].name;
}

/* ------------------------------------------------------------------- GPUs */

/* Whether libcuda.so.1 here simulates this GPU: then the management library does as well. */
static bool is_simulated_here(const struct top_gpu *gpu)
{
	struct cuda_simulated found;

	return getenv("GPUPART_SIM") && !cuda_find_simulated(gpu->pci, &found) &&
	       found.simulated && !strcmp(found.pci, gpu->pci) &&
	       !strcmp(found.capture, gpu->source);
}

static bool is_same_gpu(const struct top_gpu *gpu, const char *pci, const char *source,
			bool simulated)
{
	return gpu->simulated == simulated && !strcmp(gpu->pci, pci) &&
	       (!simulated || !strcmp(gpu->source, source));
}

/* The place of the GPU that @p names, TOP_MAX_GPUS if there is no room for another one. */
static unsigned int find_gpu(struct top *top, const struct gpupart_process *p)
{
	struct top_gpu *gpu = top->gpus;

	for (; gpu < top->gpus + top->nr_gpus; gpu++)
		if (is_same_gpu(gpu, p->pci, p->source, p->simulated))
			break;
	if (gpu == top->gpus + TOP_MAX_GPUS)
		return TOP_MAX_GPUS;
	if (gpu == top->gpus + top->nr_gpus) {
		*gpu = (struct top_gpu){ .simulated = p->simulated };
		strcpy(gpu->pci, p->pci);
		strcpy(gpu->source, p->source);
		gpu->told = !gpu->simulated || is_simulated_here(gpu);
		top->nr_gpus++;
	}
	if (!gpu->topo)
		gpu->topo = look_topology(p);
	return gpu - top->gpus;
}

void top_begin(struct top *top, const struct args *args)
{
	struct gpupart_gpu_info infos[TOP_MAX_GPUS];
	int nr = args->simulated ? 1 : gpupart_gpu_list(NULL, NULL, infos, TOP_MAX_GPUS,
							  sizeof(infos[0]));

	for (int i = 0; i < nr && i < TOP_MAX_GPUS; i++) {
		struct gpupart_process p = { .uid = geteuid(), .simulated = args->simulated };

		snprintf(p.pci, sizeof(p.pci), "%s", args->simulated ? args->gpu : infos[i].pci);
		snprintf(p.source, sizeof(p.source), "%s",
			 args->simulated ? args->source : infos[i].source);
		find_gpu(top, &p);
	}
}

static void look_at_gpus(struct top *top)
{
	for (unsigned int i = 0; i < top->nr_gpus; i++) {
		struct top_gpu *gpu = &top->gpus[i];

		gpu->state = (struct nvml_state){ -1, -1, -1 };
		if (gpu->told)
			nvml_state(gpu->pci, &gpu->state);
		if (gpu->told && !nvml_gpu_memory(gpu->pci, &gpu->memory_used, &gpu->memory))
			gpu->memory = 0;
	}
}

/* ------------------------------------------------------------------- rows */

struct top_row *top_find(const struct top *top, const char *key)
{
	for (unsigned int i = 0; i < top->nr_rows; i++)
		if (!strcmp(top->rows[i].key, key))
			return &top->rows[i];
	return NULL;
}

static struct top_row *add_row(struct top *top, unsigned int gpu, unsigned int uid,
			       const char *limit)
{
	struct top_row *row;

	if (!(top->nr_rows & (top->nr_rows + 1)))
		top->rows = alloc_resized(top->rows, 2 * top->nr_rows + 2, sizeof(*top->rows));
	row = &top->rows[top->nr_rows++];
	*row = (struct top_row){
		.gpu = gpu, .uid = uid, .job = -1, .busy = -1, .gpu_busy = -1,
		.launches_per_s = -1, .memory = -1, .problem = "",
	};
	row->limited = *limit && !gpupart_tpcset_parse_list(NULL, limit, &row->set);
	if (!row->limited && top->gpus[gpu].topo)
		row->set = gpupart_topology_all(top->gpus[gpu].topo);
	return row;
}

/* The place of the job that @from is, made where it is not there; -1: there is no room for it. */
static int find_job(struct top *top, const struct gpupart_process *from, const char *id,
		    unsigned int uid)
{
	unsigned int gpu = find_gpu(top, from);
	char key[TOP_KEY_STRLEN];
	struct top_row *row;

	if (gpu == TOP_MAX_GPUS)
		return -1;
	snprintf(key, sizeof(key), "%s %d %u %u", id, *id ? 0 : from->pid, uid, gpu);
	row = top_find(top, key);
	if (row)
		return row - top->rows;
	row = add_row(top, gpu, uid, from->limit);
	strcpy(row->key, key);
	strcpy(row->id, id);
	strcpy(row->name, from->name);
	return row - top->rows;
}

/* Jobs that have no program on the GPU yet are there too. */
static void list_jobs(struct top *top)
{
	for (int i = 0; i < top->look.nr_jobs; i++) {
		const struct gpupart_job *job = &top->look.jobs[i];
		struct gpupart_process as = { .uid = job->uid, .simulated = job->simulated };

		strcpy(as.pci, job->pci);
		strcpy(as.source, job->source);
		strcpy(as.limit, job->limit);
		strcpy(as.name, job->name);
		find_job(top, &as, job->id, job->uid);
	}
}

/* Its tenant's account where it is in one, else what the management library tells. */
static void find_memory(const struct top *top, struct top_row *row)
{
	const struct gpupart_process *p = row->process;
	const struct tenants *tenants = &top->look.tenants;
	const struct gpupart_tenant_process *use = NULL;

	row->memory = p->simulated ? -1 : nvml_memory(p->pci, p->pid);
	for (int i = 0; p->pid && !use && i < tenants->nr_processes; i++)
		if (tenants->processes[i].pid == p->pid && tenants->processes[i].uid == p->uid &&
		    !strcmp(tenants->processes[i].pci, p->pci))
			use = &tenants->processes[i];
	if (!use)
		return;
	row->memory = use->used;
	for (int i = 0; i < tenants->nr; i++)
		if (tenants->list[i].uid == p->uid && !strcmp(tenants->list[i].pci, p->pci) &&
		    !strcmp(tenants->list[i].name, use->tenant))
			row->quota = tenants->list[i].quota;
}

static double sum(double a, double b)
{
	return a < 0 ? b : b < 0 ? a : a + b;
}

static void find_gpu_busy(const struct top *top, struct top_row *row)
{
	const struct gpupart_topology *topo = top->gpus[row->gpu].topo;

	if (row->busy > 1)
		row->busy = 1;
	if (row->busy >= 0 && topo)
		row->gpu_busy = row->busy * gpupart_tpcset_count(&row->set) /
				gpupart_topology_nr_tpcs(topo);
}

/* The row of process @n, whose job has its sums. */
static void add_program(struct top *top, unsigned int n)
{
	const struct gpupart_process *p = &top->processes[n];
	const struct gpupart_job *on = shown_job_on(top->look.jobs, top->look.nr_jobs, p->job,
						    p->pci);
	const struct gpupart_counters *c = &p->counters;
	/* A process that became another user's is in the job all the same. */
	int place = find_job(top, p, on ? on->id : p->job, on ? on->uid : p->uid);
	struct top_row *row, *job;

	if (place < 0)
		return;
	row = add_row(top, top->rows[place].gpu, p->uid, p->limit);
	job = &top->rows[place];
	row->job = place;
	row->process = job->process = p;
	row->usage = usage_of(&top->usage, n);
	strcpy(row->id, job->id);
	strcpy(row->name, p->name);
	snprintf(row->key, sizeof(row->key), "%.120s/%d", job->key, p->pid);
	row->busy = row->usage->busy;
	row->partial = row->usage->partial;
	row->launches_per_s = row->usage->launches_per_s;
	row->launches = c->launches;
	row->outside = c->widened_driver + c->widened_cluster + c->widened_cooperative +
		       c->unconfinable_version + c->unconfinable_map + c->unconfinable_gpu;
	find_memory(top, row);
	find_gpu_busy(top, row);
	row->nr = 1;
	job->nr++;
	job->busy = sum(job->busy, row->busy);
	job->launches_per_s = sum(job->launches_per_s, row->launches_per_s);
	job->memory = sum(job->memory, row->memory);
	job->partial |= row->partial;
	job->launches += row->launches;
	job->outside += row->outside;
	job->quota = row->quota ? row->quota : job->quota;
	row->problem = p->problem;
	if (*p->problem)
		job->problem = p->problem;
}

/*
 * Of each GPU: a job that was there before keeps its letter; another has the lowest that is free.
 */
static void give_letters(struct top *top, const struct top *before, unsigned int gpu)
{
	bool *taken = alloc_zeroed(before->nr_letters + top->nr_rows + 1, sizeof(*taken));
	unsigned int next = 0;

	for (int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < top->nr_rows; i++) {
			struct top_row *row = &top->rows[i];
			const struct top_row *old;

			if (row->job >= 0 || row->gpu != gpu)
				continue;
			old = top_find(before, row->key);
			if ((old ? 0 : 1) != pass)
				continue;
			while (pass && taken[next])
				next++;
			row->letter = pass ? next++ : old->letter;
			row->open = old && old->open;
			taken[row->letter] = true;
			if (row->letter >= top->nr_letters)
				top->nr_letters = row->letter + 1;
		}
	free(taken);
}

/* A process for each GPU that one uses. */
static void take_processes(struct top *top)
{
	struct gpupart_process on[TOP_MAX_GPUS];
	unsigned int room = 0;

	free(top->processes);
	top->processes = NULL;
	top->nr_processes = 0;
	for (int i = 0; i < top->look.nr; i++) {
		const struct gpupart_process *p = &top->look.list[i];
		int nr = p->nr_gpus < 2 ? 0 :
			 gpupart_process_gpu_list(NULL, p, on, TOP_MAX_GPUS, sizeof(on[0]));

		nr = nr > TOP_MAX_GPUS ? TOP_MAX_GPUS : nr;
		if (top->nr_processes + nr + 1 > room) {
			room = 2 * room + nr + 1;
			top->processes = alloc_resized(top->processes, room, sizeof(on[0]));
		}
		memcpy(top->processes + top->nr_processes, nr > 0 ? on : p,
		       (nr > 0 ? nr : 1) * sizeof(on[0]));
		top->nr_processes += nr > 0 ? nr : 1;
	}
}

int top_take(struct top *top)
{
	struct top before = *top;
	/* Jobs without a program change seldom. */
	int status = look_take(&top->look, top->nr_looks++ % 2 == 0);

	if (status)
		return status;
	take_processes(top);
	usage_look(&top->usage, top->processes, top->nr_processes, top->look.at_ns);
	top->rows = NULL;
	top->nr_rows = 0;
	list_jobs(top);
	for (unsigned int i = 0; i < top->nr_processes; i++)
		add_program(top, i);
	for (unsigned int i = 0; i < top->nr_rows; i++)
		find_gpu_busy(top, &top->rows[i]);
	top->nr_letters = 0;
	for (unsigned int i = 0; i < top->nr_gpus; i++)
		give_letters(top, &before, i);
	free(before.rows);
	look_at_gpus(top);
	return 0;
}

void top_end(struct top *top)
{
	look_drop(&top->look);
	usage_drop(&top->usage);
	free(top->processes);
	free(top->rows);
}
