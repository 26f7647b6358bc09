/* SPDX-License-Identifier: MIT */
/*
 * libgpupart: controls which TPCs of an NVIDIA GPU a kernel launch may use.
 *
 * Index spaces. A `tpc` is the logical number of a TPC. The TPCs of a GPU have the numbers 0 to
 * nr_tpcs-1 without gaps. These numbers follow the order in which the work distributor counts
 * TPCs. On GPUs with two SMs per TPC, TPC t owns SMs 2*t and 2*t+1. SMs are numbered as in the
 * PTX register %smid. A `gpc` is the logical number of a GPC. Even if GPCs are floorswept, the
 * numbers of the GPCs have no gaps. A `vgpc` is the number of a virtual GPC. On Hopper and later
 * GPUs, all blocks of a thread block cluster run in one virtual GPC. Every set in this interface
 * is a set of *allowed* TPCs.
 *
 * Errors. A function returns 0 or a negative errno. A function that does not return int cannot
 * fail. The comments of the functions give the exceptions to these two rules. If a function with
 * a context argument fails, gpupart_error() returns one sentence that describes the failure. The
 * sentence names the object and the value. The library never prints and never exits.
 *
 * Pointers. Pointers to objects (struct gpupart, gpupart_gpu, gpupart_topology, gpupart_remote)
 * and to results must be valid. Pass NULL only if the comment of the function allows NULL. The
 * _close functions accept NULL. If a set or a string is NULL, and the comment of the function
 * does not define NULL, the function returns -EINVAL. A function that uses sets but cannot return
 * an error requires valid pointers.
 *
 * Threads. Only one thread at a time may use a context (struct gpupart), so open a separate
 * context for each thread. Several threads may share a topology or a set, because the library
 * never changes an object that it has returned. Any thread may call any function with its own
 * context, even while other threads launch kernels. The comments of the functions give the
 * exceptions to these rules.
 *
 * Ownership. A function reads its arguments only during the call. The library keeps no pointer to
 * the arguments. If a result is a pointer, the comment of the function names the owner of the
 * object. Memory sizes are in bytes, and times are in nanoseconds.
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

/* Opens a context. The caller must close the context. The only error is -ENOMEM. */
int gpupart_open(struct gpupart **gp);

/* Closes the context. The sets that the caller set with this context stay in force. */
void gpupart_close(struct gpupart *gp);

/*
 * Returns the error message of the last failed call with @gp. If no call with @gp has failed,
 * the result is "". The string belongs to @gp and is valid until the next call with @gp.
 */
const char *gpupart_error(const struct gpupart *gp);

/* Returns the library's version as a constant string, "MAJOR.MINOR.PATCH". */
const char *gpupart_version(void);

/* --------------------------------------------------------------------- sets */

/*
 * The size in bytes of a buffer for the longest list form, which is "0,2,4,..,254". The size
 * includes the terminating 0.
 */
#define GPUPART_TPCSET_STRLEN 1024

/*
 * Parses the list form of taskset(1). Examples are "0,5,8-11" and "0-10:2", a list with a stride
 * of 2. The items of a list may overlap and may be in any order. A list must not contain blanks.
 * The numbers in a list are 0 to 255. An empty string is an error. If @gp is NULL, no error
 * sentence is stored. -EINVAL: @text is not a valid list. The error message names the wrong
 * item.
 */
int gpupart_tpcset_parse_list(struct gpupart *gp, const char *text, struct gpupart_tpcset *set);

/*
 * Writes the canonical list form of @set to @text. An example of this form is "0-7,16". The list
 * form of the empty set is "". Returns the length without the terminating 0, or -ENOSPC if @len
 * is too small. GPUPART_TPCSET_STRLEN bytes are always enough.
 */
int gpupart_tpcset_format_list(const struct gpupart_tpcset *set, char *text, size_t len);

/* ----------------------------------------------------------------- topology */

struct gpupart_topology;

/*
 * Properties of a GPU. An unknown string is "". For each number, a comment gives the value that
 * means unknown.
 */
