// SPDX-License-Identifier: MIT
/*
 * For tests/gpu/device_launch.sh: a program that does not use gpupart. It has a module with a
 * kernel that seems to launch other kernels from the GPU. The name of the kernel suggests such
 * launches, but the kernel makes no launches. So the program needs no device runtime. The program
 * prints each step with CUDA's result. Then it prints how often the kernel ran.
 */
#include <dlfcn.h>
#include <stdio.h>

typedef void *P;
typedef unsigned int U;
typedef unsigned long long U64;

static P lib, ctx, stream;
static U64 out;
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args

/* The kernel adds 1 to the word at @out. */
#define PTX(name) ".version 7.0\n.target sm_75\n.address_size 64\n" \
	".visible .entry " name "(.param .u64 out)\n{\n.reg .b64 %a;\n.reg .b32 %old;\n" \
	"ld.param.u64 %a, [out];\natom.global.add.u32 %old, [%a], 1;\nret;\n}\n"

static int say(const char *what, int result)
{
	printf("%s=%d ", what, result);
	return result;
}

static int launch(P function, U64 to)
{
	P args[] = { &to };

	return CALL("cuLaunchKernel", (P, U, U, U, U, U, U, U, P, P *, P *),
		    (function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
}

static int load(P *module, P *function, const char *text, const char *name)
{
	int err = CALL("cuModuleLoadData", (P *, const void *), (module, text));

	return err ? err : CALL("cuModuleGetFunction", (P *, P, const char *),
				(function, *module, name));
}

static P graph_of(P function)
{
	P graph, exec;

	if (CALL("cuStreamBeginCapture_v2", (P, int), (stream, 2)) || launch(function, out) ||
	    CALL("cuStreamEndCapture", (P, P *), (stream, &graph)) ||
	    CALL("cuGraphInstantiateWithFlags", (P *, P, U64), (&exec, graph, 0)))
		return NULL;
	return exec;
}

static int graph_launch(P exec)
{
	return CALL("cuGraphLaunch", (P, P), (exec, stream));
}

/* Like the CUDA runtime, loads the module as a library and launches a kernel of this library. */
static void library(const char *text, const char *name, P exec)
{
	P loaded, kernel, function = NULL;

	if (say("library", CALL("cuLibraryLoadData", (P *, const void *, P, P, U, P, P, U),
				(&loaded, text, NULL, NULL, 0, NULL, NULL, 0))) ||
	    say("kernel", CALL("cuLibraryGetKernel", (P *, P, const char *),
			       (&kernel, loaded, name))))
		return;
	say("launch", launch(kernel, out + 4));
	say("again", launch(kernel, out + 4));
	say("function", CALL("cuKernelGetFunction", (P *, P), (&function, kernel)));
	if (function)
		say("by-function", launch(function, out + 4));
	say("graph-beside", graph_launch(exec));
	say("unload", CALL("cuLibraryUnload", (P), (loaded)));
}

int main(void)
{
	static const char parent_text[] = PTX("fake_LaunchDevice");
	P module, plain, parent, exec;
	U words[2] = { 0, 0 };

	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib || CALL("cuInit", (U), (0)) ||
	    CALL("cuDevicePrimaryCtxRetain", (P *, int), (&ctx, 0)) ||
	    CALL("cuCtxSetCurrent", (P), (ctx)) ||
	    CALL("cuStreamCreate", (P *, U), (&stream, 1)) ||
	    CALL("cuMemAlloc_v2", (U64 *, size_t), (&out, sizeof(words))) ||
	    CALL("cuMemcpyHtoD_v2", (U64, const void *, size_t), (out, words, sizeof(words))))
		return 1;
	say("plain", load(&module, &plain, PTX("plain_kernel"), "plain_kernel") ?:
			     launch(plain, out));
	exec = graph_of(plain);
	say("graph", exec ? graph_launch(exec) : -1);
	if (!say("module", load(&module, &parent, parent_text, "fake_LaunchDevice")))
		say("launch", launch(parent, out + 4));
	library(parent_text, "fake_LaunchDevice", exec);
	say("plain", launch(plain, out));
	say("graph", graph_launch(exec));
	say("sync", CALL("cuStreamSynchronize", (P), (stream)));
	if (CALL("cuMemcpyDtoH_v2", (P, U64, size_t), (words, out, sizeof(words))))
		return 1;
	printf("\nran %u %u\n", words[0], words[1]);
	return 0;
}
