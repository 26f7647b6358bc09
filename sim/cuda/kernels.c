// SPDX-License-Identifier: MIT
/*
 * Simulates the effects of known kernels, which it finds by name. The known kernels are those of
 * libgpupart's probe, of gpupart trace and bench, and of the driver. Other kernels run and do
 * nothing.
 */
#include <string.h>
#include "sim/cuda/sim.h"

#define CHUNK		65536	/* bytes for each block of the driver's own kernels */
#define UNKNOWN_NS	1000

/*
 * Constants in hundredths, for 16 multiply-adds in four chains. Source:
 * Documentation/results/h200-traces.md.
 */
#define WIDE_CLOCKS	1767
#define WIDE_SLOTS	1740	/* issue slots */

/*
 * The record of a census block, with the layout of lib/confine/probe.ptx and cli/trace/trace.ptx.
 */
struct record {
	uint32_t smid, cluster;
	uint64_t start, end;
};

/* The record of a launch of bench, with the layout of cli/bench/kernels.ptx. */
struct slot {
	uint64_t start, end, cycles, ns;
	uint32_t sms[32];
};

/* ---------------------------------------------------- demands of a block */

static void ask_nothing(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	(void)asked;
	(void)kernel;
}

static void ask_unknown(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	(void)kernel;
	asked->ns = UNKNOWN_NS;
}

static void ask_time(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	asked->ns = kernel->args.value;
}

/* Sets the demand of a loop that repeats 16 multiply-adds in four chains. */
static void ask_wide(struct pipe_kernel *asked, uint64_t quarters)
{
	asked->ns = quarters * WIDE_CLOCKS / 4 * 10 / sim_chip()->mhz;
	asked->work = quarters * WIDE_SLOTS / 4 / 100;
	asked->every = 1;
}

/* A round has four multiply-adds, and the compiler unrolls four rounds. */
static void ask_work(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	ask_wide(asked, kernel->args.value);
}

static void ask_fma(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	ask_wide(asked, 4ull * kernel->args.value);
}

/* Sets the work of several blocks that run one after the other. */
static void ask_virtual(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	uint64_t blocks = kernel->grid.nr_blocks;

	ask_wide(asked, 4ull * kernel->args.value * ((kernel->args.count + blocks - 1) / blocks));
}

/* In each round, each thread makes four reads of 16 bytes. The reads bypass the L1 cache. */
static void ask_read(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	asked->ns = kernel->args.value * 1000ull / sim_chip()->mhz;
	asked->bytes = 64ull * kernel->args.value * kernel->grid.threads;
}

static void ask_fill(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	(void)kernel;
	asked->bytes = CHUNK;
}

static void ask_copy(struct pipe_kernel *asked, const struct sim_kernel *kernel)
{
	(void)kernel;
	asked->bytes = 2 * CHUNK;	/* read and written */
}

/* --------------------------------------------------------- effects of a block */

static void record(const struct sim_kernel *kernel, const struct sim_block *block,
		   uint32_t cluster)
{
	struct record record = { block->smid, cluster, block->start, block->end };

	memcpy((char *)(uintptr_t)kernel->args.address + block->index * sizeof(record), &record,
	       sizeof(record));
}

static void finish_census(const struct sim_kernel *kernel, const struct sim_block *block)
{
	record(kernel, block, 0);
}

/*
 * The child kernels run on all SMs. The set of the parent has no effect on them. In the
 * simulation, each block has one child kernel.
 */
static void finish_parent(const struct sim_kernel *kernel, const struct sim_block *block)
{
	struct sim_block child = *block;

	child.smid = block->index;
	record(kernel, &child, 0);
}

static void finish_cluster(const struct sim_kernel *kernel, const struct sim_block *block)
{
	record(kernel, block, block->cluster);
}

/* For this kernel, one clock cycle is one nanosecond. */
static void finish_slot(const struct sim_kernel *kernel, const struct sim_block *block)
{
	struct slot *slot = (struct slot *)(uintptr_t)kernel->args.address;

	if (block->start < slot->start)
		slot->start = block->start;
	if (block->end > slot->end)
		slot->end = block->end;
	if (block->smid / 32 < sizeof(slot->sms) / sizeof(slot->sms[0]))
		slot->sms[block->smid / 32] |= 1u << block->smid % 32;
	if (!block->index)
		slot->cycles = slot->ns = block->end - block->start;
}

/* Returns the range inside [address, address + bytes) that this block writes. */
static uint64_t chunk(const struct sim_kernel *kernel, const struct sim_block *block,
		      uint64_t *offset)
{
	uint64_t left;

	*offset = block->index * CHUNK;
	if (*offset >= kernel->args.bytes)
		return 0;
	left = kernel->args.bytes - *offset;
	return left < CHUNK ? left : CHUNK;
}

static void finish_set8(const struct sim_kernel *kernel, const struct sim_block *block)
{
	uint64_t offset, bytes = chunk(kernel, block, &offset);

	memset((char *)(uintptr_t)kernel->args.address + offset, kernel->args.value, bytes);
}

static void finish_set32(const struct sim_kernel *kernel, const struct sim_block *block)
{
	uint64_t offset, bytes = chunk(kernel, block, &offset), i;
	uint32_t *word = (uint32_t *)((uintptr_t)kernel->args.address + offset);

	for (i = 0; i < bytes / 4; i++)
		word[i] = kernel->args.value;
}

static void finish_copy(const struct sim_kernel *kernel, const struct sim_block *block)
{
	uint64_t offset, bytes = chunk(kernel, block, &offset);

	memmove((char *)(uintptr_t)kernel->args.address + offset,
		(char *)(uintptr_t)kernel->args.from + offset, bytes);
}

#define RECORD(name, ask, finish) { name, 16, 2, sizeof(struct record), 0, ask, finish, false }
#define SLOT(name, ask) { name, 32, 5, 0, sizeof(struct slot), ask, finish_slot, false }

static const struct sim_code known[] = {
	{ "gpupart_empty", 8, 0, 0, 0, ask_nothing, NULL, false },
	RECORD("gpupart_census", ask_time, finish_census),
	RECORD("gpupart_work", ask_work, finish_census),
	RECORD("gpupart_trace_timed", ask_time, finish_census),
	RECORD("gpupart_trace_counted", ask_work, finish_census),
	RECORD("gpupart_cluster", ask_time, finish_cluster),
	RECORD("gpupart_parent", ask_time, finish_parent),
	{ "gpupart_barrier", 32, 0, 0, 0, ask_unknown, NULL, true },
	{ "bench_empty", 8, 0, 0, 0, ask_nothing, NULL, false },
	SLOT("bench_fma", ask_fma), SLOT("bench_virtual", ask_virtual),
	SLOT("bench_read", ask_read), SLOT("bench_chase", ask_time),
	SLOT("bench_hold", ask_time),
};

static const struct sim_code unknown = { "unknown", 32, 0, 0, 0, ask_unknown, NULL, false };

const struct sim_code kernels_set8 = { "memset", 16, 0, 0, 0, ask_fill, finish_set8, false };
const struct sim_code kernels_set32 = { "memset", 16, 0, 0, 0, ask_fill, finish_set32, false };
const struct sim_code kernels_copy = { "memcpy", 16, 0, 0, 0, ask_copy, finish_copy, false };

/* A C++ function with the same name also matches. */
const struct sim_code *kernels_find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name) ||
		    (!strncmp(name, "_Z", 2) && strstr(name, known[i].name)))
			return &known[i];
	return &unknown;
}

unsigned int kernels_chunks(uint64_t bytes)
{
	return (bytes + CHUNK - 1) / CHUNK;
}
