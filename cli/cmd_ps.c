// SPDX-License-Identifier: MIT
/*
 * gpupart ps: lists the processes that run under gpupart. With --engines it prints samples of a
 * GPU's runlists.
 */
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/target/process_table.h"
#include "cli/target/settings.h"
#include "cli/util/child.h"
#include "cli/util/out.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define OWNER_SECONDS 5
#define TYPE_GRAPHICS 0

const char ps_help[] =
"Usage: gpupart ps [--json] [-o FILE]\n"
"       gpupart ps --engines [-d SECONDS] [-i SOURCE] [--gpu GPU] [--json] [-o FILE]\n"
"Lists your processes that run under gpupart, or as root those of all users: one row\n"
"for each process that has called cuInit.\n"
"\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write FILE instead of stdout; FILE.json: as with --json\n"
"      --engines       show instead how much of the time each TSG used each engine of\n"
"                      a GPU, for all users; needs root\n"
"  -d, --delay SECONDS sample for this time, 0.1-3600 (1), 1000 times a second\n"
"  -i, --input SOURCE  kernel (the module gpupart), rm (NVIDIA's driver reads the\n"
"                      registers) or a file of registers; default: kernel, then rm\n"
"      --gpu GPU       use this GPU instead of the first\n"
"\n"
"LAUNCHES   kernel launches since the process started\n"
"WIDENED    launches that were given more TPCs than the set allows, because they could\n"
"           not have run otherwise\n"
"UNCONFINED launches that could not be confined\n"
"USER       the process's user, on a node of Slurm\n"
"CONTAINER  the first digits of the id of the process's container\n"
"SET        the process's TPCs; 'of another version': another version of gpupart\n"
"           confines it, and only 'gpupart set' of that version can change it\n"
"MEMORY     GPU memory, as reported by NVIDIA's management library\n"
"Below a process that borrows TPCs ('run --lend', 'qos run') stands the lender's job,\n"
"the TPCs, and how many launches of its run used them or waited because of a bound.\n"
"The rows below list the tenants of 'gpupart run --mem': the memory that is charged to\n"
"a tenant on a GPU, its quota, and its processes. For each process ps also counts the\n"
"calls that may have allocated memory that is not charged.\n"
"\n"
"A TSG is a time slice group of the driver; a process has one or more. OWNER is the\n"
"process of a TSG on the graphics engine, if NVIDIA's driver lists only one process\n"
"that uses this engine, else ?. SWITCHING: the GPU saves or loads a context.\n"
"\n"
"Exit status: 0, also if nothing runs.\n"
"\n"
"Examples:\n"
"  gpupart ps\n"
"  sudo gpupart ps --engines -d 5\n"
"  gpupart ps --json | jq '.processes[] | select(.name == \"train\") | .set.list'\n";

/* The samples of the runlists. */
struct samples {
	struct gpupart_gpu_info info;
	struct gpupart_engine_use list[GPUPART_MAX_ENGINES];
	int nr, owner;		/* owner of the TSGs on the graphics engine; 0: unknown */
	double seconds;
};

static void engines_print(struct out *out, const struct samples *samples)
{
	const struct gpupart_gpu_info *info = &samples->info;
	struct process_parent process;
	char what[64], owner[48];
	int idle = 0;

	process_find_parent(samples->owner, &process);
	snprintf(owner, sizeof(owner), "%d %s", samples->owner, process.name);
	out_clean(owner);
	if (info->simulated)
		fprintf(out->file, "registers of %s (simulated)\n", info->source);
	else
		fprintf(out->file, "%s, %.1f s, read by %s\n", info->pci, samples->seconds,
			strcmp(info->source, "kernel") ? "NVIDIA's driver" : "the module gpupart");
	fprintf(out->file, "%s%-36s %8s %7s %7s %9s %5s %7s  OWNER%s\n", out->bold, "ENGINE",
		"RUNLIST", "SAMPLES", "IDLE", "SWITCHING", "TSG", "SHARE", out->plain);
	for (int i = 0; i < samples->nr; i++) {
		const struct gpupart_engine_use *use = &samples->list[i];
		const double n = use->samples;

		if (use->idle == use->samples) {
			idle++;
			continue;
		}
		snprintf(what, sizeof(what), "%.44s %u", *use->name ? use->name : "?",
			 use->instance);
		fprintf(out->file, "%-36s 0x%06x %7u %6.1f%% %8.1f%%", what, use->runlist,
			use->samples, 100 * (use->idle / n), 100 * (use->switching / n));
		for (unsigned int t = 0; t < use->nr_tsgs; t++)
			fprintf(out->file, "%s%*s %5u %6.1f%%  %s", t ? "\n" : "", t ? 71 : 0, "",
				use->tsgs[t].tsg, 100 * (use->tsgs[t].samples / n),
				samples->owner && use->type == TYPE_GRAPHICS ? owner : "?");
		fputc('\n', out->file);
	}
	if (idle)
		fprintf(out->file, "%d of %d engines were idle in every sample\n", idle,
			samples->nr);
}

