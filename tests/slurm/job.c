// SPDX-License-Identifier: MIT
/*
 * The task of a job. It is a CUDA program that does not use gpupart. Usage: job PTX MIB SECONDS
 * [FILE]. The program allocates MIB of memory, launches on all its TPCs, and launches again after
 * SECONDS. Then it prints "TPCS MIB". TPCS is a list of the TPCs of both launches, and MIB is the
 * allocated memory. With FILE, it does not wait for SECONDS; it waits until FILE is removed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NR_BLOCKS 2048
#define RECORD_WORDS 6	/* of lib/confine/probe.ptx */
#define MAX_SMS 1024

static unsigned int records[NR_BLOCKS * RECORD_WORDS];
static unsigned char seen[MAX_SMS];
static void *lib;

#define CALL(name, types, args) failed(name, ((int (*)types)dlsym(lib, name)) args)

/* Returns @result. If the call failed, prints the failure for the log of the test. */
static int failed(const char *what, int result)
{
	if (result)
		fprintf(stderr, "job: %s: %d\n", what, result);
	return result;
}

static int read_all(const char *path, char *text, size_t len)
{
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, len - 1, file) : 0;

	if (!n)
		fprintf(stderr, "job: %s: %s\n", path, file ? "empty" : strerror(errno));
	if (file)
		fclose(file);
	text[n] = 0;
	return n ? 0 : -1;
}

static int launch(void *function, unsigned long long out)
{
	unsigned int spin_ns = 20000;
	void *params[] = { &out, &spin_ns };

	if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
		 unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
		 void **), (function, NR_BLOCKS, 1, 1, 32, 1, 1, 0, NULL, params, NULL)) ||
	    CALL("cuCtxSynchronize", (void), ()) ||
	    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
		 (records, out, sizeof(records))))
		return -1;
	for (unsigned int i = 0; i < NR_BLOCKS; i++)
		if (records[i * RECORD_WORDS] < MAX_SMS)
			seen[records[i * RECORD_WORDS]] = 1;
	return 0;
}

static void pass(double seconds, const char *file)
{
	struct timespec pause = { .tv_sec = (time_t)seconds };

	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	nanosleep(&pause, NULL);
	while (file && !access(file, F_OK)) {
		pause = (struct timespec){ .tv_nsec = 20000000 };
		nanosleep(&pause, NULL);
	}
}

static int print(unsigned long mib)
{
	const char *between = "";

	for (unsigned int sm = 0; sm + 1 < MAX_SMS; sm += 2)
		if (seen[sm] || seen[sm + 1]) {
			printf("%s%u", between, sm / 2);
			between = ",";
		}
	printf(" %lu\n", mib);
	if (!fflush(stdout))
		return 0;
	fprintf(stderr, "job: stdout: %s\n", strerror(errno));
	return 103;
}

int main(int argc, char **argv)
{
	unsigned long mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, got = 0;
	void *ctx, *module, *function;
	unsigned long long out, memory;
	static char ptx[1 << 16];

	if (argc < 4) {
		fprintf(stderr, "job: PTX MIB SECONDS are wanted\n");
		return 2;
	}
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib)
		fprintf(stderr, "job: %s\n", dlerror());
	if (!lib || read_all(argv[1], ptx, sizeof(ptx)) ||
	    CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))))
		return 100;
	for (; got < mib; got += 64)
		if (CALL("cuMemAlloc_v2", (unsigned long long *, size_t),
			 (&memory, (size_t)64 << 20)))
			break;
	if (launch(function, out))
		return 101;
	pass(strtod(argv[3], NULL), argc > 4 ? argv[4] : NULL);
	if (launch(function, out))
		return 102;
	return print(got);
}
