// SPDX-License-Identifier: MIT
/* Makes probe launches. Each block of a probe launch records the SM on which it ran. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/confine/probe.h"
#include "lib/core/fork.h"
#include "lib/driver/callback.h"

/* The library contains the PTX as text. The driver compiles this text for the GPU. */
#define EMBED(name, file) \
	__asm__(".section .rodata\n.global " #name "\n.hidden " #name "\n" #name ":\n" \
		".incbin \"" file "\"\n.byte 0\n.previous\n"); \
	extern const char name[]

EMBED(probe_ptx, "probe.ptx");
EMBED(probe_cluster_ptx, "probe_cluster.ptx");

static const char *const kernel_name[PROBE_NR_KERNELS] = {
	[PROBE_EMPTY] = "gpupart_empty",
	[PROBE_CENSUS] = "gpupart_census",
	[PROBE_WORK] = "gpupart_work",
	[PROBE_CLUSTER] = "gpupart_cluster",
};

/*
 * The lock protects the list of probes. Each context has one probe. No thread holds the lock
 * during a driver call, because a driver call may call on_resource().
 */
static pthread_mutex_t probes_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(probes_lock, 1);
static struct probe *probes;

/*
 * Returns the probe of @ctx. If @ctx is NULL, returns the probe that retained the primary context
 * of @device. If there is no such probe, adds the probe @add and returns it. Argument @add may be
 * NULL.
 */
static struct probe *probe_find(const void *ctx, int device, struct probe *add)
{
	FORK_HOLD(&probes_lock);
	for (struct probe *probe = probes; probe; probe = probe->next)
		if (probe->pid == getpid() &&
		    (ctx ? probe->ctx == ctx : probe->retained && probe->device == device))
			return probe;
	if (add) {
		add->next = probes;
		probes = add;
	}
	return add;
}

static void probe_free(struct probe *probe)
{
	pthread_mutex_destroy(&probe->lock);
	free(probe->host);
	free(probe);
}

/* If a context is destroyed, its modules and its device memory are also freed. */
static void on_resource(int cbid, const struct resource_params *params)
{
	struct probe **at, *gone;

	if (cbid != DRIVER_CTX_DESTROYED)
		return;
	FORK_HOLD(&probes_lock);
	for (at = &probes; *at && (*at)->ctx != params->ctx; )
		at = &(*at)->next;
	gone = *at;
	if (gone) {
		*at = gone->next;
		probe_free(gone);
	}
}

static int failed(struct gpupart *gp, const struct cuda_api *cuda, const char *what, int result)
{
	return ctx_fail(gp, -EIO, "%s: %s", what, cuda_strerror(cuda, result));
}

/* Loads the kernels and allocates the memory of a probe. Its context must be current. */
static int probe_load(struct gpupart *gp, struct probe *probe, int device)
{
	const struct cuda_api *cuda = probe->cuda;
	bool was = driver_own(true);
	int result, nr_sms, cluster = 0;

	result = cuda->device_attr(&nr_sms, CUDA_ATTR_MULTIPROCESSORS, device);
	driver_own(was);
	if (result)
		return failed(gp, cuda, "cuDeviceGetAttribute", result);
	/*
	 * Only Volta and later GPUs have opt-in shared memory. Every GPU has slightly less than
	 * 48 KiB of other shared memory.
	 */
	if (cuda->device_attr((int *)&probe->shared, CUDA_ATTR_SHARED_OPTIN, device) ||
	    probe->shared < 49152)
		probe->shared = 49152;
	if (cuda->device_attr(&cluster, CUDA_ATTR_CLUSTER_LAUNCH, device))
		cluster = 0;
	result = cuda->module_load(&probe->module, probe_ptx);
	if (result)
		return failed(gp, cuda, "the probe kernels cannot be loaded: cuModuleLoadData",
			      result);
	for (int k = PROBE_EMPTY; k <= PROBE_WORK; k++) {
		result = cuda->module_function(&probe->function[k], probe->module, kernel_name[k]);
		if (result)
			return failed(gp, cuda, "cuModuleGetFunction", result);
	}
	if (cluster && cuda->launch_ex) {
		result = cuda->module_load(&probe->cluster_module, probe_cluster_ptx);
		if (!result)
			result = cuda->module_function(&probe->function[PROBE_CLUSTER],
						       probe->cluster_module,
						       kernel_name[PROBE_CLUSTER]);
		/*
		 * Allow more than 8 blocks in a cluster. If the driver does not support this, the
		 * later launch fails.
		 */
		if (!result)
			cuda->func_set_attr(probe->function[PROBE_CLUSTER],
					    CUDA_FUNC_ATTR_NON_PORTABLE_CLUSTER, 1);
		if (result)
			return failed(gp, cuda, "the probe's cluster kernel cannot be loaded",
				      result);
	}
	for (int k = PROBE_CENSUS; k < PROBE_NR_KERNELS; k++)
		if (probe->function[k] && probe->shared > 49152) {
			result = cuda->func_set_attr(probe->function[k],
						     CUDA_FUNC_ATTR_DYNAMIC_SHARED, probe->shared);
			if (result)
				return failed(gp, cuda, "cuFuncSetAttribute", result);
		}
	probe->max_blocks = nr_sms * 8;
	result = cuda->mem_alloc(&probe->records, probe->max_blocks * sizeof(struct probe_record));
	if (result)
		return failed(gp, cuda, "no device memory for the records: cuMemAlloc", result);
	probe->host = calloc(probe->max_blocks, sizeof(struct probe_record));
	return probe->host ? 0
			   : ctx_fail(gp, -ENOMEM,
				      "out of memory for %u records",
				      probe->max_blocks);
}

