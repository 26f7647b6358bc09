// SPDX-License-Identifier: MIT
/* gpupart ps: lists the processes that run under gpupart. */
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/target/engines.h"
#include "cli/target/process_table.h"
#include "cli/target/settings.h"
#include "cli/util/out.h"

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
		return usage_error("-d, -i and --gpu can be used only with --engines");
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
