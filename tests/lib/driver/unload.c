// SPDX-License-Identifier: MIT
/*
 * Tests a program that opens the library, attaches, and closes the library again. The driver
 * still has the callback, so the code must stay loaded. The test uses a copy of the library,
 * because the test itself is linked with the original. libsmctrl has a destructor that runs at
 * the end of a thread, so the test also unloads libsmctrl.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "tests/tap.h"

static char folder[] = "/tmp/gpupart-unload-XXXXXX";

/*
 * The dynamic loader reads its search path before main(). So the test executes itself again with
 * the simulated driver in the path.
 */
static void start_anew(char **argv)
{
	const char *build = getenv("BUILD");
	char sim[4096], command[16384];

	snprintf(sim, sizeof(sim), "%s/lib/gpupart/sim", build ? build : "build");
	if (access(sim, F_OK) || !mkdtemp(folder)) {
		tap_skip("no simulated driver in %s", sim);
		exit(tap_done());
	}
	snprintf(command, sizeof(command), "cp '%s/lib/libgpupart.so.0' %s/copy.so",
		 build ? build : "build", folder);
	if (system(command))
		exit(2);
	setenv("LD_LIBRARY_PATH", sim, 1);
	setenv("GPUPART_SIM", "tests/data/gh100-h200-b/capture.txt", 1);
	setenv("XDG_CACHE_HOME", folder, 1);
	execv("/proc/self/exe", argv);
	exit(2);
}

static bool confine(const char *copy)
{
	int (*open_it)(struct gpupart **);
	int (*attach)(struct gpupart *, const char *, const struct gpupart_attach_options *,
		      struct gpupart_gpu **);
	void (*close_it)(struct gpupart *);
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	void *library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	*(void **)&open_it = dlsym(library, "gpupart_open");
	*(void **)&attach = dlsym(library, "gpupart_attach");
	*(void **)&close_it = dlsym(library, "gpupart_close");
	if (!open_it || !attach || !close_it || open_it == gpupart_open || open_it(&gp) ||
	    attach(gp, NULL, NULL, &gpu))
		return false;
	close_it(gp);
	return !dlclose(library);
}

/* Uses libsmctrl in a thread. At the end of the thread, a destructor of libsmctrl runs. */
static void *set_mask(void *unused)
{
	const char *build = getenv("BUILD");
	void (*set_global)(unsigned long long);
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/lib/libsmctrl.so", build ? build : "build");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NULL;
	*(void **)&set_global = dlsym(library, "libsmctrl_set_global_mask");
	set_global(~0xffull);
	return dlclose(library) ? NULL : unused;
}

int main(int argc, char **argv)
{
	int (*retain)(void **, int), (*current)(void *), (*set)(unsigned long long, unsigned char,
		size_t), (*alloc)(unsigned long long *, size_t);
	unsigned long long memory;
	char copy[64], command[128];
	void *ctx, *driver, *done;
	pthread_t thread;

	(void)argc;
	if (!getenv("GPUPART_SIM"))
		start_anew(argv);
	snprintf(copy, sizeof(copy), "%s/copy.so", getenv("XDG_CACHE_HOME"));
	if (!tap_ok(confine(copy), "opened, attached, closed"))
		return tap_done();
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&set = dlsym(driver, "cuMemsetD8_v2");
	/* A large fill is a kernel, so the driver calls back. */
	tap_ok(!retain(&ctx, 0) && !current(ctx) && !alloc(&memory, 1 << 20) &&
	       !set(memory, 0, 1 << 20), "a launch afterwards");
	tap_ok(!pthread_create(&thread, NULL, set_mask, copy) && !pthread_join(thread, &done) &&
		       done == copy,
	       "libsmctrl opened, used and closed by a thread that ends");
	snprintf(command, sizeof(command), "rm -rf %s", getenv("XDG_CACHE_HOME"));
	return system(command) || tap_done();
}