struct gpupart_gpu_info {
	char name[64];		/* "NVIDIA H200" */
	/*
	 * The GPU's address in lower case, for example "0000:0d:00.0". This interface identifies
	 * a GPU by its address. An integrated GPU is not on PCI. Its address is the name of its
	 * platform device, for example "17000000.gpu".
	 */
	char pci[20];
	char uuid[48];		/* "GPU-xxxxxxxx-..." */
	char driver[32];	/* "580.159.04" */
	char source[512];	/* "rm", "kernel", or the path of the capture */
	char origin[160];	/* author and method of the capture, or "" */
	uint32_t chip_id;	/* bits 29:20 of BOOT_42 (0x180 is GH100); 0: unknown */
	int mig;		/* 1: on, 0: off, -1: unknown */
	/* Number of GPCs in the chip's design, before floorsweeping; 0: unknown. */
	unsigned int max_gpcs;
	/* number of TPCs per GPC in the chip's design; 0: unknown */
	unsigned int max_tpcs_per_gpc;
	bool simulated;		/* the simulated driver provides this GPU */
};

#define GPUPART_MAX_SMS_PER_TPC 4

/* One TPC. If the source does not report an index, the index is -1. */
struct gpupart_tpc {
	int gpc;		/* logical GPC */
	int tpc_in_gpc;		/* number within its logical GPC; these numbers have no gaps */
	int vgpc;		/* virtual GPC; each singleton has its own number */
	int tpc_in_vgpc;	/* number in the virtual GPC (NVIDIA: migratable TPC id) */
	int cpc;		/* physical CPC within the GPC */
	int ugpu;		/* the half of the L2 cache that is nearer to this TPC */
	/*
	 * In a capture, the number of a mask bit in the TMD. In the measurement for the capture,
	 * this mask bit disabled this TPC.
	 */
	int measured_bit;
	unsigned int nr_sms;
	unsigned int sms[GPUPART_MAX_SMS_PER_TPC];	/* numbered as in %smid */
};

/* One logical GPC. */
struct gpupart_gpc {
	int gpc_phys;		/* index in the fuses; -1: unknown */
	/* Bit i is set if the TPC with fuse index i is present. The value 0 means unknown. */
	uint32_t present_tpcs;
	int ugpu;		/* -1: unknown */
	struct gpupart_tpcset tpcs;
};

