/* SPDX-License-Identifier: MIT */
/*
 * What the simulated driver's files share: the GPU, the objects a program holds
 * handles of, the work queued on streams. Everything here is guarded by sim_lock
 * unless it says otherwise; no lock of libgpupart's is known here.
 */
#ifndef GPUPART_SIM_CUDA_SIM_H
#define GPUPART_SIM_CUDA_SIM_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gpupart.h>
#include "sim/pipe/gpupart_sim.h"
#include "sim/cuda/cu.h"

#define SIM_MAX_GPUS		16
#define SIM_MAX_VGPCS		64
#define SIM_MAX_GRID_X		INT32_MAX
#define SIM_MAX_GRID_YZ		65535
#define SIM_MAX_BLOCK_Z		64
#define SIM_TMD_BYTES		384
#define SIM_TMD_BITS		256	/* of the widest layout: V04_01, V05_00 */
#define SIM_MAX_SUBSCRIBERS	4
#define SIM_PART_SMS		8	/* what green contexts are parted in */
#define SIM_MASK_WORDS		(SIM_TMD_BITS / 64)
#define SIM_CLOCK_START		1000000000	/* a clock that reads 0 looks like one never read */
#define SIM_SHARED_DEFAULT	49152	/* bytes of shared memory a block has without opting in */
#define SIM_CLUSTER_PORTABLE	8	/* blocks */
#define SIM_PRIORITIES		6	/* of streams: 0 to -5 */

/* ------------------------------------------------------------------- the GPU */

/* A block that ran. */
struct sim_block {
	uint64_t start, end;		/* as %globaltimer */
	uint64_t index;			/* x fastest */
	uint64_t cluster;		/* linear, 0 without clusters */
	uint32_t smid;			/* as this kernel's %smid */
};

struct sim_gpu {
	char path[PATH_MAX];
	struct gpupart_topology *topo;	/* as the capture has it */
	uint64_t hash;			/* of its topology */
	struct gpupart_gpu_info info;	/* PCI address and UUID filled in */
	struct cu_uuid uuid;
	unsigned int nr_tpcs, nr_sms;
	bool clusters;			/* the capture tells virtual GPCs */
	uint8_t tpc_bit[GPUPART_MAX_TPCS];	/* the mask bit that disables a TPC */
	uint64_t singles[SIM_MASK_WORDS];	/* bits of no whole virtual GPC, and of no TPC */
	unsigned int green_bits;	/* of a green context's mask that are said */
	struct pipe_gpu hw;		/* its SMs, and what one has */
	struct pipe_fed *fed;		/* what runs; its 0 is SIM_CLOCK_START of %globaltimer */
	bool stands;			/* it never will again */
	uint64_t memory, memory_taken;	/* bytes: it has; this process has of it */
	uint64_t graph_memory;		/* of that, what graphs' nodes keep */
	unsigned int graph_trims;	/* how often they gave it back */
	unsigned int primary_users;	/* who retained its primary context, through resets */
	struct sim_pool *pool, *default_pool;	/* the one in use; NULL: not used yet */
};

/* ----------------------------------------------------------------- a launch */

/* Where it is: the driver's release slot says other things in a graph. */
enum sim_place { SIM_IN_STREAM, SIM_IN_GRAPH, SIM_LAST_OF_GRAPH };

/* What a program asks for; input of tmd_build.c. */
struct sim_launch {
	unsigned int grid[3], block[3], cluster[3];	/* cluster 0: none */
	unsigned int registers;
	unsigned int shared;		/* static and dynamic */
	bool bare;			/* the driver's own kernel: nothing reserved */
	enum sim_place place;
	bool cooperative;
	enum cu_cluster_policy policy;
	uint64_t off[SIM_MASK_WORDS];	/* TPCs that its green context has not; 0: all are its */
	bool prioritized;		/* else its stream's priority */
	int priority;			/* as CUDA's: lower is more urgent */
};

/* A record that the hardware writes when a grid has ended. */
struct sim_release {
	uint64_t address, payload;
	unsigned int words;		/* 4: payload and time; 1: the payload */
	bool adds;			/* one word: it is added to what is there */
	bool wide;			/* the payload has 64 bits */
	bool own;			/* the driver's */
};

