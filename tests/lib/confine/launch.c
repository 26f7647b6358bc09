// SPDX-License-Identifier: MIT
/*
 * Tests launches with the library on the simulated driver, on every capture and every generated
 * topology. It tests injected faults, the guards, streams, threads, and several GPUs. For each
 * scenario, the program starts itself as a child with the scenario's environment. The parent
 * counts the lines of the child.
 */
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/private.h"
#include "tests/tap.h"

static struct gpupart *gp;
static struct gpupart_gpu *gpu;

/* ----------------------------------------------------------- the driver, by hand */

typedef int CU;
typedef void *P;
static CU (*cuInit)(unsigned int);
static CU (*cuDeviceGet)(int *, int);
static CU (*cuCtxCreate)(P *, unsigned int, int);
static CU (*cuCtxDestroy)(P);
static CU (*cuCtxSetCurrent)(P);
static CU (*cuStreamCreate)(P *, unsigned int);
static CU (*cuStreamDestroy)(P);
static CU (*cuStreamSynchronize)(P);
static CU (*cuCtxSynchronize)(void);
static CU (*cuModuleLoadData)(P *, const void *);
static CU (*cuModuleGetFunction)(P *, P, const char *);
static CU (*cuFuncSetAttribute)(P, int, int);
static CU (*cuLaunchKernel)(P, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
			    unsigned int, unsigned int, P, P *, P *);
static CU (*cuLaunchKernelEx)(const void *, P, P *, P *);
static CU (*cuMemAlloc)(unsigned long long *, size_t);
static CU (*cuMemcpyDtoH)(void *, unsigned long long, size_t);
static CU (*cuMemsetD8Async)(unsigned long long, unsigned char, size_t, P);
static int (*sim_hung)(void);

static int driver_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return -1;
#define SYM(var, name) (*(void **)&(var) = dlsym(lib, name))
	SYM(cuInit, "cuInit"); SYM(cuDeviceGet, "cuDeviceGet"); SYM(cuCtxCreate, "cuCtxCreate_v2");
	SYM(cuCtxDestroy, "cuCtxDestroy_v2"); SYM(cuCtxSetCurrent, "cuCtxSetCurrent");
	SYM(cuStreamCreate, "cuStreamCreate"); SYM(cuStreamDestroy, "cuStreamDestroy_v2");
	SYM(cuStreamSynchronize, "cuStreamSynchronize"); SYM(cuCtxSynchronize, "cuCtxSynchronize");
	SYM(cuModuleLoadData, "cuModuleLoadData"); SYM(cuModuleGetFunction, "cuModuleGetFunction");
	SYM(cuFuncSetAttribute, "cuFuncSetAttribute"); SYM(cuLaunchKernel, "cuLaunchKernel");
	SYM(cuLaunchKernelEx, "cuLaunchKernelEx"); SYM(cuMemAlloc, "cuMemAlloc_v2");
	SYM(cuMemcpyDtoH, "cuMemcpyDtoH_v2"); SYM(cuMemsetD8Async, "cuMemsetD8Async");
	SYM(sim_hung, "gpupart_sim_hung");
	return sim_hung ? 0 : -1;
}

struct record {
	unsigned int smid, cluster;
	unsigned long long start, end;
};

/* Like in a program, a context with a census kernel. */
struct program {
	P ctx, function, cluster_function;
	unsigned long long out;
};

static const char ptx[] =
	".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n"
	".visible .entry gpupart_cluster(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n";

static int program_start(struct program *p, int device)
{
	int dev;
	P module;

	return cuInit(0) || cuDeviceGet(&dev, device) || cuCtxCreate(&p->ctx, 0, dev) ||
	       cuModuleLoadData(&module, ptx) ||
	       cuModuleGetFunction(&p->function, module, "gpupart_census") ||
	       cuModuleGetFunction(&p->cluster_function, module, "gpupart_cluster") ||
	       cuFuncSetAttribute(p->function, 8, 200000) ||
	       cuFuncSetAttribute(p->cluster_function, 8, 200000) ||
	       cuFuncSetAttribute(p->cluster_function, 14, 1) ||
	       cuMemAlloc(&p->out, 24 * 4096);
}

/* Makes a launch. Stores the TPCs that the launch used. If @cluster is 0, there is no cluster. */
static int run_on(struct program *p, const struct gpupart_topology *topo, P stream,
		  unsigned int blocks, unsigned int shared, unsigned int cluster, int cooperative,
		  struct gpupart_tpcset *seen)
{
	static _Thread_local struct record records[4096];
	unsigned int spin = 1000;
	P args[] = { &p->out, &spin };
	struct { int id, pad; char value[64]; } attrs[2];
	struct {
		unsigned int g[3], b[3], shared;
		P stream;
		void *attrs;
		unsigned int nr;
	} config = {
		{ blocks, 1, 1 }, { 32, 1, 1 }, shared, stream, attrs, 0,
	};
	CU r;

	memset(attrs, 0, sizeof(attrs));
	if (cluster) {
		attrs[config.nr].id = 4;
		memcpy(attrs[config.nr++].value, (unsigned int[]){ cluster, 1, 1 }, 12);
	}
	if (cooperative) {
		attrs[config.nr].id = 2;
		attrs[config.nr++].value[0] = 1;
	}
	r = config.nr ? cuLaunchKernelEx(&config, cluster ? p->cluster_function : p->function, args,
					 NULL)
		      : cuLaunchKernel(p->function, blocks, 1, 1, 32, 1, 1, shared, stream, args,
				       NULL);
	if (r || cuStreamSynchronize(stream) ||
	    cuMemcpyDtoH(records, p->out, blocks * sizeof(records[0])))
		return -1;
	memset(seen, 0, sizeof(*seen));
	for (unsigned int b = 0; b < blocks; b++)
		gpupart_tpcset_add(seen, gpupart_topology_sm_tpc(topo, records[b].smid));
	return 0;
}

static int plain(struct program *p, P stream, struct gpupart_tpcset *seen)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);

	return run_on(p, topo, stream, gpupart_topology_nr_sms(topo) * 2, 200000, 0, 0, seen);
}

