// SPDX-License-Identifier: MIT
/*
 * Queries libcuda.so.1 in a child process, because the driver may hang or crash. The parent process
 * does not use CUDA. Makes no launches.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/target/cuda.h"
#include "cli/util/child.h"

#define PROBE_SECONDS 30

/*
 * Changes the environment of the child. Then the child uses the driver without a limit and without
 * other tools.
 */
static void leave_alone(void)
{
	unsetenv("CUDA_INJECTION64_PATH");
	setenv("GPUPART_DISABLE", "1", 1);
}

int cuda_gpus_here(char pci[CUDA_MAX_GPUS][20])
{
	int (*count)(int *), (*device)(int *, int), (*address)(char *, int, int);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int found, nr, dev;

	count = lib ? dlsym(lib, "cuDeviceGetCount") : NULL;
	device = lib ? dlsym(lib, "cuDeviceGet") : NULL;
	address = lib ? dlsym(lib, "cuDeviceGetPCIBusId") : NULL;
	if (!count || !device || !address || count(&found))
		return 0;
	for (nr = 0; nr < found && nr < CUDA_MAX_GPUS; nr++) {
		if (device(&dev, nr) || address(pci[nr], sizeof(pci[nr]), dev))
			return nr;
		for (char *c = pci[nr]; *c; c++)
			*c = tolower((unsigned char)*c);
	}
	return nr;
}

static void ask(void *arg, void *result)
{
	struct cuda_probe *probe = result;
	int (*init)(unsigned int), (*version)(int *), (*count)(int *);
	struct link_map *map;
	void *lib;

	(void)arg;
	leave_alone();
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		probe->err = -ENOENT;
		snprintf(probe->why, sizeof(probe->why), "%s", dlerror());
		return;
	}
	if (!dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		char *full = realpath(map->l_name, NULL);

		snprintf(probe->path, sizeof(probe->path), "%s", full ? full : map->l_name);
		free(full);
	}
	init = dlsym(lib, "cuInit");
	version = dlsym(lib, "cuDriverGetVersion");
	count = dlsym(lib, "cuDeviceGetCount");
	if (!init || !version || !count) {
		probe->err = -EIO;
		snprintf(probe->why, sizeof(probe->why),
			 "libcuda.so.1 lacks cuInit, cuDriverGetVersion or cuDeviceGetCount");
		return;
	}
	version(&probe->version);
	probe->init = init(0);
	if (probe->init) {
		probe->err = -EIO;
		snprintf(probe->why, sizeof(probe->why), "cuInit returned %d%s", probe->init,
			 probe->init == 100 ? " (no GPU)" : "");
		return;
	}
	if (!count(&probe->nr_devices))
		cuda_gpus_here(probe->pci);
}

/*
 * Calls @fn in a child. The function @fn fills in @result. Both *err and @why are members of
 * @result. Returns *err. If the child fails, returns -errno and stores a reason in @why. The buffer
 * @why has 256 bytes.
 */
static int ask_in_child(void (*fn)(void *, void *), const void *arg, void *result, size_t len,
			const int *err, char *why)
{
	char lost[128];
	int lost_err;

	memset(result, 0, len);
	lost_err = child_call(fn, (void *)arg, result, len, PROBE_SECONDS, lost, sizeof(lost));
	if (lost_err)
		snprintf(why, 256, "libcuda.so.1: %s", lost);
	return lost_err ?: *err;
}

int cuda_probe(struct cuda_probe *probe)
{
	return ask_in_child(ask, NULL, probe, sizeof(*probe), &probe->err, probe->why);
}

/*
 * Finds the GPU that @selector selects. Returns CUDA's number of this GPU. If there is no such GPU,
 * returns -1.
 */
static int find_device(void *lib, const char *selector,
		       int (*gpu_info)(int, char *, char *))
{
	int (*by_pci)(int *, const char *) = dlsym(lib, "cuDeviceGetByPCIBusId");
	size_t digits = strspn(selector, "0123456789");
	char pci[20], uuid[48];
	int device;

	if (digits && !selector[digits])
		return digits < 9 ? atoi(selector) : -1;
	if (by_pci && !by_pci(&device, selector))
		return device;
	for (device = 0; !gpu_info(device, pci, uuid); device++)
		if (!strcasecmp(selector, uuid) || !strcasecmp(selector, uuid + strlen("GPU-")))
			return device;
	return -1;
}

static void ask_simulated(void *arg, void *result)
{
	struct cuda_simulated *gpu = result;
	const char *selector = arg, *visible = getenv("CUDA_VISIBLE_DEVICES"), *path = NULL;
	const char *(*capture)(int);
	int (*init)(unsigned int), (*gpu_info)(int, char *, char *);
	char uuid[48];
	int device;
	void *lib;

	leave_alone();
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	capture = lib ? dlsym(lib, "gpupart_sim_capture") : NULL;
	gpu_info = lib ? dlsym(lib, "gpupart_sim_gpu_info") : NULL;
	init = lib ? dlsym(lib, "cuInit") : NULL;
	if (!capture || !gpu_info || !init)
		return;
	gpu->simulated = true;
	gpu->pci[0] = 0;
	if (init(0)) {
		gpu->err = -EIO;
		snprintf(gpu->why, sizeof(gpu->why), "the simulated driver does not start");
		return;
	}
	device = selector ? find_device(lib, selector, gpu_info) : 0;
	if (device >= 0)
		path = capture(device);
	if (!path || gpu_info(device, gpu->pci, uuid)) {
		gpu->err = -ENODEV;
		snprintf(gpu->why, sizeof(gpu->why), "no simulated GPU matches %.80s%s%.80s",
			 selector ? selector : "the default",
			 visible ? ": CUDA_VISIBLE_DEVICES is " : "", visible ? visible : "");
		return;
	}
	snprintf(gpu->capture, sizeof(gpu->capture), "%s", path);
}

int cuda_find_simulated(const char *selector, struct cuda_simulated *found)
{
	return ask_in_child(ask_simulated, selector, found, sizeof(*found), &found->err,
			    found->why);
}

struct memory_question {
	const char *pci;
	bool simulated;
};

uint64_t cuda_memory_here(const char *pci)
{
	int (*init)(unsigned int), (*by_pci)(int *, const char *), (*total)(size_t *, int);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	size_t bytes;
	int device;

	if (!lib)
		return 0;
	init = dlsym(lib, "cuInit");
	by_pci = dlsym(lib, "cuDeviceGetByPCIBusId");
	total = dlsym(lib, "cuDeviceTotalMem_v2");
	if (!init || !by_pci || !total || init(0) || by_pci(&device, pci) || total(&bytes, device))
		return 0;
	return bytes;
}

static void ask_memory(void *arg, void *result)
{
	const struct memory_question *question = arg;
	void *lib;

	leave_alone();
	/* Use the address of the GPU, because the GPU may not be visible to this process. */
	unsetenv("CUDA_VISIBLE_DEVICES");
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (lib && question->simulated == !!dlsym(lib, "gpupart_sim_capture"))
		*(uint64_t *)result = cuda_memory_here(question->pci);
}

uint64_t cuda_memory(const char *pci, bool simulated)
{
	struct memory_question question = { pci, simulated };
	uint64_t bytes = 0;
	char why[128];

	if (child_call(ask_memory, &question, &bytes, sizeof(bytes), PROBE_SECONDS, why,
		       sizeof(why)))
		return 0;
	return bytes;
}
