// SPDX-License-Identifier: MIT
/*
 * Replaces numbers of SMs in the driver's results. See sm_count.h. A new number is never larger
 * than the driver's number. If no set applies, or if a value is unknown, the driver's number
 * stays.
 */
#include <errno.h>
#include <pthread.h>
#include "lib/confine/scope.h"
#include "lib/confine/sm_count.h"
#include "lib/core/fork.h"
#include "lib/driver/callback.h"

/* A GPU, and the set that applies on this GPU. The code computes all answers from this struct. */
struct part {
	const struct gpupart_topology *topo;
	struct gpupart_tpcset set;
};

/* The kinds of queries. Driver functions with similar arguments have the same kind. */
enum question {
	ASK_ATTRIBUTE,
	ASK_GRID,			/* the size of the grid that fills the GPU */
	ASK_CLUSTERS,		/* the number of clusters that run at the same time */
	ASK_CLUSTER_SIZE,
	ASK_DEVICE_RESOURCE,
	ASK_CONTEXT_RESOURCE,
	ASK_GREEN_RESOURCE,		/* the SM resource of a green context */
	ASK_AFFINITY,
};

#define ANSWERED 1	/* the group of all functions in the table */

/* The functions that report SMs. Every driver has the first function of this list. */
static const struct driver_function rows[] = {
	{ CBID_cuDeviceGetAttribute, ANSWERED, ASK_ATTRIBUTE },
	{ CBID_cuOccupancyMaxPotentialBlockSize, ANSWERED, ASK_GRID },
	{ CBID_cuOccupancyMaxPotentialBlockSizeWithFlags, ANSWERED, ASK_GRID },
	{ CBID_cuOccupancyMaxPotentialClusterSize, ANSWERED, ASK_CLUSTER_SIZE },
	{ CBID_cuOccupancyMaxActiveClusters, ANSWERED, ASK_CLUSTERS },
	{ CBID_cuDeviceGetDevResource, ANSWERED, ASK_DEVICE_RESOURCE },
	{ CBID_cuCtxGetDevResource, ANSWERED, ASK_CONTEXT_RESOURCE },
	{ CBID_cuGreenCtxGetDevResource, ANSWERED, ASK_GREEN_RESOURCE },
	{ CBID_cuCtxGetExecAffinity, ANSWERED, ASK_AFFINITY },
	{ 0, 0, 0 },
};

/* maximum number of green contexts that the library creates on all GPUs */
#define MAX_CONTEXTS 32

static const struct cuda_api *cuda;
static pthread_mutex_t sm_count_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(sm_count_lock);

static bool is_limited(const struct gpupart_gpu *gpu)
{
	return gpu && atomic_load_explicit(&gpu->sms_limited, memory_order_acquire);
}

unsigned int smcount_now(const struct gpupart_gpu *gpu)
{
	struct gpupart_tpcset set;

	scope_effective_set(gpu, &set);
	return topo_sms_in(gpu->driver.topo, &set);
}

/* Finds the set that applies on @gpu. If the driver's answer is correct, returns false. */
static bool part_of(const struct gpupart_gpu *gpu, struct part *part)
{
	if (!is_limited(gpu) || !scope_effective_set(gpu, &part->set))
		return false;
	part->topo = gpu->driver.topo;
	return true;
}

static int at_most(int answer, uint64_t most)
{
	return answer > 0 && (uint64_t)answer > most ? (int)most : answer;
}

static struct gpupart_gpu *gpu_of_device(int device)
{
	return scope_gpu_of(driver_gpu_of_device(device));
}

static int answer_sms(const struct gpupart_gpu *gpu, int nr)
{
	struct part part;

	return part_of(gpu, &part) ? at_most(nr, topo_sms_in(part.topo, &part.set)) : nr;
}

static int device_of(const struct gpupart_gpu *gpu)
{
	for (int device = 0; device < DRIVER_MAX_GPUS; device++)
		if (gpu_of_device(device) == gpu)
			return device;
	return -1;
}

