/* SPDX-License-Identifier: MIT */
/*
 * For tests of the library on the simulated driver. This header declares the driver's calls, and
 * has a program that launches. It also has the code of a parent. For each scenario, the parent
 * starts itself as a child with the scenario's environment, and counts the lines of the child.
 */
#ifndef GPUPART_TESTS_LIB_SCENARIO_H
#define GPUPART_TESTS_LIB_SCENARIO_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/core/hash.h"
#include "tests/tap.h"

#define BOARD "tests/data/gh100-h200-%c/capture.txt"

static struct gpupart *gp;
static struct gpupart_gpu *gpu;

/* ----------------------------------------------------------- the driver, by hand */

typedef int CU;
typedef void *P;
typedef unsigned long long U64;
typedef unsigned int U;

#define CALLS(F)                                                             \
	F(cuInit, "cuInit", (U))                                             \
	F(cuDeviceGet, "cuDeviceGet", (int *, int))                          \
	F(cuCtxCreate, "cuCtxCreate_v2", (P *, U, int))                      \
	F(cuCtxDestroy, "cuCtxDestroy_v2", (P))                              \
	F(cuCtxSetCurrent, "cuCtxSetCurrent", (P))                           \
	F(cuStreamCreate, "cuStreamCreate", (P *, U))                        \
	F(cuStreamSynchronize, "cuStreamSynchronize", (P))                   \
	F(cuModuleLoadData, "cuModuleLoadData", (P *, const void *))         \
	F(cuModuleUnload, "cuModuleUnload", (P))                             \
	F(cuModuleGetFunction, "cuModuleGetFunction", (P *, P, const char *)) \
	F(cuFuncSetAttribute, "cuFuncSetAttribute", (P, int, int))           \
	F(cuLaunchKernel, "cuLaunchKernel", (P, U, U, U, U, U, U, U, P, P *, P *)) \
	F(cuMemAlloc, "cuMemAlloc_v2", (U64 *, size_t))                      \
	F(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (P, U64, size_t))                 \
	F(cuGetExportTable, "cuGetExportTable", (const void **, const void *)) \
	F(cuGreenCtxCreate, "cuGreenCtxCreate", (P *, P, int, U))

#define DECLARE(call, symbol, args) __attribute__((unused)) static CU (*call) args;
CALLS(DECLARE)
#undef DECLARE

__attribute__((unused))
static int driver_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib || !dlsym(lib, "gpupart_sim_capture"))
		return -1;
#define FIND(call, symbol, args) *(void **)&call = dlsym(lib, symbol);
	CALLS(FIND)
#undef FIND
	return 0;
}

/* Like in a program, a context with a census kernel. */
struct program {
	P ctx, function;
	U64 out;
};

__attribute__((unused))
static int program_start(struct program *p, int device)
{
	static const char ptx[] =
		".version 4.2\n.target sm_30\n.address_size 64\n"
		".visible .entry gpupart_census(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n";
	P module;
	int dev;

	return cuInit(0) || cuDeviceGet(&dev, device) || cuCtxCreate(&p->ctx, 0, dev) ||
	       cuModuleLoadData(&module, ptx) ||
	       cuModuleGetFunction(&p->function, module, "gpupart_census") ||
	       cuFuncSetAttribute(p->function, 8, 200000) || cuMemAlloc(&p->out, 24 * 4096);
}

/* Launches @blocks blocks. Each block occupies an SM for @ns. Does not wait. */
__attribute__((unused))
static int program_launch(struct program *p, P stream, unsigned int blocks, unsigned int ns)
{
	P args[] = { &p->out, &ns };

	return cuLaunchKernel(p->function, blocks, 1, 1, 32, 1, 1, 200000, stream, args, NULL);
}

/* Makes a launch that fills the whole GPU. Stores in @seen the TPCs on which the launch ran. */
__attribute__((unused))
static int program_census(struct program *p, const struct gpupart_topology *topo, P stream,
			  struct gpupart_tpcset *seen)
{
	static struct { unsigned int smid, cluster; U64 start, end; } records[4096];
	unsigned int blocks = 2 * gpupart_topology_nr_sms(topo);

