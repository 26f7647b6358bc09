// SPDX-License-Identifier: MIT
/* Prints the result of `gpupart tune` as a table, JSON, a picture or a plan. */
#include "cli/bench/report.h"
#include "cli/plan/file.h"
#include "cli/tune/tune.h"

static const char *const states[] = {
	"not measured", "", "stopped early: another one is better in everything",
	"no progress: old sets restored", "a set was changed by another command",
};

static void add_row(const struct tune_run *run, json_t *table, json_t *series, const char *shape,
		    const struct tune_candidate *x)
{
	json_t *row = json_pack("[s]", shape);
	unsigned int last = run->tune.nr - 1;
	char size[8];

	for (unsigned int i = 0; i < run->tune.nr; i++) {
		json_array_append_new(row, json_integer(gpupart_tpcset_count(&x->sets[i])));
		json_array_append_new(row, json_real(x->speed[i]));
		json_array_append_new(row, tune_is_valid(x, i) ?
				      json_real(100 * tune_share(&run->tune, x, i)) : json_null());
		json_array_append_new(row, json_real(100 * x->noise[i]));
		json_array_append_new(row, x->again && x->time_ns[i] > 0 ?
				      json_real(x->time_ns[i] / 1e6) : json_null());
		json_array_append_new(row, x->again ? json_integer(x->nr_times[i]) : json_null());
	}
	json_array_append_new(row, json_string(x == run->tune.best ? "the best" :
					       states[x->state]));
	report_add(table, "rows", "o", row);
	snprintf(size, sizeof(size), "%u", gpupart_tpcset_count(&x->sets[0]));
	if (x->state == TUNE_MEASURED)
		report_mark(series, last ? x->speed[0] : gpupart_tpcset_count(&x->sets[0]),
			    x->speed[last], size);
}

/* Makes the table, the picture and the sentences. They have the form of a report of bench. */
static json_t *make_report(const struct tune_run *run)
{
	const struct tune *tune = &run->tune;
	const char *names[] = { run->c.live.tenants[0].name, run->c.live.tenants[1].name };
	char title[256], columns[512] = "shape", set[OUT_SET_STRLEN], x[96], y[96];
	json_t *report, *table, *chart, *series[GPUPART_NR_SHAPES];
	unsigned int equal = 0;

	snprintf(title, sizeof(title), "%u candidates on %u TPCs of %.60s, %s%s, in %.1f s",
		 tune->nr_candidates, tune->nr_tpcs,
		 gpupart_topology_info(run->c.live.topo)->name, run->c.live.pci,
		 run->args->simulated ? " (simulated)" : "", run->took_ns / 1e9);
	report = report_new("tune", title, run->args->simulated);
	for (unsigned int i = 0; i < tune->nr; i++)
		out_append(columns, sizeof(columns),
			   "|%c TPCs|%c/s|%% alone|noise %%|ms at %g%%|of", 'A' + i, 'A' + i,
			   run->c.setup.specs[i].percentile / 10.0);
	out_append(columns, sizeof(columns), "| ");
	snprintf(x, sizeof(x), tune->nr > 1 ? "%1$s, units a second (numbers: TPCs of %1$s)" :
		 "TPCs of %s", names[0]);
	snprintf(y, sizeof(y), "%s, units a second", names[tune->nr - 1]);
	table = report_table(report, tune->nr > 1 ? "A and B under each candidate" :
			     "A under each candidate", columns);
	json_object_set_new(table, "whole", json_true());
	chart = report_chart(report, "tune.svg", REPORT_POINTS, title, x, y, false);
	for (unsigned int s = 0; s < GPUPART_NR_SHAPES; s++)
		series[s] = report_series(chart, gpupart_shape_name(s));
	add_row(run, table, report_series(chart, "before"), "before", &tune->before);
	for (unsigned int n = 0; n < tune->nr_candidates; n++) {
		const struct tune_candidate *c = &tune->list[n];

		add_row(run, table, series[c->shape], gpupart_shape_name(c->shape), c);
		equal += c != tune->best && c->state == TUNE_MEASURED && tune_is_close(tune, c);
	}
	report_mark(report_series(chart, "the best"), tune->nr > 1 ? tune->best->speed[0] :
		    gpupart_tpcset_count(&tune->best->sets[0]), tune->best->speed[tune->nr - 1],
		    "");
	for (unsigned int i = 0; i < tune->nr; i++)
		report_mean(
			report,
			"Program %c is %s, measured by its %s: solo speed %.4g/s, noise %.1f%%. "
			"With its old set it was %+.1f%% faster at the end than at the start.",
			'A' + i, names[i],
			run->c.live.tenants[i].by_records ? "completed launches" : "reports",
			tune->alone[i], 100 * tune->noise[i],
			tune->before.speed[i] > 0
				? 100 * (tune->after.speed[i] / tune->before.speed[i] - 1)
				: 0);
	report_mean(
		report,
		"The best choice for the goal %s%s is %s. %u other candidates are worse by less than the noise.",
		run->goal, tune_value(tune, tune->best) < 0 ? ", which no candidate reaches," : "",
		gpupart_shape_name(tune->best->shape), equal);
	for (unsigned int i = 0; i < tune->nr; i++)
		report_mean(report, "%s: %u TPCs: %s.", names[i],
			    gpupart_tpcset_count(&tune->best->sets[i]),
			    out_set(set, sizeof(set), run->c.live.topo, &tune->best->sets[i]));
	report_mean(report, run->applied ? "Applied: the programs have these sets now." :
		    "Not applied: the programs have their old sets again. Programs that tune "
		    "started have been ended.");
	return report;
}