/*
 * The program may ask the driver to split a resource. The driver can split the resource of a
 * whole GPU or of a green context. But the driver refuses to split a part of such a resource. It
 * also refuses a resource whose number of SMs was changed. Measured in
 * Documentation/internals/hardware.md. So the library creates a green context and returns the
 * resource of this context. The library launches nothing in this context. It keeps one green
 * context for each number of SMs.
 */
static int context_of(struct cuda_resource *resource, int device, unsigned int sms)
{
	struct cuda_resource some;
	unsigned int nr = 1;
	void *desc, *green;
	int result;

	result = cuda->sm_split(&some, &nr, resource, NULL, 0, sms);
	if (!result)
		result = cuda->resource_desc(&desc, &some, 1);
	if (!result)
		result = cuda->green_create(&green, desc, device, CUDA_GREEN_DEFAULT_STREAM);
	return result ? result : cuda->green_resource(green, resource, CUDA_RESOURCE_SM);
}

/*
 * Stores in *resource the answer to a query about the whole GPU. The set has @sms SMs, and the
 * function rounds this number down to the driver's unit. If the driver cannot split off so few
 * SMs, or has no green contexts, the function returns false.
 */
static bool answer_whole(struct gpupart_gpu *gpu, struct cuda_resource *resource, unsigned int sms)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct made {
		const struct gpupart_gpu *gpu;
		unsigned int sms;
		struct cuda_resource resource;
	} made[MAX_CONTEXTS];
	static unsigned int nr_made;
	struct made *one;

	sms = sms / CUDA_SM_UNIT * CUDA_SM_UNIT;
	if (!sms || !cuda->sm_split || !cuda->resource_desc || !cuda->green_create ||
	    !cuda->green_resource)
		return false;
	FORK_HOLD(&lock);
	for (one = made; one < made + nr_made && (one->gpu != gpu || one->sms != sms); one++)
		;
	if (one == made + nr_made) {
		if (nr_made == MAX_CONTEXTS || context_of(resource, device_of(gpu), sms))
			return false;
		made[nr_made++] = (struct made){ gpu, sms, *resource };
	}
	*resource = one->resource;
	tmd_parts_show(&gpu->parts, resource->nr_sms / gpu->driver.map.sms_per_tpc);
	return true;
}

static void answer_resource(struct gpupart_gpu *gpu, struct cuda_resource *resource)
{
	unsigned int sms;

	if (resource->type != CUDA_RESOURCE_SM)
		return;
	sms = answer_sms(gpu, resource->nr_sms);
	if (is_limited(gpu) && resource->nr_sms == gpu->driver.topo->nr_sms) {
		if (sms < resource->nr_sms && answer_whole(gpu, resource, sms))
			return;
		tmd_parts_show(&gpu->parts, 0);
	}
	resource->nr_sms = sms;
}

/* Returns the GPU of a context, even if the context is not current. */
static struct gpupart_gpu *gpu_of_context(void *ctx)
{
	struct gpupart_gpu *gpu;

	if (!ctx || cuda->ctx_push(ctx))
		return NULL;
	gpu = scope_gpu_of_context(ctx);
	cuda->ctx_pop(&ctx);
	return gpu;
}

static struct gpupart_gpu *gpu_of_green(void *green)
{
	void *ctx;

	if (!cuda->green_ctx || cuda->green_ctx(&ctx, green))
		return NULL;
	return gpu_of_context(ctx);
}

/*
 * The driver multiplies the number of blocks per SM by the number of SMs. So reduce the grid in
 * proportion.
 */
static void answer_grid(const struct part *part, int *grid)
{
	int device, true_sms;

	if (cuda->ctx_device(&device) ||
	    cuda->device_attr(&true_sms, CUDA_ATTR_MULTIPROCESSORS, device) || true_sms < 1)
		return;
	*grid = (int64_t)*grid * at_most(true_sms, topo_sms_in(part->topo, &part->set)) / true_sms;
}