/* What the hardware reads out of a TMD; output of the decoder. Blocks, not clusters, in grid. */
struct sim_grid {
	unsigned int grid[3], block[3], cluster[3];	/* cluster 1,1,1: none */
	unsigned int registers, shared;
	bool clustered, cooperative;
	bool spread;			/* a cluster's blocks on different SMs */
	unsigned int threads, cluster_blocks;
	uint64_t nr_blocks, nr_clusters;
	uint64_t tpc_off[GPUPART_MAX_TPCS / 64];	/* set = disabled */
	struct sim_release releases[3];
	unsigned int nr_releases;
};

/* Kernel parameters as far as any known kernel has them. */
struct sim_args {
	uint64_t address, from, bytes;
	uint32_t value, count;
};

struct sim_kernel {
	struct sim_ctx *ctx;
	uint64_t number;		/* of its launch */
	uint64_t nr_ran;		/* blocks */
	const struct sim_code *code;
	struct sim_args args;
	struct sim_grid grid;
	struct pipe_ask ask;
	uint16_t *smids;		/* what a block reads in %smid; NULL: the SM's own */
};

/* Something that others wait for: a command of the pipeline. Freed with its last user. */
struct sim_moment {
	unsigned int users;
	bool over;
	int stream;
	uint64_t number;
};

enum sim_op_kind {
	SIM_OP_NOTHING, SIM_OP_KERNEL, SIM_OP_SET8, SIM_OP_SET32, SIM_OP_COPY, SIM_OP_EVENT,
	SIM_OP_GRAPH,
};

/* One thing on a stream. */
struct sim_op {
	struct sim_op *next;
	enum sim_op_kind kind;
	uint64_t last;			/* its last command's number there */
	struct sim_kernel *kernel;
	struct sim_event *event;
	struct sim_run *run;
	struct sim_moment *after;	/* does not start before it; NULL: none */
	struct sim_moment *moment;	/* is over when this is done; NULL: nobody asks */
	struct sim_args args;
	enum pipe_way way;		/* of a copy */
};

/* A node of a graph that is being run. */
struct sim_step {
	enum sim_op_kind kind;
	struct sim_kernel *kernel;
	struct sim_args args;
};

/* One launch of a graph. */
struct sim_run {
	struct pipe_graph graph;
	struct pipe_node *nodes;
	const struct pipe_ask **asks;	/* by node */
	unsigned int *edges;		/* what the nodes' after point into */
	unsigned int nr_steps;
	struct sim_step steps[];
};

/* ------------------------------------------------------------------- objects */

struct sim_function {
	struct sim_module *module;
	const struct sim_code *code;
	bool launched;			/* once: its code is there */
	char *name;
	unsigned int registers;
	unsigned int shared_static, shared_dynamic;	/* dynamic: what was opted in to */
	bool non_portable_cluster;
	struct sim_function *next;
};

struct sim_module {
	struct sim_ctx *ctx;
	uint64_t bytes;			/* of its variables, and of its code */
	bool live, opaque;		/* opaque: not text, any name is taken to be in it */
	bool untold;			/* it ended with its context, subscribers do not know yet */
	void *image;			/* of a library whose code is not loaded yet; NULL: it is */
	size_t image_size;
	struct sim_function *functions;
	struct sim_module *next;
};

struct sim_event {
	struct sim_ctx *ctx;
	bool live, recorded;
	unsigned int pending;		/* records still in a queue */
	uint64_t time;
	struct sim_moment *moment;	/* of the last record; NULL: none */
	uint64_t capture;		/* whose work was recorded last; 0: none */
	struct sim_node **tips;		/* what was recorded there */
	unsigned int nr_tips;
	struct sim_event *next;
};

struct sim_stream {
	struct sim_ctx *ctx;
	CUstream handle;		/* NULL: a default stream */
	void *object;			/* S; its words are what a program could see */
	void *tmd;
	struct sim_ctx *green;		/* the green context that it is in; NULL: none */
	bool legacy, blocking;
	uint64_t thread;		/* of a per-thread default stream, else 0 */
	pthread_mutex_t launch;		/* one launch at a time; taken before sim_lock */
	int priority;			/* as CUDA's: lower is more urgent */
	int pipe;			/* the pipeline's stream; -1: none yet */
	struct sim_op *head, **tail;	/* what is not done */
	uint64_t last;			/* the last command of the last of them */
	uint64_t followed, followed_by;	/* legacy's commands waited for, and own ones by legacy */
	struct sim_stream *next, *next_hash;
	struct sim_capture *capture;	/* NULL: work is done, not captured */
	struct sim_node **tips;		/* what the next captured node depends on */
	unsigned int nr_tips;
};

