// SPDX-License-Identifier: MIT
/*
 * gpupart run: works out the set, has the mask bits checked in a child, then becomes
 * the program with the injected library in its environment. Must not touch CUDA itself.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "args.h"
#include "audit.h"
#include "check.h"
#include "cmd.h"
#include "cuda.h"
#include "mps.h"
#include "out.h"
#include "paths.h"
#include "plan_file.h"
#include "run.h"
#include "tenants.h"

const char run_help[] =
"Usage: gpupart run SET | --plan FILE:NAME [--mem SIZE] [-i CAPTURE] [--gpu GPU]\n"
"                   [--name NAME] [--late SECONDS] [--sm-count] [--mps]\n"
"                   -- PROGRAM ARGS\n"
"       gpupart run --mem SIZE [OPTIONS] -- PROGRAM ARGS\n"
"Runs an unmodified program, and what it starts, inside a set of TPCs: a limit which\n"
"nothing inside the program escapes.\n"
"\n"
"SET, several add up:\n"
"  -t, --tpcs LIST     TPCs: 0,5,8-11 or 0-10:2\n"
"  -g, --gpcs LIST     whole GPCs\n"
"  -u, --ugpus LIST    whole uGPUs (halves of the L2)\n"
"  -n, --nr-tpcs N     N more TPCs, packed: in the smallest uGPU that holds them, as\n"
"                      many as possible in whole GPCs, the rest from the smallest\n"
"                      GPC left; clear of the sets of other runs, or it says that\n"
"                      they overlap\n"
"      --hex MASK      bit i allows TPC i\n"
"      --plan FILE:NAME  the set of tenant NAME in a plan that 'gpupart plan --json'\n"
"                      wrote; it gives --gpu and --name where they are not given\n"
"\n"
"      --mem SIZE      no more than that of a GPU's memory, for all processes of the\n"
"                      tenant together: 20G, 512M, 1.5GiB (of 1024), 8GB (of 1000) or\n"
"                      bytes. The tenant is --name's, which several runs may share, or\n"
"                      this run alone. Without a SET on all TPCs. No security boundary\n"
"\n"
"  -i, --input CAPTURE run on the simulated GPU made of it (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --name NAME     a name for the job, in GPUPART_NAME\n"
"      --late SECONDS  confine it only then, 0-3600 after it starts to use CUDA: a\n"
"                      program may make its green contexts before\n"
"      --sm-count      where it asks CUDA, tell it the SMs of the set, not the GPU's:\n"
"                      persistent kernels and cooperative grids then fit the set;\n"
"                      GPUPART_SM_COUNT=1 in the environment does the same\n"
"      --mps           at the same time as other programs run so, by NVIDIA's MPS: the\n"
"                      daemon that CUDA_MPS_PIPE_DIRECTORY names, or one that is\n"
"                      started and ends after the last of them; without it programs\n"
"                      take turns on a GPU, whatever their sets\n"
"\n"
"The program is started with GPUPART_SET, GPUPART_GPU, GPUPART_NAME, with --sm-count\n"
"GPUPART_SM_COUNT, with --mem GPUPART_TENANT, GPUPART_MEM and LD_AUDIT, and with\n"
"CUDA_INJECTION64_PATH (LD_PRELOAD where another tool holds that) in its environment.\n"
"Inside a run, a second one must stay inside the first one's set.\n"
"GPUPART_DISABLE=1 in the environment: the program is run untouched. GPUPART_LOG=FILE:\n"
"what became of it is appended there, a line a process.\n"
"Green contexts cannot be made once a program is confined: see --late. Profilers\n"
"that use CUPTI, ncu among them, find their place taken: profile with\n"
"GPUPART_DISABLE=1. What kernels launch from the GPU is not confined: a process that\n"
"may have done so says it at its end, in a line on stderr; see\n"
"gpupart-device-launches(7).\n"
"\n"
"Exit status: the program's; 127 it is not there, 126 it cannot be executed, 125\n"
"anything else that went wrong before it started.\n"
"\n"
"Examples:\n"
"  gpupart run -u 0 -- python3 train.py\n"
"  gpupart run -g 1,2 -t 40-43 -- ./serve\n"
"  gpupart run -n 16 --name batch -- make bench\n"
"  gpupart run --name train --mem 20G -- python3 train.py\n";

/* Whether @gpu, the GPU of the run around this one, is the one at @pci: 0, or a status. */
static int same_gpu(const struct args *args, struct gpupart *gp, const char *gpu,
		    const char *pci)
{
	struct gpupart_topology *limited;
	struct cuda_simulated found;
	char address[20];

	if (args->simulated) {
		if (cuda_find_simulated(gpu, &found))
			return cmd_fail(args->cmd, args->usage_status, "GPUPART_GPU=%s: %s", gpu,
					found.why);
		snprintf(address, sizeof(address), "%s", found.pci);
	} else {
		if (gpupart_topology_open(gp, NULL, gpu, &limited))
			return cmd_fail(args->cmd, args->usage_status, "GPUPART_GPU=%s: %s", gpu,
					gpupart_error(gp));
		snprintf(address, sizeof(address), "%s", gpupart_topology_info(limited)->pci);
		gpupart_topology_close(limited);
	}
	if (!strcmp(address, pci))
		return -1;
	return cmd_fail(args->cmd, args->usage_status,
			"this runs inside a limit on GPU %s and cannot leave it for %s", gpu, pci);
}

