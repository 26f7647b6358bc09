// SPDX-License-Identifier: MIT
/*
 * Tests the memory quota with a fake driver. Some calls that free memory fail, some contexts are
 * destroyed with their allocations, and some pools belong to no GPU.
 */
#include <unistd.h>
#include "lib/memory/intercept.c"
#include "tests/tap.h"

#define MIB	(1ull << 20)
#define GIB	(1ull << 30)
#define IMPOSSIBLE	(1ull << 62)
#define CTX_A	((void *)0xa0)
#define CTX_B	((void *)0xb0)
/* number of allocations; larger than the table's initial number of chains */
#define NR	3000

static uint64_t own;		/* memory of the process, from the driver's report */
static uint64_t reserved;	/* by each pool */

static int device_count(int *nr)
{
	*nr = 1;
	return 0;
}

static int device_total(size_t *bytes, int device)
{
	(void)device;
	*bytes = 64 * GIB;
	return 0;
}

static int device_pci(char *pci, int len, int device)
{
	snprintf(pci, len, "0000:%02d:00.0", device + 1);
	return 0;
}

static int ctx_device(int *device)
{
	*device = 0;
	return 0;
}

static int stream_capturing(void *stream, int *capturing)
{
	(void)stream;
	*capturing = 0;
	return 0;
}

static int device_pool(void **pool, int device)
{
	(void)device;
	*pool = (void *)0x9000;
	return 0;
}

static unsigned int nr_asked, nr_reported;

/* The driver reports this call to the other observers, unless the library marks it as its own. */
static void ask(void)
{
	bool is_own = driver_own(true);

	driver_own(is_own);
	nr_asked++;
	nr_reported += !is_own;
}

static int pool_attr(void *pool, int attr, uint64_t *bytes)
{
	ask();
	(void)pool;
	*bytes = attr == CUDA_POOL_RESERVED ? reserved : 0;
	return 0;
}

static int sim_memory(int device, uint64_t *mine, uint64_t *all)
{
	(void)device;
	*mine = *all = own;
	return 0;
}

static int result_ok(void *stream)
{
	(void)stream;
	return 0;
}

static int free_async(cuda_ptr address, void *stream)
{
	(void)address;
	(void)stream;
	return 0;
}

static const struct cuda_api fake = {
	.device_count = device_count, .device_total = device_total, .device_pci = device_pci,
	.ctx_device = ctx_device, .stream_capturing = stream_capturing, .stream_sync = result_ok,
	.device_pool = device_pool, .pool_attr = pool_attr, .sim_memory = sim_memory,
	.free_async = free_async,
};

static uint64_t words[8];	/* arguments of the call */

/* Makes one call of the driver. The call stores @out at the address in its first argument. */
static int call(int cbid, void *ctx, int result, uint64_t out)
{
	struct cuda_call_params params = { .result = &result, .arguments = words, .ctx = ctx };
	const struct memory_call *row = memory_calls;

	while (row->fn.cbid != cbid)
		row++;
	params.name = driver_function_name(cbid);
	params.site = CUDA_SITE_BEGIN;
	on_call(&row->fn, &params);
	/* If no GPU has the requested size, behaves like the driver. */
	if (words[1] == IMPOSSIBLE)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result && out)
		*(uint64_t *)(uintptr_t)words[0] = out;
	params.site = CUDA_SITE_END;
	on_call(&row->fn, &params);
	return result;
}

static int allocate(uint64_t address, uint64_t bytes, void *ctx)
{
	uint64_t out = 0;

	words[0] = (uintptr_t)&out;
	words[1] = bytes;
	return call(243, ctx, 0, address);
}

static void release(uint64_t address, int result)
{
	words[0] = address;
	call(245, CTX_A, result, 0);
}

static void ctx_goes(void *ctx)
{
	words[0] = (uintptr_t)ctx;
	call(322, ctx, 0, 0);
}

static uint64_t used(void)
{
	return ledger_used_own(tenant_ledger(), 0);
}

static void test_failed_free(void)
{
	uint64_t before = used(), slab = 0x40000000;

	allocate(0x10000000, 8 * MIB, CTX_A);
	tap_ok(used() == before + 8 * MIB, "8 MiB are charged for");
	release(0x10000000, CUDA_ERROR_INVALID_CONTEXT);
	tap_ok(used() == before + 8 * MIB, "and after a free that fails");
	release(0x10000000, 0);
	tap_ok(used() == before, "until the next one succeeds: not for ever");
	allocate(slab, 100, CTX_A);
	before = used();
	release(slab, CUDA_ERROR_INVALID_CONTEXT);
	for (int i = 1; i <= 9; i++)
		allocate(slab + i * MEMORY_SLAB, 100, CTX_A);
	for (int i = 1; i <= 9; i++)
		release(slab + i * MEMORY_SLAB, 0);
	/* Five empty pools are freed at the same time, and four pools remain. */
	tap_ok(used() == before + 4 * MEMORY_SLAB,
	       "a slab with an allocation whose free failed is not empty");
	release(slab, 0);
	tap_ok(used() == before - MEMORY_SLAB, "until the next one succeeds");
}

/* Each chain of the table has items of both contexts. */
static void test_contexts(void)
{
	uint64_t before = used();
	unsigned int wrong = 0;

	for (uint64_t i = 1; i <= NR; i++)
		allocate(i << 30, 2 * MIB, i % 3 ? CTX_A : CTX_B);
	tap_ok(used() == before + NR * 2 * MIB, "%d allocations of two contexts", NR);
	ctx_goes(CTX_A);
	tap_ok(used() == before + NR / 3 * 2 * MIB, "one context's go with it, all of them");
	for (uint64_t i = 1; i <= NR; i++) {
		uint64_t now = used();

		release(i << 30, 0);
		wrong += now - used() != (i % 3 ? 0 : 2 * MIB);
	}
	tap_ok(!wrong && used() == before, "the other's are still there, one by one: %u wrong",
	       wrong);
}

