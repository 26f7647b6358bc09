// SPDX-License-Identifier: MIT
/*
 * Attaches GPUs to this process, and applies the limit that other programs set for this process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/confine/watched_functions.h"
#include "lib/confine/gpu.h"
#include "lib/confine/launch.h"
#include "lib/confine/module.h"
#include "lib/confine/probe.h"
#include "lib/confine/recording.h"
#include "lib/confine/report.h"
#include "lib/confine/rules.h"
#include "lib/confine/self_check.h"
#include "lib/core/environment.h"
#include "lib/core/fork.h"
#include "lib/driver/callback.h"
#include "lib/state/grant.h"
#include "lib/state/job.h"
#include "lib/state/process.h"
#include "lib/state/state_page.h"

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(attach_lock);

/*
 * Returns the number that CUDA uses for the GPU at PCI address @pci. Returns -ENODEV if this
 * process cannot see the GPU.
 */
static int device_of_pci(struct gpupart *gp, const struct cuda_api *cuda, const char *pci,
			 int *device)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int count, result = cuda->device_count(&count);

	if (result)
		return ctx_fail(gp, -ENODEV, "cuDeviceGetCount: %s", cuda_strerror(cuda, result));
	for (int i = 0; i < count; i++) {
		char found[20];

		if (!driver_device_pci(cuda, i, found) && !strcmp(found, pci)) {
			*device = i;
			return 0;
		}
	}
	return ctx_fail(gp, -ENODEV,
			"the GPU at %s is not one of the %d GPUs that CUDA shows to this process%s%s",
			pci, count,
			visible ? ": CUDA_VISIBLE_DEVICES is " : "", visible ? visible : "");
}

/* Reads the device number N from a selector "cuda:N". */
static int device_number(struct gpupart *gp, const char *selector, int *device)
{
	const char *digits = selector + 5;
	unsigned long n = strtoul(digits, NULL, 10);

	if (!*digits || digits[strspn(digits, "0123456789")] || n > 99999)
		return ctx_fail(
			gp, -ENODEV,
			"\"%.100s\" is not a GPU: write cuda:N, where N is CUDA's device number",
			selector);
	*device = n;
	return 0;
}

/* Reads a GPU's topology from the simulated driver. */
static int simulated_topology(struct gpupart *gp, const struct cuda_api *cuda, const char *selector,
			      struct gpupart_topology **topo)
{
	struct gpupart_topology *t;
	int number = -1, err;

