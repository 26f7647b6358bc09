// SPDX-License-Identifier: MIT
/*
 * Prepares and starts a program for 'gpupart run'; see run.h. Computes the set, and checks the mask
 * bits in a child process. Puts the set, the job, the quota and the injected library into the
 * environment. One thread. Does not call CUDA.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/mps/mps.h"
#include "cli/plan/file.h"
#include "cli/start/rules.h"
#include "cli/start/run.h"
#include "cli/target/audit.h"
#include "cli/target/state_dir.h"
#include "cli/target/check.h"
#include "cli/target/cuda.h"
#include "cli/target/tenants.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/out.h"
#include "cli/util/path_list.h"
#include "cli/util/paths.h"
#include "cli/util/tunables.h"

void run_inherit_gpu(struct args *args)
{
	const char *gpu = getenv("GPUPART_GPU"), *set = getenv("GPUPART_SET");

	if (!args->gpu && set && *set && gpu && *gpu)
		args->gpu = alloc_part(gpu, ',', 0);
}

void run_take_gpus(struct args *args, struct run_wishes *wishes)
{
	const char *gpu = getenv("GPUPART_GPU");

	wishes->names_gpus = args->gpu;
	wishes->gpus = args->gpu;
	run_inherit_gpu(args);
	if (!wishes->gpus && args->gpu)
		wishes->gpus = gpu;
	if (wishes->gpus && (strchr(wishes->gpus, ',') || !strcmp(wishes->gpus, "all")))
		args->gpu = NULL;
	else
		wishes->gpus = NULL;
}

int run_check_program(const struct args *args)
{
	if (args->program[0] && *args->program[0])
		return 0;
	if (args->program[0])
		return failure("the program's name is empty: write a name or a path after --");
	return failure("no program: use gpupart %s %s-- PROGRAM ARGS", args->cmd,
		       strcmp(args->cmd, "run") ? "" : "SET ");
}

/*
 * @gpu is a GPU of the outer run. Stores in *same whether @gpu is at @pci. Returns 0 or an error.
 */
static int same_gpu(const struct args *args, const char *gpu, const char *pci, bool *same)
{
	struct gpupart_topology *limited;
	struct cuda_simulated found;
	char address[20];

	if (args->simulated) {
		if (cuda_find_simulated(gpu, &found))
			return usage_error("GPUPART_GPU=%s: %s", gpu, found.why);
		snprintf(address, sizeof(address), "%s", found.pci);
	} else {
		if (gpupart_topology_open(cmd_gp, NULL, gpu, &limited))
			return usage_error("GPUPART_GPU=%s: %s", gpu, gpupart_error(cmd_gp));
		snprintf(address, sizeof(address), "%s", gpupart_topology_info(limited)->pci);
		gpupart_topology_close(limited);
	}
	*same = !strcmp(address, pci);
	return 0;
}

/*
 * @gpus lists the GPUs of the outer run. Sets *n to the position of the GPU at @pci in this list.
 */
static int find_outer(const struct args *args, const char *gpus, const char *pci, unsigned int *n)
{
	bool same = false;
	int status = 0;
	char *gpu;

	for (*n = 0; (gpu = alloc_part(gpus, ',', *n)); ++*n) {
		status = same_gpu(args, gpu, pci, &same);
		free(gpu);
		if (status || same)
			return status;
	}
	return usage_error("this process has a limit on GPU %s and cannot use GPU %s instead", gpus,
			   pci);
}

int run_outer_limit(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		    struct gpupart_tpcset *set, const struct gpupart_tpcset **outer)
{
	const char *words = getenv("GPUPART_SET"), *gpus = getenv("GPUPART_GPU");
	unsigned int n = 0;
	int status;
	char *part;

	*outer = NULL;
	if (!words || !*words)
		return 0;
	if (gpus && *gpus) {
		status = find_outer(args, gpus, pci, &n);
		if (status)
			return status;
	}
	part = alloc_part(words, ';', strchr(words, ';') ? n : 0);
	status = gpupart_set_parse(cmd_gp, topo, part ? part : "", set);
	free(part);
	if (status)
		return usage_error("GPUPART_SET=%s: %s", words, gpupart_error(cmd_gp));
	*outer = set;
	return 0;
}

