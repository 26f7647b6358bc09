// SPDX-License-Identifier: MIT
/*
 * Loads kernels. Launches single kernels and series of kernels. Reads the records of the launches.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/bench/bench.h"
#include "cli/util/alloc.h"

/* The program contains PTX code. The driver compiles the PTX code for the present GPU. */
__asm__(".section .rodata\n.global bench_ptx\n.hidden bench_ptx\nbench_ptx:\n"
	".incbin \"cli/bench/kernels.ptx\"\n.byte 0\n.previous\n");
extern const char bench_ptx[];

#define NR_WARM_UP	2
#define SIMULATED_NS	20000	/* duration of a block on the simulated GPU */
#define DEFAULT_L2	(32u << 20)

static const char *const code_name[BENCH_NR_CODES] = {
	[BENCH_FMA] = "bench_fma", [BENCH_READ] = "bench_read", [BENCH_CHASE] = "bench_chase",
	[BENCH_HOLD] = "bench_hold", [BENCH_VIRTUAL] = "bench_virtual",
	[BENCH_EMPTY] = "bench_empty",
};

int bench_fail(struct bench *b, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(b->why, sizeof(b->why), fmt, ap);
	va_end(ap);
	return err;
}

int bench_library(struct bench *b, int err)
{
	return err ? bench_fail(b, err, "%s", gpupart_error(cmd_gp)) : 0;
}

unsigned int bench_count(const struct bench *b, unsigned int full, unsigned int quick)
{
	return b->simulated ? (quick < 3 ? quick : 3) : b->quick ? quick : full;
}

double bench_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

/*
 * After this function returns, the caller may change the source. Waits for the end of the copy,
 * because launches on other streams do not wait for the copy.
 */
int bench_upload(struct bench *b, cuda_ptr to, const void *from, size_t bytes)
{
	int err = CU(b, cuMemcpyHtoD_v2, to, from, bytes);

	return err ? err : CU(b, cuStreamSynchronize, NULL);
}

/* Make the GPU work for half a second. This raises the clocks. */
static int warm_up(struct bench *b)
{
	struct kernel kernel = { .code = BENCH_FMA, .blocks = 1024, .threads = 512, .n = 4000 };
	double start = bench_now_us();
	struct slots slots;
	int err;

	if (b->simulated)
		return 0;
	err = slots_open(b, &slots, 1);
	while (!err && bench_now_us() - start < 500e3)
		err = kernel_launch(b, NULL, &kernel, &slots, 0) ?: CU(b, cuCtxSynchronize);
	return err;
}

int bench_start(struct bench *b)
{
	int err, l2 = 0;
	void *module;

	err = driver_open(&b->cu, b->why, sizeof(b->why)) ?:
	      driver_start(&b->cu, b->pci, b->why, sizeof(b->why)) ?:
	      CU(b, cuModuleLoadData, &module, bench_ptx);
	for (int code = 0; !err && code < BENCH_NR_CODES; code++)
		err = CU(b, cuModuleGetFunction, &b->function[code], module, code_name[code]);
	if (err)
		return err;
	if (b->cu.cuDeviceGetAttribute(&l2, DRIVER_ATTR_L2_BYTES, b->cu.device) || l2 <= 0)
		l2 = DEFAULT_L2;
	b->l2_bytes = l2;
	return 0;
}

int bench_attach(struct bench *b)
{
	int err = bench_library(b, gpupart_attach(cmd_gp, b->selector, NULL, &b->gpu));

	if (err)
		return err;
	b->topo = gpupart_gpu_topology(b->gpu);
	b->simulated = gpupart_topology_info(b->topo)->simulated;
	snprintf(b->pci, sizeof(b->pci), "%s", gpupart_topology_info(b->topo)->pci);
	sets_choose(b->topo, &b->sets);
	err = bench_start(b);
	return err ? err : warm_up(b);
}

/* ---------------------------------------------------------------------- slots */

int slots_clear(struct slots *slots)
{
	memset(slots->host, 0, slots->nr * sizeof(*slots->host));
	for (unsigned int i = 0; i < slots->nr; i++)
		slots->host[i].start = UINT64_MAX;
	return bench_upload(slots->b, slots->device, slots->host,
			    slots->nr * sizeof(*slots->host));
}

int slots_open(struct bench *b, struct slots *slots, unsigned int nr)
{
	*slots = (struct slots){ .b = b, .nr = nr };
	slots->host = calloc(nr, sizeof(*slots->host));
	if (!slots->host)
		return bench_fail(b, -ENOMEM, "no memory for %u records", nr);
	return bench_alloc(b, nr * sizeof(*slots->host), &slots->device) ?: slots_clear(slots);
}

int slots_fetch(struct slots *slots)
{
	return CU(slots->b, cuMemcpyDtoH_v2, slots->host, slots->device,
		  slots->nr * sizeof(*slots->host));
}

