/* SPDX-License-Identifier: MIT */
/*
 * libgpupart: controls which TPCs of an NVIDIA GPU a kernel launch may use.
 *
 * Index spaces. A `tpc` is a logical number, 0 to nr_tpcs-1 without gaps, in the order in which
 * the work distributor counts TPCs. On GPUs with two SMs per TPC, TPC t owns SMs 2*t and 2*t+1,
 * numbered as in the PTX register %smid. A `gpc` is a logical number too, without gaps after
 * floorsweeping. A `vgpc` is a virtual GPC: all blocks of a thread block cluster run in one
 * virtual GPC (Hopper and later). Every set in this interface is a set of *allowed* TPCs.
 *
 * Errors. Unless its comment says otherwise, a function returns 0 or a negative errno. If it
 * takes a context, gpupart_error() then returns one sentence that names the object and the
 * value. A function that does not return int cannot fail, unless its comment says otherwise.
 * The library never prints and never exits.
 *
 * Pointers. Pointers to objects (struct gpupart, gpupart_gpu, gpupart_topology, gpupart_remote)
 * and to results must be valid. Pass NULL only where the comment allows it; the _close
 * functions accept NULL. If a set or a string is NULL and the comment gives that no meaning,
 * the function returns -EINVAL. Functions on sets that cannot fail require valid pointers.
 *
 * Threads. Only one thread at a time may use a context (struct gpupart): open one for each
 * thread. Topologies and sets do not change behind the caller's back and may be shared. Any
 * thread may call any function with its own context, also while other threads launch, unless
 * the comment says otherwise.
 *
 * Ownership. The library reads arguments during the call and does not keep them. For each
 * result that is a pointer, the comment says who owns it. Memory sizes are in bytes, times in
 * nanoseconds.
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

/* Opens a context, which the caller must close. The only error is -ENOMEM. */
int gpupart_open(struct gpupart **gp);

/* Closes the context. Sets of GPUs, streams and launches stay in force. */
void gpupart_close(struct gpupart *gp);

/*
 * The error sentence of the last call on @gp that failed, or "" if none has failed. The string
 * belongs to @gp and is valid until the next call on it.
 */
const char *gpupart_error(const struct gpupart *gp);

/* The library's version, "MAJOR.MINOR.PATCH", a constant string. */
const char *gpupart_version(void);

/* --------------------------------------------------------------------- sets */

/* The buffer size for the longest list form, "0,2,4,..,254", with its terminating 0. */
#define GPUPART_TPCSET_STRLEN 1024

/*
 * Parses the list form of taskset(1): "0,5,8-11", or with a stride "0-10:2". Items may overlap
 * and stand in any order; blanks are not allowed. Numbers are 0 to 255. An empty string is an
 * error. @gp may be NULL; then no error sentence is stored. -EINVAL: the error sentence names
 * the item that is wrong.
 */
int gpupart_tpcset_parse_list(struct gpupart *gp, const char *text, struct gpupart_tpcset *set);

/*
 * Writes the canonical list form: "0-7,16", or "" for the empty set. Returns the length without
 * the terminating 0, or -ENOSPC if @len is too small. GPUPART_TPCSET_STRLEN bytes are always
 * enough.
 */
int gpupart_tpcset_format_list(const struct gpupart_tpcset *set, char *text, size_t len);

/* ----------------------------------------------------------------- topology */

struct gpupart_topology;

/*
 * Properties of a GPU. An unknown string is ""; the comments below give the values of unknown
 * numbers.
 */
struct gpupart_gpu_info {
	char name[64];		/* "NVIDIA H200" */
	/*
	 * The GPU's address, its identity in this interface: "0000:0d:00.0", in lower case. An
	 * integrated GPU is not on PCI; its address is the name of its platform device,
	 * "17000000.gpu".
	 */
	char pci[20];
	char uuid[48];		/* "GPU-xxxxxxxx-..." */
	char driver[32];	/* "580.159.04" */
	char source[512];	/* "rm", "kernel", or the path of the capture */
	char origin[160];	/* of a capture: who captured it, and how */
	uint32_t chip_id;	/* BOOT_42 bits 29:20; 0x180 is GH100; 0: unknown */
	int mig;		/* 1: on, 0: off, -1: unknown */
	unsigned int max_gpcs;		/* of the design, before floorsweeping; 0: unknown */
	unsigned int max_tpcs_per_gpc;	/* of the design; 0: unknown */
	bool simulated;		/* the simulated driver provides this GPU */
};

