// SPDX-License-Identifier: MIT
/*
 * gpupart plan: computes sets from demands. Writes the sets as text, JSON, SVG or shell commands.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/draw/picture.h"
#include "cli/draw/topology.h"
#include "cli/plan/demands.h"
#include "cli/plan/file.h"
#include "cli/start/run.h"
#include "cli/target/args.h"
#include "cli/target/check.h"
#include "cli/target/clusters.h"
#include "cli/target/cuda.h"
#include "cli/target/neighbours.h"
#include "cli/target/tenants.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"

const char plan_help[] =
"Usage: gpupart plan [-f FILE] [--tenant NAME:DEMANDS]... [-i SOURCE] [--gpu GPU]\n"
"                    [--beside] [--only NAME] [--json | --of FORM] [-o FILE]\n"
"Makes disjoint sets for up to 16 tenants from their demands. The result is the best\n"
"one by an order that gpupart(1) describes, and always the same for the same input. If\n"
"there is none, plan prints the demand that cannot be met, and a value that could be\n"
"met.\n"
"\n"
"      --tenant NAME:DEMANDS  a tenant and its demands, separated by commas:\n"
"                        min=N, max=N  at least and at most N TPCs; tpcs=N sets both\n"
"                        gpcs          whole GPCs, not shared with other tenants\n"
"                        cluster=N     room for clusters of N blocks in one GPC\n"
"                        same=NAME, apart=NAME  in the same uGPU as tenant NAME, or in\n"
"                                      a different one; several names as a+b\n"
"                        weight=N      weight of its share of the remaining TPCs\n"
"                        pack, spread  few GPCs for isolation (the default), or many\n"
"                                      for speed\n"
"                        shape=SHAPE   packed, gpcs, spread, or balanced: whole GPCs,\n"
"                                      the same number of each uGPU\n"
"                        mem=SIZE      a quota of GPU memory, as for run --mem\n"
"                      Without demands: at least 1 TPC, and a share of the rest\n"
"  -f, --file FILE     read tenants from a YAML file:\n"
"                        tenants:\n"
"                          llm: {min: 16, max: 32, gpcs: true, apart: [batch]}\n"
"                          batch: min=8,spread\n"
"  -i, --input SOURCE  kernel, rm, sample:NAME or a capture's path\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --beside        leave out the TPCs of programs that are running now\n"
"      --only NAME     show only this tenant\n"
"      --json          print JSON, which 'gpupart run --plan FILE:NAME' reads\n"
"      --of FORM       text (the default); picture, for a terminal; svg; or env: lines\n"
"                      for a shell\n"
"  -o, --output FILE   write FILE; FILE.svg: as with --of svg, FILE.json: with --json\n"
"\n"
"Inside a run, plan uses only the TPCs of the run's limit. A shell that evaluates the\n"
"lines of --of env confines its programs to the tenant's set. These programs leave the\n"
"job of a run around the shell: 'gpupart set' for that job does not change them.\n"
"\n"
"Examples:\n"
"  gpupart plan --tenant llm:min=16,max=33,gpcs,apart=batch --tenant batch:min=8\n"
"  gpupart plan -f tenants.yaml --json -o plan.json\n"
"  gpupart run --plan plan.json:llm -- ./serve\n"
"  env=$(gpupart plan -f tenants.yaml --only llm --of env) && eval \"$env\" && ./serve\n";

/* The options of `gpupart plan`, without the demands. */
struct wishes {
	const char *file, *form, *only;
	bool beside;
	struct args_texts tenants;
};

/* The input of the functions that write the output. */
struct result {
	const struct args *args;
	const struct gpupart_topology *topo;
	const struct gpupart_plan *plan;
	const uint64_t *mem;		/* quotas of the tenants in bytes; 0: no quota */
	const struct args_texts *rules;	/* rules of the tenants, by kernel name */
	const char *only, *gpu;		/* --only or NULL; PCI address or "" */
	bool svg;			/* draw SVG instead of text */
	struct gpupart_tpcset within;
	const struct gpupart_tpcset *limit;	/* limit of the outer run, or NULL */
	char key[20];			/* key of the check of the mask bits, or "" */
};

