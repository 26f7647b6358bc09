// SPDX-License-Identifier: MIT
/*
 * See smcount.h. An answer is never more than the driver's own, and where no set is in
 * force, or something is not known, the driver's stays.
 */
#include <errno.h>
#include <pthread.h>
#include "fork.h"
#include "hook.h"
#include "smcount.h"

/* Of a GPU and of the set in force: all that the answers are made of. */
struct part {
	const struct gpupart_topology *topo;
	struct gpupart_tpcset all, set;
};

static pthread_mutex_t tell_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(tell_lock);

static bool told(const struct gpupart_gpu *gpu)
{
	return gpu && atomic_load_explicit(&gpu->sms_told, memory_order_acquire);
}

int smcount_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on)
{
	const struct gpupart_gpu *other;
	bool any = on;
	int err;

	pthread_mutex_lock(&tell_lock);
	for (unsigned int n = 0; (other = hook_gpu(n)); n++)
		any |= other != gpu && told(other);
	err = hook_watch_questions(gp, any);
	/* What is not watched is not answered: to stop cannot fail. */
	if (!err || !on)
		atomic_store_explicit(&gpu->sms_told, on, memory_order_release);
	pthread_mutex_unlock(&tell_lock);
	return on ? err : 0;
}

static unsigned int sms_in(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(set, tpc + 1))
		nr += topo->tpcs[tpc].nr_sms;
	return nr;
}

unsigned int smcount_now(const struct gpupart_gpu *gpu)
{
	struct gpupart_tpcset set;

	scope_everywhere(gpu, &set);
	return sms_in(gpu->topo, &set);
}

/* False: the driver's answer is the right one. */
static bool part_of(const struct gpupart_gpu *gpu, struct part *part)
{
	if (!told(gpu) || !scope_everywhere(gpu, &part->set))
		return false;
	part->topo = gpu->topo;
	part->all = gpupart_topology_all(gpu->topo);
	return true;
}

static int at_most(int answer, uint64_t most)
{
	return answer > 0 && (uint64_t)answer > most ? (int)most : answer;
}

/* -------------------------------------------------------------- numbers of SMs */

static void answer_attribute(int *value, int attribute, int device)
{
	struct part part;

	if (attribute == CUDA_ATTR_MULTIPROCESSORS && part_of(hook_gpu_of_device(device), &part))
		*value = at_most(*value, sms_in(part.topo, &part.set));
}

static void answer_resource(const struct gpupart_gpu *gpu, struct cuda_resource *resource)
{
	struct part part;

	if (resource->type == CUDA_RESOURCE_SM && part_of(gpu, &part))
		resource->nr_sms = at_most(resource->nr_sms, sms_in(part.topo, &part.set));
}

static void answer_affinity(const struct gpupart_gpu *gpu, struct cuda_affinity *affinity)
{
	struct part part;

	if (affinity->type == CUDA_AFFINITY_SM_COUNT && part_of(gpu, &part))
		affinity->nr_sms = at_most(affinity->nr_sms, sms_in(part.topo, &part.set));
}

/* The GPU of a context that need not be current. */
static const struct gpupart_gpu *gpu_of_context(const struct cuda_api *cuda, void *ctx)
{
	const struct gpupart_gpu *gpu;

	if (!ctx || cuda->ctx_push(ctx))
		return NULL;
	gpu = hook_gpu_of_context(ctx);
	cuda->ctx_pop(&ctx);
	return gpu;
}

static const struct gpupart_gpu *gpu_of_green(const struct cuda_api *cuda, void *green)
{
	void *ctx;

	if (!cuda->green_ctx || cuda->green_ctx(&ctx, green))
		return NULL;
	return gpu_of_context(cuda, ctx);
}

/* ------------------------------------------------------------------- occupancy */

/* A grid is a number of blocks an SM times the SMs that the driver counts. */
static void answer_grid(const struct cuda_api *cuda, const struct part *part, int *grid)
{
	int device, true_sms;

	if (cuda->ctx_device(&device) ||
	    cuda->device_attr(&true_sms, CUDA_ATTR_MULTIPROCESSORS, device) || true_sms < 1)
		return;
	*grid = (int64_t)*grid * at_most(true_sms, sms_in(part->topo, &part->set)) / true_sms;
}

/* Also of a CUkernel: then of its function in the current context. */
static unsigned int function_attr(const struct cuda_api *cuda, void *function, int attribute)
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

/* The blocks of a cluster: as the launch would have it, else as the function must; else 1. */
static unsigned int cluster_size(const struct cuda_api *cuda, void *function,
				 const struct cuda_launch_config *config)
{
	unsigned int size;

	for (unsigned int i = 0; i < config->nr_attrs; i++) {
		const uint32_t *dim = config->attrs[i].dim;

		size = dim[0] * dim[1] * dim[2];
		if (config->attrs[i].id == CUDA_LAUNCH_ATTR_CLUSTER && size)
			return size;
	}
	size = function_attr(cuda, function, CUDA_FUNC_ATTR_CLUSTER_WIDTH) *
	       function_attr(cuda, function, CUDA_FUNC_ATTR_CLUSTER_HEIGHT) *
	       function_attr(cuda, function, CUDA_FUNC_ATTR_CLUSTER_DEPTH);
	return size ? size : 1;
}

