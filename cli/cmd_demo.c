// SPDX-License-Identifier: MIT
/*
 * gpupart demo: makes launches in sets, on a real or a simulated GPU. Shows which TPCs ran the
 * launches.
 */
#include <string.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/draw/topology.h"
#include "cli/target/args.h"
#include "cli/util/out.h"

#define SAMPLE "sample:h200"

const char demo_help[] =
"Usage: gpupart demo [-i CAPTURE] [--gpu GPU] [--json] [-o FILE]\n"
"Shows in a minute what gpupart does: a picture of the GPU, a set of whole GPCs, where\n"
"a launch runs without and with the set, and one launch in each GPC. Uses the GPU if\n"
"there is one, otherwise the simulated GPU of " SAMPLE ".\n"
"\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write FILE instead of stdout; FILE.json: as with --json\n"
"\n"
"Exit status: 0 every launch stayed inside its set, 1 a launch did not, 2 not\n"
"supported here.\n"
"\n"
"Examples:\n"
"  gpupart demo\n"
"  gpupart demo -i sample:h200-e\n";

struct demo {
	struct gpupart_gpu *gpu;
	const struct gpupart_topology *topo;
	struct out out;
	unsigned int nr_launches, nr_exact;
	/* TPCs that ran blocks, inside and outside of the sets */
	struct gpupart_tpcset inside, outside;
	json_t *launches;	/* for JSON; NULL for text */
};

/*
 * Makes one launch inside @set. If @set is NULL, uses all TPCs. Prints the launch with the label
 * @label, and counts the launch.
 */
static int launch(struct demo *demo, const struct gpupart_tpcset *set, const char *label)
{
	struct gpupart_tpcset part, seen_tpcs, *seen = &seen_tpcs;
	int err;

	err = gpupart_process_set(cmd_gp, demo->gpu, set) ?:
	      gpupart_census(cmd_gp, demo->gpu, NULL, seen);
	if (err)
		return err;
	if (demo->launches)
		json_array_append_new(demo->launches, json_pack("{s:s, s:o, s:o}",
			"label", label,
			"set", set ? out_json_set(demo->topo, set) : json_null(),
			"seen", out_json_set(demo->topo, seen)));
	else
		topology_strip(&demo->out, demo->topo, label, seen);
	if (!set)
		return 0;
	demo->nr_launches++;
	demo->nr_exact += gpupart_tpcset_equal(seen, set);
	part = gpupart_tpcset_and(seen, set);
	demo->inside = gpupart_tpcset_or(&demo->inside, &part);
	part = gpupart_tpcset_andnot(seen, set);
	demo->outside = gpupart_tpcset_or(&demo->outside, &part);
	return 0;
}

/*
 * Chooses the set to show. If the GPU has several uGPUs, this set is the first uGPU. Otherwise
 * it is the first GPC.
 */
static struct gpupart_tpcset choose(const struct gpupart_topology *topo, char *words, size_t len)
{
	if (gpupart_topology_nr_ugpus(topo) > 1) {
		snprintf(words, len, "-u 0");
		return gpupart_topology_ugpu(topo, 0);
	}
	snprintf(words, len, "-g 0");
	return gpupart_topology_nr_gpcs(topo) ? gpupart_topology_gpc(topo, 0)->tpcs :
	       gpupart_topology_all(topo);
}

static void show_set(struct demo *demo, const char *words, const struct gpupart_tpcset *set)
{
	char text[OUT_SET_STRLEN], *whole;

	fprintf(demo->out.file, "A set of whole GPCs, as 'gpupart run %s' makes it:\n", words);
	out_set(text, sizeof(text), demo->topo, set);
	/* Print the GPCs on a separate line, so that the list of GPCs is not wrapped. */
	whole = strstr(text, " (GPC ");
	if (whole)
		*whole++ = 0;
	out_wrap(&demo->out, 2, "TPCs", text);
	if (whole)
		fprintf(demo->out.file, "  %s\n", whole);
	fputs("\nWhere a launch ran. Each character is one TPC; groups are GPCs:\n",
	      demo->out.file);
}

