// SPDX-License-Identifier: MIT
/*
 * The public face of confining: attach a GPU, give sets to its scopes. Must not know
 * a TMD's fields, nor how the callback comes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/confine/calls.h"
#include "lib/confine/graph.h"
#include "lib/confine/hold.h"
#include "lib/confine/launch.h"
#include "lib/confine/module.h"
#include "lib/confine/probe.h"
#include "lib/confine/report.h"
#include "lib/confine/self_check.h"
#include "lib/confine/sm_count.h"
#include "lib/confine/stream.h"
#include "lib/core/fork.h"
#include "lib/driver/callback.h"
#include "lib/state/grant.h"
#include "lib/state/job.h"
#include "lib/state/process.h"
#include "lib/state/process_block.h"

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(attach_lock);

/* ------------------------------------------------------------------- attaching */

static void lower_case(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'F')
			*text += 'a' - 'A';
}

/* CUDA's number of the GPU at @pci; -ENODEV where this process does not see it. */
static int device_of_pci(struct gpupart *gp, const struct cuda_api *cuda, const char *pci,
			 int *device)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int count, result = cuda->device_count(&count);

	if (result)
		return ctx_fail(gp, -ENODEV, "cuDeviceGetCount: %s", cuda_words(cuda, result));
	for (int i = 0; i < count; i++) {
		char found[20] = "";

		if (cuda->device_pci(found, sizeof(found), i))
			continue;
		lower_case(found);
		if (!strcmp(found, pci)) {
			*device = i;
			return 0;
		}
	}
	return ctx_fail(gp, -ENODEV,
			"the GPU at %s is none of the %d that CUDA shows to this process%s%s", pci,
			count, visible ? ": CUDA_VISIBLE_DEVICES is " : "", visible ? visible : "");
}

/* The N of "cuda:N". */
static int device_number(struct gpupart *gp, const char *selector, int *device)
{
	const char *digits = selector + 5;
	long n = 0;

	for (const char *c = digits; *c; c++) {
		if (*c < '0' || *c > '9' || n > 9999)
			goto bad;
		n = n * 10 + *c - '0';
	}
	if (!*digits)
		goto bad;
	*device = n;
	return 0;
bad:
	return ctx_fail(gp, -ENODEV,
			"\"%.100s\" names no GPU: cuda:N with CUDA's device number is what would",
			selector);
}

/* The topology of a GPU that the simulated driver plays. */
static int simulated_topology(struct gpupart *gp, const struct cuda_api *cuda, const char *selector,
			      struct gpupart_topology **topo)
{
	const char *capture;
	int number = -1, err;

	if (selector && !strncmp(selector, "cuda:", 5)) {
		err = device_number(gp, selector, &number);
		if (err)
			return err;
	}
	for (int device = 0; (capture = cuda->sim_capture(device)); device++) {
		struct gpupart_topology *t;

		err = topo_file_open(gp, capture, NULL, &t);
		if (err)
			return err;
		t->info.simulated = true;
		if (cuda->sim_gpu_info)
			cuda->sim_gpu_info(device, t->info.pci, t->info.uuid);
		if (!selector || number == device ||
		    (number < 0 && topo_selects(selector, &t->info, device))) {
			*topo = t;
			return 0;
		}
		gpupart_topology_close(t);
	}
	return ctx_fail(gp, -ENODEV, "no simulated GPU is %s: GPUPART_SIM names their captures",
			selector ? selector : "there");
}

/* Of the real sources NVIDIA's driver alone tells virtual GPCs, which mask bits are made of. */
static int find_topology(struct gpupart *gp, const struct cuda_api *cuda, const char *selector,
			 bool early, struct gpupart_topology **topo)
{
	int result, count, device = 0;
	char pci[20];

	if (cuda->sim_capture)
		return simulated_topology(gp, cuda, selector, topo);
	/* Before cuInit has ended CUDA's devices cannot be asked for. */
	if (early || (selector && strncmp(selector, "cuda:", 5)))
		return topo_rm_open(gp, selector, topo);
	result = cuda->device_count(&count);
	if (result || !count)
		return ctx_fail(gp, -ENODEV, "CUDA shows no GPU to this process: %s",
				cuda_words(cuda, result));
	if (selector) {
		int err = device_number(gp, selector, &device);

		if (err)
			return err;
		if (device >= count)
			return ctx_fail(gp, -ENODEV, "%s is not there: CUDA shows devices 0-%d",
					selector, count - 1);
	}
	result = cuda->device_pci(pci, sizeof(pci), device);
	if (result)
		return ctx_fail(gp, -ENODEV, "cuDeviceGetPCIBusId of device %d: %s", device,
				cuda_words(cuda, result));
	lower_case(pci);
	return topo_rm_open(gp, pci, topo);
}

