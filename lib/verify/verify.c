// SPDX-License-Identifier: MIT
/*
 * Proves on the GPU that sets work. The code runs the rows and then restores the program's sets. It
 * sets the sets of scopes with the public interface, like a program.
 */
#include <errno.h>
#include "lib/confine/stream.h"
#include "lib/verify/verify.h"

/* If a row cannot run here, returns the reason. Otherwise returns NULL. */
static const char *row_skip(const struct verify *v, unsigned int needs, unsigned int flags)
{
	/*
	 * If the mask bits are wrong, a set might allow no TPC. A launch with this set would never
	 * end.
	 */
	if (v->disproven)
		return "the mask bits are wrong: no further launch is masked";
	if ((needs & SLOW) && (flags & GPUPART_VERIFY_QUICK))
		return "not in a quick run";
	if ((needs & NEEDS_ALL) && v->outer)
		return "a limit from outside is in force";
	if ((needs & NEEDS_STREAMS) && !v->gpu->streams_known)
		return v->gpu->check.streams;
	if ((needs & NEEDS_CLUSTERS) && (!probe_clusters_held(v->probe, 1) || !v->topo->end_vgpc))
		return "this GPU or its driver has no clusters";
	if ((needs & NEEDS_COOPERATIVE) && !v->cuda->launch_ex)
		return "this driver has no cuLaunchKernelEx";
	if ((needs & NEEDS_UGPUS) && !v->topo->nr_ugpus)
		return "the source does not report uGPUs";
	if ((needs & NEEDS_THREE) && gpupart_tpcset_count(&v->all) < 3)
		return "fewer than three TPCs may be used";
	return NULL;
}

