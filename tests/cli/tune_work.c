// SPDX-License-Identifier: MIT
/*
 * For tests/cli/tune.sh: launches until a file is removed. The first argument names this file.
 * The second argument selects the reports. "linear" reports one unit per millisecond and TPC.
 * "even LIST" counts the program's TPCs in LIST and its TPCs outside LIST. It then reports like
 * "linear" with twice the smaller of these two numbers. "most N" is like "linear", but with at
 * most N TPCs. "needs N" is like "linear", but with fewer than N TPCs it reports nothing. "slow N"
 * reports one unit every N ms with 66 TPCs, and less often with fewer. "late N" is like "linear",
 * but before that it reports N single units, one every 0.6 s. "times" reports requests
 * with gpupart_latency_report(). A request takes 200 ms divided by the number of TPCs. "silent"
 * reports nothing. "records" reports nothing, and launches every 2 ms. The number of units depends
 * only on the clock. So load on the machine does not change this number.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{ ret; }\n";
static struct { unsigned int smid, zero; unsigned long long start, end; } records[1024];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/* Returns true if a list, for example "3,5,8", contains @number. */
static int has(const char *list, unsigned int number)
{
	char *end;

	for (const char *at = list; *at; at = *end ? end + 1 : end)
		if (strtoul(at, &end, 10) == number)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	void (*add)(unsigned long long), (*answer)(unsigned long long);
	unsigned int ns = 1000;
	unsigned long long out;
	void *params[] = { &out, &ns };
	double last, begun, owed = 0, told = 0;

	if (argc < 3 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))))
		return 1;
	void *part = dlopen("libgpupart.so.0", RTLD_NOW | RTLD_NOLOAD);
	add = part ? dlsym(part, "gpupart_progress_add") : NULL;
	answer = part ? dlsym(part, "gpupart_latency_report") : NULL;
	last = begun = now();
	while (!access(argv[1], F_OK)) {
		char seen[1024] = { 0 };
		double sms = 0, in = 0, tpcs, nr = argc > 3 ? atof(argv[3]) : 0, ms;

		if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
					    unsigned int, unsigned int, unsigned int, unsigned int,
					    void *, void **, void **),
			 (function, 1024, 1, 1, 1024, 1, 1, 0, NULL, params, NULL)) ||
		    CALL("cuCtxSynchronize", (void), ()) ||
		    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
			 (records, out, sizeof(records))))
			return 2;
		for (int i = 0; i < 1024; i++) {
			if (!seen[records[i].smid] && ++sms)
				in += !strcmp(argv[2], "even") && has(argv[3], records[i].smid);
			seen[records[i].smid] = 1;
		}
		tpcs = sms / 2;
		if (!strcmp(argv[2], "even"))
			tpcs = in < sms - in ? in : sms - in;
		if (!strcmp(argv[2], "most") && tpcs > nr)
			tpcs = nr;
		if (!strcmp(argv[2], "needs") && tpcs < nr)
			tpcs = 0;
		if (!strcmp(argv[2], "slow"))
			tpcs /= 66 * nr;
		if (!strcmp(argv[2], "late") && told < nr)
			tpcs = 1 / 600.0;
		usleep(2000);
		ms = now() - last;
		last += ms;
		owed += tpcs * ms;
		if (!strcmp(argv[2], "times") && answer) {
			answer(200e6 / tpcs);
		} else if (strcmp(argv[2], "silent") && strcmp(argv[2], "records") && add &&
			   owed >= 1) {
			add(owed);
			told++;
			owed -= (unsigned long long)owed;
		}
	}
	return 0;
}
