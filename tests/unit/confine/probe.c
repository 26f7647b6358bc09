// SPDX-License-Identifier: MIT
/*
 * Two threads request the probe of a context at the same time. Tests that the library creates one
 * probe. After any number of requests, the library must have retained the primary context one
 * time. The test uses the simulated driver and counts calls.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "lib/confine/probe.h"
#include "lib/confine/scope.h"
#include "tests/tap.h"

#define CAPTURE "tests/data/gh100-h200-b/capture.txt"

static const struct cuda_api *real;
static struct cuda_api counting;
static struct gpupart_gpu *gpu;
static atomic_int nr_retained, nr_loaded, nr_allocated;

/*
 * The dynamic loader reads its search path before main(). So the test executes itself again with
 * the simulated driver in the path.
 */
static void start_anew(char **argv)
{
	const char *build = getenv("BUILD");
	char sim[4096];

	snprintf(sim, sizeof(sim), "%s/lib/gpupart/sim", build ? build : "build");
	if (access(sim, F_OK)) {
		tap_skip("no simulated driver in %s", sim);
		exit(tap_done());
	}
	setenv("LD_LIBRARY_PATH", sim, 1);
	setenv("GPUPART_SIM", CAPTURE, 1);
	setenv("XDG_CACHE_HOME", "/dev/null/none", 1);
	execv("/proc/self/exe", argv);
	exit(2);
}

static cuda_result retain(void **primary, int device)
{
	nr_retained++;
	return real->primary_retain(primary, device);
}

static cuda_result release(int device)
{
	nr_retained--;
	return real->primary_release(device);
}

/*
 * The first thread waits for the second thread. If both threads create a probe, the second thread
 * arrives here.
 */
static cuda_result load(void **module, const void *image)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	nr_loaded++;
	for (int i = 0; i < 500 && nr_loaded < 2; i++)
		nanosleep(&pause, NULL);
	return real->module_load(module, image);
}

static cuda_result unload(void *module)
{
	nr_loaded--;
	return real->module_unload(module);
}

static cuda_result allocate(cuda_ptr *at, size_t size)
{
	nr_allocated++;
	return real->mem_alloc(at, size);
}

static cuda_result deallocate(cuda_ptr at)
{
	nr_allocated--;
	return real->mem_free(at);
}

static void *get(void *current)
{
	struct probe *probe = NULL;
	struct gpupart *gp;

	if (gpupart_open(&gp) || (current && real->ctx_push(current)))
		return NULL;
	if (probe_get(gp, &counting, gpu, 0, &probe))
		printf("# %s\n", gpupart_error(gp));
	if (current)
		real->ctx_pop(&current);
	gpupart_close(gp);
	return probe;
}

static void two_at_once(void *current, const char *where)
{
	void *probe[2], *later;
	pthread_t thread[2];
	int loaded;

	nr_loaded = nr_allocated = nr_retained = 0;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, get, current);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], &probe[i]);
	tap_ok(probe[0] && probe[0] == probe[1], "two threads get one probe in %s", where);
	tap_ok(nr_allocated == 1, "with memory for one: for %d", nr_allocated);
	loaded = nr_loaded;
	later = get(current);
	tap_ok(later == probe[0] && nr_loaded == loaded, "it is there afterwards");
	for (int i = 0; i < 5; i++)
		get(current);
	tap_ok(nr_retained == !current, "the primary context is held %d times", nr_retained);
}

/*
 * First, the primary context is current, and the probe is found in it. Later, the probe is used
 * without a current context.
 */
static void current_first(int (*reset)(int))
{
	void *primary, *probe;

	tap_ok(!reset(0) && !real->primary_retain(&primary, 0), "the program holds a primary one");
	nr_loaded = 2;
	nr_retained = 0;
	probe = get(primary);
	tap_ok(probe && !nr_retained, "current, it is held by the program alone");
	tap_ok(get(NULL) == probe && get(NULL) == probe && nr_retained == 1,
	       "where it is not it is held once: %d times", nr_retained);
}

int main(int argc, char **argv)
{
	int (*reset)(int), (*create)(void **, unsigned int, int);
	struct gpupart *gp;
	void *ctx, *lib;

	(void)argc;
	if (!getenv("GPUPART_SIM"))
		start_anew(argv);
	if (!tap_ok(!gpupart_open(&gp) && !cuda_open(gp, &real) && !real->init(0) &&
		    !gpupart_attach(gp, NULL, NULL, &gpu), "attached"))
		return tap_done();
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	reset = (int (*)(int))dlsym(lib, "cuDevicePrimaryCtxReset_v2");
	create = (int (*)(void **, unsigned int, int))dlsym(lib, "cuCtxCreate_v2");
	counting = *real;
	counting.primary_retain = retain;
	counting.primary_release = release;
	counting.module_load = load;
	counting.module_unload = unload;
	counting.mem_alloc = allocate;
	counting.mem_free = deallocate;
	tap_ok(!create(&ctx, 0, 0) && !real->ctx_pop(&ctx), "a context of its own");
	two_at_once(ctx, "a context");
	/* Destroy the probe that the attach created in the primary context. */
	tap_ok(!reset(0), "the primary context is made anew");
	two_at_once(NULL, "the primary context");
	current_first(reset);
	gpupart_close(gp);
	return tap_done();
}