#define GPUPART_MAX_SMS_PER_TPC 4

/* One TPC. An index is -1 if the source does not report it. */
struct gpupart_tpc {
	int gpc;		/* logical GPC */
	int tpc_in_gpc;		/* number within the logical GPC, without gaps */
	int vgpc;		/* virtual GPC; each singleton has its own number */
	int tpc_in_vgpc;	/* number in the virtual GPC (NVIDIA: migratable TPC id) */
	int cpc;		/* physical CPC within the GPC */
	int ugpu;		/* the half of the L2 cache that is near */
	int measured_bit;	/* of a capture: the TMD bit that disabled this TPC */
	unsigned int nr_sms;
	unsigned int sms[GPUPART_MAX_SMS_PER_TPC];	/* numbered as in %smid */
};

/* One logical GPC. */
struct gpupart_gpc {
	int gpc_phys;		/* index in the fuses; -1: unknown */
	uint32_t present_tpcs;	/* bit i: physical TPC with fuse index i is present; 0: unknown */
	int ugpu;		/* -1: unknown */
	struct gpupart_tpcset tpcs;
};

/* The results belong to @topo and are valid as long as @topo is. */
const struct gpupart_gpu_info *gpupart_topology_info(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_tpcs(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_gpcs(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_sms(const struct gpupart_topology *topo);
/* NULL if @tpc is not in 0 .. nr_tpcs-1, or @gpc not in 0 .. nr_gpcs-1. */
const struct gpupart_tpc *gpupart_topology_tpc(const struct gpupart_topology *topo,
					       unsigned int tpc);
const struct gpupart_gpc *gpupart_topology_gpc(const struct gpupart_topology *topo,
					       unsigned int gpc);
/* The set of all TPCs of @topo. */
struct gpupart_tpcset gpupart_topology_all(const struct gpupart_topology *topo);

/*
 * Parses the text form of a set: terms joined by "+". A term is "LIST", "tpc:LIST", "gpc:LIST",
 * "ugpu:LIST" or "hex:MASK", for example "gpc:1,2+40-43". The numbers are logical TPCs, logical
 * GPCs and uGPUs. -EINVAL: a syntax error, a TPC, GPC or uGPU that does not exist, or an empty
 * result. The error sentence names the value.
 */
int gpupart_set_parse(struct gpupart *gp, const struct gpupart_topology *topo,
		      const char *words, struct gpupart_tpcset *set);

/* The largest cluster, in blocks, that CUDA guarantees on every GPU that supports clusters. */
#define GPUPART_PORTABLE_CLUSTER 8

/*
 * The size in blocks of the largest cluster that fits into @set: one SM for each block, all in
 * one virtual GPC. A launch with larger clusters is given more TPCs than @set. If the source
 * does not report virtual GPCs, GPCs are used instead, and the result is an upper bound.
 */
unsigned int gpupart_set_cluster(const struct gpupart_topology *topo,
				 const struct gpupart_tpcset *set);

/* ---------------------------------------------------- launches of this process */

struct gpupart_gpu;

/* What to do about launches that cannot be confined. */
enum gpupart_unconfined {
	GPUPART_UNCONFINED_RUN,		/* run them; struct gpupart_counters counts them */
	/*
	 * Make the driver's launch functions fail with CUDA error 800 (operation not permitted)
	 * for the rest of the process, after the first launch that leaves the limit. If
	 * gpupart_attach() fails, they fail at once, and so does the creation of contexts.
	 */
	GPUPART_UNCONFINED_FAIL,
};

/*
 * Set all members to 0 and then @size. In members that are added later, 0 keeps the old
 * behaviour.
 */
struct gpupart_attach_options {
	size_t size;			/* sizeof(struct gpupart_attach_options) */
	unsigned int unconfined;	/* enum gpupart_unconfined */
	/*
	 * 1: one tool that subscribes to the driver after the first attach (CUPTI, and
	 * therefore torch.profiler) receives its callbacks through this library. The
	 * environment variable GPUPART_PROFILE=1 has the same effect. 0: the driver refuses
	 * such a tool. If the driver's function table cannot be replaced, the driver refuses
	 * the tool in both cases; `gpupart doctor` reports that. Source:
	 * Documentation/internals/hardware.md.
	 */
	unsigned int profilers;
	/*
	 * 1: refuse kernels that launch other kernels from the GPU, because no set confines
	 * those launches. For the rest of the process, loading a module with such a kernel
	 * fails with CUDA error 800 (operation not permitted), and so do launches of such
	 * kernels in modules that are already loaded and were recognised.
	 * GPUPART_NO_DEVICE_LAUNCH=1 has the same effect; gpupart-device-launches(7) explains
	 * how such modules are recognised. -EOPNOTSUPP if the driver does not report module
	 * loads.
	 */
	unsigned int no_device_launch;
};

/*
 * Prepares to confine this process's launches on one GPU. Opens libcuda.so.1, reads the
 * topology, subscribes to the driver's launch callback and checks the mask bits of this GPU
 * (see gpupart_gpu_check()): the first check makes a few short launches on a private stream.
 * Calls cuInit. Uses the current context if it is on that GPU, and otherwise retains the GPU's
 * primary context.
 *
 * @gpu: an index in PCI order ("0"), a PCI address, a UUID, or "cuda:N" with CUDA's own device
 * number. NULL is CUDA's device 0.
 * @gp: may be NULL; then no error sentence is stored.
 * @options: may be NULL, which means all zero.
 *
 * Attaching a GPU again returns the same object. It lives as long as the process.
 *
 * -ENOENT: libcuda.so.1 was not found. -ENODEV: no such GPU. -EOPNOTSUPP: the driver has no
 * launch callback, the chip or TMD version is unknown, MIG is on, or the process runs under MPS
 * and the bits were not checked before. -ECANCELED: GPUPART_DISABLE=1 is in the environment.
 * -EBUSY: a profiler (CUPTI) is subscribed to the driver, which accepts one tool; or
 * options.profilers is set, but the process was attached without it; or a blocking stream of
 * the context is being captured during the first attach of this GPU, and reading launch records
 * would invalidate the capture. In that case try again later. A capture that another thread
 * begins during the call is not detected. -EPROTO: the mask bits of this GPU differ from the
 * table or could not be proven; the error sentence names the TPC. -EINVAL: @options is too
 * short or holds an invalid value. -E2BIG: @options is longer than this library's struct, and a
 * member that the library does not know is not 0.
 */
int gpupart_attach(struct gpupart *gp, const char *gpu,
		   const struct gpupart_attach_options *options, struct gpupart_gpu **attached);

/*
 * Tests whether @gpu (as in gpupart_attach()) can be attached. Returns 0, or the error that
 * gpupart_attach() would return before its first launch: -ENOENT, -EOPNOTSUPP, -ECANCELED,
 * -EBUSY or -ENODEV, with the error sentence. -ESHUTDOWN after gpupart_detach(). Calls cuInit;
 * does not affect launches.
 */
int gpupart_available(struct gpupart *gp, const char *gpu);

/*
 * Ends the library's subscription to the driver, so that a profiler can subscribe. From now on
 * no launch of this process is confined, on any GPU; a launch that another thread makes during
 * the call may or may not be confined. The sets of streams, functions and the process, and the
 * process's own limit, are removed. Setting a set fails with -EOPNOTSUPP; sets of threads have
 * no effect. GPU objects stay valid. Detaching is final: the library misses later events, so
 * gpupart_attach() then fails with -ESHUTDOWN. Returns 0 also if no GPU was attached.
 *
 * -EPERM: the process has a limit from outside, or is strict. -EBUSY: a memory quota or a
 * measurement needs the subscription, or a profiler is subscribed through this library. -EIO:
 * the driver does not end the subscription.
 */
int gpupart_detach(struct gpupart *gp);

/* The topology that @gpu was attached with. It belongs to the library: do not close it. */
const struct gpupart_topology *gpupart_gpu_topology(const struct gpupart_gpu *gpu);

/*
 * Sets that apply to launches. A launch is confined to the limit AND the set of the innermost
 * scope that has one: next launch, function, stream, thread, process. If no scope has a set,
 * the limit alone applies. A NULL @set removes the scope's set. Sets take effect at the next
 * launch. A call takes at most 50 ns, except the first call for a stream, function or thread.
 * -EINVAL: @set is empty or has a TPC that does not exist. A limit that came from outside (from
 * GPUPART_SET, which `gpupart run` sets) is read at the first attach. gpupart_limit_set() can
 * only make it smaller: -EPERM.
 *
 * Graphs. The driver builds the nodes of an executable graph once and launches them many times.
 * The set of a graph launch is that of the stream that it is launched into; else that of the
 * stream on which the graph was captured; else the thread's; else the process's. Sets of
 * functions apply to the nodes of those functions. A next-launch set takes precedence over all
 * of them, for all nodes.
 *
 * The stream of a capture is the one on which the capture began. Its set is the one that the
 * stream has at the launch, or had when it was destroyed. After cuGraphExecUpdate, the stream
 * of the graph that was updated to counts. These count as not captured: a copy that
 * cuGraphClone makes of a captured graph, a graph that contains a captured graph as a child,
 * and a graph that was captured before the process attached its first GPU.
 *
 * If the sets differ from those that the nodes were built for, the library instantiates the
 * graph again. Such a variant is kept for each of the last four sets; a launch under one of
 * these sets uses its variant instead of the program's handle. Each variant takes as much
 * memory as the program's own graph: GPUPART_GRAPH_SETS=1 to 3 in the environment keeps fewer.
 * As without gpupart, launches of one graph do not overlap, and changes of a graph apply to all
 * its variants. A launch into a stream of another context, or enabling or disabling a node,
 * removes the variants for good. While a profiler is let in there are no variants.
 *
 * For a fifth set, or without variants, the library makes the driver build the nodes again
 * before the launch (1.4 to 2 us per node). For both purposes it keeps a clone of the graph of
 * each executable graph (1 us per node at instantiation).
 *
 * Some graphs cannot be built again: graphs that cuGraphClone refuses (with conditional or
 * memory nodes), graphs that were instantiated before the GPU was attached, and graphs with a
 * change that cannot be repeated on the clone. Such changes are those to host, event, semaphore
 * or child graph nodes, to nodes inside a child graph, to any node by cuGraphExecNodeSetParams,
 * and to any node after cuGraphExecUpdate to another graph than the one instantiated. A later
 * cuGraphExecUpdate of the whole graph makes a new clone. A graph that cannot be built again
 * keeps the set of its last build, and each of its launches is counted in graphs_stale. If only
 * some nodes cannot be changed, the others are built again, and the launch is counted in
 * graphs_stale too.
 */
int gpupart_limit_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		      const struct gpupart_tpcset *set);
int gpupart_process_set(struct gpupart *gp, struct gpupart_gpu *gpu,
			const struct gpupart_tpcset *set);

/*
 * The set of a stream. @stream is a CUstream or cudaStream_t of this GPU that exists. 0 and 1
 * are the legacy default stream of the current context, and 2 is the calling thread's
 * per-thread default stream. The first set on one of these three makes one empty launch on it
 * (-EBUSY during a stream capture). The set is removed when the stream is destroyed. Removing
 * (NULL) a set that does not exist is not an error, whatever the handle.
 *
 * -EINVAL: the handle is not a stream. -EOPNOTSUPP: streams cannot be distinguished on this
 * driver. -ENOSPC: more than 4096 streams with sets.
 */
int gpupart_stream_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		       const struct gpupart_tpcset *set);

/*
 * The set of a function. @function is a CUfunction or CUkernel. The set applies to every launch
 * of it on @gpu, from any stream and thread. For a CUfunction it applies in the context that
 * the function belongs to. For a CUkernel it applies in the current context, or in the GPU's
 * primary context if the thread has no current one. A CUfunction that belongs to another GPU's
 * context is not recognised as wrong; its set has no effect, because it is never launched on
 * @gpu. The set is removed when the module is unloaded.
 *
 * -EINVAL: the handle is not a function. -ENOSPC: more than 4096 functions with sets.
 * -EOPNOTSUPP: a driver older than CUDA 11.
 */
int gpupart_function_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *function,
			 const struct gpupart_tpcset *set);

