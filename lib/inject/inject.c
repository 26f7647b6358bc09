// SPDX-License-Identifier: MIT
/*
 * libgpupart-inject.so: brings the limit and the memory quota of `gpupart run`, or the
 * measurement of `gpupart stat`, into a program that was not built for it. The driver loads
 * it at cuInit (CUDA_INJECTION64_PATH) and calls InitializeInjection(); a process that never
 * calls cuInit is not touched. Must not know how a launch is confined or measured.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/private.h"

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

/* The job that all of this was begun in, through runs inside runs; "" where none is named. */
static void outermost_job(char *id)
{
	const char *named = getenv("GPUPART_JOB");
	struct gpupart_job *list;
	int room, nr, i;

	snprintf(id, GPUPART_JOB_STRLEN, "%s", named ? named : "");
	/* A node's own is in none. */
	if (!*id || !strncmp(id, "0-", 2))
		return;
	room = gpupart_job_list(NULL, NULL, 0, sizeof(struct gpupart_job)) + 16;
	list = calloc(room, sizeof(*list));
	nr = list ? gpupart_job_list(NULL, list, room, sizeof(struct gpupart_job)) : 0;
	/* No more steps than there are jobs: notes of the user's may lead round. */
	for (int steps = 0; steps < nr && steps < room; steps++) {
		for (i = 0; i < nr && i < room && strcmp(list[i].id, id); i++)
			;
		if (i == nr || i == room || !list[i].parent[0])
			break;
		snprintf(id, GPUPART_JOB_STRLEN, "%s", list[i].parent);
	}
	free(list);
}

/* How well a part fits what the environment says: 0 not this user's, more is better. */
static int fits(const struct gpupart_grant *grant, const char *job)
{
	const char *gpu = getenv("GPUPART_GPU"), *tenant = getenv("GPUPART_TENANT");

	if (grant->uid != geteuid() || gpupart_tpcset_empty(&grant->set))
		return 0;
	return 1 + 4 * !strcmp(job, grant->id) + 2 * (gpu && !strcmp(gpu, grant->pci)) +
	       (tenant && !strcmp(tenant, grant->name));
}

/* The machine's root, whose /proc is; user 0 of a user namespace may be another user. */
static bool is_root(void)
{
	struct stat st;

	return !geteuid() && (stat("/proc", &st) || !st.st_uid);
}

/*
 * What a node gave this user, who is not root: of several parts the one that his environment
 * names, else the first. False: nothing, as everywhere but in a scheduler's jobs.
 */
static bool given(struct gpupart_grant *grant)
{
	int nr = is_root() ? 0 : gpupart_grant_list(NULL, NULL, 0, sizeof(*grant));
	int room = nr + 16, best = 0;
	struct gpupart_grant *list = nr > 0 ? calloc(room, sizeof(*list)) : NULL;
	char job[GPUPART_JOB_STRLEN];

	nr = list ? gpupart_grant_list(NULL, list, room, sizeof(struct gpupart_grant)) : 0;
	if (nr > 0)
		outermost_job(job);
	for (int i = 0; i < nr && i < room; i++)
		if (fits(&list[i], job) > best) {
			best = fits(&list[i], job);
			*grant = list[i];
		}
	free(list);
	return best;
}

/* GPUPART_SET: to be confined; GPUPART_STAT: to be measured; GPUPART_TENANT: to have a quota. */
static bool wanted(const char *name)
{
	const char *disable = getenv("GPUPART_DISABLE");
	struct gpupart_grant grant;

	return getenv(name) && (!disable || strcmp(disable, "1") || given(&grant));
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

	if (!wanted("GPUPART_SET") && !wanted("GPUPART_STAT") && !wanted("GPUPART_TENANT"))
		return;
	if (!own || (slot && !strcmp(slot, own)))
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

	if (getpid() != confined)
		return;
	gpupart_counters_get(&counters);
	if (counters.graphs_stale)
		say(true,
		    "gpupart: %llu launches of CUDA graphs had an earlier set: the driver cannot be made to build those graphs again\n",
		    (unsigned long long)counters.graphs_stale);
	if (counters.device_launches)
		say(true,
		    "gpupart: %llu launches of kernels that can launch others from the GPU: those are not confined, see gpupart-device-launches(7)\n",
		    (unsigned long long)counters.device_launches);
}

/* GPUPART_SM_COUNT=1: the program learns how many SMs it has, not how many there are. */
static void tell_sm_count(struct gpupart *gp, struct gpupart_gpu *gpu)
{
	const char *asked = getenv("GPUPART_SM_COUNT");

	if (!asked || strcmp(asked, "1"))
		return;
	if (gpupart_sm_count_tell(gp, gpu, true))
		say(true, "gpupart: GPUPART_SM_COUNT=1: %s\n", gpupart_error(gp));
}

static void measure(void)
{
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return;
	if (gpupart_stat_start(gp, getenv("GPUPART_STAT")))
		say(true, "gpupart: this program is not measured: %s\n", gpupart_error(gp));
	gpupart_close(gp);
}

static pid_t limited;		/* as @confined */

static void tell_uncounted(void)
{
	struct gpupart_memory_counters counters;

	if (getpid() != limited)
		return;
	gpupart_memory_counters_get(&counters);
	if (counters.uncounted)
		say(true,
		    "gpupart: %llu calls may have got GPU memory that the quota does not count, %s the last of them\n",
		    (unsigned long long)counters.uncounted,
		    counters.uncounted_call ? counters.uncounted_call : "an unnamed one");
}