static int attach(const char *selector)
{
	if (gpupart_open(&gp) || driver_open())
		return -EIO;
	return gpupart_attach(gp, selector, NULL, &gpu);
}

static struct gpupart_tpcset list(const char *text)
{
	struct gpupart_tpcset set;

	if (gpupart_tpcset_parse_list(gp, text, &set))
		exit(9);
	return set;
}

/* ---------------------------------------------------------------------- children */

static int nr_rows, nr_fail, nr_skip;

static void on_row(const struct gpupart_verify_row *row, void *user)
{
	(void)user;
	nr_rows++;
	nr_fail += row->result == GPUPART_VERIFY_FAIL;
	nr_skip += row->result == GPUPART_VERIFY_SKIP;
	if (row->result == GPUPART_VERIFY_FAIL)
		printf("# %s: %s\n", row->name, row->detail);
}

/* The largest mask bit of the simulated GPU; V04_00 has 128 bits. */
static int largest_bit(void)
{
	struct gpupart_topology *topo;
	int bit = -1;

	if (gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo))
		return -1;
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
		if (gpupart_topology_tpc(topo, tpc)->measured_bit > bit)
			bit = gpupart_topology_tpc(topo, tpc)->measured_bit;
	gpupart_topology_close(topo);
	return bit;
}

static void child_verify(void)
{
	struct gpupart_counters c;
	struct gpupart_check check;
	int err = attach(NULL);

	if (largest_bit() > 127) {
		tap_ok(err < 0, "more bits than a V04_00 has are refused: %s", gpupart_error(gp));
		return;
	}

	if (!tap_ok(!err, "attaches%s%s", err ? ": " : "", err ? gpupart_error(gp) : ""))
		return;
	gpupart_gpu_check(gpu, &check);
	tap_ok(check.nr_proven == gpupart_topology_nr_tpcs(gpupart_gpu_topology(gpu)) &&
		       !check.from_cache,
	       "proves every TPC: %u by %u launches", check.nr_proven, check.nr_launches);
	tap_ok(gpupart_topology_info(gpupart_gpu_topology(gpu))->simulated,
	       "says that it is simulated");
	err = gpupart_verify(gp, gpu, 0, on_row, NULL);
	tap_ok(!err && nr_rows > 15 && !nr_fail, "verify: %d rows, %d failed, %d skipped", nr_rows,
	       nr_fail, nr_skip);
	gpupart_counters_get(&c);
	tap_ok(!c.unconfinable_version && !c.unconfinable_map && !c.unconfinable_gpu && !sim_hung(),
	       "no launch escaped or hung");
}

/*
 * The map of the GPU differs from the table. The library must refuse the GPU and must mask no
 * launch.
 */
static void refused_naming(const char *word)
{
	struct gpupart_tpcset set = gpupart_tpcset_first(1);
	int err = attach(NULL);

	tap_ok((err == -EOPNOTSUPP || err == -EPROTO) && strstr(gpupart_error(gp), word),
	       "refused: %d %s", err, gpupart_error(gp));
	if (gpu)
		tap_ok(gpupart_process_set(gp, gpu, &set) < 0, "no set is taken");
}

static void child_moved(void) { refused_naming("TPC 17 "); }
static void child_version(void) { refused_naming("0x41"); }
static void child_no_table(void) { refused_naming("no launch callback"); }
static void child_table_size(void) { refused_naming("unknown size of 8 bytes:"); }
static void child_table_small(void) { refused_naming("unknown size of 48 bytes:"); }
static void child_table_large(void) { refused_naming("unknown size of 1073741824 bytes:"); }
static void child_params_none(void) { refused_naming("parameters of 16 bytes"); }
static void child_params_32(void) { refused_naming("parameters of 32 bytes"); }
static void child_params_odd(void) { refused_naming("parameters of 44 bytes"); }
static void child_params_large(void) { refused_naming("parameters of 520 bytes"); }
static void child_no_tmd(void)
{
	refused_naming("driver's launch parameters (88 bytes) does not point to a TMD");
}
static void child_no_tmd_40(void)
{
	refused_naming("driver's launch parameters (40 bytes) does not point to a TMD");
}
static void child_no_callback(void) { refused_naming("did not call the launch callback"); }
static void child_mps(void) { refused_naming("MPS"); }

static unsigned int setting(const char *name, unsigned int unset)
{
	const char *faults = getenv("GPUPART_SIM_FAULTS");
	const char *value = faults ? strstr(faults, name) : NULL;

	return value ? (unsigned int)atoi(value + strlen(name)) : unset;
}

/*
 * The driver's table and parameters have different sizes. The library proves these sizes and then
 * confines launches.
 */
static void child_other_driver(void)
{
	unsigned int table_bytes = setting("table-size=", 96);
	struct gpupart_driver driver = { 0 };
	struct gpupart_counters c;
	struct gpupart_tpcset set, seen;
	struct program p;
	int before, err;

	before = gpupart_open(&gp) ? 0 : gpupart_driver_get(gp, &driver);
	err = attach(NULL);
	if (!tap_ok(!err && !program_start(&p, 0), "attaches%s%s", err ? ": " : "",
		    err ? gpupart_error(gp) : ""))
		return;
	tap_ok(before == -EAGAIN && !gpupart_driver_get(gp, &driver) &&
	       driver.table_bytes == table_bytes &&
	       driver.nr_features == (table_bytes < 88 ? -1 : 11) &&
	       driver.params_bytes == setting("params-size=", 88),
	       "says what it found: %u bytes, %d features, parameters of %u bytes",
	       driver.table_bytes, driver.nr_features, driver.params_bytes);
	set = list("5-9");
	tap_ok(!gpupart_process_set(gp, gpu, &set) && !plain(&p, NULL, &seen) &&
	       gpupart_tpcset_equal(&set, &seen), "a set confines");
	gpupart_counters_get(&c);
	tap_ok(c.confined && !c.unconfinable_version && !sim_hung(),
	       "%llu launches confined, none escaped", (unsigned long long)c.confined);
}

/*
 * The stored proof is for parameters of different sizes, so it is not valid here. The library
 * counts launches but does not change them.
 */
