// SPDX-License-Identifier: MIT
/* Prints the results of `gpupart sim` as text and as JSON. */
#include <stdlib.h>
#include <string.h>
#include "cli/sim/sim.h"
#include "cli/util/alloc.h"

#define LIST	2048

/* --------------------------------------------------------------------------- text */

/*
 * Prints a line for each GPU that ran blocks of the kernel. If there are several GPUs, the line has
 * the GPU's name.
 */
static void text_sms(struct out *out, const struct sim_run *run, const struct sim_kind *kind)
{
	const struct pipe_scenario *pipe = &run->scenario.pipe;
	char list[LIST], label[128] = "SMs ";

	for (unsigned int i = 0; i < pipe->nr_gpus; i++) {
		sim_list(list, sizeof(list), kind->sms[i], pipe->gpus[i].map.nr_sms);
		if (pipe->nr_gpus > 1)
			snprintf(label, sizeof(label), "SMs of %s ", run->scenario.gpu_names[i]);
		if (*list)
			out_wrap(out, 19, label, list);
	}
}

static void text_kind(struct out *out, const char *name, const struct sim_run *run,
		      const struct sim_kind *kind)
{
	char start[32], end[32], time[32], wait[32];

	if (!kind->nr)
		return;
	fprintf(out->file, "  %-16s %8llu %10llu  %10s %10s %10s %10s\n", name,
		(unsigned long long)kind->nr, (unsigned long long)kind->blocks,
		sim_time(start, kind->first), sim_time(end, kind->last),
		sim_time(time, kind->sum / kind->nr), sim_time(wait, kind->waited / kind->nr));
	text_sms(out, run, kind);
	if (kind->evicted)
		fprintf(out->file, "%19s%sevicted %llu times%s\n", "", out->dim,
			(unsigned long long)kind->evicted, out->plain);
}

static void text_gpu(struct out *out, const struct sim_run *run, unsigned int i)
{
	const struct pipe_gpu_result *gpu = &run->result.gpus[i];
	const struct pipe_gpu *spec = &run->scenario.pipe.gpus[i];
	uint64_t span = gpu->last - gpu->first;
	char busy[32], all[32];

	fprintf(out->file, "  GPU %-12s %s (simulated), %u SMs", run->scenario.gpu_names[i] ?
		run->scenario.gpu_names[i] : "", spec->chip.title, spec->map.nr_sms);
	if (gpu->last)
		fprintf(out->file, "; busy %s of %s, SMs %.0f %%", sim_time(busy, gpu->busy_ns),
			sim_time(all, span), span ? 100.0 * gpu->sm_ns / span /
			spec->map.nr_sms : 0);
	if (gpu->switches)
		fprintf(out->file, "; %llu switches", (unsigned long long)gpu->switches);
	fputs("\n", out->file);
}

/* Returns "GPU-bound" if the CPU mostly waits for the GPUs, and otherwise "CPU-bound". */
static const char *bound(const struct sim_run *run, const struct pipe_program_result *program)
{
	uint64_t idle = sim_idle(run);

	return program->full_ns + program->sync_ns > idle ? "GPU-bound" : "CPU-bound";
}

static void text_program(struct out *out, const struct sim_run *run, unsigned int i)
{
	const struct pipe_program_result *program = &run->result.programs[i];
	char end[32], full[32], sync[32];

	fprintf(out->file, "  program %s: %s%s; waited %s for the GPU, %s for room in a command "
		"buffer: %s\n", run->scenario.pipe.programs[i].name,
		program->done ? "ends at " : "had not ended",
		program->done ? sim_time(end, program->end) : "",
		sim_time(sync, program->sync_ns), sim_time(full, program->full_ns),
		bound(run, program));
}

