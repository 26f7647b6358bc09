// SPDX-License-Identifier: MIT
/* gpupart run: its options, and the choice between a child and this process for the program. */
#include <stdlib.h>
#include <string.h>
#include "cli/cmd.h"
#include "cli/plan/file.h"
#include "cli/start/rules.h"
#include "cli/start/run.h"
#include "cli/target/args.h"
#include "cli/target/check.h"

const char run_help[] =
"Usage: gpupart run SET | --plan FILE:NAME [--mem SIZE] [-i CAPTURE] [--gpu GPU]\n"
"                   [--name NAME] [--rule PATTERN=SET]... [--sm-count] [--mps]\n"
"                   [--profile] [--strict] [--no-device-launch] [--exec]\n"
"                   [--lend JOB --lend-limit TIME] [--depth TIME]\n"
"                   -- PROGRAM ARGS\n"
"       gpupart run --mem SIZE | --rule PATTERN=SET [OPTIONS] -- PROGRAM ARGS\n"
"Runs an unmodified program, and what it starts, inside a set of TPCs: a limit which\n"
"nothing inside the program escapes.\n"
"\n"
"SET, several add up:\n"
"  -t, --tpcs LIST     TPCs: 0,5,8-11 or 0-10:2\n"
"  -g, --gpcs LIST     whole GPCs\n"
"  -u, --ugpus LIST    whole uGPUs (halves of the L2)\n"
"  -n, --nr-tpcs N     N more TPCs, packed: in the smallest uGPU that holds them, as\n"
"                      many as possible in whole GPCs, the rest from the smallest\n"
"                      GPC left, where it can with room for clusters of 8 blocks;\n"
"                      clear of the sets of other runs, or it says that they overlap;\n"
"                      50%: that share of the GPU's TPCs, rounded down\n"
"      --sms N         N SMs, as -n: whole TPCs, rounded up\n"
"      --shape SHAPE   how the TPCs of -n and --sms lie: packed (the default); gpcs,\n"
"                      whole GPCs of any uGPU first; balanced, whole GPCs, as many of\n"
"                      each uGPU; spread, as evenly over GPCs as can be\n"
"      --hex MASK      bit i allows TPC i\n"
"  @NAME               the set of that name in ~/.config/gpupart/config or\n"
"                      /etc/gpupart/config\n"
"      --plan FILE:NAME  the set of tenant NAME in a plan that 'gpupart plan --json'\n"
"                      wrote; it gives --gpu and --name where they are not given\n"
"\n"
"      --mem SIZE      no more than that of a GPU's memory, for all processes of the\n"
"                      tenant together: 20G, 512M, 1.5GiB (of 1024), 8GB (of 1000) or\n"
"                      bytes. The tenant is --name's, which several runs may share, or\n"
"                      this run alone. Without a SET on all TPCs. No security boundary\n"
"\n"
"  -i, --input CAPTURE run on the simulated GPU made of it (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID; several, parted\n"
"                      by commas, or all: SET and SIZE are of each. Others stay free\n"
"      --name NAME     a name for the job, in GPUPART_NAME\n"
"      --rule RULE     PATTERN=SET: kernels whose name matches get a smaller set, of\n"
"                      the run's: --rule '*copy*=-n 4', --rule 'at::native::*=gpc:1';\n"
"                      of several rules the first that matches. The name is the\n"
"                      driver's (mangled for C++), or its qualified name without\n"
"                      arguments. For kernels that need all their blocks at once see\n"
"                      gpupart(1), \"Rules\"\n"
"      --sm-count      where it asks CUDA, tell it the SMs of the set, not the GPU's:\n"
"                      persistent kernels and cooperative grids then fit the set;\n"
"                      GPUPART_SM_COUNT=1 in the environment does the same\n"
"      --mps           at the same time as other programs run so, by NVIDIA's MPS: the\n"
"                      daemon that CUDA_MPS_PIPE_DIRECTORY names, or the node's, or\n"
"                      one that is started and ends after the last of them; without\n"
"                      it programs take turns on a GPU, whatever their sets\n"
"\n"
"      --lend JOB      kernels may also use the TPCs of JOB, another run of yours\n"
"                      with the same MPS daemon, while that has nothing outstanding.\n"
"                      Experimental: on an H200 they gained 24%, and JOB's p99 rose by\n"
"                      15% (limit 600us). Only kernels that were never longer than\n"
"      --lend-limit TIME  300us, 0.5ms, up to 1s; no more of them are outstanding than\n"
"                      what takes that long, which is what JOB may wait for them\n"
"      --depth TIME    no launches are outstanding that take longer together, by their\n"
"                      times so far: a launch waits before, twice TIME at most; with\n"
"                      --lend twice --lend-limit where it is not given\n"
"\n"
"      --profile       one profiler may subscribe after gpupart: CUPTI, and so\n"
"                      torch.profiler, work inside the set; ncu does not\n"
"      --strict        no launch outside of the set: a process that cannot be confined\n"
"                      gets no CUDA, and the first launch outside ends the program;\n"
"                      'strict = yes' in /etc/gpupart/config does the same\n"
"      --no-device-launch  no kernel launches another from the GPU, where no set would\n"
"                      hold it: loading a module that can fails with 800;\n"
"                      GPUPART_NO_DEVICE_LAUNCH=1 in the environment does the same\n"
"      --exec          the program takes this process's place, with its pid;\n"
"                      processes report at their ends, in a line each\n"
"\n"
"run stays as the program's parent, passes on signals, and stops and ends as the\n"
"program does. At the end it reports on stderr what was not confined: processes that\n"
"used CUDA and never were, launches outside of the set, by kernel, and a set of the\n"
"same size that would have held them, and modules that were refused.\n"
"\n"
"The program is started with GPUPART_SET, GPUPART_GPU, GPUPART_NAME, with --rule\n"
"GPUPART_RULES, with --sm-count GPUPART_SM_COUNT, with --mem GPUPART_TENANT,\n"
"GPUPART_MEM and LD_AUDIT, and with CUDA_INJECTION64_PATH (LD_PRELOAD where another\n"
"tool holds that) in its environment; GLIBC_TUNABLES there gets more room for the\n"
"static TLS of libraries.\n"
"Inside a run, a second one must stay inside the first one's set; its rules are its\n"
"own.\n"
"GPUPART_DISABLE=1 in the environment: the program is run untouched. GPUPART_LOG=FILE:\n"
"what became of it is appended there, a line a process.\n"
"A green context is a part of the set: its share of the GPU, of the set. Without\n"
"--profile a profiler that uses CUPTI finds its place taken; ncu always does: profile\n"
"with GPUPART_DISABLE=1. What kernels launch from the GPU is not confined: a process\n"
"that may have done so says it at its end, in a line on stderr; see\n"
"gpupart-device-launches(7).\n"
"\n"
"Exit status: the program's, and by the same signal; 123 --strict ended it, 127 it is\n"
"not there, 126 it cannot be executed, 125 anything else that went wrong before it\n"
"started.\n"
"\n"
"Examples:\n"
"  gpupart run -u 0 -- python3 train.py\n"
"  gpupart run -g 1,2 -t 40-43 -- ./serve\n"
"  gpupart run -n 16 --name batch -- make bench\n"
"  gpupart run --name train --mem 20G -- python3 train.py\n";

