// SPDX-License-Identifier: MIT
/* gpupart topology: shows what a source knows of a GPU. Must not know the sources. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "cmd.h"
#include "out.h"

const char topology_help[] =
"Usage: gpupart topology [-i SOURCE] [--gpu GPU] [--json | --of FORM] [-o FILE]\n"
"Shows a GPU's uGPUs, GPCs, virtual GPCs, TPCs and SMs.\n"
"\n"
"  -i, --input SOURCE  kernel (the module), rm (NVIDIA's driver), sample:NAME (a\n"
"                      capture that ships) or a capture's path; without it the\n"
"                      first of kernel and rm that answers\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID; without it\n"
"                      the first, or the one CUDA_VISIBLE_DEVICES leaves\n"
"      --json          as JSON, schema gpupart/1\n"
"      --of FORM       text (the default) or capture, which -i reads again\n"
"  -o, --output FILE   write there\n"
"\n"
"Examples:\n"
"  gpupart topology\n"
"  gpupart topology -i sample:h200\n"
"  gpupart topology --json | jq '.gpcs[] | {gpc, tpcs}'\n"
"  gpupart topology --of capture -o my-gpu.capture\n";

/* Where both live sources answer and differ, says so: one of them is wrong. */
static void compare_sources(const struct args *args, struct gpupart *gp,
			    const struct gpupart_topology *topo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	const char *other = !strcmp(info->source, "kernel") ? "rm" : "kernel";
	struct gpupart_topology *second;

	if (args->source || !*info->pci || gpupart_topology_open(gp, other, info->pci, &second))
		return;
	if (!gpupart_topology_agree(topo, second))
		cmd_note(args->cmd, "%s and %s disagree about %s: see 'gpupart topology -i %s'",
			 info->source, other, info->pci, other);
	gpupart_topology_close(second);
}

static int show(const struct args *args, const char *form, struct gpupart *gp,
		const struct gpupart_topology *topo)
{
	struct out out;
	char *capture = NULL;
	json_t *root;
	int status, err;

	if (!strcmp(form, "capture")) {
		err = gpupart_topology_capture(gp, topo, NULL, &capture);
		if (err)
			return cmd_fail(args->cmd, cmd_status(err), "%s", gpupart_error(gp));
	}
	status = out_open(&out, args);
	if (status >= 0) {
		free(capture);
		return status;
	}
	if (capture) {
		fputs(capture, out.file);
	} else if (args->json) {
		root = out_json_new("topology", gpupart_topology_info(topo)->simulated);
		out_json_topology(root, topo);
		out_json_write(&out, root);
	} else {
		out_topology_text(&out, topo);
	}
	free(capture);
	return out_close(&out, args->cmd);
}

int cmd_topology(int argc, char **argv)
{
	const char *form = NULL;
	const struct args_option own[] = { { .name = "of", .value = &form }, { 0 } };
	struct gpupart_topology *topo;
	struct args args = { 0 };
	struct gpupart *gp;
	int status;

	status = args_parse(&args, ARGS_SOURCE | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, own,
			    topology_help, argc, argv);
	if (status >= 0)
		return status;
	if (form && strcmp(form, "text") && strcmp(form, "capture"))
		return cmd_fail(args.cmd, EXIT_USAGE, "--of %s: wants text or capture", form);
	if (form && args.json)
		return cmd_fail(args.cmd, EXIT_USAGE, "--json and --of %s: take one", form);
	if (gpupart_open(&gp))
		return cmd_fail(args.cmd, EXIT_FAILED, "no memory");
	status = args_topology(&args, gp, &topo);
	if (status < 0) {
		compare_sources(&args, gp, topo);
		status = show(&args, form ? form : "text", gp, topo);
		gpupart_topology_close(topo);
	}
	gpupart_close(gp);
	return status;
}
