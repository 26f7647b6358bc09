// SPDX-License-Identifier: MIT
/*
 * The public functions that change or read the sets of an attached GPU. Any thread may call these
 * functions.
 */
#include <errno.h>
#include <string.h>
#include "lib/confine/watched_functions.h"
#include "lib/confine/gpu.h"
#include "lib/confine/rules.h"
#include "lib/confine/graph.h"
#include "lib/confine/probe.h"
#include "lib/confine/self_check.h"
#include "lib/confine/sm_count.h"
#include "lib/confine/stream.h"
#include "lib/driver/callback.h"

const struct gpupart_topology *gpupart_gpu_topology(const struct gpupart_gpu *gpu)
{
	return gpu->driver.topo;
}

void gpupart_gpu_check(const struct gpupart_gpu *gpu, struct gpupart_check *check)
{
	*check = gpu->check;
	/*
	 * After the check, the program may have made calls that gave graphs another reason to
	 * keep old sets.
	 */
	if (atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		check->graphs = graph_error();
}

/*
 * The fast part of gpupart_set_check(). If the check fails, the slow part makes the error
 * sentence.
 */
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
	return ctx_fail(gp, -EOPNOTSUPP,
			"the mask bits of %s were not proven: attach this GPU first",
			gpu->driver.topo->info.pci);
}

int gpu_may_set(struct gpupart *gp, const struct gpupart_gpu *gpu,
		const struct gpupart_tpcset *set)
{
	if (!atomic_load_explicit(&gpu->trusted, memory_order_acquire))
		return untrusted(gp, gpu);
	return set ? set_bad(gp, gpu, set) : 0;
}

static int limit_refused(struct gpupart *gp, const struct gpupart_gpu *gpu, const char *what)
{
	char outer[GPUPART_TPCSET_STRLEN];
	struct limit_sets sets;

	scope_limit_get(gpu, &sets);
	gpupart_tpcset_format_list(&sets.outer, outer, sizeof(outer));
	return ctx_fail(gp, -EPERM,
			"the outer limit (TPCs %s) %s", outer, what);
}

int gpupart_limit_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	int err = gpu_may_set(gp, gpu, set);

	if (err || scope_limit_set(gpu, LIMIT_INNER, set))
		return err;
	return limit_refused(gp, gpu, "cannot be widened from inside the process");
}

int gpupart_limit_cap(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	int err = set ? gpu_may_set(gp, gpu, set)
		      : ctx_fail(gp, -EINVAL, "the set for the cap is missing");

	if (err || scope_limit_set(gpu, LIMIT_CAP, set))
		return err;
	return limit_refused(gp, gpu, "has no TPC in common with the cap");
}

int gpupart_process_set(struct gpupart *gp, struct gpupart_gpu *gpu,
			const struct gpupart_tpcset *set)
{
	int err = gpu_may_set(gp, gpu, set);

	if (!err)
		scope_ring_set(gpu, &gpu->process, set);
	return err;
}

int gpupart_next_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	int err = gpu_may_set(gp, gpu, set);

	if (!err && set) {
		api_watch_launches();
		err = check_launches(gp, gpu);
		if (!err)
			err = stream_mark_thread(gp);
	}
	return err ? err : scope_next_set(gp, gpu, set);
}

/* Returns 0 if the library can keep builds of @exec for @nr sets. */
static int graph_holds(struct gpupart *gp, void *exec, unsigned int nr)
{
	unsigned int most = graph_sets(exec);

	if (!most)
		return ctx_fail(gp, -EINVAL,
				"%p is not an executable graph that was instantiated after the GPU was attached",
				exec);
	return nr <= most
		       ? 0
		       : ctx_fail(gp, -EOPNOTSUPP,
				  "gpupart can prepare this graph for at most %u sets, not for %u",
				  most, nr);
}

__attribute__((cold))
int gpupart_graph_prepare(struct gpupart *gp, struct gpupart_gpu *gpu, void *exec, void *stream,
			  const struct gpupart_tpcset *sets, unsigned int nr)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct graph_place place = { .gpu = gpu };
	struct tmd_allow set;
	int err = 0, result = 0, device;

	for (unsigned int n = 0; n < nr && !err; n++)
		err = gpu_may_set(gp, gpu, &sets[n]);
	if (!err)
		err = graph_holds(gp, exec, nr);
	if (err)
		return err;
	if (!cuda->graph_upload || cuda->ctx_device(&device) || device != gpu->driver.device)
		return ctx_fail(gp, -EINVAL, "the current context is not on the GPU at %s",
				gpu->driver.topo->info.pci);
	err = stream_identify(gp, cuda, stream, &place.id) ?:
	      stream_not_captured(gp, cuda, place.id.handle);
	for (unsigned int n = 0; n < nr && !err && !result; n++) {
		bool own = driver_own(true);

		tmd_map_convert(&gpu->driver.map, &sets[n], &set);
		place.set = &set;
		result = cuda->graph_upload(graph_launch_begin(cuda, exec, &place, false),
					    place.id.handle);
		graph_launch_end(cuda, result);
		result = graph_is_stale() ? CUDA_ERROR_NOT_SUPPORTED : result;
		driver_own(own);
	}
	if (result)
		return ctx_fail(gp, -EIO, "the driver did not upload the graph: %s",
				cuda_strerror(cuda, result));
	/* If a build failed, the library may be able to keep fewer builds of @exec than before. */
	return err ? err : graph_holds(gp, exec, nr);
}