static void probe_unload(const struct probe *probe)
{
	const struct cuda_api *cuda = probe->cuda;

	if (probe->records)
		cuda->mem_free(probe->records);
	if (probe->cluster_module)
		cuda->module_unload(probe->cluster_module);
	if (probe->module)
		cuda->module_unload(probe->module);
}

/* Returns the current context. If this context is not on @device, returns NULL. */
static void *current_on(const struct cuda_api *cuda, int device)
{
	int current_device;
	void *ctx;

	return !cuda->ctx_current(&ctx) && ctx && !cuda->ctx_device(&current_device) &&
	       current_device == device ? ctx : NULL;
}

/*
 * Creates a probe in @ctx. If another thread has already created a probe there, returns that
 * probe.
 */
static int probe_make(struct gpupart *gp, const struct cuda_api *cuda,
		      const struct gpupart_gpu *gpu, int device, void *ctx, struct probe **made)
{
	struct probe *p = calloc(1, sizeof(*p)), *first = NULL;
	pthread_mutexattr_t again;
	int err, mode;

	if (!p)
		return ctx_fail(gp, -ENOMEM, "out of memory");
	p->cuda = cuda;
	p->gpu = gpu;
	p->ctx = ctx;
	p->device = device;
	p->pid = getpid();
	pthread_mutexattr_init(&again);
	pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&p->lock, &again);
	pthread_mutexattr_destroy(&again);
	err = probe_enter(gp, p, &mode);
	if (err)
		goto free_probe;
	err = probe_load(gp, p, device);
	if (!err)
		*made = first = probe_find(ctx, device, p);
	if (first != p)
		probe_unload(p);
	probe_leave(p, mode);
	if (first == p)
		return 0;
free_probe:
	probe_free(p);
	return err;
}

int probe_get(struct gpupart *gp, const struct cuda_api *cuda, const struct gpupart_gpu *gpu,
	      int device, struct probe **probe)
{
	static const struct driver_observer observer = { .name = "probe", .resource = on_resource };
	int result, err = driver_observe(gp, cuda, &observer);
	bool retained;
	void *ctx;

	if (err)
		return err;
	ctx = current_on(cuda, device);
	*probe = probe_find(ctx, device, NULL);
	if (*probe)
		return 0;
	retained = !ctx;
	if (retained) {
		result = cuda->primary_retain(&ctx, device);
		if (result)
			return failed(gp, cuda, "cuDevicePrimaryCtxRetain", result);
		*probe = probe_find(ctx, device, NULL);
	}
	if (!*probe)
		err = probe_make(gp, cuda, gpu, device, ctx, probe);
	/* The probe retains the primary context one time for all users. */
	if (retained && (err || atomic_exchange(&(*probe)->retained, true)) &&
	    cuda->primary_release)
		cuda->primary_release(device);
	return err;
}

int probe_enter(struct gpupart *gp, struct probe *probe, int *capture_mode)
{
	int result;

	pthread_mutex_lock(&probe->lock);
	driver_hide(1);
	result = probe->cuda->ctx_push(probe->ctx);
	if (result) {
		driver_hide(-1);
		pthread_mutex_unlock(&probe->lock);
		return failed(gp, probe->cuda, "cuCtxPushCurrent", result);
	}
	*capture_mode = CUDA_CAPTURE_MODE_RELAXED;
	result = probe->cuda->capture_mode(capture_mode);
	if (!result)
		return 0;
	probe->cuda->ctx_pop(&(void *){ NULL });
	driver_hide(-1);
	pthread_mutex_unlock(&probe->lock);
	return failed(gp, probe->cuda, "cuThreadExchangeStreamCaptureMode", result);
}

int probe_begin(struct gpupart *gp, const struct gpupart_gpu *gpu, struct probe **probe,
		int *capture_mode)
{
	return probe_get(gp, cuda_loaded(), gpu, gpu->driver.device, probe) ?:
	       probe_enter(gp, *probe, capture_mode);
}

void probe_leave(struct probe *probe, int capture_mode)
{
	probe->cuda->capture_mode(&capture_mode);
	probe->cuda->ctx_pop(&(void *){ NULL });
	driver_hide(-1);
	pthread_mutex_unlock(&probe->lock);
}