	if (selector && !strncmp(selector, "cuda:", 5)) {
		err = device_number(gp, selector, &number);
		if (err)
			return err;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return ctx_fail(gp, -ENOMEM, "out of memory for a topology");
	for (int device = 0; cuda->sim_capture(device); device++) {
		if (!cuda->sim_topology || cuda->sim_topology(device, t, sizeof(*t))) {
			err = ctx_fail(gp, -EPROTO,
				       "the simulated driver is from another version of gpupart: its topology cannot be read");
			goto free_topo;
		}
		if (!selector || number == device ||
		    (number < 0 && topo_selects(selector, &t->info, device))) {
			*topo = t;
			return 0;
		}
	}
	err = ctx_fail(
		gp, -ENODEV,
		"%s is not a simulated GPU: GPUPART_SIM lists the captures of the simulated GPUs",
		selector ? selector : "there");
free_topo:
	free(t);
	return err;
}

/*
 * Mask bits are computed from virtual GPCs. For real GPUs, only NVIDIA's driver reports virtual
 * GPCs.
 */
static int find_topology(struct gpupart *gp, const struct cuda_api *cuda, const char *selector,
			 bool early, struct gpupart_topology **topo)
{
	int result, count, device = 0;
	char pci[20];

	if (cuda->sim_capture)
		return simulated_topology(gp, cuda, selector, topo);
	/* Before cuInit has ended, CUDA answers no queries about devices. */
	if (early || (selector && strncmp(selector, "cuda:", 5)))
		return topo_rm_open(gp, selector, topo);
	result = cuda->device_count(&count);
	if (result || !count)
		return ctx_fail(gp, -ENODEV, "CUDA shows no GPU to this process: %s",
				cuda_strerror(cuda, result));
	if (selector) {
		int err = device_number(gp, selector, &device);

		if (err)
			return err;
		if (device >= count)
			return ctx_fail(gp, -ENODEV, "%s does not exist: CUDA shows devices 0-%d",
					selector, count - 1);
	}
	result = driver_device_pci(cuda, device, pci);
	if (result)
		return ctx_fail(gp, -ENODEV, "cuDeviceGetPCIBusId of device %d: %s", device,
				cuda_strerror(cuda, result));
	return topo_rm_open(gp, pci, topo);
}

static int supported(struct gpupart *gp, const struct gpupart_topology *topo,
		     unsigned int *compute_class)
{
	if (topo->info.mig == 1)
		return ctx_fail(gp, -EOPNOTSUPP,
				"MIG is enabled on %s: launches cannot be confined",
				topo->info.pci);
	*compute_class = tmd_compute_class(topo->info.chip_id, topo->compute_class);
	if (!*compute_class)
		return ctx_fail(gp, -EOPNOTSUPP,
				"chip %#x at %s is unknown: gpupart has no TMD layout for its compute class %#x (0 means unknown)",
				topo->info.chip_id, topo->info.pci, topo->compute_class);
	return 0;
}

/*
 * Returns the GPU that @selector names. If this GPU is not attached yet, the function attaches
 * it. The caller holds the lock.
 */
static int gpu_get(struct gpupart *gp, const struct cuda_api *cuda, const char *selector,
		   bool early, struct gpupart_gpu **got)
{
	struct gpupart_topology *topo;
	unsigned int compute_class;
	struct gpupart_gpu *gpu;
	int err;

	err = find_topology(gp, cuda, selector, early, &topo);
	if (err)
		return err;
	gpu = scope_gpu_of(driver_gpu_find(topo->info.pci));
	if (gpu) {
		gpupart_topology_close(topo);
		*got = gpu;
		/* This call fails after gpupart_detach(). */
		return driver_gpu_start(gp, cuda);
	}
	err = supported(gp, topo, &compute_class);
	if (err)
		goto close_topo;
	gpu = calloc(1, sizeof(*gpu));
	if (gpu)
		gpu->shared = state_add_gpu(&topo->info, gpupart_topology_hash(topo));
	if (!gpu || !gpu->shared) {
		err = ctx_fail(gp, -ENOMEM, "out of memory for a GPU");
		goto free_gpu;
	}
	gpu->driver.topo = topo;
	gpu->driver.device = -1;
	gpu->driver.map.parts = &gpu->parts;
	gpu->check.layout = "";
	gpu->check.streams = "not attached yet";
	gpu->check.graphs = "not attached yet";
	gpu->driver.compute_class = compute_class;
	err = driver_gpu_start(gp, cuda);
	if (!err)
		err = launch_watch(gp, cuda);
	if (!err)
		err = driver_gpu_add(gp, &gpu->driver);
	if (err)
		goto drop_gpu;
	/*
	 * Add the GPU to the list before this check. Another thread may load a module at the same
	 * time, and must then find the GPU in the list.
	 */
	if (module_any())
		scope_used(gpu, SCOPE_USED_MODULES);
	*got = gpu;
	return 0;

drop_gpu:
	state_remove_gpu(gpu->shared);
free_gpu:
	free(gpu);
close_topo:
	gpupart_topology_close(topo);
	return err;
}

#define WORD_LEN 128	/* size of a buffer for the name of one GPU; no GPU has a longer name */

/*
 * Finds the GPU at @pci in @list. Returns the position of the GPU in the list, -1 if the GPU is
 * not in the list, or an error.
 */
static int find_listed(struct gpupart *gp, const struct cuda_api *cuda, bool early,
		       const char *list, const char *pci)
{
	struct gpupart_topology *meant;
	char word[WORD_LEN];
	int n, err;
	bool same;

	for (n = 0; environment_part(list, ',', n, word, sizeof(word)) >= 0; n++)
		if (!strcmp(word, pci))
			return n;
	for (n = 0; environment_part(list, ',', n, word, sizeof(word)) >= 0; n++) {
		/*
		 * A word may name a GPU other than the GPU at @pci. But if a word names no GPU at
		 * all, return an error. Otherwise the limit would be ignored.
		 */
		err = find_topology(gp, cuda, word, early, &meant);
		if (err)
			return ctx_fail_because(gp, -EINVAL, ENVIRONMENT_GPU "=%.100s", list);
		same = !strcmp(meant->info.pci, pci);
		gpupart_topology_close(meant);
		if (same)
			return n;
	}
	return -1;
}

/*
 * Parses a set in @words. If @words contains one set per GPU, the function parses set number @n.
 * Returns 0 or -EINVAL. The error message then contains the name @variable.
 */
static int set_of_words(struct gpupart *gp, const struct gpupart_gpu *gpu, const char *variable,
			const char *words, int n, struct gpupart_tpcset *set)
{
	const char *one = words;
	char part[2048];
	int err, len;

	if (strchr(words, ';')) {
		len = environment_part(words, ';', n, part, sizeof(part));
		one = len >= 0 && len < (int)sizeof(part) ? part : "";
	}
	err = gpupart_set_parse(gp, gpu->driver.topo, one, set);
	if (!err)
		err = gpu_may_set(gp, gpu, set);
	return err ? ctx_fail_because(gp, err, "%s=%.100s", variable, words) : 0;
}

/*
 * Adds the rules that the environment contains for @gpu. The environment has a list of GPUs, and
 * @gpu has the position @n in this list.
 */
static int rules_from_environment(struct gpupart *gp, struct gpupart_gpu *gpu, const char *rules,
				  int n)
{
	char line[RULES_PATTERN + 2048], *pattern;
	struct gpupart_tpcset set;
	int err = rules ? api_watch_names(gp) : 0, len;

	for (unsigned int i = 0; rules && !err; i++) {
		len = environment_part(rules, '\n', i, line, sizeof(line));
		if (len < 0)
			break;
		pattern = strchr(line, ' ');
		if (len >= (int)sizeof(line) || !pattern)
			return ctx_fail(gp, -EINVAL,
					ENVIRONMENT_RULES ": this is not a rule: %.100s", line);
		*pattern++ = 0;
		err = set_of_words(gp, gpu, ENVIRONMENT_RULES, line, n, &set);
		if (!err)
			err = rules_set(gp, gpu, pattern, &set);
	}
	return err;
}

/*
 * Reads the limit for @gpu from GPUPART_SET, and the rules for @gpu from GPUPART_RULES. `gpupart
 * run` sets these variables. If GPUPART_GPU is set, the limit and the rules are for the GPUs in
 * GPUPART_GPU. Otherwise they are for every GPU. The variables also have an effect in programs
 * that link the library.
 */
static int set_from_environment(struct gpupart *gp, const struct cuda_api *cuda, bool early,
				struct gpupart_gpu *gpu, const struct environment *outside,
				struct gpupart_tpcset *set, bool *found)
{
	int err, n = 0;

