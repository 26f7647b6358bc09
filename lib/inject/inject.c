// SPDX-License-Identifier: MIT
/*
 * The injected library, libgpupart-inject.so. This library is for programs that do not call
 * gpupart's functions. It applies the limit and the memory quota of `gpupart run` to the program.
 * It also measures the program for `gpupart stat`. If CUDA_INJECTION64_PATH is set, the driver
 * loads this library at cuInit and calls InitializeInjection(). If a process never calls cuInit,
 * the library does nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/environment.h"
#include "lib/private.h"

#define SLOT "CUDA_INJECTION64_PATH"

int InitializeInjection(void) __attribute__((visibility("default")));

static struct gpupart *gp;	/* NULL if not opened yet, or if there was not enough memory */

__attribute__((format(printf, 2, 3)))
static void say(bool always, const char *fmt, ...)
{
	const char *path = environment_read().log;
	FILE *log = NULL;
	va_list ap;
	int fd;

	/* If @path is a pipe that no process reads, the program must not block. */
	fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600) : -1;
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

/*
 * Runs can be nested. Stores in @id the outermost job that contains the job @named. If @named is
 * NULL, stores "".
 */
static void outermost_job(const char *named, char *id)
{
	struct gpupart_job *list;
	int room, nr, i;

	snprintf(id, GPUPART_JOB_STRLEN, "%s", named ? named : "");
	/* Grants are not nested, so stop here. */
	if (!*id || !strncmp(id, "0-", 2))
		return;
	room = gpupart_job_list(NULL, NULL, 0, sizeof(struct gpupart_job)) + 16;
	list = calloc(room, sizeof(*list));
	nr = list ? gpupart_job_list(NULL, list, room, sizeof(struct gpupart_job)) : 0;
	/*
	 * A user's records could form a cycle. So limit the number of steps to the number of
	 * jobs.
	 */
	for (int steps = 0; steps < nr && steps < room; steps++) {
		for (i = 0; i < nr && i < room && strcmp(list[i].id, id); i++)
			;
		if (i == nr || i == room || !list[i].parent[0])
			break;
		snprintf(id, GPUPART_JOB_STRLEN, "%s", list[i].parent);
	}
	free(list);
}

/*
 * Returns how well a grant matches the environment. A larger result means a better match. If the
 * grant belongs to another user, the result is 0.
 */
static int fits(const struct gpupart_grant *grant, const struct environment *env, const char *job)
{
	if (grant->uid != geteuid() || gpupart_tpcset_empty(&grant->set))
		return 0;
	return 1 + 4 * !strcmp(job, grant->id) + 2 * (env->gpu && !strcmp(env->gpu, grant->pci)) +
	       (env->tenant && !strcmp(env->tenant, grant->name));
}

/*
 * Finds the grant of this user. If the user has no grant, returns false. On most machines there
 * are no grants. Root never has a grant. If there are several grants, the function uses the grant
 * that the environment names, or otherwise the first grant. A user namespace may hide which
 * grants belong to the user. Then the function returns a strict grant that has no GPU and cannot
 * be attached.
 */
static bool given(const struct environment *env, struct gpupart_grant *grant)
{
	int nr = gpupart_grant_exempts(geteuid()) ? 0 :
		 gpupart_grant_list(NULL, NULL, 0, sizeof(*grant));
	bool hidden = nr == -EUSERS;
	int room = nr + 16, best = 0;
	struct gpupart_grant *list = nr > 0 ? calloc(room, sizeof(*list)) : NULL;
	char job[GPUPART_JOB_STRLEN];

	nr = list ? gpupart_grant_list(NULL, list, room, sizeof(struct gpupart_grant)) : 0;
	if (nr > 0)
		outermost_job(env->job, job);
	for (int i = 0; i < nr && i < room; i++)
		if (fits(&list[i], env, job) > best) {
			best = fits(&list[i], env, job);
			*grant = list[i];
		}
	free(list);
	if (hidden)
		*grant = (struct gpupart_grant){ .other_version = true, .strict = true };
	return best || hidden;
}

static const char *own_path(void)
{
	static char found;
	Dl_info info;

	return dladdr(&found, &info) ? info.dli_fname : NULL;
}

/*
 * Another tool may already use the driver's injection variable. Then LD_PRELOAD loads this
 * library. This function replaces the tool's path in the variable by the path of this library.
 * The library calls the tool later. So both libraries are loaded at cuInit.
 */
__attribute__((constructor))
static void preloaded(void)
{
	const char *slot = getenv(SLOT), *own = own_path();
	const struct environment env = environment_read();
	struct gpupart_grant grant;

	if ((env.untouched || (!env.has_set && !env.has_tenant)) &&
	    !given(&env, &grant))
		return;
	if (!own || (slot && !strcmp(slot, own)))
		return;
	if (slot && slot[0])
		setenv(ENVIRONMENT_NEXT, slot, 1);
	setenv(SLOT, own, 1);
}