/*
 * Returns an attribute of @function. If @function is a CUkernel, reads the attribute of its
 * function in the current context.
 */
static unsigned int function_attr(void *function, int attribute)
{
	int value = 0;

	if (!cuda->func_attr)
		return 0;
	if (cuda->func_attr(&value, attribute, function) &&
	    (!cuda->kernel_function || cuda->kernel_function(&function, function) ||
	     cuda->func_attr(&value, attribute, function)))
		return 0;
	return value > 0 ? value : 0;
}

/*
 * Returns the number of blocks of a cluster. The launch or the function contains this number.
 * Otherwise the number is 1.
 */
static unsigned int cluster_size(void *function, const struct cuda_launch_config *config)
{
	unsigned int size;

	for (unsigned int i = 0; i < config->nr_attrs; i++) {
		const uint32_t *dim = config->attrs[i].dim;

		size = dim[0] * dim[1] * dim[2];
		if (config->attrs[i].id == CUDA_LAUNCH_ATTR_CLUSTER && size)
			return size;
	}
	size = function_attr(function, CUDA_FUNC_ATTR_CLUSTER_WIDTH) *
	       function_attr(function, CUDA_FUNC_ATTR_CLUSTER_HEIGHT) *
	       function_attr(function, CUDA_FUNC_ATTR_CLUSTER_DEPTH);
	return size ? size : 1;
}

/*
 * Returns the number of blocks that an SM can run at the same time. If the number is unknown,
 * returns 1.
 */
static unsigned int blocks_per_sm(void *function, const struct cuda_launch_config *config)
{
	int nr;

	if (!cuda->blocks_per_sm ||
	    cuda->blocks_per_sm(&nr, function,
				config->block[0] * config->block[1] * config->block[2],
				config->shared, 0) || nr < 1)
		return 1;
	return nr;
}

/* Returns the number of SMs of @set in virtual GPC @v. */
static unsigned int sms_of_vgpc(const struct gpupart_topology *topo,
				const struct gpupart_tpcset *set, unsigned int v)
{
	struct gpupart_tpcset vgpc = gpupart_topology_vgpc(topo, v);
	struct gpupart_tpcset in = gpupart_tpcset_and(&vgpc, set);

	return topo_sms_in(topo, &in);
}

/*
 * Returns the number of clusters that @set can run at the same time. All blocks of a cluster run
 * in one virtual GPC, and each block has its own SM.
 */
static uint64_t clusters_in(const struct gpupart_topology *topo, const struct gpupart_tpcset *set,
			    unsigned int size, unsigned int per_sm)
{
	uint64_t nr = 0;

	for (unsigned int v = 0; v < topo->end_vgpc; v++) {
		uint64_t sms = sms_of_vgpc(topo, set, v);

		if (sms >= size)
			nr += sms * per_sm / size;
	}
	return nr;
}

/*
 * For clusters, the driver may exclude some TPCs, for example singletons. So the driver's number
 * is reduced in proportion to the set. This reduced number is a second upper bound.
 */
static void answer_clusters(const struct part *part, int *nr, void *function,
			    const struct cuda_launch_config *config)
{
	unsigned int size = cluster_size(function, config);
	unsigned int per_sm = blocks_per_sm(function, config);
	struct gpupart_tpcset whole = gpupart_topology_all(part->topo);
	uint64_t all = clusters_in(part->topo, &whole, size, per_sm);
	uint64_t held = clusters_in(part->topo, &part->set, size, per_sm);

	if (all && *nr > 0)
		*nr = at_most(at_most(*nr, *nr * held / all), held);
}

static void answer_cluster_size(const struct part *part, int *size)
{
	unsigned int largest = 0;
	int power = 1;

	for (unsigned int v = 0; v < part->topo->end_vgpc; v++) {
		unsigned int sms = sms_of_vgpc(part->topo, &part->set, v);

		if (sms > largest)
			largest = sms;
	}
	if (!largest || *size < 1 || (unsigned int)*size <= largest)
		return;
	while ((unsigned int)power * 2 <= largest)
		power *= 2;
	*size = power;
}

