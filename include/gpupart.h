/* SPDX-License-Identifier: MIT */
/*
 * libgpupart: which TPCs of an NVIDIA GPU a kernel launch may use.
 *
 * Index spaces. A `tpc` is a logical number, dense, 0 .. nr_tpcs-1, in the order
 * the work distributor counts them; on GPUs with two SMs a TPC it owns SMs 2*tpc
 * and 2*tpc+1 as %smid shows them. A `gpc` is logical too (dense, after
 * floorsweeping). A `vgpc` is the virtual GPC that thread block clusters obey
 * (Hopper and later). Every set in this interface is a set of *allowed* TPCs.
 *
 * Errors. A function returns 0 or a negative errno unless it says otherwise; where
 * it takes a context, gpupart_error() then holds one sentence with the object and
 * the value in it. A function that returns no int cannot fail unless it says otherwise.
 * The library never prints and never exits.
 *
 * Pointers. Objects (struct gpupart, gpupart_gpu, gpupart_topology, gpupart_remote) and
 * places for results must be valid; NULL is for a function that says so, and harmless to
 * the _close functions. A set or a string that is NULL where that means nothing is -EINVAL;
 * to the functions on sets that cannot fail they must be valid.
 *
 * Threads. A context (struct gpupart) is for one thread at a time; open one a
 * thread. Topologies and sets are plain values or immutable and may be shared.
 * Each function may be called by any thread, with a context of its own, unless it says
 * otherwise; also while other threads launch.
 *
 * Ownership. Arguments are read during the call and not kept. A result that is a pointer says
 * who owns it. Sizes of memory are bytes, times are nanoseconds.
 */
#ifndef GPUPART_H
#define GPUPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gpupart_tpcset.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ------------------------------------------------------------------ context */

struct gpupart;

/* Opens a context, the caller's to close. -ENOMEM is the only failure. */
int gpupart_open(struct gpupart **gp);

/* Closes it. What was set on GPUs, streams and launches stays in force. */
void gpupart_close(struct gpupart *gp);

/*
 * The sentence of the last call on @gp that failed, "" before the first. It is
 * @gp's own and lives until the next call on it.
 */
const char *gpupart_error(const struct gpupart *gp);

/* The library's version, "MAJOR.MINOR.PATCH". A constant string. */
const char *gpupart_version(void);

/* --------------------------------------------------------------------- sets */

/* The longest list form: "0,2,4,..,254" and its terminating 0 fit. */
#define GPUPART_TPCSET_STRLEN 1024

/*
 * List form as taskset(1) has it: "0,5,8-11", stride "0-10:2"; any order,
 * overlap allowed; no blanks. Numbers 0 .. 255. The empty string is an empty
 * list and refused. @gp may be NULL (no sentence is kept then).
 * -EINVAL: the sentence names the bad piece.
 */
int gpupart_tpcset_parse_list(struct gpupart *gp, const char *text, struct gpupart_tpcset *set);

/*
 * Writes the canonical list ("0-7,16", "" for the empty set). Returns the length without the
 * terminating 0, or -ENOSPC where @len is too small; GPUPART_TPCSET_STRLEN always fits.
 */
int gpupart_tpcset_format_list(const struct gpupart_tpcset *set, char *text, size_t len);

/* ----------------------------------------------------------------- topology */

struct gpupart_topology;

/* What is known of the GPU itself. Unknown strings are "", unknown numbers -1 or 0 as said. */
struct gpupart_gpu_info {
	char name[64];		/* "NVIDIA H200" */
	/*
	 * A GPU's identity: "0000:0d:00.0", lower case. An integrated GPU is not on PCI: it is
	 * named as its platform device, "17000000.gpu".
	 */
	char pci[20];
	char uuid[48];		/* "GPU-xxxxxxxx-..." */
	char driver[32];	/* "580.159.04" */
	char source[512];	/* "rm", "kernel", or the capture's path */
	char origin[160];	/* of a capture: who captured it and how */
	uint32_t chip_id;	/* BOOT_42 bits 29:20, 0x180 is GH100; 0 unknown */
	int mig;		/* 1 on, 0 off, -1 unknown */
	unsigned int max_gpcs;		/* design maximum before floorsweeping; 0 unknown */
	unsigned int max_tpcs_per_gpc;	/* likewise */
	bool simulated;		/* the simulated driver answers for this GPU */
};

#define GPUPART_MAX_SMS_PER_TPC 4

