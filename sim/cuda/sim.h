/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of the simulated driver share: GPUs, the objects behind a
 * program's handles, the work queued on streams. sim_lock guards all of it unless a comment
 * says otherwise.
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
#define SIM_TMD_BITS		256	/* of the widest layouts: V04_01 and V05_00 */
#define SIM_MAX_SUBSCRIBERS	4
#define SIM_PART_SMS		8	/* unit in which green contexts are split */
#define SIM_MASK_WORDS		(SIM_TMD_BITS / 64)
#define SIM_CLOCK_START		1000000000	/* a clock value of 0 would look like none */
#define SIM_SHARED_DEFAULT	49152	/* bytes of shared memory that a block may use by default */
#define SIM_CLUSTER_PORTABLE	8	/* blocks */
#define SIM_PRIORITIES		6	/* of streams: 0 to -5 */

/* ------------------------------------------------------------------- the GPU */

/* A block that has run. */
struct sim_block {
	uint64_t start, end;		/* times of %globaltimer */
	uint64_t index;			/* linear, x fastest */
	uint64_t cluster;		/* linear, 0 without clusters */
	uint32_t smid;			/* the %smid that this kernel sees */
};

struct sim_gpu {
	char path[PATH_MAX];
	struct gpupart_topology *topo;	/* of the capture */
	uint64_t hash;			/* of its topology */
	struct gpupart_gpu_info info;	/* with PCI address and UUID */
	struct cu_uuid uuid;
	unsigned int nr_tpcs, nr_sms;
	bool clusters;			/* the capture has virtual GPCs */
	uint8_t tpc_bit[GPUPART_MAX_TPCS];	/* the mask bit that disables a TPC */
	/* bits that belong to no whole virtual GPC, or to no TPC */
	uint64_t singles[SIM_MASK_WORDS];
	unsigned int green_bits;	/* bits of a green context's mask that the driver writes */
	struct pipe_gpu hw;		/* its SMs and their sizes */
	struct pipe_fed *fed;	/* its pipeline, whose time 0 is SIM_CLOCK_START of %globaltimer */
	bool stands;			/* it cannot continue */
	uint64_t memory, memory_taken;	/* bytes: of the GPU; used by this process */
	uint64_t graph_memory;		/* used by nodes of graphs */
	unsigned int graph_trims;	/* how often that was trimmed */
	unsigned int primary_users;	/* holders of its primary context, counted through resets */
	struct sim_pool *pool, *default_pool;	/* the present one; NULL: not used yet */
};

/* ----------------------------------------------------------------- a launch */

/* Where it is launched: in a graph the driver's release slot has other values. */
enum sim_place { SIM_IN_STREAM, SIM_IN_GRAPH, SIM_LAST_OF_GRAPH };

/* The request of a program; input of tmd_build.c. */
struct sim_launch {
	unsigned int grid[3], block[3], cluster[3];	/* cluster 0: none */
	unsigned int registers;
	unsigned int shared;		/* static and dynamic */
	bool bare;			/* a kernel of the driver: nothing is reserved */
	enum sim_place place;
	bool cooperative;
	enum cu_cluster_policy policy;
	uint64_t off[SIM_MASK_WORDS];	/* TPCs outside its green context; 0: none */
	bool prioritized;		/* else it has its stream's priority */
	int priority;			/* as in CUDA: lower is more urgent */
};

/* A record that the hardware writes at the end of a grid. */
struct sim_release {
	uint64_t address, payload;
	unsigned int words;		/* 4: payload and time; 1: the payload */
	bool adds;			/* for one word: added to the old value */
	bool wide;			/* the payload has 64 bits */
	bool own;			/* belongs to the driver */
};

/*
 * What the hardware reads from a TMD; output of the decoder. grid is in blocks, not in
 * clusters.
 */
