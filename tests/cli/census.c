// SPDX-License-Identifier: MIT
/*
 * A CUDA program that does not use gpupart. It makes a launch and prints the SMs on which the
 * blocks ran. It loads libcuda at run time, so that it also runs without a GPU.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define NR_BLOCKS 4096
#define RECORD_WORDS 6	/* of lib/confine/probe.ptx */

static unsigned int records[NR_BLOCKS * RECORD_WORDS];

static int read_all(const char *path, char *text, size_t len)
{
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, len - 1, file) : 0;

	if (file)
		fclose(file);
	text[n] = 0;
	return n ? 0 : -1;
}

/*
 * census PTX STATUS [WAIT]: exits with STATUS. With WAIT, the program first waits for a line on
 * stdin.
 */
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	unsigned long long out;
	unsigned int spin_ns = 200000, sm, i;
	void *params[] = { &out, &spin_ns };
	static char ptx[1 << 16], line[8];
	unsigned char seen[1024] = { 0 };
	const char *between = "";

#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
	if (argc < 3 || !lib || read_all(argv[1], ptx, sizeof(ptx)) ||
	    CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))) ||
	    CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
		 unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
		 void **), (function, NR_BLOCKS, 1, 1, 32, 1, 1, 0, NULL, params, NULL)) ||
	    CALL("cuCtxSynchronize", (void), ()) ||
	    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
		 (records, out, sizeof(records))))
		return 100;
	for (i = 0; i < NR_BLOCKS; i++)
		if (records[i * RECORD_WORDS] < sizeof(seen))
			seen[records[i * RECORD_WORDS]] = 1;
	for (sm = 0; sm < sizeof(seen); sm++)
		if (seen[sm]) {
			printf("%s%u", between, sm);
			between = " ";
		}
	puts("");
	fflush(stdout);
	if (argc > 3 && !fgets(line, sizeof(line), stdin))
		return 101;
	return atoi(argv[2]);
}
