// SPDX-License-Identifier: MIT
/*
 * For tests/cli/qos*.sh: launches until a file is removed. The first argument names this file.
 * After each launch, the program reports one unit for each SM that the launch used. The second
 * argument is optional, and is the duration of a block in ns. With the second argument, the
 * program launches four kernels at a time and reports nothing.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{ ret; }\n";
static struct { unsigned int smid, zero; unsigned long long start, end; } records[1024];
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	void (*add)(unsigned long long);
	unsigned int ns = argc > 2 ? atoi(argv[2]) : 1000, left = 3;
	unsigned long long out;
	void *params[] = { &out, &ns };

	if (argc < 2 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))))
		return 1;
	void *part = dlopen("libgpupart.so.0", RTLD_NOW | RTLD_NOLOAD);
	add = part && argc == 2 ? dlsym(part, "gpupart_progress_add") : NULL;
	while (!access(argv[1], F_OK)) {
		char seen[1024] = { 0 };
		unsigned int nr = 0;

		if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
					    unsigned int, unsigned int, unsigned int, unsigned int,
					    void *, void **, void **),
			 (function, 1024, 1, 1, 1024, 1, 1, 0, NULL, params, NULL)))
			return 2;
		if (argc > 2 && left--)
			continue;
		left = 3;
		if (CALL("cuCtxSynchronize", (void), ()) ||
		    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
			 (records, out, sizeof(records))))
			return 2;
		for (int i = 0; i < 1024; i++) {
			nr += !seen[records[i].smid];
			seen[records[i].smid] = 1;
		}
		if (add)
			add(nr);
		if (argc == 2)
			usleep(5000);
	}
	return 0;
}