	*found = false;
	if (!outside->set && !outside->rules)
		return 0;
	if (outside->gpu)
		n = find_listed(gp, cuda, early, outside->gpu, gpu->driver.topo->info.pci);
	if (n < 0)
		return n == -1 ? 0 : n;
	err = rules_from_environment(gp, gpu, outside->rules, n);
	if (err || !outside->set)
		return err;
	err = set_of_words(gp, gpu, ENVIRONMENT_SET, outside->set, n, set);
	*found = !err;
	return err;
}

/*
 * Sets the limit that comes from outside this process. If the limit was changed after the program
 * started, the record of the job GPUPART_JOB contains the new limit. Then the function uses the
 * new limit. Otherwise it uses the limit in the environment. Then the function removes all TPCs
 * that this user's grants do not allow. If there is no limit, the TPCs of the grants are the
 * limit.
 */
static int limit_from_outside(struct gpupart *gp, const struct cuda_api *cuda, bool early,
			      struct gpupart_gpu *gpu)
{
	const struct environment outside = environment_read();
	const char *pci = gpu->driver.topo->info.pci;
	struct gpupart_tpcset set, other, both;
	struct grant_limit given;
	bool found, bound;
	int err;

	if (gpu->has_environment)
		return 0;
	err = set_from_environment(gp, cuda, early, gpu, &outside, &set, &found);
	if (err)
		return err;
	/*
	 * To change the limit of a job, a program first writes the job's record. Then it searches
	 * for the job's processes. So that program finds this process, or this process reads the
	 * changed record.
	 */
	state_page_lock();
	if (found && outside.job && job_limit(outside.job, pci, &other) &&
	    !gpu_may_set(NULL, gpu, &other))
		set = other;
	bound = grant_limit(geteuid(), pci, NULL, &given);
	if (bound && gpupart_tpcset_empty(&given.tpcs)) {
		err = ctx_fail(gp, -EUSERS, GRANT_HIDDEN);
		goto unlock;
	}
	if (bound && (found || !gpu_may_set(NULL, gpu, &given.tpcs))) {
		both = found ? gpupart_tpcset_and(&set, &given.tpcs) : given.tpcs;
		set = gpupart_tpcset_empty(&both) ? given.tpcs : both;
		found = true;
	}
	if (found)
		scope_limit_set(gpu, LIMIT_OUTER, &set);
	/*
	 * Read the environment one time. If the program itself sets these variables later, the
	 * new values must not become a limit.
	 */
	gpu->has_environment = true;
unlock:
	state_page_unlock();
	return err;
}

/*
 * With GPUPART_DISABLE=1 in the environment, the library does nothing. But users with a grant
 * cannot disable the library.
 */
static int begin(struct gpupart *gp, const struct cuda_api **cuda)
{
	struct grant_limit given;

	fork_guard();
	if (environment_read().untouched && !grant_limit(geteuid(), NULL, NULL, &given))
		return ctx_fail(gp, -ECANCELED, ENVIRONMENT_OFF "=1: gpupart is disabled");
	return cuda_open(gp, cuda);
}

/* Calls begin() and initialises CUDA. */
static int begin_init(struct gpupart *gp, const struct cuda_api **cuda)
{
	int err = begin(gp, cuda), result;

	if (err)
		return err;
	result = (*cuda)->init(0);
	return result ? ctx_fail(gp, result == CUDA_ERROR_NO_DEVICE ? -ENODEV : -EIO, "cuInit: %s",
				 cuda_strerror(*cuda, result)) : 0;
}

/*
 * Called after this process is published. A run may borrow TPCs of this process. This run finds
 * the published process, or this function finds the run.
 */
static void report_borrower(struct gpupart_gpu *gpu)
{
	if (!report_lend)
		return;
	atomic_fetch_add(&report_lend->attached, 1);
	if (atomic_load(&report_lend->lends))
		scope_used(gpu, SCOPE_USED_LENDS);
}

static int attach(struct gpupart *gp, const char *selector, struct gpupart_gpu **attached)
{
	const struct cuda_api *cuda;
	struct gpupart_gpu *gpu;
	struct probe *probe;
	void *current;
	int err = begin_init(gp, &cuda);

	if (err)
		return err;
	FORK_HOLD(&attach_lock);
	err = gpu_get(gp, cuda, selector, false, &gpu);
	if (!err && !gpu->learned) {
		err = device_of_pci(gp, cuda, gpu->driver.topo->info.pci, &gpu->driver.device);
		if (!err)
			err = probe_get(gp, cuda, gpu, gpu->driver.device, &probe);
		if (!err) {
			driver_context_on(probe->ctx, gpu->driver.device);
			err = check_gpu(gp, gpu, probe);
		}
		gpu->learned = !err;
	}
	/* A later call of this function handles the context that is current at that time. */
	if (!err && !cuda->ctx_current(&current))
		driver_gpu_of_context(current);
	if (!err) {
		state_publish_map(gpu->shared, &gpu->driver.map);
		err = limit_from_outside(gp, cuda, false, gpu);
	}
	if (err)
		return err;
	state_page_own->problem[0] = 0;
	report_borrower(gpu);
	*attached = gpu;
	return 0;
}

/*
 * The caller's struct may be older and may have fewer options. Copies the options in this struct,
 * and sets all other options to 0.
 */
static int options_read(struct gpupart *gp, const struct gpupart_attach_options *given,
			struct gpupart_attach_options *options)
{
	const unsigned char *bytes = (const unsigned char *)given;