static int work_out_set(const struct args *args, const struct gpupart_topology *topo,
			const char *pci, struct gpupart_tpcset *set)
{
	const struct gpupart_tpcset *outer;
	struct gpupart_tpcset around;
	int status;

	status = run_outer_limit(args, topo, pci, &around, &outer);
	if (!status && !args->nr_terms) {
		/* Without SET, the run has a quota or rules, but no set of its own. */
		*set = outer ? *outer : gpupart_topology_all(topo);
		return status;
	}
	return status ?: args_set(args, topo, pci, outer, set);
}

/* Puts @path in front of LD_PRELOAD. Returns 0 or an error. */
static int preload(const char *path)
{
	const char *others = getenv("LD_PRELOAD");
	char *joined;

	if (others && path_list_has(others, PATH_LIST_PRELOAD, path))
		return 0;
	if (asprintf(&joined, "%s%s%s", path, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return failure("no memory");
	setenv("LD_PRELOAD", joined, 1);
	free(joined);
	return 0;
}

int run_inject(bool strict)
{
	const char *taken = getenv("CUDA_INJECTION64_PATH");
	char path[PATH_MAX];
	bool is_taken;
	int err;

	tunables_raise(NULL);
	err = paths_package(PATHS_INJECT, path, sizeof(path));
	if (err)
		return failure("%s is not installed: %s", PATHS_INJECT, strerror(-err));
	/* In a container, the variable may name the library of the host's gpupart. */
	is_taken = taken && *taken && !paths_same(taken, path) && !paths_is_inject(taken);
	if (!is_taken)
		setenv("CUDA_INJECTION64_PATH", path, 1);
	/*
	 * Preload the library. Then it always gets its thread-local memory, even if the program
	 * later loads many libraries.
	 */
	if (!is_taken && !strict)
		return 0;
	if (!strpbrk(path, " :"))
		return preload(path);
	if (!is_taken)
		return failure(
			"--strict: LD_PRELOAD cannot contain a path with a blank or colon (%s)",
			path);
	return failure(
		"CUDA_INJECTION64_PATH is already set to %s, and LD_PRELOAD cannot contain a path with a blank or colon (%s)",
		taken, path);
}

int run_become(const struct args *args)
{
	int err;

	execvp(args->program[0], args->program);
	err = errno;
	return cmd_fail(cmd_name, err == ENOENT ? EXIT_RUN_NOT_FOUND : EXIT_RUN_NOT_EXECUTABLE,
			"%s: %s", args->program[0], strerror(err));
}

/*
 * Returns the job's name. This is the value of --name, or of GPUPART_NAME if it is valid, or NULL.
 */
static const char *job_name(const char *name)
{
	const char *called = name ? name : getenv("GPUPART_NAME");

	if (!called || !*called || check_is_name(called))
		return called && *called ? called : NULL;
	remark("GPUPART_NAME=%s is not a valid name: the job has no name", called);
	return NULL;
}

/*
 * Records the job. So `gpupart set` finds the program before the program uses the GPU. If a quota
 * needs the job and the job cannot be recorded, returns an error. Otherwise returns 0.
 */
static int begin_job(const struct gpupart_topology *topo, const struct run_wishes *wishes,
		     const char *gpu, const struct gpupart_tpcset *set, const char *called,
		     char id[GPUPART_JOB_STRLEN])
{
	int err = gpupart_job_begin(cmd_gp, called, topo, gpu, set, id);
	char why[256];
	const char *advice;

	if (!err) {
		setenv("GPUPART_JOB", id, 1);
		return 0;
	}
	if (wishes->mem)
		return failure("--mem %s: the quota cannot be recorded: %s", wishes->mem,
			       gpupart_error(cmd_gp));
	unsetenv("GPUPART_JOB");
	if (wishes->name)
		remark("'gpupart set %s' will not reach processes that start later: %s",
		       wishes->name, gpupart_error(cmd_gp));
	/*
	 * In containers, the directory is often missing or read-only. So print nothing in this
	 * case.
	 */
	advice = err == -EPERM || err == -EACCES || err == -ENOSPC ?
		 state_dir_advice(why, sizeof(why)) : NULL;
	if (advice && !wishes->name)
		remark("'gpupart ps' and 'gpupart set' will not find the program: %s: %s", why,
		       advice);
	return 0;
}

/* Records the quota before the program starts. Returns 0 or an error. */
static int begin_tenant(const struct args *args, const char *tenant, const char *gpu,
			const struct run_wishes *wishes)
{
	char old[TENANTS_SIZE_STRLEN], new[TENANTS_SIZE_STRLEN], bytes[24];
	struct gpupart_tenant now;
	uint64_t before;

	if (!wishes->mem) {
		if (tenant && !gpupart_tenant_get(cmd_gp, tenant, gpu, &now) && now.quota &&
		    !getenv("GPUPART_TENANT"))
			remark(
				"tenant %s has a quota of %s on %s: the quota does not apply to this program, because it runs without --mem",
				tenant, tenants_size(old, now.quota), gpu);
		return 0;
	}
	if (gpupart_tenant_begin(cmd_gp, tenant, gpu, wishes->mem_bytes, &before))
		return failure("--mem %s: %s", wishes->mem, gpupart_error(cmd_gp));
	if (before && before != wishes->mem_bytes)
		remark("the quota of tenant %s on %s was %s and is now %s, for all its processes",
		       tenant, gpu, tenants_size(old, before),
		       tenants_size(new, wishes->mem_bytes));
	if (!gpupart_tenant_get(cmd_gp, tenant, gpu, &now))
		tenants_note_above(&now);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)wishes->mem_bytes);
	setenv("GPUPART_TENANT", tenant, 1);
	setenv("GPUPART_MEM", bytes, 1);
	audit_join();
	tunables_raise(args->program[0]);
	return 0;
}