static void engines_json(struct out *out, const struct samples *samples)
{
	const struct gpupart_gpu_info *info = &samples->info;
	json_t *root = out_json_new("ps", info->simulated), *engines = json_array();

	for (int i = 0; i < samples->nr; i++) {
		const struct gpupart_engine_use *use = &samples->list[i];
		const unsigned int owner = use->type == TYPE_GRAPHICS ? samples->owner : 0;
		const double n = use->samples;
		json_t *tsgs = json_array();

		for (unsigned int t = 0; t < use->nr_tsgs; t++)
			json_array_append_new(tsgs, json_pack("{s:i, s:f, s:i, s:o, s:o}",
					      "tsg", use->tsgs[t].tsg,
					      "share", use->tsgs[t].samples / n,
					      "samples", use->tsgs[t].samples,
					      "channel", out_json_index(use->tsgs[t].channel),
					      "owner", out_json_count(owner)));
		json_array_append_new(engines, json_pack(
				      "{s:o, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:o}",
				      "name", out_json_text(use->name), "type", use->type,
				      "instance", use->instance, "runlist", use->runlist,
				      "runlist_id", use->id, "samples", use->samples,
				      "idle", use->idle / n, "switching", use->switching / n,
				      "other_tsgs", use->others / n, "tsgs", tsgs));
	}
	json_object_update_new(root, json_pack("{s:o, s:o, s:o, s:o}",
			       "gpu", out_json_text(info->pci),
			       "source", out_json_text(info->source), "seconds",
			       info->simulated ? json_null() : json_real(samples->seconds),
			       "engines", engines));
	out_json_write(out, root);
}

static void find_owner(void *pci, void *owner)
{
	*(int *)owner = gpupart_engine_owner(cmd_gp, pci);
}

/*
 * Gets the owner from a child process, because NVIDIA's driver can hang. Call this function only
 * after a sample, because the query would wake an idle GPU.
 */
static void ask_owner(void *user)
{
	struct samples *samples = user;
	char why[128];

	if (samples->info.simulated ||
	    child_call(find_owner, samples->info.pci, &samples->owner, sizeof(samples->owner),
		       OWNER_SECONDS, why, sizeof(why)))
		samples->owner = 0;
}

static int engines_show(struct args *args, double seconds)
{
	static struct samples samples;
	struct out out;
	int status, owner;

	samples.seconds = seconds;
	samples.nr = gpupart_engine_uses(cmd_gp, args->gpu, args->source, seconds, ask_owner,
					 &samples, &samples.info, samples.list);
	status = samples.nr < 0 ? failure("%s", gpupart_error(cmd_gp)) : out_open(&out, args);
	if (status)
		return status;
	/*
	 * If the owner before the samples and the owner after the samples differ, the owner is
	 * unknown.
	 */
	owner = samples.owner;
	if (owner)
		ask_owner(&samples);
	if (samples.owner != owner)
		samples.owner = 0;
	(args->json ? engines_json : engines_print)(&out, &samples);
	return out_close(&out);
}

int cmd_ps(int argc, char **argv)
{
	struct args args = { 0 };
	struct process_table table = { 0 };
	struct out out;
	const char *delay = NULL;
	bool engines = false;
	const struct args_option own[] = { { .name = "engines", .given = &engines },
					   { .name = "delay", .letter = 'd', .value = &delay },
					   { 0 } };
	double seconds = 1;
	int status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT | ARGS_SOURCE | ARGS_GPU, own,
				ps_help, argc, argv);

	if (!status && !engines && (delay || args.source || args.gpu))
		status = usage_error("-d, -i and --gpu can be used only with --engines");
	status = status ?: args_seconds("-d", delay, 0.1, &seconds);
	if (status)
		return status;
	if (engines)
		return args_input(&args) ?: engines_show(&args, seconds);
	settings_report();
	status = process_table_read(&table, 0) ?: out_open(&out, &args);
	if (!status) {
		if (args.json)
			process_table_json(&out, &table);
		else
			process_table_print(&out, &table, NULL);
		status = out_close(&out);
	}
	process_table_free(&table);
	return status;
}
