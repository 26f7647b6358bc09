// SPDX-License-Identifier: MIT
/* What a call's arguments say, in the layouts that CUDA's headers have. */
#include <errno.h>
#include <string.h>
#include <gpupart_manage.h>
#include "lib/stat/watched_functions.h"
#include "tests/tap.h"

#define STREAM ((void *)0x1234560)

static const struct stat_call *find(int cbid, const char *name)
{
	const struct stat_call *call = stat_calls;

	while (call->fn.cbid && call->fn.cbid != cbid)
		call++;
	tap_ok(call->fn.cbid && !strcmp(driver_function_name(cbid), name), "%s has number %d", name,
	       cbid);
	return call;
}

static void test_launches(void)
{
	struct {
		void *function;
		unsigned int grid[3], block[3], shared;
		void *stream, **params, **extra;
	} plain = { .grid = { 5, 3, 2 }, .shared = 77, .stream = STREAM };
	struct cuda_launch_config config = { .grid = { 7, 1, 1 }, .stream = STREAM };
	struct {
		const struct cuda_launch_config *config;
		void *function, **params, **extra;
	} by_config = { .config = &config };
	struct {
		void *exec, *stream;
	} graph = { .stream = STREAM };
	const struct stat_call *call;

	call = find(307, "cuLaunchKernel");
	tap_ok(stat_calls_stream(call, &plain) == STREAM, "cuLaunchKernel: stream");
	call = find(653, "cuLaunchKernelEx_ptsz");
	tap_ok(call->flags & STAT_PER_THREAD, "cuLaunchKernelEx_ptsz: the thread's own stream");
	tap_ok(stat_calls_stream(call, &by_config) == STREAM, "cuLaunchKernelEx: stream");
	by_config.config = NULL;
	tap_ok(!stat_calls_stream(call, &by_config),
	       "cuLaunchKernelEx without a configuration: nothing");
	call = find(514, "cuGraphLaunch");
	tap_ok(stat_calls_stream(call, &graph) == STREAM, "cuGraphLaunch: stream");
}

static void test_copies(void)
{
	struct {
		uint64_t to, from;
		size_t bytes;
		void *stream;
	} copy = { .bytes = 4096, .stream = STREAM };
	struct {
		uint64_t to, to_ctx, from, from_ctx;
		size_t bytes;
		void *stream;
	} peer = { .bytes = 99, .stream = STREAM };
	struct {
		size_t sx, sy;
		unsigned int stype;
		const void *shost;
		uint64_t sdevice;
		void *sarray;
		size_t spitch, dx, dy;
		unsigned int dtype;
		void *dhost;
		uint64_t ddevice;
		void *darray;
		size_t dpitch, width, height;
	} plane = { .stype = 1, .dtype = 2, .width = 10, .height = 20 };
	struct cuda_memcpy_node box = {
		.src.type = 2, .dst.type = 1, .width = 2, .height = 3, .depth = 4,
	};
	struct {
		const void *what;
		void *stream;
	} by_address = { &plane, STREAM };
	size_t sizes[] = { 1, 20, 300 };
	struct {
		void *to, *from;
		size_t *sizes, count;
		void *attrs, *indices;
		size_t nr_attrs;
		void *stream;
	} batch = { .sizes = sizes, .count = 3, .stream = STREAM };
	const struct cuda_api none = { 0 };
	const struct stat_call *call;

	call = find(277, "cuMemcpyHtoDAsync_v2");
	tap_ok(stat_calls_stream(call, &copy) == STREAM && stat_calls_bytes(call, &copy) == 4096 &&
	       stat_calls_direction(&none, call, &copy) == GPUPART_STAT_TO_GPU &&
	       !(call->flags & STAT_WAITS), "cuMemcpyHtoDAsync: stream, bytes, to the GPU");
	call = find(398, "cuMemcpyDtoH_v2_ptds");
	tap_ok(!stat_calls_stream(call, &copy) && stat_calls_bytes(call, &copy) == 4096 &&
	       stat_calls_direction(&none, call, &copy) == GPUPART_STAT_FROM_GPU &&
	       call->flags & STAT_WAITS,
	       "cuMemcpyDtoH: default stream, from the GPU, the CPU waits");
	call = find(319, "cuMemcpyPeerAsync");
	tap_ok(stat_calls_stream(call, &peer) == STREAM && stat_calls_bytes(call, &peer) == 99 &&
	       stat_calls_direction(&none, call, &peer) == GPUPART_STAT_OTHER, "cuMemcpyPeerAsync");
	call = find(289, "cuMemcpy2DAsync_v2");
	tap_ok(stat_calls_stream(call, &by_address) == STREAM &&
	       stat_calls_bytes(call, &by_address) == 200 &&
	       stat_calls_direction(&none, call, &by_address) == GPUPART_STAT_TO_GPU,
	       "cuMemcpy2DAsync: width times height, to the GPU");
	by_address.what = &box;
	call = find(291, "cuMemcpy3DAsync_v2");
	tap_ok(stat_calls_bytes(call, &by_address) == 24 &&
	       stat_calls_direction(&none, call, &by_address) == GPUPART_STAT_FROM_GPU,
	       "cuMemcpy3DAsync: the box, from the GPU");
	call = find(796, "cuMemcpyBatchAsync_v2");
	tap_ok(stat_calls_bytes(call, &batch) == 321 && stat_calls_stream(call, &batch) == STREAM,
	       "cuMemcpyBatchAsync: all of them");
	call = find(306, "cuMemcpyAsync");
	tap_ok(stat_calls_direction(&none, call, &copy) == GPUPART_STAT_OTHER,
	       "cuMemcpyAsync: a driver that cannot say what addresses are leaves it open");
}

static void test_fills(void)
{
	struct {
		uint64_t to, value;
		size_t count;
		void *stream;
	} fill = { .count = 10, .stream = STREAM };
	struct {
		uint64_t to, pitch, value;
		size_t width, height;
		void *stream;
	} plane = { .width = 10, .height = 3, .stream = STREAM };

	tap_ok(stat_calls_bytes(find(220, "cuMemsetD32Async"), &fill) == 40 &&
	       stat_calls_stream(find(220, "cuMemsetD32Async"), &fill) == STREAM,
	       "cuMemsetD32Async: four bytes each");
	tap_ok(stat_calls_bytes(find(224, "cuMemsetD2D16Async"), &plane) == 60 &&
	       stat_calls_stream(find(224, "cuMemsetD2D16Async"), &plane) == STREAM,
	       "cuMemsetD2D16Async: two bytes each");
}

int main(void)
{
	unsigned int nr = 0;
	int cbid, first = stat_calls[0].fn.cbid;

	while ((cbid = stat_calls[nr].fn.cbid))
		for (unsigned int other = nr++ ; other-- > 0;)
			if (stat_calls[other].fn.cbid == cbid)
				tap_ok(0, "number %d is there twice", cbid);
	tap_ok(nr > 100, "there are some: %u", nr);
	tap_ok(first == 307, "cuLaunchKernel, which every driver tells of, is the first");
	test_launches();
	test_copies();
	test_fills();
	gpupart_stat_close(NULL);
	tap_ok(gpupart_stat_start(NULL, NULL) == -EINVAL, "nothing is measured for no place");
	return tap_done();
}