/* What a launch, a fill or a copy asks for, wherever it is to run. */
struct sim_work {
	enum sim_op_kind kind;		/* SIM_OP_KERNEL: has a TMD */
	struct sim_function *function;	/* also of what is too small for a kernel */
	const struct sim_code *code;
	struct sim_launch launch;
	unsigned int dynamic;		/* shared memory asked for */
	struct sim_args args;
};

enum sim_handle_kind { SIM_HANDLE_GRAPH, SIM_HANDLE_NODE, SIM_HANDLE_EXEC };

/* First in what graph.c gives handles of. */
struct sim_handle {
	struct sim_handle *next;
	enum sim_handle_kind kind;
};

struct sim_node {
	struct sim_handle handle;
	struct sim_graph *graph;
	uint64_t serial;		/* never given twice, unlike an address */
	uint64_t clone_of;		/* that node's serial; 0: of none */
	unsigned int at;		/* place in graph->nodes */
	enum cu_node_type type;
	struct sim_work work;
	struct sim_graph *child;	/* the node's own copy */
	struct sim_node **before;
	unsigned int nr_before;
	void *params[2];		/* what a program is shown of work.args */
};

struct sim_graph {
	struct sim_handle handle;
	bool owned;			/* by a node or a capture: not the program's to destroy */
	struct sim_node **nodes;	/* as they were made */
	unsigned int nr_nodes, room;
};

struct sim_ctx {
	struct sim_gpu *gpu;
	CUdevice device;
	bool live, primary;
	struct sim_ctx *base;		/* a green one: of it only this and what follows count */
	uint64_t off[SIM_MASK_WORDS];
	CUresult error;			/* sticky */
	struct sim_stream *streams, *legacy;
	struct sim_function *builtin_set, *builtin_copy;	/* the driver's own kernels */
	struct sim_ctx *next;
};

extern pthread_mutex_t sim_lock;

static inline void sim_enter(void)
{
	pthread_mutex_lock(&sim_lock);
}

static inline void sim_leave(void)
{
	pthread_mutex_unlock(&sim_lock);
}

/* One line on stderr; the only place that prints. */
__attribute__((format(printf, 1, 2)))
void sim_say(const char *fmt, ...);

/* -------------------------------------------------------------------- gpu.c */

/* The GPUs this process sees, in CUDA's order; set up once by cuInit. */
extern struct sim_gpu *sim_gpus[SIM_MAX_GPUS];
extern unsigned int sim_nr_gpus;

CUresult gpu_setup(void);
/* Its two halves that CUDA's variables do not steer: all of them, in the order of their
 * captures, and then by PCI address. */
CUresult gpu_open_all(void);
void gpu_sort_by_address(void);
/* NULL before cuInit and for a device that is not there. */
struct sim_gpu *gpu_get(CUdevice device);

/* ------------------------------------------------------------------ fault.c */