static bool is_shown(const struct result *r, unsigned int tenant)
{
	return !r->only || !strcmp(r->only, r->plan->tenants[tenant].name);
}

/* -------------------------------------------------------------------- text */

/* Writes ", uGPU 0,1", or "" if the topology has no uGPUs. */
static void name_ugpus(const struct gpupart_topology *topo, const struct gpupart_tpcset *set,
		       char *text, size_t len)
{
	struct gpupart_tpcset of;
	unsigned int nr = 0;

	*text = 0;
	for (unsigned int ugpu = 0; ugpu < gpupart_topology_nr_ugpus(topo); ugpu++) {
		of = gpupart_topology_ugpu(topo, ugpu);
		if (gpupart_tpcset_intersects(&of, set))
			out_append(text, len, nr++ ? ",%u" : ", uGPU %u", ugpu);
	}
}

static void print_set(struct out *out, const struct gpupart_topology *topo, const char *name,
		      const struct gpupart_tpcset *set, uint64_t mem)
{
	char size[TENANTS_SIZE_STRLEN];
	unsigned int nr_gpcs = 0, nr = gpupart_tpcset_count(set);
	char text[OUT_SET_STRLEN], ugpus[160];

	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++)
		nr_gpcs += gpupart_tpcset_intersects(&gpupart_topology_gpc(topo, gpc)->tpcs, set);
	name_ugpus(topo, set, ugpus, sizeof(ugpus));
	fprintf(out->file, "\n%s%s%s: ", out->bold, name, out->plain);
	fprintf(out->file, "%u TPC%s, %u SMs in %u GPC%s%s%s%s\n", nr, nr == 1 ? "" : "s",
		topology_nr_sms(topo, set), nr_gpcs, nr_gpcs == 1 ? "" : "s", ugpus,
		mem ? ", " : "", mem ? tenants_size(size, mem) : "");
	out_wrap(out, 2, "TPCs", out_set(text, sizeof(text), topo, set));
	topology_strip(out, topo, " ", set);
}

static int write_text(struct out *out, const struct result *r)
{
	struct gpupart_tpcset left = r->within;
	char text[OUT_SET_STRLEN];

	out_gpu_text(out, r->topo);
	if (r->args->simulated)
		fputs("simulated: a plan for the simulated GPU of this capture\n", out->file);
	if (r->limit)
		fprintf(out->file, "inside TPCs %s, the limit of this process (GPUPART_SET)\n",
			out_set(text, sizeof(text), r->topo, r->limit));
	fprintf(out->file, "topology %016llx; proven to be the best plan in %u steps\n",
		(unsigned long long)r->plan->topology_hash, r->plan->nr_steps);
	for (unsigned int i = 0; i < r->plan->nr_tenants; i++) {
		const struct gpupart_plan_tenant *t = &r->plan->tenants[i];

		left = gpupart_tpcset_andnot(&left, &t->set);
		if (is_shown(r, i))
			print_set(out, r->topo, t->name, &t->set, r->mem[i]);
	}
	if (!r->only && !gpupart_tpcset_empty(&left))
		print_set(out, r->topo, "left over", &left, 0);
	return 0;
}

/* --------------------------------------------------------------------- env */

/*
 * Prints a shell command that exports a variable. Puts @value in single quotes, because @value may
 * contain special characters.
 */
static void print_variable(struct out *out, const char *name, const char *value)
{
	fprintf(out->file, "export %s='", name);
	for (; *value; value++)
		if (*value == '\'')
			fputs("'\\''", out->file);
		else
			fputc(*value, out->file);
	fputs("'\n", out->file);
}