double slot_mhz(const struct slot *slot)
{
	return slot->ns ? slot->cycles * 1000.0 / slot->ns : 0;
}

struct gpupart_tpcset slot_tpcs(const struct bench *b, const struct slot *slot)
{
	struct gpupart_tpcset set = { { 0 } };

	for (unsigned int sm = 0; sm < SLOT_SM_WORDS * 32; sm++)
		if (slot->sms[sm / 32] >> sm % 32 & 1)
			gpupart_tpcset_add(&set, gpupart_topology_sm_tpc(b->topo, sm));
	return set;
}

unsigned int slot_nr_sms(const struct slot *slot)
{
	unsigned int nr = 0;

	for (int i = 0; i < SLOT_SM_WORDS; i++)
		nr += __builtin_popcount(slot->sms[i]);
	return nr;
}

/* ------------------------------------------------------------------- launches */

int kernel_launch(struct bench *b, void *stream, const struct kernel *kernel,
		  const struct slots *slots, unsigned int slot)
{
	cuda_ptr at = slots->device + slot * sizeof(struct slot), buffer = kernel->buffer;
	uint32_t n = kernel->n, mask = kernel->mask, first = kernel->first;
	void *params[] = { &at, &n, &buffer, &mask, &first };

	return CU(b, cuLaunchKernel, b->function[kernel->code], kernel->blocks, 1, 1,
		  kernel->threads, 1, 1, 0, stream, params, NULL);
}

int bench_stream_set(struct bench *b, void *stream, const struct gpupart_tpcset *set)
{
	return bench_library(b, gpupart_stream_set(cmd_gp, b->gpu, stream, set));
}

int bench_stream(struct bench *b, const struct gpupart_tpcset *set, void **stream)
{
	int err = CU(b, cuStreamCreateWithPriority, stream, DRIVER_STREAM_NON_BLOCKING, 0);

	if (!err && set)
		err = bench_stream_set(b, *stream, set);
	return err;
}

int bench_alloc(struct bench *b, size_t bytes, cuda_ptr *memory)
{
	*memory = 0;
	return CU(b, cuMemAlloc_v2, memory, bytes);
}

/*
 * Records an event before the first launch and after each launch. Reads the @nr + 1 events at the
 * end.
 */
static int run_series(struct bench *b, void *stream, struct kernel kernel,
		      const struct slots *slots, unsigned int nr, void **events, double *us)
{
	unsigned int nr_all = nr + NR_WARM_UP;
	int err = 0;
	float ms;

	for (unsigned int i = 0; !err && i < nr_all; i++) {
		if (i >= NR_WARM_UP)
			err = CU(b, cuEventRecord, events[i - NR_WARM_UP], stream);
		/*
		 * All warm-up launches write the same record. This record follows all other
		 * records.
		 */
		if (!err)
			err = kernel_launch(b, stream, &kernel, slots,
					    i < NR_WARM_UP ? nr : i - NR_WARM_UP);
		kernel.first += kernel.step;
	}
	if (!err)
		err = CU(b, cuEventRecord, events[nr], stream) ?:
		      CU(b, cuEventSynchronize, events[nr]);
	for (unsigned int i = 0; !err && i < nr; i++) {
		err = CU(b, cuEventElapsedTime, &ms, events[i], events[i + 1]);
		us[i] = ms * 1e3;
	}
	return err;
}

int bench_series(struct bench *b, void *stream, const struct kernel *kernel,
		 struct slots *slots, unsigned int nr, double *us)
{
	static void *events[SERIES_MOST + 1];
	static unsigned int made;
	int err;

	if (nr >= slots->nr || nr > SERIES_MOST)
		return bench_fail(b, -EINVAL, "%u launches need more than %u records", nr,
				  slots->nr);
	err = slots_clear(slots);
	while (!err && made <= nr) {
		err = CU(b, cuEventCreate, &events[made], DRIVER_EVENT_TIMED);
		made += !err;
	}
	return err ?: run_series(b, stream, *kernel, slots, nr, events, us) ?: slots_fetch(slots);
}

int bench_calibrate(struct bench *b, void *stream, struct kernel *kernel, double us)
{
	enum { TRIES = 3, NR = 5 };
	struct slots slots;
	double took[NR];
	int err;

	if (b->simulated) {
		kernel->n = SIMULATED_NS;
		return 0;
	}
	err = slots_open(b, &slots, NR + 1);
	kernel->n = 16;
	for (int i = 0; !err && i < TRIES; i++) {
		double is, n;

		err = bench_series(b, stream, kernel, &slots, NR, took);
		is = stats_median(took, NR);
		n = is > 0 ? kernel->n * us / is : kernel->n;
		/*
		 * At first, the time is mostly launch overhead. So limit the size of the first
		 * steps.
		 */
		if (n > kernel->n * 200.0)
			n = kernel->n * 200.0;
		kernel->n = n < 1 ? 1 : n > 1e9 ? 1000000000 : n;
	}
	return err;
}
