// SPDX-License-Identifier: MIT
/*
 * Prints the amount of GPU memory that the driver reports to a program. Also prints whether the
 * program can allocate 512 MiB and then 1 GiB more.
 */
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx;
	size_t free, total;
	unsigned long long at;
	int first;
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
	if (!lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuMemGetInfo_v2", (size_t *, size_t *), (&free, &total)))
		return 100;
	first = CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&at, 512ul << 20));
	printf("%zu MiB, %d %d\n", total >> 20, first,
	       CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&at, 1ul << 30)));
	return 42;
}