/* GPUPART_TENANT: whose; GPUPART_MEM: bytes of each GPU, where it has no quota yet. */
static void limit_memory(const struct gpupart_grant *grant)
{
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return;
	if (gpupart_memory_start(gp, grant ? grant->name : NULL,
				 grant ? grant->memory : 0)) {
		say(true, "gpupart: GPU memory is not limited: %s\n", gpupart_error(gp));
	} else {
		limited = getpid();
		atexit(tell_uncounted);
	}
	gpupart_close(gp);
}

/* By --strict. */
static bool asked_strict(void)
{
	const char *asked = getenv("GPUPART_STRICT");

	return asked && !strcmp(asked, "1");
}

/* No launch outside of the set: a node and its grants ask for it, too. */
static bool strict(void)
{
	struct gpupart_grant grant;
	struct gpupart *gp;
	int found;

	if (asked_strict() || (given(&grant) && grant.strict))
		return true;
	if (gpupart_open(&gp))
		return false;
	found = gpupart_config_strict(gp);
	if (found < 0 && !getenv("GPUPART_STRICT"))
		say(true, "gpupart: %s\n", gpupart_error(gp));
	gpupart_close(gp);
	/* A file that cannot be read or understood may ask for it. */
	return found > 0 || found == -EINVAL || found == -EACCES;
}

/*
 * A strict process that cannot be confined uses no GPU: cuInit finds none, since the driver reads
 * the variable after this call (measured: Documentation/internals/hardware.md, "The injected
 * library").
 * Contexts and launches fail, too.
 */
static void refuse(const char *why)
{
	struct gpupart *gp;

	say(true,
	    "gpupart: strict: no CUDA for this process, whose launches are not confined: %s\n",
	    why);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	if (gpupart_open(&gp))
		return;
	gpupart_strict_start(gp, true);
	gpupart_close(gp);
}

static void confine(bool strictly)
{
	const char *selector = getenv("GPUPART_GPU"), *key = getenv("GPUPART_CHECKED");
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_grant grant;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	int err;

	if (gpupart_open(&gp)) {
		if (strictly)
			refuse("no memory");
		return;
	}
	/* The GPU of which the user has a part, whatever his environment became. */
	if (given(&grant)) {
		selector = grant.pci;
		key = grant.other_version ? key : grant.key;
	}
	gpupart_process_publish(gp, getenv("GPUPART_NAME"));
	err = gpupart_attach_early(gp, selector, key, &gpu);
	if (!err && strictly)
		err = gpupart_strict_start(gp, false);
	if (err && strictly) {
		refuse(gpupart_error(gp));
	} else if (err) {
		say(true, "gpupart: this program's launches are not confined: %s\n",
		    gpupart_error(gp));
	} else {
		confined = getpid();
		atexit(tell_end);
		tell_sm_count(gp, gpu);
		say(false, "gpupart: confined to TPCs %s of %s%s\n",
		    limit_list(gpu, list, sizeof(list)),
		    gpupart_topology_info(gpupart_gpu_topology(gpu))->pci,
		    gpupart_topology_info(gpupart_gpu_topology(gpu))->simulated ? " (simulated)"
										: "");
	}
	gpupart_close(gp);
}

/*
 * GPUPART_LATE=SECONDS: the program first makes its green contexts, which the driver
 * refuses from the subscription on. A thread, since nothing else of ours runs meanwhile.
 */
static void *confine_late(void *given)
{
	const double *seconds = given;
	struct timespec left = { .tv_sec = (time_t)*seconds };

	left.tv_nsec = (long)((*seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left))
		;
	confine(false);
	return NULL;
}

static void confine_when(void)
{
	static double seconds;
	const char *late = getenv("GPUPART_LATE");
	char *end = NULL;
	pthread_t thread;

	if (strict()) {
		if (late && late[0])
			say(true, "gpupart: GPUPART_LATE=%.40s: strict: confined at once\n", late);
		confine(true);
		return;
	}
	if (!late || !late[0]) {
		confine(false);
		return;
	}
	seconds = strtod(late, &end);
	/* strtod() knows 0x10 as well. */
	if (*end || strpbrk(late, "xX") || !(seconds > 0 && seconds <= 3600)) {
		say(true,
		    "gpupart: GPUPART_LATE=%.40s: 0 to 3600 seconds are wanted; confined at once\n",
		    late);
		confine(false);
	} else if (pthread_create(&thread, NULL, confine_late, &seconds)) {
		say(true, "gpupart: no thread for GPUPART_LATE: confined at once\n");
		confine(false);
	} else {
		pthread_detach(thread);
	}
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

static void report(void)
{
	const char *id = getenv("GPUPART_REPORT");
	struct gpupart *gp;

	if (!id || gpupart_open(&gp))
		return;
	/* The run may have ended, or be another user's: what it is not told is no failure. */
	if (!gpupart_report_start(gp, id))
		atexit(gpupart_report_end);
	gpupart_close(gp);
}

int InitializeInjection(void)
{
	struct gpupart_grant grant;
	static bool done;

	if (!done) {
		done = true;
		report();
		/* First: who confines takes the driver's one place for a subscriber. */
		if (wanted("GPUPART_STAT"))
			measure();
		if (given(&grant) && grant.memory)
			limit_memory(&grant);
		else if (wanted("GPUPART_TENANT"))
			limit_memory(NULL);
		if (given(&grant))
			confine(strict());
		else if (wanted("GPUPART_SET"))
			confine_when();
		else if (getenv("GPUPART_SET") ? strict() : asked_strict())
			refuse("GPUPART_DISABLE=1, or no GPUPART_SET, in its environment");
		call_next();
	}
	return 1;
}