/* Faults and settings of tests. Without SIM_FAULTS nothing sets them. See README.md. */
struct sim_faults {
	uint64_t tmd_version;		/* 0x23, 0x24, 0x30, 0x50; else as V04_00 */
	const char *order;		/* of mask bits; NULL: as the capture says */
	int move_field[2];		/* two bytes of a TMD that change places */
	bool no_table, sealed_table, drop_callback, mps;
	uint64_t table_size, params_size, features;
	uint64_t tmd_pointer;		/* what slot 4 of cbid 1 holds; 0: the TMD's address */
	bool stale_tmd;			/* slot 4 of cbid 1 stays a copy of the first launch's */
	bool no_stream_pointer, no_stream_events, move_tmd, capturing, no_mps_attribute;
	bool reuse_contexts, no_api, host_clock, host_thread;
	uint64_t clock_drift;		/* of the host's clock: ppm */
	bool fixed_arguments, no_memory_figure;
	bool lazy_libraries;		/* a library's code is loaded when a kernel of it is used */
	uint64_t other_memory;		/* bytes that another process gets each time one looks */
	uint64_t memory;		/* bytes of every GPU */
	uint64_t graphs;		/* executable ones that can be made in all */
	uint64_t graph_memory;		/* bytes that each takes when it is first uploaded */
	uint64_t lazy_code;		/* bytes that a function's first launch takes */
	uint64_t nr_clusters;		/* what there is said to be room for; 0: what there is */
	bool release_busy, release_lost;
	uint64_t release_late, release_torn;	/* us */
	uint64_t release_wrong;		/* bytes; 0: nothing is written; UINT64_MAX: no fault */
	uint64_t lose_context;		/* by the launch with this number; 0: none */
	uint64_t renamed;		/* the call with this number is another; 0: none */
	uint64_t subscribers;		/* at a time */
	int move_bit[2];		/* a TPC and its bit; -1: none */
	int cc[2];			/* compute capability */
	uint64_t seed;
	/* Of the management library. */
	const char *nvml, *nvml_state;	/* or NULL */
	char *texts;			/* a copy of GPUPART_SIM_FAULTS: they are parts of it */
	uint64_t nvml_ioctl;		/* a descriptor; UINT64_MAX: none */
	bool nvml_wide, nvml_newer;
};

const struct sim_faults *sim_faults(void);

/* -------------------------------------------------------------- tmd_build.c */

/* Shared memory of a block as a TMD says it; @bare as in struct sim_launch. */
unsigned int shared_of_block(unsigned int bytes, bool bare);

/* How many mask bits a TMD of this version has. */
unsigned int tmd_nr_bits(void);

/* Moves a field as `move-field` says, and moves it back. */
void tmd_move_field(uint8_t *tmd);

/* Writes all SIM_TMD_BYTES. */
void tmd_build(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch);
/* In place: the mask, the mask-valid bit and others' release slots that stand there stay. */
void tmd_rebuild(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch);

/* ------------------------------------------------------------- tmd_decode.c */

/* False: no hardware would know what this TMD asks for. */
bool tmd_decode(const uint8_t *tmd, const struct sim_gpu *gpu, struct sim_grid *grid);
/*
 * The first byte in which two TMDs differ outside mask, mask-valid bit and release slots that the
 * driver does not use, or -1.
 */
int tmd_foreign_edit(const uint8_t *before, const uint8_t *after);

/* --------------------------------------------------------------- release.c */

/* The address of the driver's own word for its slot. */
uint64_t release_words(unsigned int slot);
/* A kernel has ended at @time of %globaltimer: writes its records, or fails its context. */
void release_ended(const struct sim_kernel *kernel, uint64_t time);
/* Writes those that come late, up to @time. When the next one comes; UINT64_MAX: none. */
uint64_t release_late(const struct sim_gpu *gpu, uint64_t time);
/* Those of the context that are late do not come any more. */
void release_ctx_ends(const struct sim_ctx *ctx);

/* --------------------------------------------------------------- dispatch_kernel.c */

/* One SM of the simulated GPUs, and how fast they are. */
const struct pipe_chip *sim_chip(void);
/*
 * A kernel ready to be queued. NULL: @why says why @grid can never finish on this
 * GPU, or is "" where memory is out.
 */
struct sim_kernel *dispatch_prepare(struct sim_gpu *gpu, const struct sim_code *code,
				    const struct sim_args *args, const struct sim_grid *grid,
				    char why[160]);
void dispatch_free(struct sim_kernel *kernel);
/* The pipeline says that a block of one is done: does what it does. */
void dispatch_ran(const struct pipe_block *block);
/* How many blocks of this shape fit on an empty SM; @shared as a TMD says it. */
unsigned int dispatch_occupancy(unsigned int threads, unsigned int registers,
				unsigned int shared);

/* ----------------------------------------------------------------- engine.c */