/* The results for all GPUs. */
struct parts {
	char *gpus, *sets, *keys;	/* values of variables in the environment */
	unsigned int nr;
	struct check check;		/* result for the last GPU */
	struct rules rules;
};

static bool has_part(const char *list, const char *wanted)
{
	bool same = false;
	char *part;

	for (unsigned int n = 0; !same && (part = alloc_part(list, ',', n)); n++) {
		same = !strcmp(part, wanted);
		free(part);
	}
	return same;
}

static void add_part(char **list, const char *separator, const char *part)
{
	char *longer = alloc_text("%s%s%s", *list ? *list : "", *list ? separator : "", part);

	free(*list);
	*list = longer;
}

/*
 * Prepares one GPU: reads the topology, computes the set and fills the environment. Returns 0 or an
 * error.
 */
static int prepare(const struct args *args, const struct gpupart_topology *topo,
		   const struct run_wishes *wishes, struct parts *parts)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	/* A capture may lack the PCI address of the simulated GPU. */
	const char *gpu = !args->simulated ? info->pci : args->gpu ? args->gpu : "0";
	char list[GPUPART_TPCSET_STRLEN], text[OUT_SET_STRLEN], id[GPUPART_JOB_STRLEN];
	struct check *check = &parts->check;
	const char *called, *tenant;
	struct gpupart_tpcset set;
	int status;

	memset(check, 0, sizeof(*check));
	/*
	 * Check the mask bits before the set is computed. The check may take long, and -n holds a
	 * lock during the computation.
	 */
	status = check_in_child(gpu, check) ?: work_out_set(args, topo, gpu, &set);
	if (!status)
		status = rules_add(&parts->rules, &wishes->rules, args, topo, gpu, &set);
	if (!status)
		status = run_inject(wishes->strict);
	if (*check->pci)
		gpu = check->pci;
	if (!status && wishes->mem)
		status = tenants_check_size(gpu, check->memory, wishes->mem_bytes);
	if (!status && parts->nr && has_part(parts->gpus, gpu))
		status = usage_error("--gpu %s: GPU %s is given twice", wishes->gpus, gpu);
	if (status)
		return status;
	gpupart_tpcset_format_list(&set, list, sizeof(list));
	add_part(&parts->gpus, ",", gpu);
	add_part(&parts->sets, ";", list);
	add_part(&parts->keys, ",", check->key);
	called = job_name(wishes->name);
	status = begin_job(topo, wishes, gpu, &set, called, id);
	/*
	 * All GPUs have the same tenant. If the job has no name, the name of the tenant is the job
	 * id on the first GPU.
	 */
	tenant = !wishes->mem || called ? called : parts->nr ? getenv("GPUPART_TENANT") : id;
	if (!status)
		status = begin_tenant(args, tenant, gpu, wishes);
	if (status)
		return status;
	parts->nr++;
	if (wishes->name)
		setenv("GPUPART_NAME", wishes->name, 1);
	/* The caller or an outer run may have set these variables, so do not unset them. */
	if (wishes->sm_count)
		setenv("GPUPART_SM_COUNT", "1", 1);
	if (wishes->profile)
		setenv("GPUPART_PROFILE", "1", 1);
	/* For a real GPU, print nothing, like taskset. Report a simulated GPU. */
	if (args->simulated && !wishes->quiet)
		remark("TPCs %s of %s, simulated", out_set(text, sizeof(text), topo, &set), gpu);
	if (wishes->mps && parts->nr == 1)
		mps_join(args->simulated);
	else if (!wishes->mps && !args->simulated)
		mps_note_turns(gpu);
	return 0;
}