int run_outer_limit(const struct args *args, struct gpupart *gp,
		    const struct gpupart_topology *topo, const char *pci,
		    struct gpupart_tpcset *set, const struct gpupart_tpcset **outer)
{
	const char *words = getenv("GPUPART_SET"), *gpu = getenv("GPUPART_GPU");
	int status;

	*outer = NULL;
	if (!words || !*words)
		return -1;
	if (gpu && *gpu) {
		status = same_gpu(args, gp, gpu, pci);
		if (status >= 0)
			return status;
	}
	if (gpupart_set_parse(gp, topo, words, set))
		return cmd_fail(args->cmd, args->usage_status, "GPUPART_SET=%s: %s", words,
				gpupart_error(gp));
	*outer = set;
	return -1;
}

static int work_out_set(const struct args *args, struct gpupart *gp,
			const struct gpupart_topology *topo, const char *pci,
			struct gpupart_tpcset *set)
{
	char text[OUT_SET_STRLEN], limit[OUT_SET_STRLEN];
	const struct gpupart_tpcset *outer;
	struct gpupart_tpcset outside, around;
	int status;

	status = run_outer_limit(args, gp, topo, pci, &around, &outer);
	if (status < 0 && !args->nr_terms) {
		/* For its memory alone. */
		*set = outer ? *outer : gpupart_topology_all(topo);
		return status;
	}
	if (status < 0)
		status = args_set(args, gp, topo, pci, outer, set);
	if (status >= 0 || !outer || gpupart_tpcset_subset(set, outer))
		return status;
	outside = gpupart_tpcset_andnot(set, outer);
	return cmd_fail(args->cmd, EXIT_RUN_FAILED,
			"TPCs %s are outside the limit %s that this runs in (GPUPART_SET)",
			out_set(text, sizeof(text), topo, &outside),
			out_set(limit, sizeof(limit), topo, outer));
}

int run_inject(const struct args *args)
{
	const char *taken = getenv("CUDA_INJECTION64_PATH"), *preload = getenv("LD_PRELOAD");
	char path[PATH_MAX], *joined;
	int err;

	err = paths_package(PATHS_INJECT, path, sizeof(path));
	if (err)
		return cmd_fail(args->cmd, EXIT_RUN_FAILED, "%s is not installed: %s", PATHS_INJECT,
				strerror(-err));
	/* In a container that may be the one of the gpupart outside. */
	if (!taken || !*taken || paths_same(taken, path) || paths_is_inject(taken)) {
		setenv("CUDA_INJECTION64_PATH", path, 1);
		return -1;
	}
	if (strpbrk(path, " :"))
		return cmd_fail(args->cmd, EXIT_RUN_FAILED,
				"CUDA_INJECTION64_PATH is taken by %s, and LD_PRELOAD takes no path with a blank or colon (%s)",
				taken, path);
	if (asprintf(&joined, "%s%s%s", path, preload && *preload ? ":" : "",
		     preload ? preload : "") < 0)
		return cmd_fail(args->cmd, EXIT_RUN_FAILED, "no memory");
	setenv("LD_PRELOAD", joined, 1);
	free(joined);
	return -1;
}

int run_become(const struct args *args)
{
	int err;

	execvp(args->program[0], args->program);
	err = errno;
	return cmd_fail(args->cmd, err == ENOENT ? EXIT_RUN_NOT_FOUND : EXIT_RUN_NOT_EXECUTABLE,
			"%s: %s", args->program[0], strerror(err));
}

/* What the job is called: --name's, or the variable's if that is a name; NULL: nothing. */
static const char *job_name(const struct args *args, const char *name)
{
	const char *called = name ? name : getenv("GPUPART_NAME");

	if (!called || !*called || check_is_name(called))
		return called && *called ? called : NULL;
	cmd_note(args->cmd, "GPUPART_NAME=%s is no name as --name takes it: the job has none",
		 called);
	return NULL;
}

/*
 * From now on `gpupart set` finds what this becomes, also before it uses the GPU: -1, or a
 * status where the note cannot be done without.
 */