int probe_start(struct gpupart *gp, struct probe *probe, const struct probe_launch *l,
		struct scope_own *own)
{
	const struct cuda_api *cuda = probe->cuda;
	cuda_ptr records = l->records ? l->records : probe->records;
	uint32_t argument = l->argument;
	void *arguments[] = { &records, &argument };
	struct cuda_launch_attr attrs[2] = { 0 };
	struct cuda_launch_config config = {
		.grid = { l->blocks, 1, 1 }, .block = { l->threads, 1, 1 },
		.shared = l->shared, .stream = l->stream, .attrs = attrs,
	};
	unsigned int in_x[3] = { l->cluster, 1, 1 };
	const unsigned int *cluster = in_x;
	bool cooperative = l->cooperative;
	int result;

	if (l->shape) {
		memcpy(config.grid, l->shape->grid, sizeof(config.grid));
		memcpy(config.block, l->shape->block, sizeof(config.block));
		config.shared = l->shape->shared;
		cluster = l->shape->cluster;
		cooperative = l->shape->cooperative;
	}
	scope_own_begin(own);
	if (l->shape || l->cluster || l->cooperative) {
		if (cluster[0]) {
			attrs[config.nr_attrs].id = CUDA_LAUNCH_ATTR_CLUSTER;
			memcpy(attrs[config.nr_attrs++].dim, cluster, sizeof(in_x));
		}
		if (cooperative) {
			attrs[config.nr_attrs].id = CUDA_LAUNCH_ATTR_COOPERATIVE;
			attrs[config.nr_attrs++].value = 1;
		}
		result = cuda->launch_ex(&config, probe->function[l->kernel], arguments, NULL);
	} else {
		result = cuda->launch(probe->function[l->kernel], l->blocks, 1, 1, l->threads, 1, 1,
				      l->shared, l->stream, arguments, NULL);
	}
	scope_own_begin(NULL);
	return result ? failed(gp, cuda, "cuLaunchKernel", result) : 0;
}

unsigned int probe_clusters_held(struct probe *probe, unsigned int size)
{
	struct cuda_launch_attr attr = { .id = CUDA_LAUNCH_ATTR_CLUSTER, .dim = { size, 1, 1 } };
	struct cuda_launch_config config = {
		.grid = { size, 1, 1 }, .block = { 32, 1, 1 }, .shared = probe->shared,
		.attrs = &attr, .nr_attrs = 1,
	};
	int nr = 0;

	if (!probe->cuda->max_active_clusters || !probe->function[PROBE_CLUSTER] ||
	    probe->cuda->max_active_clusters(&nr, probe->function[PROBE_CLUSTER], &config))
		return 0;
	return nr > 0 ? nr : 0;
}

int probe_finish(struct gpupart *gp, struct probe *probe, void *stream, unsigned int blocks)
{
	const struct cuda_api *cuda = probe->cuda;
	int result = cuda->stream_sync(stream);

	if (result)
		return failed(gp, cuda, "cuStreamSynchronize", result);
	if (!blocks)
		return 0;
	result = cuda->copy_to_host(probe->host, probe->records, blocks * sizeof(*probe->host));
	return result ? failed(gp, cuda, "cuMemcpyDtoH", result) : 0;
}

int probe_census_as(struct gpupart *gp, struct probe *probe, struct probe_launch *launch,
		    struct scope_own *own, unsigned int *sm_blocks)
{
	unsigned int nr_sms = probe->gpu->driver.topo->nr_sms;
	int err;

	launch->kernel = launch->cluster ? PROBE_CLUSTER : PROBE_CENSUS;
	launch->threads = 32;
	launch->shared = probe->shared;
	launch->argument = PROBE_SPIN_NS;
	err = probe_start(gp, probe, launch, own);
	if (!err)
		err = probe_finish(gp, probe, launch->stream, launch->blocks);
	if (err)
		return err;
	memset(sm_blocks, 0, TOPO_MAX_SMS * sizeof(*sm_blocks));
	for (unsigned int b = 0; b < launch->blocks; b++) {
		uint32_t smid = probe->host[b].smid;

		if (smid >= nr_sms)
			return ctx_fail(gp, -EIO,
					"a block ran on SM %u, but the topology has only SMs 0-%u",
					smid, nr_sms - 1);
		sm_blocks[smid]++;
	}
	return 0;
}

int probe_census(struct gpupart *gp, struct probe *probe, void *stream, struct scope_own *own,
		 struct gpupart_tpcset *some, struct gpupart_tpcset *whole)
{
	const struct gpupart_topology *topo = probe->gpu->driver.topo;
	unsigned int sm_blocks[TOPO_MAX_SMS];
	/*
	 * Each SM runs one block at a time. The launch has two blocks for each SM. If an SM was
	 * busy at the start, a block of the second half can still run on this SM.
	 */
	struct probe_launch launch = { .stream = stream, .blocks = topo->nr_sms * 2 };
	int err = probe_census_as(gp, probe, &launch, own, sm_blocks);

	if (err)
		return err;
	memset(some, 0, sizeof(*some));
	*whole = gpupart_topology_all(topo);
	for (unsigned int sm = 0; sm < topo->nr_sms; sm++)
		if (sm_blocks[sm])
			gpupart_tpcset_add(some, topo->sms[sm].tpc);
		else
			gpupart_tpcset_del(whole, topo->sms[sm].tpc);
	return 0;
}
