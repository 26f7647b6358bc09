// SPDX-License-Identifier: MIT
/*
 * On the simulated driver, tests the memory quota in programs that do not use gpupart. Each kind
 * of allocation must be counted, refused above the quota, and refunded. The test compares the
 * accounting with the driver's own figure for the process.
 */
#include <fcntl.h>
#include <gpupart_manage.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "tests/sim/cuda/program.h"

#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
/*
 * The charge may exceed the real use by at most this size. The excess is for code, and for slabs
 * that the driver keeps for later allocations.
 */
#define SPARE		(64 * MIB + 16 * MIB)
#define OUT_OF_MEMORY	CUDA_ERROR_OUT_OF_MEMORY
#define LAZY		20	/* kernels */

#define MEMORY(F) \
	F(cuMemAllocManaged) F(cuMemAllocPitch_v2) F(cuMemGetInfo_v2) F(cuArrayCreate_v2) \
	F(cuArray3DCreate_v2) F(cuArrayDestroy) F(cuMipmappedArrayCreate) \
	F(cuMipmappedArrayDestroy) F(cuMemCreate) F(cuMemRelease) F(cuMemAddressReserve) \
	F(cuMemAddressFree) F(cuMemMap) F(cuMemUnmap) F(cuMemSetAccess) \
	F(cuMemRetainAllocationHandle) F(cuMemExportToShareableHandle) \
	F(cuMemImportFromShareableHandle) F(cuIpcGetMemHandle) F(cuIpcOpenMemHandle_v2) \
	F(cuIpcCloseMemHandle) F(cuImportExternalMemory) F(cuDestroyExternalMemory) \
	F(cuMemAllocAsync) F(cuMemAllocFromPoolAsync) F(cuMemFreeAsync) F(cuMemPoolCreate) \
	F(cuMemPoolDestroy) F(cuMemPoolTrimTo) F(cuMemPoolSetAttribute) \
	F(cuMemPoolGetAttribute) F(cuDeviceGetDefaultMemPool) F(cuDeviceSetMemPool) \
	F(cuDeviceGetGraphMemAttribute) F(cuDeviceGraphMemTrim) F(cuGraphAddMemAllocNode) \
	F(cuLibraryLoadData) F(cuLibraryUnload) F(cuDevicePrimaryCtxReset_v2) \
	F(cuCtxSetLimit) F(gpupart_sim_memory)

static struct {
	MEMORY(DECLARE)
} mem;

static struct gpupart *gp;
static char pci[20];
static CUcontext ctx;
static uint64_t context;	/* memory of one context */
static bool on_gpu;		/* the program runs on a real GPU; see tests/gpu/memory.c */

