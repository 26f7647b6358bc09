// SPDX-License-Identifier: MIT
/*
 * Attached GPUs, CUDA's numbers of them, and which one a context is on. What is asked for in a
 * launch takes no lock.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "lib/core/fork.h"
#include "lib/driver/callback.h"
#include "lib/driver/device.h"

#define MAX_GPUS DRIVER_MAX_GPUS

static pthread_mutex_t add_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(add_lock);
static const struct cuda_api *cuda;

/* Attached GPUs: written under the lock, a pointer at a time, never taken away. */
static _Atomic(struct driver_gpu *) gpus[MAX_GPUS];
static atomic_uint nr_gpus;

/*
 * CUDA's device numbers: nr_devices is 0 until a launch or an attach found out.
 * by_device says which attached GPU each is; a number whose GPU is not attached (yet)
 * has NULL.
 */
static atomic_uint nr_devices;
static _Atomic(struct driver_gpu *) by_device[MAX_GPUS];
static atomic_uint known_gpus;	/* nr_gpus when by_device was filled */
_Atomic(struct driver_gpu *) driver_only_gpu;

/*
 * Contexts whose device is known, for launches whose context is not current (graphs over
 * GPUs, a stream of another context): address * MAX_GPUS + device in one word, so that
 * neither is read without the other. Each in one of a few places.
 */
#define NR_CONTEXTS 256
#define NR_CONTEXT_PLACES 8
static _Atomic uint64_t contexts[NR_CONTEXTS];

static void limits_learn(struct driver_gpu *gpu, int device)
{
	static const int attr[4] = {
		CUDA_ATTR_THREADS_PER_SM, CUDA_ATTR_REGISTERS_PER_SM,
		CUDA_ATTR_SHARED_PER_SM, CUDA_ATTR_BLOCKS_PER_SM,
	};
	int value[4];

	if (atomic_load_explicit(&gpu->sm_limits_known, memory_order_acquire))
		return;
	for (int i = 0; i < 4; i++)
		if (cuda->device_attr(&value[i], attr[i], device) || value[i] < 0)
			return;
	/* Two threads that come here at once write the same. */
	gpu->map.sm = (struct tmd_sm_limits){
		.threads = value[0], .registers = value[1],
		.shared = value[2], .blocks = value[3],
	};
	atomic_store_explicit(&gpu->sm_limits_known, true, memory_order_release);
}

int driver_device_pci(const struct cuda_api *api, int device, char pci[20])
{
	int result = api->device_pci(pci, 20, device);

	for (char *c = pci; !result && *c; c++)
		if (*c >= 'A' && *c <= 'F')
			*c += 'a' - 'A';
	return result;
}

/*
 * Finds CUDA's numbers of the attached GPUs. Called in the first launch at the latest:
 * these driver functions were seen to be safe there. No harm if two threads do it.
 */
static void devices_learn(void)
{
	unsigned int known = atomic_load_explicit(&nr_gpus, memory_order_acquire);
	int count;

	if (cuda->device_count(&count) || count < 1)
		return;
	if (count > MAX_GPUS)
		count = MAX_GPUS;
	for (int device = 0; device < count; device++) {
		struct driver_gpu *gpu = NULL;
		char pci[20];

		if (!driver_device_pci(cuda, device, pci))
			gpu = driver_gpu_find(pci);
		/* GPUs are never detached: one that another thread found meanwhile stays. */
		if (!gpu)
			continue;
		limits_learn(gpu, device);
		atomic_store_explicit(&by_device[device], gpu, memory_order_release);
		if (count == 1)
			atomic_store_explicit(&driver_only_gpu, gpu, memory_order_release);
	}
	atomic_store_explicit(&known_gpus, known, memory_order_release);
	atomic_store_explicit(&nr_devices, count, memory_order_release);
}

/* The @n'th place where @ctx may stand. */
static _Atomic uint64_t *context_place(const void *ctx, unsigned int n)
{
	return &contexts[(((uint32_t)((uintptr_t)ctx >> 6) * 0x9e3779b1u >> 24) + n) % NR_CONTEXTS];
}

/* An empty place is of no context, nor of a launch that has none. */
static bool word_is_of(uint64_t word, const void *ctx)
{
	return ctx && word / MAX_GPUS == (uintptr_t)ctx;
}

void driver_context_on(const void *ctx, int device)
{
	uint64_t word = (uintptr_t)ctx * (uint64_t)MAX_GPUS + device, found;
	unsigned int n;

	if (device < 0 || device >= MAX_GPUS)
		return;
	if (atomic_load_explicit(context_place(ctx, 0), memory_order_relaxed) == word)
		return;
	for (n = 0; n < NR_CONTEXT_PLACES; n++) {
		found = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);
		if (word_is_of(found, ctx)) {
			/* Another device: nobody told that the one before it went. */
			if (found != word)
				atomic_store_explicit(context_place(ctx, n), word,
						      memory_order_relaxed);
			return;
		}
	}
	/* Two threads that do this at once may leave it in two places: both say the same. */
	for (n = 0; n < NR_CONTEXT_PLACES; n++) {
		found = 0;
		if (atomic_compare_exchange_strong(context_place(ctx, n), &found, word))
			return;
	}
	atomic_store_explicit(context_place(ctx, 0), word, memory_order_relaxed);
}