static int supported(struct gpupart *gp, const struct gpupart_topology *topo)
{
	if (topo->info.mig == 1)
		return ctx_fail(gp, -EOPNOTSUPP, "MIG is on at %s: TPCs cannot be masked beside it",
				topo->info.pci);
	if (!tmd_compute_class(topo->info.chip_id))
		return ctx_fail(gp, -EOPNOTSUPP,
				"chip %#x at %s is not known: no compute class, so no TMD layout",
				topo->info.chip_id, topo->info.pci);
	return 0;
}

/* An attached object for @selector, new or not; under the lock. */
static int gpu_get(struct gpupart *gp, const struct cuda_api *cuda, const char *selector,
		   bool early, struct gpupart_gpu **got)
{
	struct gpupart_topology *topo;
	struct gpupart_gpu *gpu;
	int err;

	err = find_topology(gp, cuda, selector, early, &topo);
	if (err)
		return err;
	gpu = scope_gpu_of(driver_gpu_find(topo->info.pci));
	if (gpu) {
		gpupart_topology_close(topo);
		*got = gpu;
		/* Not after gpupart_detach(). */
		return driver_gpu_start(gp, cuda);
	}
	err = supported(gp, topo);
	if (err)
		goto close_topo;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu) {
		err = ctx_fail(gp, -ENOMEM, "no memory for a GPU");
		goto free_gpu;
	}
	gpu->driver.topo = topo;
	gpu->driver.device = -1;
	gpu->check.layout = "";
	gpu->check.streams = "not attached yet";
	gpu->check.graphs = "not attached yet";
	gpu->driver.compute_class = tmd_compute_class(topo->info.chip_id);
	gpu->shared = control_add_gpu(&topo->info, gpupart_topology_hash(topo));
	if (!gpu->shared) {
		err = ctx_fail(gp, -ENOMEM, "no memory for a GPU");
		goto free_gpu;
	}
	err = driver_gpu_start(gp, cuda);
	if (!err)
		err = launch_watch(gp, cuda);
	if (!err)
		err = driver_gpu_add(gp, &gpu->driver);
	if (err)
		goto drop_gpu;
	/* After it is in the list: what is loaded meanwhile finds it there. */
	if (module_any())
		scope_used(gpu, SCOPE_USED_MODULES);
	*got = gpu;
	return 0;

drop_gpu:
	control_drop_gpu(gpu->shared);
free_gpu:
	free(gpu);
close_topo:
	gpupart_topology_close(topo);
	return err;
}

/* The quick half of gpupart_set_check(): its sentence is made only where it fails. */
static inline int set_bad(struct gpupart *gp, const struct gpupart_gpu *gpu,
			  const struct gpupart_tpcset *set)
{
	unsigned int nr = gpu->driver.map.nr_tpcs;
	uint64_t any = 0, beyond = 0;

	for (unsigned int i = 0; i < GPUPART_TPCSET_WORDS; i++) {
		uint64_t there = nr >= (i + 1) * 64 ? ~0ull :
				 nr > i * 64 ? (1ull << nr % 64) - 1 : 0;

		any |= set->allowed[i] & there;
		beyond |= set->allowed[i] & ~there;
	}
	if (__builtin_expect(any && !beyond, 1))
		return 0;
	return gpupart_set_check(gp, gpu->driver.topo, set);
}

static int untrusted(struct gpupart *gp, const struct gpupart_gpu *gpu)
{
	return ctx_fail(gp, -EOPNOTSUPP, "the mask bits of %s were not proven: attach it first",
			gpu->driver.topo->info.pci);
}