/* The pipeline of a GPU whose @hw is there; false: no memory. */
bool engine_open(struct sim_gpu *gpu);
/* Appends a copy of @op to the stream, which then owns what it points to; false: no memory. */
bool engine_queue(struct sim_stream *stream, const struct sim_op *op);
/* Of one user; NULL: out of memory. */
struct sim_moment *engine_moment(void);
struct sim_moment *engine_moment_get(struct sim_moment *moment);
void engine_moment_put(struct sim_moment *moment);
/* With its kernels; NULL is fine. */
void engine_run_free(struct sim_run *run);
/* Each runs until nothing of its object is queued and returns the context's error. */
CUresult engine_finish_stream(struct sim_stream *stream);
CUresult engine_finish_ctx(struct sim_ctx *ctx);
CUresult engine_finish_event(struct sim_event *event);
/* The stream is about to go: what it still has queued is thrown away. */
void engine_forget(struct sim_stream *stream);
/* One step of time; false when nothing is left to do. */
bool engine_step(struct sim_gpu *gpu);
/* Somebody asks whether something is over: a step, or what is due by the host's clock. */
void engine_asked(struct sim_gpu *gpu);
/*
 * Who waits by the host's clock lets others in meanwhile: does what is due, and tells how
 * many ns it is until more is; 0: by the simulated clock, or when nothing runs.
 */
uint64_t engine_idle_ns(struct sim_gpu *gpu);
/* So long, without the lock. */
void engine_sleep(uint64_t ns);

/* ---------------------------------------------------------------- kernels.c */

struct sim_code {
	const char *name;
	unsigned int registers;
	unsigned int nr_params;		/* u64 address, u32 value; then u64, u32 count */
	unsigned int record;		/* bytes written a block at args.address */
	unsigned int slot;		/* bytes written there by the launch as a whole */
	/* What a block of @kernel asks of its SM and of memory. */
	void (*demand)(struct pipe_kernel *asked, const struct sim_kernel *kernel);
	/* At a block's end; may be NULL. */
	void (*finish)(const struct sim_kernel *kernel, const struct sim_block *block);
	bool resident;			/* its blocks wait for each other, and nothing says so */
};

/* Never NULL: a name that is not known runs as 1 us of nothing. */
const struct sim_code *kernels_find(const char *name);
extern const struct sim_code kernels_set8, kernels_set32, kernels_copy;
/* Blocks that the driver's own kernels take for so many bytes. */
unsigned int kernels_chunks(uint64_t bytes);

/* ------------------------------------------------------------- hook_table.c */

enum hook_domain {
	HOOK_DOMAIN_RESOURCE = 2,
	HOOK_DOMAIN_API = 6,
	HOOK_DOMAIN_LAUNCH = 0xb,
};

enum hook_cbid {
	HOOK_TMD_BUILT = 1,		/* launch domain */
	HOOK_TMD_UPLOADED = 2,
	HOOK_GRAPH_NODE = 3,
	HOOK_CTX_DESTROYED = 2,		/* resource domain, as seen on an H200 */
	HOOK_STREAM_CREATED = 4,
	HOOK_STREAM_DYING = 5,
	HOOK_STREAM_DESTROYED = 6,
	HOOK_MODULE_LOADED = 17,
	HOOK_MODULE_DYING = 18,
	HOOK_MODULE_UNLOADED = 19,
	HOOK_CTX_CREATED = 24,
	HOOK_GRAPH_DESTROYED = 36,
	HOOK_EXEC_CREATED = 40,
	HOOK_EXEC_DYING = 41,
};

enum hook_module_kind {
	HOOK_MODULE_DRIVER = 1,
	HOOK_MODULE_PROGRAM = 2,
};

/*
 * Without sim_lock held: a subscriber may call the driver. @last: the launch's number for
 * HOOK_TMD_BUILT, else the TMD's device address.
 */
void hook_launch(CUcontext ctx, CUfunction function, void *tmd, uint64_t last, int cbid);
/* @object: a stream's object, or a module. */
void hook_resource(CUcontext ctx, void *object, int cbid);
/* It was loaded: @image looks like a binary, whatever the program had. */
void hook_module(CUmodule module, const void *image, size_t size, enum hook_module_kind kind);
/* @graph: also what stands for an executable graph's own copy. */
void hook_graph_destroyed(const void *graph);
void hook_exec_created(CUcontext ctx, CUgraph graph, CUgraphExec exec);
void hook_exec_dying(CUgraphExec exec);
/* Somebody has subscribed who does not cope with green contexts: they are refused for ever. */
bool hook_no_green(void);

/* ---------------------------------------------------------------- context.c */

/*
 * The calling thread's current context, the primary one for a green one: NULL and *error says why.
 * Takes no lock.
 */