/* The results of these functions belong to @topo and are valid until @topo is closed. */
const struct gpupart_gpu_info *gpupart_topology_info(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_tpcs(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_gpcs(const struct gpupart_topology *topo);
unsigned int gpupart_topology_nr_sms(const struct gpupart_topology *topo);
/*
 * Return TPC @tpc (0 to nr_tpcs-1) or GPC @gpc (0 to nr_gpcs-1). For other numbers, the result is
 * NULL.
 */
const struct gpupart_tpc *gpupart_topology_tpc(const struct gpupart_topology *topo,
					       unsigned int tpc);
const struct gpupart_gpc *gpupart_topology_gpc(const struct gpupart_topology *topo,
					       unsigned int gpc);
/* The set of all TPCs of @topo. */
struct gpupart_tpcset gpupart_topology_all(const struct gpupart_topology *topo);

/*
 * Parses the text form of a set. The text form consists of terms that are joined by "+". A term
 * is "LIST", "tpc:LIST", "gpc:LIST", "ugpu:LIST" or "hex:MASK", for example "gpc:1,2+40-43". The
 * numbers are logical TPCs, logical GPCs and uGPUs. -EINVAL: the text has a syntax error, the
 * text names a TPC, GPC or uGPU that does not exist, or the result is empty. The error message
 * names the wrong value.
 */
int gpupart_set_parse(struct gpupart *gp, const struct gpupart_topology *topo,
		      const char *words, struct gpupart_tpcset *set);

/*
 * The largest portable cluster size, in blocks. CUDA guarantees this size on every GPU with
 * clusters.
 */
#define GPUPART_PORTABLE_CLUSTER 8

/*
 * Returns the size, in blocks, of the largest cluster that fits into @set. A cluster needs one
 * SM for each of its blocks, and all these SMs must be in one virtual GPC. A launch with larger
 * clusters gets more TPCs than @set has. If the source does not report virtual GPCs, the
 * function uses GPCs instead, and the result is an upper bound.
 */
unsigned int gpupart_set_cluster(const struct gpupart_topology *topo,
				 const struct gpupart_tpcset *set);

/* ---------------------------------------------------- launches of this process */

struct gpupart_gpu;

/* The action for launches that cannot be confined. */
enum gpupart_unconfined {
	GPUPART_UNCONFINED_RUN,		/* run and count them in struct gpupart_counters */
	/*
	 * After the first launch outside the limit, all later launches of the process fail. The
	 * driver's launch functions then return CUDA error 800 (operation not permitted). If
	 * gpupart_attach() fails, all later launches fail, and the process can create no more
	 * contexts.
	 */
	GPUPART_UNCONFINED_FAIL,
};

/*
 * The caller first sets all members to 0. The caller then sets @size and the members that it
 * needs. If a later version of the library adds a member, the value 0 keeps the old behaviour.
 */
struct gpupart_attach_options {
	size_t size;			/* sizeof(struct gpupart_attach_options) */
	unsigned int unconfined;	/* enum gpupart_unconfined */
	/*
	 * If this member is 1, one tool may subscribe to the driver after the first attach. The
	 * tool then receives its callbacks through this library. CUPTI is such a tool, and
	 * torch.profiler uses CUPTI. The environment variable GPUPART_PROFILE=1 has the same
	 * effect. If this member is 0, the driver refuses a tool that subscribes after the first
	 * attach. If the library cannot replace the driver's function table, this member has no
	 * effect, and the driver refuses the tool. `gpupart doctor` reports this case. Source:
	 * Documentation/internals/hardware.md.
	 */
	unsigned int profilers;
	/*
	 * If this member is 1, the library refuses kernels that launch other kernels from the
	 * GPU. No set can confine launches that a kernel makes from the GPU. Until the process
	 * ends, loading a module with such a kernel fails with CUDA error 800 (operation not
	 * permitted). Such a module may already be loaded. If the library recognised this module,
	 * launches of its kernels fail with the same error. The environment variable
	 * GPUPART_NO_DEVICE_LAUNCH=1 has the same effect. gpupart-device-launches(7) explains how
	 * the library recognises such modules. gpupart_attach() returns -EOPNOTSUPP if the driver
	 * does not report module loads.
	 */
	unsigned int no_device_launch;
};

/*
 * Prepares to confine this process's launches on one GPU. The function opens libcuda.so.1, calls
 * cuInit, reads the topology, subscribes to the driver's launch callback and checks the mask bits
 * of this GPU (see gpupart_gpu_check()). The first check on a GPU makes a few short launches on a
 * private stream. If the current context is on this GPU, the function uses the current context.
 * Otherwise the function retains the GPU's primary context.
 *
 * @gpu: an index in PCI order ("0"), a PCI address, a UUID, or "cuda:N", where N is CUDA's number
 * of the GPU. If @gpu is NULL, the function attaches CUDA's device 0.
 * @gp: the context for the error message, or NULL to store no error message.
 * @options: the options; NULL means that all options are 0.
 *
 * If the GPU is already attached, the function returns the same object again. The object exists
 * until the process ends.
 *
 * -ENOENT: libcuda.so.1 was not found. -ENODEV: no such GPU. -EOPNOTSUPP has four causes: the
 * driver has no launch callback, the chip or the TMD version is unknown, MIG is on, or the
 * process runs under MPS. Under MPS, a process can attach a GPU only if the mask bits were
 * checked earlier. -ECANCELED: the environment contains GPUPART_DISABLE=1. -EBUSY has three
 * causes. First, a profiler (CUPTI) is subscribed to the driver, and the driver accepts only one
 * tool. Second, options.profilers is set, but an earlier call attached a GPU of this process
 * without this option. Third, this is the first attach of the GPU, and a blocking stream of the
 * context is being captured. The attach would read launch records and so invalidate the capture;
 * try again after the capture. The function does not detect a capture that another thread begins
 * during the call. -EPROTO: the mask bits of this GPU differ from the table or could not be
 * proven; the error message names the TPC. -EINVAL: @options->size is too small, or a member has
 * an invalid value. -E2BIG: @options->size is larger than the library's struct, and a member that
 * the library does not know is not 0.
 */
int gpupart_attach(struct gpupart *gp, const char *gpu,
		   const struct gpupart_attach_options *options, struct gpupart_gpu **attached);

/*
 * Tests whether gpupart_attach() can attach @gpu. @gpu has the same form as for gpupart_attach().
 * The function makes only the checks that gpupart_attach() makes before its first launch. The
 * result is 0 or the error of the check that failed. For an error, the function stores the error
 * sentence. The error is -ENOENT, -EOPNOTSUPP, -ECANCELED, -EBUSY or -ENODEV. After
 * gpupart_detach() the function returns -ESHUTDOWN. The function calls cuInit and does not affect
 * launches.
 */
int gpupart_available(struct gpupart *gp, const char *gpu);

/*
 * Ends the library's subscription to the driver, so that a profiler can subscribe. After the
 * call, the library confines no more launches of this process. A launch that another thread makes
 * during the call may or may not be confined. The function removes the sets of streams, of
 * functions and of the process. It also removes the limit that gpupart_limit_set() set. After the
 * call, the library's functions that set a set fail with -EOPNOTSUPP, and the sets of threads
 * have no effect. GPU objects stay valid. After the call, gpupart_attach() fails with -ESHUTDOWN,
 * because the library has missed events of the driver. If no GPU was attached, gpupart_detach()
 * returns 0.
 *
 * -EPERM: the process has a limit from outside, or the process is strict. -EBUSY: a memory quota
 * or a measurement needs the subscription, or a profiler is subscribed through this library.
 * -EIO: the driver refuses to end the subscription.
 */
int gpupart_detach(struct gpupart *gp);

/*
 * Returns the topology with which @gpu was attached. The topology belongs to the library, so the
 * caller must not close it.
 */
const struct gpupart_topology *gpupart_gpu_topology(const struct gpupart_gpu *gpu);

/*
 * Each of these functions gives a set to a scope, or removes the set of a scope. The scopes, from
 * the innermost to the outermost, are the next launch, the function, the stream, the thread and
 * the process. Of all scopes that have a set, the innermost scope applies to a launch. The launch
 * is confined to the intersection of this scope's set and the limit. If no scope has a set, the
 * launch is confined to the limit. A NULL @set removes the scope's set. A new set takes effect at
 * the next launch. The first call for a stream, function or thread takes longer. All other calls
 * take at most 50 ns. -EINVAL: @set is empty or has a TPC that does not exist. A process may have
 * a limit from outside. The first attach reads this limit from the environment variable
 * GPUPART_SET, which `gpupart run` sets. gpupart_limit_set() can narrow such a limit. If a call
 * would widen the limit, gpupart_limit_set() returns -EPERM.
 *
 * Graphs. The driver builds the nodes of an executable graph one time and launches them many
 * times. The set of a graph launch is the first existing set of this list: the set of the stream
 * into which the graph is launched, the set of the stream on which the graph was captured, the
 * set of the thread, the set of the process. A node whose function has a set uses the function's
 * set instead. A next-launch set takes precedence over all other sets, for all nodes.
 *
 * The stream of a capture is the stream on which the capture began. When the graph is launched,
 * the current set of this stream applies. If the stream was destroyed, the set that the stream
 * had at that time applies. After cuGraphExecUpdate, the library uses the capture stream of the
 * new graph. The library treats three kinds of graphs like graphs that were not captured. The
 * first kind is a copy that cuGraphClone made of a captured graph. The second kind is a graph
 * with a captured graph as a child. The third kind is a graph that was captured before the
 * process attached its first GPU.
 *
 * If the sets of a launch differ from the sets for which the nodes were built, the library
 * instantiates the graph again. The new instance is called a variant. The library keeps one
 * variant for each of the last four sets. A launch under one of these sets uses the variant of
 * the set instead of the program's executable graph. Each variant takes as much memory as the
 * program's own executable graph. GPUPART_GRAPH_SETS=1, 2 or 3 in the environment makes the
 * library keep fewer variants. Launches of one graph do not overlap, with or without gpupart. If
 * the program changes a graph, the change applies to all variants. In two cases, the library
 * removes the variants of a graph and makes no new variants: the program launches the graph into
 * a stream of another context, or the program enables or disables a node. If profilers are
 * allowed (options.profilers), there are no variants.
 *
 * For a fifth set, or for a graph without variants, the library makes the driver build the nodes
 * again before the launch. Building takes 1.4 to 2.8 us per node. To make variants or to build
 * nodes again, the library needs a clone of the graph from which the executable graph was
 * instantiated. The library makes this clone at the instantiation. Cloning takes 1 us per node.
 *
 * Three kinds of graphs cannot be built again. The first kind is a graph that cuGraphClone
 * refuses, which is a graph with conditional or memory nodes. The second kind is a graph that was
 * instantiated before the GPU was attached. The third kind is a graph with a change that the
 * library cannot repeat on the clone. The library cannot repeat a change of a host, event,
 * semaphore or child graph node, a change of a node inside a child graph, or a change by
 * cuGraphExecNodeSetParams. If cuGraphExecUpdate has updated the executable graph to a different
 * graph, the library cannot repeat later changes of nodes. If the program later updates the whole
 * graph with cuGraphExecUpdate, the library makes a new clone. A graph that cannot be built again
 * keeps the set of its last build, and each of its launches is counted in graphs_stale. Sometimes
 * the library can build only some of the nodes again. The library then builds these nodes, and
 * also counts the launch in graphs_stale.
 */
int gpupart_limit_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		      const struct gpupart_tpcset *set);
int gpupart_process_set(struct gpupart *gp, struct gpupart_gpu *gpu,
			const struct gpupart_tpcset *set);

/*
 * Sets the set of a stream. @stream is an existing CUstream or cudaStream_t of this GPU. The
 * handles 0 and 1 mean the legacy default stream of the current context. The handle 2 means the
 * per-thread default stream of the calling thread. When a default stream gets a set for the first
 * time, the function makes one empty launch on this stream. If a stream is being captured at that
 * time, the function returns -EBUSY instead. When the stream is destroyed, its set is removed. If
 * @set is NULL and @stream has no set, the function returns 0, even if @stream is not a valid
 * handle.
 *
 * -EINVAL: the handle is not a stream. -EOPNOTSUPP: the library cannot distinguish streams on
 * this driver. -ENOSPC: 4096 streams already have sets.
 */
int gpupart_stream_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		       const struct gpupart_tpcset *set);

