// SPDX-License-Identifier: MIT
/*
 * Stores the attached GPUs and their CUDA device numbers. Also stores the GPU of each context.
 * Look-ups during a launch take no lock.
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

/* The attached GPUs. A thread that writes a pointer holds the lock. Pointers are never removed. */
static _Atomic(struct driver_gpu *) gpus[MAX_GPUS];
static atomic_uint nr_gpus;

/*
 * The array by_device converts a CUDA device number to the attached GPU. If that GPU is not
 * attached, the entry is NULL. A launch or an attach reads the number of devices. Before that,
 * nr_devices is 0.
 */
static atomic_uint nr_devices;
static _Atomic(struct driver_gpu *) by_device[MAX_GPUS];
static atomic_uint known_gpus;	/* value of nr_gpus when by_device was written */
_Atomic(struct driver_gpu *) driver_only_gpu;

/*
 * The devices of contexts. One word contains address * MAX_GPUS + device, so a reader reads both
 * at the same time. The word of a context has a few possible places. Addresses are multiples of
 * 16, so two bits remain for flags.
 */
#define NR_CONTEXTS 256
#define NR_CONTEXT_PLACES 8
#define CONTEXT_ALIGN 16
/*
 * This flag means that the driver has reported the creation of the context. The driver will then
 * also report the end of the context. So launches need not query the context's device again.
 */
#define CONTEXT_END_REPORTED MAX_GPUS
#define CONTEXT_NO_DEVICE (2 * MAX_GPUS)	/* this flag means that the context's device is
						 * unknown */
static _Atomic uint64_t contexts[NR_CONTEXTS];
static atomic_bool ends_reported;	/* the driver reports the end of each context */

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
	/* Two threads may do this at the same time. Both threads then write the same values. */
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
 * Finds the CUDA device numbers of the attached GPUs. This function runs in the first launch or
 * earlier. All driver calls of this function are safe in a launch callback. Two threads may call
 * it at the same time.
 */
__attribute__((cold))
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
		/*
		 * Another thread may have found the GPU already. Keep that entry, because GPUs
		 * are never detached.
		 */
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

/* The word of @ctx has several possible places. Returns the possible place with number @n. */
static _Atomic uint64_t *context_place(const void *ctx, unsigned int n)
{
	return &contexts[(((uint32_t)((uintptr_t)ctx >> 6) * 0x9e3779b1u >> 24) + n) % NR_CONTEXTS];
}

/*
 * Returns true if @word belongs to @ctx. An empty place belongs to no context, not even to NULL.
 */
static bool word_is_of(uint64_t word, const void *ctx)
{
	return ctx && (word & -(uint64_t)(MAX_GPUS * CONTEXT_ALIGN)) ==
			      (uintptr_t)ctx * (uint64_t)MAX_GPUS;
}

/*
 * Returns the word of @ctx, and stores the place of this word in *place. If @ctx is unknown,
 * returns 0 and stores no place.
 */
static inline uint64_t context_find(const void *ctx, _Atomic uint64_t **place)
{
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		_Atomic uint64_t *at = context_place(ctx, n);
		uint64_t word = atomic_load_explicit(at, memory_order_relaxed);

		if (word_is_of(word, ctx)) {
			*place = at;
			return word;
		}
	}
	return 0;
}

static void context_add(const void *ctx, uint64_t word)
{
	/*
	 * Two threads may do this at the same time. Then the word may be in two places, but with
	 * equal values.
	 */
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(context_place(ctx, n), &found, word))
			return;
	}
	atomic_store_explicit(context_place(ctx, 0), word, memory_order_relaxed);
}

__attribute__((cold)) void driver_context_on(const void *ctx, int device)
{
	uint64_t word = (uintptr_t)ctx * (uint64_t)MAX_GPUS + device, found;
	_Atomic uint64_t *place;

	if (device < 0 || device >= MAX_GPUS || (uintptr_t)ctx % CONTEXT_ALIGN)
		return;
	found = context_find(ctx, &place);
	word |= found & CONTEXT_END_REPORTED;
	if (!found)
		context_add(ctx, word);
	else if (found != word)
		/*
		 * If another context has taken the place, the next look-up of this context
		 * queries the driver again.
		 */
		atomic_compare_exchange_strong(place, &found, word);
}

/* Removes the words of this context. If another context has taken a place, its word stays. */
static void context_forget(const void *ctx)
{
	for (unsigned int n = 0; n < NR_CONTEXT_PLACES; n++) {
		uint64_t word = atomic_load_explicit(context_place(ctx, n), memory_order_relaxed);

		if (word_is_of(word, ctx))
			atomic_compare_exchange_strong(context_place(ctx, n), &word, 0);
	}
}

/*
 * Called for a new context. Words with its address belong to an earlier context that was
 * destroyed.
 */
static void context_made(const void *ctx)
{
	context_forget(ctx);
	if (ctx && (uintptr_t)ctx % CONTEXT_ALIGN == 0 &&
	    atomic_load_explicit(&ends_reported, memory_order_relaxed))
		context_add(ctx, (uintptr_t)ctx * (uint64_t)MAX_GPUS |
				 CONTEXT_END_REPORTED | CONTEXT_NO_DEVICE);
}