static int begin_job(const struct args *args, struct gpupart *gp,
		     const struct gpupart_topology *topo, const struct run_wishes *wishes,
		     const char *gpu, const struct gpupart_tpcset *set, const char *called,
		     char id[GPUPART_JOB_STRLEN])
{
	if (!gpupart_job_begin(gp, called, topo, gpu, set, id)) {
		setenv("GPUPART_JOB", id, 1);
		return -1;
	}
	if (wishes->mem)
		return cmd_fail(args->cmd, EXIT_RUN_FAILED,
				"--mem %s: the quota cannot be kept: %s", wishes->mem,
				gpupart_error(gp));
	unsetenv("GPUPART_JOB");
	if (wishes->name)
		cmd_note(args->cmd, "'gpupart set %s' will not find what starts later: %s",
			 wishes->name, gpupart_error(gp));
	return -1;
}

/* The quota, before the program is there: -1, or a status. */
static int begin_tenant(const struct args *args, struct gpupart *gp, const char *tenant,
			const char *gpu, const struct run_wishes *wishes)
{
	char old[TENANTS_SIZE_STRLEN], new[TENANTS_SIZE_STRLEN], bytes[24];
	struct gpupart_tenant now;
	uint64_t before;

	if (!wishes->mem) {
		if (tenant && !gpupart_tenant_get(gp, tenant, gpu, &now) && now.quota &&
		    !getenv("GPUPART_TENANT"))
			cmd_note(args->cmd,
				 "tenant %s has a quota of %s on %s: it does not hold for this program, which is run without --mem",
				 tenant, tenants_size(old, now.quota), gpu);
		return -1;
	}
	if (gpupart_tenant_begin(gp, tenant, gpu, wishes->mem_bytes, &before))
		return cmd_fail(args->cmd, EXIT_RUN_FAILED, "--mem %s: %s", wishes->mem,
				gpupart_error(gp));
	if (before && before != wishes->mem_bytes)
		cmd_note(args->cmd, "tenant %s's quota on %s was %s and is %s now, for all of it",
			 tenant, gpu, tenants_size(old, before),
			 tenants_size(new, wishes->mem_bytes));
	if (!gpupart_tenant_get(gp, tenant, gpu, &now))
		tenants_note_above(args->cmd, &now);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)wishes->mem_bytes);
	setenv("GPUPART_TENANT", tenant, 1);
	setenv("GPUPART_MEM", bytes, 1);
	audit_join(args->cmd);
	return -1;
}

/* Everything between a topology and the program's environment. */
static int prepare(const struct args *args, struct gpupart *gp,
		   const struct gpupart_topology *topo, const struct run_wishes *wishes)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	/* A capture need not tell the address that is simulated. */
	const char *gpu = !args->simulated ? info->pci : args->gpu ? args->gpu : "0";
	char list[GPUPART_TPCSET_STRLEN], text[OUT_SET_STRLEN], id[GPUPART_JOB_STRLEN];
	struct check check = { 0 };
	const char *called;
	struct gpupart_tpcset set;
	int status;

	status = work_out_set(args, gp, topo, gpu, &set);
	if (status < 0)
		status = check_in_child(args, gpu, &check);
	if (status < 0)
		status = run_inject(args);
	if (*check.pci)
		gpu = check.pci;
	if (status < 0 && wishes->mem)
		status = tenants_check_size(args, gpu, check.memory, wishes->mem_bytes);
	if (status >= 0)
		return status;
	gpupart_tpcset_format_list(&set, list, sizeof(list));
	setenv("GPUPART_SET", list, 1);
	setenv("GPUPART_GPU", gpu, 1);
	setenv("GPUPART_CHECKED", check.key, 1);
	called = job_name(args, wishes->name);
	status = begin_job(args, gp, topo, wishes, gpu, &set, called, id);
	if (status < 0)
		status = begin_tenant(args, gp, wishes->mem && !called ? id : called, gpu, wishes);
	if (status >= 0)
		return status;
	if (wishes->name)
		setenv("GPUPART_NAME", wishes->name, 1);
	/* A wish from outside, a run's around this one too, stays. */
	if (wishes->sm_count)
		setenv("GPUPART_SM_COUNT", "1", 1);
	if (wishes->late) {
		setenv("GPUPART_LATE", wishes->late, 1);
		cmd_note(args->cmd, "what %s launches in its first %s s is not confined",
			 args->program[0], wishes->late);
	} else {
		unsetenv("GPUPART_LATE");
	}
	/* taskset says nothing either; but who runs on no GPU should know it. */
	if (args->simulated)
		cmd_note(args->cmd, "TPCs %s of %s, simulated",
			 out_set(text, sizeof(text), topo, &set), gpu);
	if (wishes->mps)
		mps_join(args->cmd, args->simulated);
	else if (!args->simulated)
		mps_note_turns(args->cmd, gp, gpu);
	return -1;
}