/*
 * A rule: the set of all functions whose name matches the shell pattern @pattern (fnmatch(3)
 * without flags, at most 255 bytes). It applies to their launches on @gpu as if each function
 * had been given @set by gpupart_function_set(); a function that was given a set keeps it. The
 * pattern is compared with the name in the driver, which is mangled for C++, and with its
 * qualified name without arguments, "at::native::copy_kernel". A process can have 32 rules per
 * GPU. The first one that matches applies, in the order in which they were added. A pattern
 * that was added before gets @set in its old place; a NULL @set removes the rule, and a NULL
 * @pattern removes all rules. Rules take effect at the next launch. The library asks for the
 * name of a function once.
 *
 * `gpupart run --rule` passes rules in the environment: they apply from the start, and child
 * processes inherit them. A kernel whose blocks must all be resident at once, but which is not
 * a cooperative launch, never ends in a set that is too small for it; gpupart cannot detect
 * such kernels.
 *
 * -EINVAL: the pattern is invalid. -ENOSPC: more than 32 rules. -EOPNOTSUPP: a driver older
 * than CUDA 12.3, or one that does not report launches.
 */
int gpupart_rule_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
		     const struct gpupart_tpcset *set);

/*
 * The set of the calling thread: applies to every launch that it makes on @gpu until it ends.
 * -ENOMEM, -EAGAIN.
 */
