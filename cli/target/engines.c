// SPDX-License-Identifier: MIT
/* gpupart ps --engines: prints samples of a GPU's runlists as a table or as JSON. */
#include <stdlib.h>
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/target/engines.h"
#include "cli/util/alloc.h"
#include "cli/util/child.h"
#include "cli/util/out.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define OWNER_SECONDS 5
#define TYPE_GRAPHICS 0

/* The samples of the runlists. */
struct view {
	struct gpupart_gpu_info info;
	struct gpupart_engine_use *list;
	int nr, owner;		/* the owner of the TSGs on the graphics engine; 0: the owner is
				 * unknown */
	double seconds;
};

static double share(const struct gpupart_engine_use *use, unsigned int samples)
{
	return use->samples ? (double)samples / use->samples : 0;
}

static bool did_nothing(const struct gpupart_engine_use *use)
{
	return use->idle == use->samples;
}

static int owner_of(const struct view *view, const struct gpupart_engine_use *use)
{
	return use->type == TYPE_GRAPHICS ? view->owner : 0;
}

static void print_engine(struct out *out, const struct view *view,
			 const struct gpupart_engine_use *use)
{
	struct process_parent process = { 0 };
	char what[64], owner[48] = "?";
	int pid = owner_of(view, use);

	if (pid) {
		process_find_parent(pid, &process);
		snprintf(owner, sizeof(owner), "%d %s", pid, process.name);
		out_clean(owner);
	}

	snprintf(what, sizeof(what), "%.44s %u", *use->name ? use->name : "?", use->instance);
	fprintf(out->file, "%-36s 0x%06x %7u %6.1f%% %8.1f%%", what, use->runlist, use->samples,
		100 * share(use, use->idle), 100 * share(use, use->switching));
	for (unsigned int i = 0; i < use->nr_tsgs; i++)
		fprintf(out->file, "%s%*s %5u %6.1f%%  %s", i ? "\n" : "", i ? 71 : 0, "",
			use->tsgs[i].tsg, 100 * share(use, use->tsgs[i].samples), owner);
	fputc('\n', out->file);
}

static void print_table(struct out *out, const struct view *view)
{
	const struct gpupart_gpu_info *info = &view->info;
	int idle = 0;

	if (info->simulated)
		fprintf(out->file, "registers of %s (simulated)\n", info->source);
	else
		fprintf(out->file, "%s, %.1f s, read by %s\n", info->pci, view->seconds,
			!strcmp(info->source, "kernel") ? "the module gpupart" :
							  "NVIDIA's driver");
	fprintf(out->file, "%s%-36s %8s %7s %7s %9s %5s %7s  OWNER%s\n", out->bold, "ENGINE",
		"RUNLIST", "SAMPLES", "IDLE", "SWITCHING", "TSG", "SHARE", out->plain);
	for (int i = 0; i < view->nr; i++)
		if (did_nothing(&view->list[i]))
			idle++;
		else
			print_engine(out, view, &view->list[i]);
	if (idle)
		fprintf(out->file, "%d of %d engines were idle in every sample\n", idle, view->nr);
}

static json_t *json_engine(const struct view *view, const struct gpupart_engine_use *use)
{
	json_t *tsgs = json_array();

	for (unsigned int i = 0; i < use->nr_tsgs; i++)
		json_array_append_new(tsgs, json_pack("{s:i, s:f, s:i, s:o, s:o}",
				      "tsg", use->tsgs[i].tsg,
				      "share", share(use, use->tsgs[i].samples),
				      "samples", use->tsgs[i].samples,
				      "channel", out_json_index(use->tsgs[i].channel),
				      "owner", out_json_count(owner_of(view, use))));
	return json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:o}",
			 "name", out_json_text(use->name), "type", use->type,
			 "instance", use->instance, "runlist", use->runlist,
			 "runlist_id", use->id, "samples", use->samples,
			 "idle", share(use, use->idle), "switching", share(use, use->switching),
			 "other_tsgs", share(use, use->others), "tsgs", tsgs);
}

static void print_json(struct out *out, const struct view *view)
{
	json_t *root = out_json_new("ps", view->info.simulated), *engines = json_array();

	for (int i = 0; i < view->nr; i++)
		json_array_append_new(engines, json_engine(view, &view->list[i]));
	json_object_set_new(root, "gpu", out_json_text(view->info.pci));
	json_object_set_new(root, "source", out_json_text(view->info.source));
	json_object_set_new(root, "seconds",
			    view->info.simulated ? json_null() : json_real(view->seconds));
	json_object_set_new(root, "engines", engines);
	out_json_write(out, root);
}

static void find_owner(void *pci, void *owner)
{
	*(int *)owner = gpupart_engine_owner(cmd_gp, pci);
}

/*
 * Asks a child for the owner, because NVIDIA's driver can hang. Called after a sample, because
 * this query would wake an idle GPU.
 */
static void ask_owner(void *user)
{
	struct view *view = user;
	char why[128];

	if (view->info.simulated || child_call(find_owner, view->info.pci, &view->owner,
					       sizeof(view->owner), OWNER_SECONDS, why,
					       sizeof(why)))
		view->owner = 0;
}

int engines_show(struct args *args, double seconds)
{
	struct view view = { .seconds = seconds };
	struct out out;
	int status, owner;

	view.list = alloc_zeroed(GPUPART_MAX_ENGINES, sizeof(*view.list));
	view.nr = gpupart_engine_uses(cmd_gp, args->gpu, args->source, seconds, ask_owner, &view,
				      &view.info, view.list);
	status = view.nr < 0 ? failure("%s", gpupart_error(cmd_gp)) : out_open(&out, args);
	if (!status) {
		owner = view.owner;
		if (owner)
			ask_owner(&view);
		if (view.owner != owner)
			view.owner = 0;
		(args->json ? print_json : print_table)(&out, &view);
		status = out_close(&out);
	}
	free(view.list);
	return status;
}
