/* SPDX-License-Identifier: MIT */
/*
 * A small CUDA program for the tests of the simulated driver. It loads the driver with dlopen().
 * It does not use libgpupart, and has separate code that reads captures. Every scenario runs in a
 * separate process, because the driver reads its environment one time.
 */
#ifndef GPUPART_TESTS_SIM_PROGRAM_H
#define GPUPART_TESTS_SIM_PROGRAM_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim/cuda/cu.h"
#include "tests/tap.h"

#define MAX_SMS		1024
#define MAX_BLOCKS	8192
#define BOARD_B		"tests/data/gh100-h200-b/capture.txt"
#define BOARD_E		"tests/data/gh100-h200-e/capture.txt"

#define FUNCTIONS(F) \
	F(cuInit) F(cuDriverGetVersion) F(cuGetErrorName) F(cuGetErrorString) \
	F(cuDeviceGet) F(cuDeviceGetCount) F(cuDeviceGetName) F(cuDeviceGetUuid) \
	F(cuDeviceGetUuid_v2) F(cuDeviceGetPCIBusId) F(cuDeviceGetByPCIBusId) \
	F(cuDeviceGetAttribute) F(cuDeviceTotalMem_v2) F(cuDevicePrimaryCtxRetain) \
	F(cuDevicePrimaryCtxRelease_v2) F(cuDevicePrimaryCtxGetState) F(cuCtxCreate_v2) \
	F(cuCtxDestroy_v2) F(cuCtxGetCurrent) F(cuCtxSetCurrent) F(cuCtxPushCurrent_v2) \
	F(cuCtxPopCurrent_v2) F(cuCtxGetDevice) F(cuCtxSynchronize) F(cuStreamCreate) \
	F(cuStreamCreateWithPriority) F(cuStreamDestroy_v2) F(cuStreamSynchronize) \
	F(cuStreamQuery) F(cuStreamGetCtx) F(cuStreamGetPriority) F(cuCtxGetStreamPriorityRange) \
	F(cuStreamIsCapturing) \
	F(cuThreadExchangeStreamCaptureMode) F(cuModuleLoadData) F(cuModuleUnload) \
	F(cuModuleGetFunction) F(cuFuncGetAttribute) F(cuFuncSetAttribute) F(cuLaunchKernel) \
	F(cuLaunchKernelEx) F(cuLaunchCooperativeKernel) \
	F(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	F(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	F(cuOccupancyMaxPotentialBlockSize) F(cuOccupancyMaxPotentialBlockSizeWithFlags) \
	F(cuOccupancyMaxActiveClusters) F(cuOccupancyMaxPotentialClusterSize) \
	F(cuDeviceGetDevResource) F(cuCtxGetDevResource) F(cuCtxGetExecAffinity) \
	F(cuMemAlloc_v2) F(cuMemFree_v2) \
	F(cuMemcpyHtoD_v2) F(cuMemcpyDtoH_v2) F(cuMemcpyDtoDAsync_v2) F(cuMemsetD8_v2) \
	F(cuMemsetD8Async) F(cuMemsetD32Async) F(cuMemAllocHost_v2) F(cuMemFreeHost) \
	F(cuEventCreate) F(cuEventRecord) F(cuEventSynchronize) F(cuEventElapsedTime_v2) \
	F(cuEventQuery) \
	F(cuEventElapsedTime) F(cuEventDestroy_v2) F(cuGetExportTable) F(cuGetProcAddress) \
	F(cuGetProcAddress_v2) F(cuGreenCtxCreate) F(cuGreenCtxDestroy) \
	F(cuGreenCtxStreamCreate) F(cuGreenCtxGetDevResource) F(cuCtxFromGreenCtx) \
	F(cuDevSmResourceSplitByCount) F(cuDevResourceGenerateDesc) F(gpupart_sim_capture) \
	F(cuStreamWaitEvent) F(cuStreamBeginCapture) F(cuStreamBeginCapture_v2) \
	F(cuStreamEndCapture) F(cuStreamGetCaptureInfo_v2) F(cuStreamGetCaptureInfo_v3) \
	F(cuGraphCreate) F(cuGraphDestroy) F(cuGraphClone) F(cuGraphAddKernelNode) \
	F(cuGraphAddKernelNode_v2) F(cuGraphAddMemsetNode) F(cuGraphAddMemcpyNode) \
	F(cuGraphAddEmptyNode) F(cuGraphAddChildGraphNode) F(cuGraphChildGraphNodeGetGraph) \
	F(cuGraphAddDependencies) F(cuGraphAddDependencies_v2) F(cuGraphGetNodes) \
	F(cuGraphNodeGetType) F(cuGraphKernelNodeGetParams) F(cuGraphKernelNodeGetParams_v2) \
	F(cuGraphKernelNodeSetParams) F(cuGraphKernelNodeSetParams_v2) \
	F(cuGraphKernelNodeGetAttribute) F(cuGraphKernelNodeSetAttribute) \
	F(cuGraphConditionalHandleCreate) F(cuGraphAddNode) F(cuGraphAddNode_v2) \
	F(cuGraphInstantiate) F(cuGraphInstantiate_v2) F(cuGraphInstantiateWithFlags) \
	F(cuGraphInstantiateWithParams) F(cuGraphExecDestroy) F(cuGraphExecGetFlags) \
	F(cuGraphUpload) F(cuGraphUpload_ptsz) F(cuGraphLaunch) F(cuGraphLaunch_ptsz) \
	F(cuGraphExecKernelNodeSetParams) F(cuGraphExecKernelNodeSetParams_v2) \
	F(cuGraphExecUpdate) F(cuGraphExecUpdate_v2) F(cuGraphNodeSetEnabled) \
	F(cuGraphNodeGetEnabled) F(cuGraphNodeFindInClone) F(cuGraphMemsetNodeGetParams) \
	F(cuGraphMemsetNodeSetParams) F(cuGraphMemcpyNodeGetParams) \
	F(cuGraphMemcpyNodeSetParams) F(cuGraphExecMemsetNodeSetParams) \
	F(cuGraphExecMemcpyNodeSetParams) F(cuFuncGetModule) F(cuKernelGetFunction) \
	F(cuLibraryLoadData) F(cuLibraryUnload) F(cuLibraryGetKernel) \
	F(gpupart_sim_gpu_info) F(gpupart_sim_topology) F(gpupart_sim_hung)

#define DECLARE(name) __typeof__(name) *name;
static struct {
	FUNCTIONS(DECLARE)
} cu;

static void *libcuda;

/* ------------------------------------------------------------------- scenarios */

static FILE *report;	/* to the parent: "ok WHAT" or "not WHAT" */

__attribute__((format(printf, 2, 3)))
static inline bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	fputs(good ? "ok " : "not ", report);
	va_start(ap, fmt);
	vfprintf(report, fmt, ap);
	va_end(ap);
	fputc('\n', report);
	return good;
}

#define TRY(call) do { \
	CUresult r_ = (call); \
	if (r_) { \
		check(false, "line %d: %s: error %d", __LINE__, #call, r_); \
		fflush(report); \
		_exit(1); \
	} \
} while (0)

static inline void load(void)
{
	const char *build = getenv("BUILD"), *driver = getenv("TEST_LIBCUDA");
	char path[512];

	snprintf(path, sizeof(path), "%s/lib/gpupart/sim/libcuda.so.1", build ? build : "build");
	if (driver)
		snprintf(path, sizeof(path), "%s", driver);
	libcuda = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!libcuda) {
		check(false, "dlopen: %s", dlerror());
		return;
	}
#define RESOLVE(name) *(void **)&cu.name = dlsym(libcuda, #name);
	FUNCTIONS(RESOLVE)
}