/* The quota that is asked for: -1, or a status. */
static int take_mem(const struct args *args, struct run_wishes *wishes)
{
	const char *tenant = getenv("GPUPART_TENANT"), *quota = getenv("GPUPART_MEM");

	/* What is used in there counts for that tenant, and for one alone. */
	if (tenant && *tenant && quota && *quota)
		return cmd_fail(args->cmd, EXIT_RUN_FAILED,
				"--mem %s: this runs inside tenant %s, whose quota holds here: 'gpupart set %s --mem' changes it",
				wishes->mem, tenant, tenant);
	return args_memory(args, wishes->mem, &wishes->mem_bytes);
}

/* The plan's tenant in the place of SET, --name and --gpu: -1 to go on, or a status. */
static int take_plan(struct args *args, struct run_wishes *wishes, struct plan_file *file)
{
	const struct plan_file_tenant *tenant;
	static char bytes[24];
	int status;

	if (args->nr_terms)
		return cmd_fail(args->cmd, EXIT_RUN_FAILED, "--plan %s and %s %s: take one",
				wishes->plan, args->terms[0].option, args->terms[0].text);
	status = plan_file_read_one(args, wishes->plan, file, &tenant);
	if (status >= 0)
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
	/* A capture's GPU is the simulated one, whatever the address that it had. */
	if (!args->gpu && !args->source && !getenv("GPUPART_SIM") && *file->pci)
		args->gpu = file->pci;
	return -1;
}

void run_inherit_gpu(struct args *args)
{
	const char *gpu = getenv("GPUPART_GPU"), *set = getenv("GPUPART_SET");

	if (!args->gpu && set && *set && gpu && *gpu)
		args->gpu = gpu;
}

int run_check_program(const struct args *args)
{
	if (args->program[0] && *args->program[0])
		return -1;
	if (args->program[0])
		return cmd_fail(args->cmd, EXIT_RUN_FAILED,
				"the program is '': wants a name or a path after --");
	return cmd_fail(args->cmd, EXIT_RUN_FAILED, "no program: gpupart %s %s-- PROGRAM ARGS",
			args->cmd, strcmp(args->cmd, "run") ? "" : "SET ");
}

int run_confine(struct args *args, const struct run_wishes *wishes)
{
	struct gpupart_topology *topo;
	struct gpupart *gp;
	int status;

	if (gpupart_open(&gp))
		return cmd_fail(args->cmd, EXIT_RUN_FAILED, "no memory");
	status = args_topology(args, gp, &topo);
	if (status < 0) {
		if (wishes->plan)
			status = plan_file_check(args, wishes->plan, gp, topo, wishes->file);
		if (status < 0)
			status = prepare(args, gp, topo, wishes);
		gpupart_topology_close(topo);
	}
	gpupart_close(gp);
	return status;
}

int cmd_run(int argc, char **argv)
{
	const char *disable = getenv("GPUPART_DISABLE");
	static struct plan_file file;
	struct run_wishes wishes = { 0 };
	const struct args_option own[] = { { .name = "name", .value = &wishes.name },
					   { .name = "late", .value = &wishes.late },
					   { .name = "plan", .value = &wishes.plan },
					   { .name = "mem", .value = &wishes.mem },
					   { .name = "sm-count", .given = &wishes.sm_count },
					   { .name = "mps", .given = &wishes.mps }, { 0 } };
	struct args args = { 0 };
	double late;
	int status;

	status = args_parse(&args, ARGS_SET | ARGS_SIM | ARGS_GPU | ARGS_PROGRAM, own, run_help,
			    argc, argv);
	if (status >= 0)
		return status;
	status = run_check_program(&args);
	if (status >= 0)
		return status;
	if (!args.nr_terms && !wishes.plan && !wishes.mem)
		return cmd_fail(args.cmd, EXIT_RUN_FAILED,
				"no set: give one with -t, -g, -u, -n, --hex or --plan");
	if (wishes.plan) {
		status = take_plan(&args, &wishes, &file);
		if (status >= 0)
			return status;
	}
	if (wishes.mem) {
		status = take_mem(&args, &wishes);
		if (status >= 0)
			return status;
	}
	if (wishes.name) {
		status = check_name(&args, wishes.name);
		if (status >= 0)
			return status;
	}
	if (wishes.late) {
		status = args_seconds(&args, "--late", wishes.late, 0, &late);
		if (status >= 0)
			return status;
	}
	run_inherit_gpu(&args);
	status = args_simulate(&args);
	if (status >= 0)
		return status;
	if (disable && !strcmp(disable, "1")) {
		cmd_note(args.cmd, "GPUPART_DISABLE=1: %s runs on the whole GPU%s", args.program[0],
			 args.simulated ? ", simulated" : "");
		return run_become(&args);
	}
	status = run_confine(&args, &wishes);
	return status < 0 ? run_become(&args) : status;
}