static inline int may_set(struct gpupart *gp, const struct gpupart_gpu *gpu,
			  const struct gpupart_tpcset *set)
{
	if (!atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		return untrusted(gp, gpu);
	return set ? set_bad(gp, gpu, set) : 0;
}

static const char *env_value(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* GPUPART_DISABLE=1: as if we were not there. What a node gave is not its user's to leave. */
static int keep_out(struct gpupart *gp)
{
	const char *out = env_value("GPUPART_DISABLE");

	if (!out || strcmp(out, "1") || node_gives(geteuid()))
		return 0;
	return ctx_fail(gp, -ECANCELED, "GPUPART_DISABLE=1: nothing is touched");
}

/* Where the node gives this user parts of GPUs, *set is no more than he was given. */
static void keep_given(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	struct gpupart_tpcset given, both;

	if (!node_tpcs(geteuid(), gpu->driver.topo->info.pci, &given))
		return;
	both = gpupart_tpcset_and(set, &given);
	*set = gpupart_tpcset_empty(&both) ? given : both;
}

/* The same where the environment says nothing of this GPU. */
static void limit_to_given(struct gpupart_gpu *gpu)
{
	struct gpupart_tpcset given;

	if (!node_tpcs(geteuid(), gpu->driver.topo->info.pci, &given) || may_set(NULL, gpu, &given))
		return;
	control_lock();
	scope_limit_set(gpu, LIMIT_OUTER, &given);
	control_unlock();
}

/*
 * GPUPART_SET is the limit that `gpupart run` gave this process, GPUPART_GPU the GPU it
 * is for (without it: any). It holds for programs that link the library too. What the
 * job was set to since is in the note of GPUPART_JOB.
 */
static int limit_from_environment(struct gpupart *gp, const struct cuda_api *cuda, bool early,
				  struct gpupart_gpu *gpu)
{
	const char *words = env_value("GPUPART_SET"), *selector = env_value("GPUPART_GPU");
	const char *job = env_value("GPUPART_JOB");
	struct gpupart_tpcset set, changed;
	struct gpupart_topology *meant;
	int err;

	if (gpu->has_environment)
		return 0;
	/* Once: what the program puts there later is from inside. */
	if (!words) {
		gpu->has_environment = true;
		limit_to_given(gpu);
		return 0;
	}
	if (selector && strcmp(selector, gpu->driver.topo->info.pci)) {
		bool same;

		/* Another GPU is no error, a word that names none is: the limit would be lost. */
		err = find_topology(gp, cuda, selector, early, &meant);
		if (err)
			return ctx_fail_because(gp, -EINVAL, "GPUPART_GPU=%.100s", selector);
		same = !strcmp(meant->info.pci, gpu->driver.topo->info.pci);
		gpupart_topology_close(meant);
		gpu->has_environment = !same;
		if (!same) {
			limit_to_given(gpu);
			return 0;
		}
	}
	err = gpupart_set_parse(gp, gpu->driver.topo, words, &set);
	if (!err)
		err = may_set(gp, gpu, &set);
	if (err)
		return ctx_fail_because(gp, err, "GPUPART_SET=%.100s", words);
	/* Who changes the job writes its note first, and then looks for us: one of both is new. */
	control_lock();
	if (job && job_limit(job, gpu->driver.topo->info.pci, &changed) &&
	    !may_set(NULL, gpu, &changed))
		set = changed;
	keep_given(gpu, &set);
	scope_limit_set(gpu, LIMIT_OUTER, &set);
	control_unlock();
	gpu->has_environment = true;
	return 0;
}

/* CUDA, initialised. */
static int cuda_begin(struct gpupart *gp, const struct cuda_api **cuda)
{
	int err, result;

	hold_guard();
	err = keep_out(gp);
	if (!err)
		err = cuda_open(gp, cuda);
	if (err)
		return err;
	result = (*cuda)->init(0);
	return result ? ctx_fail(gp, result == CUDA_ERROR_NO_DEVICE ? -ENODEV : -EIO, "cuInit: %s",
				 cuda_words(*cuda, result)) : 0;
}

static int attach(struct gpupart *gp, const char *selector, struct gpupart_gpu **attached)
{
	const struct cuda_api *cuda;
	struct gpupart_gpu *gpu;
	struct probe *probe;
	void *current;
	int err = cuda_begin(gp, &cuda);

	if (err)
		return err;
	pthread_mutex_lock(&attach_lock);
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
	/* Also of those that a second attach finds current. */
	if (!err && !cuda->ctx_current(&current))
		driver_gpu_of_context(current);
	if (!err) {
		control_show_map(gpu->shared, &gpu->driver.map);
		err = limit_from_environment(gp, cuda, false, gpu);
	}
	if (!err)
		control_self->problem[0] = 0;
	pthread_mutex_unlock(&attach_lock);
	if (!err)
		*attached = gpu;
	return err;
}

/* What the caller knows of the options, and zeros. */
static int options_read(struct gpupart *gp, const struct gpupart_attach_options *given,
			struct gpupart_attach_options *options)
{
	const unsigned char *bytes = (const unsigned char *)given;

	memset(options, 0, sizeof(*options));
	if (!given)
		return 0;
	if (given->size < offsetof(struct gpupart_attach_options, unconfined) + 4)
		return ctx_fail(gp, -EINVAL, "options of %zu bytes: %zu at least", given->size,
				offsetof(struct gpupart_attach_options, unconfined) + 4);
	for (size_t i = sizeof(*options); i < given->size; i++)
		if (bytes[i])
			return ctx_fail(gp, -E2BIG,
					"byte %zu of the options is not 0: this library knows the first %zu",
					i, sizeof(*options));
	memcpy(options, given, given->size < sizeof(*options) ? given->size : sizeof(*options));
	if (options->unconfined > GPUPART_UNCONFINED_FAIL)
		return ctx_fail(gp, -EINVAL, "unconfined: %u is neither to run nor to fail",
				options->unconfined);
	return 0;
}

int gpupart_attach(struct gpupart *gp, const char *selector,
		   const struct gpupart_attach_options *given, struct gpupart_gpu **attached)
{
	struct gpupart_attach_options options;
	struct gpupart why;
	int err = options_read(gp, given, &options);

	if (err)
		return err;
	err = attach(gp, selector, attached);
	if (options.unconfined != GPUPART_UNCONFINED_FAIL)
		return err;
	if (!err)
		return gpupart_strict_start(gp, false);
	why = *gp;
	if (gpupart_strict_start(gp, true))
		return ctx_fail_because(gp, err, "%.160s; launches are not refused", why.error);
	*gp = why;
	return err;
}

int gpupart_available(struct gpupart *gp, const char *selector)
{
	struct gpupart_topology *topo;
	const struct cuda_api *cuda;
	int err = cuda_begin(gp, &cuda);

	if (err)
		return err;
	pthread_mutex_lock(&attach_lock);
	err = find_topology(gp, cuda, selector, false, &topo);
	if (!err) {
		err = supported(gp, topo);
		gpupart_topology_close(topo);
	}
	if (!err)
		err = driver_free(gp, cuda);
	pthread_mutex_unlock(&attach_lock);
	return err;
}

static bool strict_started;

/* Of no use for a program that wants to leave a limit. */
static int may_detach(struct gpupart *gp)
{
	struct limit_sets sets;
	struct gpupart_gpu *gpu;

	if (strict_started)
		return ctx_fail(gp, -EPERM, "this process is strict: its launches stay confined");
	for (unsigned int n = 0; (gpu = scope_gpu(n)); n++) {
		scope_limit_get(gpu, &sets);
		if (!gpupart_tpcset_empty(&sets.outer))
			return ctx_fail(gp, -EPERM, "%s has a limit from outside",
					gpu->driver.topo->info.pci);
	}
	return 0;
}

int gpupart_detach(struct gpupart *gp)
{
	struct gpupart_gpu *gpu;
	int err;

	hold_guard();
	pthread_mutex_lock(&attach_lock);
	err = may_detach(gp);
	if (!err)
		err = driver_release(gp);
	for (unsigned int n = 0; !err && (gpu = scope_gpu(n)); n++) {
		atomic_store_explicit(&gpu->trusted, false, memory_order_release);
		scope_ring_set(gpu, &gpu->process, NULL);
		scope_limit_set(gpu, LIMIT_INNER, NULL);
		scope_gone(gpu, &gpu->streams, 0, NULL, NULL);
		scope_gone(gpu, &gpu->functions, 0, NULL, NULL);
	}
	if (!err)
		snprintf(control_self->problem, sizeof(control_self->problem),
			 "it gave the driver's callbacks back");
	pthread_mutex_unlock(&attach_lock);
	return err;
}

int gpupart_attach_early(struct gpupart *gp, const char *selector, const char *key,
			 struct gpupart_gpu **attached)
{
	const struct cuda_api *cuda;
	struct gpupart_gpu *gpu;
	int err;

	hold_guard();
	err = keep_out(gp);
	if (!err)
		err = cuda_open(gp, &cuda);
	if (err)
		return err;
	pthread_mutex_lock(&attach_lock);
	err = gpu_get(gp, cuda, selector, true, &gpu);
	if (!err && !atomic_load_explicit(&gpu->trusted, memory_order_relaxed))
		err = check_gpu_known(gp, gpu, key);
	if (!err) {
		control_show_map(gpu->shared, &gpu->driver.map);
		err = limit_from_environment(gp, cuda, true, gpu);
	}
	if (err)
		/* Whoever looks from outside is told too. */
		snprintf(control_self->problem, sizeof(control_self->problem), "%.255s", gp->error);
	report_attached(gp, err, err ? NULL : &gpu->driver.topo->info);
	pthread_mutex_unlock(&attach_lock);
	if (!err)
		*attached = gpu;
	return err;
}

int gpupart_strict_start(struct gpupart *gp, bool refuse)
{
	const struct cuda_api *cuda;
	int err;

	hold_guard();
	err = cuda_open(gp, &cuda);
	if (!err)
		err = api_strict(gp, cuda, refuse);
	strict_started |= !err;
	if (refuse)
		report_refused(!err);
	return err;
}

const struct gpupart_topology *gpupart_gpu_topology(const struct gpupart_gpu *gpu)
{
	return gpu->driver.topo;
}

void gpupart_gpu_check(const struct gpupart_gpu *gpu, struct gpupart_check *check)
{
	*check = gpu->check;
	/* The program's own calls may have shown more since. */
	if (atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		check->graphs = graph_error();
}

int gpupart_process_publish(struct gpupart *gp, const char *name)
{
	int err;

	hold_guard();
	/* A limit that is set while the block moves would be lost. */
	pthread_mutex_lock(&attach_lock);
	process_list_own(NULL, 0);
	scope_hold();
	err = control_publish(name, env_value("GPUPART_JOB"));
	scope_release();
	pthread_mutex_unlock(&attach_lock);
	return err ? ctx_fail(gp, err, "this process cannot show itself below /dev/shm: %s",
			      strerror(-err))
		   : 0;
}

/* ---------------------------------------------------------------------- scopes */

static int limit_refused(struct gpupart *gp, const struct gpupart_gpu *gpu, const char *what)
{
	char outer[GPUPART_TPCSET_STRLEN];
	struct limit_sets sets;

	scope_limit_get(gpu, &sets);
	gpupart_tpcset_format_list(&sets.outer, outer, sizeof(outer));
	return ctx_fail(gp, -EPERM,
			"the limit from outside, TPCs %s, %s", outer, what);
}

int gpupart_limit_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	int err = may_set(gp, gpu, set);

	if (err || scope_limit_set(gpu, LIMIT_INNER, set))
		return err;
	return limit_refused(gp, gpu, "cannot be widened from inside");
}

int gpupart_limit_cap(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	int err = set ? may_set(gp, gpu, set) : ctx_fail(gp, -EINVAL, "a cap without a set");

	if (err || scope_limit_cap(gpu, set))
		return err;
	return limit_refused(gp, gpu, "has nothing in common with the cap");
}

int gpupart_process_set(struct gpupart *gp, struct gpupart_gpu *gpu,
			const struct gpupart_tpcset *set)
{
	int err = may_set(gp, gpu, set);

	if (!err)
		scope_ring_set(gpu, &gpu->process, set);
	return err;
}

int gpupart_next_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	int err = may_set(gp, gpu, set);

	if (!err && set) {
		api_watch_launches();
		err = check_launches(gp, gpu);
		if (!err)
			err = stream_mark_thread(gp);
	}
	return err ? err : scope_next_set(gp, gpu, set);
}

bool gpupart_limit_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	struct limit_sets sets;
	bool has;

	scope_limit_get(gpu, &sets);
	has = !gpupart_tpcset_empty(&sets.in_force);
	*set = has ? sets.in_force : gpupart_topology_all(gpu->driver.topo);
	return has;
}

