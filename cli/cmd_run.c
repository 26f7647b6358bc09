// SPDX-License-Identifier: MIT
/*
 * gpupart run: checks the options and runs the program. The program runs in a child process or in
 * this process.
 */
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
"                   [--lend JOB [--lend-limit TIME] [--lend-weight N]] [--depth TIME]\n"
"                   -- PROGRAM ARGS\n"
"       gpupart run --mem SIZE | --rule PATTERN=SET [OPTIONS] -- PROGRAM ARGS\n"
"Runs an unmodified program and all its descendants inside a set of TPCs. No stream or\n"
"launch set inside the program can leave this limit.\n"
"\n"
"SET, several options add up:\n"
"  -t, --tpcs LIST     TPCs: 0,5,8-11 or 0-10:2\n"
"  -g, --gpcs LIST     whole GPCs\n"
"  -u, --ugpus LIST    whole uGPUs (halves of the L2 cache)\n"
"  -n, --nr-tpcs N     choose N TPCs close together: in one uGPU and in whole GPCs if\n"
"                      possible, with room for clusters of 8 blocks. Avoids TPCs of\n"
"                      other runs, and warns if it cannot. -n 50% is half of the GPU's\n"
"                      TPCs, rounded down\n"
"      --sms N         choose N SMs, as with -n; rounded up to whole TPCs\n"
"      --shape SHAPE   how -n and --sms choose: packed (few GPCs, the default); gpcs\n"
"                      (whole GPCs of any uGPU); balanced (whole GPCs, the same number\n"
"                      of each uGPU); spread (all GPCs as evenly as possible)\n"
"      --hex MASK      bit i allows TPC i\n"
"  @NAME               a named set of ~/.config/gpupart/config or /etc/gpupart/config\n"
"      --plan FILE:NAME  the set of tenant NAME in a plan from 'gpupart plan --json';\n"
"                      also sets --gpu and --name if they are not given\n"
"\n"
"      --mem SIZE      limit GPU memory: 20G, 512M, 1.5GiB (of 1024), 8GB (of 1000) or\n"
"                      bytes, for all processes of the tenant together. Runs with the\n"
"                      same --name are one tenant; a run without --name is a separate\n"
"                      tenant. Without SET all TPCs are allowed. This is not a\n"
"                      security boundary\n"
"\n"
"  -i, --input CAPTURE run on the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID; all; or\n"
"                      several, separated by commas: SET and SIZE then apply to each\n"
"                      of them. Other GPUs are not limited\n"
"      --name NAME     a name for the job, in GPUPART_NAME\n"
"      --rule RULE     a smaller set for some kernels: RULE is PATTERN=SET, such as\n"
"                      '*copy*=-n 4' or 'at::native::*=gpc:1'. SET must be part of the\n"
"                      run's set. PATTERN is compared with the driver's name (mangled\n"
"                      for C++) and with the qualified name without arguments; the\n"
"                      first rule that matches applies. For kernels that need all\n"
"                      their blocks at once see gpupart(1), \"Rules\"\n"
"      --sm-count      if the program asks CUDA for the GPU's number of SMs, report\n"
"                      that of the set, so that persistent kernels and cooperative\n"
"                      grids fit the set; also by GPUPART_SM_COUNT=1 in the\n"
"                      environment\n"
"      --mps           run at the same time as other --mps programs, through NVIDIA\n"
"                      MPS. Without MPS, programs share a GPU in time slices, whatever\n"
"                      their sets. Uses the daemon at CUDA_MPS_PIPE_DIRECTORY or the\n"
"                      node's daemon. If there is none, starts a daemon, and stops it\n"
"                      when the last program ends\n"
"\n"
"      --lend JOB      let kernels also use the TPCs of JOB while JOB has no launch\n"
"                      outstanding. JOB is another run of yours with the same MPS\n"
"                      daemon. Experimental: on an H200 the borrower gained 24%, and\n"
"                      JOB's p99 latency rose by 15% (limit 600us)\n"
"      --lend-limit TIME  lend only to kernels that never took longer than TIME\n"
"                      (300us, 0.5ms, up to 1s). Kernels on lent TPCs take at most\n"
"                      TIME together, so JOB waits at most TIME for them. If the\n"
"                      program has N processes on the GPU, each gets TIME / N.\n"
"                      Default, if JOB is a tenant of 'gpupart qos run': the time in\n"
"                      the tenant's key lend, or the slack of its latency goal (the\n"
"                      goal minus the latency without lending)\n"
"      --lend-weight N if several runs borrow from JOB, they take turns of a length\n"
"                      proportional to N, 1-1000 (1)\n"
"      --depth TIME    bound outstanding work: a launch waits, at most twice TIME or\n"
"                      1 ms, whichever is longer, until the outstanding launches\n"
"                      together take less than TIME, estimated from earlier launches.\n"
"                      With --lend the default is twice its limit\n"
"\n"
"      --profile       allow one profiler to subscribe after gpupart: CUPTI, and\n"
"                      therefore torch.profiler, work inside the set; ncu does not\n"
"      --strict        allow no launch outside the set: CUDA fails in a process that\n"
"                      cannot be confined, and the first launch outside the set ends\n"
"                      the program; also by 'strict = yes' in /etc/gpupart/config\n"
"      --no-device-launch  do not allow kernels to launch other kernels from the GPU,\n"
"                      because no set confines those: loading a module with such\n"
"                      kernels fails with CUDA error 800; also by\n"
"                      GPUPART_NO_DEVICE_LAUNCH=1\n"
"      --exec          replace this process by the program, which keeps the pid; each\n"
"                      process then reports one line when it ends\n"
"\n"
"run remains the program's parent, forwards signals, and stops and ends when the\n"
"program stops and ends. At the end it reports on stderr what was not confined:\n"
"processes that used CUDA without a limit; launches outside the set, with their\n"
"kernels and a set of the same size that would have been enough; and modules that\n"
"were refused.\n"
"\n"
"The program's environment gets GPUPART_SET, GPUPART_GPU, GPUPART_NAME and\n"
"CUDA_INJECTION64_PATH (LD_PRELOAD if another tool uses that variable); with --rule\n"
"GPUPART_RULES, with --sm-count GPUPART_SM_COUNT, with --mem GPUPART_TENANT,\n"
"GPUPART_MEM and LD_AUDIT. GLIBC_TUNABLES gets more memory for static TLS.\n"
"A run inside a run must stay inside the outer run's set, and has its own rules.\n"
"GPUPART_DISABLE=1 in the environment starts the program without changes.\n"
"GPUPART_LOG=FILE appends a line for each process to FILE.\n"
"A green context gets a part of the set: the share that it would get of the whole GPU.\n"
"Without --profile a CUPTI profiler cannot attach. ncu can never attach: profile with\n"
"GPUPART_DISABLE=1. Kernels launched from the GPU are not confined. A process that may\n"
"have launched such kernels reports this on stderr when it ends; see\n"
"gpupart-device-launches(7).\n"
"\n"
"Exit status: the status of the program, or run ends by the same signal; 123 ended by\n"
"--strict, 127 not found, 126 not executable, 125 any other failure before the program\n"
"starts.\n"
"\n"
"Examples:\n"
"  gpupart run -u 0 -- python3 train.py\n"
"  gpupart run -g 1,2 -t 40-43 -- ./serve\n"
"  gpupart run -n 16 --name batch -- make bench\n"
"  gpupart run --name train --mem 20G -- python3 train.py\n";