/* One TPC. An index that the source does not know is -1. */
struct gpupart_tpc {
	int gpc;		/* logical GPC */
	int tpc_in_gpc;		/* dense within the logical GPC */
	int vgpc;		/* virtual GPC; singletons have ids of their own */
	int tpc_in_vgpc;	/* NVIDIA: migratable TPC id; 0 for a singleton */
	int cpc;		/* physical CPC within the GPC */
	int ugpu;		/* the half of the L2 it is near to */
	int measured_bit;	/* of a capture: the TMD bit seen to remove it */
	unsigned int nr_sms;
	unsigned int sms[GPUPART_MAX_SMS_PER_TPC];	/* as %smid */
};

/* One logical GPC. */
struct gpupart_gpc {
	int gpc_phys;		/* fuse index; -1 unknown */
	uint32_t present_tpcs;	/* physical TPCs that are there, bit = fuse index; 0 unknown */
	int ugpu;		/* -1 unknown */
	struct gpupart_tpcset tpcs;
};

/* What these return belongs to @topo and lives as long. */
const struct gpupart_gpu_info *gpupart_topology_info(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_tpcs(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_gpcs(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_sms(const struct gpupart_topology *topo);
/* NULL where @tpc (0 .. nr_tpcs-1) or @gpc (0 .. nr_gpcs-1) is not there. */
const struct gpupart_tpc *gpupart_topology_tpc(const struct gpupart_topology *topo,
					       unsigned int tpc);
const struct gpupart_gpc *gpupart_topology_gpc(const struct gpupart_topology *topo,
					       unsigned int gpc);
/* The set of all its TPCs. */
struct gpupart_tpcset gpupart_topology_all(const struct gpupart_topology *topo);

/*
 * A set in words: terms joined by "+", each "LIST" or "tpc:LIST", "gpc:LIST",
 * "ugpu:LIST" or "hex:MASK"; "gpc:1,2+40-43". Numbers are logical TPCs, logical GPCs and uGPUs.
 * -EINVAL with the value named: syntax, a TPC, GPC or uGPU that is not there, an empty result.
 */
int gpupart_set_parse(struct gpupart *gp, const struct gpupart_topology *topo,
		      const char *words, struct gpupart_tpcset *set);

/* Blocks of the largest cluster that CUDA lets a program launch on every GPU that has clusters. */
#define GPUPART_PORTABLE_CLUSTER 8

/*
 * The blocks of the largest cluster that @set holds: an SM each, all in one virtual GPC. A launch
 * of a larger one is given more TPCs than @set. Where virtual GPCs are not told, GPCs count as
 * such, and the result is the most that it can be.
 */
unsigned int gpupart_set_cluster(const struct gpupart_topology *topo,
				 const struct gpupart_tpcset *set);

/* ---------------------------------------------------- launches of this process */

struct gpupart_gpu;

/* What becomes of launches that cannot be confined. */
enum gpupart_unconfined {
	GPUPART_UNCONFINED_RUN,		/* they run, and struct gpupart_counters counts them */
	/*
	 * The calls of the driver that launch fail with 800 (operation not permitted): after the
	 * first launch outside of the limit; where gpupart_attach() fails at once, and then
	 * contexts cannot be made either. For the rest of the process.
	 */
	GPUPART_UNCONFINED_FAIL,
};

/* Begin with all zero and set @size: what is added here later has 0 for "as before". */
struct gpupart_attach_options {
	size_t size;			/* sizeof(struct gpupart_attach_options) */
	unsigned int unconfined;	/* enum gpupart_unconfined */
	/*
	 * 1: one tool that subscribes to the driver after the first attach (CUPTI, and so
	 * torch.profiler) gets its callbacks through this library's; GPUPART_PROFILE=1 does the
	 * same. 0: the driver refuses it. Where the driver's table cannot be replaced it is refused
	 * all the same: `gpupart doctor` says so. Source: Documentation/internals/hardware.md.
	 */
	unsigned int profilers;
	/*
	 * 1: no kernel launches another one from the GPU, where no set would hold it: calls that
	 * load a module whose kernels can fail with 800 (operation not permitted), for the rest of
	 * the process, and so do launches of one that is loaded already and was seen to be. The
	 * same as GPUPART_NO_DEVICE_LAUNCH=1; gpupart-device-launches(7) has how such a module is
	 * recognised. -EOPNOTSUPP where the driver does not tell of modules.
	 */
	unsigned int no_device_launch;
};

/*
 * Gets ready to confine this process's launches on one GPU: opens libcuda.so.1,
 * reads the topology, subscribes to the driver's launch callback and makes sure
 * that the mask bits are known to be right on this GPU (a few short launches on a
 * stream of its own the first time; see gpupart_gpu_check()). Calls cuInit and
 * uses the current context if it is on that GPU, else retains its primary one.
 * @gpu: an index in PCI order ("0"), a PCI address, a UUID, or "cuda:N" for CUDA's own device
 * number; NULL is CUDA's device 0. @gp may be NULL: no sentence is kept. @options may be NULL: all
 * zero. -EINVAL options that are too short or have a value that is none; -E2BIG: longer than this
 * library's, and what it does not know is not 0.
 * Attaching twice gives the same object. It lives as long as the process.
 * -ENOENT no libcuda.so.1, -EOPNOTSUPP a driver without the callback, an unknown
 * chip or TMD version, MIG on, or MPS where the bits were not checked before,
 * -ECANCELED with GPUPART_DISABLE=1 in the environment, -EBUSY where a profiler (CUPTI)
 * has the driver's one place for a tool, or options.profilers in a process that is attached
 * without, or, the first time on this GPU, while a blocking
 * stream of the context is captured, which reading the launches' records would spoil (again
 * later is no harm; a capture that another thread begins meanwhile is not seen),
 * -EPROTO mask bits that do not mean on this GPU what the table says, or that could
 * not be proven (the sentence names the TPC), -ENODEV no such GPU.
 */
int gpupart_attach(struct gpupart *gp, const char *gpu,
		   const struct gpupart_attach_options *options, struct gpupart_gpu **attached);

/*
 * Whether @gpu (as above) can be attached: 0, or the error that gpupart_attach() would return
 * before its first launch, -ENOENT, -EOPNOTSUPP, -ECANCELED, -EBUSY or -ENODEV, with the sentence;
 * -ESHUTDOWN after gpupart_detach(). Calls cuInit; changes nothing that launches.
 */
int gpupart_available(struct gpupart *gp, const char *gpu);

/*
 * Gives the driver's one place for a tool back: a profiler can have it. Launches of this process
 * are not confined from now on, on any GPU; one that another thread makes meanwhile is confined
 * or not. The sets of streams, functions and of the process and its own limit are gone, and no
 * set can be given (-EOPNOTSUPP); sets of threads have no effect. GPU objects stay valid. It is
 * for ever: what happens from now on is not seen, so gpupart_attach() is -ESHUTDOWN. 0 also
 * where nothing was attached. -EPERM a limit from outside, or a strict process; -EBUSY a memory
 * quota or a measurement needs the place, or a profiler that was let in is subscribed; -EIO the
 * driver keeps it.
 */
int gpupart_detach(struct gpupart *gp);

/* The topology it was attached with; the library's, do not close. */
const struct gpupart_topology *gpupart_gpu_topology(const struct gpupart_gpu *gpu);

/*
 * Which set applies to a launch: limit AND (next launch, else function, else stream,
 * else thread, else process, else all). A NULL @set takes that scope's set away. An
 * empty set and a TPC that is not there are -EINVAL. Sets take effect at the next
 * launch. At most 50 ns each (the first of a stream, function or thread apart). A limit
 * that came from outside (GPUPART_SET, as `gpupart run` sets it) is taken at the first
 * attach and can only be made smaller here: -EPERM.
 *
 * Graphs. A node is built once and launched many times. A graph launch has the sets of
 * the stream that it is launched into, else of the one that it was captured on, else the
 * thread's, else the process's; functions have their own, and a next-launch set goes before
 * both, for all its nodes. The stream of a capture is the one that it began on, with the
 * set that it has at the launch, or had when it went; after cuGraphExecUpdate it is that of
 * the graph updated to. What cuGraphClone makes of a captured graph, a graph that holds one
 * as a child, and one that was captured before the process attached its first GPU (early or
 * not) count as not captured: nothing told of them.
 * Where other sets apply than it was built for, the library instantiates the graph once more:
 * an executable graph stays built for the last four sets (GPUPART_GRAPH_SETS in the environment
 * says 1 to 3, for less memory: each takes as much as the program's own), and a launch under one
 * of them takes that variant in place of the program's handle. As before, launches of one graph
 * do not overlap, and changes of it reach all variants. A launch into a stream of another
 * context, or a node enabled or disabled, takes the variants away for good; while a profiler is
 * let in there are none.
 * For a fifth set, or where there are no variants, the driver is made to build the nodes
 * again first (1.4 to 2 us a node); each executable graph keeps a clone of its graph for
 * both (1 us a node when it is instantiated). It cannot be made to for graphs that
 * cuGraphClone refuses (conditional nodes, memory nodes), that were instantiated before the
 * GPU was attached, or changed in a way that cannot be repeated on the clone: at host, event,
 * semaphore or child graph nodes, at nodes inside a child graph, at any node by
 * cuGraphExecNodeSetParams or after cuGraphExecUpdate to another graph than the one it was
 * instantiated from (a later cuGraphExecUpdate of the whole makes a new clone). Those keep
 * the set of their last build, and each launch counts in graphs_stale; so does one of a graph
 * in which a single node takes no change, whose others are built again.
 */
int gpupart_limit_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		      const struct gpupart_tpcset *set);
int gpupart_process_set(struct gpupart *gp, struct gpupart_gpu *gpu,
			const struct gpupart_tpcset *set);

/*
 * @stream: a live CUstream (or cudaStream_t) of this GPU. 0 and 1 are the legacy
 * default stream of the current context and 2 the calling thread's per-thread
 * default stream; the first set on one of those three makes one empty launch on
 * it (-EBUSY during a stream capture). A set goes away with its stream.
 * -EINVAL a stream handle that is none, -EOPNOTSUPP where streams cannot be told
 * apart on this driver, -ENOSPC more than 4096 streams with sets. To take away (NULL)
 * what a handle does not have is no error, also of a stream that went, or of none.
 */
int gpupart_stream_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		       const struct gpupart_tpcset *set);

/*
 * @function: a CUfunction or CUkernel: every launch of it on @gpu, from any stream and
 * thread, in the context whose function it is (of a CUkernel: the current one, of a thread
 * without one the GPU's primary context). A CUfunction of another GPU's context is not
 * told apart: it is never launched on @gpu. The set goes away with its module. -EINVAL no
 * function, -ENOSPC more than 4096 functions with sets, -EOPNOTSUPP a driver before
 * CUDA 11.
 */
int gpupart_function_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *function,
			 const struct gpupart_tpcset *set);

