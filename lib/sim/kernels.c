// SPDX-License-Identifier: MIT
/*
 * What kernels do: those of libgpupart's probe, of gpupart trace and of bench, by name, and the
 * driver's own. A kernel that is not known runs and does nothing. Must not know where blocks go.
 */
#include <string.h>
#include "sim.h"

#define CHUNK		65536	/* bytes that a block of the driver's own kernels handles */
#define CHUNK_NS	2000	/* about an SM's share of an H200's memory bandwidth */
#define UNKNOWN_NS	1000

/* What a census block leaves behind: the layout of lib/probe.ptx and cli/trace.ptx. */
struct record {
	uint32_t smid, cluster;
	uint64_t start, end;
};

/* What a launch of bench leaves behind: the layout of cli/bench/kernels.ptx. */
struct slot {
	uint64_t start, end, cycles, ns;
	uint32_t sms[32];
};

static uint64_t last_nothing(const struct sim_kernel *kernel, const struct sim_block *block)
{
	(void)kernel;
	(void)block;
	return 0;
}

static uint64_t last_unknown(const struct sim_kernel *kernel, const struct sim_block *block)
{
	(void)kernel;
	(void)block;
	return UNKNOWN_NS;
}

static uint64_t last_value(const struct sim_kernel *kernel, const struct sim_block *block)
{
	(void)block;
	return kernel->args.value;
}

/* Counted work: blocks on the same SM share its issue slots, as they were at the start. */
static uint64_t last_work(const struct sim_kernel *kernel, const struct sim_block *block)
{
	return 4ull * kernel->args.value * block->sm->blocks;
}

static uint64_t last_chunk(const struct sim_kernel *kernel, const struct sim_block *block)
{
	(void)kernel;
	(void)block;
	return CHUNK_NS;
}

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

static void finish_cluster(const struct sim_kernel *kernel, const struct sim_block *block)
{
	record(kernel, block, block->cluster);
}

/* Its clock counts a cycle a nanosecond. */
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

/* This block's part of [address, address + bytes). */
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

#define SLOT(name) { name, 32, 2, 0, sizeof(struct slot), last_value, finish_slot }

static const struct sim_code known[] = {
	{ "gpupart_empty", 8, 0, 0, 0, last_nothing, NULL },
	{ "gpupart_census", 16, 2, sizeof(struct record), 0, last_value, finish_census },
	{ "gpupart_work", 16, 2, sizeof(struct record), 0, last_work, finish_census },
	{ "gpupart_trace_timed", 16, 2, sizeof(struct record), 0, last_value, finish_census },
	{ "gpupart_trace_counted", 16, 2, sizeof(struct record), 0, last_work, finish_census },
	{ "gpupart_cluster", 16, 2, sizeof(struct record), 0, last_value, finish_cluster },
	{ "bench_empty", 8, 0, 0, 0, last_nothing, NULL },
	SLOT("bench_fma"), SLOT("bench_virtual"), SLOT("bench_read"), SLOT("bench_chase"),
	SLOT("bench_hold"),
};

static const struct sim_code unknown = { "unknown", 32, 0, 0, 0, last_unknown, NULL };

const struct sim_code kernels_set8 = { "memset", 16, 0, 0, 0, last_chunk, finish_set8 };
const struct sim_code kernels_set32 = { "memset", 16, 0, 0, 0, last_chunk, finish_set32 };
const struct sim_code kernels_copy = { "memcpy", 16, 0, 0, 0, last_chunk, finish_copy };

const struct sim_code *kernels_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return &unknown;
}

unsigned int kernels_chunks(uint64_t bytes)
{
	return (bytes + CHUNK - 1) / CHUNK;
}