static int show(struct demo *demo)
{
	const struct gpupart_topology *topo = demo->topo;
	struct gpupart_tpcset set;
	char words[16], label[16];
	int err;

	set = choose(topo, words, sizeof(words));
	if (!demo->launches)
		show_set(demo, words, &set);
	err = launch(demo, NULL, "all") ?: launch(demo, &set, words);
	if (!demo->launches && !err)
		fputs("\nOne launch in each GPC:\n", demo->out.file);
	for (unsigned int gpc = 0; !err && gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		snprintf(label, sizeof(label), "GPC %u", gpc);
		err = launch(demo, &gpupart_topology_gpc(topo, gpc)->tpcs, label);
	}
	return err ? err : gpupart_process_set(cmd_gp, demo->gpu, NULL);
}

static void write_json(struct demo *demo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(demo->topo);
	bool good = gpupart_tpcset_empty(&demo->outside) && demo->nr_exact == demo->nr_launches;
	json_t *root = out_json_new("demo", info->simulated);

	json_object_update_new(root, json_pack("{s:o, s:O, s:i, s:i, s:o, s:o, s:b}",
		"gpu", out_json_gpu(info), "launches", demo->launches,
		"nr_confined", demo->nr_launches, "nr_exact", demo->nr_exact,
		"seen_inside", out_json_set(demo->topo, &demo->inside),
		"seen_outside", out_json_set(demo->topo, &demo->outside), "good", good));
	out_json_write(&demo->out, root);
}

static int demonstrate(const struct args *args, struct demo *demo)
{
	char text[OUT_SET_STRLEN];
	struct gpupart_tpcset limit;
	const char *simulated;
	unsigned int nr_outside;
	int status, err;

	demo->topo = gpupart_gpu_topology(demo->gpu);
	if (gpupart_limit_get(demo->gpu, &limit))
		return usage_error(
			"the limit %s (GPUPART_SET) applies to this process: start gpupart outside the run",
			out_set(text, sizeof(text), demo->topo, &limit));
	simulated = gpupart_topology_info(demo->topo)->simulated ? " (simulated)" : "";
	status = out_open(&demo->out, args);
	if (status)
		return status;
	if (args->json) {
		demo->launches = json_array();
	} else {
		out_gpu_text(&demo->out, demo->topo);
		topology_picture(&demo->out, demo->topo);
		fputc('\n', demo->out.file);
	}
	err = show(demo);
	if (err) {
		json_decref(demo->launches);
		out_close(&demo->out);
		return error_of(err, "%s", gpupart_error(cmd_gp));
	}
	nr_outside = gpupart_tpcset_count(&demo->outside);
	if (demo->launches)
		write_json(demo);
	else
		fprintf(demo->out.file,
			"\n%sproof%s%s: %u of %u confined launches ran on exactly their set:\n"
			"  %u TPCs seen inside, %u outside\n",
			demo->out.bold, demo->out.plain, simulated, demo->nr_exact,
			demo->nr_launches, gpupart_tpcset_count(&demo->inside), nr_outside);
	json_decref(demo->launches);
	status = out_close(&demo->out);
	return nr_outside || demo->nr_exact != demo->nr_launches ? EXIT_FAILED : status;
}

int cmd_demo(int argc, char **argv)
{
	struct args args = { 0 };
	struct demo demo = { 0 };
	const char *gpu;
	int status, err, nr;

	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, NULL,
			    demo_help, argc, argv);
	if (status)
		return status;
	status = args_simulate(&args);
	if (!status && !args.simulated && !args.gpu) {
		nr = gpupart_gpu_list(cmd_gp, NULL, NULL, 0, sizeof(struct gpupart_gpu_info));
		if (nr <= 0) {
			remark("there is no usable GPU (%s): using the simulated GPU",
			       access("/dev/nvidiactl", F_OK) ? "/dev/nvidiactl does not exist" :
			       nr			      ? gpupart_error(cmd_gp) :
								"none found");
			args.source = SAMPLE;
			status = args_simulate(&args);
		}
	}
	if (!status)
		status = args_gpu(&args, &gpu);
	if (!status) {
		err = gpupart_attach(cmd_gp, gpu, NULL, &demo.gpu);
		status = err ? error_of(err, "%s", gpupart_error(cmd_gp)) :
			       demonstrate(&args, &demo);
	}
	return status;
}