/*
 * Sets the set of a function. @function is a CUfunction or CUkernel. The set applies to every
 * launch of the function on @gpu, on any stream and by any thread. For a CUfunction, the set
 * applies in the context that the function belongs to. For a CUkernel, the set applies in the
 * current context, or in the GPU's primary context if the thread has no current context. The
 * library does not detect a CUfunction whose context is on a GPU other than @gpu. The set of such
 * a function has no effect, because the function is never launched on @gpu. When the module is
 * unloaded, the set is removed.
 *
 * -EINVAL: the handle is not a function. -ENOSPC: 4096 functions already have sets. -EOPNOTSUPP:
 * the driver is older than CUDA 11.
 */
int gpupart_function_set(struct gpupart *gp, struct gpupart_gpu *gpu, void *function,
			 const struct gpupart_tpcset *set);

/*
 * Adds a rule. The rule gives @set to every function whose name matches the shell pattern
 * @pattern. The pattern has the syntax of fnmatch(3) without flags, and at most 255 bytes. The
 * rule applies to launches on @gpu as if the caller had called gpupart_function_set() with @set
 * for each matching function. A set from gpupart_function_set() has precedence over all rules.
 * The pattern is compared with two names of the function: its name in the driver, which is
 * mangled for C++, and its qualified name without arguments, for example
 * "at::native::copy_kernel". A process can have 32 rules per GPU. Rules are tried in the order in
 * which they were added, and the first rule that matches applies. If a rule with this pattern
 * exists, its set is replaced and its position stays the same. A NULL @set removes the rule, and
 * a NULL @pattern removes all rules. Rules take effect at the next launch. The library reads the
 * name of each function only one time.
 *
 * `gpupart run --rule` passes rules in the environment. These rules apply from the start of the
 * program, and child processes inherit them. Some kernels need all their blocks to run at the
 * same time, although their launch is not cooperative. If the set is too small for all blocks,
 * such a kernel never ends. gpupart cannot detect such kernels.
 *
 * -EINVAL: the pattern is invalid. -ENOSPC: the GPU already has 32 rules. -EOPNOTSUPP: the
 * driver is older than CUDA 12.3 or does not report launches.
 */
