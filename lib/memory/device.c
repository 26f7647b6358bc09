// SPDX-License-Identifier: MIT
/* Manages the GPUs that this process uses. See device.h. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "lib/core/fork.h"
#include "lib/driver/device.h"
#include "lib/memory/device.h"
#include "lib/memory/tenant.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);
const struct cuda_api *memory_cuda;
static struct memory_gpu *by_device[MEMORY_MAX_DEVICES];

/*
 * After a failure to join the ledger, the next try waits for this multiple of the time of the
 * failed try. Each try can take several seconds.
 */
#define REST_FACTOR	10
#define REST_LEAST_NS	1000000000ull
static uint64_t rest_until;

void memory_device_lock(void)
{
	pthread_mutex_lock(&lock);
}

void memory_device_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct memory_gpu *memory_device_known(int device)
{
	return device >= 0 && device < MEMORY_MAX_DEVICES ? by_device[device] : NULL;
}

bool memory_device_forked(void)
{
	rest_until = 0;
	for (int device = 0; device < MEMORY_MAX_DEVICES; device++)
		if (memory_device_known(device))
			return true;
	return false;
}

uint64_t memory_device_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static bool join(struct memory_gpu *gpu)
{
	uint64_t begun = memory_device_ns(), ended;

	if (begun < rest_until)
		return false;
	gpu->index = tenant_gpu(gpu->pci);
	if (gpu->index >= 0)
		return true;
	ended = memory_device_ns();
	rest_until = ended + REST_FACTOR * (ended - begun) + REST_LEAST_NS;
	return false;
}

static bool identify(struct memory_gpu *gpu)
{
	size_t total;

	if (!memory_cuda->device_total || memory_cuda->device_total(&total, gpu->device) ||
	    driver_device_pci(memory_cuda, gpu->device, gpu->pci))
		return false;
	gpu->total = total;
	return join(gpu);
}

struct memory_gpu *memory_device_join(int device)
{
	struct memory_gpu *gpu = memory_device_known(device);

	if (gpu || device < 0 || device >= MEMORY_MAX_DEVICES)
		return gpu;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return NULL;
	gpu->device = device;
	if (!identify(gpu)) {
		free(gpu);
		return NULL;
	}
	gpu->due = true;
	by_device[device] = gpu;
	return gpu;
}

/* Returns the index of a known pool, or nr_pools if the pool is unknown. */
static unsigned int pool_index(const struct memory_gpu *gpu, const void *pool)
{
	unsigned int i = 0;

	while (i < gpu->nr_pools && gpu->known_pools[i] != pool)
		i++;
	return i;
}

void *memory_device_pool(struct memory_gpu *gpu, void *pool)
{
	void **more;

	if (!pool && !gpu->pool &&
	    (!memory_cuda->device_pool || memory_cuda->device_pool(&gpu->pool, gpu->device)))
		gpu->pool = NULL;
	if (!pool)
		pool = gpu->pool;
	if (!pool || pool_index(gpu, pool) < gpu->nr_pools)
		return pool;
	more = realloc(gpu->known_pools, (gpu->nr_pools + 1) * sizeof(*more));
	if (!more)
		return pool;
	gpu->known_pools = more;
	more[gpu->nr_pools++] = pool;
	return pool;
}

static bool is_pool_of(const void *pool, int device)
{
	const struct cuda_api *cuda = memory_cuda;
	void *own;

	return (cuda->device_pool && !cuda->device_pool(&own, device) && own == pool) ||
	       (cuda->default_pool && !cuda->default_pool(&own, device) && own == pool);
}

struct memory_gpu *memory_device_of_pool(const void *pool)
{
	struct memory_gpu *gpu;
	int count;

	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = memory_device_known(device);
		if (gpu && pool_index(gpu, pool) < gpu->nr_pools)
			return gpu;
	}
	/* The device's default pool, which always exists. */
	if (memory_cuda->device_count(&count))
		return NULL;
	for (int device = 0; device < count && device < MEMORY_MAX_DEVICES; device++)
		if (is_pool_of(pool, device))
			return memory_device_join(device);
	return NULL;
}

void memory_device_pool_destroyed(void *pool)
{
	struct memory_gpu *gpu;
	unsigned int at;

	for (int device = 0; device < MEMORY_MAX_DEVICES; device++) {
		gpu = by_device[device];
		if (!gpu)
			continue;
		gpu->pool = NULL;
		at = pool_index(gpu, pool);
		if (at < gpu->nr_pools)
			gpu->known_pools[at] = gpu->known_pools[--gpu->nr_pools];
	}
}

uint64_t memory_device_pools_reserved(const struct memory_gpu *gpu)
{
	uint64_t sum = 0, bytes;

	for (unsigned int i = 0; memory_cuda->pool_attr && i < gpu->nr_pools; i++)
		if (!memory_cuda->pool_attr(gpu->known_pools[i], CUDA_POOL_RESERVED, &bytes))
			sum += bytes;
	return sum;
}

uint64_t memory_device_pool_unused(void *pool)
{
	uint64_t reserved, used;

	if (!memory_cuda->pool_attr ||
	    memory_cuda->pool_attr(pool, CUDA_POOL_RESERVED, &reserved) ||
	    memory_cuda->pool_attr(pool, CUDA_POOL_USED, &used) || used > reserved)
		return 0;
	return reserved - used;
}

bool memory_device_pools_unused(const struct memory_gpu *gpu)
{
	for (unsigned int i = 0; i < gpu->nr_pools; i++)
		if (memory_device_pool_unused(gpu->known_pools[i]))
			return true;
	return false;
}