	memset(options, 0, sizeof(*options));
	if (!given)
		return 0;
	if (given->size < offsetof(struct gpupart_attach_options, unconfined) + 4)
		return ctx_fail(gp, -EINVAL,
				"the options have %zu bytes but must have at least %zu",
				given->size,
				offsetof(struct gpupart_attach_options, unconfined) + 4);
	for (size_t i = sizeof(*options); i < given->size; i++)
		if (bytes[i])
			return ctx_fail(gp, -E2BIG,
					"byte %zu of the options must be 0: this library knows only the first %zu bytes",
					i, sizeof(*options));
	memcpy(options, given, given->size < sizeof(*options) ? given->size : sizeof(*options));
	if (options->unconfined > GPUPART_UNCONFINED_FAIL)
		return ctx_fail(gp, -EINVAL,
				"the option unconfined must be 0 (run) or 1 (fail), not %u",
				options->unconfined);
	if (options->profilers > 1)
		return ctx_fail(gp, -EINVAL, "the option profilers must be 0 or 1, not %u",
				options->profilers);
	if (options->no_device_launch > 1)
		return ctx_fail(gp, -EINVAL, "the option no_device_launch must be 0 or 1, not %u",
				options->no_device_launch);
	return 0;
}

int gpupart_attach(struct gpupart *gp, const char *selector,
		   const struct gpupart_attach_options *given, struct gpupart_gpu **attached)
{
	struct gpupart_attach_options options;
	struct gpupart strict = { "" };
	int err = options_read(gp, given, &options);

	if (!err && options.profilers)
		err = driver_tools_want(gp);
	if (err)
		return err;
	err = attach(gp, selector, attached);
	if (!err && options.no_device_launch)
		err = api_refuse_parents(gp);
	if (options.unconfined != GPUPART_UNCONFINED_FAIL)
		return err;
	if (!err)
		return gpupart_strict_start(gp, false);
	/* The error message of @gp already says why the GPU cannot be attached. */
	if (gpupart_strict_start(&strict, true))
		return ctx_fail_because(gp, err,
					"gpupart cannot make unconfined launches fail (%.200s)",
					strict.error);
	return err;
}

int gpupart_available(struct gpupart *gp, const char *selector)
{
	struct gpupart_topology *topo;
	unsigned int compute_class;
	const struct cuda_api *cuda;
	int err = begin_init(gp, &cuda);

	if (err)
		return err;
	FORK_HOLD(&attach_lock);
	err = find_topology(gp, cuda, selector, false, &topo);
	if (err)
		return err;
	err = supported(gp, topo, &compute_class);
	gpupart_topology_close(topo);
	return err ? err : driver_free(gp, cuda);
}

static bool strict_started;

/* Returns an error if the program has a limit that gpupart_detach() must not remove. */
static int may_detach(struct gpupart *gp)
{
	struct limit_sets sets;
	struct gpupart_gpu *gpu;

	if (strict_started)
		return ctx_fail(gp, -EPERM, "this process is strict: its launches stay confined");
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		scope_limit_get(gpu, &sets);
		if (!gpupart_tpcset_empty(&sets.outer))
			return ctx_fail(gp, -EPERM, "%s has a limit that another process set",
					gpu->driver.topo->info.pci);
	}
	return 0;
}

