// SPDX-License-Identifier: MIT
/* gpupart trace: parses the options, and prints the help and the JSON output. */
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/draw/topology.h"
#include "cli/target/args.h"
#include "cli/trace/trace.h"
#include "cli/util/number.h"

const char trace_help[] =
"Usage: gpupart trace [-i CAPTURE] [--gpu GPU] [--json | --of FORM] [-o FILE]\n"
"                     [--launches N] [--blocks N] [--threads N]\n"
"                     [--ns NS | --iterations N] [NAME=]SET...\n"
"Launches kernels of its own into all SETs at the same time, one stream for each SET,\n"
"and shows which block ran on which SM, and when. Each block records its SM and the\n"
"GPU's clock. SET is 0-7,16 or gpc:0,1 or ugpu:0 or hex:f0, or several joined by +.\n"
"\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1: one record for each block\n"
"      --of FORM       text, for a terminal, with one row for each TPC; or svg, with\n"
"                      one row for each SM (the default for -o FILE.svg)\n"
"  -o, --output FILE   write FILE instead of stdout; FILE.json: as with --json\n"
"      --launches N    number of launches into each set, one after the other: 1 to\n"
"                      1000 (3)\n"
"      --blocks N      blocks of a launch; the default is two for each SM of its set\n"
"      --threads N     threads of a block: 1 to 1024 (128)\n"
"      --ns NS         nanoseconds that a block runs: 1 to 10000000 (20000)\n"
"      --iterations N  work of a block, instead of --ns: 4 N multiply-adds in each\n"
"                      thread, N from 1 to 1000000\n"
"\n"
"Without NAME, the text of SET is the name. Names must differ.\n"
"Each SM runs one block at a time. At most 52 sets are possible, and at most 20000\n"
"blocks in all launches together.\n"
"Exit status: 0 every block ran inside its set, 1 a block ran outside its set, 2 trace\n"
"cannot run here.\n"
"\n"
"Examples:\n"
"  gpupart trace gpc:0 gpc:1\n"
"  gpupart trace -o trace.svg web=0-7 train=8-65\n"
"  gpupart trace -i sample:h200 --json 0-3 | jq '.blocks[] | {smid, start_ns}'\n";

struct options {
	const char *form, *launches, *blocks, *threads, *ns, *iterations;
};

/*
 * If @text is not NULL, reads the value of @option into *nr. The value must be from 1 to @max.
 * Returns 0 or an error.
 */
static int take_number(const char *option, const char *text, unsigned int max, unsigned int *nr)
{
	unsigned long value;

	if (!text)
		return 0;
	if (!number_whole(text, max, &value))
		return usage_error("%s %s: must be a number from 1 to %u", option,
				   *text ? text : "''", max);
	*nr = value;
	return 0;
}

static int take_options(const struct args *args, const struct options *options,
			struct trace *trace, unsigned int *blocks)
{
	unsigned int work = 20000;
	int status;

	if (options->ns && options->iterations)
		return usage_error("--ns %s and --iterations %s: use only one of them", options->ns,
				   options->iterations);
	if (options->form && strcmp(options->form, "text") && strcmp(options->form, "svg"))
		return usage_error("--of %s: must be text or svg", options->form);
	if (options->form && args->json)
		return usage_error("--json and --of %s: use only one of them", options->form);
	trace->nr_launches = 3;
	trace->threads = 128;
	trace->counted = options->iterations;
	status = take_number("--launches", options->launches, 1000, &trace->nr_launches) ?:
		 take_number("--blocks", options->blocks, TRACE_MAX_BLOCKS, blocks) ?:
		 take_number("--threads", options->threads, 1024, &trace->threads) ?:
		 take_number("--ns", options->ns, TRACE_MAX_NS, &work) ?:
		 take_number("--iterations", options->iterations, TRACE_MAX_ITERATIONS, &work);
	trace->work = work;
	return status;
}

/*
 * Returns the length of the name in [NAME=]SET. If NAME= is absent, the whole text of SET is the
 * name.
 */
static int name_len(const char *word)
{
	const char *end = strrchr(word, '=');

	return end ? end - word : (int)strlen(word);
}

/* Reads [NAME=]SET. Returns 0 or an error. */
static int take_set(struct trace *trace, const char *word, struct picture_tenant *tenant)
{
	const char *words = strrchr(word, '=');
	int err;

	words = words ? words + 1 : word;
	tenant->name = alloc_text("%.*s", name_len(word), word);
	err = gpupart_set_parse(cmd_gp, trace->picture.topo, words, &tenant->set);
	if (err)
		return error_of(err, "'%s': %s", word, gpupart_error(cmd_gp));
	return 0;
}

/* Reads the sets, and computes the number of blocks for each set. Returns 0 or an error. */
static int take_sets(const struct args *args, struct trace *trace, unsigned int blocks,
		     struct picture_tenant *tenants)
{
	unsigned long nr = 0;
	int status = 0;

	for (unsigned int i = 0; !status && args->program[i]; i++) {
		status = take_set(trace, args->program[i], &tenants[i]);
		trace->picture.nr_tenants++;
		trace->blocks[i] = blocks ? blocks :
				   2 * topology_nr_sms(trace->picture.topo, &tenants[i].set);
		nr += (unsigned long)trace->blocks[i] * trace->nr_launches;
	}
	if (!status && nr > TRACE_MAX_BLOCKS)
		return usage_error(
			"%lu blocks with %u launches into each set: at most %u blocks are possible: reduce --blocks or --launches",
			nr, trace->nr_launches, TRACE_MAX_BLOCKS);
	return status;
}