static void text_run(struct out *out, const struct sim_run *run)
{
	const struct pipe_scenario *pipe = &run->scenario.pipe;
	char end[32];

	if (run->name)
		fprintf(out->file, "\n%srun %s%s\n", out->bold, run->name, out->plain);
	else
		fputs("\n", out->file);
	for (unsigned int i = 0; i < pipe->nr_gpus; i++)
		text_gpu(out, run, i);
	fprintf(out->file, "  %s%-16s %8s %10s  %10s %10s %10s %10s%s\n", out->dim, "kernel",
		"launches", "blocks", "start", "end", "mean time", "mean wait", out->plain);
	for (unsigned int i = 0; i < pipe->nr_kernels; i++)
		text_kind(out, pipe->kernels[i].name, run, &run->kernels[i]);
	text_kind(out, "(copies)", run, &run->copies);
	for (unsigned int i = 0; i < pipe->nr_programs; i++)
		text_program(out, run, i);
	if (run->result.stopped)
		fprintf(out->file, "  stopped at %s with work left\n",
			sim_time(end, run->result.end));
}

static void text_scalar(struct out *out, struct sim *sim, const char *key)
{
	const yaml_node_t *node = yaml_get(&sim->yaml, yaml_root(&sim->yaml), key);
	char *text, *rest, *line;

	if (!node || node->type != YAML_SCALAR_NODE)
		return;
	text = rest = alloc_text("%s", (const char *)node->data.scalar.value);
	while ((line = strsep(&rest, "\n")))
		if (*line)
			out_wrap(out, 0, "", out_clean(line));
	free(text);
}

void sim_text(struct out *out, struct sim *sim)
{
	struct sim_outcome *outcomes = NULL;

	fputs(out->bold, out->file);
	text_scalar(out, sim, "title");
	fputs(out->plain, out->file);
	text_scalar(out, sim, "about");
	for (unsigned int i = 0; i < sim->nr_runs; i++)
		text_run(out, &sim->runs[i]);
	if (sim_expect(sim, &outcomes) && sim->nr_expected) {
		fprintf(out->file, "\nexpected\n");
		for (unsigned int i = 0; i < sim->nr_expected; i++)
			fprintf(out->file, "  %s%-5s%s  %-48s %s%s%s\n",
				outcomes[i].holds ? "" : out->red,
				outcomes[i].holds ? "holds" : "FAILS", out->plain,
				outcomes[i].text, out->dim, outcomes[i].found, out->plain);
	}
	free(outcomes);
}

/* --------------------------------------------------------------------------- JSON */

/* If @any is false, returns null. */
static json_t *json_ns(bool any, uint64_t ns)
{
	return any ? json_integer((json_int_t)ns) : json_null();
}

static json_t *json_sms(const struct sim_run *run, const struct sim_kind *kind)
{
	const struct pipe_scenario *pipe = &run->scenario.pipe;
	json_t *gpus = json_array();
	char list[LIST];

	for (unsigned int i = 0; i < pipe->nr_gpus; i++) {
		sim_list(list, sizeof(list), kind->sms[i], pipe->gpus[i].map.nr_sms);
		if (*list)
			json_array_append_new(gpus, json_pack("{s:i, s:s}", "gpu", i, "sms", list));
	}
	return gpus;
}

static json_t *json_kind(const char *name, const struct sim_run *run, const struct sim_kind *kind)
{
	bool any = kind->nr;

	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:I, s:I, s:i, s:o}",
			 "name", name, "launches", (json_int_t)kind->nr,
			 "blocks", (json_int_t)kind->blocks, "bytes", (json_int_t)kind->bytes,
			 "start_ns", json_ns(any, kind->first), "end_ns", json_ns(any, kind->last),
			 "sum_ns", (json_int_t)kind->sum, "min_ns", json_ns(any, kind->min),
			 "max_ns", json_ns(any, kind->max), "waited_ns", (json_int_t)kind->waited,
			 "evicted", (json_int_t)kind->evicted, "nr_sms", sim_nr_sms(kind),
			 "gpus", json_sms(run, kind));
}

static json_t *json_launch(const struct sim_run *run, const struct pipe_launch *launch)
{
	const struct pipe_scenario *pipe = &run->scenario.pipe;
	char list[LIST];

	sim_list(list, sizeof(list), launch->sms, pipe->gpus[launch->gpu].map.nr_sms);
	return json_pack("{s:I, s:o, s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:s}",
			 "launch", (json_int_t)launch->launch,
			 "kernel", launch->kernel == UINT32_MAX ? json_null() :
				   json_string(pipe->kernels[launch->kernel].name),
			 "stream", pipe->streams[launch->stream].name, "gpu", launch->gpu,
			 "engine", launch->kernel == UINT32_MAX ?
				   json_integer(launch->engine - 1) : json_null(),
			 "asked_ns", (json_int_t)launch->asked,
			 "issued_ns", (json_int_t)launch->issued,
			 "start_ns", (json_int_t)launch->start, "end_ns", (json_int_t)launch->end,
			 "blocks", (json_int_t)launch->blocks, "bytes", (json_int_t)launch->bytes,
			 "evicted", launch->evicted, "sms", list);
}

