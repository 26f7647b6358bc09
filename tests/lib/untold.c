// SPDX-License-Identifier: MIT
/*
 * Drivers that do not tell of their functions as it was measured: what cannot be right there
 * is refused, or said and counted. On the simulated driver.
 */
#include "../../lib/cuda.h"
#include "scenario.h"

static CU (*cuLaunchKernelEx)(const struct cuda_launch_config *, P, P *, P *);
static CU (*cuMemsetD8Async)(U64, unsigned char, size_t, P);

static struct program p;
static struct gpupart_tpcset all, set;
static P s;

static bool begins(void)
{
	void *lib;
	int err = attach(NULL);

	if (!tap_ok(!err && !program_start(&p, 0) && !cuStreamCreate(&s, 1), "attached: %s",
		    err ? gpupart_error(gp) : ""))
		return false;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	*(void **)&cuLaunchKernelEx = dlsym(lib, "cuLaunchKernelEx");
	*(void **)&cuMemsetD8Async = dlsym(lib, "cuMemsetD8Async");
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	set = list("0-3");
	return true;
}

static U64 dropped(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters.next_dropped;
}

/* ---------------------------------------------------------------- next-launch sets */

static void next_refused(const char *word)
{
	int err;

	if (!begins())
		return;
	for (int i = 0; i < 2; i++) {
		err = gpupart_next_set(gp, gpu, &set);
		tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), word), "refused: %d %s", err,
		       gpupart_error(gp));
	}
	tap_ok(!gpupart_next_set(gp, gpu, NULL), "none can be taken away");
	tap_ok(!cuMemsetD8Async(p.out, 0, 24 * 4096, s) && ran_on(&p, s, &all),
	       "and no launch has one");
	tap_ok(!gpupart_process_set(gp, gpu, &set) && ran_on(&p, s, &set),
	       "a process set holds all the same");
}

static void next_silent(void)
{
	next_refused("does not tell of launches");
}

static void next_renamed(void)
{
	next_refused("function 307 is not cuLaunchKernel");
}

/* Only the program's launch shows it: cuLaunchKernel is as expected. */
static void next_renamed_other(void)
{
	struct cuda_launch_config config = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	unsigned int ns = 1000;
	P args[] = { &p.out, &ns };
	int err;

	if (!begins())
		return;
	config.stream = s;
	tap_ok(!gpupart_next_set(gp, gpu, &set) && ran_on(&p, s, &set), "a next-launch set: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_next_set(gp, gpu, &set) && !dropped(), "another");
	tap_ok(!cuLaunchKernelEx(&config, p.function, args, NULL) && dropped() == 1,
	       "is used up by a launch of another name, which is counted");
	tap_ok(ran_on(&p, s, &all), "so it does not wait for a later one");
	err = gpupart_next_set(gp, gpu, &set);
	tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), "652 is not cuLaunchKernelEx"),
	       "and the next is refused: %d %s", err, gpupart_error(gp));
}

static const struct scenario scenarios[] = {
	{ "next-silent", next_silent, "@b", { "GPUPART_SIM_NO_API=1" }, NULL },
	{ "next-renamed", next_renamed, "@b", { "GPUPART_SIM_RENAMED=307" }, NULL },
	{ "next-renamed-other", next_renamed_other, "@b", { "GPUPART_SIM_RENAMED=652" }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