static void child_unproven(void)
{
	struct gpupart_tpcset seen, all;
	struct gpupart_counters c;
	struct program p;
	int err = driver_open() || cuInit(0) || gpupart_open(&gp) ? -1 :
		  gpupart_attach_early(gp, NULL, NULL, &gpu);

	if (!tap_ok(!err && !program_start(&p, 0), "attaches by what was proven before%s%s",
		    err ? ": " : "", err ? gpupart_error(gp) : ""))
		return;
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	tap_ok(!plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &all), "runs everywhere");
	gpupart_counters_get(&c);
	tap_ok(c.unconfinable_version == 1 && !c.confined, "counted as unconfined: %llu",
	       (unsigned long long)c.unconfinable_version);
}

/*
 * After the check, the GPU's name belongs to a different GPU. verify must report the difference,
 * and the library must stop masking.
 */
static void child_changed(void)
{
	struct gpupart_tpcset one = list("7"), five = list("5-9"), set;
	int err = attach(NULL);

	if (!tap_ok(!err, "attaches by what was checked before: %s", err ? gpupart_error(gp) : ""))
		return;
	gpupart_process_set(gp, gpu, &five);
	err = gpupart_verify(gp, gpu, 0, on_row, NULL);
	tap_ok(err == 1 && nr_fail == 1 && nr_skip > 10 && !sim_hung(),
	       "verify fails one row, skips %d, hangs nothing", nr_skip);
	tap_ok(gpupart_process_get(gpu, &set) && gpupart_tpcset_equal(&set, &five),
	       "what was set before it is still named");
	tap_ok(gpupart_process_set(gp, gpu, &one) == -EOPNOTSUPP,
	       "and no set is taken any more: %s", gpupart_error(gp));
}

static bool has(bool got, const struct gpupart_tpcset *set, const struct gpupart_tpcset *want)
{
	return got && gpupart_tpcset_equal(set, want);
}

/*
 * Some sets are in force at the call of verify. These sets must not make a row fail, and must not
 * be lost.
 */
static void child_verify_leaves(void)
{
	struct gpupart_tpcset limit = list("0-20"), process = list("0-15"), own = list("0-3"),
			      legacy = list("4-5"), per_thread = list("6-7"), next = list("8-9"),
			      other = list("10-11"), s;
	struct gpupart_counters before, after;
	struct program p;
	P stream;
	int err;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && !cuStreamCreate(&stream, 1),
		    "attaches"))
		return;
	tap_ok(!gpupart_limit_set(gp, gpu, &limit) && !gpupart_process_set(gp, gpu, &process) &&
	       !gpupart_thread_set(gp, gpu, &own) && !gpupart_stream_set(gp, gpu, NULL, &legacy) &&
	       !gpupart_stream_set(gp, gpu, (P)2, &per_thread) &&
	       !gpupart_stream_set(gp, gpu, stream, &other) && !gpupart_next_set(gp, gpu, &next),
	       "a set of each kind");
	gpupart_counters_get(&before);
	err = gpupart_verify(gp, gpu, 0, on_row, NULL);
	gpupart_counters_get(&after);
	tap_ok(!err && nr_rows > 15, "verify beside them: %d rows, %d failed", nr_rows, nr_fail);
	tap_ok(has(gpupart_limit_get(gpu, &s), &s, &limit), "the limit is back");
	tap_ok(has(gpupart_process_get(gpu, &s), &s, &process), "the process's");
	tap_ok(has(gpupart_thread_get(gpu, &s), &s, &own), "the thread's");
	tap_ok(has(gpupart_stream_get(gpu, NULL, &s), &s, &legacy), "the legacy stream's");
	tap_ok(has(gpupart_stream_get(gpu, (P)2, &s), &s, &per_thread), "the per-thread stream's");
	tap_ok(has(gpupart_stream_get(gpu, stream, &s), &s, &other), "a created stream's");
	tap_ok(after.next_dropped == before.next_dropped && !plain(&p, stream, &s) &&
	       has(true, &s, &next), "the next launch's");
	tap_ok(!plain(&p, stream, &s) && has(true, &s, &other) && !plain(&p, NULL, &s) &&
	       has(true, &s, &legacy) && !plain(&p, (P)2, &s) && has(true, &s, &per_thread),
	       "and launches obey them");
	gpupart_stream_set(gp, gpu, stream, NULL);
	tap_ok(!plain(&p, stream, &s) && has(true, &s, &own), "the thread's too");
	tap_ok(!sim_hung(), "nothing hung");
}

static void child_mps_cached(void)
{
	struct gpupart_check check;
	int err = attach(NULL);

	if (!tap_ok(!err, "under MPS what was checked before is trusted: %s",
		    err ? gpupart_error(gp) : ""))
		return;
	gpupart_gpu_check(gpu, &check);
	tap_ok(check.from_cache && !check.nr_launches, "and not measured again");
}

static void no_streams(const char *word)
{
	struct gpupart_tpcset set = list("0-3"), seen;
	struct program p;
	int err = attach(NULL);
	P stream;

	if (!tap_ok(!err, "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	if (!tap_ok(!program_start(&p, 0) && !cuStreamCreate(&stream, 0), "a program"))
		return;
	err = gpupart_stream_set(gp, gpu, stream, &set);
	tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), word), "stream sets are refused: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_process_set(gp, gpu, &set) && !plain(&p, stream, &seen) &&
		       gpupart_tpcset_equal(&set, &seen),
	       "process sets work");
}

static void child_no_pointer(void) { no_streams("stream object"); }
static void child_no_events(void) { no_streams("does not report destroyed streams"); }

static void child_bad_sets(void)
{
	struct gpupart_tpcset none = { { 0 } }, far = list("3,66"), ok = list("3");

	if (!tap_ok(!attach(NULL), "attaches"))
		return;
	tap_ok(gpupart_process_set(gp, gpu, &none) == -EINVAL && strstr(gpupart_error(gp), "empty"),
	       "empty: %s", gpupart_error(gp));
	tap_ok(gpupart_limit_set(gp, gpu, &far) == -EINVAL && strstr(gpupart_error(gp), "66"),
	       "TPC 66: %s", gpupart_error(gp));
	tap_ok(gpupart_next_set(gp, gpu, &none) == -EINVAL, "empty next-launch set");
	tap_ok(gpupart_stream_set(gp, gpu, (P)0xdead0, &ok) == -EINVAL &&
		       strstr(gpupart_error(gp), "0xdead0"),
	       "a stream that is none: %s", gpupart_error(gp));
	uint64_t zero[64] = { 0 };
	tap_ok(gpupart_stream_set(gp, gpu, zero, &ok) == -EINVAL, "a pointer to zeroes: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_process_set(gp, gpu, NULL) && !gpupart_limit_set(gp, gpu, NULL) &&
		       !gpupart_next_set(gp, gpu, NULL),
	       "taking away what is not there is no error");
}