int gpupart_rule_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
		     const struct gpupart_tpcset *set);

/*
 * Sets the set of the calling thread. The set applies to every launch that this thread makes on
 * @gpu until the thread ends. Errors: -ENOMEM, -EAGAIN.
 */
int gpupart_thread_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		       const struct gpupart_tpcset *set);

/*
 * Sets the set of the calling thread's next launch on @gpu. The next launch uses the set, and
 * then the set is removed. The set applies to a kernel or graph that the program launches. The
 * set does not apply to the driver's own launches, which fill or copy memory. If the launch
 * fails, or is captured as a node of a graph, the set is removed without effect and counted in
 * next_dropped. A thread can have one such set on each GPU. A launch or a set on one GPU does not
 * affect the thread's next-launch set on another GPU. There is one exception. If the stream,
 * function or context of a launch does not exist (CUDA errors 400, 201, 709), the library does
 * not know the GPU of the failed launch. So the library removes the thread's next-launch sets on
 * all GPUs. The first call in a process makes an empty launch on a private stream.
 *
 * Errors: -ENOMEM, -EAGAIN. -EOPNOTSUPP: the driver reports launches under function names that
 * the library does not know. The library may detect the unknown names only at a later launch of
 * the program. That launch then removes the set, like a failed launch.
 */