/* Writes the best sets in the form of a plan. */
static json_t *make_plan(const struct tune_run *run)
{
	const struct gpupart_topology *topo = run->c.live.topo;
	struct gpupart_tpcset all = gpupart_topology_all(topo);
	const uint64_t mem[TUNE_PROGRAMS] = { 0 };
	const struct args_texts rules[TUNE_PROGRAMS] = { 0 };
	struct gpupart_plan plan = { gpupart_topology_hash(topo), .nr_tenants = run->tune.nr };

	for (unsigned int i = 0; i < run->tune.nr; i++) {
		plan.tenants[i] = (struct gpupart_plan_tenant){ .set = run->tune.best->sets[i],
								.ugpu = -1 };
		snprintf(plan.tenants[i].name, sizeof(plan.tenants[i].name), "%s",
			 run->c.live.tenants[i].name);
	}
	return plan_file_json(topo, &plan, &all, NULL, mem, rules, run->args->simulated);
}

/* Describes what the program of the goal reached with the best candidate. */
static const char *reached(const struct tune_run *run, char *text, size_t len)
{
	const struct tune *tune = &run->tune;
	const struct tune_candidate *best = tune->best;
	const unsigned int of = tune->of;

	if (tune->goal.goal == QOS_ALPHA)
		snprintf(text, len, "%.4g of its solo speed", tune_share(tune, best, of));
	else if (tune->goal.goal == QOS_RATE)
		snprintf(text, len, "%.4g units per second", best->speed[of]);
	else if (best->time_ns[of] > 0)
		snprintf(text, len, "%.4g ms at %g%%", best->time_ns[of] / 1e6,
			 run->c.setup.specs[of].percentile / 10.0);
	else
		snprintf(text, len, "no measured latency");
	return text;
}

int tune_show(const struct tune_run *run, const struct args_texts *outputs)
{
	bool met = tune_value(&run->tune, run->tune.best) >= 0;
	json_t *report = make_report(run), *best = json_object(), *root;
	struct args args = *run->args;
	struct out out;
	char text[80];
	int status = out_open(&out, &args);

	for (unsigned int i = 0; i < run->tune.nr; i++)
		json_object_set_new(best, run->c.live.tenants[i].name,
				    out_json_set(run->c.live.topo, &run->tune.best->sets[i]));
	if (!status && args.json) {
		root = out_json_new("tune", args.simulated);
		json_object_update_new(root, json_pack("{s:s, s:b, s:b, s:O, s:O}", "goal",
				       run->goal, "met", met, "applied", run->applied, "best", best,
				       "report", report));
		out_json_write(&out, root);
	} else if (!status) {
		report_text(&out, report);
	}
	status = status ?: out_close(&out);
	for (unsigned int i = 0; i < outputs->nr && !status; i++) {
		bool svg = out_is_svg(outputs->texts[i]);

		args.output = outputs->texts[i];
		if (!met && !svg)
			continue;
		status = out_open(&out, &args);
		if (!status && svg)
			report_svg(out.file, json_array_get(json_object_get(report, "charts"), 0),
				   args.simulated);
		else if (!status)
			out_json_write(&out, make_plan(run));
		status = status ?: out_close(&out);
	}
	json_decref(best);
	json_decref(report);
	if (status || met)
		return status;
	return failure("no candidate reaches %s: the best candidate gives %s %u TPCs and %s",
		       run->goal, run->c.live.tenants[run->tune.of].name,
		       gpupart_tpcset_count(&run->tune.best->sets[run->tune.of]),
		       reached(run, text, sizeof(text)));
}