/*
 * Prints the variables that 'gpupart run' would set. With these variables, the next program of the
 * shell is confined. Also unsets GPUPART_JOB. Otherwise the set of the shell's own job would apply.
 */
static int write_one(struct out *out, const struct result *r, const struct gpupart_plan_tenant *t)
{
	char list[GPUPART_TPCSET_STRLEN], path[PATH_MAX];
	int err = paths_package(PATHS_INJECT, path, sizeof(path));

	/*
	 * If a tenant has a quota, 'gpupart run' also prepares files. Variables cannot replace
	 * these files.
	 */
	if (r->mem[t - r->plan->tenants])
		return usage_error(
			"--of env --only %s: shell variables cannot set the tenant's mem=: use 'gpupart run --plan'",
			t->name);
	if (r->rules[t - r->plan->tenants].nr)
		return usage_error(
			"--of env --only %s: shell variables cannot set the tenant's rules: use 'gpupart run --plan'",
			t->name);
	if (err)
		return failure("%s is not installed: %s", PATHS_INJECT, strerror(-err));
	gpupart_tpcset_format_list(&t->set, list, sizeof(list));
	fputs("unset GPUPART_JOB\n", out->file);
	print_variable(out, "GPUPART_SET", list);
	if (*r->gpu)
		print_variable(out, "GPUPART_GPU", r->gpu);
	print_variable(out, "GPUPART_NAME", t->name);
	if (*r->key) {
		print_variable(out, "GPUPART_CHECKED", r->key);
		print_variable(out, "CUDA_INJECTION64_PATH", path);
	}
	return 0;
}

/* Converts the name of a tenant, such as "llm.1", so that a variable's name can contain it. */
static void variable_part(const char *name, char *part)
{
	for (; *name; name++)
		*part++ = isalnum((unsigned char)*name) ? *name : '_';
	*part = 0;
}

static int write_env(struct out *out, const struct result *r)
{
	char list[GPUPART_TPCSET_STRLEN], part[64], other[64];

	for (unsigned int i = 0; i < r->plan->nr_tenants; i++) {
		const struct gpupart_plan_tenant *t = &r->plan->tenants[i];

		if (r->only && is_shown(r, i))
			return write_one(out, r, t);
		variable_part(t->name, part);
		for (unsigned int j = 0; j < i && !r->only; j++) {
			variable_part(r->plan->tenants[j].name, other);
			if (!strcmp(part, other))
				return usage_error(
					"--of env: %s and %s would both set the variable SET_%s: choose one of them with --only",
					r->plan->tenants[j].name, t->name, part);
		}
	}
	if (*r->gpu)
		fprintf(out->file, "GPU='%s'\n", r->gpu);
	for (unsigned int i = 0; i < r->plan->nr_tenants; i++) {
		variable_part(r->plan->tenants[i].name, part);
		gpupart_tpcset_format_list(&r->plan->tenants[i].set, list, sizeof(list));
		fprintf(out->file, "SET_%s='%s'\n", part, list);
	}
	return 0;
}

/* ----------------------------------------------------------------- command */

static int write_json(struct out *out, const struct result *r)
{
	json_t *root = plan_file_json(r->topo, r->plan, &r->within, r->limit,
				      r->mem, r->rules, r->args->simulated),
	       *tenants;

	tenants = json_object_get(root, "tenants");
	for (unsigned int i = r->plan->nr_tenants; i-- > 0;)
		if (!is_shown(r, i))
			json_array_remove(tenants, i);
	out_json_write(out, root);
	return 0;
}

/* ---------------------------------------------------------------- pictures */

static int draw(struct out *out, const struct result *r)
{
	struct picture_tenant tenants[GPUPART_PLAN_MAX_TENANTS];
	struct picture picture = { .topo = r->topo, .tenants = tenants };

	for (unsigned int i = 0; i < r->plan->nr_tenants; i++)
		if (is_shown(r, i))
			tenants[picture.nr_tenants++] = (struct picture_tenant){
				r->plan->tenants[i].name, r->plan->tenants[i].set,
			};
	if (r->svg)
		picture_svg(out, &picture);
	else
		picture_text(out, &picture);
	return 0;
}