/*
 * @type is the type of the location: 1 is a GPU, 2 is the host, and 3 is a NUMA node of the host.
 */
static void make_pool(uint64_t pool, int type)
{
	struct cuda_pool_props props = { .type = 1, .location = { type, 0 } };
	uint64_t out = 0;

	words[0] = (uintptr_t)&out;
	words[1] = (uintptr_t)&props;
	call(607, CTX_A, 0, pool);
}

/* Gets the default pool (call 801) or the current pool (802) of a location that no call made. */
static void find_pool(int cbid, uint64_t pool, int type, int allocation)
{
	struct cuda_location location = { type, 0 };
	uint64_t out = 0;

	words[0] = (uintptr_t)&out;
	words[1] = (uintptr_t)&location;
	words[2] = allocation;
	call(cbid, CTX_A, 0, pool);
}

static int allocate_from(uint64_t pool, uint64_t bytes)
{
	uint64_t out = 0;
	int result;

	words[0] = (uintptr_t)&out;
	words[1] = bytes;
	words[2] = pool;
	words[3] = 0;
	/* From now on a pool reserves the requested amount. */
	reserved = bytes;
	result = call(611, CTX_A, 0, 0x7000);
	reserved = 0;
	return result;
}

static void test_host_pools(void)
{
	uint64_t before = used();
	int host, node, wrong = 0;

	make_pool(0x5000, 2);
	make_pool(0x6000, 3);
	host = allocate_from(0x5000, 16 * GIB);
	node = allocate_from(0x6000, 16 * GIB);
	tap_ok(!host && !node && used() == before,
	       "16 GiB of the host's pools in a tenant of 8 GiB: results %d and %d, %llu bytes charged",
	       host, node, (unsigned long long)(used() - before));
	reserved = 4 * GIB;
	for (int i = 0; i < 100; i++)
		wrong += allocate_from(0x5000, MIB);
	allocate(1 << 30, 2 * MIB, CTX_A);
	tap_ok(!wrong && used() == before + 2 * MIB, "nor are they counted later");
	release(1 << 30, 0);
	words[0] = 0x5000;
	call(608, CTX_A, 0, 0);
	make_pool(0x5000, 1);
	tap_ok(allocate_from(0x5000, 16 * GIB) == CUDA_ERROR_OUT_OF_MEMORY,
	       "a GPU's pool at the address of one that was destroyed is counted");
}

static void test_found_pools(void)
{
	uint64_t before = used();
	int host, node, gpu;

	for (int i = 0; i < 2; i++) {
		find_pool(801, 0xa000, 2, 1);
		find_pool(802, 0xb000, 3, 1);
		host = allocate_from(0xa000, 16 * GIB);
		node = allocate_from(0xb000, 16 * GIB);
		tap_ok(!host && !node && used() == before,
		       "16 GiB of the host's default pools: results %d and %d, %llu bytes charged",
		       host, node, (unsigned long long)(used() - before));
	}
	find_pool(801, 0x9000, 1, 1);
	gpu = allocate_from(0x9000, 16 * GIB);
	tap_ok(gpu == CUDA_ERROR_OUT_OF_MEMORY, "but those of a GPU's default pool are counted");
	find_pool(801, 0xc000, 2, 2);
	tap_ok(allocate_from(0xc000, 16 * GIB) == CUDA_ERROR_OUT_OF_MEMORY,
	       "and managed memory, which can move to a GPU");
}

#define CREDITS 2000000

static pthread_barrier_t all_started;
static atomic_uint nr_taken;

static void *take_credit(void *gpu)
{
	unsigned int nr = 0;

	pthread_barrier_wait(&all_started);
	while (memory_gpu_pool_credit(gpu, 488))
		nr++;
	atomic_fetch_add(&nr_taken, nr);
	return NULL;
}

/* Threads take the memory that was charged in advance without a lock. */
static void test_credit(void)
{
	struct memory_gpu *gpu = memory_now_only_gpu();
	pthread_t threads[4];

	/* Each allocation takes 512 bytes more than its size. */
	atomic_store(&gpu->credit, CREDITS * 1000ull + 999);
	pthread_barrier_init(&all_started, NULL, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, take_credit, gpu);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	tap_ok(nr_taken == CREDITS && gpu->credit == 999,
	       "four threads take each byte of the credit once: %u times 1000, %llu left",
	       nr_taken, (unsigned long long)gpu->credit);
	pthread_barrier_destroy(&all_started);
	atomic_store(&gpu->credit, 0);
}

int main(void)
{
	struct gpupart *gp;
	char name[32];

	snprintf(name, sizeof(name), "begin-end-%d", getpid());
	if (gpupart_open(&gp) || tenant_start(gp, name, 8 * GIB)) {
		tap_ok(false, "a tenant: %s", gpupart_error(gp));
		return tap_done();
	}
	memory_real_open(&fake);
	memory_cuda = &fake;
	atomic_store(&on, true);
	/* The process joins the GPU's ledger at its first use. */
	allocate(1 << 30, 2 * MIB, CTX_A);
	release(1 << 30, 0);
	test_failed_free();
	test_contexts();
	test_host_pools();
	test_found_pools();
	test_credit();
	tap_ok(nr_asked && !nr_reported && !driver_own(false),
	       "no other observer is called for the library's own calls: %u of %u", nr_reported,
	       nr_asked);
	gpupart_close(gp);
	return tap_done();
}