bool gpupart_process_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	return scope_ring_get(&gpu->process, gpu, set);
}

/* --------------------------------------------------------------------- streams */

int gpupart_stream_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		       const struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id;
	int err = may_set(gp, gpu, set);

	if (!err)
		err = stream_identify(gp, cuda, stream, &id);
	/* A stream without a set has no entry: nothing to take away. */
	if (err || scope_set_known(gpu, &gpu->streams, &id, set) || !set)
		return err;
	return stream_set_first(gp, gpu, cuda, &id, set);
}

bool gpupart_stream_get(struct gpupart_gpu *gpu, void *stream, struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id;
	bool has = false;

	if (!stream_identify(NULL, cuda, stream, &id))
		scope_get_known(&gpu->streams, &id, set, &has);
	if (!has)
		*set = gpupart_topology_all(gpu->driver.topo);
	return has;
}

/* ---------------------------------------------------------- functions and threads */

int gpupart_function_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *function,
			 const struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id = { .handle = function };
	void *module;
	int err = may_set(gp, gpu, set);

	/* One that has a set already need not be looked at: it would have gone with its module. */
	if (err || (function && scope_set_known(gpu, &gpu->functions, &id, set)))
		return err;
	err = stream_function(gp, cuda, gpu, function, &id.handle, &module);
	if (err || scope_set_known(gpu, &gpu->functions, &id, set) || !set)
		return err;
	return scope_add(gp, gpu, &gpu->functions, "functions", &id, (uintptr_t)module, NULL,
			 (uintptr_t)id.handle, set);
}