/*
 * Returns @has. If @has is false, there is no set, and the function stores all TPCs of @gpu in
 * *@set.
 */
static bool or_all(const struct gpupart_gpu *gpu, bool has, struct gpupart_tpcset *set)
{
	if (!has)
		*set = gpupart_topology_all(gpu->driver.topo);
	return has;
}

bool gpupart_limit_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	struct limit_sets sets;

	scope_limit_get(gpu, &sets);
	*set = sets.in_force;
	return or_all(gpu, !gpupart_tpcset_empty(set), set);
}

bool gpupart_process_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	return scope_ring_get(&gpu->process, gpu, set);
}

int gpupart_stream_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		       const struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id;
	int err = gpu_may_set(gp, gpu, set);

	if (!err)
		err = stream_identify(gp, cuda, stream, &id);
	/* If the stream has no set, it has no entry to remove. */
	if (err || scope_set_known(gpu, &gpu->streams, &id, set) || !set)
		return err;
	return stream_set_first(gp, gpu, cuda, &id, set);
}

bool gpupart_stream_get(struct gpupart_gpu *gpu, void *stream, struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id;

	return or_all(gpu, !stream_identify(NULL, cuda, stream, &id) &&
			   scope_get_known(&gpu->streams, &id, set), set);
}

int gpupart_function_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *function,
			 const struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id = { .handle = function };
	void *module;
	int err = gpu_may_set(gp, gpu, set);

	/*
	 * If a kernel function has a set, the function is valid. The set would have been removed
	 * with the function's module.
	 */
	if (!err && !set)
		rules_forget();
	if (err || (function && scope_set_known(gpu, &gpu->functions, &id, set)))
		return err;
	err = stream_function(gp, cuda, gpu, function, &id.handle, &module);
	if (err || scope_set_known(gpu, &gpu->functions, &id, set) || !set)
		return err;
	return scope_add(gp, gpu, &gpu->functions, "functions", &id, (uintptr_t)module, NULL,
			 (uintptr_t)id.handle, set);
}

int gpupart_rule_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
		     const struct gpupart_tpcset *set)
{
	int err = gpu_may_set(gp, gpu, set);

	if (!err)
		err = api_watch_names(gp);
	if (!err)
		err = check_launches(gp, gpu);
	return err ? err : rules_set(gp, gpu, pattern, set);
}

bool gpupart_function_get(struct gpupart_gpu *gpu, void *function, struct gpupart_tpcset *set)
{
	const struct cuda_api *cuda = cuda_loaded();
	struct scope_id id = { 0 };
	void *module;

	return or_all(gpu, !stream_function(NULL, cuda, gpu, function, &id.handle, &module) &&
			   scope_get_known(&gpu->functions, &id, set), set);
}

int gpupart_thread_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		       const struct gpupart_tpcset *set)
{
	int err = gpu_may_set(gp, gpu, set);

	if (!err)
		err = stream_mark_thread(gp);
	return err ? err : scope_set_thread(gp, gpu, set);
}

bool gpupart_thread_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	return or_all(gpu, scope_thread_set_get(gpu, set), set);
}

int gpupart_sm_count_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on)
{
	int err = gpu_may_set(gp, gpu, NULL);

	return err ? err : smcount_report(gp, gpu, on);
}

bool gpupart_sm_count_get(struct gpupart_gpu *gpu, unsigned int *nr_sms)
{
	*nr_sms = smcount_now(gpu);
	return atomic_load_explicit(&gpu->sms_limited, memory_order_acquire);
}

int gpupart_census(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		   struct gpupart_tpcset *seen)
{
	struct gpupart_tpcset whole;
	struct probe *probe;
	int err, mode;

	if (gpu->driver.device < 0)
		return untrusted(gp, gpu);
	err = probe_begin(gp, gpu, &probe, &mode);
	if (err)
		return err;
	err = check_no_capture(gp, probe, stream);
	if (!err)
		err = probe_census(gp, probe, stream, NULL, seen, &whole);
	probe_leave(probe, mode);
	return err;
}