/*
 * Every launch on @gpu of the functions whose name matches the shell pattern @pattern (fnmatch(3),
 * no flags; at most 255 bytes), as if each had been given @set by gpupart_function_set(); one that
 * was keeps that. The name is the driver's, which is mangled for C++; or its qualified name
 * without arguments, "at::native::copy_kernel". Of the process's rules, at most 32 on a GPU, the
 * first that matches holds, in the order in which they came. A pattern that is there gets @set
 * in its place; NULL takes it away, and of @pattern NULL all. Holds from the next launch on;
 * names are asked for once a function.
 *
 * In the environment of `gpupart run --rule` the same is there from the start, and inherited. A
 * kernel that needs all its blocks resident at once and is not launched as a cooperative one
 * never ends in a set that is too small for it: gpupart cannot see that.
 *
 * -EINVAL no pattern, -ENOSPC too many, -EOPNOTSUPP a driver before CUDA 12.3, or one that does
 * not tell of launches.
 */
int gpupart_rule_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
		     const struct gpupart_tpcset *set);

/* Every launch that the calling thread makes on @gpu, until it ends. -ENOMEM, -EAGAIN. */
int gpupart_thread_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		       const struct gpupart_tpcset *set);

/*
 * The calling thread's next launch on @gpu, once: of a kernel (or graph) of the
 * program's, not one with which the driver fills or copies. A launch that fails, or
 * becomes a graph's node, uses it up without effect (next_dropped). One waits on each
 * GPU: a launch on another, or a set for it, leaves it alone. But a launch that fails as it
 * names no live stream, function or context (CUDA's 400, 201, 709), so that nobody knows for
 * which GPU it was meant, uses up those on all. The process's first one makes
 * an empty launch on a stream of its own. -ENOMEM, -EAGAIN, -EOPNOTSUPP on a driver that does
 * not tell of launches by the names we know: where a program's own launch is the first to
 * show that, it uses up what waits, as one that fails does.
 */