/* Only this context's words: one that another has put there meanwhile stays. */
static void context_forget(const void *ctx)
{
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		uint64_t word = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);

		if (word_is_of(word, ctx))
			atomic_compare_exchange_strong(context_place(ctx, n), &word, 0);
	}
}

/* If @ctx is current the driver says which device it is on: true. Else nobody knows. */
static bool context_ask(const void *ctx, int *device)
{
	void *current = NULL;

	if (!ctx || cuda->ctx_current(&current) || current != ctx || cuda->ctx_device(device) ||
	    *device < 0 || *device >= MAX_GPUS)
		return false;
	driver_context_on(ctx, *device);
	return true;
}

static struct driver_gpu *gpu_by_context(void *ctx)
{
	int device;

	if (context_ask(ctx, &device))
		return atomic_load_explicit(&by_device[device], memory_order_acquire);
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		uint64_t word = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);

		if (word_is_of(word, ctx))
			return atomic_load_explicit(&by_device[word % MAX_GPUS],
						    memory_order_acquire);
	}
	return NULL;
}

static void devices_know(void)
{
	if (!atomic_load_explicit(&nr_devices, memory_order_acquire) ||
	    atomic_load_explicit(&known_gpus, memory_order_relaxed) !=
	    atomic_load_explicit(&nr_gpus, memory_order_relaxed))
		devices_learn();
}

struct driver_gpu *driver_gpu_of_launch(void *ctx)
{
	devices_know();
	if (atomic_load_explicit(&nr_devices, memory_order_acquire) == 1)
		return atomic_load_explicit(&by_device[0], memory_order_acquire);
	return gpu_by_context(ctx);
}

struct driver_gpu *driver_gpu(unsigned int n)
{
	return n < atomic_load_explicit(&nr_gpus, memory_order_acquire) ?
		       atomic_load_explicit(&gpus[n], memory_order_acquire) :
		       NULL;
}

struct driver_gpu *driver_gpu_of_context(void *ctx)
{
	struct driver_gpu *gpu = atomic_load_explicit(&driver_only_gpu, memory_order_acquire);

	return gpu || !ctx ? gpu : driver_gpu_of_launch(ctx);
}

struct driver_gpu *driver_gpu_of_device(int device)
{
	devices_know();
	return device >= 0 && device < MAX_GPUS ?
		       atomic_load_explicit(&by_device[device], memory_order_acquire) : NULL;
}

struct driver_gpu *driver_gpu_find(const char *pci)
{
	struct driver_gpu *gpu;

	for (unsigned int n = 0; (gpu = driver_gpu(n)); n++)
		if (!strcmp(gpu->topo->info.pci, pci))
			return gpu;
	return NULL;
}

/*
 * Something was made in a context, which is current then: a later launch in it may find another
 * one current. Not asked for where CUDA shows one device.
 */
static void on_resource(int cbid, const struct resource_params *params)
{
	int device;

	if (cbid == DRIVER_CTX_GOES)
		context_forget(params->ctx);
	else if ((cbid == DRIVER_STREAM_MADE || cbid == DRIVER_MODULE_LOADED) &&
		 !atomic_load_explicit(&driver_only_gpu, memory_order_acquire))
		context_ask(params->ctx, &device);
}

int driver_gpu_start(struct gpupart *gp, const struct cuda_api *api)
{
	static const struct driver_observer observer = {
		.name = "device", .resource = on_resource,
	};
	int err;

	pthread_mutex_lock(&add_lock);
	cuda = api;
	err = driver_observe(gp, api, &observer);
	if (!err) {
		driver_watch_resource(DRIVER_CTX_GOES);
		/* Without these a context is known when it is current in a launch. */
		driver_watch_resource(DRIVER_STREAM_MADE);
		driver_watch_resource(DRIVER_MODULE_LOADED);
	}
	pthread_mutex_unlock(&add_lock);
	return err;
}

int driver_gpu_add(struct gpupart *gp, struct driver_gpu *gpu)
{
	unsigned int nr;
	int err = 0;

	pthread_mutex_lock(&add_lock);
	nr = atomic_load_explicit(&nr_gpus, memory_order_relaxed);
	if (nr == MAX_GPUS) {
		err = ctx_fail(gp, -ENOSPC, "more than %u GPUs", MAX_GPUS);
	} else {
		gpu->number = nr;
		atomic_store_explicit(&gpus[nr], gpu, memory_order_release);
		atomic_store_explicit(&nr_gpus, nr + 1, memory_order_release);
	}
	pthread_mutex_unlock(&add_lock);
	return err;
}