static const char *limit_list(struct gpupart_gpu *gpu, char *list, size_t len)
{
	struct gpupart_tpcset limit;

	gpupart_limit_get(gpu, &limit);
	gpupart_tpcset_format_list(&limit, list, len);
	return list;
}

/*
 * The reason why this process cannot report to its run. If the process can report, or if there is
 * no run, the string is "".
 */
static char unreported[256];
/*
 * True if this process cannot report, and the reason is not the version of the run. A strict
 * process then behaves like a process whose run has ended. With --exec, the run ends at once.
 */
static bool unreachable;

static pid_t confined;	/* pid of the confined process; in the child of a fork, getpid() differs */

static void report_end(void)
{
	struct gpupart_counters counters;

	if (getpid() != confined)
		return;
	gpupart_counters_get(&counters);
	if (counters.graphs_stale)
		say(true,
		    "gpupart: %llu launches of CUDA graphs ran with an earlier set: the driver cannot build these graphs again\n",
		    (unsigned long long)counters.graphs_stale);
	if (counters.device_launches)
		say(true,
		    "gpupart: %llu launches started kernels that can launch further kernels from the GPU: these further kernels are not confined, see gpupart-device-launches(7)\n",
		    (unsigned long long)counters.device_launches);
}

static bool is_strict;

/* Called at the end of a process that has no run. Prints the report that a run would print. */
static void write_report(void)
{
	const struct gpupart_report_process *own = gpupart_report_end();
	uint64_t launches = own ? own->others : 0, modules = 0;
	const struct gpupart_report_kernel *first = NULL;
	char list[GPUPART_TPCSET_STRLEN] = "";

	for (int i = 0; own && i < GPUPART_REPORT_NR_KERNELS; i++) {
		if (own->kernels[i].outside == GPUPART_REFUSED_MODULE) {
			modules += own->kernels[i].count;
			continue;
		}
		launches += own->kernels[i].count;
		if (own->kernels[i].count && !first)
			first = &own->kernels[i];
	}
	if (modules)
		say(true,
		    "gpupart: refused %llu module%s with kernels that can launch other kernels%s\n",
		    (unsigned long long)modules, modules == 1 ? "" : "s",
		    own->simulated ? " (simulated)" : "");
	if (!launches)
		return;
	if (first)
		gpupart_tpcset_format_list(&first->limit, list, sizeof(list));
	say(true, "gpupart: %llu launch%s ran outside of %s%s%s: the first kernel was %s%s\n",
	    (unsigned long long)launches, launches == 1 ? "" : "es", *list ? "TPCs " : "the set",
	    list, own->simulated ? " (simulated)" : "",
	    first && *first->name ? first->name : "a kernel whose name is not known",
	    is_strict ? "; strict: later launches failed with error 800" : "");
}

static pid_t limited;		/* pid of the process whose memory is limited; in the child of a
				 * fork, getpid() differs */

static void report_uncounted(void)
{
	struct gpupart_memory_counters counters;

	if (getpid() != limited)
		return;
	gpupart_memory_counters_get(&counters);
	if (counters.uncounted)
		say(true,
		    "gpupart: %llu calls may have allocated GPU memory that the quota does not count; the last of these calls was %s\n",
		    (unsigned long long)counters.uncounted,
		    counters.uncounted_call ? counters.uncounted_call : "an unnamed one");
}

/*
 * Reads two variables. GPUPART_TENANT is the name of the tenant. GPUPART_MEM is a quota in bytes,
 * and applies to each GPU that has no quota yet.
 */
static void limit_memory(const struct gpupart_grant *grant)
{
	if (gpupart_memory_start(gp, grant ? grant->name : NULL,
				 grant ? grant->memory : 0)) {
		say(true, "gpupart: GPU memory is not limited: %s\n", gpupart_error(gp));
		return;
	}
	limited = getpid();
	atexit(report_uncounted);
}

/*
 * Returns true if launches outside the set must fail. The option --strict, the grant or the
 * machine's configuration can require this. Argument @grant may be NULL.
 */
static bool strict(const struct environment *env, const struct gpupart_grant *grant)
{
	int found;

	if (env->strict || (grant && grant->strict))
		return true;
	found = gpupart_config_strict(gp);
	if (found < 0 && !env->has_strict)
		say(true, "gpupart: %s%s\n", gpupart_error(gp),
		    found == -EPERM ? "" : ": treated as strict = yes");
	return config_is_strict(found);
}

/*
 * Makes CUDA unusable in a strict process that cannot be confined. The driver later reads a
 * variable that this function sets, so cuInit finds no GPU. The measurements are in
 * Documentation/internals/hardware.md, "The injected library". Contexts and launches also fail.
 */
static void refuse(const char *why)
{
	say(true,
	    "gpupart: strict: this process cannot use CUDA, because its launches are not confined: %s\n",
	    why);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	gpupart_strict_start(gp, true);
}

