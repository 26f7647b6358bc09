// SPDX-License-Identifier: MIT
/*
 * libgpupart-inject.so: brings the limit of `gpupart run` into a program that was not
 * built for it. The driver loads it at cuInit (CUDA_INJECTION64_PATH) and calls
 * InitializeInjection(); a process that never calls cuInit is not touched. Must not
 * know how a launch is confined.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gpupart.h>

#define SLOT "CUDA_INJECTION64_PATH"
#define NEXT "GPUPART_NEXT_INJECTION"	/* the tool that had the slot before us */

int InitializeInjection(void) __attribute__((visibility("default")));

__attribute__((format(printf, 2, 3)))
static void say(bool always, const char *fmt, ...)
{
	const char *path = getenv("GPUPART_LOG");
	FILE *log = NULL;
	va_list ap;
	int fd;

	/* A pipe that nobody reads must not stop the program. */
	fd = path && path[0]
		     ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600)
		     : -1;
	if (fd >= 0)
		log = fdopen(fd, "a");

	if (log || always) {
		va_start(ap, fmt);
		vfprintf(log ? log : stderr, fmt, ap);
		va_end(ap);
	}
	if (log)
		fclose(log);
}

static bool wanted(void)
{
	const char *disable = getenv("GPUPART_DISABLE");

	return getenv("GPUPART_SET") && !(disable && !strcmp(disable, "1"));
}

static const char *own_path(void)
{
	static char found;
	Dl_info info;

	return dladdr(&found, &info) ? info.dli_fname : NULL;
}

/*
 * By LD_PRELOAD: the slot was another tool's. We take it, and call that tool in our
 * turn, so that both are there at cuInit.
 */
__attribute__((constructor))
static void preloaded(void)
{
	const char *slot = getenv(SLOT), *own = own_path();

	if (!wanted() || !own || (slot && !strcmp(slot, own)))
		return;
	if (slot && slot[0])
		setenv(NEXT, slot, 1);
	setenv(SLOT, own, 1);
}

static const char *limit_list(struct gpupart_gpu *gpu, char *list, size_t len)
{
	struct gpupart_tpcset limit;

	gpupart_limit_get(gpu, &limit);
	gpupart_tpcset_format_list(&limit, list, len);
	return list;
}

static pid_t confined;	/* a child of a fork did nothing of what its parent did */

static void tell_end(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	if (counters.device_launches && getpid() == confined)
		say(true,
		    "gpupart: %llu launches of kernels that can launch others from the GPU: those are not confined, see gpupart-device-launches(7)\n",
		    (unsigned long long)counters.device_launches);
}

static void confine(void)
{
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	int err;

	if (gpupart_open(&gp))
		return;
	gpupart_process_publish(gp, getenv("GPUPART_NAME"));
	err = gpupart_attach_early(gp, getenv("GPUPART_GPU"), getenv("GPUPART_CHECKED"), &gpu);
	if (err) {
		say(true, "gpupart: this program's launches are not confined: %s\n",
		    gpupart_error(gp));
	} else {
		confined = getpid();
		atexit(tell_end);
		say(false, "gpupart: confined to TPCs %s of %s%s\n",
		    limit_list(gpu, list, sizeof(list)),
		    gpupart_topology_info(gpupart_gpu_topology(gpu))->pci,
		    gpupart_topology_info(gpupart_gpu_topology(gpu))->simulated ? " (simulated)"
										: "");
	}
	gpupart_close(gp);
}

static void call_next(void)
{
	const char *path = getenv(NEXT);
	int (*initialize)(void);
	void *next;

	if (!path || !path[0])
		return;
	next = dlopen(path, RTLD_NOW);
	if (!next) {
		say(true, "gpupart: the other injected tool cannot be loaded: %s\n", dlerror());
		return;
	}
	*(void **)&initialize = dlsym(next, "InitializeInjection");
	if (initialize)
		initialize();
}

int InitializeInjection(void)
{
	static bool done;

	if (!done) {
		done = true;
		if (wanted())
			confine();
		call_next();
	}
	return 1;
}