/* The output formats. The function write() returns 0 or an error. */
static const struct form {
	const char *name;
	int (*write)(struct out *out, const struct result *r);
} forms[] = {
	{ "text", write_text }, { "picture", draw }, { "svg", draw }, { "env", write_env },
};

static const struct form *find_form(const char *name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strcmp(forms[i].name, name))
			return &forms[i];
	return NULL;
}

static int show(const struct result *r, const struct form *form)
{
	struct out out;
	int status = out_open(&out, r->args), bad;

	if (status)
		return status;
	bad = form ? form->write(&out, r) : write_json(&out, r);
	status = out_close(&out);
	return bad ?: status;
}

static int read_demands(const struct wishes *wishes, struct demands *demands)
{
	int status = wishes->file ? demands_read(demands, wishes->file) : 0;

	for (unsigned int i = 0; i < wishes->tenants.nr && !status; i++)
		status = demands_add(demands, wishes->tenants.texts[i]);
	if (!status && !demands->nr)
		status = usage_error("no tenants: use --tenant or -f");
	if (status || !wishes->only)
		return status;
	for (unsigned int i = 0; i < demands->nr; i++)
		if (!strcmp(demands->list[i].name, wishes->only))
			return 0;
	return usage_error("--only %s: no such tenant", wishes->only);
}

static bool is_live(const char *source)
{
	return !source || paths_is_live(source);
}

/* Returns whether the plan is for a GPU of this machine, real or simulated. */
static bool is_here(const struct args *args)
{
	return args->simulated || is_live(args->source);
}

/*
 * Finds the TPCs that the plan may use. A plan for a capture uses all TPCs of the GPU. A plan for
 * this machine uses the limit of the outer run. With --beside, the plan does not use the TPCs of
 * other programs. Returns 0 or an error.
 */
static int find_room(const struct wishes *wishes, struct result *r, struct gpupart_tpcset *limit)
{
	struct gpupart_tpcset others;
	int status = 0;

	r->within = gpupart_topology_all(r->topo);
	if (is_here(r->args))
		status = run_outer_limit(r->args, r->topo, r->gpu, limit, &r->limit);
	if (status)
		return status;
	if (r->limit)
		r->within = *r->limit;
	if (wishes->beside) {
		others = neighbours_tpcs(r->args, r->topo, r->gpu, r->limit);
		r->within = gpupart_tpcset_andnot(&r->within, &others);
	}
	return 0;
}

static int not_met(const struct result *r, int err)
{
	char text[OUT_SET_STRLEN];

	if (!r->limit || err != -ENOSPC)
		return error_of(err, "%s", gpupart_error(cmd_gp));
	return error_of(err, "%s; this process has the limit %s (GPUPART_SET)",
			gpupart_error(cmd_gp), out_set(text, sizeof(text), r->topo, r->limit));
}

static void note_clusters(const struct result *r)
{
	struct gpupart_tpcset left = r->within;
	char whose[96];

	for (unsigned int i = 0; i < r->plan->nr_tenants; i++)
		left = gpupart_tpcset_andnot(&left, &r->plan->tenants[i].set);
	for (unsigned int i = 0; i < r->plan->nr_tenants; i++) {
		snprintf(whose, sizeof(whose), "tenant %s: ", r->plan->tenants[i].name);
		if (is_shown(r, i))
			clusters_note(whose, r->topo, &r->plan->tenants[i].set, &left);
	}
}

/*
 * Checks that the quotas fit in the GPU's memory. A capture does not contain the size of the
 * memory. Returns 0 or an error.
 */
