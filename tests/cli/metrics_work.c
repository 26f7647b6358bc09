// SPDX-License-Identifier: MIT
/*
 * For tests/cli/metrics.sh: 50 times per second, launches 16 kernels one after the other. On the
 * simulated GPU, each kernel takes 10 ms. The program ends when the file GO is removed. While the
 * file GO.hold exists, the program pauses. Arguments: GO [MOST-LAUNCHES].
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{ ret; }\n";

int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	long left = argc > 2 ? atol(argv[2]) : -1;
	unsigned int ns = 10000000;
	unsigned long long out;
	void *params[] = { &out, &ns };
	char hold[512];

	if (argc < 2 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, 1024)))
		return 1;
	snprintf(hold, sizeof(hold), "%s.hold", argv[1]);
	for (; !access(argv[1], F_OK); usleep(20000)) {
		for (int i = 0; i < 16 && left && access(hold, F_OK); i++, left -= left > 0)
			if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int,
						    unsigned int, unsigned int, unsigned int,
						    unsigned int, unsigned int, void *, void **,
						    void **),
				 (function, 16, 1, 1, 32, 1, 1, 0, NULL, params, NULL)))
				return 2;
		if (CALL("cuCtxSynchronize", (void), ()))
			return 3;
	}
	return 0;
}