/* Returns the number of rows that failed. */
static int rows_run(struct verify *v, unsigned int flags,
		    void (*row)(const struct gpupart_verify_row *row, void *user), void *user)
{
	static const struct verify_row *const groups[] = {
		verify_rows_parts, verify_rows_scopes, verify_rows_vgpcs, verify_rows_concurrent,
	};
	int nr_failed = 0, held;

	for (unsigned int g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (v->row = groups[g]; v->row->name; v->row++) {
			struct gpupart_verify_row result = {
				.name = v->row->name, .what = v->row->what, .detail = v->detail,
			};
			const char *skip = row_skip(v, v->row->flags, flags);

			/* Each row starts without sets. */
			gpupart_process_set(v->gp, v->gpu, NULL);
			gpupart_next_set(v->gp, v->gpu, NULL);
			v->detail[0] = 0;
			held = skip ? -EOPNOTSUPP : v->row->run(v);
			if (held < 0)
				verify_detail(v, "%s", skip ? skip : v->gp->error);
			result.result = held == 1	    ? GPUPART_VERIFY_PASS :
					held == -EOPNOTSUPP ? GPUPART_VERIFY_SKIP :
							      GPUPART_VERIFY_FAIL;
			nr_failed += result.result == GPUPART_VERIFY_FAIL;
			row(&result, user);
		}
	return nr_failed;
}

/*
 * The handles of default streams. The streams belong to the probe's context. If the caller's
 * context is on this GPU, the probe uses the caller's context.
 */
static void *const default_stream[] = { CUDA_STREAM_LEGACY, CUDA_STREAM_PER_THREAD };

#define NR_DEFAULT_STREAMS (sizeof(default_stream) / sizeof(default_stream[0]))

/*
 * The program's sets that would apply to the launches of the rows. The program's sets for functions
 * and for its own streams are absent, because they do not apply to these launches.
 */
struct kept {
	struct limit_sets limit;
	struct gpupart_tpcset process, thread, stream[NR_DEFAULT_STREAMS];
	struct tmd_allow next;
	bool has_process, has_thread, has_stream[NR_DEFAULT_STREAMS], has_next;
};

static void sets_take(struct gpupart_gpu *gpu, const struct cuda_api *cuda, struct kept *kept)
{
	struct scope_id id;

	scope_limit_get(gpu, &kept->limit);
	scope_limit_set(gpu, LIMIT_INNER, NULL);
	kept->has_process = gpupart_process_get(gpu, &kept->process);
	scope_ring_set(gpu, &gpu->process, NULL);
	kept->has_thread = scope_thread_set_get(gpu, &kept->thread);
	scope_set_thread(NULL, gpu, NULL);
	kept->has_next = scope_next_take(gpu, &kept->next);
	for (unsigned int i = 0; i < NR_DEFAULT_STREAMS; i++) {
		kept->has_stream[i] = false;
		if (stream_identify(NULL, cuda, default_stream[i], &id))
			continue;
		kept->has_stream[i] = scope_get_known(&gpu->streams, &id, &kept->stream[i]);
		scope_set_known(gpu, &gpu->streams, &id, NULL);
	}
}

/*
 * Restores the program's sets without checking them. These sets were valid before. If the mask bits
 * turned out to be wrong, the checks would refuse all sets. If the function cannot restore a set,
 * it still restores the other sets. The error message describes the first failure.
 */
static int sets_put_back(struct gpupart *gp, struct gpupart_gpu *gpu, const struct cuda_api *cuda,
			 const struct kept *kept)
{
	bool inside = true;
	struct scope_id id;
	int err = 0;

	for (unsigned int i = 0; i < NR_DEFAULT_STREAMS; i++) {
		struct gpupart *say = err ? NULL : gp;
		int failed;

		if (!kept->has_stream[i])
			continue;
		failed = stream_identify(say, cuda, default_stream[i], &id);
		if (!failed)
			failed = stream_set_first(say, gpu, cuda, &id, &kept->stream[i]);
		err = err ? err : failed;
	}
	scope_ring_set(gpu, &gpu->process, kept->has_process ? &kept->process : NULL);
	if (kept->has_thread) {
		int failed = scope_set_thread(err ? NULL : gp, gpu, &kept->thread);

		err = err ? err : failed;
	}
	if (!gpupart_tpcset_empty(&kept->limit.inner))
		inside = scope_limit_set(gpu, LIMIT_INNER, &kept->limit.inner);
	if (kept->has_next)
		scope_next_put_back(gpu, &kept->next);
	if (err)
		return ctx_fail_because(gp, err, "a set could not be restored");
	return inside ? 0 : ctx_fail(gp, -EPERM,
			"the inner limit could not be restored, because the outer limit was narrowed meanwhile");
}

/*
 * Rows launch on the default streams, and read their results in stream order. This would end a
 * capture in the program if the captured stream waits for the default streams. Other captures are
 * not affected.
 */
static int nothing_captured(struct gpupart *gp, const struct cuda_api *cuda)
{
	int err = 0;

	for (unsigned int i = 0; i < NR_DEFAULT_STREAMS && !err; i++)
		err = stream_not_captured(gp, cuda, default_stream[i]);
	return err ? ctx_fail_because(gp, err, "verify cannot run now") : 0;
}

int gpupart_verify(struct gpupart *gp, struct gpupart_gpu *gpu, unsigned int flags,
		   void (*row)(const struct gpupart_verify_row *row, void *user), void *user)
{
	struct verify v = {
		.gp = gp, .gpu = gpu, .topo = gpu->driver.topo, .cuda = cuda_loaded(),
		.stream[VERIFY_LEGACY] = NULL, .stream[VERIFY_PER_THREAD] = CUDA_STREAM_PER_THREAD,
	};
	struct limit_sets limit;
	struct kept kept;
	int err, result, mode, nr_failed = 0;

	if (!row || (flags & ~GPUPART_VERIFY_QUICK))
		return ctx_fail(gp, -EINVAL,
				row ? "flags %#x do not exist"
				    : "the function that receives the rows is missing (flags %#x)",
				flags);
	if (!gpu->learned)
		return ctx_fail(
			gp, -EINVAL,
			"the GPU at %s was attached without test launches, so it cannot be verified",
			gpu->driver.topo->info.pci);
	scope_limit_get(gpu, &limit);
	v.outer = !gpupart_tpcset_empty(&limit.outer);
	v.all = v.outer ? limit.outer : gpupart_topology_all(gpu->driver.topo);
	err = probe_get(gp, v.cuda, gpu, gpu->driver.device, &v.probe);
	if (!err)
		err = probe_enter(gp, v.probe, &mode);
	if (err)
		return err;
	err = nothing_captured(gp, v.cuda);
	if (err)
		goto leave;
	result = v.cuda->stream_create(&v.stream[VERIFY_BLOCKING], 0);
	if (!result)
		result = v.cuda->stream_create(&v.stream[VERIFY_NON_BLOCKING],
					       CUDA_STREAM_NON_BLOCKING);
	if (!result)
		result = v.cuda->stream_create_priority(&v.stream[VERIFY_PRIORITY],
							CUDA_STREAM_NON_BLOCKING, -1);
	if (result) {
		err = ctx_fail(gp, -EIO, "cuStreamCreate: %s", cuda_strerror(v.cuda, result));
		goto destroy;
	}
	sets_take(gpu, v.cuda, &kept);
	nr_failed = rows_run(&v, flags, row, user);
	if (v.disproven) {
		atomic_store_explicit(&gpu->trusted, false, memory_order_release);
		atomic_store_explicit(&gpu->shared->nr_tpcs, 0, memory_order_release);
	}
	err = sets_put_back(gp, gpu, v.cuda, &kept);
destroy:
	for (int i = VERIFY_BLOCKING; i <= VERIFY_PRIORITY; i++)
		if (v.stream[i])
			v.cuda->stream_destroy(v.stream[i]);
leave:
	probe_leave(v.probe, mode);
	return err ? err : nr_failed;
}