struct sim_grid {
	unsigned int grid[3], block[3], cluster[3];	/* cluster 1,1,1: none */
	unsigned int registers, shared;
	bool clustered, cooperative;
	bool spread;			/* blocks of a cluster run on different SMs */
	unsigned int threads, cluster_blocks;
	uint64_t nr_blocks, nr_clusters;
	uint64_t tpc_off[GPUPART_MAX_TPCS / 64];	/* a set bit disables */
	struct sim_release releases[3];
	unsigned int nr_releases;
};

/* Kernel parameters that known kernels have. */
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
	uint16_t *smids;	/* the %smid values that blocks read; NULL: the SMs' own */
};

/* A command of the pipeline that others wait for. Freed by its last user. */
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

/* An operation on a stream. */
struct sim_op {
	struct sim_op *next;
	enum sim_op_kind kind;
	uint64_t last;			/* number of its last command */
	struct sim_kernel *kernel;
	struct sim_event *event;
	struct sim_run *run;
	struct sim_moment *after;	/* must be done before it starts; NULL: none */
	struct sim_moment *moment;	/* done when the operation is done; NULL: not needed */
	struct sim_args args;
	enum pipe_way way;		/* for a copy */
};

/* A node of a running graph. */
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
	unsigned int *edges;		/* the arrays for @after of the nodes */
	unsigned int nr_steps;
	struct sim_step steps[];
};

/* ------------------------------------------------------------------- objects */

struct sim_function {
	struct sim_module *module;
	const struct sim_code *code;
	bool launched;			/* at least once: its code is loaded */
	char *name;
	unsigned int registers;
	/* dynamic: the most that the program has allowed */
	unsigned int shared_static, shared_dynamic;
	bool non_portable_cluster;
	struct sim_function *next;
};

struct sim_module {
	struct sim_ctx *ctx;
	uint64_t bytes;			/* of its variables and its code */
	bool live, opaque;		/* opaque: not text; any function name is accepted */
	bool untold;	/* unloaded with its context, not reported to subscribers yet */
	void *image;	/* for a library whose code is not loaded yet; NULL: it is loaded */
	size_t image_size;
	struct sim_function *functions;
	struct sim_module *next;
};

struct sim_event {
	struct sim_ctx *ctx;
	bool live, recorded;
	unsigned int pending;		/* queued records */
	uint64_t time;
	struct sim_moment *moment;	/* of the last record; NULL: none */
	uint64_t capture;		/* capture whose work was recorded last; 0: none */
	struct sim_node **tips;		/* the nodes that were recorded */
	unsigned int nr_tips;
	struct sim_event *next;
};

struct sim_stream {
	struct sim_ctx *ctx;
	CUstream handle;		/* NULL: a default stream */
	void *object;			/* the object S; a program could see its words */
	void *tmd;
	struct sim_ctx *green;		/* its green context; NULL: none */
	bool legacy, blocking;
	uint64_t thread;		/* for a per-thread default stream; else 0 */
	pthread_mutex_t launch;		/* serializes launches; locked before sim_lock */
	int priority;			/* as in CUDA: lower is more urgent */
	int pipe;			/* its stream in the pipeline; -1: none yet */
	struct sim_op *head, **tail;	/* operations that are not done */
	uint64_t last;			/* the last command of the last of them */
	/* legacy commands that this stream waited for, and the reverse */
	uint64_t followed, followed_by;
	struct sim_stream *next, *next_hash;
	struct sim_capture *capture;	/* NULL: not captured */
	struct sim_node **tips;		/* dependencies of the next captured node */
	unsigned int nr_tips;
};

/* The request of a launch, fill or copy, for a stream or a graph. */
struct sim_work {
	enum sim_op_kind kind;		/* SIM_OP_KERNEL: it has a TMD */
	struct sim_function *function;	/* also for work too small for a kernel */
	const struct sim_code *code;
	struct sim_launch launch;
	unsigned int dynamic;		/* requested dynamic shared memory */
	struct sim_args args;
};