static int attach(const struct environment *env, const char *selector, const char *key)
{
	char list[GPUPART_TPCSET_STRLEN];
	const struct gpupart_gpu_info *info;
	struct gpupart_gpu *gpu;
	int err = gpupart_attach_early(gp, selector, key, &gpu);

	if (err)
		return err;
	if (env->sm_count && gpupart_sm_count_tell(gp, gpu, true))
		say(true, "gpupart: " ENVIRONMENT_SM_COUNT "=1: %s\n", gpupart_error(gp));
	info = gpupart_topology_info(gpupart_gpu_topology(gpu));
	say(false, "gpupart: confined to TPCs %s of %s%s\n", limit_list(gpu, list, sizeof(list)),
	    info->pci, info->simulated ? " (simulated)" : "");
	return 0;
}

/*
 * Attaches the GPU of @grant and each GPU in the environment's list. If @grant names no GPU, the
 * function attaches any GPU. If there is no grant and no list, the function attaches the GPU in
 * the environment, or any GPU.
 */
static int attach_all(const struct environment *env, const struct gpupart_grant *grant)
{
	bool listed = env->gpu && strchr(env->gpu, ',');
	char selector[128], key[32];
	int err = 0;

	if (grant && *grant->pci)
		/* Some versions of gpupart do not write the key to the shared header. */
		err = attach(env, grant->pci, *grant->key || !grant->other_version ?
			     grant->key : listed ? NULL : env->key);
	else if (grant || !listed)
		err = attach(env, listed ? NULL : env->gpu, env->key);
	for (int n = 0; listed && !err &&
	     environment_part(env->gpu, ',', n, selector, sizeof(selector)) >= 0; n++) {
		if (environment_part(env->key ?: "", ',', n, key, sizeof(key)) < 0)
			*key = 0;
		err = attach(env, selector, *key ? key : NULL);
	}
	return err;
}

/*
 * Confines the process. If the user has a grant, the function confines the process on the grant's
 * GPU. The grant applies even if the environment does not require it.
 */
static void confine(const struct environment *env, const struct gpupart_grant *grant,
		    bool strictly)
{
	int err;

	/* Without a job, `gpupart ps` and `gpupart set` may not be possible at all. */
	err = gpupart_process_publish(gp, env->name);
	if (err && env->job)
		say(true,
		    "gpupart: 'gpupart ps' and 'gpupart set' do not find this process: %s\n",
		    gpupart_error(gp));
	err = attach_all(env, grant);
	if (!err && strictly && !unreachable)
		err = gpupart_strict_start(gp, false);
	is_strict = strictly;
	if (strictly && (err || unreachable)) {
		/*
		 * Launches outside the set could not be prevented or reported. So prevent all
		 * launches.
		 */
		refuse(err ? gpupart_error(gp) : unreported);
	} else if (err) {
		say(true, "gpupart: this program's launches are not confined: %s\n",
		    gpupart_error(gp));
	} else {
		/* Print the reason now. A killed process prints nothing at its end. */
		if (*unreported)
			say(true,
			    "gpupart: this process itself will report its launches outside of the set: %s\n",
			    unreported);
		confined = getpid();
		atexit(report_end);
		if (gpupart_profilers(gp) == -EACCES)
			say(true, "gpupart: " ENVIRONMENT_PROFILE "=1: %s\n", gpupart_error(gp));
	}
}

static void call_next(void)
{
	const char *path = environment_read().next;
	int (*initialize)(void);
	void *next;

	if (!path)
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

static void report(const char *id)
{
	/*
	 * The run may have ended, or this process may not be able to reach it. If the process
	 * cannot reach the run, strict processes fail, and other processes continue.
	 */
	int err = gpupart_report_start(gp, id);

	unreachable = err && id && err != -EPROTO;
	if (err && id)
		snprintf(unreported, sizeof(unreported), "%s%.200s",
			 err == -ENOSPC ? "" : "they cannot be reported to its run: ",
			 gpupart_error(gp));
	atexit(write_report);
}

static void start(const struct environment *env)
{
	struct gpupart_grant grant;
	bool has_grant = given(env, &grant), enabled = !env->untouched || has_grant;

	if (gpupart_open(&gp)) {
		if (env->strict || (has_grant && grant.strict))
			refuse("no memory");
		return;
	}
	report(env->report);
	if (has_grant && grant.memory)
		limit_memory(&grant);
	else if (enabled && env->has_tenant)
		limit_memory(NULL);
	if (has_grant)
		confine(env, &grant, strict(env, &grant));
	else if (enabled && env->has_set)
		confine(env, NULL, strict(env, NULL));
	else if (env->has_set ? strict(env, NULL) : env->strict)
		refuse(ENVIRONMENT_OFF "=1, or no " ENVIRONMENT_SET ", in its environment");
	/* Records exist in confined and published processes, and in no others. */
	if (enabled && env->stat && gpupart_stat_start(gp, env->stat))
		say(true, "gpupart: this program is not measured: %s\n", gpupart_error(gp));
	gpupart_close(gp);
}

int InitializeInjection(void)
{
	const struct environment env = environment_read();
	static bool done;

	if (done)
		return 1;
	done = true;
	start(&env);
	call_next();
	return 1;
}
