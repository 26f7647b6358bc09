// SPDX-License-Identifier: MIT
/* gpupart ps --engines: samples of a GPU's runlists, as a table or as JSON. */
#include <stdlib.h>
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/target/engines.h"
#include "cli/util/alloc.h"
#include "cli/util/out.h"
#include "lib/private.h"

static double share(const struct gpupart_engine_use *use, unsigned int samples)
{
	return use->samples ? (double)samples / use->samples : 0;
}

static bool did_nothing(const struct gpupart_engine_use *use)
{
	return use->idle == use->samples;
}

static void print_engine(struct out *out, const struct gpupart_engine_use *use)
{
	char what[64];

	snprintf(what, sizeof(what), "%.44s %u", *use->name ? use->name : "?", use->instance);
	fprintf(out->file, "%-36s 0x%06x %7u %6.1f%% %8.1f%%", what, use->runlist, use->samples,
		100 * share(use, use->idle), 100 * share(use, use->switching));
	for (unsigned int i = 0; i < use->nr_tsgs; i++)
		fprintf(out->file, "%s%*s %5u %6.1f%%  ?", i ? "\n" : "", i ? 71 : 0, "",
			use->tsgs[i].tsg, 100 * share(use, use->tsgs[i].samples));
	fputc('\n', out->file);
}

static void print_table(struct out *out, const struct gpupart_gpu_info *info, double seconds,
			const struct gpupart_engine_use *list, int nr)
{
	unsigned int idle = 0;

	if (info->simulated)
		fprintf(out->file, "registers of %s (simulated)\n", info->source);
	else
		fprintf(out->file, "%s, %.1f s, read by %s\n", info->pci, seconds,
			!strcmp(info->source, "kernel") ? "the module gpupart" :
							  "NVIDIA's driver");
	fprintf(out->file, "%s%-36s %8s %7s %7s %9s %5s %7s  OWNER%s\n", out->bold, "ENGINE",
		"RUNLIST", "SAMPLES", "IDLE", "SWITCHING", "TSG", "SHARE", out->plain);
	for (int i = 0; i < nr; i++)
		if (did_nothing(&list[i]))
			idle++;
		else
			print_engine(out, &list[i]);
	if (idle)
		fprintf(out->file, "%u of %d engines were idle in every sample\n", idle, nr);
}

static json_t *json_engine(const struct gpupart_engine_use *use)
{
	json_t *tsgs = json_array();

	for (unsigned int i = 0; i < use->nr_tsgs; i++)
		json_array_append_new(tsgs, json_pack("{s:i, s:f, s:i, s:o, s:o}",
				      "tsg", use->tsgs[i].tsg,
				      "share", share(use, use->tsgs[i].samples),
				      "samples", use->tsgs[i].samples,
				      "channel", out_json_index(use->tsgs[i].channel),
				      "owner", json_null()));
	return json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:o}",
			 "name", out_json_text(use->name), "type", use->type,
			 "instance", use->instance, "runlist", use->runlist,
			 "runlist_id", use->id, "samples", use->samples,
			 "idle", share(use, use->idle), "switching", share(use, use->switching),
			 "other_tsgs", share(use, use->others), "tsgs", tsgs);
}

static void print_json(struct out *out, const struct gpupart_gpu_info *info, double seconds,
		       const struct gpupart_engine_use *list, int nr)
{
	json_t *root = out_json_new("ps", info->simulated), *engines = json_array();

	for (int i = 0; i < nr; i++)
		json_array_append_new(engines, json_engine(&list[i]));
	json_object_set_new(root, "gpu", out_json_text(info->pci));
	json_object_set_new(root, "source", out_json_text(info->source));
	json_object_set_new(root, "seconds", info->simulated ? json_null() : json_real(seconds));
	json_object_set_new(root, "engines", engines);
	out_json_write(out, root);
}

int engines_show(struct args *args, double seconds)
{
	struct gpupart_engine_use *list = alloc_zeroed(GPUPART_MAX_ENGINES, sizeof(*list));
	struct gpupart_gpu_info info;
	struct out out;
	int nr = gpupart_engine_uses(cmd_gp, args->gpu, args->source, seconds, &info, list);
	int status = nr < 0 ? failure("%s", gpupart_error(cmd_gp)) : out_open(&out, args);

	if (!status) {
		(args->json ? print_json : print_table)(&out, &info, seconds, list, nr);
		status = out_close(&out);
	}
	free(list);
	return status;
}