	if (program_launch(p, stream, blocks, 1000) || cuStreamSynchronize(stream) ||
	    cuMemcpyDtoH(records, p->out, blocks * sizeof(records[0])))
		return -1;
	memset(seen, 0, sizeof(*seen));
	for (unsigned int b = 0; b < blocks; b++)
		gpupart_tpcset_add(seen, gpupart_topology_sm_tpc(topo, records[b].smid));
	return 0;
}

__attribute__((unused))
static bool ran_on(struct program *p, P stream, const struct gpupart_tpcset *want)
{
	struct gpupart_tpcset seen;

	return !program_census(p, gpupart_gpu_topology(gpu), stream, &seen) &&
	       gpupart_tpcset_equal(&seen, want);
}

__attribute__((unused))
static int attach(const char *selector)
{
	if (gpupart_open(&gp) || driver_open())
		return -EIO;
	return gpupart_attach(gp, selector, NULL, &gpu);
}

__attribute__((unused))
static struct gpupart_tpcset list(const char *text)
{
	struct gpupart_tpcset set;

	if (gpupart_tpcset_parse_list(gp, text, &set))
		exit(9);
	return set;
}

/*
 * Runs a program that does not use gpupart. The program must use the TPCs @want. If @want is
 * NULL, it must use the whole GPU.
 */
__attribute__((unused))
static void program_unaware(const char *want)
{
	struct gpupart_topology *topo;
	struct gpupart_tpcset set, seen = { { 0 } };
	struct program p;

	gpupart_open(&gp);
	if (!tap_ok(!gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo) &&
			    !driver_open() && !program_start(&p, 0),
		    "a program"))
		return;
	set = want ? list(want) : gpupart_topology_all(topo);
	tap_ok(!program_census(&p, topo, NULL, &seen) && gpupart_tpcset_equal(&seen, &set),
	       "its launches ran on %u TPCs", gpupart_tpcset_count(&seen));
}

/* ------------------------------------------------------------------------ parent */

/*
 * @sim, and the text after the "=" of @env, may contain these words: "@b" is the capture of a
 * board, "@/NAME" is a file of the scratch folder, "@inject" is the injected library, "@tool" is
 * the library of another tool, "@key" is the key in the cache, and "@pci1" is the made-up address
 * of the second simulated GPU. Colons separate the parts of @sim. @prepare runs in the parent,
 * with an empty cache.
 */
struct scenario {
	const char *name;
	void (*run)(void);
	const char *sim;
	const char *env[5];
	void (*prepare)(const struct scenario *s);
};

static char self[2048], build[2048], scratch[64], key[32];

static const char *expand(const char *text, char *into, size_t len)
{
	if (!strcmp(text, "@inject"))
		snprintf(into, len, "%s/lib/gpupart/libgpupart-inject.so", build);
	else if (!strcmp(text, "@tool"))
		snprintf(into, len, "%s/tests/other_tool.so", build);
	else if (!strcmp(text, "@key"))
		snprintf(into, len, "%s", key);
	else if (!strcmp(text, "@pci1"))
		snprintf(into, len, "0000:02:00.0");
	else if (!strncmp(text, "@/", 2))
		snprintf(into, len, "%s%s", scratch, text + 1);
	else if (text[0] == '@' && text[1] && !text[2])
		snprintf(into, len, BOARD, text[1]);
	else
		snprintf(into, len, "%s", text);
	return into;
}