int gpupart_thread_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		       const struct gpupart_tpcset *set);

/*
 * The set of the calling thread's next launch on @gpu, once. It applies to a kernel or graph
 * that the program launches, not to a launch with which the driver fills or copies memory. A
 * launch that fails, or becomes a node of a graph, uses the set up without effect (counted in
 * next_dropped). A thread can have one such set on each GPU; a launch or set on another GPU
 * does not affect it. But if a launch fails because its stream, function or context does not
 * exist (CUDA errors 400, 201, 709), its GPU is unknown, and the next-launch sets on all GPUs
 * are used up. The first call in a process makes an empty launch on a private stream.
 *
 * -ENOMEM, -EAGAIN. -EOPNOTSUPP: the driver reports launches under names that the library does
 * not know. If that first shows at a launch of the program, that launch uses the set up, like a
 * launch that fails.
 */
int gpupart_next_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		     const struct gpupart_tpcset *set);

/*
 * Builds the executable graph @exec (a CUgraphExec or cudaGraphExec_t, of the current context
 * on @gpu) in advance for each of the @nr @sets, at most 4, and uploads it in @stream, like
 * cuGraphUpload. A later launch under one of these sets builds nothing, whether the set is that
 * of its stream, its thread, the process or the launch. The graph is built for the limit in
 * force and the sets of functions as well. No other thread may launch the graph during the
 * call. See "Graphs" above.
 *
 * -EINVAL: no such graph, or an invalid set. -EBUSY: @stream is being captured. -EOPNOTSUPP:
 * more sets than the graph can keep, which is one if it has no variants. -EIO: the driver
 * refused.
 */
