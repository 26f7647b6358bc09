// SPDX-License-Identifier: MIT
/*
 * For tests/cli/top.sh. With the arguments FILE NS US, launches a kernel every US us, until FILE
 * is removed. Each kernel takes NS ns.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{ ret; }\n"
	".visible .entry gpupart_empty()\n{ ret; }\n";

static void *lib;

static int launch(void *function, unsigned int blocks, void **params)
{
	return CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
				       unsigned int, unsigned int, unsigned int, unsigned int,
				       void *, void **, void **),
		    (function, blocks, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
}

int main(int argc, char **argv)
{
	unsigned int ns = argc == 4 ? atoi(argv[2]) : 0;
	void *ctx, *module, *census, *empty;
	unsigned long long out;
	void *params[] = { &out, &ns };

	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (argc != 4 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&census, module, "gpupart_census")) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&empty, module, "gpupart_empty")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, 64 << 10)))
		return 1;
	while (!access(argv[1], F_OK)) {
		if (launch(census, 1, params) || launch(empty, 1, NULL) ||
		    CALL("cuCtxSynchronize", (void), ()))
			return 2;
		usleep(atoi(argv[3]));
	}
	return 0;
}
