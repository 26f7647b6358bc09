// SPDX-License-Identifier: MIT
/* Makes the launches of a trace, and reads the records of the blocks. */
#include <errno.h>
#include <stdlib.h>
#include "cli/target/driver.h"
#include "cli/trace/trace.h"
#include "cli/util/alloc.h"

/* The command contains the PTX, and the driver compiles the PTX for the GPU in use. */
__asm__(".section .rodata\n.global trace_ptx\n.hidden trace_ptx\ntrace_ptx:\n"
	".incbin \"cli/trace/trace.ptx\"\n.byte 0\n.previous\n");
extern const char trace_ptx[];

/* bytes of shared memory; a block can have this size on every GPU */
#define SHARED_ALWAYS		49152

/* The record of a block. The file trace.ptx uses the same layout. */
struct record {
	uint32_t smid, zero;
	uint64_t start, end;
};

struct run {
	struct trace *trace;
	struct driver cu;
	char *why;
	size_t len;
	void *function;
	unsigned int shared, nr_records;
	void *streams[TRACE_MAX_SETS];
	cuda_ptr memory;
};

#define CU(run, call, ...) \
	driver_check(&(run)->cu, #call, (run)->cu.call(__VA_ARGS__), (run)->why, (run)->len)

static int load(struct run *run)
{
	const char *pci = gpupart_topology_info(run->trace->picture.topo)->pci;
	int err, shared = 0;
	void *module;

	err = driver_open(&run->cu, run->why, run->len) ?:
	      driver_start(&run->cu, pci, run->why, run->len) ?:
	      CU(run, cuModuleLoadData, &module, trace_ptx) ?:
	      CU(run, cuModuleGetFunction, &run->function, module, run->trace->counted ?
		 "gpupart_trace_counted" : "gpupart_trace_timed");
	if (err)
		return err;
	/*
	 * Each block gets the largest shared memory that a block may have. Then an SM runs one
	 * block at a time.
	 */
	if (run->cu.cuDeviceGetAttribute(&shared, DRIVER_ATTR_SHARED_OPTIN, run->cu.device) ||
	    shared < SHARED_ALWAYS)
		shared = SHARED_ALWAYS;
	run->shared = shared;
	return shared == SHARED_ALWAYS ? 0 :
	       CU(run, cuFuncSetAttribute, run->function, DRIVER_FUNC_DYNAMIC_SHARED, shared);
}

static int open_streams(struct run *run)
{
	struct trace *trace = run->trace;
	int err;

	for (unsigned int i = 0; i < trace->picture.nr_tenants; i++) {
		err = CU(run, cuStreamCreateWithPriority, &run->streams[i],
			 DRIVER_STREAM_NON_BLOCKING, 0);
		if (err)
			return err;
		err = gpupart_stream_set(cmd_gp, trace->gpu, run->streams[i],
					 &trace->picture.tenants[i].set);
		if (err) {
			snprintf(run->why, run->len, "%s", gpupart_error(cmd_gp));
			return err;
		}
	}
	return 0;
}

static int open_memory(struct run *run)
{
	size_t bytes;

	for (unsigned int i = 0; i < run->trace->picture.nr_tenants; i++)
		run->nr_records += run->trace->blocks[i] * run->trace->nr_launches;
	bytes = run->nr_records * sizeof(struct record);
	/* The value 0xff marks records that no block wrote. */
	return CU(run, cuMemAlloc_v2, &run->memory, bytes) ?:
	       CU(run, cuMemsetD8_v2, run->memory, 0xff, bytes);
}

static int launch(struct run *run, unsigned int set, unsigned int blocks, cuda_ptr records,
		  uint32_t work)
{
	void *arguments[] = { &records, &work };

	return CU(run, cuLaunchKernel, run->function, blocks, 1, 1, run->trace->threads, 1, 1,
		  run->shared, run->streams[set], arguments, NULL);
}

/* The records of a launch follow the records of the previous launch in the same set. */
static cuda_ptr records_of(const struct run *run, unsigned int set, unsigned int number)
{
	uint64_t at = (uint64_t)run->trace->blocks[set] * number;

	for (unsigned int i = 0; i < set; i++)
		at += (uint64_t)run->trace->blocks[i] * run->trace->nr_launches;
	return run->memory + at * sizeof(struct record);
}

static int launch_all(struct run *run)
{
	const struct trace *trace = run->trace;
	int err = 0;

	/*
	 * The first launch of a kernel takes longer, and the first launch on a stream takes longer,
	 * too. Make these launches before all others, and do not show them.
	 */
	for (unsigned int i = 0; !err && i < trace->picture.nr_tenants; i++)
		err = launch(run, i, 1, records_of(run, i, 0), 1);
	err = err ?: CU(run, cuCtxSynchronize);
	for (unsigned int n = 0; !err && n < trace->nr_launches; n++)
		for (unsigned int i = 0; !err && i < trace->picture.nr_tenants; i++)
			err = launch(run, i, trace->blocks[i], records_of(run, i, n), trace->work);
	/*
	 * Wait even after a failure, because running launches write to the memory of this process.
	 */
	return CU(run, cuCtxSynchronize) ?: err;
}

static int take_record(struct run *run, const struct record *record, struct trace_block *block)
{
	const struct gpupart_topology *topo = run->trace->picture.topo;
	int tpc = gpupart_topology_sm_tpc(topo, record->smid);

	if (record->smid == ~0u) {
		snprintf(run->why, run->len, "block %u of launch %u into set %u made no record",
			 block->block, block->launch, block->set);
		return -EIO;
	}
	if (tpc < 0) {
		snprintf(run->why, run->len,
			 "a block ran on SM %u, but the topology has only SMs 0-%u", record->smid,
			 gpupart_topology_nr_sms(topo) - 1);
		return -EIO;
	}
	if (record->end < record->start) {
		snprintf(run->why, run->len,
			 "a block on SM %u ended before it started: %%globaltimer went backwards",
			 record->smid);
		return -EIO;
	}
	block->smid = record->smid;
	block->tpc = tpc;
	block->start_ns = record->start;
	block->end_ns = record->end;
	return 0;
}

static int take_records(struct run *run, const struct record *records)
{
	struct trace *trace = run->trace;
	unsigned int at = 0;
	int err = 0;

	for (unsigned int set = 0; set < trace->picture.nr_tenants; set++)
		for (unsigned int n = 0; n < trace->nr_launches; n++)
			for (unsigned int b = 0; !err && b < trace->blocks[set]; b++, at++) {
				trace->records[at] = (struct trace_block){
					.set = set, .launch = n, .block = b,
				};
				err = take_record(run, &records[at], &trace->records[at]);
			}
	return err;
}

static int read_back(struct run *run)
{
	struct record *records = alloc_zeroed(run->nr_records, sizeof(*records));
	struct trace *trace = run->trace;
	int err;

	trace->records = alloc_zeroed(run->nr_records, sizeof(*trace->records));
	err = CU(run, cuMemcpyDtoH_v2, records, run->memory, run->nr_records * sizeof(*records)) ?:
	      take_records(run, records);
	if (!err)
		trace->nr_records = run->nr_records;
	free(records);
	return err;
}

/* Makes the times relative to the first start, and computes totals. */
static void evaluate(struct trace *trace)
{
	uint64_t last = 0;

	trace->first_ns = UINT64_MAX;
	for (unsigned int i = 0; i < trace->nr_records; i++)
		if (trace->records[i].start_ns < trace->first_ns)
			trace->first_ns = trace->records[i].start_ns;
	for (unsigned int i = 0; i < trace->nr_records; i++) {
		struct trace_block *b = &trace->records[i];

		b->start_ns -= trace->first_ns;
		b->end_ns -= trace->first_ns;
		last = b->end_ns > last ? b->end_ns : last;
		trace->nr_outside +=
			!gpupart_tpcset_has(&trace->picture.tenants[b->set].set, b->tpc);
	}
	trace->span_ns = last ? last : 1;
}

int trace_run(struct trace *trace, char *why, size_t len)
{
	struct run run = { .trace = trace, .why = why, .len = len };
	int err;

	/* The process will end, so close nothing here. */
	err = load(&run) ?:
	      open_streams(&run) ?:
	      open_memory(&run) ?:
	      launch_all(&run) ?:
	      read_back(&run);
	if (!err)
		evaluate(trace);
	return err;
}