/* The quota that is asked for: 0, or an error. */
static int take_mem(struct run_wishes *wishes)
{
	const char *tenant = getenv("GPUPART_TENANT"), *quota = getenv("GPUPART_MEM");

	/* What is used in there counts for that tenant, and for one alone. */
	if (tenant && *tenant && quota && *quota)
		return failure(
			"--mem %s: this runs inside tenant %s, whose quota holds here: 'gpupart set %s --mem' changes it",
			wishes->mem, tenant, tenant);
	return args_memory(wishes->mem, &wishes->mem_bytes);
}

/* The plan's tenant in the place of SET, --name and --gpu: 0, or an error. */
static int take_plan(struct args *args, struct run_wishes *wishes, struct plan_file *file)
{
	const struct plan_file_tenant *tenant;
	static char bytes[24];
	int status;

	if (args->nr_terms)
		return failure("--plan %s and %s %s: take one", wishes->plan, args->terms[0].option,
			       args->terms[0].text);
	status = plan_file_read_one(wishes->plan, file, &tenant);
	if (status)
		return status;
	args->terms[args->nr_terms].option = "-t";
	args->terms[args->nr_terms++].text = tenant->set;
	wishes->file = file;
	if (!wishes->name)
		wishes->name = tenant->name;
	if (!wishes->mem && tenant->mem) {
		snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)tenant->mem);
		wishes->mem = bytes;
	}
	for (unsigned int i = 0; i < tenant->rules.nr && wishes->rules.nr < ARGS_MAX_TERMS; i++)
		wishes->rules.texts[wishes->rules.nr++] = tenant->rules.texts[i];
	/* A capture's GPU is the simulated one, whatever the address that it had. */
	if (!args->gpu && !args->source && !getenv("GPUPART_SIM") && *file->pci)
		args->gpu = file->pci;
	return 0;
}