struct sim_ctx *ctx_current(CUresult *error);
/* The green one of @ctx that is current on this thread, or NULL. */
struct sim_ctx *ctx_current_green(const struct sim_ctx *ctx);
/* Of @device, with the mask @off; releases nothing that it did not retain. */
CUresult ctx_make_green(struct sim_ctx **green, CUdevice device, const uint64_t *off);
CUresult ctx_end_green(struct sim_ctx *green);
bool ctx_valid(const struct sim_ctx *ctx);
struct sim_ctx *ctx_first(void);	/* all there were, linked by next; dead ones too */
extern bool sim_ready;			/* cuInit has succeeded; read atomically */

/* ----------------------------------------------------------------- stream.c */

/*
 * The stream of a handle, default streams made on first use. @ctx is the current
 * one and may be NULL for handles that are pointers.
 */
struct sim_stream *stream_get(struct sim_ctx *ctx, CUstream handle, CUresult *error);
void stream_destroy_all(struct sim_ctx *ctx);
/* A created one, in @green or not (NULL). NULL: out of memory. */
struct sim_stream *stream_new(struct sim_ctx *ctx, struct sim_ctx *green, unsigned int flags,
			      int priority);
/* Another TMD buffer for the stream, as a driver might do that we do not know. */
void stream_move_tmd(struct sim_stream *stream);

/* ------------------------------------------------------------------ green.c */

/* The SMs of @gpu but those of the TPCs @off (NULL: none), as a program parts them. */
CUresult gpu_resource(const struct sim_gpu *gpu, const uint64_t *off,
		      struct cu_resource *resource, int type);

/* ------------------------------------------------------------------- room.c */

enum room_kind { ROOM_LINEAR, ROOM_MANAGED, ROOM_MAPPED, ROOM_POOL, ROOM_HOST };

/* Address space, and what of the GPU's memory it takes. */
struct room {
	struct sim_gpu *gpu;
	uint64_t address, space, bytes;
	struct room_slab *slab;		/* shared with others; NULL: its own */
};

/* False: there is no more. */
bool room_take(struct sim_ctx *ctx, enum room_kind kind, uint64_t bytes, struct room *room);
void room_give(struct room *room);
/* Of the GPU alone, in the units that it has. */
uint64_t room_rounded(uint64_t bytes);
bool room_charge(struct sim_gpu *gpu, uint64_t bytes);
void room_discharge(struct sim_gpu *gpu, uint64_t bytes);
CUresult room_info(size_t *free_bytes, size_t *total);
#define ROOM_CONTEXT	(518ull << 20)	/* as on an H200 */

/* ------------------------------------------------------------------- pool.c */

/* What is no longer used goes back, as far as pools are asked to: at each wait. */
void pool_waited(struct sim_gpu *gpu);
/* Whether it was a pool's. */
bool pool_free(uint64_t address);

/* ---------------------------------------------------------- graph_memory.c */

/* Where graphs' memory is: addresses that are never written; of captures, of nodes. */
#define GRAPH_MEMORY		0x600000000000
#define GRAPH_MEMORY_NODES	0x610000000000
#define GRAPH_MEMORY_END	0x620000000000

/* Whether it is such an address. */
bool graph_memory_given(uint64_t address);

/* ----------------------------------------------------------------- memory.c */

CUresult memory_make(struct sim_ctx *ctx, enum room_kind kind, uint64_t bytes,
		     uint64_t *address);
bool memory_unmake(uint64_t address, enum room_kind kind);
void memory_ctx_ends(struct sim_ctx *ctx);

/* Whether [address, address + bytes) lies in one live allocation. */
bool memory_valid(uint64_t address, uint64_t bytes);
/* Whether a kernel in @ctx may write there: its memory, or what it has registered. */
bool memory_of_ctx(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes);
/* Whether what @work reads and writes is memory; kernels that a program brings: true. */
bool memory_work_valid(const struct sim_work *work);
/* The fill or copy that @work->kind and @work->args say, as a kernel where there is much to do. */
CUresult memory_work(struct sim_ctx *ctx, struct sim_work *work);

/* ------------------------------------------------------------- registered.c */

/* Whether a program has registered it; @ctx NULL: in any context. */
bool registered_valid(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes);
void registered_ctx_ends(const struct sim_ctx *ctx);

/* ----------------------------------------------------------------- module.c */

