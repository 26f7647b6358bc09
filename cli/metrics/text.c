// SPDX-License-Identifier: MIT
/* Metrics as text: OpenMetrics 1.0, or Prometheus' own format 0.0.4. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cli/metrics/metrics.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"

/*
 * The samples of a counter have names with the suffix "_total". The name of the counter itself
 * lacks this suffix.
 */
static const struct { const char *name, *unit, *help; } families[METRIC_NR] = {
	[METRIC_LAUNCHES] = { "gpupart_launches", "", "Kernel launches." },
	[METRIC_OUTSIDE] = { "gpupart_launches_outside", "",
		"Launches that got TPCs outside of the set, or could not be confined." },
	[METRIC_UNRECORDED] = { "gpupart_unrecorded_launches", "",
		"Launches whose time is not in gpupart_busy_seconds." },
	[METRIC_BUSY] = { "gpupart_busy_seconds", "seconds",
		"Time in which a launch of a process ran, added up over processes." },
	[METRIC_PROCESSES] = { "gpupart_processes", "", "Processes that use the GPU now." },
	[METRIC_SET_TPCS] = { "gpupart_set_tpcs", "tpcs", "TPCs of the set, all without one." },
	[METRIC_MEMORY] = { "gpupart_memory_bytes", "bytes", "Memory of the GPU in use." },
	[METRIC_QUOTA] = { "gpupart_memory_quota_bytes", "bytes",
		"Memory quota, shared by the jobs of one name." },
	[METRIC_SCORE] = { "gpupart_qos_score", "",
		"Progress against the goal in the last epoch, 1 meets it." },
	[METRIC_GOAL_MET] = { "gpupart_qos_goal_met", "",
		"Whether the goal was met in the last epoch." },
	[METRIC_LENT_TPCS] = { "gpupart_lent_tpcs", "tpcs",
		"TPCs of the lender that the job may use while the lender is idle." },
	[METRIC_LENT] = { "gpupart_lent_launches", "", "Launches that used lent TPCs." },
	[METRIC_WAITED] = { "gpupart_waited_launches", "",
		"Launches that waited because of a bound on outstanding launches." },
};

/*
 * Prints NAME="VALUE". If the value is unknown, prints nothing. In Prometheus, a missing label and
 * an empty label are the same.
 */
static void print_label(FILE *file, const char *name, const char *value, char *before)
{
	char *clean;

	if (!value || !*value)
		return;
	clean = out_clean(alloc_text("%s", value));
	fprintf(file, "%c%s=\"", *before, name);
	*before = ',';
	for (const char *c = clean; *c; c++)
		fprintf(file, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
	fputc('"', file);
	free(clean);
}

static void print_head(FILE *file, const char *name, const char *type, const char *unit,
		       const char *help)
{
	fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
	if (unit && *unit)
		fprintf(file, "# UNIT %s %s\n", name, unit);
}

/*
 * Returns whether entry @n is a known GPU without an earlier entry. Several users can simulate the
 * same GPU.
 */
static bool is_new(const struct model_gpu *gpus, unsigned int n)
{
	const char *uuid = gpus[n].topo ? gpupart_topology_info(gpus[n].topo)->uuid : NULL;

	for (unsigned int i = 0; uuid && i < n; i++)
		if (gpus[i].topo && !strcmp(gpus[i].pci, gpus[n].pci) &&
		    !strcmp(gpupart_topology_info(gpus[i].topo)->uuid, uuid))
			return false;
	return uuid;
}

static void print_gpus(FILE *file, const struct model *model, bool openmetrics)
{
	bool simulated = false;

	for (unsigned int i = 0; i < model->nr_gpus; i++)
		simulated |= model->gpus[i].simulated;
	print_head(file, openmetrics ? "gpupart" : "gpupart_info", openmetrics ? "info" : "gauge",
		   NULL, "The version of gpupart; whether any GPU here is simulated.");
	fprintf(file, "gpupart_info{version=\"%s\",simulated=\"%s\"} 1\n", gpupart_version(),
		simulated ? "true" : "false");
	print_head(file, "gpupart_tpcs", "gauge", openmetrics ? "tpcs" : NULL, "TPCs of a GPU.");
	for (unsigned int i = 0; i < model->nr_gpus; i++) {
		const struct model_gpu *gpu = &model->gpus[i];
		char before = '{';

		if (!is_new(model->gpus, i))
			continue;
		fputs("gpupart_tpcs", file);
		print_label(file, "uuid", gpupart_topology_info(gpu->topo)->uuid, &before);
		print_label(file, "pci", gpu->pci, &before);
		print_label(file, "simulated", gpu->simulated ? "true" : "", &before);
		fprintf(file, "} %u\n", gpupart_topology_nr_tpcs(gpu->topo));
	}
}

/* Prints a sample without its value. */
static void print_row(FILE *file, const char *name, const struct metrics_row *row,
		      const char *lender)
{
	char before = '{';

	fputs(name, file);
	print_label(file, "job_id", row->job, &before);
	print_label(file, "name", row->name, &before);
	print_label(file, "user", row->user, &before);
	print_label(file, "uuid", row->uuid, &before);
	print_label(file, "pci", row->pci, &before);
	print_label(file, "slurm_job", row->ids.slurm, &before);
	print_label(file, "pod_uid", row->ids.pod, &before);
	print_label(file, "container_id", row->ids.container, &before);
	print_label(file, "lender", lender, &before);
	fputs("} ", file);
}

void metrics_raise(struct metrics *metrics, const char *before)
{
	const char *from = before, *found;
	char *sample, *end, name[64];
	double last;
	size_t len;
	FILE *file;

	for (int m = 0; m < METRIC_NR_COUNTERS; m++)
		for (struct metrics_row *row = metrics->rows; row < metrics->rows + metrics->nr;
		     row++) {
			snprintf(name, sizeof(name), "\n%s_total", families[m].name);
			file = alloc_file(&sample, &len);
			print_row(file, name, row, NULL);
			alloc_file_close(file);
			/* Most samples are in the same order as in the previous text. */
			found = strstr(from, sample) ?: strstr(before, sample);
			free(sample);
			/* Another process may have this pid now. */
			if (!found || !strncmp(row->job, "pid-", 4))
				continue;
			from = found;
			last = strtod(found + len, &end);
			if (last > row->values[m] && isfinite(last) && *end == '\n')
				metrics_totals_raise(row, m, last - row->values[m]);
		}
}

char *metrics_text(const struct metrics *metrics, bool openmetrics)
{
	char *text, name[64];
	size_t len;
	FILE *file = alloc_file(&text, &len);

	print_gpus(file, &metrics->model, openmetrics);
	for (int m = 0; m < METRIC_NR; m++) {
		bool counter = m < METRIC_NR_COUNTERS || m >= METRIC_LENT;
		bool lent = m == METRIC_LENT_TPCS || m == METRIC_LENT;

		snprintf(name, sizeof(name), "%s%s", families[m].name, counter ? "_total" : "");
		print_head(file, openmetrics ? families[m].name : name,
			   counter ? "counter" : "gauge", openmetrics ? families[m].unit : NULL,
			   families[m].help);
		for (unsigned int i = 0; i < metrics->nr; i++)
			if (!isnan(metrics->rows[i].values[m])) {
				print_row(file, name, &metrics->rows[i],
					  lent ? metrics->rows[i].lender : NULL);
				fprintf(file, "%.15g\n", metrics->rows[i].values[m]);
			}
	}
	if (openmetrics)
		fputs("# EOF\n", file);
	alloc_file_close(file);
	return text;
}