static int check_memory(const struct args *args, const char *gpu, const struct demands *demands)
{
	uint64_t memory = 0;
	bool asked = !is_here(args);
	int status = 0;

	for (unsigned int i = 0; i < demands->nr && !status; i++) {
		if (!demands->mem[i])
			continue;
		if (!asked)
			memory = cuda_memory(gpu, args->simulated);
		asked = true;
		if (memory)
			status = tenants_check_size(gpu, memory, demands->mem[i]);
	}
	return status;
}

/* Makes and writes the plan for @topo. Returns 0 or an error. */
static int plan(const struct args *args, const struct wishes *wishes,
		const struct gpupart_topology *topo, const struct demands *demands)
{
	const char *pci = gpupart_topology_info(topo)->pci;
	struct result r = { .args = args, .topo = topo, .only = wishes->only,
			    .gpu = args->simulated && args->gpu ? args->gpu : pci };
	const struct form *form = find_form(wishes->form ? wishes->form : "text");
	struct gpupart_tpcset limit;
	struct gpupart_plan made;
	struct check check = { 0 };
	int err, status;

	status = check_memory(args, r.gpu, demands) ?: find_room(wishes, &r, &limit);
	if (status)
		return status;
	err = gpupart_plan_make(cmd_gp, topo, &r.within, demands->list, demands->nr, &made);
	if (err)
		return not_met(&r, err);
	r.plan = &made;
	r.svg = !strcmp(form->name, "svg");
	r.mem = demands->mem;
	r.rules = demands->rules;
	if (form->write == write_env && r.only && (args->simulated || !args->source))
		status = check_in_child(r.gpu, &check);
	if (status)
		return status;
	strcpy(r.key, check.key);
	if (args->simulated && !args->json && form->write != write_text)
		remark("a plan for %s, simulated", *r.gpu ? r.gpu : args->source);
	note_clusters(&r);
	return show(&r, args->json ? NULL : form);
}

/* Rejects options that exclude each other. Returns 0 or an error. */
static int check_wishes(const struct args *args, const struct wishes *wishes)
{
	const char *limit = getenv("GPUPART_SET");
	bool env = wishes->form && !strcmp(wishes->form, "env");

	if (wishes->form && !find_form(wishes->form))
		return usage_error("--of %s: must be text, picture, svg or env", wishes->form);
	if (wishes->form && args->json)
		return usage_error("--json and --of %s: use only one of them", wishes->form);
	if (wishes->beside && !is_live(args->source))
		return usage_error("--beside cannot be used with %s%s: nothing runs on a capture",
				   args_source_from(args), args->source);
	if (env && wishes->only && !is_live(args->source) && limit && *limit)
		return usage_error(
			"--of env and %s%s: this process has the limit %.100s (GPUPART_SET), and a set of another GPU cannot replace this limit",
			args_source_from(args), args->source, limit);
	return 0;
}

int cmd_plan(int argc, char **argv)
{
	struct wishes wishes = { 0 };
	const struct args_option own[] = { { .name = "file", .letter = 'f', .value = &wishes.file },
					   { .name = "tenant", .values = &wishes.tenants },
					   { .name = "of", .value = &wishes.form },
					   { .name = "only", .value = &wishes.only },
					   { .name = "beside", .given = &wishes.beside }, { 0 } };
	static struct demands demands;
	struct gpupart_topology *topo;
	struct args args = { 0 };
	int status;

	status = args_parse(&args, ARGS_SOURCE | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, own, plan_help,
			    argc, argv);
	if (status)
		return status;
	if (!wishes.form && !args.json && out_is_svg(args.output))
		wishes.form = "svg";
	status = args_input(&args) ?: check_wishes(&args, &wishes) ?:
		 read_demands(&wishes, &demands);
	if (!status && is_live(args.source))
		run_inherit_gpu(&args);
	if (!status && !args.source)
		status = args_simulate(&args);
	if (status)
		return status;
	status = args_topology(&args, &topo);
	if (!status) {
		status = plan(&args, &wishes, topo, &demands);
		gpupart_topology_close(topo);
	}
	return status;
}
