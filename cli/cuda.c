// SPDX-License-Identifier: MIT
/*
 * Asks libcuda.so.1 who it is, in a child of its own: neither a hang nor a crash in
 * the driver reaches us, and this process stays without CUDA. Makes no launch.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "child.h"
#include "cuda.h"

#define PROBE_SECONDS 30

struct answer {
	int err;
	struct cuda_probe probe;
};

static void ask(void *arg, void *result)
{
	struct answer *answer = result;
	struct cuda_probe *probe = &answer->probe;
	int (*init)(unsigned int), (*version)(int *), (*count)(int *);
	int (*pci)(char *, int, int), (*device)(int *, int);
	struct link_map *map;
	void *lib;
	int dev;

	(void)arg;
	/* Asked without a limit of ours, and without another tool's library. */
	unsetenv("CUDA_INJECTION64_PATH");
	setenv("GPUPART_DISABLE", "1", 1);
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		answer->err = -ENOENT;
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
	device = dlsym(lib, "cuDeviceGet");
	pci = dlsym(lib, "cuDeviceGetPCIBusId");
	if (!init || !version || !count || !device || !pci) {
		answer->err = -EIO;
		snprintf(probe->why, sizeof(probe->why), "libcuda.so.1 lacks cuInit or what follows it");
		return;
	}
	version(&probe->version);
	probe->init = init(0);
	if (probe->init) {
		answer->err = -EIO;
		snprintf(probe->why, sizeof(probe->why), "cuInit returned %d%s", probe->init,
			 probe->init == 100 ? " (no GPU)" : "");
		return;
	}
	if (count(&probe->nr_devices) || probe->nr_devices < 1)
		return;
	if (!device(&dev, 0) && !pci(probe->pci, sizeof(probe->pci), dev))
		for (char *c = probe->pci; *c; c++)
			*c = tolower((unsigned char)*c);
}

int cuda_probe(struct cuda_probe *probe)
{
	struct answer answer = { 0 };
	char why[128];
	int err = child_call(ask, NULL, &answer, sizeof(answer), PROBE_SECONDS, why, sizeof(why));

	*probe = answer.probe;
	if (!err)
		return answer.err;
	snprintf(probe->why, sizeof(probe->why), "libcuda.so.1: %s", why);
	return err;
}
