// SPDX-License-Identifier: MIT
/*
 * Tests the answers that nvml_usage.c gets from the simulated NVML. A tenant's audit library
 * changes the answers for programs. The answers for nvml_usage.c must be right even then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/memory/nvml_usage.h"
#include "tests/tap.h"

#define CAPTURE "tests/data/gh100-h200-b/capture.txt"

static char pci[20];

/* Finds the address of the first device. The library reports this address. */
static bool find_pci(void)
{
	int (*start)(void), (*get)(unsigned int, void **);
	int (*tell)(void *, void *);
	char info[256] = "";
	void *device, *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	if (!lib)
		return false;
	*(void **)&start = dlsym(lib, "nvmlInit_v2");
	*(void **)&get = dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&tell = dlsym(lib, "nvmlDeviceGetPciInfo_v3");
	if (!start || !get || !tell || start() || get(0, &device) || tell(device, info))
		return false;
	/*
	 * nvmlPciInfo_t begins with 16 bytes for the old form of the address. Five numbers and
	 * the address follow.
	 */
	snprintf(pci, sizeof(pci), "%.19s", info + 36);
	return pci[0];
}

static void child(void)
{
	struct cuda_api cuda = { .sim_capture = NULL };
	const char *told = getenv("TOLD");
	uint64_t bytes = 0;
	FILE *file = fopen(told, "w");

	fprintf(file, "memory 0 150000000000 0 7000000000\nprocess 0 compute 1 55555\n");
	fclose(file);
	memory_real_open(&cuda);
	if (!find_pci()) {
		tap_skip("the simulated management library has no such functions");
		return;
	}
	tap_ok(memory_real_own(pci, 0, &bytes) == -ENOENT, "a process that has nothing: %s", pci);
	file = fopen(told, "a");
	fprintf(file, "process 0 compute %d 1234567890\n", getpid());
	fclose(file);
	tap_ok(!memory_real_own(pci, 0, &bytes) && bytes == 1234567890,
	       "what this process really has: %llu", (unsigned long long)bytes);
	tap_ok(memory_real_processes(pci, 0) == 2 && memory_real_processes("0000:ee:00.0", 0) == -1,
	       "how many processes have some: %d", memory_real_processes(pci, 0));
	tap_ok(memory_real_all(pci, 0, &bytes) && bytes == 7000000000,
	       "what all really have: %llu", (unsigned long long)bytes);
	tap_ok(memory_real_own("0000:ee:00.0", 0, &bytes) == -EOPNOTSUPP, "of no such GPU nothing");
}

int main(int argc, char **argv)
{
	char path[4096], told[64] = "/tmp/gpupart-nvml-XXXXXX";
	const char *build = getenv("BUILD");

	if (argc > 1) {
		child();
		unlink(getenv("TOLD"));
		return tap_done();
	}
	if (mkstemp(told) < 0)
		return 1;
	build = build ? build : "build";
	setenv("GPUPART_SIM", CAPTURE, 1);
	setenv("TOLD", told, 1);
	snprintf(path, sizeof(path), "nvml=%s", told);
	setenv("GPUPART_SIM_FAULTS", path, 1);
	snprintf(path, sizeof(path), "%s/lib/gpupart/sim", build);
	setenv("LD_LIBRARY_PATH", path, 1);
	snprintf(path, sizeof(path), "%s/lib/gpupart/libgpupart-nvml.so", build);
	setenv("LD_AUDIT", path, 1);
	setenv("GPUPART_TENANT", "unit-real", 1);
	setenv("GPUPART_MEM", "1000000000", 1);
	execl(argv[0], argv[0], "child", (char *)NULL);
	return 1;
}