/* With any set, no launch may hang. The library must count each widened launch. */
static void child_guards(void)
{
	const struct gpupart_topology *topo;
	struct gpupart_counters a, b;
	struct gpupart_tpcset one, far, seen, limit;
	struct program p;
	unsigned int nr_sms;
	P s;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && !cuStreamCreate(&s, 1), "attaches"))
		return;
	topo = gpupart_gpu_topology(gpu);
	nr_sms = gpupart_topology_nr_sms(topo);
	one = list("7");
	far = list("60-65");
	limit = list("0-15");
#define COUNTED(field, n) (gpupart_counters_get(&b), b.field - a.field == (n))
	gpupart_process_set(gp, gpu, &one);
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 64, 200000, 8, 0, &seen) && COUNTED(widened_cluster, 1) &&
		       gpupart_tpcset_count(&seen) >= 4,
	       "clusters of 8 in one TPC: widened, counted, on %u TPCs",
	       gpupart_tpcset_count(&seen));
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 16, 200000, 2, 0, &seen) && COUNTED(confined, 1) &&
		       gpupart_tpcset_equal(&seen, &one),
	       "clusters of 2 in one TPC: confined");
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 2, 200000, 0, 1, &seen) && COUNTED(confined, 1) &&
		       gpupart_tpcset_equal(&seen, &one),
	       "a cooperative grid of two blocks in one TPC: confined");
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 7, 200000, 0, 1, &seen) && COUNTED(widened_cooperative, 1) &&
		       gpupart_tpcset_count(&seen) == 4,
	       "a cooperative grid of seven blocks: widened to %u TPCs",
	       gpupart_tpcset_count(&seen));
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, nr_sms, 200000, 0, 1, &seen) &&
		       COUNTED(widened_cooperative, 1) &&
		       gpupart_tpcset_count(&seen) == gpupart_topology_nr_tpcs(topo),
	       "one for the whole GPU gets it");
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 32, 0, 0, 1, &seen) && COUNTED(confined, 1) &&
		       gpupart_tpcset_equal(&seen, &one),
	       "32 small cooperative blocks fit one TPC by occupancy");
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 16, 200000, 4, 1, &seen) && COUNTED(widened_cluster, 1),
	       "four cooperative clusters of 4: widened");
	gpupart_limit_set(gp, gpu, &limit);
	gpupart_process_set(gp, gpu, &far);
	gpupart_counters_get(&a);
	tap_ok(!plain(&p, s, &seen) && COUNTED(widened_empty, 1) &&
		       gpupart_tpcset_equal(&seen, &limit),
	       "limit and set with nothing in common: the limit");
	gpupart_limit_set(gp, gpu, NULL);
	far = list("62-65"); /* singletons, which the driver itself disables for clusters of 4 */
	gpupart_process_set(gp, gpu, &far);
	gpupart_counters_get(&a);
	tap_ok(!run_on(&p, topo, s, 16, 200000, 4, 0, &seen) && COUNTED(widened_driver, 1),
	       "the driver's own mask leaves nothing: it stays");
	tap_ok(!sim_hung(), "nothing hung");
}

/* Shows that the guards are necessary. Without the guards, the simulated GPU hangs. */
static void child_hangs(void)
{
	struct gpupart_tpcset seen;
	struct program p;
	P s;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && !cuStreamCreate(&s, 1), "attaches"))
		return;
	tap_ok(run_on(&p, gpupart_gpu_topology(gpu), s, 64, 200000, 16, 0, &seen) < 0 &&
		       sim_hung() == 1,
	       "a cluster that fits no virtual GPC never ends here");
}

static void child_streams(void)
{
	struct gpupart_tpcset a = list("0-7"), b = list("8-9"), process = list("20-40"), seen, got;
	enum { NR = 200 };
	P s[NR], again[NR];
	struct program p;
	int bad = 0;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0), "attaches"))
		return;
	gpupart_process_set(gp, gpu, &process);
	for (int i = 0; i < NR; i++) {
		bad += cuStreamCreate(&s[i], i & 1);
		if (i % 3 == 0)
			bad += gpupart_stream_set(gp, gpu, s[i], i % 2 ? &a : &b) != 0;
	}
	tap_ok(!bad, "sets on 67 of 200 streams");
	for (int i = 0; i < NR; i++) {
		const struct gpupart_tpcset *want = i % 3 ? &process : i % 2 ? &a : &b;

		bad += plain(&p, s[i], &seen) || !gpupart_tpcset_equal(&seen, want);
	}
	tap_ok(!bad, "each stream's launches obey its own set, the others the process's");
	tap_ok(gpupart_stream_get(gpu, s[3], &got) && gpupart_tpcset_equal(&got, &a) &&
		       !gpupart_stream_get(gpu, s[1], &got),
	       "and say which");
	for (int i = 0; i < NR; i++)
		cuStreamDestroy(s[i]);
	for (int i = 0; i < NR; i++) {
		cuStreamCreate(&again[i], i & 1);
		bad += plain(&p, again[i], &seen) || !gpupart_tpcset_equal(&seen, &process);
		bad += gpupart_stream_get(gpu, again[i], &got);
	}
	tap_ok(!bad, "streams made after they were destroyed inherit nothing");
	tap_ok(gpupart_stream_set(gp, gpu, s[0], &a) == 0 || 1, "a dead handle does no harm");

	/* A set of a default stream applies only to this context and thread. */
	struct program q;

	tap_ok(!gpupart_stream_set(gp, gpu, NULL, &a) && !gpupart_stream_set(gp, gpu, (P)2, &b),
	       "sets on default streams");
	tap_ok(!plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &a), "the legacy one obeys");
	tap_ok(!plain(&p, (P)1, &seen) && gpupart_tpcset_equal(&seen, &a), "by its other name too");
	tap_ok(!plain(&p, (P)2, &seen) && gpupart_tpcset_equal(&seen, &b),
	       "the per-thread one obeys");
	tap_ok(!program_start(&q, 0) && !plain(&q, NULL, &seen) &&
		       gpupart_tpcset_equal(&seen, &process),
	       "another context's does not");
	cuCtxDestroy(q.ctx);
	cuCtxSetCurrent(p.ctx);
	gpupart_stream_set(gp, gpu, NULL, NULL);
	gpupart_stream_set(gp, gpu, (P)2, NULL);
	tap_ok(!plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &process),
	       "taken away again");
	gpupart_next_set(gp, gpu, &a);
	tap_ok(!plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &a) &&
		       !plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &process),
	       "a next-launch set is for one launch");
	tap_ok(!sim_hung(), "nothing hung");
}

