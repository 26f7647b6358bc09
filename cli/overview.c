// SPDX-License-Identifier: MIT
/*
 * Prints an overview if the user runs gpupart without a command. The overview has at most 12 lines,
 * with the GPUs, the programs and the next steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/overview.h"
#include "cli/target/args.h"
#include "cli/target/settings.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/out.h"

#define MAX_GPUS 3		/* maximum number of lines for GPUs */

/* Prints a line about a GPU. Returns whether the GPU can be used. */
static bool print_gpu(struct out *out, const char *source, const char *gpu)
{
	struct gpupart_topology *topo;
	const struct gpupart_gpu_info *info;

	if (gpupart_topology_open(cmd_gp, source, gpu, &topo)) {
		fprintf(out->file, "GPU%s%s: %s\n", gpu ? " " : "", gpu ? gpu : "",
			gpupart_error(cmd_gp));
		return false;
	}
	info = gpupart_topology_info(topo);
	fprintf(out->file, "GPU %s%s%s, %u TPCs in %u GPCs%s%s\n", gpu ? gpu : "", gpu ? ": " : "",
		*info->name ? info->name : "name not known",
		gpupart_topology_nr_tpcs(topo), gpupart_topology_nr_gpcs(topo),
		*info->driver && gpu ? ", driver " : "", gpu ? info->driver : "");
	gpupart_topology_close(topo);
	return true;
}

/* Prints the GPUs. If there is no GPU, prints the reason. Returns whether the machine has a GPU. */
static bool print_gpus(struct out *out)
{
	struct gpupart_gpu_info *list = alloc_zeroed(MAX_GPUS, sizeof(*list));
	int nr = gpupart_gpu_list(cmd_gp, NULL, list, MAX_GPUS, sizeof(*list));

	if (nr <= 0)
		fprintf(out->file, "no usable GPU: %s\n",
			access("/dev/nvidiactl", F_OK) ?
				"no NVIDIA driver: /dev/nvidiactl does not exist" :
				nr ? gpupart_error(cmd_gp) : "none found");
	for (int i = 0; i < nr && i < MAX_GPUS; i++)
		print_gpu(out, NULL, list[i].pci);
	if (nr > MAX_GPUS)
		fprintf(out->file, "and %d more GPUs\n", nr - MAX_GPUS);
	free(list);
	return nr > 0;
}

static void print_running(struct out *out)
{
	struct gpupart_process *list;
	int nr = shown_processes(cmd_gp, &list);

	if (nr > 0)
		fprintf(out->file, "%d program%s of %s run%s confined: see 'gpupart ps'\n", nr,
			nr == 1 ? "" : "s", geteuid() ? "yours" : "all users", nr == 1 ? "s" : "");
	else
		fputs("no program runs confined\n", out->file);
	free(list);
}

int overview(void)
{
	const char *sim = getenv("GPUPART_SIM");
	struct args args = { .lenient = true };
	struct out out;
	bool found;

	args_input(&args);
	settings_note();
	out_open(&out, NULL);
	fprintf(out.file, "gpupart %s: TPC partitions of NVIDIA GPUs\n", gpupart_version());
	if (sim && *sim) {
		args.source = alloc_part(sim, ':', 0);
		args.source_from = "GPUPART_SIM=";
	}
	found = args.source != NULL;
	if (found) {
		fprintf(out.file, "%s%s replaces this machine's GPU\n",
			args_source_from(&args), args.source);
		found = print_gpu(&out, args.source, NULL);
	} else {
		found = print_gpus(&out);
	}
	print_running(&out);
	fputs("\nNext:\n"
	      "  gpupart doctor                   show what works on this machine, and what to do\n",
	      out.file);
	fputs(found ? "  gpupart topology                 show the GPU's GPCs, TPCs and SMs\n"
		      "  gpupart run -n 8 -- PROGRAM      run a program on 8 TPCs\n"
		    : "  gpupart demo -i sample:h200      see it work on a simulated GPU\n"
		      "  export GPUPART_INPUT=sample:h200     use the simulated GPU in all commands\n",
	      out.file);
	fputs("  gpupart --help                   list all commands\n", out.file);
	return out_close(&out);
}
