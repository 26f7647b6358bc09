// SPDX-License-Identifier: MIT
/* The kernels that the parts of bench measure. The size of a kernel depends on the set. */
#include <errno.h>
#include <stdlib.h>
#include "cli/bench/bench.h"

#define PIECE		16u		/* bytes of one read */
#define LINE		128u
#define DRAM_BYTES	(1u << 30)
#define SIMULATED_BYTES	(16u << 20)	/* the simulated GPU's memory is host memory */
#define BLOCKS_PER_SM	2		/* an SM can hold 2 blocks of 1024 threads */
#define WAVES_HALVES	11	/* 5.5 waves; the next launch then begins in time */

const char *const work_name[WORK_NR] = {
	[WORK_FMA] = "compute", [WORK_L2] = "L2 reads", [WORK_CHASE] = "pointer chase",
	[WORK_DRAM] = "DRAM stream",
};

/* Writes a cycle that visits each cache line once, in random order. Uses Sattolo's algorithm. */
static int fill_chain(struct bench *b, cuda_ptr chain, unsigned int nr)
{
	uint32_t *lines = calloc(nr, LINE), *order = calloc(nr, sizeof(*order)), swap;
	unsigned int seed = 1, step = LINE / sizeof(*lines);

	if (!lines || !order)
		return bench_fail(b, -ENOMEM, "no memory for a chain of %u lines", nr);
	for (unsigned int i = 0; i < nr; i++)
		order[i] = i;
	for (unsigned int i = nr - 1; i; i--) {
		unsigned int j = rand_r(&seed) % i;

		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	for (unsigned int i = 0; i < nr; i++)
		lines[i * step] = order[i];
	return bench_upload(b, chain, lines, (size_t)nr * LINE);
}

int workload_open(struct bench *b, struct workload *w)
{
	uint32_t l2 = 1u << 20, dram = b->simulated ? SIMULATED_BYTES : DRAM_BYTES;
	int err = 0;

	*w = (struct workload){ .b = b };
	/* The buffers of both programs together must fit into one half of the L2 cache. */
	while (l2 * 2 <= b->l2_bytes / 8)
		l2 *= 2;
	w->l2_mask = l2 / PIECE - 1;
	w->dram_mask = dram / PIECE - 1;
	w->chain_mask = l2 / LINE - 1;
	for (int i = 0; !err && i < 2; i++)
		err = bench_alloc(b, l2, &w->l2[i]) ?: bench_alloc(b, dram, &w->dram[i]);
	return err ?: bench_alloc(b, l2, &w->chain) ?: fill_chain(b, w->chain, w->chain_mask + 1);
}

static int size_kernel(struct workload *w, enum work work, bool neighbour, void *stream,
		       double us, struct kernel *kernel)
{
	int err;

	switch (work) {
	case WORK_FMA:
		kernel->code = BENCH_FMA;
		break;
	case WORK_L2:
		kernel->code = BENCH_READ;
		kernel->buffer = w->l2[neighbour];
		kernel->mask = w->l2_mask;
		break;
	case WORK_DRAM:
		kernel->code = BENCH_READ;
		kernel->buffer = w->dram[neighbour];
		kernel->mask = w->dram_mask;
		/*
		 * Each launch begins at the line at which the previous launch stopped. So each line
		 * has left the L2 cache before it is read again.
		 */
		kernel->step = 1u << 24;
		break;
	case WORK_CHASE:
	case WORK_NR:
		kernel->code = BENCH_CHASE;
		kernel->buffer = w->chain;
		kernel->mask = w->chain_mask;
		break;
	}
	err = bench_calibrate(w->b, stream, kernel, us);
	if (work == WORK_DRAM)
		kernel->step = kernel->blocks * kernel->threads * 4 * kernel->n;
	return err;
}

int workload_victim(struct workload *w, enum work work, unsigned int nr_sms, void *stream,
		    double us, struct kernel *kernel)
{
	*kernel = (struct kernel){ .blocks = nr_sms * BLOCKS_PER_SM, .threads = 1024 };
	if (work == WORK_FMA)
		kernel->threads = 512;
	if (work == WORK_CHASE) {
		kernel->blocks = nr_sms;
		kernel->threads = 32;
	}
	return size_kernel(w, work, false, stream, us, kernel);
}

int workload_neighbour(struct workload *w, enum work work, unsigned int nr_sms, void *stream,
		       double us, struct kernel *kernel)
{
	*kernel = (struct kernel){ .blocks = nr_sms * BLOCKS_PER_SM * WAVES_HALVES / 2,
				   .threads = 1024 };
	return size_kernel(w, work, true, stream, us, kernel);
}