bool module_make_builtin(struct sim_ctx *ctx);
/* Tells the subscribers of it. Without sim_lock. */
void module_tell_builtin(const struct sim_ctx *ctx);
void module_unload_all(struct sim_ctx *ctx);
/* Tells the subscribers of what module_unload_all() unloaded. Without sim_lock. */
void module_tell_unloaded(struct sim_ctx *ctx);
bool function_valid(const struct sim_function *function);
/* The function of a CUkernel, whose code is loaded now; of another handle that one. */
struct sim_function *function_of(void *handle);

/* ----------------------------------------------------------------- launch.c */

/* Completes @work (grid, block, cluster, dynamic are there) and says what is wrong with it. */
CUresult launch_check(struct sim_function *function, struct sim_work *work);
/* An attribute that is not simulated is an invalid value. */
CUresult launch_set_attribute(struct sim_launch *launch, int id,
			      const union cu_launch_value *value);
CUresult launch_read_args(const struct sim_code *code, void **params, void **extra,
			  struct sim_args *args);
/* The pipeline's for a priority of CUDA's. */
unsigned int launch_priority(int priority);
/* Counts up by one. */
uint64_t launch_number(void);
/* False: a callback changed in @tmd what is none of its business; said, and the context fails. */
bool launch_unspoilt(const struct sim_work *work, const uint8_t *built, const uint8_t *tmd,
		     uint64_t number);
/*
 * What @tmd says, ready to be queued. NULL and no *error: it cannot run; that is said,
 * and the context fails.
 */
struct sim_kernel *launch_kernel(const struct sim_work *work, const uint8_t *tmd,
				 uint64_t number, CUresult *error);
/* Writes outside of memory, say: later waits in the context return @error. */
void launch_failed(struct sim_ctx *ctx, CUresult error);
/*
 * Builds the TMD, calls the subscribers, reads it back, queues. @work is right.
 * Called without sim_lock.
 */
CUresult launch_submit(struct sim_stream *stream, const struct sim_work *work);

/* ------------------------------------------------------------------ graph.c */

bool handle_valid(const void *object, enum sim_handle_kind kind);
void handle_add(struct sim_handle *handle, enum sim_handle_kind kind);
void handle_drop(struct sim_handle *handle);

struct sim_graph *graph_make(void);		/* NULL: out of memory */
struct sim_graph *graph_clone(const struct sim_graph *graph);
void graph_free(struct sim_graph *graph);	/* with its nodes; NULL is fine */
void graph_empty(struct sim_graph *graph);	/* all of that but the structure itself */
/* A node after @before, which are nodes of @graph; @work NULL: none. NULL: out of memory. */
struct sim_node *graph_add(struct sim_graph *graph, enum cu_node_type type,
			   const struct sim_work *work, struct sim_node *const *before,
			   unsigned int nr_before);
/* With sim_lock taken either way: an error for what is no node. */
CUresult graph_enter_node(CUgraphNode node);

/* ------------------------------------------------------------- graph_node.c */

/* The work that kernel parameters ask for; attributes in @work stay. */
CUresult graph_kernel_work(const struct cu_kernel_node_params *params, struct sim_work *work);
/* What the parameters of fills and copies ask for; @ctx NULL: in the current one. */
CUresult graph_set_work(const struct cu_set_node_params *params, CUcontext ctx,
			struct sim_work *work);
CUresult graph_copy_work(const struct cu_copy_3d *params, CUcontext ctx, struct sim_work *work);

/* ---------------------------------------------------------------- capture.c */

/* Puts @work into the graph that the stream's work is captured in. */
CUresult capture_add(struct sim_stream *stream, enum cu_node_type type,
		     const struct sim_work *work);
/* What a stream's capture forbids (waiting, say); it is invalid from then on. */
CUresult capture_forbids(struct sim_stream *stream);
CUresult capture_forbids_ctx(struct sim_ctx *ctx);
/* Using the legacy default stream would wait for blocking streams: not for captured ones. */
CUresult capture_forbids_legacy(struct sim_ctx *ctx);
CUresult capture_record(struct sim_stream *stream, struct sim_event *event);
/* For an event or a stream of a capture. */
CUresult capture_wait(struct sim_stream *stream, const struct sim_event *event);
/* The stream is about to go. */
void capture_forget(struct sim_stream *stream);

#endif