int gpupart_detach(struct gpupart *gp)
{
	struct gpupart_gpu *gpu;
	int err;

	fork_guard();
	FORK_HOLD(&attach_lock);
	err = may_detach(gp);
	if (!err)
		err = driver_release(gp);
	if (err)
		return err;
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		atomic_store_explicit(&gpu->trusted, false, memory_order_release);
		scope_ring_set(gpu, &gpu->process, NULL);
		scope_limit_set(gpu, LIMIT_INNER, NULL);
		rules_set(gp, gpu, NULL, NULL);
		scope_destroyed(gpu, &gpu->streams, 0, NULL, NULL);
		scope_destroyed(gpu, &gpu->functions, 0, NULL, NULL);
	}
	snprintf(state_page_own->problem, sizeof(state_page_own->problem),
		 "gpupart_detach() was called");
	return 0;
}

int gpupart_attach_early(struct gpupart *gp, const char *selector, const char *key,
			 struct gpupart_gpu **attached)
{
	const struct cuda_api *cuda;
	struct gpupart_gpu *gpu;
	int err;

	err = begin(gp, &cuda);
	if (err)
		return err;
	FORK_HOLD(&attach_lock);
	err = gpu_get(gp, cuda, selector, true, &gpu);
	if (!err && !atomic_load_explicit(&gpu->trusted, memory_order_relaxed))
		err = check_gpu_known(gp, gpu, key);
	if (!err)
		recording_known(gpu, key);
	if (!err) {
		state_publish_map(gpu->shared, &gpu->driver.map);
		err = limit_from_outside(gp, cuda, true, gpu);
	}
	if (err)
		/* Publish the description of the problem, so that other processes can read it. */
		snprintf(state_page_own->problem, sizeof(state_page_own->problem), "%.255s",
			 gp->error);
	report_attached(gp, err, err ? NULL : &gpu->driver.topo->info);
	if (err)
		return err;
	report_borrower(gpu);
	*attached = gpu;
	return 0;
}

int gpupart_strict_start(struct gpupart *gp, bool refuse)
{
	const struct cuda_api *cuda;
	int err;

	fork_guard();
	err = cuda_open(gp, &cuda);
	if (!err)
		err = api_strict(gp, cuda, refuse);
	strict_started |= !err;
	if (refuse)
		report_refused(!err);
	return err;
}

int gpupart_process_publish(struct gpupart *gp, const char *name)
{
	int err;

	fork_guard();
	/*
	 * While the state page moves, no other thread may set a limit, because that limit would
	 * be lost.
	 */
	FORK_HOLD(&attach_lock);
	process_list_own(NULL, 0);
	scope_hold();
	err = state_page_publish(name, environment_read().job);
	scope_release();
	return err ? ctx_fail(gp, err,
			      "the state page of this process cannot be created in /dev/shm: %s",
			      strerror(-err))
		   : 0;
}

int gpupart_profilers(struct gpupart *gp)
{
	return driver_tools(gp);
}