int gpupart_next_set(struct gpupart *gp, struct gpupart_gpu *gpu,
		     const struct gpupart_tpcset *set);

/*
 * Builds the executable graph @exec in advance for each of the @nr sets in @sets. Then uploads
 * @exec in @stream, like cuGraphUpload. @exec is a CUgraphExec or cudaGraphExec_t of the current
 * context on @gpu. @nr is at most 4. A later launch under one of these sets does not build the
 * graph again. The scope of the set can be the stream, the thread, the process or the next
 * launch. The graph is built with the limit and the sets of functions that are in force during
 * the call. No other thread may launch the graph during the call. See "Graphs" above.
 *
 * -EINVAL: @exec is not an executable graph, or a set is invalid. -EBUSY: @stream is being
 * captured. -EOPNOTSUPP: @nr is larger than the number of sets that the graph can keep; a graph
 * without variants can keep one set. -EIO: the driver refused to build or upload the graph.
 */
int gpupart_graph_prepare(struct gpupart *gp, struct gpupart_gpu *gpu, void *exec, void *stream,
			  const struct gpupart_tpcset *sets, unsigned int nr);

/*
 * Each of these functions stores the set of a scope in @set and returns true. If the scope has no
 * set, the function stores all TPCs in @set and returns false.
 */
bool gpupart_limit_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
bool gpupart_process_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
bool gpupart_stream_get(struct gpupart_gpu *gpu, void *stream, struct gpupart_tpcset *set);
bool gpupart_function_get(struct gpupart_gpu *gpu, void *function, struct gpupart_tpcset *set);
bool gpupart_thread_get(struct gpupart_gpu *gpu, struct gpupart_tpcset *set);

