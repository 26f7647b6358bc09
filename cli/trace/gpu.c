// SPDX-License-Identifier: MIT
/* The launches of a trace and what their blocks recorded. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/trace/trace.h"

/* The PTX is part of the command: the driver compiles it for the GPU at hand. */
__asm__(".section .rodata\n.global trace_ptx\n.hidden trace_ptx\ntrace_ptx:\n"
	".incbin \"cli/trace/trace.ptx\"\n.byte 0\n.previous\n");
extern const char trace_ptx[];

/* Of CUDA's documented ABI. */
#define ATTR_SHARED_OPTIN	97	/* CUdevice_attribute */
#define FUNC_ATTR_DYNAMIC_SHARED 8	/* CUfunction_attribute */
#define STREAM_NON_BLOCKING	1
#define SHARED_ALWAYS		49152	/* bytes a block that every GPU has */

#define FUNCTIONS(F) \
	F(device_by_pci, "cuDeviceGetByPCIBusId", (int *, const char *)) \
	F(device_get, "cuDeviceGet", (int *, int)) \
	F(device_attr, "cuDeviceGetAttribute", (int *, int, int)) \
	F(primary_retain, "cuDevicePrimaryCtxRetain", (void **, int)) \
	F(primary_release, "cuDevicePrimaryCtxRelease_v2", (int)) \
	F(ctx_push, "cuCtxPushCurrent_v2", (void *)) \
	F(ctx_pop, "cuCtxPopCurrent_v2", (void **)) \
	F(module_load, "cuModuleLoadData", (void **, const void *)) \
	F(module_unload, "cuModuleUnload", (void *)) \
	F(module_function, "cuModuleGetFunction", (void **, void *, const char *)) \
	F(func_set_attr, "cuFuncSetAttribute", (void *, int, int)) \
	F(stream_create, "cuStreamCreate", (void **, unsigned int)) \
	F(stream_destroy, "cuStreamDestroy_v2", (void *)) \
	F(stream_sync, "cuStreamSynchronize", (void *)) \
	F(mem_alloc, "cuMemAlloc_v2", (uint64_t *, size_t)) \
	F(mem_free, "cuMemFree_v2", (uint64_t)) \
	F(mem_set, "cuMemsetD8_v2", (uint64_t, unsigned char, size_t)) \
	F(copy_to_host, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t)) \
	F(launch, "cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int, \
				     unsigned int, unsigned int, unsigned int, unsigned int, \
				     void *, void **, void **)) \
	F(error_name, "cuGetErrorName", (int, const char **))

struct driver {
#define MEMBER(name, symbol, args) int (*name) args;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

/* What a block leaves behind: the layout of trace.ptx. */
struct record {
	uint32_t smid, zero;
	uint64_t start, end;
};

struct run {
	struct trace *trace;
	struct driver driver;
	char *why;
	size_t len;
	int device;
	void *ctx, *module, *function;
	unsigned int shared;
	unsigned int nr_streams;
	void *streams[TRACE_MAX_SETS];
	unsigned int nr_records;
	uint64_t memory;
};

static int failed(struct run *run, const char *what, int result)
{
	const char *name = NULL;

	if (run->driver.error_name(result, &name) || !name)
		name = "CUDA error";
	snprintf(run->why, run->len, "%s: %s (%d)", what, name, result);
	return -EIO;
}

static int find_functions(struct run *run)
{
	/* gpupart_attach() has opened it: this is the same one. */
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	const char *missing = NULL;

	if (!lib) {
		snprintf(run->why, run->len, "%s", dlerror());
		return -ENOENT;
	}
#define FIND(name, symbol, args) \
	run->driver.name = dlsym(lib, symbol); \
	missing = run->driver.name ? missing : symbol;
	FUNCTIONS(FIND)
#undef FIND
	if (!missing)
		return 0;
	snprintf(run->why, run->len, "this driver is too old: its libcuda.so.1 has no %s", missing);
	return -EOPNOTSUPP;
}

static int open_context(struct run *run)
{
	const struct driver *cu = &run->driver;
	const char *pci = gpupart_topology_info(run->trace->picture.topo)->pci;
	int result = *pci ? cu->device_by_pci(&run->device, pci) : cu->device_get(&run->device, 0);

	if (result)
		return failed(run, "cuDeviceGetByPCIBusId", result);
	result = cu->primary_retain(&run->ctx, run->device);
	if (result)
		return failed(run, "cuDevicePrimaryCtxRetain", result);
	result = cu->ctx_push(run->ctx);
	if (!result)
		return 0;
	cu->primary_release(run->device);
	return failed(run, "cuCtxPushCurrent", result);
}

static void close_context(struct run *run)
{
	run->driver.ctx_pop(&(void *){ NULL });
	run->driver.primary_release(run->device);
}

static int load(struct run *run)
{
	const struct driver *cu = &run->driver;
	int result, shared = 0;

	result = cu->module_load(&run->module, trace_ptx);
	if (result)
		return failed(run, "the driver did not take our kernels: cuModuleLoadData", result);
	result = cu->module_function(&run->function, run->module, run->trace->counted ?
				     "gpupart_trace_counted" : "gpupart_trace_timed");
	/* All the shared memory that a block may have leaves an SM room for one. */
	if (cu->device_attr(&shared, ATTR_SHARED_OPTIN, run->device) || shared < SHARED_ALWAYS)
		shared = SHARED_ALWAYS;
	run->shared = shared;
	if (!result && shared > SHARED_ALWAYS)
		result = cu->func_set_attr(run->function, FUNC_ATTR_DYNAMIC_SHARED, shared);
	if (!result)
		return 0;
	cu->module_unload(run->module);
	return failed(run, "our kernel", result);
}

static void close_streams(struct run *run)
{
	while (run->nr_streams)
		run->driver.stream_destroy(run->streams[--run->nr_streams]);
}

static int open_streams(struct run *run)
{
	struct trace *trace = run->trace;

	while (run->nr_streams < trace->picture.nr_tenants) {
		unsigned int i = run->nr_streams;
		int err, result = run->driver.stream_create(&run->streams[i], STREAM_NON_BLOCKING);

		if (result) {
			close_streams(run);
			return failed(run, "cuStreamCreate", result);
		}
		run->nr_streams++;
		err = gpupart_stream_set(trace->gp, trace->gpu, run->streams[i],
					 &trace->picture.tenants[i].set);
		if (err) {
			snprintf(run->why, run->len, "%s", gpupart_error(trace->gp));
			close_streams(run);
			return err;
		}
	}
	return 0;
}

static int open_memory(struct run *run)
{
	const struct driver *cu = &run->driver;
	int result;

	for (unsigned int i = 0; i < run->trace->picture.nr_tenants; i++)
		run->nr_records += run->trace->blocks[i] * run->trace->nr_launches;
	result = cu->mem_alloc(&run->memory, run->nr_records * sizeof(struct record));
	if (result)
		return failed(run, "no device memory for the records: cuMemAlloc", result);
	/* What no block writes is seen. */
	result = cu->mem_set(run->memory, 0xff, run->nr_records * sizeof(struct record));
	if (!result)
		return 0;
	cu->mem_free(run->memory);
	return failed(run, "cuMemsetD8", result);
}

static int launch(struct run *run, unsigned int set, unsigned int blocks, uint64_t records,
		  uint32_t work)
{
	void *arguments[] = { &records, &work };
	int result = run->driver.launch(run->function, blocks, 1, 1, run->trace->threads, 1, 1,
					run->shared, run->streams[set], arguments, NULL);

	return result ? failed(run, "cuLaunchKernel", result) : 0;
}

static int wait_for_all(struct run *run)
{
	for (unsigned int i = 0; i < run->nr_streams; i++) {
		int result = run->driver.stream_sync(run->streams[i]);

		if (result)
			return failed(run, "cuStreamSynchronize", result);
	}
	return 0;
}

/* The records of a launch begin where those of the set's launch before end. */
static uint64_t records_of(const struct run *run, unsigned int set, unsigned int number)
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

	/* The first of a kernel and of a stream takes longer: it is not shown. */
	for (unsigned int i = 0; !err && i < run->nr_streams; i++)
		err = launch(run, i, 1, records_of(run, i, 0), 1);
	if (!err)
		err = wait_for_all(run);
	for (unsigned int n = 0; !err && n < trace->nr_launches; n++)
		for (unsigned int i = 0; !err && i < run->nr_streams; i++)
			err = launch(run, i, trace->blocks[i], records_of(run, i, n), trace->work);
	/* Also after a failure: what was launched writes into our memory. */
	return wait_for_all(run) ?: err;
}

static int take_record(struct run *run, const struct record *record, struct trace_block *block)
{
	const struct gpupart_topology *topo = run->trace->picture.topo;
	int tpc = gpupart_topology_sm_tpc(topo, record->smid);

	if (record->smid == ~0u) {
		snprintf(run->why, run->len, "block %u of launch %u into set %u recorded nothing",
			 block->block, block->launch, block->set);
		return -EIO;
	}
	if (tpc < 0) {
		snprintf(run->why, run->len, "a block ran on SM %u: the topology has SMs 0-%u",
			 record->smid, gpupart_topology_nr_sms(topo) - 1);
		return -EIO;
	}
	if (record->end < record->start) {
		snprintf(run->why, run->len,
			 "a block on SM %u ended before it started: %%globaltimer goes back",
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
	struct record *records = calloc(run->nr_records, sizeof(*records));
	struct trace *trace = run->trace;
	int result, err = -ENOMEM;

	trace->records = calloc(run->nr_records, sizeof(*trace->records));
	if (!records || !trace->records) {
		snprintf(run->why, run->len, "no memory for %u records", run->nr_records);
		goto free_records;
	}
	result = run->driver.copy_to_host(records, run->memory, run->nr_records * sizeof(*records));
	err = result ? failed(run, "cuMemcpyDtoH", result) : take_records(run, records);
	if (!err)
		trace->nr_records = run->nr_records;
free_records:
	free(records);
	if (err) {
		free(trace->records);
		trace->records = NULL;
	}
	return err;
}

/* Times from the first start on, and what they add up to. */
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

	err = find_functions(&run) ?: open_context(&run);
	if (err)
		return err;
	err = load(&run);
	if (err)
		goto close_context;
	err = open_streams(&run);
	if (err)
		goto unload;
	err = open_memory(&run);
	if (err)
		goto close_streams;
	err = launch_all(&run) ?: read_back(&run);
	run.driver.mem_free(run.memory);
close_streams:
	close_streams(&run);
unload:
	run.driver.module_unload(run.module);
close_context:
	close_context(&run);
	if (!err)
		evaluate(trace);
	return err;
}