bool gpupart_function_get(struct gpupart_gpu *gpu, void *function, struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id = { 0 };
	bool has = false;
	void *module;

	if (!stream_function(NULL, cuda, gpu, function, &id.handle, &module))
		scope_get_known(&gpu->functions, &id, set, &has);
	if (!has)
		*set = gpupart_topology_all(gpu->driver.topo);
	return has;
}

int gpupart_thread_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		       const struct gpupart_tpcset *set)
{
	int err = may_set(gp, gpu, set);

	if (!err)
		err = stream_mark_thread(gp);
	return err ? err : scope_sticky_set(gp, gpu, set);
}

bool gpupart_thread_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	if (scope_sticky_get(gpu, set))
		return true;
	*set = gpupart_topology_all(gpu->driver.topo);
	return false;
}

/* ------------------------------------------------------------------- SM count */

int gpupart_sm_count_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on)
{
	int err = may_set(gp, gpu, NULL);

	return err ? err : smcount_tell(gp, gpu, on);
}

bool gpupart_sm_count_get(struct gpupart_gpu *gpu, unsigned int *nr_sms)
{
	*nr_sms = smcount_now(gpu);
	return atomic_load_explicit(&gpu->sms_told, memory_order_acquire);
}

/* ---------------------------------------------------------------------- census */

int gpupart_census(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		   struct gpupart_tpcset *seen)
{
	const struct cuda_api *cuda = cuda_loaded();
	unsigned int sm_blocks[TOPO_MAX_SMS];
	struct probe *probe;
	int err, mode;

	if (gpu->driver.device < 0)
		return untrusted(gp, gpu);
	err = probe_get(gp, cuda, gpu, gpu->driver.device, &probe);
	if (!err)
		err = probe_enter(gp, probe, &mode);
	if (err)
		return err;
	err = check_no_capture(gp, probe, stream);
	if (!err)
		err = probe_census(gp, probe, stream, NULL, sm_blocks);
	probe_leave(probe, mode);
	if (err)
		return err;
	memset(seen, 0, sizeof(*seen));
	for (unsigned int sm = 0; sm < gpu->driver.topo->nr_sms; sm++)
		if (sm_blocks[sm])
			gpupart_tpcset_add(seen, gpupart_topology_sm_tpc(gpu->driver.topo, sm));
	return 0;
}