/*
 * Runs @body(@arg) in a new process. The environment of the process has the "NAME=value" strings
 * of @env. @env ends with NULL. This process prints the checks of the new process. The stderr of
 * the new process must contain @words. If @words is NULL, it must be empty.
 */
static inline void scenario(const char *name, void (*body)(const char *arg), const char *arg,
		     const char *const *env, const char *words)
{
	char line[1024], said[4096] = "";
	int out[2], err[2], status;
	FILE *from;
	ssize_t got;
	size_t len = 0;
	pid_t pid;

	if (pipe(out) || pipe(err))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(out[0]);
		close(err[0]);
		dup2(err[1], 2);
		report = fdopen(out[1], "w");
		for (; *env; env++)
			putenv((char *)*env);
		load();
		if (libcuda)
			body(arg);
		fflush(report);
		_exit(libcuda ? 0 : 1);
	}
	close(out[1]);
	close(err[1]);
	from = fdopen(out[0], "r");
	while (fgets(line, sizeof(line), from)) {
		line[strcspn(line, "\n")] = '\0';
		tap_ok(line[0] == 'o', "%s: %s", name, line + (line[0] == 'o' ? 3 : 4));
	}
	fclose(from);
	while (len < sizeof(said) - 1 &&
	       (got = read(err[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += got;
	said[len] = '\0';
	close(err[0]);
	waitpid(pid, &status, 0);
	if (status)
		tap_ok(0, "%s: ended with status %#x: %s", name, status, said);
	if (!words)
		tap_ok(!said[0], "%s: nothing on stderr%s%s", name, said[0] ? ", but " : "", said);
	else
		tap_ok(strstr(said, words) != NULL, "%s: stderr says \"%s\"%s%s", name, words,
		       strstr(said, words) ? "" : ", not: ", strstr(said, words) ? "" : said);
}

/* ------------------------------------------------------------ values of a capture */

static struct {
	unsigned int nr_sms, nr_tpcs, max_bits;
	int tpc[MAX_SMS], vgpc[MAX_SMS], bit[MAX_SMS];
} truth;

static inline bool read_truth_quietly(const char *path)
{
	FILE *file = fopen(path, "r");
	int sm, tpc, vgpc, bit, gpcs = 0, tpcs = 0;
	char line[1024], section[64] = "";

	memset(&truth, 0, sizeof(truth));
	memset(truth.bit, 0xff, sizeof(truth.bit));
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '[')
			sscanf(line, "[%63[^]]]", section);
		else if (!strcmp(section, "gpu")) {
			sscanf(line, "max-gpcs = %d", &gpcs);
			sscanf(line, "max-tpcs-per-gpc = %d", &tpcs);
		} else if (!strcmp(section, "rm") &&
			   sscanf(line, "%d %*s %*s %*s %d %d", &sm, &tpc, &vgpc) == 3) {
			truth.tpc[sm] = tpc;
			truth.vgpc[sm] = vgpc;
			if ((unsigned int)sm >= truth.nr_sms)
				truth.nr_sms = sm + 1;
			if ((unsigned int)tpc >= truth.nr_tpcs)
				truth.nr_tpcs = tpc + 1;
		} else if (!strcmp(section, "measured-bits") &&
			   sscanf(line, "%d %d", &sm, &bit) == 2) {
			truth.bit[sm] = bit;
		}
	}
	fclose(file);
	truth.max_bits = gpcs * tpcs;
	return truth.nr_sms > 0;
}

static inline bool read_truth(const char *path)
{
	bool good = read_truth_quietly(path);

	return good || check(false, "%s: no SMs in it", path);
}

/* --------------------------------------------------------------------- the hook */

static const struct cu_uuid table_id = { {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
} };

typedef int subscribe_fn(uint32_t *handle, void (*callback)(void *, int, int, const void *),
			 void *user);
typedef int enable_fn(uint32_t on, uint32_t handle, int domain, int cbid);

static subscribe_fn *subscribe;
static int (*unsubscribe)(uint32_t handle);
static enable_fn *enable;
static uint32_t subscriber;

/* The actions of the callback for the calling thread, and the values that the callback saw. */
static __thread struct {
	bool on;		/* sets these bits */
	bool only;		/* also clears all other bits; a graph's TMD would keep them */
	bool not_valid;		/* does not set the mask-valid bit */
	uint32_t off[4];
	bool spoil;		/* changes a byte that a callback must not change */
	unsigned int built, uploaded;
	uint64_t params[11];	/* parameters of the last cbid 1 */
	uint8_t tmd[384];	/* the TMD from the driver, before the changes */
} hook;

static __thread struct {
	unsigned int nr;
	int cbid[64];
	void *ctx[64], *object[64];
} seen_resources;

static inline void on_callback(void *user, int domain, int cbid, const void *params)
{
	const uint64_t *slot = params;
	uint8_t *tmd;
	uint32_t word;
	unsigned int i;

	(void)user;
	if (domain == 2 && seen_resources.nr < 64) {
		seen_resources.cbid[seen_resources.nr] = cbid;
		seen_resources.ctx[seen_resources.nr] = (void *)(uintptr_t)slot[1];
		seen_resources.object[seen_resources.nr++] = (void *)(uintptr_t)slot[2];
	}
	if (domain != 0xb)
		return;
	hook.uploaded += cbid == 2;
	if (cbid != 1)
		return;
	tmd = (uint8_t *)(uintptr_t)slot[4];
	hook.built++;
	memcpy(hook.params, params, sizeof(hook.params));
	memcpy(hook.tmd, tmd, sizeof(hook.tmd));
	if (hook.spoil)
		tmd[128]++;
	if (!hook.on)
		return;
	if (!hook.not_valid)
		tmd[3] |= 0x80;
	for (i = 0; i < 4; i++) {
		memcpy(&word, tmd + 304 + 4 * i, 4);
		word = hook.only ? hook.off[i] : word | hook.off[i];
		memcpy(tmd + 304 + 4 * i, &word, 4);
	}
}

static inline int take_table(void)
{
	const void *const *table;
	CUresult error = cu.cuGetExportTable((const void **)&table, &table_id);

	if (error)
		return error;
	*(const void **)&subscribe = table[3];
	*(const void **)&unsubscribe = table[4];
	*(const void **)&enable = table[6];
	return 0;
}

static inline void hook_start(void)
{
	if (take_table() || subscribe(&subscriber, on_callback, NULL) ||
	    enable(1, subscriber, 0xb, 1) || enable(1, subscriber, 0xb, 2))
		check(false, "the callback table");
}

static inline void off_none(void)
{
	memset(&hook.off, 0, sizeof(hook.off));
	hook.on = true;
}

static inline void off_bit(unsigned int bit)
{
	hook.off[bit / 32] |= 1u << bit % 32;
}

/* Disables every TPC, unless @keep is true for one of its SMs. */
static inline void off_unless(bool (*keep)(unsigned int sm))
{
	unsigned int sm;

	off_none();
	for (sm = 0; sm < truth.nr_sms; sm++)
		if (!keep(sm))
			off_bit(truth.bit[sm]);
}

/* ------------------------------------------------------------------ a small program */

static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	"// .entry gpupart_commented_out\n/* .entry gpupart_this_too */\n"
	".visible .entry gpupart_empty()\n{\n\tret;\n}\n"
	".visible .entry gpupart_census(\n\t.param .u64 out, .param .u32 spin)\n{\n\tret;\n}\n"
	".visible .entry gpupart_work(.param .u64 out, .param .u32 n)\n{\n\tret;\n}\n"
	".entry gpupart_cluster(.param .u64 out, .param .u32 spin)\n{\n\tret;\n}\n"
	".entry foreign_kernel()\n{\n\t.shared .align 8 .b8 buffer[2048];\n"
	"\t.shared .u32 one;\n\tret;\n}\n";

/*
 * The same kernel with 40 registers per thread. A warp has 1280 registers, so 12 warps fit on a
 * quarter of an SM.
 */
static const char ptx_40_registers[] __attribute__((unused)) =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 spin)\n.maxnreg 40\n"
	"{\n\tret;\n}\n";