/* ----------------------------------------------------------------------- threads */

static atomic_int stop, torn, lost;
static struct gpupart_tpcset choice[4];

static void *setter(void *arg)
{
	struct gpupart *own;
	unsigned int n = (uintptr_t)arg;

	if (gpupart_open(&own))
		return NULL;
	while (!stop)
		if (gpupart_process_set(own, gpu, &choice[n++ % 4]))
			lost++;
	gpupart_close(own);
	return NULL;
}

static void *launcher(void *arg)
{
	struct gpupart_tpcset seen;
	struct program p;
	P s;

	if (program_start(&p, 0) || cuStreamCreate(&s, 1)) {
		lost++;
		return NULL;
	}
	for (int i = 0; i < 300; i++) {
		int match = 0;

		if (plain(&p, s, &seen)) {
			lost++;
			break;
		}
		for (int c = 0; c < 4; c++)
			match |= gpupart_tpcset_equal(&seen, &choice[c]);
		if (!match) {
			char text[GPUPART_TPCSET_STRLEN];

			gpupart_tpcset_format_list(&seen, text, sizeof(text));
			printf("# seen %s\n", text);
			torn++;
		}
	}
	(void)arg;
	return NULL;
}

static void child_threads(void)
{
	pthread_t set[2], launch[2];

	if (!tap_ok(!attach(NULL), "attaches"))
		return;
	/* Each set has TPCs in every word. No two sets have a common TPC. */
	choice[0] = list("0-3,40-43,64");
	choice[1] = list("4-7,44-47,65");
	choice[2] = list("8-11,48-51");
	choice[3] = list("12,52,62");
	gpupart_process_set(gp, gpu, &choice[0]);
	for (int i = 0; i < 2; i++)
		pthread_create(&launch[i], NULL, launcher, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&set[i], NULL, setter, (void *)(uintptr_t)i);
	for (int i = 0; i < 2; i++)
		pthread_join(launch[i], NULL);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(set[i], NULL);
	tap_ok(!torn && !lost, "600 launches against two threads that set: %d torn, %d lost", torn,
	       lost);
}

/* ---------------------------------------------------------------------- several */

static void child_two_gpus(void)
{
	struct gpupart_gpu *first, *second, *same;
	struct gpupart_tpcset a = list("0-3"), b = list("10-20"), seen;
	struct program p, q;
	int err = attach("cuda:0");

	if (!tap_ok(!err, "the first GPU: %s", err ? gpupart_error(gp) : ""))
		return;
	first = gpu;
	err = gpupart_attach(gp, "cuda:1", NULL, &second);
	if (!tap_ok(!err && second != first, "the second: %s", err ? gpupart_error(gp) : ""))
		return;
	tap_ok(!gpupart_attach(gp, gpupart_topology_info(gpupart_gpu_topology(second))->pci, NULL,
			       &same) &&
		       same == second,
	       "by PCI address it is the same object");
	gpupart_process_set(gp, first, &a);
	gpupart_process_set(gp, second, &b);
	if (!tap_ok(!program_start(&p, 0) && !program_start(&q, 1), "a context on each"))
		return;
	gpu = second;
	tap_ok(!plain(&q, NULL, &seen) && gpupart_tpcset_equal(&seen, &b),
	       "launches on the second obey its set");
	cuCtxSetCurrent(p.ctx);
	gpu = first;
	tap_ok(!plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &a),
	       "launches on the first obey its own");
	P s;
	tap_ok(!cuStreamCreate(&s, 0) && gpupart_stream_set(gp, second, s, &b) == -EINVAL,
	       "a stream of the first is none of the second: %s", gpupart_error(gp));
	tap_ok(gpupart_attach(gp, "cuda:2", NULL, &same) == -ENODEV, "there is no third: %s",
	       gpupart_error(gp));
}

static void child_one_of_two(void)
{
	struct gpupart_tpcset a = list("0-3"), seen;
	struct gpupart_counters x, y;
	struct program q;

	if (!tap_ok(!attach("1"), "the second in PCI order"))
		return;
	gpupart_process_set(gp, gpu, &a);
	if (!tap_ok(!program_start(&q, 0), "a context on the other"))
		return;
	gpupart_counters_get(&x);
	tap_ok(!plain(&q, NULL, &seen) && gpupart_tpcset_count(&seen) > 60,
	       "launches on the other GPU are left alone");
	gpupart_counters_get(&y);
	tap_ok(y.unconfinable_gpu > x.unconfinable_gpu, "and counted");
}

