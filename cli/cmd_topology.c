// SPDX-License-Identifier: MIT
/* gpupart topology: prints the topology of a GPU as text, picture, JSON or capture. */
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/draw/picture.h"
#include "cli/draw/topology.h"
#include "cli/target/args.h"
#include "cli/util/out.h"

const char topology_help[] =
"Usage: gpupart topology [-i SOURCE] [--gpu GPU] [--json | --of FORM] [-o FILE]\n"
"                        [--mark [NAME=]SET]...\n"
"Shows a GPU's uGPUs, GPCs, virtual GPCs, TPCs and SMs.\n"
"\n"
"  -i, --input SOURCE  kernel (the module), rm (NVIDIA's driver), sample:NAME (a\n"
"                      capture that ships with gpupart) or a capture's path; the\n"
"                      default is the first of kernel and rm that works\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID; the default is\n"
"                      the first GPU that CUDA_VISIBLE_DEVICES allows\n"
"      --json          print JSON, schema gpupart/1\n"
"      --of FORM       text (the default); picture, for a terminal: one box for each\n"
"                      TPC, floorswept ones hatched; svg, the same as a drawing; or\n"
"                      capture, which -i can read\n"
"      --mark SET      mark the TPCs of SET in a picture; with several marks also show\n"
"                      to which marks a TPC belongs. SET is 0-7,16 or gpc:0,1 or\n"
"                      ugpu:0 or hex:f0, or several joined by +; a name may precede\n"
"                      SET: web=gpc:0,1\n"
"  -o, --output FILE   write FILE; FILE.svg: as with --of svg, FILE.json: with --json\n"
"\n"
"Examples:\n"
"  gpupart topology\n"
"  gpupart topology -i sample:h200\n"
"  gpupart topology --json | jq '.gpcs[] | {gpc, tpcs}'\n"
"  gpupart topology --of capture -o my-gpu.capture\n"
"  gpupart topology --of svg --mark serve=ugpu:0 --mark train=gpc:2,3 -o gpu.svg\n";

/*
 * Compares the topologies of the two live sources. If the topologies differ, prints a warning,
 * because one source is wrong.
 */
static void compare_sources(const struct args *args, const struct gpupart_topology *topo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	const char *other = !strcmp(info->source, "kernel") ? "rm" : "kernel";
	struct gpupart_topology *second;

	if (args->source || !*info->pci || gpupart_topology_open(cmd_gp, other, info->pci, &second))
		return;
	if (!gpupart_topology_agree(topo, second))
		remark("%s and %s disagree about %s: see 'gpupart topology -i %s'", info->source,
		       other, info->pci, other);
	gpupart_topology_close(second);
}

/* Prints the topology in any form except a capture. */
static void draw(const struct args *args, const char *form, struct out *out,
		 const struct picture *picture)
{
	json_t *root;

	if (args->json) {
		root = out_json_new("topology", gpupart_topology_info(picture->topo)->simulated);
		topology_json(root, picture->topo);
		out_json_write(out, root);
	} else if (!strcmp(form, "svg")) {
		picture_svg(out, picture);
	} else if (!strcmp(form, "picture")) {
		picture_text(out, picture);
	} else {
		topology_text(out, picture->topo);
	}
}

static int show(const struct args *args, const char *form, const struct picture *picture)
{
	struct out out;
	char *capture = NULL;
	int status, err;

	if (!strcmp(form, "capture")) {
		err = gpupart_topology_capture(cmd_gp, picture->topo, NULL, &capture);
		if (err)
			return error_of(err, "%s", gpupart_error(cmd_gp));
	}
	status = out_open(&out, args);
	if (!status && capture)
		fputs(capture, out.file);
	else if (!status)
		draw(args, form, &out, picture);
	free(capture);
	return status ?: out_close(&out);
}

/* Reads --mark [NAME=]SET. Returns 0 or an error. */
static int take_mark(const struct gpupart_topology *topo, const char *value,
		     struct picture_tenant *tenant)
{
	const char *words = strrchr(value, '=');
	int err;

	if (!*value || *value == '=')
		return usage_error("--mark '%s': the name is empty: must be [NAME=]SET", value);
	words = words ? words + 1 : value;
	/* If NAME is absent, use the text of SET as the name. */
	tenant->name = alloc_text("%.*s", words == value ? (int)strlen(value) :
				  (int)(words - 1 - value), value);
	err = gpupart_set_parse(cmd_gp, topo, words, &tenant->set);
	if (err)
		return error_of(err, "--mark %s: %s", value, gpupart_error(cmd_gp));
	return 0;
}

/* Prints the topology with its marks. Returns 0 or an error. */
static int show_marked(const struct args *args, const char *form,
		       const struct gpupart_topology *topo, const struct args_texts *marks)
{
	struct picture_tenant *tenants = alloc_zeroed(marks->nr + 1, sizeof(*tenants));
	struct picture picture = { .topo = topo, .tenants = tenants };
	int status = 0;

	while (!status && picture.nr_tenants < marks->nr) {
		status = take_mark(topo, marks->texts[picture.nr_tenants],
				   &tenants[picture.nr_tenants]);
		for (unsigned int i = 0; !status && i < picture.nr_tenants; i++)
			if (!strcmp(tenants[i].name, tenants[picture.nr_tenants].name))
				status = usage_error("--mark %s: the name '%s' is used twice",
						     marks->texts[picture.nr_tenants],
						     tenants[i].name);
		picture.nr_tenants++;
	}
	if (!status)
		status = show(args, form, &picture);
	for (unsigned int i = 0; i < picture.nr_tenants; i++)
		free((char *)tenants[i].name);
	free(tenants);
	return status;
}

/* Rejects options that exclude each other. Returns 0 or an error. */
static int check_form(const struct args *args, const char *form, const struct args_texts *marks)
{
	static const char *const forms[] = { "text", "picture", "svg", "capture" };
	bool known = !form;

	for (size_t i = 0; form && i < sizeof(forms) / sizeof(forms[0]); i++)
		known |= !strcmp(form, forms[i]);
	if (!known)
		return usage_error("--of %s: must be text, picture, svg or capture", form);
	if (form && args->json)
		return usage_error("--json and --of %s: use only one of them", form);
	if (marks->nr && (args->json || (form && strcmp(form, "svg") && strcmp(form, "picture"))))
		return usage_error("--mark %s: needs --of picture or --of svg",
				   marks->texts[0]);
	return 0;
}

int cmd_topology(int argc, char **argv)
{
	const char *form = NULL;
	struct args_texts marks = { 0 };
	const struct args_option own[] = {
		{ .name = "of", .value = &form }, { .name = "mark", .values = &marks }, { 0 },
	};
	struct gpupart_topology *topo;
	struct args args = { 0 };
	int status;

	status = args_parse(&args, ARGS_SOURCE | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, own,
			    topology_help, argc, argv);
	if (!status && !form && !args.json && out_is_svg(args.output))
		form = "svg";
	if (!status)
		status = check_form(&args, form, &marks);
	if (status)
		return status;
	if (!form)
		form = marks.nr ? "picture" : "text";
	status = args_topology(&args, &topo);
	if (!status) {
		compare_sources(&args, topo);
		status = show_marked(&args, form, topo, &marks);
		gpupart_topology_close(topo);
	}
	return status;
}