int gpupart_graph_prepare(struct gpupart *gp, struct gpupart_gpu *gpu, void *exec, void *stream,
			  const struct gpupart_tpcset *sets, unsigned int nr);

/*
 * The set that is in force in a scope. Returns false, and all TPCs in @set, if the scope has
 * none.
 */
bool gpupart_limit_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
bool gpupart_process_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
bool gpupart_stream_get(struct gpupart_gpu *gpu, void *stream, struct gpupart_tpcset *set);
bool gpupart_function_get(struct gpupart_gpu *gpu, void *function, struct gpupart_tpcset *set);
bool gpupart_thread_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);

/*
 * If @on, report the number of SMs of @gpu's limit AND process set to the program, in place of
 * the whole GPU's, whenever it asks the driver or the runtime (which asks the driver). That
 * covers the number of SMs (attributes, properties, cuDeviceGetDevResource,
 * cuCtxGetDevResource, affinity) and occupancy (the grid that fills the GPU, the largest
 * cluster, the number of clusters that run at once). The sets in force at the time of the query
 * count, for each GPU its own. Programs that size their grids by these numbers then size them
 * to the partition: cooperative grids need not be widened, and blocks that wait for each other
 * in an ordinary launch do not wait for ever. Off by default. -EOPNOTSUPP: the driver does not
 * report calls of its functions.
 *
 * NVML, nvidia-smi and %nsmid in a kernel still report the whole GPU, and sets of streams,
 * functions, threads and next launches do not count. Most programs ask once and keep the answer
 * (PyTorch does, for each GPU), so they miss later changes of a set. The SMs of a GPU as a
 * resource (CUdevResource) are rounded down to a multiple of 8 SMs, the driver's unit. The
 * resource can be split, and each green context gets as many SMs as its part has. Below 8 SMs
 * the number is exact, and the driver refuses to split it.
 */