/* Whether all launches must be confined, and can be as asked: 0, or an error. */
static int check_strict(struct run_wishes *wishes, bool left_out)
{
	const char *asked = getenv("GPUPART_STRICT"), *who = "--strict", *node;
	int status;

	if (asked && !*asked)
		asked = NULL;
	if (asked && strcmp(asked, "0") && strcmp(asked, "1"))
		return failure("GPUPART_STRICT='%s': wants 1 or 0", asked);
	status = check_node_strict(asked, &node);
	if (status)
		return status;
	if (!wishes->strict && node)
		who = node;
	else if (!wishes->strict && asked && !strcmp(asked, "1"))
		who = "GPUPART_STRICT=1";
	else if (!wishes->strict)
		who = NULL;
	wishes->strict = who;
	/* Either way, the processes of this run do not report what is wrong with the setting. */
	setenv("GPUPART_STRICT", who ? "1" : "0", 1);
	if (!who)
		return 0;
	if (left_out)
		return failure("GPUPART_DISABLE=1: %s does not allow that", who);
	return 0;
}

int cmd_run(int argc, char **argv)
{
	const char *disable = getenv("GPUPART_DISABLE");
	static struct plan_file file;
	struct run_wishes wishes = { 0 };
	const struct args_option own[] = { { .name = "name", .value = &wishes.name },
					   { .name = "plan", .value = &wishes.plan },
					   { .name = "mem", .value = &wishes.mem },
					   { .name = "sm-count", .given = &wishes.sm_count },
					   { .name = "mps", .given = &wishes.mps },
					   { .name = "profile", .given = &wishes.profile },
					   { .name = "strict", .given = &wishes.strict },
					   { .name = "no-device-launch",
					     .given = &wishes.no_device_launch },
					   { .name = "lend", .value = &wishes.lend.job },
					   { .name = "lend-limit", .value = &wishes.lend.limit },
					   { .name = "depth", .value = &wishes.lend.depth },
					   { .name = "rule", .values = &wishes.rules },
					   { .name = "exec", .given = &wishes.exec }, { 0 } };
	struct args args = { 0 };
	int status;

	status = args_parse(&args, ARGS_SET | ARGS_SIM | ARGS_GPU | ARGS_PROGRAM, own, run_help,
			    argc, argv) ?:
		 run_check_program(&args);
	if (status)
		return status;
	if (!args.nr_terms && !wishes.plan && !wishes.mem && !wishes.rules.nr)
		return failure(
			"no set: give one with -t, -g, -u, -n, --sms, --hex, @NAME or --plan");
	status = args_input(&args);
	if (!status && wishes.plan)
		status = take_plan(&args, &wishes, &file);
	if (!status)
		status = rules_check(&wishes.rules);
	if (!status && wishes.mem)
		status = take_mem(&wishes);
	if (!status && wishes.name)
		status = check_name(wishes.name);
	if (!status)
		status = lend_check(&wishes.lend, wishes.name, wishes.exec);
	if (!status)
		status = check_strict(&wishes, disable && !strcmp(disable, "1"));
	if (status)
		return status;
	/* Before the mask bits are checked, which shows whether the driver can. */
	if (wishes.no_device_launch)
		setenv("GPUPART_NO_DEVICE_LAUNCH", "1", 1);
	run_take_gpus(&args, &wishes);
	if (wishes.lend.job && wishes.gpus)
		return failure("--lend %s: on one GPU, and --gpu %s names several",
			       wishes.lend.job, wishes.gpus);
	status = args_simulate(&args);
	if (status)
		return status;
	if (disable && !strcmp(disable, "1")) {
		remark("GPUPART_DISABLE=1: %s runs on the whole GPU%s", args.program[0],
		       args.simulated ? ", simulated" : "");
		return run_become(&args);
	}
	if (!wishes.exec)
		return run_as_parent(&args, &wishes);
	status = run_confine(&args, &wishes);
	return status ?: run_become(&args);
}