static int prepare_one(struct args *args, const struct run_wishes *wishes, struct parts *parts)
{
	struct gpupart_topology *topo;
	int status = args_topology(args, &topo);

	if (status)
		return status;
	if (wishes->plan)
		status = plan_file_check(wishes->plan, topo, wishes->file);
	if (!status)
		status = prepare(args, topo, wishes, parts);
	gpupart_topology_close(topo);
	return status;
}

/* Lists the GPUs that CUDA reports, separated by commas. The caller frees the list. */
static int list_all(char **gpus)
{
	struct cuda_probe probe;
	int err = cuda_probe(&probe);

	*gpus = NULL;
	if (err || !*probe.pci[0])
		return usage_error("--gpu all: %s", err ? probe.why : "CUDA reports no GPU");
	for (int i = 0; i < CUDA_MAX_GPUS && *probe.pci[i]; i++)
		add_part(gpus, ",", probe.pci[i]);
	return 0;
}

static int prepare_list(struct args *args, const struct run_wishes *wishes, struct parts *parts)
{
	char *gpus = NULL, *gpu = NULL;
	int status = 0;

	if (!strcmp(wishes->gpus, "all"))
		status = list_all(&gpus);
	else
		gpus = alloc_text("%s", wishes->gpus);
	for (unsigned int n = 0; !status && (gpu = alloc_part(gpus, ',', n)); n++) {
		if (!*gpu || n == CUDA_MAX_GPUS)
			status = usage_error("--gpu %s: must be 1 to %d GPUs, separated by commas",
					     wishes->gpus, CUDA_MAX_GPUS);
		args->gpu = gpu;
		if (args->simulated)
			args->source = NULL;
		status = status ?: args_simulate(args) ?: prepare_one(args, wishes, parts);
		free(gpu);
	}
	free(gpus);
	return status;
}

/* If an outer run uses several GPUs and one GPU would have no limit, returns an error. */
static int check_outer(const struct parts *parts)
{
	const char *words = getenv("GPUPART_SET"), *gpus = getenv("GPUPART_GPU");
	char *left = words && *words && gpus ? alloc_part(gpus, ',', parts->nr) : NULL;

	if (!left)
		return 0;
	free(left);
	return usage_error(
		"this process has a limit on GPUs %s: a run inside it must use all of these GPUs",
		gpus);
}

/* The program may see GPUs that --gpu does not name. Reports these GPUs. */
static void note_free(const struct args *args, const struct run_wishes *wishes,
		      const struct parts *parts)
{
	for (int i = 0; wishes->names_gpus && i < parts->check.nr_visible; i++)
		if (!has_part(parts->gpus, parts->check.visible[i]))
			remark("GPU %s%s is not named by --gpu: %s", parts->check.visible[i],
			       args->simulated ? " (simulated)" : "",
			       wishes->strict ? "a launch on this GPU ends the program" :
						"launches on this GPU are not confined");
}

/* The program may have another HOME. So puts the directory of learnt maps into the environment. */
static void name_maps(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool named = cache && *cache == '/';
	char path[PATH_MAX];

	if (!named && (!home || *home != '/'))
		return;
	snprintf(path, sizeof(path), "%s%s", named ? cache : home, named ? "" : "/.cache");
	setenv("GPUPART_MAPS", path, 0);
}

int run_confine(struct args *args, const struct run_wishes *wishes)
{
	struct parts parts = { 0 };
	char *rules;
	int status;

	if (gpupart_open(&cmd_gp))
		return failure("no memory");
	status = (wishes->gpus ? prepare_list(args, wishes, &parts) :
				 prepare_one(args, wishes, &parts)) ?:
		 check_outer(&parts);
	if (!status) {
		note_free(args, wishes, &parts);
		setenv("GPUPART_SET", parts.sets, 1);
		setenv("GPUPART_GPU", parts.gpus, 1);
		setenv("GPUPART_CHECKED", parts.keys, 1);
		/*
		 * Remove the rules of an outer run. These rules are for the sets of the outer run.
		 */
		unsetenv("GPUPART_RULES");
		rules = rules_take(&parts.rules, &wishes->rules);
		if (rules)
			setenv("GPUPART_RULES", rules, 1);
		free(rules);
		name_maps();
	}
	free(parts.gpus);
	free(parts.sets);
	free(parts.keys);
	return status;
}