int gpupart_next_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		     const struct gpupart_tpcset *set);

/*
 * Has the executable graph @exec (a CUgraphExec, or cudaGraphExec_t), of the current context on
 * @gpu, built for each of the @nr (at most 4) @sets beforehand, and uploads it, in @stream, as
 * cuGraphUpload does. Afterwards a launch for one of them, whether it is the set of its stream, its
 * thread, the process or the launch, builds nothing; the limit in force, and sets of functions, are
 * part of what it is built for. While no other thread launches it. See "Graphs" above.
 * -EINVAL no such graph, a set that is none, -EBUSY @stream is being captured, -EOPNOTSUPP more
 * sets than it stays built for: one where it has no variants, -EIO the driver refused.
 */
int gpupart_graph_prepare(struct gpupart *gp, struct gpupart_gpu *gpu, void *exec, void *stream,
			  const struct gpupart_tpcset *sets, unsigned int nr);

/* What is in force; false (and all TPCs in @set) where the scope has none. */
bool gpupart_limit_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
bool gpupart_process_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
bool gpupart_stream_get(struct gpupart_gpu *gpu, void *stream, struct gpupart_tpcset *set);
bool gpupart_function_get(struct gpupart_gpu *gpu, void *function, struct gpupart_tpcset *set);
bool gpupart_thread_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);