static void child_environment(const struct scenario *s)
{
	char path[4096], name[64], sim[8192] = "", *parts = strdup(s->sim), *part, *rest = NULL;
	static const char *const cleared[] = {
		"GPUPART_SET", "GPUPART_GPU", "GPUPART_CHECKED", "GPUPART_DISABLE", "GPUPART_NAME",
		"GPUPART_NEXT_INJECTION", "CUDA_INJECTION64_PATH", "CUDA_VISIBLE_DEVICES",
		"CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "GPUPART_SM_COUNT",
		"GPUPART_NO_DEVICE_LAUNCH", "GPUPART_RECORDS", "GPUPART_RULES",
		"GPUPART_GRAPH_SETS",
	};

	for (unsigned int i = 0; i < sizeof(cleared) / sizeof(cleared[0]); i++)
		unsetenv(cleared[i]);
	for (part = strtok_r(parts, ":", &rest); part; part = strtok_r(NULL, ":", &rest))
		snprintf(sim + strlen(sim), sizeof(sim) - strlen(sim), "%s%s", sim[0] ? ":" : "",
			 expand(part, path, sizeof(path)));
	setenv("GPUPART_SIM", sim, 1);
	snprintf(path, sizeof(path), "%s/lib/gpupart/sim", build);
	setenv("LD_LIBRARY_PATH", path, 1);
	setenv("GPUPART_LOG", expand("@/log", path, sizeof(path)), 1);
	setenv("XDG_CACHE_HOME", expand("@/cache", path, sizeof(path)), 1);
	setenv("TEST_SCRATCH", scratch, 1);
	setenv("TEST_BUILD", build, 1);
	for (int i = 0; i < 5 && s->env[i]; i++) {
		const char *eq = strchr(s->env[i], '=');

		snprintf(name, sizeof(name), "%.*s", (int)(eq - s->env[i]), s->env[i]);
		setenv(name, expand(eq + 1, path, sizeof(path)), 1);
	}
}

/* Starts this program as scenario @s. Its output goes to descriptor @out. */
static pid_t child_start(const struct scenario *s, int out)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(out, 1);
		child_environment(s);
		execl(self, self, s->name, (char *)NULL);
		_exit(126);
	}
	return pid;
}

/*
 * Runs this program as scenario @s. Does not count the lines of this run. Returns the wait status
 * of the run, or -1.
 */
__attribute__((unused))
static int child_quiet(const struct scenario *s)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), status = -1;

	waitpid(child_start(s, null), &status, 0);
	close(null);
	return status;
}

static void run_scenario(const struct scenario *s)
{
	char line[1024], command[2 * sizeof(scratch) + 64];
	int fd[2], status, planned = 0, failed = tap_failed;
	FILE *out;
	pid_t pid;

	snprintf(command, sizeof(command), "rm -rf %s && mkdir -m 0700 %s", scratch, scratch);
	if (!tap_ok(!system(command) && !pipe2(fd, O_CLOEXEC), "%s: starts", s->name))
		return;
	if (s->env[0] && !strcmp(s->env[0], "LD_PRELOAD=@inject") && strpbrk(build, " \t:")) {
		tap_skip("%s: LD_PRELOAD takes no path with a blank or colon", s->name);
		return;
	}
	if (s->prepare)
		s->prepare(s);
	pid = child_start(s, fd[1]);
	close(fd[1]);
	out = fdopen(fd[0], "r");
	while (fgets(line, sizeof(line), out)) {
		char *text = strstr(line, " - ");

		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "1..", 3))
			planned = 1;
		else if (!strncmp(line, "ok ", 3) && strstr(line, "# SKIP "))
			tap_skip("%s: %s", s->name, strstr(line, "# SKIP ") + 7);
		else if (text && (!strncmp(line, "ok ", 3) || !strncmp(line, "not ok ", 7)))
			tap_ok(line[0] == 'o', "%s: %s", s->name, text + 3);
		else
			printf("# %s: %s\n", s->name, line);
	}
	fclose(out);
	waitpid(pid, &status, 0);
	if (!planned)
		tap_ok(0, "%s: ended with status %#x before its plan", s->name, status);
	else if (status && failed == tap_failed)
		tap_ok(0, "%s: ended with status %#x although no check failed", s->name, status);
}

/* As a child, runs the scenario that the command line names. As the parent, runs all scenarios. */
static int scenario_main(int argc, char **argv, const struct scenario *all, unsigned int nr)
{
	char command[128];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	for (unsigned int i = 0; argc == 2 && i < nr; i++)
		if (!strcmp(all[i].name, argv[1]) && getenv("TEST_SCRATCH")) {
			all[i].run();
			return tap_done();
		}
	if (len < 0)
		return 1;
	self[len] = 0;
	strcpy(build, self);
	*strrchr(build, '/') = 0;
	*strrchr(build, '/') = 0;
	strcpy(scratch, "/tmp/gpupart-test-XXXXXX");
	if (!mkdtemp(scratch))
		return 1;
	for (unsigned int i = 0; i < nr; i++)
		if (argc < 2 || !strcmp(all[i].name, argv[1]))
			run_scenario(&all[i]);
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command) ? 1 : tap_done();
}

#endif
