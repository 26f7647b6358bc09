// SPDX-License-Identifier: MIT
/* A program that uses the GPU until its standard input ends. */
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned int) = lib ? (int (*)(unsigned int))dlsym(lib, "cuInit") : NULL;

	if (!init || init(0))
		return 1;
	puts("ready");
	fflush(stdout);
	return getchar() == 0;
}