static void child_outer(void)
{
	struct gpupart_tpcset wide = list("0-9"), narrow = list("1,2"), outer = list("0-3"), seen;
	struct program p;
	int err = attach(NULL);

	if (!tap_ok(!err && !program_start(&p, 0), "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	tap_ok(!plain(&p, NULL, &seen) && gpupart_tpcset_equal(&seen, &outer),
	       "GPUPART_SET is the limit");
	tap_ok(gpupart_limit_set(gp, gpu, &wide) == -EPERM, "it cannot be widened: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_limit_set(gp, gpu, &narrow) && !plain(&p, NULL, &seen) &&
		       gpupart_tpcset_equal(&seen, &narrow),
	       "but made smaller");
	tap_ok(!gpupart_limit_set(gp, gpu, NULL) && !plain(&p, NULL, &seen) &&
		       gpupart_tpcset_equal(&seen, &outer),
	       "taken away: the outer one again");
	tap_ok(!gpupart_process_set(gp, gpu, &wide) && !plain(&p, NULL, &seen) &&
		       gpupart_tpcset_equal(&seen, &outer),
	       "no set escapes it");
	err = gpupart_verify(gp, gpu, 0, on_row, NULL);
	tap_ok(!err && nr_skip >= 2, "verify keeps inside: %d failed, %d skipped", err, nr_skip);
}

static bool only_on(struct program *p, const struct gpupart_tpcset *want)
{
	struct gpupart_tpcset seen;

	return !plain(p, NULL, &seen) && gpupart_tpcset_equal(&seen, want);
}

static void child_cap(void)
{
	struct gpupart_tpcset first = list("0-7"), cap = list("4-9"), both = list("4-7"),
			      far = list("20"), none = { { 0 } }, all;
	struct program p;
	int err = attach(NULL);

	if (!tap_ok(!err && !program_start(&p, 0), "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	tap_ok(gpupart_limit_cap(gp, gpu, NULL) == -EINVAL && *gpupart_error(gp) &&
		       gpupart_limit_cap(gp, gpu, &none) == -EINVAL,
	       "no cap without a set, nor with an empty one: %s", gpupart_error(gp));
	tap_ok(only_on(&p, &all), "and none is there");
	tap_ok(!gpupart_limit_set(gp, gpu, &far) && !gpupart_limit_cap(gp, gpu, &first) &&
		       only_on(&p, &first),
	       "a cap holds, also where the process's own limit is outside of it");
	tap_ok(!gpupart_limit_set(gp, gpu, NULL) && only_on(&p, &first),
	       "no limit set here takes it away");
	tap_ok(gpupart_limit_set(gp, gpu, &all) == -EPERM &&
		       gpupart_limit_set(gp, gpu, &cap) == -EPERM && only_on(&p, &first),
	       "nor widens it: %s", gpupart_error(gp));
	tap_ok(!gpupart_limit_cap(gp, gpu, &cap) && only_on(&p, &both), "a second narrows it");
	tap_ok(!gpupart_limit_cap(gp, gpu, &all) && only_on(&p, &both), "a wider one does not");
	tap_ok(gpupart_limit_cap(gp, gpu, &far) == -EPERM && only_on(&p, &both),
	       "one that has nothing in common: %s", gpupart_error(gp));
	setenv("GPUPART_SET", "0-30", 1);
	tap_ok(!gpupart_attach(gp, NULL, NULL, &gpu) && only_on(&p, &both),
	       "nor does a GPUPART_SET that the program sets itself");
	tap_ok(!gpupart_process_set(gp, gpu, &first) && only_on(&p, &both) &&
		       !gpupart_process_set(gp, gpu, &far) && only_on(&p, &both),
	       "and no set escapes");
}

static void *narrows(void *nr)
{
	struct gpupart_tpcset without = gpupart_topology_all(gpupart_gpu_topology(gpu));
	struct gpupart *own;

	gpupart_tpcset_del(&without, (uintptr_t)nr);
	if (gpupart_open(&own))
		return nr;
	nr = gpupart_limit_cap(own, gpu, &without) ? nr : NULL;
	gpupart_close(own);
	return nr;
}

/* With GPUPART_SET=0-40, each thread removes one TPC, and no change may be lost. */
static void child_cap_threads(void)
{
	struct gpupart_tpcset want = list("8-40");
	pthread_t thread[8];
	bool good = true;
	struct program p;
	int err = attach(NULL);

	if (!tap_ok(!err && !program_start(&p, 0), "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	for (uintptr_t i = 0; i < 8; i++)
		good &= !pthread_create(&thread[i], NULL, narrows, (void *)i);
	for (int i = 0; good && i < 8; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		good &= !failed;
	}
	tap_ok(good && only_on(&p, &want), "eight caps at once, of GPUPART_SET: all hold");
}

static void child_outer_bad(void)
{
	int e = attach(NULL);
	tap_ok(e == -EINVAL && strstr(gpupart_error(gp), "GPUPART_SET"),
	       "a bad GPUPART_SET is named: %s", gpupart_error(gp));
}

static atomic_int other_census;
static struct program shared_program;

/*
 * Each thread has a separate library context, stream and set. All threads share the GPU and the
 * CUDA context.
 */
static void *takes_census(void *words)
{
	struct gpupart_tpcset set = list(words), seen;
	struct gpupart *own;
	P stream;

	if (cuCtxSetCurrent(shared_program.ctx) || cuStreamCreate(&stream, 1) ||
	    gpupart_open(&own) || gpupart_stream_set(own, gpu, stream, &set)) {
		other_census += 1000;
		return NULL;
	}
	for (int i = 0; i < 1000; i++)
		other_census += gpupart_census(own, gpu, stream, &seen) ||
				!gpupart_tpcset_equal(&seen, &set);
	gpupart_close(own);
	return NULL;
}

static void child_census(void)
{
	static const char *const words[] = { "0-7", "20-27" };
	pthread_t thread[2];

	if (!tap_ok(!attach(NULL) && !program_start(&shared_program, 0), "attaches"))
		return;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, takes_census, (void *)(uintptr_t)words[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	tap_ok(!other_census, "2000 censuses of two threads: %d saw another's TPCs", other_census);
}

/* A program uses all thread-specific keys. The library must not write to the first key. */
static void child_no_keys(void)
{
	struct gpupart_tpcset set = list("0-3"), seen;
	pthread_key_t first, key;
	struct program p;
	char mine;

	if (!tap_ok(!pthread_key_create(&first, NULL) && !attach(NULL) && !program_start(&p, 0) &&
			    !plain(&p, (P)2, &seen), "attaches, and the driver has its key"))
		return;
	while (!pthread_key_create(&key, NULL))
		;
	pthread_setspecific(first, &mine);
	tap_ok(gpupart_stream_set(gp, gpu, (P)2, &set) == -EAGAIN,
	       "no set for a per-thread default stream: %s", gpupart_error(gp));
	tap_ok(pthread_getspecific(first) == &mine, "and no other key is written");
	tap_ok(gpupart_next_set(gp, gpu, &set) == -EAGAIN && !gpupart_next_set(gp, gpu, NULL),
	       "nor for a next launch: %s", gpupart_error(gp));
	tap_ok(!gpupart_stream_set(gp, gpu, (P)1, &set), "the legacy one has a set");
}

/* This program does not use gpupart. The injected library confines the program. */
static void program_unaware(const char *want)
{
	struct gpupart_topology *topo;
	struct gpupart_tpcset set, seen;
	struct program p;

	gpupart_open(&gp);
	if (!tap_ok(!gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo) &&
			    !driver_open() && !program_start(&p, 0),
		    "a program"))
		return;
	set = want ? list(want) : gpupart_topology_all(topo);
	tap_ok(!run_on(&p, topo, NULL, gpupart_topology_nr_sms(topo) * 2, 200000, 0, 0, &seen) &&
		       gpupart_tpcset_equal(&seen, &set),
	       "its launches ran on %u TPCs", gpupart_tpcset_count(&seen));
	gpupart_topology_close(topo);
}

static void child_injected(void) { program_unaware("5-9"); }
static void child_not_injected(void) { program_unaware(NULL); }

/* ------------------------------------------------------------------------ parent */

static const struct scenario {
	const char *name;
	void (*run)(void);
	/* NULL: every board and every generated topology; otherwise names in tests/data */
	const char *captures;
	const char *env[4];
	bool fresh_cache;
} scenarios[] = {
	{ "verify", child_verify, NULL, { NULL }, true },
	{ "verify-leaves", child_verify_leaves, "b", { NULL }, true },
	{ "moved-bit", child_moved, "e", { "GPUPART_SIM_FAULTS=move-bit=17:120" }, true },
	{ "swapped-bit", child_moved, "e", { "GPUPART_SIM_FAULTS=move-bit=17:0" }, true },
	{ "version", child_version, "b", { "GPUPART_SIM_FAULTS=tmd-version=0x41" }, true },
	{ "no-table", child_no_table, "b", { "GPUPART_SIM_FAULTS=no-table" }, true },
	{ "table-size", child_table_size, "b", { "GPUPART_SIM_FAULTS=table-size=8" }, true },
	{ "table-small", child_table_small, "b", { "GPUPART_SIM_FAULTS=table-size=48" }, true },
	{ "table-large", child_table_large, "b", { "GPUPART_SIM_FAULTS=table-size=1073741824" },
	  true },
	{ "table-72", child_other_driver, "b", { "GPUPART_SIM_FAULTS=table-size=72" }, true },
	{ "table-80", child_other_driver, "b", { "GPUPART_SIM_FAULTS=table-size=80" }, true },
	{ "table-88", child_other_driver, "b", { "GPUPART_SIM_FAULTS=table-size=88" }, true },
	{ "table-104", child_other_driver, "b", { "GPUPART_SIM_FAULTS=table-size=104" }, true },
	{ "params-none", child_params_none, "b", { "GPUPART_SIM_FAULTS=params-size=16" }, true },
	{ "params-32", child_params_32, "b", { "GPUPART_SIM_FAULTS=params-size=32" }, true },
	{ "params-odd", child_params_odd, "b", { "GPUPART_SIM_FAULTS=params-size=44" }, true },
	{ "params-large", child_params_large, "b", { "GPUPART_SIM_FAULTS=params-size=520" }, true },
	{ "no-tmd", child_no_tmd, "b", { "GPUPART_SIM_FAULTS=tmd-pointer=4096" }, true },
	{ "bad-tmd", child_no_tmd, "b", { "GPUPART_SIM_FAULTS=tmd-pointer=0x7fffffffff00" }, true },
	{ "no-tmd-40",
	  child_no_tmd_40,
	  "b",
	  { "GPUPART_SIM_FAULTS=tmd-pointer=4096,params-size=40" },
	  true },
	{ "stale-tmd", child_no_tmd, "b", { "GPUPART_SIM_FAULTS=stale-tmd" }, true },
	{ "stale-tmd-40",
	  child_no_tmd_40,
	  "b",
	  { "GPUPART_SIM_FAULTS=stale-tmd,params-size=40" },
	  true },
	{ "params-40",
	  child_other_driver,
	  "b",
	  { "GPUPART_SIM_FAULTS=table-size=88,params-size=40" },
	  true },
	{ "params-40-again",
	  child_other_driver,
	  "b",
	  { "GPUPART_SIM_FAULTS=table-size=88,params-size=40" },
	  false },
	{ "params-40-injected",
	  child_injected,
	  "b",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9",
	    "GPUPART_SIM_FAULTS=table-size=88,params-size=40" },
	  false },
	{ "params-unproven", child_unproven, "b", { "GPUPART_SIM_FAULTS=params-size=48" }, false },
	{ "params-48", child_other_driver, "b", { "GPUPART_SIM_FAULTS=params-size=48" }, true },
	{ "params-88", child_other_driver, "b", { "GPUPART_SIM_FAULTS=params-size=88" }, true },
	{ "params-104", child_other_driver, "b", { "GPUPART_SIM_FAULTS=params-size=104" }, true },
	{ "params-104-injected",
	  child_injected,
	  "b",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9",
	    "GPUPART_SIM_FAULTS=params-size=104" },
	  false },
	{ "no-callback", child_no_callback, "b", { "GPUPART_SIM_FAULTS=drop-callback" }, true },
	{ "mps", child_mps, "b", { "GPUPART_SIM_FAULTS=mps" }, true },
	{ "bad-sets", child_bad_sets, "b", { NULL }, true },
	{ "mps-cached", child_mps_cached, "b", { "GPUPART_SIM_FAULTS=mps" }, false },
	{ "changed", child_changed, "b", { "GPUPART_SIM_FAULTS=move-bit=7:70" }, false },
	{ "no-stream-pointer", child_no_pointer, "b",
	  { "GPUPART_SIM_FAULTS=no-stream-pointer" }, true },
	{ "no-stream-events", child_no_events, "b",
	  { "GPUPART_SIM_FAULTS=no-stream-events" }, true },
	{ "guards", child_guards, "b", { NULL }, true },
	{ "hangs", child_hangs, "small", { NULL }, true },
	{ "streams", child_streams, "e", { NULL }, true },
	{ "threads", child_threads, "b", { NULL }, true },
	{ "census", child_census, "b", { NULL }, true },
	{ "no-keys", child_no_keys, "b", { NULL }, true },
	{ "two-gpus", child_two_gpus, "b:e", { NULL }, true },
	{ "one-of-two", child_one_of_two, "b:e", { NULL }, true },
	{ "outer", child_outer, "b", { "GPUPART_SET=0-3" }, true },
	{ "cap", child_cap, "b", { NULL }, true },
	{ "cap-threads", child_cap_threads, "b", { "GPUPART_SET=0-40" }, true },
	{ "outer-bad", child_outer_bad, "b", { "GPUPART_SET=0-99" }, true },
	{ "injected",
	  child_injected,
	  "b",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9" },
	  false },
	{ "preloaded",
	  child_injected,
	  "b",
	  { "LD_PRELOAD=@inject", "CUDA_INJECTION64_PATH=/nowhere.so", "GPUPART_SET=5-9",
	    "GPUPART_LOG=/dev/null" },
	  false },
	{ "unchecked",
	  child_not_injected,
	  "c",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9", "GPUPART_LOG=/dev/null" },
	  true },
	{ "disabled",
	  child_not_injected,
	  "b",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9", "GPUPART_DISABLE=1" },
	  false },
};

static char build[2048], cache[64];

static void run_child(const char *self, const struct scenario *s, const char *what, const char *sim)
{
	char line[1024], path[4096];
	int fd[2], status, planned = 0, failed = tap_failed;
	FILE *out;
	pid_t pid;

	if (s->env[0] && !strcmp(s->env[0], "LD_PRELOAD=@inject") && strpbrk(build, " \t:")) {
		tap_skip("%s %s: LD_PRELOAD takes no path with a blank or colon", s->name, what);
		return;
	}
	if (s->fresh_cache) {
		snprintf(path, sizeof(path), "rm -rf %s/gpupart", cache);
		if (system(path))
			return;
	}
	if (pipe(fd))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		unsetenv("GPUPART_SET");
		unsetenv("CUDA_VISIBLE_DEVICES");
		snprintf(path, sizeof(path), "%s/lib/gpupart/sim", build);
		setenv("LD_LIBRARY_PATH", path, 1);
		setenv("GPUPART_SIM", sim, 1);
		setenv("XDG_CACHE_HOME", cache, 1);
		for (int i = 0; i < 4 && s->env[i]; i++) {
			const char *eq = strchr(s->env[i], '=');

			snprintf(path, sizeof(path), "%.*s", (int)(eq - s->env[i]), s->env[i]);
			if (!strcmp(eq + 1, "@inject")) {
				char lib[4096];

				snprintf(lib, sizeof(lib), "%s/lib/gpupart/libgpupart-inject.so",
					 build);
				setenv(path, lib, 1);
			} else {
				setenv(path, eq + 1, 1);
			}
		}
		execl(self, self, s->name, (char *)NULL);
		_exit(126);
	}
	close(fd[1]);
	out = fdopen(fd[0], "r");
	while (fgets(line, sizeof(line), out)) {
		char *text = strstr(line, " - ");

		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "1..", 3))
			planned = 1;
		else if (text && (!strncmp(line, "ok ", 3) || !strncmp(line, "not ok ", 7)))
			tap_ok(line[0] == 'o', "%s %s: %s", s->name, what, text + 3);
		else
			printf("# %s %s: %s\n", s->name, what, line);
	}
	fclose(out);
	waitpid(pid, &status, 0);
	if (!planned)
		tap_ok(0, "%s %s: ended with status %#x before its plan", s->name, what, status);
	else if (status && failed == tap_failed)
		tap_ok(0, "%s %s: ended with status %#x although no check failed", s->name, what,
		       status);
}