struct record {
	uint32_t smid, cluster;
	uint64_t start, end;
};

static CUcontext ctx;
static CUmodule module;
static CUfunction f_empty, f_census, f_work, f_cluster, f_other;

static inline void begin_on(int device)
{
	TRY(cu.cuInit(0));
	TRY(cu.cuDevicePrimaryCtxRetain(&ctx, device));
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuModuleLoadData(&module, ptx));
	TRY(cu.cuModuleGetFunction(&f_empty, module, "gpupart_empty"));
	TRY(cu.cuModuleGetFunction(&f_census, module, "gpupart_census"));
	TRY(cu.cuModuleGetFunction(&f_work, module, "gpupart_work"));
	TRY(cu.cuModuleGetFunction(&f_cluster, module, "gpupart_cluster"));
	TRY(cu.cuModuleGetFunction(&f_other, module, "foreign_kernel"));
}

/*
 * One launch of a kernel that records. In a list, an element of zeros marks the end. Comments
 * below describe the fields.
 */
struct shape {
	unsigned int blocks, threads, shared, cluster;
	bool cooperative;
	int policy;
	CUstream stream;
	CUfunction function;		/* NULL: gpupart_census */
	uint32_t value;			/* the kernel's second parameter; 0: 1000 */
};

static inline CUresult launch(const struct shape *shape, CUdeviceptr out)
{
	uint32_t value = shape->value ? shape->value : 1000;
	void *params[] = { &out, &value };
	struct cu_launch_attribute attributes[3] = { 0 };
	struct cu_launch_config config = {
		shape->blocks, 1, 1, shape->threads, 1, 1, shape->shared, shape->stream,
		attributes, 0,
	};
	CUfunction function = shape->function ? shape->function : f_census;

	if (shape->cooperative) {
		attributes[config.nr_attributes].id = CU_LAUNCH_COOPERATIVE;
		attributes[config.nr_attributes++].value.cooperative = 1;
	}
	if (shape->cluster) {
		attributes[config.nr_attributes].id = CU_LAUNCH_CLUSTER_DIMENSION;
		attributes[config.nr_attributes].value.cluster.x = shape->cluster;
		attributes[config.nr_attributes].value.cluster.y = 1;
		attributes[config.nr_attributes++].value.cluster.z = 1;
		attributes[config.nr_attributes].id = CU_LAUNCH_CLUSTER_POLICY;
		attributes[config.nr_attributes++].value.policy = shape->policy;
	}
	return cu.cuLaunchKernelEx(&config, function, params, NULL);
}