/* At least 1: less is not known, and the driver has an answer of its own for none. */
static unsigned int blocks_per_sm(const struct cuda_api *cuda, void *function,
				  const struct cuda_launch_config *config)
{
	int nr;

	if (!cuda->blocks_per_sm ||
	    cuda->blocks_per_sm(&nr, function,
				config->block[0] * config->block[1] * config->block[2],
				config->shared, 0) || nr < 1)
		return 1;
	return nr;
}

/* Clusters that @set holds at once: each in one virtual GPC, its blocks on an SM each. */
static uint64_t clusters_in(const struct part *part, const struct gpupart_tpcset *set,
			    unsigned int size, unsigned int per_sm)
{
	uint64_t nr = 0;

	for (unsigned int v = 0; v < part->topo->end_vgpc; v++) {
		struct gpupart_tpcset vgpc = gpupart_topology_vgpc(part->topo, v);
		struct gpupart_tpcset in = gpupart_tpcset_and(&vgpc, set);
		uint64_t sms = sms_in(part->topo, &in);

		if (sms >= size)
			nr += sms * per_sm / size;
	}
	return nr;
}

/*
 * The driver may leave TPCs out for reasons of its own (singletons, of large clusters):
 * so its own number in proportion is a bound as well.
 */
static void answer_clusters(const struct cuda_api *cuda, const struct part *part, int *nr,
			    void *function, const struct cuda_launch_config *config)
{
	unsigned int size = cluster_size(cuda, function, config);
	unsigned int per_sm = blocks_per_sm(cuda, function, config);
	uint64_t all = clusters_in(part, &part->all, size, per_sm);
	uint64_t held = clusters_in(part, &part->set, size, per_sm);

	if (all && *nr > 0)
		*nr = at_most(at_most(*nr, *nr * held / all), held);
}

static void answer_cluster_size(const struct part *part, int *size)
{
	unsigned int largest = 0;
	int power = 1;

	for (unsigned int v = 0; v < part->topo->end_vgpc; v++) {
		struct gpupart_tpcset vgpc = gpupart_topology_vgpc(part->topo, v);
		struct gpupart_tpcset in = gpupart_tpcset_and(&vgpc, &part->set);
		unsigned int sms = sms_in(part->topo, &in);

		if (sms > largest)
			largest = sms;
	}
	if (!largest || *size < 1 || (unsigned int)*size <= largest)
		return;
	while ((unsigned int)power * 2 <= largest)
		power *= 2;
	*size = power;
}

/* --------------------------------------------------------------------- routing */

static void *pointer(uint64_t arg)
{
	return (void *)(uintptr_t)arg;
}

static void answer_occupancy(const struct cuda_api *cuda, enum smcount_question question,
			     const uint64_t *args, void *ctx)
{
	struct part part;

	if (!part_of(hook_gpu_of_context(ctx), &part))
		return;
	if (question == SMCOUNT_GRID)
		answer_grid(cuda, &part, pointer(args[0]));
	else if (question == SMCOUNT_CLUSTERS)
		answer_clusters(cuda, &part, pointer(args[0]), pointer(args[1]), pointer(args[2]));
	else
		answer_cluster_size(&part, pointer(args[0]));
}

void smcount_answer(const struct cuda_api *cuda, enum smcount_question question,
		    const uint64_t *args, void *ctx)
{
	const struct {
		int *value, attribute, device;
	} *asked;

	switch (question) {
	case SMCOUNT_ATTRIBUTE:
		asked = (const void *)args;
		answer_attribute(asked->value, asked->attribute, asked->device);
		break;
	case SMCOUNT_GRID:
	case SMCOUNT_CLUSTERS:
	case SMCOUNT_CLUSTER_SIZE:
		answer_occupancy(cuda, question, args, ctx);
		break;
	case SMCOUNT_DEVICE_RESOURCE:
		answer_resource(hook_gpu_of_device((int)args[0]), pointer(args[1]));
		break;
	case SMCOUNT_CONTEXT_RESOURCE:
		answer_resource(gpu_of_context(cuda, pointer(args[0])), pointer(args[1]));
		break;
	case SMCOUNT_GREEN_RESOURCE:
		answer_resource(gpu_of_green(cuda, pointer(args[0])), pointer(args[1]));
		break;
	case SMCOUNT_AFFINITY:
		answer_affinity(hook_gpu_of_context(ctx), pointer(args[0]));
		break;
	}
}