int gpupart_sm_count_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/*
 * Whether the number of SMs in the sets is reported to the program. *nr_sms is the number that
 * the sets give now.
 */
bool gpupart_sm_count_get(struct gpupart_gpu *gpu, unsigned int *nr_sms);

/* Counts of this process's launches on all its GPUs since it attached the first one. */
struct gpupart_counters {
	uint64_t launches;	/* launch callbacks */
	uint64_t confined;	/* confined to exactly what the scopes asked for */
	uint64_t widened_empty;	/* limit AND set is empty: got the limit */
	uint64_t widened_driver; /* set AND the driver's own mask is empty: got the driver's mask */
	uint64_t widened_cluster; /* no virtual GPC of the set could hold a cluster */
	uint64_t widened_cooperative; /* the set could not hold all blocks at once */
	uint64_t unconfinable_version; /* unknown TMD version or launch type */
	uint64_t unconfinable_map;	/* the mask bits of this GPU are not proven */
	/*
	 * Launches on a GPU that is not attached, or whose GPU is unknown. If CUDA shows
	 * several GPUs, the GPU of a launch is unknown if its context is not current, was not
	 * current at an attach or a launch, and since the attach no stream was created or given
	 * a set in it and no module was loaded into it.
	 */
	uint64_t unconfinable_gpu;
	uint64_t graphs_reapplied; /* graph launches whose nodes were first built again for their
				    * set */
	uint64_t graphs_stale;	/* graph launches whose nodes kept an earlier set */
	uint64_t next_dropped;	/* next-launch sets whose launch failed, was captured or unknown */
	/*
	 * Launches, also counted above, of kernels whose module can launch kernels from the
	 * GPU. Those inner launches are not confined, and it is unknown whether there were any.
	 * A graph node is counted when it is built, at the graph's first launch, and not at
	 * each launch. Modules that were loaded before the GPU was attached are not recognised.
	 */
	uint64_t device_launches;
};
void gpupart_counters_get(struct gpupart_counters *counters);

/*
 * Report this program's progress to `gpupart qos`, which chooses its sets. @units is the work
 * done since the last report (images, tokens, steps); 0 is ignored. @ns is the time that one
 * request took. A call takes about 30 ns, because it reads the clock. Reports are also kept
 * before the process attaches a GPU or is published; other processes can read them after that.
 * In the child of a fork the counts start at 0.
 */
void gpupart_progress_add(uint64_t units);
void gpupart_latency_report(uint64_t ns);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_H */