static void run_scenario(const char *self, const struct scenario *s)
{
	char sim[8192] = "", path[4096];
	glob_t found;

	if (!s->captures) {
		for (char board = 'b'; board <= 'g'; board++) {
			snprintf(path, sizeof(path), "tests/data/gh100-h200-%c/capture.txt", board);
			run_child(self, s, path + 11, path);
		}
		snprintf(path, sizeof(path), "%s/tests/generated/*.capture", build);
		if (!tap_ok(!glob(path, 0, NULL, &found) && found.gl_pathc >= 20,
			    "generated topologies are there"))
			return;
		for (size_t i = 0; i < found.gl_pathc; i++)
			run_child(self, s, strrchr(found.gl_pathv[i], '/') + 1, found.gl_pathv[i]);
		globfree(&found);
		return;
	}
	if (!strcmp(s->captures, "small")) {
		snprintf(sim, sizeof(sim), "%s/tests/generated/03.capture", build);
	} else {
		for (const char *c = s->captures; *c; c++)
			if (*c != ':')
				snprintf(sim + strlen(sim), sizeof(sim) - strlen(sim),
					 "%stests/data/gh100-h200-%c/capture.txt",
					 sim[0] ? ":" : "", *c);
	}
	run_child(self, s, s->captures, sim);
}

int main(int argc, char **argv)
{
	char self[2048];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	for (unsigned int i = 0; argc == 2 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (!strcmp(scenarios[i].name, argv[1]) && getenv("GPUPART_SIM")) {
			scenarios[i].run();
			return tap_done();
		}
	if (len < 0)
		return 1;
	self[len] = 0;
	snprintf(build, sizeof(build), "%s", self);
	*strrchr(build, '/') = 0;
	*strrchr(build, '/') = 0;
	strcpy(cache, "/tmp/gpupart-test-XXXXXX");
	if (!mkdtemp(cache))
		return 1;
	for (unsigned int i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (argc < 2 || !strcmp(scenarios[i].name, argv[1]))
			run_scenario(self, &scenarios[i]);
	snprintf(self, sizeof(self), "rm -rf %s", cache);
	if (system(self))
		return 1;
	return tap_done();
}
