// SPDX-License-Identifier: MIT
/* Collects the metrics of each job on each GPU from the model of jobs. Not thread-safe. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cli/metrics/metrics.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"

/*
 * Returns the row of @job. If there is no such row, adds it. Simulated GPUs with the same address
 * count as one GPU, because a sample must not appear twice.
 */
static struct metrics_row *row_of(struct metrics *metrics, const struct model_row *job)
{
	const struct gpupart_topology *topo = metrics->model.gpus[job->gpu].topo;
	struct metrics_row *row = metrics->rows;

	for (; row < metrics->rows + metrics->nr; row++)
		if (row->uid == job->uid && !strcmp(row->job, job->run) &&
		    !strcmp(row->pci, job->pci))
			return row;
	metrics->nr++;
	*row = (struct metrics_row){
		.uid = job->uid, .user = look_user(job->uid),
		.name = job->process ? job->process->name : job->name,
		.uuid = topo ? gpupart_topology_info(topo)->uuid : NULL,
	};
	strcpy(row->job, job->run);
	strcpy(row->pci, job->pci);
	for (int i = 0; i < METRIC_NR; i++)
		row->values[i] = NAN;
	return row;
}

/*
 * The grant of a Slurm job has an id of the form "0-HEX". All jobs in the Slurm job are inside this
 * grant.
 */
static void take_slurm(struct metrics_row *row, const struct process_table *table, const char *job)
{
	for (int i = 0; !*row->ids.slurm && i < table->nr_jobs; i++) {
		const char *id = table->jobs[i].id;

		if (table->jobs[i].uid == row->uid && !strncmp(id, "0-", 2) && id[2] &&
		    strspn(id + 2, "0123456789abcdef") == strlen(id + 2) &&
		    shown_is_inside(table->jobs, table->nr_jobs, job, id))
			snprintf(row->ids.slurm, sizeof(row->ids.slurm), "%lu",
				 strtoul(id + 2, NULL, 16));
	}
}

static void add(double *value, double more)
{
	if (more >= 0)
		*value = isnan(*value) ? more : *value + more;
}

static void add_program(struct metrics_row *row, const struct model_row *program)
{
	const struct gpupart_records *r = &program->usage->records;
	double counters[METRIC_NR_COUNTERS] = { NAN, NAN, NAN, NAN };

	/* If a process uses another version of gpupart, its counts are not known. */
	if (program->process->other_version)
		return;
	if (program->launches >= 0) {
		counters[METRIC_LAUNCHES] = program->launches;
		counters[METRIC_OUTSIDE] = program->outside;
	}
	if (r->on) {
		counters[METRIC_UNRECORDED] = r->unrecorded + r->graphs + r->untimed;
		counters[METRIC_BUSY] = r->busy_ns / 1e9;
	}
	row->ids = program->usage->ids;
	metrics_totals_add(row, program->process->pid, counters);
}

static void add_job(struct metrics *metrics, unsigned int n)
{
	const struct model *model = &metrics->model;
	const struct model_row *job = &model->rows[n];
	const struct gpupart_topology *topo = model->gpus[job->gpu].topo;
	struct metrics_row *row = row_of(metrics, job);
	struct gpupart_tpcset set = { { 0 } };

	for (const struct model_row *r = model->rows; r < model->rows + model->nr_rows; r++) {
		if (r->job != (int)n)
			continue;
		if (r->limited)
			set = gpupart_tpcset_or(&set, &r->set);
		add_program(row, r);
	}
	if (!job->nr && job->limited)
		set = job->set;
	if (!gpupart_tpcset_empty(&set))
		row->values[METRIC_SET_TPCS] = gpupart_tpcset_count(&set);
	else if (topo)
		row->values[METRIC_SET_TPCS] = gpupart_topology_nr_tpcs(topo);
	add(&row->values[METRIC_PROCESSES], job->nr);
	add(&row->values[METRIC_MEMORY], job->memory);
	if (job->quota >= 0)
		row->values[METRIC_QUOTA] = job->quota;
	if (job->score >= 0) {
		row->values[METRIC_SCORE] = job->score;
		row->values[METRIC_GOAL_MET] = job->goal_met;
	}
	if (job->lending) {
		row->lender = job->lending->lender;
		row->values[METRIC_WAITED] = job->lending->counts.waited;
		if (*row->lender) {
			row->values[METRIC_LENT] = job->lending->counts.lent;
			row->values[METRIC_LENT_TPCS] = gpupart_tpcset_count(&job->lending->tpcs);
		}
	}
	take_slurm(row, &model->table, job->id);
}

int metrics_collect(struct metrics *metrics, int age)
{
	int status = model_take(&metrics->model, age);

	metrics->nr = 0;
	if (status)
		return status;
	metrics->rows = alloc_resized(metrics->rows, metrics->model.nr_rows + 1,
				      sizeof(*metrics->rows));
	for (unsigned int i = 0; i < metrics->model.nr_rows; i++)
		if (metrics->model.rows[i].job < 0 && *metrics->model.rows[i].pci)
			add_job(metrics, i);
	metrics_totals_end();
	for (unsigned int n = 0; n < metrics->nr; n++)
		metrics_totals_sum(&metrics->rows[n]);
	return 0;
}