static void write_json(struct out *out, const struct trace *trace)
{
	const struct gpupart_topology *topo = trace->picture.topo;
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	json_t *root = out_json_new("trace", info->simulated);
	json_t *sets = json_array(), *blocks = json_array();

	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++)
		json_array_append_new(sets, json_pack("{s:o, s:o, s:i}",
			"name", out_json_text(trace->picture.tenants[i].name),
			"set", out_json_set(topo, &trace->picture.tenants[i].set),
			"nr_blocks", trace->blocks[i]));
	for (unsigned int i = 0; i < trace->nr_records; i++) {
		const struct trace_block *b = &trace->records[i];

		json_array_append_new(blocks, json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:I}",
			"set", b->set, "launch", b->launch, "block", b->block, "smid", b->smid,
			"tpc", b->tpc, "start_ns", (json_int_t)b->start_ns,
			"end_ns", (json_int_t)b->end_ns));
	}
	json_object_update_new(root, json_pack("{s:o, s:s, s:I, s:i, s:i, s:o, s:I, s:I, s:i, s:o}",
		"gpu", out_json_gpu(info), "kernel", trace->counted ? "counted" : "timed",
		trace->counted ? "iterations" : "ns", (json_int_t)trace->work,
		"threads", trace->threads, "launches", trace->nr_launches, "sets", sets,
		"first_start_ns", (json_int_t)trace->first_ns,
		"span_ns", (json_int_t)trace->span_ns, "nr_outside", trace->nr_outside,
		"blocks", blocks));
	out_json_write(out, root);
}

/* Opens the output file, makes the launches, and writes the output. */
static int run_and_show(const struct args *args, const char *form, struct trace *trace)
{
	char why[512] = "";
	struct out out;
	int status, err;

	status = out_open(&out, args);
	if (status)
		return status;
	err = trace_run(trace, why, sizeof(why));
	if (err) {
		out_close(&out);
		return error_of(err, "%s", why);
	}
	if (args->json)
		write_json(&out, trace);
	else if (form ? !strcmp(form, "svg") : out_is_svg(args->output))
		trace_svg(&out, trace);
	else
		trace_text(&out, trace);
	status = out_close(&out);
	if (trace->nr_outside)
		return failure("%u of %u blocks ran outside their set", trace->nr_outside,
			       trace->nr_records);
	return status;
}

static int trace_attached(const struct args *args, const struct options *options,
			  struct trace *trace)
{
	struct picture_tenant tenants[TRACE_MAX_SETS] = { 0 };
	struct gpupart_tpcset limit;
	char text[OUT_SET_STRLEN];
	unsigned int blocks = 0;
	int status;

	trace->picture.topo = gpupart_gpu_topology(trace->gpu);
	trace->picture.tenants = tenants;
	if (gpupart_limit_get(trace->gpu, &limit))
		return usage_error(
			"the limit %s (GPUPART_SET) applies to this process: start gpupart outside the run",
			out_set(text, sizeof(text), trace->picture.topo, &limit));
	status = take_options(args, options, trace, &blocks) ?:
		 take_sets(args, trace, blocks, tenants) ?:
		 run_and_show(args, options->form, trace);
	free(trace->records);
	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++)
		free((char *)tenants[i].name);
	return status;
}

/* Checks that the name in argument @nr differs from all earlier names. Returns 0 or an error. */
static int check_name(const struct args *args, unsigned int nr)
{
	const char *word = args->program[nr];
	int len = name_len(word);

	if (!len)
		return usage_error("'%s': the name is empty: must be NAME=SET", word);
	for (unsigned int i = 0; i < nr; i++)
		if (name_len(args->program[i]) == len && !strncmp(args->program[i], word, len))
			return usage_error(
				"'%s' and '%s': two sets have the name '%.*s': name them differently with NAME=SET",
				args->program[i], word, len, word);
	return 0;
}

/* Checks the arguments. Call this function before opening a GPU. Returns 0 or an error. */
static int check_words(const struct args *args)
{
	unsigned int nr = 0;

	while (args->program[nr])
		nr++;
	if (!nr)
		return usage_error("no SET: see 'gpupart trace --help'");
	if (nr > TRACE_MAX_SETS)
		return usage_error("%u sets: at most %d are possible", nr, TRACE_MAX_SETS);
	for (unsigned int i = 0; i < nr; i++) {
		int status = check_name(args, i);

		if (status)
			return status;
	}
	return 0;
}

int cmd_trace(int argc, char **argv)
{
	struct options options = { 0 };
	const struct args_option own[] = {
		{ .name = "of", .value = &options.form },
		{ .name = "launches", .value = &options.launches },
		{ .name = "blocks", .value = &options.blocks },
		{ .name = "threads", .value = &options.threads },
		{ .name = "ns", .value = &options.ns },
		{ .name = "iterations", .value = &options.iterations }, { 0 },
	};
	struct trace trace = { 0 }, unused = { 0 };
	struct args args = { 0 };
	unsigned int blocks;
	const char *gpu;
	int status, err;

	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT | ARGS_NAMES, own,
			    trace_help, argc, argv) ?:
		 check_words(&args) ?:
		 take_options(&args, &options, &unused, &blocks) ?:
		 args_simulate(&args);
	if (status)
		return status;
	status = args_gpu(&args, &gpu);
	if (!status) {
		err = gpupart_attach(cmd_gp, gpu, NULL, &trace.gpu);
		status = err ? args_fail_gpu(&args, err, gpupart_error(cmd_gp)) :
			 trace_attached(&args, &options, &trace);
	}
	return status;
}
