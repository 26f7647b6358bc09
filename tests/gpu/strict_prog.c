// SPDX-License-Identifier: MIT
/*
 * For tests/cli/strict.sh and tests/gpu/strict.sh: a program that does not use gpupart. It
 * executes its arguments in order, and prints each argument with CUDA's result.
 *
 * "kernel" launches a kernel. "legacy" uses the thread's default stream. "xN" launches a cluster of
 * N blocks. "coopN" launches a cooperative grid of N blocks. "graph" launches a captured cluster of
 * 8 blocks. "capture" only captures this cluster. "sync" waits. "sleepMS" sleeps for MS ms. "kill9"
 * kills the program. "exec" executes the program with the remaining arguments. "fork" executes the
 * remaining arguments in a child, before cuInit. "unload" unloads the module. "load" loads a module
 * with another kernel. "init" calls cuInit.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *P;

static P lib;
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args

/* CUlaunchConfig and CUlaunchAttribute. */
struct attribute {
	int id, pad;
	unsigned int value[16];
};

struct config {
	unsigned int grid[3], block[3], shared;
	P stream;
	struct attribute *attributes;
	unsigned int nr;
};

static const char first[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
	".visible .entry work_cluster()\n{ ret; }\n.visible .entry work_plain()\n{ ret; }\n";
static const char second[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
	".visible .entry other_cluster()\n{ ret; }\n";

static P ctx, module, cluster, plain, stream, exec_graph;

static int load(const char *text, const char *name)
{
	int err = CALL("cuModuleLoadData", (P *, const void *), (&module, text));

	return err ? err : CALL("cuModuleGetFunction", (P *, P, const char *),
				(&cluster, module, name));
}

static int begin(void)
{
	int err = CALL("cuInit", (unsigned int), (0));

	printf("cuInit=%d ", err);
	if (!err)
		err = CALL("cuDevicePrimaryCtxRetain", (P *, int), (&ctx, 0));
	printf("context=%d\n", err);
	fflush(stdout);
	if (!err)
		err = CALL("cuCtxSetCurrent", (P), (ctx));
	if (!err)
		err = load(first, "work_cluster");
	if (!err)
		err = CALL("cuModuleGetFunction", (P *, P, const char *),
			   (&plain, module, "work_plain"));
	if (!err)
		err = CALL("cuStreamCreate", (P *, unsigned int), (&stream, 0));
	return err;
}

static int launch(P function, unsigned int blocks, unsigned int id, unsigned int value)
{
	struct attribute attribute = { .id = id, .value = { value, 1, 1 } };
	struct config config = { { blocks, 1, 1 }, { 32, 1, 1 }, 0, stream, &attribute, !!id };

	return CALL("cuLaunchKernelEx", (const struct config *, P, P *, P *),
		    (&config, function, NULL, NULL));
}

static int kernel(P into)
{
	return CALL("cuLaunchKernel",
		    (P, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, P,
		     P *, P *), (plain, 4, 1, 1, 32, 1, 1, 0, into, NULL, NULL));
}

static int capture(void)
{
	P graph;
	int err = CALL("cuStreamBeginCapture_v2", (P, int), (stream, 2));

	if (!err)
		err = launch(cluster, 8, 4, 8);
	if (!err)
		err = CALL("cuStreamEndCapture", (P, P *), (stream, &graph));
	return err ? err : CALL("cuGraphInstantiateWithFlags", (P *, P, unsigned long long),
				(&exec_graph, graph, 0));
}

static int cooperative(unsigned int blocks)
{
	return CALL("cuLaunchCooperativeKernel",
		    (P, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, P,
		     P *), (plain, blocks, 1, 1, 1024, 1, 1, 0, stream, NULL));
}

static int graph(void)
{
	int err = exec_graph ? 0 : capture();

	return err ? err : CALL("cuGraphLaunch", (P, P), (exec_graph, stream));
}

static int act(const char *word)
{
	if (!strcmp(word, "kernel"))
		return kernel(stream);
	if (!strcmp(word, "legacy"))
		return kernel(NULL);
	if (!strncmp(word, "coop", 4))
		return cooperative(atoi(word + 4));
	if (*word == 'x')
		return launch(cluster, 2 * atoi(word + 1), 4, atoi(word + 1));
	if (!strcmp(word, "capture"))
		return capture();
	if (!strcmp(word, "graph"))
		return graph();
	if (!strcmp(word, "sync"))
		return CALL("cuStreamSynchronize", (P), (stream));
	if (!strcmp(word, "init"))
		return CALL("cuInit", (unsigned int), (0));
	if (!strcmp(word, "unload"))
		return CALL("cuModuleUnload", (P), (module));
	if (!strcmp(word, "load"))
		return load(second, "other_cluster");
	if (!strncmp(word, "sleep", 5))
		return usleep(atoi(word + 5) * 1000);
	if (!strcmp(word, "kill9"))
		return raise(SIGKILL);
	return -1;
}

int main(int argc, char **argv)
{
	int err, status = 0, i = 1;

	if (i < argc && !strcmp(argv[i], "fork")) {
		i++;
		if (fork()) {
			wait(&status);
			return WEXITSTATUS(status);
		}
	}
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		printf("%s\n", dlerror());
		return 3;
	}
	err = begin();
	if (err) {
		printf("begin=%d\n", err);
		return 4;
	}
	for (; i < argc; i++) {
		if (!strcmp(argv[i], "exec")) {
			argv[i] = argv[0];
			fflush(stdout);
			execv("/proc/self/exe", argv + i);
		}
		err = act(argv[i]);
		printf("%s=%d\n", argv[i], err);
		fflush(stdout);
		status |= err != 0;
	}
	return status;
}