/* Makes a launch, waits for its end, and copies the records. Returns the error of the wait. */
static inline CUresult run(const struct shape *shape, struct record *records)
{
	size_t bytes = shape->blocks * sizeof(*records);
	CUdeviceptr out;
	CUresult error;

	TRY(cu.cuMemAlloc_v2(&out, bytes));
	TRY(cu.cuMemsetD8_v2(out, 0xff, bytes));
	/*
	 * Wait for the fill, because non-blocking streams do not wait for the fill. The fill may
	 * wait for a kernel of another thread on a blocking stream. If the fill fails, the launch
	 * reports the error.
	 */
	cu.cuStreamSynchronize(NULL);
	TRY(launch(shape, out));
	error = cu.cuStreamSynchronize(shape->stream);
	if (!error)
		TRY(cu.cuMemcpyDtoH_v2(records, out, bytes));
	cu.cuMemFree_v2(out);
	return error;
}

/* Counts the blocks on each SM. If a record is invalid, returns false. */
static inline bool count(const struct record *records, unsigned int nr, unsigned int *on_sm)
{
	unsigned int i;

	memset(on_sm, 0, MAX_SMS * sizeof(*on_sm));
	for (i = 0; i < nr; i++) {
		if (records[i].smid >= truth.nr_sms || records[i].end < records[i].start)
			return false;
		on_sm[records[i].smid]++;
	}
	return true;
}