enum sim_handle_kind { SIM_HANDLE_GRAPH, SIM_HANDLE_NODE, SIM_HANDLE_EXEC };

/* First member of objects of graph.c with handles. */
struct sim_handle {
	struct sim_handle *next;
	enum sim_handle_kind kind;
};

struct sim_node {
	struct sim_handle handle;
	struct sim_graph *graph;
	uint64_t serial;		/* never used twice, unlike an address */
	uint64_t clone_of;		/* serial of the original node; 0: none */
	unsigned int at;		/* index in graph->nodes */
	enum cu_node_type type;
	struct sim_work work;
	struct sim_graph *child;	/* the node's own copy */
	struct sim_node **before;
	unsigned int nr_before;
	void *params[2];		/* work.args as a program reads it */
};

struct sim_graph {
	struct sim_handle handle;
	bool owned;	/* by a node or a capture: the program may not destroy it */
	struct sim_node **nodes;	/* in the order of creation */
	unsigned int nr_nodes, room;
};

struct sim_ctx {
	struct sim_gpu *gpu;
	CUdevice device;
	bool live, primary;
	/* of a green context, which uses only this and the following members */
	struct sim_ctx *base;
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

/* Prints a line on stderr. Nothing else prints. */
__attribute__((format(printf, 1, 2)))
void sim_print(const char *fmt, ...);

/* -------------------------------------------------------------------- gpu.c */

/* The GPUs that this process sees, in CUDA's order; set by cuInit. */
extern struct sim_gpu *sim_gpus[SIM_MAX_GPUS];
extern unsigned int sim_nr_gpus;

CUresult gpu_setup(void);
/*
 * Parts of cuInit that do not depend on CUDA's variables: all GPUs in the order of their
 * captures, and sorted by PCI address.
 */
CUresult gpu_open_all(void);
void gpu_sort_by_address(void);
/* NULL before cuInit, and for a device that does not exist. */
struct sim_gpu *gpu_get(CUdevice device);

/* ------------------------------------------------------------------ fault.c */

/* Faults and settings of tests. They are set only in builds with SIM_FAULTS. See README.md. */
struct sim_faults {
	uint64_t tmd_version;		/* 0x23, 0x24, 0x30, 0x50; others like V04_00 */
	const char *order;		/* of mask bits; NULL: that of the capture */
	int move_field[2];		/* two bytes of a TMD that are exchanged */
	bool no_table, sealed_table, drop_callback, mps;
	uint64_t table_size, params_size, features;
	uint64_t tmd_pointer;		/* value in slot 4 of cbid 1; 0: the TMD's address */
	bool stale_tmd;	/* slot 4 of cbid 1 always points to a copy of the first TMD */
	bool no_stream_pointer, no_stream_events, move_tmd, capturing, no_mps_attribute;
	bool reuse_contexts, no_api, host_clock, host_thread;
	uint64_t clock_drift;		/* speed difference to the host's clock, ppm */
	bool fixed_arguments, no_memory_figure;
	bool lazy_libraries;	/* code of libraries is loaded when a kernel is first used */
	uint64_t other_memory;		/* bytes that another process gets with each query */
	uint64_t memory;		/* bytes of each GPU */
	uint64_t graphs;		/* most executable graphs that can be created */
	uint64_t graph_memory;	/* bytes for each executable graph at its first upload */
	uint64_t lazy_code;		/* bytes for the first launch of a function */
	uint64_t nr_clusters;		/* reported number of clusters; 0: the real one */
	bool release_busy, release_lost;
	uint64_t release_late, release_torn;	/* us */
	uint64_t release_wrong;	/* offset in bytes; 0: no record is written; UINT64_MAX: off */
	uint64_t lose_context;		/* number of the launch that fails; 0: none */
	uint64_t renamed;		/* number of the call with a wrong name; 0: none */
	uint64_t subscribers;		/* most at the same time */
	int move_bit[2];		/* a TPC and its bit; -1: none */
	int cc[2];			/* compute capability */
	uint64_t seed;
	/* For the management library. */
	const char *nvml, *nvml_state;	/* or NULL */
	char *texts;	/* a copy of GPUPART_SIM_FAULTS that the strings point into */
	uint64_t nvml_ioctl;		/* a descriptor; UINT64_MAX: none */
	bool nvml_wide, nvml_newer;
};

const struct sim_faults *sim_faults(void);

/* -------------------------------------------------------------- tmd_build.c */

/* The field of a TMD for the shared memory of a block; @bare: see struct sim_launch. */
unsigned int tmd_shared_of_block(unsigned int bytes, bool bare);

/* The number of mask bits of a TMD of this version. */
unsigned int tmd_nr_bits(void);

/* Exchanges the bytes of `move-field`; again exchanges them back. */
void tmd_move_field(uint8_t *tmd);

/* Writes all SIM_TMD_BYTES. */
void tmd_build(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch);
/* Builds in place, and keeps the mask, the mask-valid bit and the release slots of others. */
void tmd_rebuild(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch);

/* ------------------------------------------------------------- tmd_decode.c */

/* Returns false if the hardware could not execute the TMD. */
bool tmd_decode(const uint8_t *tmd, const struct sim_gpu *gpu, struct sim_grid *grid);
/*
 * The first byte that differs between two TMDs outside the mask, the mask-valid bit and release
 * slots that the driver does not use; -1: none.
 */
int tmd_foreign_edit(const uint8_t *before, const uint8_t *after);

/* --------------------------------------------------------------- release.c */

/* The address of the driver's word for its slot. */
uint64_t release_words(unsigned int slot);
/* A kernel has ended at @time of %globaltimer: writes its records, or fails its context. */
void release_ended(const struct sim_kernel *kernel, uint64_t time);
/* Writes the late records up to @time. Returns the time of the next one; UINT64_MAX: none. */
uint64_t release_late(const struct sim_gpu *gpu, uint64_t time);
/* Discards the late records of the context. */
void release_discard_ctx(const struct sim_ctx *ctx);

/* --------------------------------------------------------------- dispatch_kernel.c */

/* The row of an SM of the simulated GPUs, and its speed. */
const struct pipe_chip *sim_chip(void);
/*
 * Creates a kernel that can be queued. Returns NULL if @grid can never finish on this GPU, with
 * the reason in @why; "" if memory is out.
 */
struct sim_kernel *dispatch_prepare(struct sim_gpu *gpu, const struct sim_code *code,
				    const struct sim_args *args, const struct sim_grid *grid,
				    char why[160]);
void dispatch_free(struct sim_kernel *kernel);
/* The pipeline reports the end of a block: applies its effects. */
void dispatch_ran(const struct pipe_block *block);
/* How many blocks of this size fit on an empty SM; @shared is the value of a TMD. */
unsigned int dispatch_occupancy(unsigned int threads, unsigned int registers,
				unsigned int shared);

/* ----------------------------------------------------------------- engine.c */

/* Creates the pipeline of a GPU from its @hw; false: no memory. */
bool engine_open(struct sim_gpu *gpu);
/* Appends a copy of @op to the stream, which then owns its pointers; false: no memory. */
bool engine_queue(struct sim_stream *stream, const struct sim_op *op);
/* With one user; NULL: out of memory. */
struct sim_moment *engine_moment(void);
struct sim_moment *engine_moment_get(struct sim_moment *moment);
void engine_moment_put(struct sim_moment *moment);
/* Frees it with its kernels. @run may be NULL. */
void engine_run_free(struct sim_run *run);
/* Each runs until no work of its object is queued, and returns the context's error. */
CUresult engine_finish_stream(struct sim_stream *stream);
CUresult engine_finish_ctx(struct sim_ctx *ctx);
CUresult engine_finish_event(struct sim_event *event);
/* The stream will be destroyed: discards its queued work. */
void engine_discard(struct sim_stream *stream);
/* Advances to the next event; false: no work is left. */
bool engine_step(struct sim_gpu *gpu);
/*
 * A program polls: advances to the next event, or carries out what is due by the host's clock.
 */
void engine_polled(struct sim_gpu *gpu);
/*
 * A thread that waits by the host's clock releases the lock meanwhile. Carries out what is due
 * and returns the ns until more is due; 0: the clock is simulated, or nothing runs.
 */
uint64_t engine_idle_ns(struct sim_gpu *gpu);
/* Sleeps for @ns without the lock. */
void engine_sleep(uint64_t ns);

/* ---------------------------------------------------------------- kernels.c */

struct sim_code {
	const char *name;
	unsigned int registers;
	unsigned int nr_params;		/* u64 address, u32 value; then u64, u32 count */
	unsigned int record;		/* bytes that each block writes at args.address */
	unsigned int slot;		/* bytes that the whole launch writes there */
	/* The demand of a block of @kernel on its SM and on memory. */
	void (*demand)(struct pipe_kernel *asked, const struct sim_kernel *kernel);
	/* Called at the end of a block; may be NULL. */
	void (*finish)(const struct sim_kernel *kernel, const struct sim_block *block);
	bool resident;	/* its blocks wait for each other, without being cooperative */
};

/* Never NULL: an unknown kernel takes 1 us and does nothing. */
const struct sim_code *kernels_find(const char *name);
extern const struct sim_code kernels_set8, kernels_set32, kernels_copy;
/* The blocks of the driver's own kernels for that many bytes. */
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
	HOOK_CTX_DESTROYED = 2,		/* resource domain, as measured on an H200 */
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
 * Call without sim_lock: a subscriber may call the driver. @last: the number of the launch for
 * HOOK_TMD_BUILT, else the device address of the TMD.
 */
void hook_launch(CUcontext ctx, CUfunction function, void *tmd, uint64_t last, int cbid);
/* @object: the object of a stream, or a module. */
void hook_resource(CUcontext ctx, void *object, int cbid);
/* A module was loaded. @image: a binary, even if the program gave text. */
void hook_module(CUmodule module, const void *image, size_t size, enum hook_module_kind kind);
/* @graph: also the address that stands for an executable graph's copy. */
void hook_graph_destroyed(const void *graph);
void hook_exec_created(CUcontext ctx, CUgraph graph, CUgraphExec exec);
void hook_exec_dying(CUgraphExec exec);
/* A subscriber without the feature has attached: green contexts are refused from then on. */
bool hook_no_green(void);

/* ---------------------------------------------------------------- context.c */

/*
 * The current context of the calling thread; for a green context, the primary one. NULL with
 * the reason in *error. Takes no lock.
 */
struct sim_ctx *ctx_current(CUresult *error);
/* The current green context of this thread on @ctx, or NULL. */
struct sim_ctx *ctx_current_green(const struct sim_ctx *ctx);
/*
 * A green context of @device with the mask @off. On an error it keeps the caller's reference of
 * the primary context.
 */
CUresult ctx_make_green(struct sim_ctx **green, CUdevice device, const uint64_t *off);
CUresult ctx_end_green(struct sim_ctx *green);
bool ctx_valid(const struct sim_ctx *ctx);
struct sim_ctx *ctx_first(void);	/* all contexts, linked by next; also destroyed ones */
extern bool sim_ready;			/* cuInit has succeeded; read atomically */

/* ----------------------------------------------------------------- stream.c */

/*
 * The stream of a handle; default streams are created at their first use. @ctx is the current
 * context and may be NULL for handles that are pointers.
 */
struct sim_stream *stream_get(struct sim_ctx *ctx, CUstream handle, CUresult *error);
void stream_destroy_all(struct sim_ctx *ctx);
/* Creates a stream, in @green or, if NULL, outside green contexts. NULL: out of memory. */
struct sim_stream *stream_new(struct sim_ctx *ctx, struct sim_ctx *green, unsigned int flags,
			      int priority);
/* Gives the stream another TMD buffer, as an unknown driver might do. */
void stream_move_tmd(struct sim_stream *stream);

/* ------------------------------------------------------------------ green.c */

/* The SMs of @gpu except those of the TPCs @off (NULL: none), as a resource. */
CUresult gpu_resource(const struct sim_gpu *gpu, const uint64_t *off,
		      struct cu_resource *resource, int type);

/* ------------------------------------------------------------------- room.c */

enum vram_kind { ROOM_LINEAR, ROOM_MANAGED, ROOM_MAPPED, ROOM_POOL, ROOM_HOST };

/* Address space, and the GPU memory that it takes. */
struct room {
	struct sim_gpu *gpu;
	uint64_t address, space, bytes;
	struct vram_slab *slab;		/* shared with others; NULL: its own memory */
};

/* Returns false if there is not enough. */
bool vram_take(struct sim_ctx *ctx, enum vram_kind kind, uint64_t bytes, struct room *room);
void room_give(struct room *room);
/* Rounds up to units of the GPU's memory. */
uint64_t vram_round(uint64_t bytes);
bool room_charge(struct sim_gpu *gpu, uint64_t bytes);
void room_discharge(struct sim_gpu *gpu, uint64_t bytes);
CUresult room_info(size_t *free_bytes, size_t *total);
#define ROOM_CONTEXT	(518ull << 20)	/* as on an H200 */

/* ------------------------------------------------------------------- pool.c */

/* Called at each wait: frees memory that pools need not keep. */
void pool_waited(struct sim_gpu *gpu);
/* Whether @address belonged to a pool. */
bool pool_free(uint64_t address);

/* ---------------------------------------------------------- graph_memory.c */

/* Addresses of graphs' memory, which are never written; for captures and for nodes. */
#define GRAPH_MEMORY		0x600000000000
#define GRAPH_MEMORY_NODES	0x610000000000
#define GRAPH_MEMORY_END	0x620000000000

/* Whether it is such an address. */
bool graph_memory_contains(uint64_t address);

/* ----------------------------------------------------------------- memory.c */

CUresult memory_make(struct sim_ctx *ctx, enum vram_kind kind, uint64_t bytes,
		     uint64_t *address);
bool memory_unmake(uint64_t address, enum vram_kind kind);
void memory_ctx_ends(struct sim_ctx *ctx);

/* Whether [address, address + bytes) is inside one live allocation. */
bool memory_valid(uint64_t address, uint64_t bytes);
/* Whether a kernel in @ctx may write there: memory of the context, or registered with it. */
bool memory_of_ctx(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes);
/* Whether @work reads and writes allocated memory. Kernels of the program: always true. */
bool memory_work_valid(const struct sim_work *work);
/* Completes the fill or copy in @work->kind and @work->args; a large one becomes a kernel. */
CUresult memory_work(struct sim_ctx *ctx, struct sim_work *work);

/* ------------------------------------------------------------- registered.c */

/* Whether a program has registered it; @ctx NULL: in any context. */
bool registered_valid(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes);
void registered_ctx_ends(const struct sim_ctx *ctx);

/* ----------------------------------------------------------------- module.c */

bool module_make_builtin(struct sim_ctx *ctx);
/* Reports it to the subscribers. Call without sim_lock. */
void module_report_builtin(const struct sim_ctx *ctx);
void module_unload_all(struct sim_ctx *ctx);
/* Reports what module_unload_all() unloaded. Call without sim_lock. */
void module_report_unloaded(struct sim_ctx *ctx);
bool function_valid(const struct sim_function *function);
/* The function of a CUkernel, whose code this loads, or of a CUfunction. */
struct sim_function *function_of(void *handle);

/* ----------------------------------------------------------------- launch.c */

/* Completes @work, whose grid, block, cluster and dynamic are set, and checks it. */
CUresult launch_check(struct sim_function *function, struct sim_work *work);
/* An attribute that is not simulated is an invalid value. */
CUresult launch_set_attribute(struct sim_launch *launch, int id,
			      const union cu_launch_value *value);
CUresult launch_read_args(const struct sim_code *code, void **params, void **extra,
			  struct sim_args *args);
/* The pipeline's priority for one of CUDA. */
unsigned int launch_priority(int priority);
/* Returns the next number of a launch. */
uint64_t launch_number(void);
/*
 * Returns false if a callback changed a byte of @tmd that it may not change; then a message is
 * printed and the context fails.
 */
bool launch_accepts_edit(const struct sim_work *work, const uint8_t *built, const uint8_t *tmd,
		     uint64_t number);
/*
 * The kernel that @tmd describes. NULL without *error: it cannot run, a message was printed,
 * and the context fails.
 */
struct sim_kernel *launch_kernel(const struct sim_work *work, const uint8_t *tmd,
				 uint64_t number, CUresult *error);
/* For example a write outside memory: later waits in the context return @error. */
void launch_failed(struct sim_ctx *ctx, CUresult error);
/*
 * Builds the TMD, calls the subscribers, reads it back and queues the launch. @work must be
 * valid. Call without sim_lock.
 */
CUresult launch_submit(struct sim_stream *stream, const struct sim_work *work);

/* ------------------------------------------------------------------ graph.c */

bool handle_valid(const void *object, enum sim_handle_kind kind);
void handle_add(struct sim_handle *handle, enum sim_handle_kind kind);
void handle_drop(struct sim_handle *handle);

struct sim_graph *graph_make(void);		/* NULL: out of memory */
struct sim_graph *graph_clone(const struct sim_graph *graph);
void graph_free(struct sim_graph *graph);	/* with its nodes; NULL is allowed */
void graph_empty(struct sim_graph *graph);	/* the contents without the structure itself */
/*
 * Adds a node after @before, which are nodes of @graph; @work NULL: none. NULL: out of memory.
 */
struct sim_node *graph_add(struct sim_graph *graph, enum cu_node_type type,
			   const struct sim_work *work, struct sim_node *const *before,
			   unsigned int nr_before);
/* Takes sim_lock, also on an error. Fails if @node is not a node. */
CUresult graph_enter_node(CUgraphNode node);

/* ------------------------------------------------------------- graph_node.c */

/* The work of kernel parameters; keeps the attributes in @work. */
CUresult graph_kernel_work(const struct cu_kernel_node_params *params, struct sim_work *work);
/* The work of the parameters of fills and copies; @ctx NULL: in the current context. */
CUresult graph_set_work(const struct cu_set_node_params *params, CUcontext ctx,
			struct sim_work *work);
CUresult graph_copy_work(const struct cu_copy_3d *params, CUcontext ctx, struct sim_work *work);

/* ---------------------------------------------------------------- capture.c */

/* Adds @work to the graph into which the stream is captured. */
CUresult capture_add(struct sim_stream *stream, enum cu_node_type type,
		     const struct sim_work *work);
/* For calls that a capture forbids, such as waits: invalidates the capture. */
CUresult capture_forbids(struct sim_stream *stream);
CUresult capture_forbids_ctx(struct sim_ctx *ctx);
/*
 * Using the legacy default stream would wait for blocking streams, which is forbidden for
 * captured ones.
 */
CUresult capture_forbids_legacy(struct sim_ctx *ctx);
CUresult capture_record(struct sim_stream *stream, struct sim_event *event);
/* Waits for an event of a capture, or in a captured stream. */
CUresult capture_wait(struct sim_stream *stream, const struct sim_event *event);
/* The stream will be destroyed. */
void capture_discard(struct sim_stream *stream);

#endif
