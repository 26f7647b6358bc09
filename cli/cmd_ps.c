// SPDX-License-Identifier: MIT
/* gpupart ps: what runs under gpupart now. */
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/target/engines.h"
#include "cli/target/look.h"
#include "cli/target/settings.h"
#include "cli/util/out.h"

const char ps_help[] =
"Usage: gpupart ps [--json] [-o FILE]\n"
"       gpupart ps --engines [-d SECONDS] [-i SOURCE] [--gpu GPU] [--json] [-o FILE]\n"
"Lists the processes that run under gpupart and have called cuInit, a row each: your\n"
"own, as root those of all users.\n"
"\n"
"      --json          as JSON, schema gpupart/1\n"
"  -o, --output FILE   write there; FILE.json: as --json\n"
"      --engines       instead: what share of the time each TSG had each engine of a\n"
"                      GPU, whoever it belongs to; root\n"
"  -d, --delay SECONDS sample for so long, 0.1-3600 (1), 1000 times a second\n"
"  -i, --input SOURCE  kernel: the module gpupart; rm: NVIDIA's driver reads them;\n"
"                      a file of registers; without it the first two in turn\n"
"      --gpu GPU       that GPU, not the first\n"
"\n"
"LAUNCHES   kernel launches since it began\n"
"WIDENED    of these, those that had to get more TPCs than asked for: not hanging wins\n"
"UNCONFINED of these, those that could not be confined\n"
"USER       its user, on a node of Slurm's\n"
"CONTAINER  the first digits of its container's id\n"
"SET        its TPCs; 'of another version': another gpupart confines it, and only the\n"
"           'gpupart set' of that version changes it\n"
"MEMORY     of the GPU, as NVIDIA's management library tells it\n"
"Tenants of 'gpupart run --mem' follow: the GPU memory that their processes use, as it\n"
"is counted, the quota, and the processes; of a process also its calls that may have\n"
"got memory that is not counted.\n"
"\n"
"A TSG is the driver's time slice group, one or more a process. Whose one is, is not\n"
"known (OWNER ?). SWITCHING: a context is being saved or loaded.\n"
"\n"
"Exit status: 0, also where nothing runs.\n"
"\n"
"Examples:\n"
"  gpupart ps\n"
"  sudo gpupart ps --engines -d 5\n"
"  gpupart ps --json | jq '.processes[] | select(.name == \"train\") | .set.list'\n";

int cmd_ps(int argc, char **argv)
{
	struct args args = { 0 };
	struct look look = { 0 };
	struct out out;
	const char *delay = NULL;
	bool engines = false;
	const struct args_option own[] = { { .name = "engines", .given = &engines },
					   { .name = "delay", .letter = 'd', .value = &delay },
					   { 0 } };
	double seconds = 1;
	int status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT | ARGS_SOURCE | ARGS_GPU, own,
				ps_help, argc, argv);

	if (status)
		return status;
	if (!engines && (delay || args.source || args.gpu))
		return usage_error("-d, -i and --gpu are for --engines");
	if (delay)
		status = args_seconds("-d", delay, 0.1, &seconds);
	if (status)
		return status;
	if (engines)
		return args_input(&args) ?: engines_show(&args, seconds);
	settings_report();
	status = look_take(&look, 0) ?: out_open(&out, &args);
	if (!status) {
		if (args.json)
			look_json(&out, &look);
		else
			look_print(&out, &look, NULL);
		status = out_close(&out);
	}
	look_drop(&look);
	return status;
}