static json_t *json_gpus(const struct sim_run *run)
{
	const struct pipe_gpu_result *gpu = run->result.gpus;
	json_t *list = json_array();

	for (unsigned int i = 0; i < run->scenario.pipe.nr_gpus; i++)
		json_array_append_new(list, json_pack(
			"{s:s?, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I}",
			"name", run->scenario.gpu_names[i],
			"chip", run->scenario.pipe.gpus[i].chip.name,
			"nr_sms", run->scenario.pipe.gpus[i].map.nr_sms,
			"first_ns", (json_int_t)gpu[i].first, "last_ns", (json_int_t)gpu[i].last,
			"busy_ns", (json_int_t)gpu[i].busy_ns,
			"sm_ns", (json_int_t)gpu[i].sm_ns, "copy_ns", (json_int_t)gpu[i].copy_ns,
			"switches", (json_int_t)gpu[i].switches));
	return list;
}

static json_t *json_programs(const struct sim_run *run)
{
	const struct pipe_program_result *program = run->result.programs;
	json_t *list = json_array();

	for (unsigned int i = 0; i < run->scenario.pipe.nr_programs; i++)
		json_array_append_new(list, json_pack("{s:s, s:o, s:I, s:I, s:s}",
			"name", run->scenario.pipe.programs[i].name,
			"end_ns", json_ns(program[i].done, program[i].end),
			"full_ns", (json_int_t)program[i].full_ns,
			"sync_ns", (json_int_t)program[i].sync_ns,
			"bound", bound(run, &program[i])));
	return list;
}

static json_t *json_run(const struct sim_run *run)
{
	const struct pipe_scenario *pipe = &run->scenario.pipe;
	json_t *kernels = json_array(), *launches = json_array();
	uint64_t nr = run->result.launches + run->result.copies;

	for (unsigned int i = 0; i < pipe->nr_kernels; i++)
		json_array_append_new(kernels, json_kind(pipe->kernels[i].name, run,
							 &run->kernels[i]));
	for (unsigned int i = 0; i < run->nr_rows; i++)
		json_array_append_new(launches, json_launch(run, &run->rows[i]));
	return json_pack("{s:o, s:I, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I}",
			 "name", out_json_text(run->name ? run->name : ""),
			 "end_ns", (json_int_t)run->result.end, "stopped", run->result.stopped,
			 "busy_ns", (json_int_t)run->result.busy_ns,
			 "idle_ns", (json_int_t)sim_idle(run),
			 "nr_launches", (json_int_t)run->result.launches,
			 "nr_blocks", (json_int_t)run->result.blocks, "gpus", json_gpus(run),
			 "kernels", kernels, "copies", json_kind("copies", run, &run->copies),
			 "programs", json_programs(run), "launches", launches,
			 "launches_left_out", (json_int_t)(nr - run->nr_rows));
}

json_t *sim_json(struct sim *sim)
{
	json_t *root = out_json_new("sim", true), *runs = json_array(), *expected = json_array();
	struct sim_outcome *outcomes = NULL;

	for (unsigned int i = 0; i < sim->nr_runs; i++)
		json_array_append_new(runs, json_run(&sim->runs[i]));
	if (sim_expect(sim, &outcomes))
		for (unsigned int i = 0; i < sim->nr_expected; i++)
			json_array_append_new(expected, json_pack("{s:s, s:b, s:s}",
				"text", outcomes[i].text, "holds", outcomes[i].holds,
				"found", outcomes[i].found));
	free(outcomes);
	json_object_set_new(root, "scenario", json_string(sim->name));
	json_object_set_new(root, "runs", runs);
	json_object_set_new(root, "expect", expected);
	return root;
}