/* Reads the device of @ctx from the driver. If @ctx is not current, returns false. */
static bool context_ask(const void *ctx, int *device)
{
	void *current = NULL;

	if (!ctx || cuda->ctx_current(&current) || current != ctx || cuda->ctx_device(device) ||
	    *device < 0 || *device >= MAX_GPUS)
		return false;
	driver_context_on(ctx, *device);
	return true;
}

/* Returns true if @word contains a device and stays valid until the context is destroyed. */
static inline bool word_holds(uint64_t word)
{
	return (word & (CONTEXT_END_REPORTED | CONTEXT_NO_DEVICE)) == CONTEXT_END_REPORTED;
}

static inline struct driver_gpu *gpu_of_word(uint64_t word)
{
	return atomic_load_explicit(&by_device[word % MAX_GPUS], memory_order_acquire);
}

__attribute__((cold)) bool driver_context_known(const void *ctx)
{
	_Atomic uint64_t *place;
	int device;

	return word_holds(context_find(ctx, &place)) || context_ask(ctx, &device);
}

static struct driver_gpu *gpu_by_context(void *ctx)
{
	_Atomic uint64_t *place;
	uint64_t word = context_find(ctx, &place);
	int device;

	if (!word_holds(word) && context_ask(ctx, &device))
		return gpu_of_word(device);
	return word && !(word & CONTEXT_NO_DEVICE) ? gpu_of_word(word) : NULL;
}

static __attribute__((cold)) void devices_know(void)
{
	if (!atomic_load_explicit(&nr_devices, memory_order_acquire) ||
	    atomic_load_explicit(&known_gpus, memory_order_relaxed) !=
	    atomic_load_explicit(&nr_gpus, memory_order_relaxed))
		devices_learn();
}

/*
 * This function is not inline. Otherwise a launch in a known context would have to save more
 * registers on the stack.
 */
static __attribute__((noinline, cold)) struct driver_gpu *gpu_found_out(void *ctx)
{
	devices_know();
	if (atomic_load_explicit(&nr_devices, memory_order_acquire) == 1)
		return atomic_load_explicit(&by_device[0], memory_order_acquire);
	return gpu_by_context(ctx);
}

struct driver_gpu *driver_gpu_of_launch(void *ctx)
{
	_Atomic uint64_t *place;
	uint64_t word = context_find(ctx, &place);
	struct driver_gpu *gpu = word_holds(word) ? gpu_of_word(word) : NULL;

	return gpu ? gpu : gpu_found_out(ctx);
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

__attribute__((cold)) struct driver_gpu *driver_gpu_find(const char *pci)
{
	struct driver_gpu *gpu;

	for (unsigned int n = 0; (gpu = driver_gpu(n)); n++)
		if (!strcmp(gpu->topo->info.pci, pci))
			return gpu;
	return NULL;
}

/*
 * Called when an object was created in a context. The context is current now, so its device can
 * be read. At a later launch in this context, another context may be current. If CUDA shows one
 * device, this work is not needed.
 */
static __attribute__((cold)) void on_resource(int cbid, const struct resource_params *params)
{
	int device;

	if (cbid == DRIVER_CTX_DESTROYED)
		context_forget(params->ctx);
	else if (cbid == DRIVER_CTX_MADE)
		context_made(params->ctx);
	else if ((cbid == DRIVER_STREAM_MADE || cbid == DRIVER_MODULE_LOADED) &&
		 !atomic_load_explicit(&driver_only_gpu, memory_order_acquire))
		context_ask(params->ctx, &device);
}

__attribute__((cold))
int driver_gpu_start(struct gpupart *gp, const struct cuda_api *api)
{
	static const struct driver_observer observer = {
		.name = "device", .resource = on_resource,
	};
	int err;

	FORK_HOLD(&add_lock);
	cuda = api;
	err = driver_observe(gp, api, &observer);
	if (err)
		return err;
	atomic_store(&ends_reported, !driver_watch_resource(DRIVER_CTX_DESTROYED));
	/*
	 * Without this event, each launch on a machine with several GPUs would query the driver.
	 */
	driver_watch_resource(DRIVER_CTX_MADE);
	/*
	 * Without these events, the library learns a context's device at a launch. For this, the
	 * context must be current.
	 */
	driver_watch_resource(DRIVER_STREAM_MADE);
	driver_watch_resource(DRIVER_MODULE_LOADED);
	return 0;
}

__attribute__((cold))
int driver_gpu_add(struct gpupart *gp, struct driver_gpu *gpu)
{
	unsigned int nr;

	FORK_HOLD(&add_lock);
	nr = atomic_load_explicit(&nr_gpus, memory_order_relaxed);
	if (nr == MAX_GPUS)
		return ctx_fail(gp, -ENOSPC, "this process uses more than %u GPUs", MAX_GPUS);
	gpu->number = nr;
	atomic_store_explicit(&gpus[nr], gpu, memory_order_release);
	atomic_store_explicit(&nr_gpus, nr + 1, memory_order_release);
	return 0;
}