/*
 * Returns the number of blocks that began before the first end of a block. If @step is N, counts
 * every Nth block.
 */
static inline unsigned int at_once(const struct record *records, unsigned int nr,
				   unsigned int step)
{
	uint64_t first_end = UINT64_MAX;
	unsigned int i, together = 0;

	for (i = 0; i < nr; i++)
		if (records[i].end < first_end)
			first_end = records[i].end;
	for (i = 0; i < nr; i += step)
		together += records[i].start < first_end;
	return together;
}

/* Returns true if every allowed SM ran a block and no other SM ran a block. */
static inline bool ran_exactly_on(const struct shape *shape, bool (*allowed)(unsigned int sm))
{
	static struct record records[MAX_BLOCKS];
	unsigned int on_sm[MAX_SMS], sm;

	if (run(shape, records) || !count(records, shape->blocks, on_sm))
		return false;
	for (sm = 0; sm < truth.nr_sms; sm++)
		if (!on_sm[sm] != !allowed(sm))
			return false;
	return true;
}

static unsigned int the_tpc;	/* the TPC that the predicates below use */

static inline bool every(unsigned int sm)
{
	(void)sm;
	return true;
}

static inline bool none(unsigned int sm)
{
	(void)sm;
	return false;
}

static inline bool not_the_tpc(unsigned int sm)
{
	return truth.tpc[sm] != (int)the_tpc;
}

static inline bool only_the_tpc(unsigned int sm)
{
	return truth.tpc[sm] == (int)the_tpc;
}

static inline bool only_singletons(unsigned int sm)
{
	return truth.bit[sm] >= (int)truth.max_bits;
}

static inline bool only_vgpc_0(unsigned int sm)
{
	return truth.vgpc[sm] == 0;
}

static inline bool first_half(unsigned int sm)
{
	return truth.tpc[sm] < (int)truth.nr_tpcs / 2;
}

static inline bool second_half(unsigned int sm)
{
	return !first_half(sm);
}

#endif