/*
 * From now on (@on) the program is told the SMs of @gpu's limit AND process set where it
 * asks the driver, or the runtime, which asks the driver: the number of SMs (attributes,
 * properties, cuDeviceGetDevResource and cuCtxGetDevResource, affinity) and occupancy (the
 * grid that fills the GPU, the largest cluster, how many clusters run at once). The sets in
 * force at the time of the question count; of several GPUs each has its own. Programs that
 * size their grids by it then size them to the partition: a cooperative grid need not be
 * widened, and blocks that wait for each other without being one do not wait for ever.
 * Off at first. -EOPNOTSUPP on a driver that does not tell of its functions.
 *
 * Not told: NVML and nvidia-smi; %nsmid in a kernel; sets of streams, functions, threads
 * and next launches. Most programs ask once and remember (PyTorch for each GPU): they do
 * not learn of a set that is changed afterwards. A GPU's SMs as a resource (CUdevResource) are
 * rounded down to the driver's unit, 8 SMs: it can be parted, and each green context gets as many
 * SMs as its part has. Below 8 SMs the number is exact, and the driver refuses to part it.
 */
int gpupart_sm_count_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/* Whether the program is told so; *nr_sms is the number of SMs that it would be told now. */
bool gpupart_sm_count_get(struct gpupart_gpu *gpu, unsigned int *nr_sms);

/* What became of this process's launches since it attached, on all its GPUs. */
struct gpupart_counters {
	uint64_t launches;	/* launch callbacks seen */
	uint64_t confined;	/* exactly to what the scopes asked for */
	uint64_t widened_empty;	/* limit AND set left nothing: the limit alone */
	uint64_t widened_driver; /* the driver's own mask left nothing of it: that alone */
	uint64_t widened_cluster; /* no virtual GPC of the set held a cluster */
	uint64_t widened_cooperative; /* the set could not hold the grid at once */
	uint64_t unconfinable_version; /* unknown TMD version or launch type */
	uint64_t unconfinable_map;	/* mask bits not proven on this GPU */
	/*
	 * Launch on a GPU that was not attached; or, where CUDA shows several, in a context
	 * that is not current then, nor was at an attach or launch, and in which no stream was
	 * made or given a set, and no module loaded, since the attach: its GPU is not known.
	 */
	uint64_t unconfinable_gpu;
	uint64_t graphs_reapplied; /* graph launches whose nodes were built for their set first */
	uint64_t graphs_stale;	/* graph launches whose nodes kept an earlier set */
	uint64_t next_dropped;	/* next-launch sets whose launch failed, was captured or unknown */
	/*
	 * Launches, counted above as well, of kernels whose module can launch kernels from
	 * the GPU: those are not confined, and whether there were any is not known. A node
	 * of a graph counts when it is built, at the graph's first launch, not at each.
	 * Modules that were loaded before the GPU was attached are not seen.
	 */
	uint64_t device_launches;
};
void gpupart_counters_get(struct gpupart_counters *counters);

/*
 * Report this program's progress to `gpupart qos`, which chooses its sets: @units of work that
 * were done (images, tokens, steps; 0 is no report), or the @ns that one request took. A call takes
 * some 30 ns, since it reads the clock. Also before the process attaches a GPU or is published;
 * others see the reports from then on. The child of a fork counts from 0.
 */
void gpupart_progress_add(uint64_t units);
void gpupart_latency_report(uint64_t ns);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_H */