/* NVML's nvmlProcessInfo_t. */
static uint64_t figure(void)
{
	static int (*find)(const char *, void **), (*list)(void *, unsigned int *, void *);
	struct {
		unsigned int pid;
		unsigned long long used;
		unsigned int instance[2];
	} infos[256];
	unsigned int nr = 256;
	void *lib, *device;

	if (!list) {
		int (*start)(void);

		lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
		*(void **)&start = dlsym(lib, "nvmlInit_v2");
		*(void **)&find = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
		*(void **)&list = dlsym(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
		start();
	}
	if (find(pci, &device) || list(device, &nr, infos))
		return 0;
	for (unsigned int i = 0; i < nr; i++)
		if ((int)infos[i].pid == getpid())
			return infos[i].used;
	return 0;
}

static uint64_t real(void)
{
	uint64_t own = 0, all = 0;

	if (on_gpu)
		return figure();
	mem.gpupart_sim_memory(0, &own, &all);
	return all;
}

static struct gpupart_tenant tenant(void)
{
	struct gpupart_tenant t = { .used = 0 };

	gpupart_tenant_get(gp, NULL, pci, &t);
	return t;
}

static uint64_t charged(void)
{
	return tenant().used;
}

/* Checks the charge. It must be at least the real use, and at most a little more. */
static void balanced(const char *what)
{
	uint64_t is = real(), told = charged();

	check(told >= is && told <= is + SPARE, "%s: %llu MiB are charged for %llu", what,
	      (unsigned long long)(told / MIB), (unsigned long long)(is / MIB));
}

static void resolve(void)
{
#define FIND(name) *(void **)&mem.name = dlsym(libcuda, #name);
	MEMORY(FIND)
#undef FIND
	gpupart_open(&gp);
	TRY(cu.cuInit(0));
	on_gpu = getenv("TEST_LIBCUDA");
	TRY(cu.cuDeviceGetPCIBusId(pci, sizeof(pci), 0));
	for (char *c = pci; *c; c++)
		*c += *c >= 'A' && *c <= 'F' ? 'a' - 'A' : 0;
}

static void begin(void)
{
	resolve();
	TRY(cu.cuCtxCreate_v2(&ctx, 0, 0));
	context = real();
	balanced("a context");
}

/* ------------------------------------------------------------ ways to allocate memory */

struct got {
	uint64_t address, handle, mapped;
	CUarray array;
	CUmemoryPool pool;
	CUexternalMemory external;
};

struct way {
	const char *name;
	CUresult (*get)(struct got *got, uint64_t bytes);
	CUresult (*give)(struct got *got);
	bool unseen;	/* the driver's figure does not include this memory */
};

static CUresult get_linear(struct got *got, uint64_t bytes)
{
	return cu.cuMemAlloc_v2(&got->address, bytes);
}

static CUresult get_asked(struct got *got, uint64_t bytes)
{
	CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;

	TRY(cu.cuGetProcAddress("cuMemAlloc", (void **)&alloc, 12000, 0));
	return alloc(&got->address, bytes);
}

static CUresult get_pitch(struct got *got, uint64_t bytes)
{
	size_t pitch = 0;

	return mem.cuMemAllocPitch_v2(&got->address, &pitch, 1000, bytes / 1024, 4);
}

static CUresult get_managed(struct got *got, uint64_t bytes)
{
	return mem.cuMemAllocManaged(&got->address, bytes, 1);
}

static CUresult give_linear(struct got *got)
{
	return cu.cuMemFree_v2(got->address);
}

static CUresult get_array(struct got *got, uint64_t bytes)
{
	struct cu_array_descriptor d = { 4096, bytes / 65536, 0x20, 4 };

	return mem.cuArrayCreate_v2(&got->array, &d);
}

static CUresult get_array_3d(struct got *got, uint64_t bytes)
{
	struct cu_array_3d_descriptor d = { 1024, 1024, bytes / 16 / MIB, 0x20, 4, 0 };

	return mem.cuArray3DCreate_v2(&got->array, &d);
}

static CUresult give_array(struct got *got)
{
	return mem.cuArrayDestroy(got->array);
}

static CUresult get_mipmap(struct got *got, uint64_t bytes)
{
	struct cu_array_3d_descriptor d = { 4096, bytes / 65536 / 4 * 3, 0, 0x20, 4, 0 };

	return mem.cuMipmappedArrayCreate(&got->array, &d, 6);
}

static CUresult give_mipmap(struct got *got)
{
	return mem.cuMipmappedArrayDestroy(got->array);
}

static CUresult get_physical(struct got *got, uint64_t bytes)
{
	struct cu_memory_properties what = { .type = 1, .location = { CU_LOCATION_DEVICE, 0 } };

	return mem.cuMemCreate(&got->handle, bytes, &what, 0);
}

static CUresult give_physical(struct got *got)
{
	return mem.cuMemRelease(got->handle);
}

/* Releases the handle while the memory is mapped. The mapped memory stays. */
static CUresult get_mapped(struct got *got, uint64_t bytes)
{
	CUresult error = get_physical(got, bytes);
	uint64_t before;

	if (error)
		return error;
	TRY(mem.cuMemAddressReserve(&got->address, bytes, 0, 0, 0));
	TRY(mem.cuMemMap(got->address, bytes, 0, got->handle, 0));
	before = charged();
	TRY(mem.cuMemRelease(got->handle));
	check(charged() == before, "what is mapped is charged without its handle");
	got->mapped = bytes;
	return CUDA_SUCCESS;
}

static CUresult give_mapped(struct got *got)
{
	TRY(mem.cuMemUnmap(got->address, got->mapped));
	return mem.cuMemAddressFree(got->address, got->mapped);
}

static CUresult get_async(struct got *got, uint64_t bytes)
{
	return mem.cuMemAllocAsync(&got->address, bytes, NULL);
}

static CUresult give_async(struct got *got)
{
	uint64_t ignored;

	TRY(mem.cuMemFreeAsync(got->address, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
	/* The library checks the pool at the next request. */
	return mem.cuMemGetInfo_v2(&ignored, &ignored);
}

static CUresult get_pool(struct got *got, uint64_t bytes)
{
	struct cu_pool_properties what = { .type = 1, .location = { CU_LOCATION_DEVICE, 0 } };
	CUresult error;

	TRY(mem.cuMemPoolCreate(&got->pool, &what));
	error = mem.cuMemAllocFromPoolAsync(&got->address, bytes, got->pool, NULL);
	if (error)
		TRY(mem.cuMemPoolDestroy(got->pool));
	return error;
}

static CUresult give_pool(struct got *got)
{
	TRY(mem.cuMemFreeAsync(got->address, NULL));
	return mem.cuMemPoolDestroy(got->pool);
}

static CUresult get_external(struct got *got, uint64_t bytes)
{
	struct cu_external_descriptor d = { .type = 1, .bytes = bytes };

	return mem.cuImportExternalMemory(&got->external, &d);
}

static CUresult give_external(struct got *got)
{
	return mem.cuDestroyExternalMemory(got->external);
}

static const struct way ways[] = {
	{ "cuMemAlloc", get_linear, give_linear, false },
	{ "cuMemAlloc by cuGetProcAddress", get_asked, give_linear, false },
	{ "cuMemAllocPitch", get_pitch, give_linear, false },
	{ "cuMemAllocManaged", get_managed, give_linear, true },
	{ "cuArrayCreate", get_array, give_array, false },
	{ "cuArray3DCreate", get_array_3d, give_array, false },
	{ "cuMipmappedArrayCreate", get_mipmap, give_mipmap, false },
	{ "cuMemCreate", get_physical, give_physical, false },
	{ "cuMemMap", get_mapped, give_mapped, false },
	{ "cuMemAllocAsync", get_async, give_async, false },
	{ "cuMemAllocFromPoolAsync", get_pool, give_pool, false },
	{ "cuImportExternalMemory", get_external, give_external, true },
};

#define NR_WAYS (sizeof(ways) / sizeof(ways[0]))

static void one_way(const struct way *way)
{
	struct got got = { 0 }, more = { 0 };
	uint64_t before = charged(), was = real(), now;
	CUresult error;

	error = way->get(&got, GIB);
	now = charged();
	check(!error && now >= before + GIB - SPARE && now <= before + GIB + SPARE + 8 * 64 * MIB,
	      "%s: 1 GiB is charged for as %llu MiB, error %d", way->name,
	      (unsigned long long)((now - before) / MIB), error);
	check(way->unseen || now >= real(), "%s: no more is taken than charged for", way->name);
	error = way->get(&more, 4 * GIB);
	check(error == OUT_OF_MEMORY, "%s: 4 GiB more are out of memory, error %d", way->name,
	      error);
	check(way->unseen || real() <= was + GIB + 64 * MIB, "%s: and nothing is taken", way->name);
	TRY(way->give(&got));
	now = charged();
	check(now <= before + SPARE, "%s: given back, %llu MiB of %llu are left", way->name,
	      (unsigned long long)(now / MIB), (unsigned long long)(before / MIB));
	check(real() == was, "%s: the driver has it back", way->name);
}

static void body_ways(const char *arg)
{
	(void)arg;
	begin();
	/* The last element of ways[] needs memory from another program. */
	for (unsigned int i = 0; i < NR_WAYS - on_gpu; i++)
		one_way(&ways[i]);
	balanced("after all ways");
}

/* Two times, allocates the whole quota up to the last unit. */
static void body_full(const char *arg)
{
	uint64_t address[64], left, total, nr = 0;

	(void)arg;
	begin();
	for (int round = 0; round < 3; round++) {
		for (nr = 0; nr < 64 && !cu.cuMemAlloc_v2(&address[nr], 100 * MIB); nr++)
			;
		check(nr >= 33 && nr <= 35, "100 MiB %llu times", (unsigned long long)nr);
		check(real() <= 4 * GIB && charged() <= 4 * GIB, "no more than the quota");
		TRY(mem.cuMemGetInfo_v2(&left, &total));
		check(total == 4 * GIB && left < 100 * MIB, "%llu MiB of %llu are left",
		      (unsigned long long)(left / MIB), (unsigned long long)(total / MIB));
		while (nr)
			TRY(cu.cuMemFree_v2(address[--nr]));
		balanced("all given back");
	}
}

static void body_small(const char *arg)
{
	static uint64_t address[20000];
	unsigned int nr = 0, i;
	uint64_t seed = 1, bytes, sum = 0;
	CUresult error = 0;

	(void)arg;
	begin();
	for (nr = 0; nr < 20000 && !error; nr++) {
		seed = seed * 6364136223846793005ull + 1;
		bytes = 1 + (seed >> 40) % (nr % 10 ? 4096 : MIB);
		sum += bytes;
		error = cu.cuMemAlloc_v2(&address[nr], bytes);
	}
	check(!error && sum > GIB / 2, "20000 small ones of %llu MiB",
	      (unsigned long long)(sum / MIB));
	balanced("small ones");
	for (i = 0; i < nr; i += 2)
		TRY(cu.cuMemFree_v2(address[i]));
	balanced("every other freed");
	for (i = 1; i < nr; i += 2)
		TRY(cu.cuMemFree_v2(address[i]));
	balanced("all freed");
	check(real() == context, "nothing but the context is left");
	for (i = 0; i < 4000; i++)
		TRY(i % 2 ? cu.cuMemAlloc_v2(&address[i], 1000) :
			    mem.cuMemAllocPitch_v2(&address[i], &bytes, 1000, 1 + i % 10, 4));
	balanced("pitched ones among them");
	for (i = 0; i < 4000; i++)
		TRY(cu.cuMemFree_v2(address[i]));
	balanced("freed");
	check(real() == context, "and gone");
}

/*
 * Makes small allocations up to the quota. The library must refuse the last allocation, and must
 * not keep its slab.
 */
static void body_small_full(const char *arg)
{
	uint64_t address, nr = 0;

	(void)arg;
	begin();
	while (nr < 20000 && !cu.cuMemAlloc_v2(&address, MIB))
		nr++;
	check(nr > 3400 && nr < 3600, "1 MiB %llu times", (unsigned long long)nr);
	check(real() <= 4 * GIB, "no more than the quota");
}

static void body_bad_frees(const char *arg)
{
	uint64_t big, small, before, misaligned;
	CUarray array = (CUarray)0x1234560;

	(void)arg;
	begin();
	before = charged();
	TRY(cu.cuMemAlloc_v2(&big, 8 * MIB));
	TRY(cu.cuMemAlloc_v2(&small, 100));
	misaligned = big + MIB;
	/* A real driver accepts any handle. */
	check(cu.cuMemFree_v2(misaligned) && cu.cuMemFree_v2(0x123450000) &&
		      !cu.cuMemFree_v2(0) &&
		      (on_gpu || (mem.cuArrayDestroy(array) && mem.cuMemRelease(4711))),
	      "what is nothing cannot be freed, as without a quota");
	balanced("and nothing is given back");
	check(charged() >= before + 8 * MIB, "8 MiB are still charged for");
	TRY(cu.cuMemFree_v2(big));
	check(cu.cuMemFree_v2(big), "nor twice");
	TRY(cu.cuMemFree_v2(small));
	balanced("all freed once");
	TRY(cu.cuMemAlloc_v2(&big, 256 * MIB));
	TRY(cu.cuMemAlloc_v2(&small, 100));
	TRY(mem.cuMemFreeAsync(big, NULL));
	TRY(mem.cuMemFreeAsync(small, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
	balanced("freed in a stream's order");
	check(charged() < before + 256 * MIB, "its 256 MiB are given back");
}

/* ------------------------------------------------------------ contexts and modules */

static const char image[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".global .align 4 .b8 much[67108864];\n"
	".visible .entry gpupart_empty()\n{ ret; }\n";

static void body_contexts(const char *arg)
{
	CUcontext second, primary;
	uint64_t address, before;
	CUmodule loaded;

	(void)arg;
	begin();
	before = charged();
	TRY(cu.cuCtxCreate_v2(&second, 0, 0));
	check(charged() >= before + context, "a second context is charged for");
	TRY(cu.cuMemAlloc_v2(&address, 256 * MIB));
	TRY(cu.cuMemAlloc_v2(&address, 1000));
	TRY(cu.cuModuleLoadData(&loaded, image));
	balanced("with memory and a module");
	TRY(cu.cuCtxDestroy_v2(second));
	check(real() == context, "all of it goes with the context");
	balanced("its account too");
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	TRY(cu.cuCtxSetCurrent(primary));
	TRY(cu.cuMemAlloc_v2(&address, 256 * MIB));
	balanced("the primary context");
	TRY(mem.cuDevicePrimaryCtxReset_v2(0));
	balanced("it is reset");
	check(real() == context, "and its memory gone");
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	TRY(cu.cuCtxSetCurrent(primary));
	TRY(cu.cuMemAlloc_v2(&address, 256 * MIB));
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	check(charged() > 2 * context + 256 * MIB, "retained thrice and released twice it stays");
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	balanced("released as often it goes: the reset was no release");
	check(real() == context, "with its memory");
}

static void body_modules(const char *arg)
{
	CUmodule loaded[100], library;
	unsigned int nr = 0, good;

	(void)arg;
	begin();
	TRY(cu.cuModuleLoadData(&loaded[0], image));
	balanced("a module of 64 MiB");
	check(charged() >= context + 64 * MIB, "is charged for");
	TRY(cu.cuModuleUnload(loaded[0]));
	balanced("unloaded");
	TRY(mem.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	balanced("a library of 64 MiB");
	TRY(mem.cuLibraryUnload(library));
	balanced("unloaded");
	for (good = 0; nr < 100; nr++) {
		CUresult error = cu.cuModuleLoadData(&loaded[nr], image);

		good += !error;
		if (error && error != OUT_OF_MEMORY)
			break;
	}
	check(nr == 100 && good >= 53 && good <= 56,
	      "%u of 64 MiB fit, the others are out of memory", good);
	check(real() <= 4 * GIB, "no more than the quota");
}

/* A context does not fit into the quota. The library must refuse its creation. */
static void body_tight(const char *arg)
{
	CUcontext none = NULL;
	CUresult error;

	(void)arg;
	resolve();
	error = cu.cuCtxCreate_v2(&none, 0, 0);
	check(error == OUT_OF_MEMORY && !none, "256 MiB hold no context: error %d", error);
	error = cu.cuDevicePrimaryCtxRetain(&none, 0);
	check(error == OUT_OF_MEMORY && !none, "nor a primary one: error %d", error);
	check(!real() && charged() <= SPARE, "nothing is left of them");
}

/* ----------------------------------------------------------------- pools and graphs */

/* If memory is scarce, a pool must return its unused memory. Only then may an allocation fail. */
static void body_pool_keeps(const char *arg)
{
	uint64_t address, reserved, threshold = UINT64_MAX;
	CUmemoryPool pool;

	(void)arg;
	begin();
	TRY(mem.cuDeviceGetDefaultMemPool(&pool, 0));
	TRY(mem.cuMemPoolSetAttribute(pool, 4, &threshold));
	TRY(mem.cuMemAllocAsync(&address, 2 * GIB, NULL));
	TRY(mem.cuMemFreeAsync(address, NULL));
	TRY(cu.cuStreamSynchronize(NULL));
	TRY(mem.cuMemPoolGetAttribute(pool, 5, &reserved));
	check(reserved == 2 * GIB && charged() >= context + 2 * GIB, "a pool keeps 2 GiB");
	TRY(mem.cuMemAllocAsync(&address, 2 * GIB, NULL));
	check(real() == context + 2 * GIB, "and uses them again");
	TRY(mem.cuMemFreeAsync(address, NULL));
	check(!cu.cuMemAlloc_v2(&address, 3 * GIB), "3 GiB fit: the pool gives its own back");
	check(real() <= 4 * GIB, "no more than the quota");
	balanced("after that");
}

static void body_pool_steps(const char *arg)
{
	static uint64_t address[4000];
	unsigned int nr = 0, wrong = 0;

	(void)arg;
	begin();
	for (int round = 0; round < 20; round++) {
		while (nr < 200u * (round % 5 + 1)) {
			TRY(mem.cuMemAllocAsync(&address[nr], 1000 * (1 + nr % 900), NULL));
			nr++;
			wrong += charged() < real();
		}
		while (nr)
			TRY(mem.cuMemFreeAsync(address[--nr], NULL));
		TRY(cu.cuStreamSynchronize(NULL));
	}
	check(!wrong, "never more than was charged for (%u times)", wrong);
	while (nr < 4000 && !mem.cuMemAllocAsync(&address[nr], 30 * MIB, NULL)) {
		wrong += charged() < real() || real() > 4 * GIB;
		nr++;
	}
	check(!wrong && nr >= 112 && nr <= 118, "30 MiB %u times fill the quota, wrong %u", nr,
	      wrong);
	TRY(mem.cuMemFreeAsync(address[--nr], NULL));
	check(!mem.cuMemAllocAsync(&address[nr], 30 * MIB, NULL), "what is freed can be had again");
}

/*
 * Makes many allocations from a pool, one after the other. The library charges some memory in
 * advance. When memory becomes scarce, the library must refund this charge.
 */
static void body_pool_ahead(const char *arg)
{
	static uint64_t address[4096];
	uint64_t one, excess, most = 0, threshold = UINT64_MAX;
	unsigned int nr = 0, wrong = 0;
	CUmemoryPool pool;

	(void)arg;
	begin();
	TRY(mem.cuDeviceGetDefaultMemPool(&pool, 0));
	TRY(mem.cuMemPoolSetAttribute(pool, 4, &threshold));
	for (int i = 0; i < 20000; i++) {
		TRY(mem.cuMemAllocAsync(&one, MIB, NULL));
		TRY(mem.cuMemFreeAsync(one, NULL));
		if (i % 50)
			continue;
		wrong += charged() < real();
		excess = charged() - real();
		most = excess > most ? excess : most;
	}
	check(!wrong && most >= 200 * MIB && most <= 4 * GIB / 16 + 32 * MIB + SPARE,
	      "of 4 GiB up to %llu MiB are charged ahead, wrong %u",
	      (unsigned long long)(most / MIB), wrong);
	TRY(mem.cuMemGetInfo_v2(&one, &one));
	balanced("not where it is asked what is free");
	while (nr < 4096 && !mem.cuMemAllocAsync(&address[nr], MIB, NULL))
		wrong += nr++ % 16 == 0 && charged() < real();
	check(!wrong && nr < 4096 && real() <= 4 * GIB && real() > 4 * GIB - SPARE - 64 * MIB,
	      "nor where it is scarce: %u of 1 MiB, %llu MiB in all, wrong %u", nr,
	      (unsigned long long)(real() / MIB), wrong);
}

/*
 * At the first launch of a kernel, the driver loads the kernel's code without a report. At this
 * time, a pool has the rest of the quota. The pool must return this memory before the total
 * exceeds the quota.
 */
static void body_lazy(const char *arg)
{
	static char text[8000] = ".version 4.2\n.target sm_30\n.address_size 64\n";
	uint64_t address[64], threshold = UINT64_MAX, one;
	unsigned int nr = 0, wrong = 0;
	CUmemoryPool pool;
	CUfunction function;
	CUmodule loaded;
	char name[16];

	(void)arg;
	begin();
	for (int i = 0; i < LAZY; i++)
		sprintf(text + strlen(text), ".visible .entry k%d()\n{ ret; }\n", i);
	TRY(cu.cuModuleLoadData(&loaded, text));
	TRY(mem.cuDeviceGetDefaultMemPool(&pool, 0));
	TRY(mem.cuMemPoolSetAttribute(pool, 4, &threshold));
	while (nr < 64 && !mem.cuMemAllocAsync(&address[nr], 100 * MIB, NULL))
		nr++;
	while (nr)
		TRY(mem.cuMemFreeAsync(address[--nr], NULL));
	check(real() > 4 * GIB - 256 * MIB, "a pool keeps the whole quota");
	for (int i = 0; i < LAZY; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		TRY(cu.cuModuleGetFunction(&function, loaded, name));
		TRY(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		wrong += real() > 4 * GIB;
		/* The library must check the pool at least this often. */
		usleep(30000);
		TRY(mem.cuMemAllocAsync(&one, 20 * MIB, NULL));
		wrong += real() > 4 * GIB || charged() > 4 * GIB;
		TRY(mem.cuMemFreeAsync(one, NULL));
	}
	check(!wrong, "%d kernels of 24 MiB of code: never more than the quota (%u times)", LAZY,
	      wrong);
	/* The library must refund the memory that it charged in advance for pools. */
	TRY(mem.cuMemGetInfo_v2(&one, &one));
	balanced("the kernels are charged for");
	check(charged() >= context + LAZY * 24 * MIB, "all of them");
}

static void body_graphs(const char *arg)
{
	struct cu_alloc_node_params params = { .bytes = 512 * MIB,
					       .pool.type = CU_MEMORY_PINNED,
					       .pool.location = { CU_LOCATION_DEVICE, 0 } };
	CUgraphExec exec, large;
	CUgraphNode node;
	CUstream stream;
	CUgraph graph;
	uint64_t address;
	CUresult error;

	(void)arg;
	begin();
	TRY(cu.cuGraphCreate(&graph, 0));
	TRY(mem.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	balanced("a graph that has not run");
	TRY(cu.cuGraphLaunch(exec, NULL));
	balanced("it has run");
	check(charged() >= context + 512 * MIB, "its 512 MiB are charged for");
	TRY(mem.cuMemFreeAsync(params.address, NULL));
	TRY(cu.cuGraphLaunch(exec, NULL));
	balanced("again");
	TRY(mem.cuMemFreeAsync(params.address, NULL));
	TRY(cu.cuCtxSynchronize());
	TRY(mem.cuDeviceGraphMemTrim(0));
	balanced("trimmed");
	check(real() == context, "given back");
	/* Captured work that allocates memory becomes a graph node. */
	TRY(cu.cuStreamCreate(&stream, 1));
	TRY(cu.cuStreamBeginCapture_v2(stream, 0));
	TRY(mem.cuMemAllocAsync(&address, 5 * GIB, stream));
	TRY(cu.cuStreamEndCapture(stream, &graph));
	TRY(cu.cuGraphInstantiateWithFlags(&large, graph, 0));
	error = cu.cuGraphLaunch(large, stream);
	check(error == OUT_OF_MEMORY, "a captured 5 GiB are out of memory at the launch: error %d",
	      error);
	check(real() <= 4 * GIB, "no more than the quota");
	check(!cu.cuGraphLaunch(exec, NULL) && !cu.cuCtxSynchronize(), "others run");
	balanced("after that");
	TRY(cu.cuGraphExecDestroy(large));
	TRY(cu.cuGraphExecDestroy(exec));
}

/*
 * A graph with builds for two sets needs the memory of two graphs. The library's own build counts
 * too.
 */
static void body_graph_sets(const char *arg)
{
	struct gpupart_tpcset set;
	struct gpupart_gpu *gpu;
	uint64_t address, one;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	(void)arg;
	begin();
	if (gpupart_attach(gp, "cuda:0", NULL, &gpu))
		check(0, "attached: %s", gpupart_error(gp));
	TRY(cu.cuMemAlloc_v2(&address, 2 * MIB));
	TRY(cu.cuGraphCreate(&graph, 0));
	TRY(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &(struct cu_set_node_params){
		.to = address, .element = 4, .width = MIB / 4, .height = 1 }, ctx));
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	one = real();
	for (int i = 0; i < 4; i++) {
		gpupart_tpcset_parse_list(gp, i % 2 ? "8-11" : "0-3", &set);
		gpupart_process_set(gp, gpu, &set);
		TRY(cu.cuGraphLaunch(exec, NULL));
	}
	TRY(cu.cuCtxSynchronize());
	check(real() == one + 2 * 256 * MIB, "two sets, twice 256 MiB");
	TRY(cu.cuMemAlloc_v2(&address, 2 * MIB));
	balanced("both are charged for");
	TRY(cu.cuGraphExecDestroy(exec));
	check(real() < one + 256 * MIB, "and destroyed with it");
}

/*
 * A thread finds too little memory while another thread captures. The capture must not end. The
 * same happens in vLLM's warm-up.
 */
static void body_captured(const char *arg)
{
	CUstream stream;
	CUgraph graph;
	uint64_t address;

	(void)arg;
	begin();
	TRY(mem.cuMemAllocAsync(&address, 100 * MIB, NULL));
	TRY(mem.cuMemFreeAsync(address, NULL));
	TRY(cu.cuStreamCreate(&stream, 1));
	/*
	 * The capture uses the relaxed mode. In the other modes, an allocation ends the capture
	 * even without gpupart.
	 */
	TRY(cu.cuStreamBeginCapture_v2(stream, 2));
	TRY(mem.cuMemAllocAsync(&address, 20 * MIB, stream));
	check(cu.cuMemAlloc_v2(&address, 5 * GIB) == OUT_OF_MEMORY, "5 GiB are out of memory");
	check(!cu.cuStreamEndCapture(stream, &graph) && graph,
	      "what was captured meanwhile is a graph");
	check(!cu.cuMemAlloc_v2(&address, 3 * GIB), "and what fits is had after it");
}

/* ------------------------------------------------------------------------- sharing */

/* Makes the call like a program that was built for per-thread default streams. */
static void body_own_streams(const char *arg)
{
	CUresult (*alloc)(CUdeviceptr *, size_t, CUstream), (*pool_alloc)(CUdeviceptr *, size_t,
									  CUmemoryPool, CUstream);
	CUmemoryPool pool;
	uint64_t address;
	CUstream stream;
	CUgraph graph;

	(void)arg;
	begin();
	TRY(cu.cuGetProcAddress("cuMemAllocAsync", (void **)&alloc, 12000, 2));
	TRY(cu.cuGetProcAddress("cuMemAllocFromPoolAsync", (void **)&pool_alloc, 12000, 2));
	TRY(mem.cuDeviceGetDefaultMemPool(&pool, 0));
	check((void *)alloc != (void *)mem.cuMemAllocAsync, "functions of another name");
	check(alloc(&address, 5 * GIB, NULL) == OUT_OF_MEMORY &&
		      pool_alloc(&address, 5 * GIB, pool, NULL) == OUT_OF_MEMORY,
	      "5 GiB are out of memory");
	/* During this capture, CUDA does not allow calls that use the legacy default stream. */
	TRY(cu.cuStreamCreate(&stream, 0));
	TRY(cu.cuStreamBeginCapture_v2(stream, 2));
	check(alloc(&address, 5 * GIB, NULL) == OUT_OF_MEMORY &&
		      pool_alloc(&address, 5 * GIB, pool, NULL) == OUT_OF_MEMORY,
	      "also while another stream is captured");
	check(!alloc(&address, GIB, NULL), "1 GiB is had");
	check(!cu.cuStreamEndCapture(stream, &graph) && graph, "which harms no capture");
	TRY(mem.cuMemFreeAsync(address, CU_STREAM_PER_THREAD));
	TRY(cu.cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, 2));
	check(!alloc(&address, 5 * GIB, NULL), "a captured call gets none, and is not refused");
	check(!cu.cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph) && graph, "and is in a graph");
}

static void body_import(const char *arg)
{
	struct got got = { 0 };
	uint64_t before, handle, twice, address;
	struct cu_ipc_handle ipc;
	int shared = 0;

	(void)arg;
	begin();
	TRY(get_physical(&got, 256 * MIB));
	TRY(cu.cuMemAlloc_v2(&got.address, 64 * MIB));
	before = charged();
	TRY(mem.cuMemExportToShareableHandle(&shared, got.handle, 1, 0));
	TRY(mem.cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)shared, 1));
	TRY(mem.cuMemAddressReserve(&address, 256 * MIB, 0, 0, 0));
	TRY(mem.cuMemMap(address, 256 * MIB, 0, got.handle, 0));
	TRY(mem.cuMemRetainAllocationHandle(&twice, (void *)(uintptr_t)address));
	TRY(mem.cuIpcGetMemHandle(&ipc, got.address));
	TRY(mem.cuIpcOpenMemHandle_v2(&address, ipc, 1));
	check(charged() == before, "what is imported or mapped is counted once");
	TRY(mem.cuIpcCloseMemHandle(address));
	TRY(mem.cuMemRelease(handle));
	TRY(mem.cuMemRelease(got.handle));
	check(charged() == before, "nor refunded while a process has it");
	TRY(mem.cuMemRelease(twice));
	balanced("still mapped");
	check(charged() == before, "and while it is mapped");
}

static void hold(uint64_t bytes, int fd)
{
	uint64_t address;
	CUresult error;

	begin();
	error = cu.cuMemAlloc_v2(&address, bytes);
	if (write(fd, &error, sizeof(error)) < 0)
		_exit(1);
	pause();
}

/* Starts a process of the same tenant before this process uses CUDA. */
static pid_t start_holder(uint64_t bytes, CUresult *error)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		exit(1);
	fflush(report);
	pid = fork();
	if (!pid) {
		report = fopen("/dev/null", "w");
		hold(bytes, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (read(fd[0], error, sizeof(*error)) != sizeof(*error))
		*error = CUDA_ERROR_UNKNOWN;
	close(fd[0]);
	return pid;
}

static void body_two(const char *arg)
{
	uint64_t address, left, total;
	CUresult error;
	pid_t first, second;

	(void)arg;
	first = start_holder(2 * GIB, &error);
	check(!error, "one process has 2 GiB: error %d", error);
	second = start_holder(2 * GIB, &error);
	check(error == OUT_OF_MEMORY, "2 GiB more are out of memory in another: error %d", error);
	resolve();
	TRY(cu.cuCtxCreate_v2(&ctx, 0, 0));
	context = real();
	check(charged() >= 3 * context + 2 * GIB, "all three count");
	TRY(mem.cuMemGetInfo_v2(&left, &total));
	check(left < 700 * MIB, "here %llu MiB are left", (unsigned long long)(left / MIB));
	check(cu.cuMemAlloc_v2(&address, 2 * GIB) == OUT_OF_MEMORY, "nor do they fit here");
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	check(!cu.cuMemAlloc_v2(&address, 2 * GIB), "the first is killed: now they fit");
	kill(second, SIGKILL);
	waitpid(second, NULL, 0);
	balanced("all but this one are gone");
}

#define KILLED_AT_ONCE 8

static _Noreturn void churn_until_killed(void)
{
	uint64_t a[8];

	report = fopen("/dev/null", "w");
	begin();
	for (unsigned int n = 0;; n++) {
		for (int k = 0; k < 8; k++)
			if (cu.cuMemAlloc_v2(&a[k], (1 + n * 7 % 90) * MIB / 3))
				a[k] = 0;
		for (int k = 0; k < 8; k++)
			cu.cuMemFree_v2(a[k]);
	}
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Runs @nr processes at the same time. Kills each process at a different moment. */
static void kill_round(int nr, unsigned int *seed)
{
	pid_t pids[KILLED_AT_ONCE];
	int at[KILLED_AT_ONCE];

	fflush(report);
	for (int i = 0; i < nr; i++) {
		at[i] = rand_r(seed) % (on_gpu ? 800000 : 100000);
		pids[i] = fork();
		if (!pids[i])
			churn_until_killed();
	}
	qsort(at, nr, sizeof(*at), by_number);
	for (int i = 0; i < nr; i++) {
		usleep(at[i] - (i ? at[i - 1] : 0));
		kill(pids[i], SIGKILL);
	}
	for (int i = 0; i < nr; i++)
		waitpid(pids[i], NULL, 0);
}

/*
 * Returns the sum of the tenant's charged bytes on all GPUs and the number of its listed
 * processes. If the dead processes left nothing, the sum is 0.
 */
static uint64_t still_used(void)
{
	static struct gpupart_tenant list[512];
	const char *name = getenv("GPUPART_TENANT");
	uint64_t sum = 0;
	int nr = gpupart_tenant_list(gp, list, 512, sizeof(struct gpupart_tenant));

	for (int i = 0; i < nr && i < 512; i++)
		if (!strcmp(list[i].name, name) && list[i].uid == geteuid())
			sum += list[i].used + list[i].nr_processes;
	return nr < 0 ? 1 : sum;
}

/*
 * Processes allocate and free memory, and are killed at random moments. This process has not
 * joined a tenant yet.
 */
static void body_kills(const char *arg)
{
	const char *wanted = getenv("TEST_KILLS");
	int kills = wanted ? atoi(wanted) : 64, done = 0;
	unsigned int seed = 42, wrong = 0;
	uint64_t address;

	on_gpu = getenv("TEST_LIBCUDA");
	(void)arg;
	gpupart_open(&gp);
	while (done < kills) {
		int nr = kills - done < KILLED_AT_ONCE ? kills - done : KILLED_AT_ONCE;

		kill_round(nr, &seed);
		done += nr;
		wrong += still_used();
	}
	check(!wrong, "after each %d of %d kills nothing is used (%u times)", KILLED_AT_ONCE,
	      kills, wrong);
	begin();
	check(!cu.cuMemAlloc_v2(&address, 15 * GIB), "%d kills later the whole quota is there",
	      kills);
	balanced("and the accounts are right");
}

/* ------------------------------------------------------------------- other tests */

static void body_change(const char *arg)
{
	uint64_t a, b, left, total, before;

	(void)arg;
	begin();
	TRY(cu.cuMemAlloc_v2(&a, GIB));
	check(!gpupart_tenant_quota_set(gp, NULL, pci, GIB, &before) && before == 4 * GIB,
	      "the quota becomes 1 GiB, less than is used");
	TRY(mem.cuMemGetInfo_v2(&left, &total));
	check(!left && total == GIB, "the program sees it: %llu of %llu",
	      (unsigned long long)left, (unsigned long long)total);
	check(cu.cuMemAlloc_v2(&b, 2 * MIB) == OUT_OF_MEMORY, "nothing more can be had");
	check(!cu.cuMemsetD8_v2(a, 1, GIB / 1024), "what it has stays");
	gpupart_tenant_quota_set(gp, NULL, pci, 8 * GIB, NULL);
	check(!cu.cuMemAlloc_v2(&b, 5 * GIB), "with 8 GiB 5 more fit");
	TRY(cu.cuDeviceTotalMem_v2(&total, 0));
	check(total == 8 * GIB, "cuDeviceTotalMem: 8 GiB");
	gpupart_tenant_quota_set(gp, NULL, pci, 1ull << 50, NULL);
	TRY(cu.cuDeviceTotalMem_v2(&total, 0));
	TRY(mem.cuMemGetInfo_v2(&left, &before));
	check(total > 8 * GIB && before <= total && left <= total - real() && left > 100 * GIB,
	      "more than there is changes nothing");
	check(cu.cuMemAlloc_v2(&b, 150 * GIB) == OUT_OF_MEMORY, "nor is there more");
}

static void *churn(void *arg)
{
	uint64_t address[16] = { 0 }, seed = (uintptr_t)arg;
	uint64_t *wrong = calloc(1, sizeof(*wrong));

	cu.cuCtxSetCurrent(ctx);
	for (int i = 0; i < 20000; i++) {
		uint64_t *slot;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		slot = &address[seed >> 60];
		if (*slot)
			*wrong += !!cu.cuMemFree_v2(*slot);
		*slot = 0;
		if (cu.cuMemAlloc_v2(slot, 1 + (seed >> 30) % (seed & 1024 ? 3000 : 20 * MIB)))
			*slot = 0;
	}
	for (int i = 0; i < 16; i++)
		if (address[i])
			*wrong += !!cu.cuMemFree_v2(address[i]);
	return wrong;
}

static void body_threads(const char *arg)
{
	pthread_t threads[4];
	uint64_t wrong = 0;
	void *found;

	(void)arg;
	begin();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &found);
		wrong += *(uint64_t *)found;
	}
	check(!wrong && real() == context, "four threads: %llu frees failed",
	      (unsigned long long)wrong);
	balanced("all freed");
}

#define ON_CREDIT	(112 * MIB)

static atomic_uint passed;	/* number of times that the memory in use exceeded the quota */
static atomic_ulong most;	/* maximum number of bytes at the same time */

static void *churn_pool(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	uint64_t address[8] = { 0 }, *slot, now;
	CUstream stream;

	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuStreamCreate(&stream, 1));
	for (int i = 0; i < 4000; i++) {
		slot = &address[rand_r(&seed) % 8];
		if (*slot) {
			TRY(mem.cuMemFreeAsync(*slot, stream));
			*slot = 0;
			if (rand_r(&seed) % 3 == 0)
				TRY(cu.cuStreamSynchronize(stream));
		} else if (mem.cuMemAllocAsync(slot, (1 + rand_r(&seed) % 700) * MIB, stream)) {
			*slot = 0;
		}
		now = real();
		passed += now > 4 * GIB;
		if (now > most)
			most = now;
	}
	for (int i = 0; i < 8; i++)
		if (address[i])
			TRY(mem.cuMemFreeAsync(address[i], stream));
	TRY(cu.cuStreamSynchronize(stream));
	return NULL;
}

/* The pool of one thread is about to allocate memory. No other thread may get this memory. */
static void body_pool_threads(const char *arg)
{
	uint64_t address, left, total;
	pthread_t threads[4];

	(void)arg;
	begin();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn_pool, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	/*
	 * Some small calls of other threads may not have been charged before the allocation of
	 * the rest of the quota. See memory.md.
	 */
	check(most <= 4 * GIB + 3ull * ON_CREDIT,
	      "four threads' pools: no more than the quota and calls on credit (%u times, %llu MiB)",
	      passed, (unsigned long long)(most / MIB));
	TRY(mem.cuMemGetInfo_v2(&left, &total));
	balanced("all freed");
	check(!mem.cuMemAllocAsync(&address, 3 * GIB, NULL), "and all can be had again");
}

/* ------------------------------------------------ threads that wait, several GPUs */

static const char census[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{ ret; }\n";

static CUstream busy;

/* Queues work in the stream @busy. The work takes @ns. */
static void keep_busy(uint32_t ns)
{
	CUfunction function;
	CUmodule loaded;
	uint64_t out;
	void *params[] = { &out, &ns };

	TRY(cu.cuMemAlloc_v2(&out, MIB));
	TRY(cu.cuStreamCreate(&busy, 1));
	TRY(cu.cuModuleLoadData(&loaded, census));
	TRY(cu.cuModuleGetFunction(&function, loaded, "gpupart_census"));
	TRY(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, busy, params, NULL));
}

static void *ask_too_much(void *arg)
{
	CUresult *error = arg;
	uint64_t address;

	TRY(cu.cuCtxSetCurrent(ctx));
	*error = cu.cuMemAlloc_v2(&address, 6 * GIB);
	return NULL;
}

static void *ask_too_much_async(void *arg)
{
	CUresult *error = arg;
	uint64_t address;

	TRY(cu.cuCtxSetCurrent(ctx));
	*error = mem.cuMemAllocAsync(&address, 6 * GIB, busy);
	return NULL;
}

/*
 * A thread waits for work, and this work may need another thread to continue. The same happens in
 * NCCL with one thread per GPU.
 */
static void body_waits(const char *arg)
{
	CUresult errors[2] = { CUDA_SUCCESS };
	uint64_t address, other, small;
	pthread_t threads[2];
	CUcontext second;

	(void)arg;
	setenv("GPUPART_SIM_FAULTS", "host-clock", 1);
	begin();
	TRY(cu.cuCtxCreate_v2(&second, 0, 1));
	TRY(cu.cuMemAlloc_v2(&other, 64 * MIB));
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(mem.cuMemAllocAsync(&address, 100 * MIB, NULL));
	keep_busy(4000000000u);
	pthread_create(&threads[0], NULL, ask_too_much, &errors[0]);
	pthread_create(&threads[1], NULL, ask_too_much_async, &errors[1]);
	usleep(300000);
	TRY(cu.cuCtxSetCurrent(second));
	TRY(cu.cuMemFree_v2(other));
	TRY(cu.cuMemAlloc_v2(&other, 64 * MIB));
	TRY(cu.cuMemAlloc_v2(&small, 100));
	TRY(mem.cuMemAllocAsync(&address, 64 * MIB, NULL));
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuMemAlloc_v2(&other, 64 * MIB));
	check(cu.cuStreamQuery(busy) == CUDA_ERROR_NOT_READY,
	      "who asks too much and waits for the GPU keeps no thread from memory");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check(errors[0] == OUT_OF_MEMORY && errors[1] == OUT_OF_MEMORY,
	      "and has none in the end: errors %d, %d", errors[0], errors[1]);
	check(charged() >= context + 164 * MIB && real() <= 4 * GIB, "the accounts are right");
}

static uint64_t real_of(int device)
{
	uint64_t own = 0, all = 0;

	mem.gpupart_sim_memory(device, &own, &all);
	return all;
}

static uint64_t charged_of(const char *address)
{
	struct gpupart_tenant t = { .used = 0 };

	gpupart_tenant_get(gp, NULL, address, &t);
	return t.used;
}

static uint64_t total_of(int device)
{
	uint64_t total = 0;

	TRY(cu.cuDeviceTotalMem_v2(&total, device));
	return total;
}

/* A quota without a GPU applies to each GPU, including GPUs that the program uses later. */
static void body_two_quotas(const char *arg)
{
	const char *name = getenv("GPUPART_TENANT");
	struct gpupart_tenant t;
	char other[20];

	(void)arg;
	begin();
	TRY(cu.cuDeviceGetPCIBusId(other, sizeof(other), 1));
	check(!gpupart_tenant_quota_set(gp, NULL, NULL, 2 * GIB, NULL) && total_of(0) == 2 * GIB,
	      "2 GiB on each GPU");
	check(!gpupart_tenant_get(gp, NULL, other, &t) && t.quota == 2 * GIB && !t.used,
	      "also on one that is unused so far");
	check(total_of(1) == 2 * GIB, "where it then holds, whatever the program began with");
	check(!gpupart_tenant_begin(gp, name, pci, 3 * GIB, NULL) && total_of(0) == 3 * GIB &&
		      total_of(1) == 3 * GIB, "a run with another quota changes it on each");
	check(!gpupart_tenant_quota_set(gp, NULL, other, GIB, NULL) && total_of(0) == 3 * GIB &&
		      total_of(1) == GIB, "1 GiB on one of them");
	check(!gpupart_tenant_begin(gp, name, pci, 3 * GIB, NULL) && total_of(1) == GIB,
	      "stays where a run has the quota that is there");
}

/*
 * Memory counts for the GPU on which it is allocated. The current context may be on a different
 * GPU.
 */
static void body_two_gpus(const char *arg)
{
	uint64_t address, threshold = UINT64_MAX, first;
	CUcontext second;
	CUmemoryPool pool;
	CUstream stream;
	char other[20];
	int nr;

	(void)arg;
	begin();
	TRY(cu.cuDeviceGetPCIBusId(other, sizeof(other), 1));
	TRY(cu.cuCtxCreate_v2(&second, 0, 1));
	TRY(cu.cuStreamCreate(&stream, 1));
	TRY(cu.cuCtxSetCurrent(ctx));
	first = charged();
	TRY(mem.cuDeviceGetDefaultMemPool(&pool, 1));
	TRY(mem.cuMemPoolSetAttribute(pool, 4, &threshold));
	TRY(mem.cuMemAllocFromPoolAsync(&address, GIB, pool, stream));
	check(charged() == first && charged_of(other) >= real_of(1),
	      "the other GPU's pool is charged there: %llu MiB for %llu",
	      (unsigned long long)(charged_of(other) / MIB),
	      (unsigned long long)(real_of(1) / MIB));
	TRY(mem.cuMemAllocAsync(&address, GIB, stream));
	check(charged() == first && charged_of(other) >= real_of(1),
	      "and what comes in the order of a stream of that GPU: %llu MiB for %llu",
	      (unsigned long long)(charged_of(other) / MIB),
	      (unsigned long long)(real_of(1) / MIB));
	for (nr = 0; nr < 300; nr++)
		if (mem.cuMemAllocAsync(&address, 20 * MIB, nr % 2 ? stream : NULL))
			break;
	check(nr > 100 && nr < 200 && real_of(1) <= 4 * GIB && charged_of(other) >= real_of(1) &&
		      charged() >= real(),
	      "in turns for both %d fit: %llu MiB are charged for %llu, %llu for %llu", nr,
	      (unsigned long long)(charged() / MIB), (unsigned long long)(real() / MIB),
	      (unsigned long long)(charged_of(other) / MIB),
	      (unsigned long long)(real_of(1) / MIB));
	check(mem.cuMemAllocFromPoolAsync(&address, 3 * GIB, pool, NULL) == OUT_OF_MEMORY &&
		      !cu.cuMemAlloc_v2(&address, GIB), "each has a quota of its own");
}

static void body_fork(const char *arg)
{
	uint64_t a, b;
	int status;
	pid_t pid;

	(void)arg;
	begin();
	TRY(cu.cuMemAlloc_v2(&a, GIB));
	pid = fork();
	if (!pid)
		_exit(cu.cuMemAlloc_v2(&b, MIB) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	waitpid(pid, &status, 0);
	check(!status, "in the child of a fork CUDA does not work, as ever");
	balanced("the parent's account is its own");
	TRY(cu.cuMemFree_v2(a));
	balanced("and goes on");
}

/* The child has just begun to use a GPU. Returns 0 if the quota applies in the child. */
static int use_in_child(void)
{
	uint64_t a;

	resolve();
	if (gpupart_memory_start(gp, NULL, 0) || cu.cuCtxCreate_v2(&ctx, 0, 0))
		return 1;
	if (cu.cuMemAlloc_v2(&a, GIB) || charged() < GIB || tenant().nr_processes != 2)
		return 2;
	return cu.cuMemAlloc_v2(&a, 4 * GIB) == OUT_OF_MEMORY ? 0 : 3;
}

/* Tests a server that forks before it uses CUDA. The server has prepared everything else. */
static void body_fork_first(const char *arg)
{
	char name[32];
	int status;
	pid_t pid;

	(void)arg;
	gpupart_open(&gp);
	snprintf(name, sizeof(name), "test-first-%d", getpid());
	check(!gpupart_memory_start(gp, name, 4 * GIB), "in a tenant, before cuInit: %s",
	      gpupart_error(gp));
	pid = fork();
	if (!pid)
		_exit(use_in_child());
	waitpid(pid, &status, 0);
	check(!status, "the quota holds in the child of a fork that uses a GPU first: %d", status);
	resolve();
	TRY(cu.cuCtxCreate_v2(&ctx, 0, 0));
	balanced("and then in the parent");
	gpupart_tenant_list(gp, NULL, 0, sizeof(struct gpupart_tenant));
}

/*
 * Returns 0 if three conditions are true: the allocations do not count, a message reports this
 * fact, and the process waits for the tenant's file one time.
 */
static int use_unjoined(int guard)
{
	struct flock none = { .l_type = F_UNLCK, .l_len = 1 };
	struct gpupart_memory_counters counters;
	uint64_t a;

	resolve();
	if (gpupart_memory_start(gp, NULL, 0) || cu.cuCtxCreate_v2(&ctx, 0, 0))
		return 1;
	if (cu.cuMemAlloc_v2(&a, 8 * GIB) || cu.cuMemAlloc_v2(&a, 4096) ||
	    mem.cuMemAllocAsync(&a, MIB, NULL) || cu.cuMemAlloc_v2(&a, 1000 * GIB) != OUT_OF_MEMORY)
		return 2;
	gpupart_memory_counters_get(&counters);
	if (counters.uncounted != 4 || strcmp(counters.uncounted_call, "cuMemAllocAsync"))
		return 3;
	/* The process must not try again at each call, because each attempt could take 5 s. */
	fcntl(guard, F_OFD_SETLK, &none);
	if (cu.cuMemAlloc_v2(&a, 2 * MIB))
		return 4;
	gpupart_memory_counters_get(&counters);
	return counters.uncounted == 5 ? 0 : 5;
}

/* A process was stopped while it held the guard of the tenant's file. */
static void body_unjoined(const char *arg)
{
	struct flock guard = { .l_type = F_WRLCK, .l_len = 1 };
	char name[32], path[100];
	int status, fd;
	pid_t pid;

	(void)arg;
	gpupart_open(&gp);
	snprintf(name, sizeof(name), "test-held-%d", getpid());
	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u/mem-%s", geteuid(), name);
	check(!gpupart_memory_start(gp, name, 4 * GIB), "in a tenant: %s", gpupart_error(gp));
	fd = open(path, O_RDWR | O_CLOEXEC);
	check(fd >= 0 && !fcntl(fd, F_OFD_SETLK, &guard), "its file is held");
	pid = fork();
	if (!pid)
		_exit(use_unjoined(fd));
	waitpid(pid, &status, 0);
	check(!status, "a child that cannot join is not counted, which is reported: %x", status);
	gpupart_tenant_list(gp, NULL, 0, sizeof(struct gpupart_tenant));
}

static void body_renamed(const char *arg)
{
	static struct gpupart_tenant_process processes[64];
	struct gpupart_memory_counters counters;
	struct cu_array_descriptor d = { 1024, 1024, 0x20, 4 };
	int nr, told = 0;
	CUarray array;

	(void)arg;
	begin();
	TRY(mem.cuArrayCreate_v2(&array, &d));
	gpupart_memory_counters_get(&counters);
	check(counters.uncounted == 1 && counters.uncounted_call &&
		      !strcmp(counters.uncounted_call, "cuRenamed"),
	      "a function that the driver gives another name is not counted, and that is reported");
	nr = gpupart_tenant_process_list(gp, processes, 64,
					 sizeof(struct gpupart_tenant_process));
	for (int i = 0; i < nr && i < 64; i++)
		told += processes[i].pid == getpid() && processes[i].uncounted == 1;
	check(told == 1, "others see it");
	TRY(mem.cuArrayDestroy(array));
}

static void body_refused_count(const char *arg)
{
	struct gpupart_memory_counters counters;
	uint64_t address = 77;

	(void)arg;
	begin();
	check(cu.cuMemAlloc_v2(&address, 5 * GIB) == OUT_OF_MEMORY && (address == 77 || !address),
	      "no address is given: %llx", (unsigned long long)address);
	gpupart_memory_counters_get(&counters);
	check(counters.refused == 1 && !counters.uncounted, "one call was refused");
}

static void body_unlimited(const char *arg)
{
	uint64_t address, left, total;

	(void)arg;
	resolve();
	TRY(cu.cuCtxCreate_v2(&ctx, 0, 0));
	check(!cu.cuMemAlloc_v2(&address, 100 * GIB), "100 GiB");
	TRY(mem.cuMemGetInfo_v2(&left, &total));
	check(total > 100 * GIB && left <= total - real() && left > 20 * GIB,
	      "it sees the true values");
	check(gpupart_tenant_get(gp, NULL, pci, &(struct gpupart_tenant){ .quota = 0 }) < 0,
	      "and is in no tenant");
}

/*
 * The driver's figure does not include this memory. So the library measures contexts by the total
 * of the GPU.
 */
static void body_blind(const char *arg)
{
	CUcontext second;
	uint64_t address;

	(void)arg;
	begin();
	check(charged() >= context, "a context is charged for by what the GPU has less");
	TRY(cu.cuCtxCreate_v2(&second, 0, 0));
	check(charged() >= 2 * context, "a second one too");
	TRY(cu.cuMemAlloc_v2(&address, GIB));
	balanced("with 1 GiB");
	TRY(cu.cuCtxDestroy_v2(second));
	balanced("and without");
	TRY(cu.cuCtxSetCurrent(ctx));
	check(cu.cuMemAlloc_v2(&address, 4 * GIB) == OUT_OF_MEMORY, "4 GiB are out of memory");
}

/*
 * Another process allocates 1 GiB during each call of this process. The library must not charge
 * this memory to this process.
 */
static void body_blind_others(const char *arg)
{
	const uint64_t expected = 518 * MIB;	/* of an H200 */
	struct gpupart_memory_counters counters;
	CUcontext second, primary;
	uint64_t address;
	CUmodule loaded;

	(void)arg;
	resolve();
	TRY(cu.cuCtxCreate_v2(&ctx, 0, 0));
	check(charged() == expected, "a context is what one is known to take: %llu MiB",
	      (unsigned long long)(charged() / MIB));
	TRY(cu.cuCtxCreate_v2(&second, 0, 0));
	check(charged() == 2 * expected, "a second one too");
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	check(charged() == 3 * expected, "the primary one once");
	TRY(cu.cuModuleLoadData(&loaded, image));
	gpupart_memory_counters_get(&counters);
	check(charged() == 3 * expected && counters.uncounted == 1,
	      "the memory of a module is unknown, which is reported");
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuMemAlloc_v2(&address, 2 * GIB));
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	TRY(cu.cuCtxDestroy_v2(second));
	check(charged() == expected + 2 * GIB, "contexts give it back");
}

/*
 * Allocates workspaces like those of cuDNN and cuBLAS. Each workspace is larger than the previous
 * workspace. The new workspace is allocated before the previous workspace is freed.
 */
static void body_workspaces(const char *arg)
{
	uint64_t last = 0, next;
	unsigned int wrong = 0;

	(void)arg;
	begin();
	for (int i = 1; i < 500; i++) {
		TRY(cu.cuMemAlloc_v2(&next, i * MIB + i));
		if (last)
			TRY(cu.cuMemFree_v2(last));
		last = next;
		wrong += charged() < real();
	}
	TRY(cu.cuMemFree_v2(last));
	check(!wrong, "charged for at each step");
	balanced("all gone");
}

/* Uses segments that grow and shrink, like PyTorch's expandable segments. */
static void body_segments(const char *arg)
{
	struct cu_memory_properties what = { .type = 1, .location = { CU_LOCATION_DEVICE, 0 } };
	uint64_t base, handle, nr = 0;
	CUresult error;

	(void)arg;
	begin();
	TRY(mem.cuMemAddressReserve(&base, 8 * GIB, 0, 0, 0));
	for (;; nr++) {
		error = mem.cuMemCreate(&handle, 20 * MIB, &what, 0);
		if (error)
			break;
		TRY(mem.cuMemMap(base + nr * 20 * MIB, 20 * MIB, 0, handle, 0));
		TRY(mem.cuMemRelease(handle));
	}
	check(error == OUT_OF_MEMORY && nr > 170 && nr < 180 && real() <= 4 * GIB,
	      "%llu segments, then error %d", (unsigned long long)nr, error);
	TRY(mem.cuMemUnmap(base, nr / 2 * 20 * MIB));
	balanced("half of them unmapped at once");
	TRY(mem.cuMemUnmap(base + nr / 2 * 20 * MIB, (nr - nr / 2) * 20 * MIB));
	balanced("and the others");
	check(real() == context, "nothing is left");
}

/* --------------------------------------------------------------------------- main */

static char name_variable[64], inject_variable[2200];

static void quota(const char *name, void (*body)(const char *), const char *bytes,
		const char *fault, const char *words)
{
	const char *only = getenv("TEST_ONLY");
	static char bytes_variable[64];
	const char *env[] = { "GPUPART_SIM=" BOARD_B, inject_variable, name_variable,
			      bytes_variable, fault, NULL };
	static int nr;

	if (only && strcmp(only, name))
		return;
	snprintf(name_variable, sizeof(name_variable), "GPUPART_TENANT=test-%d-%d", getpid(), nr++);
	snprintf(bytes_variable, sizeof(bytes_variable), "GPUPART_MEM=%s", bytes ? bytes : "");
	if (!bytes) {
		env[2] = fault;
		env[3] = NULL;
	}
	scenario(name, body, NULL, env, words);
}

#define FOUR "4294967296"

/* Tests faults of the driver. Also makes tests that one process cannot make with a real driver. */
static void simulated_only(void)
{
	quota("every way, changed arguments ignored", body_ways, FOUR,
	      "GPUPART_SIM_FAULTS=fixed-arguments", NULL);
	quota("graph of two sets", body_graph_sets, FOUR,
	      "GPUPART_SIM_FAULTS=graph-memory=268435456", NULL);
	quota("imported", body_import, FOUR, NULL, NULL);
	quota("lazy code", body_lazy, FOUR, "GPUPART_SIM_FAULTS=lazy-code=25165824", NULL);
	quota("threads' own streams", body_own_streams, FOUR, NULL, NULL);
	quota("not joined", body_unjoined, NULL, NULL, NULL);
	quota("unknown function", body_renamed, FOUR, "GPUPART_SIM_FAULTS=renamed=272", NULL);
	quota("no figure", body_blind, FOUR, "GPUPART_SIM_FAULTS=no-memory-figure", NULL);
	quota("no figure, and others", body_blind_others, FOUR,
	      "GPUPART_SIM_FAULTS=no-memory-figure,other-memory=1073741824", NULL);
	quota("two GPUs' quotas", body_two_quotas, FOUR, "GPUPART_SIM=" BOARD_B ":" BOARD_E, NULL);
	quota("two GPUs", body_two_gpus, FOUR, "GPUPART_SIM=" BOARD_B ":" BOARD_E, NULL);
	quota("others go on while one waits", body_waits, FOUR, "GPUPART_SIM=" BOARD_B ":" BOARD_E,
	      NULL);
}

int main(void)
{
	const char *build = getenv("BUILD");

	on_gpu = getenv("TEST_LIBCUDA");
	snprintf(inject_variable, sizeof(inject_variable),
		 "CUDA_INJECTION64_PATH=%s/lib/gpupart/libgpupart-inject.so",
		 build ? build : "build");
	quota("every way", body_ways, FOUR, NULL, NULL);
	if (!on_gpu)
		simulated_only();
	quota("full", body_full, FOUR, NULL, NULL);
	quota("small", body_small, FOUR, NULL, NULL);
	quota("small and full", body_small_full, FOUR, NULL, NULL);
	quota("bad frees", body_bad_frees, FOUR, NULL, NULL);
	quota("contexts", body_contexts, FOUR, NULL, NULL);
	quota("modules", body_modules, FOUR, NULL, NULL);
	quota("too small for a context", body_tight, "268435456", NULL, NULL);
	quota("false out of memory", body_pool_keeps, FOUR, NULL, NULL);
	quota("pools", body_pool_steps, FOUR, NULL, NULL);
	quota("charged ahead", body_pool_ahead, FOUR, NULL, NULL);
	quota("graphs", body_graphs, FOUR, NULL, NULL);
	quota("captured", body_captured, FOUR, NULL, NULL);
	quota("two processes", body_two, FOUR, NULL, NULL);
	quota("kills", body_kills, "17179869184", NULL, NULL);
	quota("limit change", body_change, FOUR, NULL, NULL);
	quota("threads", body_threads, FOUR, NULL, NULL);
	quota("threads and pools", body_pool_threads, FOUR, NULL, NULL);
	quota("fork", body_fork, FOUR, NULL, NULL);
	quota("fork before CUDA", body_fork_first, NULL, NULL, NULL);
	quota("refused", body_refused_count, FOUR, NULL, NULL);
	quota("no quota", body_unlimited, NULL, NULL, NULL);
	quota("workspaces", body_workspaces, FOUR, NULL, NULL);
	quota("segments", body_segments, FOUR, NULL, NULL);
	return tap_done();
}
