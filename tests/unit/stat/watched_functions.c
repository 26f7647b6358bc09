// SPDX-License-Identifier: MIT
/* Tests that the arguments of calls have the layouts in CUDA's headers. */
#include <errno.h>
#include <string.h>
#include <gpupart_manage.h>
#include "lib/stat/shared_memory.h"
#include "tests/tap.h"

static const struct stat_call *find(int cbid, const char *name)
{
	const struct stat_call *call = stat_calls;

	while (call->fn.cbid && call->fn.cbid != cbid)
		call++;
	tap_ok(call->fn.cbid && !strcmp(driver_function_name(cbid), name), "%s has number %d", name,
	       cbid);
	return call;
}

static bool is(const struct stat_call *call, const void *arguments, unsigned int direction,
	       bool waits, uint64_t bytes)
{
	return call->fn.kind == direction && call->waits == waits &&
	       stat_call_bytes(call, arguments) == bytes;
}

static void test_copies(void)
{
	struct {
		uint64_t to, from;
		size_t bytes;
		void *stream;
	} copy = { .bytes = 4096 };
	struct {
		uint64_t to, to_ctx, from, from_ctx;
		size_t bytes;
		void *stream;
	} peer = { .bytes = 99 };
	struct {
		void *array;
		size_t offset;
		const void *host;
		size_t bytes;
	} array = { .offset = 7, .bytes = 55 };
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
	struct cuda_memcpy_node box = { .width = 2, .height = 3, .depth = 4 };
	struct {
		const void *what;
		void *stream;
	} by_address = { &plane, NULL };
	size_t sizes[] = { 1, 20, 300 };
	struct {
		void *to, *from;
		size_t *sizes, count;
		void *attrs, *indices;
		size_t nr_attrs;
		void *stream;
	} batch = { .sizes = sizes, .count = 3 };

	tap_ok(is(find(277, "cuMemcpyHtoDAsync_v2"), &copy, GPUPART_STAT_TO_GPU, false, 4096),
	       "bytes, to the GPU");
	tap_ok(is(find(398, "cuMemcpyDtoH_v2_ptds"), &copy, GPUPART_STAT_FROM_GPU, true, 4096),
	       "from the GPU, the CPU waits");
	tap_ok(is(find(280, "cuMemcpyDtoD_v2"), &copy, GPUPART_STAT_INSIDE, false, 4096),
	       "inside it");
	tap_ok(is(find(292, "cuMemcpyHtoA_v2"), &array, GPUPART_STAT_TO_GPU, true, 55),
	       "to an array");
	tap_ok(is(find(319, "cuMemcpyPeerAsync"), &peer, GPUPART_STAT_OTHER, false, 99),
	       "to another GPU");
	tap_ok(is(find(289, "cuMemcpy2DAsync_v2"), &by_address, GPUPART_STAT_OTHER, false, 200),
	       "width times height");
	by_address.what = &box;
	tap_ok(is(find(291, "cuMemcpy3DAsync_v2"), &by_address, GPUPART_STAT_OTHER, false, 24),
	       "the box");
	by_address.what = NULL;
	tap_ok(is(find(291, "cuMemcpy3DAsync_v2"), &by_address, GPUPART_STAT_OTHER, false, 0) &&
	       is(find(289, "cuMemcpy2DAsync_v2"), &by_address, GPUPART_STAT_OTHER, false, 0),
	       "no box, no plane: nothing");
	tap_ok(is(find(796, "cuMemcpyBatchAsync_v2"), &batch, GPUPART_STAT_OTHER, false, 321),
	       "all of them");
	tap_ok(is(find(440, "cuStreamSynchronize_ptsz"), &batch, STAT_NO_COPY, true, 0), "a wait");
}

int main(void)
{
	struct gpupart_stat_process process;
	struct gpupart_stat *stat;
	const char *id;
	unsigned int nr = 0;
	int cbid;

	while ((cbid = stat_calls[nr].fn.cbid))
		for (unsigned int other = nr++ ; other-- > 0;)
			if (stat_calls[other].fn.cbid == cbid)
				tap_ok(0, "number %d is there twice", cbid);
	tap_ok(nr > 50, "there are some: %u", nr);
	test_copies();
	gpupart_stat_close(NULL);
	tap_ok(gpupart_stat_start(NULL, "/proc/self/mem") == -EINVAL,
	       "nothing is measured for what is no such place");
	tap_ok(!gpupart_stat_open(NULL, &stat, &id) &&
	       gpupart_stat_get(stat, 0, &process) == -ENOENT && !gpupart_stat_lost(stat),
	       "a new place has no process");
	gpupart_stat_close(stat);
	return tap_done();
}