/* Reads the quota from the option --mem. Returns 0 or an error. */
static int take_mem(struct run_wishes *wishes)
{
	const char *tenant = getenv("GPUPART_TENANT"), *quota = getenv("GPUPART_MEM");

	/* A process belongs to exactly one tenant. The quota of this tenant applies. */
	if (tenant && *tenant && quota && *quota)
		return failure(
			"--mem %s: this process belongs to tenant %s, and that tenant's quota applies: change the quota with 'gpupart set %s --mem'",
			wishes->mem, tenant, tenant);
	return args_memory(wishes->mem, &wishes->mem_bytes);
}

/* Gets the values of SET, --name and --gpu from the plan's tenant. Returns 0 or an error. */
static int take_plan(struct args *args, struct run_wishes *wishes, struct plan_file *file)
{
	const struct plan_file_tenant *tenant;
	static char bytes[24];
	int status;

	if (args->nr_terms)
		return failure("--plan %s and %s %s: use only one of them", wishes->plan,
			       args->terms[0].option, args->terms[0].text);
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
	/* A capture means that the GPU is simulated. So ignore the address in the plan. */
	if (!args->gpu && !args->source && !getenv("GPUPART_SIM") && *file->pci)
		args->gpu = file->pci;
	return 0;
}

/*
 * Finds out whether the run must be strict. If the run must be strict but cannot be, returns an
 * error. Otherwise returns 0.
 */
static int check_strict(struct run_wishes *wishes, bool left_out)
{
	const char *asked = getenv("GPUPART_STRICT"), *who = "--strict", *node;
	int status;

	if (asked && !*asked)
		asked = NULL;
	if (asked && strcmp(asked, "0") && strcmp(asked, "1"))
		return failure("GPUPART_STRICT='%s': must be 1 or 0", asked);
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
	/*
	 * Set the variable even if the run is not strict. Otherwise the processes of the run would
	 * read the setting.
	 */
	setenv("GPUPART_STRICT", who ? "1" : "0", 1);
	if (!who)
		return 0;
	if (left_out)
		return failure("GPUPART_DISABLE=1: %s does not allow this variable", who);
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
					   { .name = "lend-weight", .value = &wishes.lend.weight },
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
			"no set: use -t, -g, -u, -n, --sms, --hex, @NAME or --plan");
	status = args_input(&args);
	if (!status && wishes.plan)
		status = take_plan(&args, &wishes, &file);
	if (!status)
		status = rules_check(&wishes.rules);
	if (!status && wishes.mem)
		status = take_mem(&wishes);
	if (!status && wishes.name)
		status = check_name("--name", wishes.name);
	if (!status)
		status = lend_check(&wishes.lend, wishes.name, wishes.exec);
	if (!status)
		status = check_strict(&wishes, disable && !strcmp(disable, "1"));
	if (status)
		return status;
	/*
	 * Set this variable before the check of the mask bits. The check also tests the feature
	 * that the variable enables.
	 */
	if (wishes.no_device_launch)
		setenv("GPUPART_NO_DEVICE_LAUNCH", "1", 1);
	run_take_gpus(&args, &wishes);
	if (wishes.lend.job && wishes.gpus)
		return failure("--lend %s works on one GPU, but --gpu %s names several GPUs",
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
