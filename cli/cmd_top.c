// SPDX-License-Identifier: MIT
/* gpupart top: shows running programs repeatedly, on a terminal's screen, as text or as JSON. */
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/draw/picture.h"
#include "cli/target/args.h"
#include "cli/target/settings.h"
#include "cli/top/top.h"
#include "cli/util/number.h"

const char top_help[] =
"Usage: gpupart top [-d SECONDS] [-n COUNT] [--once | --json] [-i CAPTURE]\n"
"Shows live what runs under gpupart: a map of each GPU, with the letters of jobs in\n"
"their TPCs, and a row for each job: how busy it keeps its set and the GPU, its score\n"
"under 'gpupart qos run', memory, launches per second, and the number of launches\n"
"outside the set. Shows your own programs, or as root those of all users. Key h lists\n"
"the keys.\n"
"\n"
"  -d, --delay SECONDS time between two updates, 0.1-3600 (1)\n"
"  -n, --count COUNT   end after COUNT updates\n"
"      --once          print one update of each GPU as text, after one delay\n"
"      --json          print a line for each update, schema gpupart/1\n"
"  -i, --input CAPTURE show the simulated GPU of CAPTURE, even if it is idle\n"
"\n"
"If stdout is not a terminal with cursor movement, each update is printed below the\n"
"previous one, in the format of 'gpupart ps', with launches per second.\n"
"\n"
"Busy times are upper bounds, because the start of a kernel is not recorded. A kernel\n"
"is counted from its launch, or from the end of the previous kernel on its stream. '-'\n"
"(in JSON null) means not known, because there are no completion records; 'gpupart\n"
"doctor' shows the reason. '+' (partial) means that some launches, such as those of\n"
"some graphs, have no record.\n"
"\n"
"Examples:\n"
"  gpupart top\n"
"  gpupart top -d 5 -n 12 >minute.txt\n"
"  gpupart top --json | jq -c '.jobs[] | [.name, .busy]'\n";

/* ------------------------------------------------------------------- JSON */

static json_t *json_share(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

/* Returns the JSON object of a job or of a program. */
static json_t *json_row(const struct model_row *row)
{
	const struct gpupart_process *p = row->job < 0 ? NULL : row->process;
	json_t *root = json_pack(
		"{s:o, s:I, s:s, s:b, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
		" s:o}",
		"name", out_json_text(row->name), "uid", (json_int_t)row->uid,
		"user", look_user(row->uid), "limited", row->limited,
		"set", out_json_tpcs(&row->set), "busy", json_share(row->busy),
		"gpu_busy", json_share(row->gpu_busy), "partial", row->partial,
		"launches_per_s", json_share(row->launches_per_s),
		"launches", out_json_index(row->launches), "outside", out_json_index(row->outside),
		"memory_bytes", out_json_index(row->memory),
		"quota_bytes", out_json_index(row->quota), "qos_score", json_share(row->score),
		"qos_goal_met", row->score < 0 ? json_null() : json_boolean(row->goal_met),
		"lending", lending_json(row->lending), "problem", out_json_text(row->problem));

	if (p) {
		json_object_set_new(root, "pid", p->pid ? json_integer(p->pid) : json_null());
		json_object_set_new(root, "counters", row->launches < 0 ? json_null() :
				    out_json_counters(&p->counters));
	}
	return root;
}

static json_t *json_gpu(const struct model_gpu *gpu, const struct top_gpu *now)
{
	json_t *root = gpu->topo ? out_json_gpu(gpupart_topology_info(gpu->topo)) : json_object();

	json_object_update_new(root, json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
		"pci", out_json_text(gpu->pci), "simulated", gpu->simulated, "nr_tpcs",
		out_json_index(gpu->topo ? (int)gpupart_topology_nr_tpcs(gpu->topo) : -1),
		"power_mw", out_json_index(now->state.power_mw),
		"sm_mhz", out_json_index(now->state.sm_mhz),
		"memory_mhz", out_json_index(now->state.memory_mhz),
		"memory_bytes", out_json_index(now->memory),
		"memory_used_bytes", out_json_index(now->memory_used)));
	return root;
}

