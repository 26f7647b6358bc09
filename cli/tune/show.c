// SPDX-License-Identifier: MIT
/* Prints the result of `gpupart tune` as a table, JSON, a picture or a plan. */
#include <string.h>
#include "cli/bench/report.h"
#include "cli/plan/file.h"
#include "cli/tune/tune.h"

/* Adds a candidate to the table, and if it was measured completely, to the picture. */
static void add(const struct tune *tune, json_t *table, json_t *chart, const char *shape,
		const struct tune_candidate *x)
{
	unsigned int size = gpupart_tpcset_count(&x->sets[0]), last = tune->nr - 1;
	const char *best = x == tune->best ? "the best" : NULL;
	json_t *row = json_pack("[s]", shape), *cells;

	for (unsigned int i = 0; i <= last; i++) {
		bool has_times = x->again && x->nr_times[i];

		cells = json_pack(has_times ? "[i, f, o, f, f, I]" : "[i, f, o, f, n, n]",
			gpupart_tpcset_count(&x->sets[i]), x->speed[i], x->valid[i] ?
			json_real(100 * x->speed[i] / tune->alone[i]) : json_null(),
			100 * x->noise[i], x->time_ns[i] / 1e6, (json_int_t)x->nr_times[i]);
		json_array_extend(row, cells);
		json_decref(cells);
	}
	json_array_append_new(row, json_string(best ?: x->why ?: ""));
	report_row(table, "o", row);
	if (!x->why)
		report_mark(chart, best ?: shape, last ? x->speed[0] : size, x->speed[last],
			    json_sprintf("%u", size));
}

/* Makes the table, the picture and the sentences. They have the form of a report of bench. */
static json_t *make_report(const struct tune *tune)
{
	const struct live_tenant *programs = tune->c.live.tenants;
	const struct tune_candidate *old = &tune->list[tune->nr_candidates];
	struct gpupart_tpcset room = gpupart_tpcset_or(&tune->room[0], &tune->room[1]);
	char title[256], columns[256] = "shape", x[96], y[96], set[OUT_SET_STRLEN];
	json_t *report, *table, *chart;

	snprintf(title, sizeof(title), "%u candidates on %u TPCs of %.60s, %s%s, in %.1f s",
		 tune->nr_candidates, gpupart_tpcset_count(&room),
		 gpupart_topology_info(tune->c.live.topo)->name, tune->c.live.pci,
		 tune->args.simulated ? " (simulated)" : "", tune->took);
	report = report_new("tune", title, tune->args.simulated);
	for (unsigned int i = 0; i < tune->nr; i++)
		out_append(columns, sizeof(columns),
			   "|%c TPCs|%c/s|%% alone|noise %%|ms at %g%%|of", 'A' + i, 'A' + i,
			   tune->c.setup.tenants[i].percentile / 10.0);
	out_append(columns, sizeof(columns), "| ");
	table = report_table_whole(report, "Candidates", columns);
	snprintf(x, sizeof(x), tune->nr > 1 ? "%1$s, units a second (numbers: TPCs of %1$s)" :
		 "TPCs of %s", programs[0].name);
	snprintf(y, sizeof(y), "%s, units a second", programs[tune->nr - 1].name);
	chart = report_chart(report, "tune.svg", REPORT_POINTS, title, x, y, false);
	add(tune, table, chart, "before", old);
	for (const struct tune_candidate *one = tune->list; one < old; one++)
		add(tune, table, chart, gpupart_shape_name(one->shape), one);
	for (unsigned int i = 0; i < tune->nr; i++)
		report_mean(report, "Program %c is %s, measured by its %s: solo speed %.4g/s, "
			    "noise %.1f%%. With its old set it was %+.1f%% faster at the end than "
			    "at the start. Its best set has %u TPCs: %s.", 'A' + i,
			    programs[i].name, programs[i].by_records ? "completed launches" :
			    "reports", tune->alone[i], 100 * tune->noise[i], old[0].speed[i] > 0 ?
			    100 * (old[1].speed[i] / old[0].speed[i] - 1) : 0,
			    gpupart_tpcset_count(&tune->best->sets[i]),
			    out_set(set, sizeof(set), tune->c.live.topo, &tune->best->sets[i]));
	report_mean(report, "The best choice for the goal %s%s is %s.", tune->qos.goal,
		    tune->met ? "" : ", which no candidate reaches,",
		    gpupart_shape_name(tune->best->shape));
	report_mean(report, tune->apply ? "Applied: the programs have these sets now." :
		    tune->programs[0] ? "Not applied: tune ended the programs that it started." :
		    "Not applied: the programs have their old sets again.");
	return report;
}

int tune_show(struct tune *tune)
{
	const struct gpupart_topology *topo = tune->c.live.topo;
	struct gpupart_tpcset all = gpupart_topology_all(topo);
	struct gpupart_plan plan = { gpupart_topology_hash(topo), .nr_tenants = tune->nr };
	json_t *report = make_report(tune), *best = json_object(), *root;
	const unsigned int of = tune->of;
	struct out out;
	int status = 0;

	for (unsigned int i = 0; i < tune->nr; i++) {
		plan.tenants[i] = (struct gpupart_plan_tenant){ "", tune->best->sets[i], -1 };
		strcpy(plan.tenants[i].name, tune->c.live.tenants[i].name);
		json_object_set_new(best, plan.tenants[i].name,
				    out_json_set(topo, &tune->best->sets[i]));
	}
	root = out_json_new("tune", tune->args.simulated);
	json_object_update_new(root, json_pack("{s:s, s:b, s:b, s:o, s:o}", "goal", tune->qos.goal,
			       "met", tune->met, "applied", tune->apply, "best", best,
			       "report", report));
	/* The first output is stdout. If no candidate reaches the goal, writes no plan. */
	for (unsigned int i = 0; i <= tune->outputs.nr && !status; i++) {
		tune->args.output = i ? tune->outputs.texts[i - 1] : NULL;
		if (i && !tune->met && !out_is_svg(tune->args.output))
			continue;
		status = out_open(&out, &tune->args);
		if (status)
			break;
		if (out_is_svg(tune->args.output))
			report_svg(out.file, json_array_get(json_object_get(report, "charts"), 0),
				   tune->args.simulated);
		else if (i || tune->args.json)
			out_json_write(&out, i ? plan_file_json(topo, &plan, &all, NULL, NULL, NULL,
						       tune->args.simulated) : json_incref(root));
		else
			report_text(&out, report);
		status = out_close(&out);
	}
	json_decref(root);
	return status || tune->met ? status :
	       failure("no candidate reaches %s: the best candidate gives %s %u TPCs and %.4g "
		       "units per second, and reaches %.3g%% of the goal", tune->qos.goal,
		       tune->c.live.tenants[of].name, gpupart_tpcset_count(&tune->best->sets[of]),
		       tune->best->speed[of], fmin(99.9, 100 * (1 + tune_value(tune, tune->best))));
}
