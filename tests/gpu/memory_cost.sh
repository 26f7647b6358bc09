#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of allocations with a memory quota, for several builds of the library in one run:
#
#         VARIANTS="min=build full=DIR .." tests/gpu/memory_cost.sh
#
# Each DIR contains lib/gpupart/libgpupart-inject.so. Processes without a quota, one of them as a
# control, and one with each build take turns in short blocks: loops of the driver's functions,
# CuPy's pool, and a training step of PyTorch with its own allocator and with cudaMallocAsync.
# OUT=FOLDER stores the table. Ends within SECONDS_ALL (170). With GPUPART_SIM=CAPTURE only the
# loops run on the simulated GPU: meaningless figures, to test the script.
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
unset GPUPART_SET GPUPART_GPU GPUPART_MEM GPUPART_TENANT CUDA_INJECTION64_PATH LD_AUDIT
if [ ! -e /dev/nvidiactl ] && [ -z "$GPUPART_SIM" ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
${CC:-cc} -O2 -shared -fPIC -o "$tmp/loops.so" -x c - <<'END_OF_C' || exit 1
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

static int (*alloc)(uint64_t *, size_t), (*release)(uint64_t);
static int (*alloc_async)(uint64_t *, size_t, void *), (*free_async)(uint64_t, void *);
static int (*stream_sync)(void *);
static void *stream;

/* 0: a context, a stream, a pool that keeps what it has, and one small allocation that stays. */
int loops_begin(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *pool;
	uint64_t keep_all = UINT64_MAX, keep;
	int device;

	if (!lib)
		return 1;
#define FIND(name, symbol) (*(void **)&name = dlsym(lib, symbol))
	int (*init)(unsigned int), (*get)(int *, int), (*create)(void **, unsigned int, int);
	int (*stream_create)(void **, unsigned int), (*pool_of)(void **, int);
	int (*pool_set)(void *, int, void *);

	if (!FIND(init, "cuInit") || !FIND(get, "cuDeviceGet") ||
	    !FIND(create, "cuCtxCreate_v2") || !FIND(stream_create, "cuStreamCreate") ||
	    !FIND(pool_of, "cuDeviceGetDefaultMemPool") ||
	    !FIND(pool_set, "cuMemPoolSetAttribute") || !FIND(alloc, "cuMemAlloc_v2") ||
	    !FIND(release, "cuMemFree_v2") || !FIND(alloc_async, "cuMemAllocAsync") ||
	    !FIND(free_async, "cuMemFreeAsync") || !FIND(stream_sync, "cuStreamSynchronize"))
		return 2;
	return init(0) || get(&device, 0) || create(&ctx, 0, device) ||
	       stream_create(&stream, 1) || pool_of(&pool, device) ||
	       pool_set(pool, 4, &keep_all) || alloc(&keep, 1 << 10) ? 3 : 0;
}

/* ns for an allocation and its free; 0: a call failed. */
double loops_run(int async, size_t bytes, int calls)
{
	struct timespec a, b;
	uint64_t address;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < calls; i++)
		if (async ? alloc_async(&address, bytes, stream) || free_async(address, stream) :
			    alloc(&address, bytes) || release(address))
			return 0;
	clock_gettime(CLOCK_MONOTONIC, &b);
	stream_sync(stream);
	return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / calls;
}
END_OF_C
VARIANTS=${VARIANTS:-min=${BUILD:-build}} LOOPS=$tmp/loops.so \
	timeout -k 5 "$((${SECONDS_ALL:-170} + 5))" python3 "$here/memory_cost.py" >"$tmp/table"
status=$?
cat "$tmp/table"
[ -z "$OUT" ] || { mkdir -p "$OUT" && cp "$tmp/table" "$OUT/memory_cost.txt"; }
exit $status