static void print_json(struct out *out, const struct top *top)
{
	const struct model_row *rows = top->model.rows, *end = rows + top->model.nr_rows;
	json_t *root, *gpus = json_array(), *jobs = json_array();
	char tag[PICTURE_TAG_LEN];
	bool simulated = false;

	for (unsigned int i = 0; i < top->model.nr_gpus; i++) {
		simulated |= top->model.gpus[i].simulated;
		json_array_append_new(gpus, json_gpu(&top->model.gpus[i], &top->gpus[i]));
	}
	for (const struct model_row *job = rows; job < end; job++) {
		json_t *programs;

		if (job->job >= 0)
			continue;
		programs = json_array();
		for (const struct model_row *row = rows; row < end; row++)
			if (row->job == job - rows)
				json_array_append_new(programs, json_row(row));
		root = json_row(job);
		json_object_update_new(root, json_pack("{s:o, s:s, s:i, s:o}",
			"job", out_json_text(*job->id ? job->run : ""), "letter",
			picture_tag(job->letter, tag), "gpu", job->gpu, "programs", programs));
		json_array_append_new(jobs, root);
	}
	root = out_json_new("top", simulated);
	json_object_update_new(root, json_pack("{s:o, s:o}", "gpus", gpus, "jobs", jobs));
	json_dumpf(root, out->file, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(4));
	fputc('\n', out->file);
	json_decref(root);
}

/* ------------------------------------------------------------------- text */

static void print_frames(struct out *out, const struct top *top)
{
	/* If the footer is not empty, it replaces the list of keys. */
	struct top_view view = { .footer = " " };
	const char *columns = getenv("COLUMNS");
	struct winsize size = { 0 };
	unsigned long width = 80;

	if (!ioctl(fileno(out->file), TIOCGWINSZ, &size) && size.ws_col)
		width = size.ws_col;
	else if (columns)
		number_whole(columns, 1000, &width);
	if (width < TOP_LEAST_WIDTH)
		width = TOP_LEAST_WIDTH;
	do {
		if (view.gpu)
			fputc('\n', out->file);
		top_frame(&view, top, width, 36 + top->model.nr_rows);
		top_print(out, &view);
	} while (++view.gpu < top->model.nr_gpus);
	free(view.cells);
}

/*
 * Prints @count updates as text or JSON. A signal ends the output earlier. Returns 0 or an error.
 */
static int watch(struct top *top, const struct args *args, double delay, unsigned long count,
		 bool once)
{
	struct process_table before = { 0 }, *table = &top->model.table;
	const bool rows = !args->json && !once;	/* in the format of 'gpupart ps' */
	int status = 0;

	for (unsigned long n = 0; !status && !top_ended && (!count || n < count); n++) {
		struct out out;

		if (n)
			usleep(delay * 1e6);
		if (top_ended)
			break;
		if (rows) {
			process_table_free(&before);
			before = *table;
			*table = (struct process_table){ 0 };
		}
		status = rows ? process_table_read(table, 0) : top_take(top, TOP_LISTS_AGE);
		status = status ?: out_open(&out, args);
		if (status || (once && n + 1 < count))
			continue;
		if (n && rows)
			fputc('\n', out.file);
		if (rows)
			process_table_print(&out, table, &before);
		else
			(args->json ? print_json : print_frames)(&out, top);
		status = out_close(&out);
	}
	process_table_free(&before);
	return status;
}

int cmd_top(int argc, char **argv)
{
	const char *delay = NULL, *count = NULL;
	bool once = false;
	const struct args_option own[] = { { .name = "delay", .letter = 'd', .value = &delay },
					   { .name = "count", .letter = 'n', .value = &count },
					   { .name = "once", .given = &once },
					   { 0 } };
	struct args args = { .lenient = true };
	struct top top = { .set = cmd_set };
	unsigned long looks = 0;
	double seconds = 1;
	int status = args_parse(&args, ARGS_SIM | ARGS_JSON, own, top_help, argc, argv) ?:
		     args_seconds("-d", delay, 0.1, &seconds);

	if (!status && count && !number_whole(count, ULONG_MAX, &looks))
		status = usage_error("-n '%s': must be a number, 1 or more", count);
	else if (!status && once && count)
		status = usage_error("--once and -n %s: use only one of them", count);
	status = status ?: args_simulate(&args);
	if (status)
		return status;
	settings_report();
	model_begin(&top.model, args.gpu, args.simulated ? args.source : NULL);
	top_end_on(SIGINT);
	top_end_on(SIGTERM);
	/* The first reading has no rates, so --once needs two. */
	status = !once && !args.json && top_has_screen() ? top_show(&top, seconds, looks) :
		 watch(&top, &args, seconds, once ? 2 : looks, once);
	model_end(&top.model);
	return status;
}