/*
 * Changes the number of SMs that the driver reports to the program. If @on is true, the driver
 * reports the number of SMs in the intersection of @gpu's limit and its process set. If @on is
 * false, which is the default, the driver reports the SMs of the whole GPU. The CUDA runtime
 * reports the same numbers, because it reads them from the driver. The function affects two
 * groups of queries. The queries of the first group return the number of SMs (attributes,
 * properties, cuDeviceGetDevResource, cuCtxGetDevResource, affinity). The queries of the second
 * group return the occupancy (the grid that fills the GPU, the largest cluster, the number of
 * clusters that run at the same time). Each query uses the sets that are in force on the queried
 * GPU at the time of the query. If a program computes its grid size from these numbers, the grid
 * fits the partition. Cooperative launches then do not need more TPCs than their set has. If
 * blocks of an ordinary launch wait for each other, they do not wait forever. -EOPNOTSUPP: the
 * driver does not report calls of its functions.
 *
 * NVML, nvidia-smi and %nsmid in a kernel still report the whole GPU. The sets of streams,
 * functions, threads and next launches do not change the reported number. Most programs read the
 * number one time. If a set changes later, these programs continue to use the old number. PyTorch
 * reads the number one time for each GPU. If the program reads the SMs of a GPU as a resource
 * (CUdevResource), the number is rounded down to a multiple of 8 SMs. The driver divides SMs in
 * units of 8 SMs. The program can split this resource, and each green context gets as many SMs as
 * its part of the resource has. A number below 8 SMs is not rounded, and the driver refuses to
 * split such a resource.
 */
int gpupart_sm_count_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/*
 * Returns true if gpupart_sm_count_tell() is on for @gpu. *nr_sms is the number of SMs in the
 * intersection of the current limit and process set.
 */
bool gpupart_sm_count_get(struct gpupart_gpu *gpu, unsigned int *nr_sms);

/* Counts of this process's launches on all its GPUs since the process attached its first GPU. */
struct gpupart_counters {
	uint64_t launches;	/* launch callbacks */
	uint64_t confined;	/* confined to exactly the TPCs that the scopes allow */
	uint64_t widened_empty;	/* limit and set had no common TPC, so the limit was used */
	/* the set and the driver's mask had no common TPC, so the mask was used */
	uint64_t widened_driver;
	uint64_t widened_cluster; /* no virtual GPC of the set could hold a cluster */
	uint64_t widened_cooperative; /* the set could not hold all blocks at the same time */
	uint64_t unconfinable_version; /* unknown TMD version or launch type */
	uint64_t unconfinable_map;	/* the mask bits of this GPU are not proven */
	/*
	 * Launches on a GPU that is not attached, and launches whose GPU is unknown. If CUDA
	 * shows several GPUs, the library finds the GPU of a launch from the context of the
	 * launch. The library knows the GPU of each context that is current. It also knows the
	 * GPU of each context that was current at an attach or a launch. After the attach, the
	 * library learns the GPU of a context from three more events: the program creates a
	 * stream in the context, gives a set to a stream of the context, or loads a module into
	 * the context.
	 */
	uint64_t unconfinable_gpu;
	/* Number of graph launches for which the driver first had to build the nodes again. */
	uint64_t graphs_reapplied;
	uint64_t graphs_stale;	/* graph launches whose nodes kept an earlier set */
	/*
	 * next-launch sets without effect because the launch failed, was captured or was not
	 * recognised
	 */
	uint64_t next_dropped;
	/*
	 * Launches of kernels whose module can launch kernels from the GPU. The counters above
	 * also count these launches. The launches that such a kernel makes from the GPU are not
	 * confined. The library cannot know whether the kernel made such launches. A graph node
	 * is counted at the graph's first launch, because the driver then builds the node. Later
	 * launches of the graph do not count the node. Modules that were loaded before the GPU
	 * was attached are not recognised.
	 */
	uint64_t device_launches;
};
void gpupart_counters_get(struct gpupart_counters *counters);

/*
 * Report the progress of this program to `gpupart qos`, which chooses the sets of programs.
 * @units is the amount of work done since the last report, for example in images, tokens or
 * steps; the value 0 is ignored. @ns is the time that one request took, in nanoseconds. A call
 * takes about 30 ns, because it reads the clock. The library stores reports even before the
 * process attaches a GPU or is published. Other processes can read these reports later. In the
 * child of a fork the counts start at 0.
 */
void gpupart_progress_add(uint64_t units);
void gpupart_latency_report(uint64_t ns);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_H */