static void *pointer(uint64_t arg)
{
	return (void *)(uintptr_t)arg;
}

static void answer_occupancy(enum question question, const uint64_t *args, void *ctx)
{
	struct part part;

	if (!part_of(scope_gpu_of_context(ctx), &part))
		return;
	if (question == ASK_GRID)
		answer_grid(&part, pointer(args[0]));
	else if (question == ASK_CLUSTERS)
		answer_clusters(&part, pointer(args[0]), pointer(args[1]), pointer(args[2]));
	else
		answer_cluster_size(&part, pointer(args[0]));
}

/*
 * Replaces the driver's answer with the answer for the set. Argument @args is a structure of the
 * driver function's arguments. The padding of this structure is undefined. The context @ctx was
 * current in the call.
 */
static void answer(enum question question, const uint64_t *args, void *ctx)
{
	const struct {
		int *value, attribute, device;
	} *asked = (const void *)args;
	struct cuda_affinity *affinity;

	switch (question) {
	case ASK_ATTRIBUTE:
		if (asked->attribute == CUDA_ATTR_MULTIPROCESSORS)
			*asked->value = answer_sms(gpu_of_device(asked->device), *asked->value);
		break;
	case ASK_GRID:
	case ASK_CLUSTERS:
	case ASK_CLUSTER_SIZE:
		answer_occupancy(question, args, ctx);
		break;
	case ASK_DEVICE_RESOURCE:
		answer_resource(gpu_of_device((int)args[0]), pointer(args[1]));
		break;
	case ASK_CONTEXT_RESOURCE:
		answer_resource(gpu_of_context(pointer(args[0])), pointer(args[1]));
		break;
	case ASK_GREEN_RESOURCE:
		answer_resource(gpu_of_green(pointer(args[0])), pointer(args[1]));
		break;
	case ASK_AFFINITY:
		affinity = pointer(args[0]);
		if (affinity->type == CUDA_AFFINITY_SM_COUNT)
			affinity->nr_sms = answer_sms(scope_gpu_of_context(ctx), affinity->nr_sms);
		break;
	}
}

/*
 * Called when a driver function has succeeded. This code is not called for functions that the
 * driver itself calls.
 */
static void on_call(const struct driver_function *row, const struct cuda_call_params *params)
{
	if (params->site != CUDA_SITE_END || *params->result || !params->arguments)
		return;
	driver_own(true);
	answer(row->kind, params->arguments, params->ctx);
	driver_own(false);
}

/*
 * Some drivers lack some of these functions. So this code returns the result for the first
 * function, and ignores the other results.
 */
static int watch(struct gpupart *gp, bool on)
{
	static const struct driver_observer observer = {
		.name = "sm_count", .rows = rows, .row_size = sizeof(rows[0]), .call = on_call,
	};
	int err, result;

	err = cuda_open(gp, &cuda);
	if (!err)
		err = driver_observe(gp, cuda, &observer);
	if (err)
		return err;
	result = driver_watch(&observer, ANSWERED, on);
	return result ? ctx_fail(gp, -EOPNOTSUPP,
				 "this driver does not report calls, so the program gets the number of all SMs: %s",
				 cuda_strerror(cuda, result)) : 0;
}

int smcount_report(struct gpupart *gp, struct gpupart_gpu *gpu, bool on)
{
	const struct gpupart_gpu *other;
	bool any = on;
	int err;

	FORK_HOLD(&sm_count_lock);
	for (unsigned int n = 0; (other = scope_gpu(n)); n++)
		any |= other != gpu && is_limited(other);
	err = watch(gp, any);
	/*
	 * The library changes answers in observed functions and nowhere else. So stopping cannot
	 * fail.
	 */
	if (!err || !on)
		atomic_store_explicit(&gpu->sms_limited, on, memory_order_release);
	if (!on)
		tmd_parts_show(&gpu->parts, 0);
	return on ? err : 0;
}
