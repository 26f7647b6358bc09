/* SPDX-License-Identifier: MIT */
/*
 * Declarations for all files of the simulated driver: GPUs, the objects behind a program's
 * handles, and the work that is queued on streams. Unless a comment says otherwise, sim_lock
 * guards all data.
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
#define SIM_CLOCK_START		1000000000	/* a clock value of 0 means no time */
#define SIM_SHARED_DEFAULT	49152	/* bytes of shared memory that a block may use by default */
#define SIM_CLUSTER_PORTABLE	8	/* blocks */
#define SIM_PRIORITIES		6	/* number of stream priorities: 0 to -5 */

/* ------------------------------------------------------------------- the GPU */

/* A block that has run. */
struct sim_block {
	uint64_t start, end;		/* times of %globaltimer */
	uint64_t index;			/* linear, x fastest */
	uint64_t cluster;		/* linear index; 0 if there are no clusters */
	uint32_t smid;			/* the %smid that this kernel sees */
};

struct sim_gpu {
	char path[PATH_MAX];
	struct gpupart_topology *topo;	/* the topology in the capture */
	uint64_t hash;			/* the hash of that topology */
	struct gpupart_gpu_info info;	/* contains the PCI address and the UUID */
	struct cu_uuid uuid;
	unsigned int nr_tpcs, nr_sms;
	bool clusters;			/* the capture has virtual GPCs */
	uint8_t tpc_bit[GPUPART_MAX_TPCS];	/* the mask bit that disables a TPC */
	/* mask bits of TPCs outside whole virtual GPCs, and mask bits without a TPC */
	uint64_t singles[SIM_MASK_WORDS];
	unsigned int green_bits;	/* mask bits that the driver writes for a green context */
	struct pipe_gpu hw;		/* the SMs and their sizes */
	struct pipe_fed *fed;	/* the pipeline; at its time 0, %globaltimer is SIM_CLOCK_START */
	bool stands;			/* the pipeline failed and cannot continue */
	uint64_t memory, memory_taken;	/* size of the memory, and use by this process, in bytes */
	uint64_t graph_memory;		/* bytes that memory nodes of graphs use */
	unsigned int graph_trims;	/* number of times that graph_memory was trimmed */
	unsigned int primary_users;	/* holders of the primary context; a reset keeps them */
	struct sim_pool *pool, *default_pool;	/* @pool: the current one; NULL: not used yet */
};

/* ----------------------------------------------------------------- a launch */

/* The place of a launch. In a graph, the driver's release slot has different values. */
enum sim_place { SIM_IN_STREAM, SIM_IN_GRAPH, SIM_LAST_OF_GRAPH };

/* A requested launch. tmd_build.c builds its TMD. */
struct sim_launch {
	unsigned int grid[3], block[3], cluster[3];	/* cluster 0: none */
	unsigned int registers;
	unsigned int shared;		/* bytes of static and dynamic shared memory */
	bool bare;	/* a kernel of the driver: no shared memory is reserved for the system */
	enum sim_place place;
	bool cooperative;
	enum cu_cluster_policy policy;
	uint64_t off[SIM_MASK_WORDS];	/* TPCs outside the green context; 0: no green context */
	bool prioritized;		/* @priority is set; false: the stream's priority applies */
	int priority;			/* as in CUDA, a lower number is more urgent */
};

/* A completion record, which the hardware writes at the end of a grid. */
struct sim_release {
	uint64_t address, payload;
	unsigned int words;		/* 4: payload and time; 1: only the payload */
	bool adds;			/* a single word is added to the old value */
	bool wide;			/* the payload has 64 bits */
	bool own;			/* the record belongs to the driver */
};

/*
 * The content of a TMD, as the hardware reads the TMD. The decoder fills this struct. @grid is
 * the size in blocks, not in clusters.
 */
struct sim_grid {
	unsigned int grid[3], block[3], cluster[3];	/* cluster 1,1,1: none */
	unsigned int registers, shared;
	bool clustered, cooperative;
	bool spread;			/* the blocks of a cluster run on different SMs */
	unsigned int threads, cluster_blocks;
	uint64_t nr_blocks, nr_clusters;
	uint64_t tpc_off[GPUPART_MAX_TPCS / 64];	/* a set bit disables a TPC */
	struct sim_release releases[3];
	unsigned int nr_releases;
};

/* The parameters of the known kernels. */
struct sim_args {
	uint64_t address, from, bytes;
	uint32_t value, count;
};

struct sim_kernel {
	struct sim_ctx *ctx;
	uint64_t number;		/* number of the launch of this kernel */
	uint64_t nr_ran;		/* blocks that have ended */
	const struct sim_code *code;
	struct sim_args args;
	struct sim_grid grid;
	struct pipe_ask ask;
	uint16_t *smids;	/* the value of %smid on each SM; NULL: the real %smid */
};

/* A command of the pipeline that other work waits for. The last user frees the struct. */
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
	uint64_t last;			/* number of the operation's last command in the pipeline */
	struct sim_kernel *kernel;
	struct sim_event *event;
	struct sim_run *run;
	struct sim_moment *after;	/* the operation starts after this moment; NULL: no wait */
	struct sim_moment *moment;	/* marks the end of the operation; NULL: not needed */
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
	const struct pipe_ask **asks;	/* one for each node */
	unsigned int *edges;		/* storage for the @after arrays of the nodes */
	unsigned int nr_steps;
	struct sim_step steps[];
};

/* ------------------------------------------------------------------- objects */

struct sim_function {
	struct sim_module *module;
	const struct sim_code *code;
	bool launched;			/* launched at least one time, so the code is loaded */
	char *name;
	unsigned int registers;
	/* shared_dynamic: the limit that the program has set for dynamic shared memory */
	unsigned int shared_static, shared_dynamic;
	bool non_portable_cluster;
	struct sim_function *next;
};

struct sim_module {
	struct sim_ctx *ctx;
	uint64_t bytes;			/* size of variables and code */
	bool live, opaque;		/* opaque: a binary; any function name is accepted */
	bool unreported;	/* unloaded with its context, but not yet reported to subscribers */
	void *image;	/* the image of a library whose code is not loaded yet; NULL: loaded */
	size_t image_size;
	struct sim_function *functions;
	struct sim_module *next;
};

struct sim_event {
	struct sim_ctx *ctx;
	bool live, recorded;
	unsigned int pending;		/* number of records that are queued */
	uint64_t time;
	struct sim_moment *moment;	/* the moment of the last record; NULL: never recorded */
	uint64_t capture;		/* the capture with the last record; 0: not captured */
	struct sim_node **tips;		/* the nodes that the last record of a capture covers */
	unsigned int nr_tips;
	struct sim_event *next;
};

struct sim_stream {
	struct sim_ctx *ctx;
	CUstream handle;		/* NULL: a default stream */
	void *object;			/* the driver's object S, which a program can read */
	void *tmd;
	struct sim_ctx *green;		/* the green context of the stream; NULL: none */
	bool legacy, blocking;
	uint64_t thread;		/* the thread of a per-thread default stream; else 0 */
	pthread_mutex_t launch;		/* serializes launches; must be locked before sim_lock */
	int priority;			/* as in CUDA, a lower number is more urgent */
	int pipe;			/* the stream in the pipeline; -1: not opened yet */
	struct sim_op *head, **tail;	/* operations that are not done */
	uint64_t last;			/* the last command of the newest operation */
	/*
	 * @followed: number of the legacy stream's command for which this stream last waited.
	 * @followed_by: number of this stream's command for which the legacy stream last waited.
	 */
	uint64_t followed, followed_by;
	struct sim_stream *next, *next_hash;
	struct sim_capture *capture;	/* NULL: the stream is not captured */
	struct sim_node **tips;		/* the nodes on which the next captured node depends */
	unsigned int nr_tips;
};

/* A requested launch, fill or copy, for a stream or a graph. */
struct sim_work {
	enum sim_op_kind kind;		/* SIM_OP_KERNEL: the work has a TMD */
	struct sim_function *function;	/* also set for work that is too small for a kernel */
	const struct sim_code *code;
	struct sim_launch launch;
	unsigned int dynamic;		/* requested dynamic shared memory */
	struct sim_args args;
};

enum sim_handle_kind { SIM_HANDLE_GRAPH, SIM_HANDLE_NODE, SIM_HANDLE_EXEC };

/* Each object of graph.c with a handle begins with this struct. */
struct sim_handle {
	struct sim_handle *next;
	enum sim_handle_kind kind;
};

struct sim_node {
	struct sim_handle handle;
	struct sim_graph *graph;
	uint64_t serial;	/* unique; unlike an address, a serial is never reused */
	uint64_t clone_of;		/* serial of the original node; 0: not a clone */
	unsigned int at;		/* index in graph->nodes */
	enum cu_node_type type;
	struct sim_work work;
	struct sim_graph *child;	/* this node's own copy of the child graph */
	struct sim_node **before;
	unsigned int nr_before;
	void *params[2];		/* pointers to work.args, which a program may read */
};

struct sim_graph {
	struct sim_handle handle;
	bool owned;	/* a node or a capture owns the graph; the program may not destroy it */
	struct sim_node **nodes;	/* in the order of creation */
	unsigned int nr_nodes, room;
};

struct sim_ctx {
	struct sim_gpu *gpu;
	CUdevice device;
	bool live, primary;
	/* For a green context: the primary context, and the TPCs outside the mask. */
	struct sim_ctx *base;
	uint64_t off[SIM_MASK_WORDS];
	CUresult error;			/* this error stays set until the context ends */
	struct sim_stream *streams, *legacy;
	struct sim_function *builtin_set, *builtin_copy;	/* kernels of the driver */
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

/* Releases the lock. Returns @error. */
static inline CUresult sim_leave_with(CUresult error)
{
	sim_leave();
	return error;
}

/* Prints a line on stderr. No other function of the simulated driver prints. */
__attribute__((format(printf, 1, 2)))
void sim_print(const char *fmt, ...);

/* -------------------------------------------------------------------- gpu.c */

/* The GPUs that this process sees, in CUDA's order. cuInit sets them. */
extern struct sim_gpu *sim_gpus[SIM_MAX_GPUS];
extern unsigned int sim_nr_gpus;

CUresult gpu_setup(void);
/*
 * The parts of cuInit without CUDA's environment variables. The first function opens all GPUs in
 * the order of their captures. The second function sorts the GPUs by PCI address.
 */
CUresult gpu_open_all(void);
void gpu_sort_by_address(void);
/* Returns NULL before cuInit, or if the device does not exist. */
struct sim_gpu *gpu_get(CUdevice device);

/* ------------------------------------------------------------------ fault.c */

/* Faults and settings for tests. Only builds with SIM_FAULTS can set them. See README.md. */
struct sim_faults {
	uint64_t tmd_version;		/* 0x23, 0x24, 0x30 or 0x50; any other value means V04_00 */
	const char *order;		/* order of the mask bits; NULL: the order in the capture */
	int move_field[2];		/* offsets of the two TMD bytes that are exchanged */
	bool no_table, sealed_table, drop_callback, mps;
	uint64_t table_size, params_size, features;
	uint64_t tmd_pointer;		/* value in slot 4 of cbid 1; 0: the TMD's address */
	bool stale_tmd;	/* slot 4 of cbid 1 always points to a copy of the first TMD */
	bool no_stream_pointer, no_stream_events, move_tmd, capturing, no_mps_attribute;
	bool reuse_contexts, no_api, host_clock, host_thread;
	uint64_t clock_drift;		/* excess over the speed of the host's clock, in ppm */
	bool fixed_arguments, no_memory_figure;
	bool lazy_libraries;	/* the first use of a library's kernel loads the library's code */
	uint64_t other_memory;	/* bytes that another process allocates at each memory query */
	uint64_t memory;		/* memory of each GPU, in bytes */
	uint64_t graphs;		/* maximum number of executable graphs */
	uint64_t graph_memory;	/* bytes that the first upload of an executable graph uses */
	uint64_t lazy_code;	/* bytes that the first launch of a function allocates */
	uint64_t nr_clusters;		/* reported number of clusters; 0: the real one */
	bool release_busy, release_lost;
	uint64_t release_late, release_torn;	/* delays in us */
	uint64_t release_wrong;	/* wrong offset in bytes; 0: no record; UINT64_MAX: no fault */
	uint64_t lose_context;		/* the launch with this number fails; 0: no launch fails */
	uint64_t renamed;	/* the call with this number has a wrong name; 0: no call */
	uint64_t subscribers;		/* maximum number of subscribers at the same time */
	int move_bit[2];		/* a TPC and its new mask bit; -1: no TPC is moved */
	int cc[2];			/* compute capability */
	uint64_t seed;
	/* Settings for the management library. */
	const char *nvml, *nvml_state;	/* each of the two may be NULL */
	char *texts;	/* a copy of GPUPART_SIM_FAULTS; the strings above point into it */
	uint64_t nvml_ioctl;		/* a file descriptor; UINT64_MAX: none */
	bool nvml_wide, nvml_newer;
};

const struct sim_faults *sim_faults(void);

/* -------------------------------------------------------------- tmd_build.c */

/*
 * Returns the value of the TMD field for the shared memory of a block. For @bare see struct
 * sim_launch.
 */
unsigned int tmd_shared_of_block(unsigned int bytes, bool bare);

/* Returns the number of mask bits in a TMD of the simulated version. */
unsigned int tmd_nr_bits(void);

/* Exchanges the two bytes of the fault `move-field`. A second call exchanges them back. */
void tmd_move_field(uint8_t *tmd);

/* Writes all SIM_TMD_BYTES. */
void tmd_build(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch);
/*
 * Rebuilds a TMD in place. Keeps the mask and the mask-valid bit. Also keeps the release slots
 * that the driver does not use.
 */
void tmd_rebuild(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch);

/* ------------------------------------------------------------- tmd_decode.c */

/* Returns false if the hardware could not execute the TMD. */
bool tmd_decode(const uint8_t *tmd, const struct sim_gpu *gpu, struct sim_grid *grid);
/*
 * Returns the offset of the first byte that differs between two TMDs. If no byte differs, returns
 * -1. The comparison ignores the mask and the mask-valid bit. It also ignores the release slots
 * that the driver does not use.
 */
int tmd_foreign_edit(const uint8_t *before, const uint8_t *after);

/* --------------------------------------------------------------- release.c */

/* Returns the address to which the driver's release slot @slot writes. */
uint64_t release_words(unsigned int slot);
/*
 * Writes the records of a kernel. The kernel ended at @time of %globaltimer. If a record cannot
 * be written, the context fails.
 */
void release_ended(const struct sim_kernel *kernel, uint64_t time);
/*
 * Writes the delayed records that are due at @time. Returns the time of the next delayed record.
 * If no record is left, returns UINT64_MAX.
 */
uint64_t release_late(const struct sim_gpu *gpu, uint64_t time);
/* Discards the delayed records of the context. */
void release_discard_ctx(const struct sim_ctx *ctx);

/* --------------------------------------------------------------- dispatch_kernel.c */

/* Returns the table row with the sizes and the speed of an SM. All simulated GPUs use this row. */
const struct pipe_chip *sim_chip(void);
/*
 * Creates a kernel, which the caller can then queue. If @grid can never finish on this GPU,
 * returns NULL and stores the reason in @why. If memory is out, returns NULL and stores "" in
 * @why.
 */
struct sim_kernel *dispatch_prepare(struct sim_gpu *gpu, const struct sim_code *code,
				    const struct sim_args *args, const struct sim_grid *grid,
				    char why[160]);
void dispatch_free(struct sim_kernel *kernel);
/* Called by the pipeline at the end of a block. Applies the effects of the block. */
void dispatch_ran(const struct pipe_block *block);
/* Returns how many blocks of this size fit on an empty SM. @shared is the value in a TMD. */
unsigned int dispatch_occupancy(unsigned int threads, unsigned int registers,
				unsigned int shared);

/* ----------------------------------------------------------------- engine.c */

/* Creates the pipeline of a GPU from gpu->hw. Returns false if memory is out. */
bool engine_open(struct sim_gpu *gpu);
/*
 * Appends a copy of @op to the stream. The stream then owns the pointers in @op. Returns false
 * if memory is out.
 */
bool engine_queue(struct sim_stream *stream, const struct sim_op *op);
/* Creates a moment that has one user. Returns NULL if memory is out. */
struct sim_moment *engine_moment(void);
struct sim_moment *engine_moment_get(struct sim_moment *moment);
void engine_moment_put(struct sim_moment *moment);
/* Frees @run and its kernels. @run may be NULL. */
void engine_run_free(struct sim_run *run);
/*
 * Each of these functions runs the pipeline until its argument has no queued work. The result is
 * the context's error.
 */
CUresult engine_finish_stream(struct sim_stream *stream);
CUresult engine_finish_ctx(struct sim_ctx *ctx);
CUresult engine_finish_event(struct sim_event *event);
/* Discards the queued work of a stream that will be destroyed. */
void engine_discard(struct sim_stream *stream);
/* Advances to the next event. Returns false if no work is left. */
bool engine_step(struct sim_gpu *gpu);
/*
 * Called when a program polls. If the clock is simulated, this function advances to the next event.
 * With the host's clock, it handles the events that are due.
 */
void engine_polled(struct sim_gpu *gpu);
/*
 * Handles the events that are due by the host's clock. Returns the ns until the next event. The
 * caller sleeps for this time without the lock. If the clock is simulated or nothing runs,
 * returns 0.
 */
uint64_t engine_idle_ns(struct sim_gpu *gpu);
/* Releases the lock, sleeps for @ns, and acquires the lock again. */
void engine_sleep(uint64_t ns);

/* ---------------------------------------------------------------- kernels.c */

struct sim_code {
	const char *name;
	unsigned int registers;
	unsigned int nr_params;		/* u64 address, u32 value; ignored u64, u32 count */
	unsigned int record;		/* bytes that each block writes at args.address */
	unsigned int slot;		/* bytes that the whole launch writes at args.address */
	/* Sets the demands of a block of @kernel on its SM and on the memory rate. */
	void (*demand)(struct pipe_kernel *asked, const struct sim_kernel *kernel);
	/* Called at the end of a block. The pointer may be NULL. */
	void (*finish)(const struct sim_kernel *kernel, const struct sim_block *block);
	bool resident;	/* the blocks wait for each other, but the launch is not cooperative */
};

/* Never returns NULL. A kernel with an unknown name takes 1 us and does nothing. */
const struct sim_code *kernels_find(const char *name);
extern const struct sim_code kernels_set8, kernels_set32, kernels_copy;
/* Returns the number of blocks of the driver's fill or copy kernel for @bytes. */
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
	HOOK_CTX_DESTROYED = 2,		/* in the resource domain, as measured on an H200 */
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
 * Call this without sim_lock, because a subscriber may call the driver. If @cbid is HOOK_TMD_BUILT,
 * @last is the number of the launch. Otherwise @last is the device address of the TMD.
 */
void hook_launch(CUcontext ctx, CUfunction function, void *tmd, uint64_t last, int cbid);
/* @object is a module, or the driver's object of a stream. */
void hook_resource(CUcontext ctx, void *object, int cbid);
/* Reports a loaded module. @image is a binary, even if the program loaded text. */
void hook_module(CUmodule module, const void *image, size_t size, enum hook_module_kind kind);
/* For the graph inside an executable graph, @graph is &exec->inner. */
void hook_graph_destroyed(const void *graph);
void hook_exec_created(CUcontext ctx, CUgraph graph, CUgraphExec exec);
void hook_exec_dying(CUgraphExec exec);
/*
 * Returns true if a subscriber without support for green contexts has attached. In this case, the
 * driver refuses to create green contexts.
 */
bool hook_no_green(void);

/* ---------------------------------------------------------------- context.c */

/*
 * Returns the current context of the calling thread. If the current context is a green context,
 * returns the primary context instead. If the thread has no current context, returns NULL and
 * sets *error. Takes no lock.
 */
struct sim_ctx *ctx_current(CUresult *error);
/* Returns the thread's current green context, or NULL if it does not belong to @ctx. */
struct sim_ctx *ctx_current_green(const struct sim_ctx *ctx);
/*
 * Creates a green context of @device with the mask @off. The green context holds a reference to
 * the primary context until ctx_end_green().
 */
CUresult ctx_make_green(struct sim_ctx **green, CUdevice device, const uint64_t *off);
CUresult ctx_end_green(struct sim_ctx *green);
bool ctx_valid(const struct sim_ctx *ctx);
/* Returns the head of the list of all contexts, including destroyed contexts. */
struct sim_ctx *ctx_first(void);
extern bool sim_ready;			/* cuInit has succeeded; read atomically */

/* ----------------------------------------------------------------- stream.c */

/*
 * Returns the stream of @handle. At the first use of a default stream, creates the stream. @ctx
 * is the current context. If @handle is a pointer, @ctx may be NULL.
 */
struct sim_stream *stream_get(struct sim_ctx *ctx, CUstream handle, CUresult *error);
/* Finds the stream of a valid handle. Takes sim_lock, even on an error. */
struct sim_stream *stream_enter(CUstream handle, CUresult *error);
void stream_destroy_all(struct sim_ctx *ctx);
/*
 * Creates a stream in the green context @green. If @green is NULL, the stream belongs to no green
 * context. Returns NULL if memory is out.
 */
struct sim_stream *stream_new(struct sim_ctx *ctx, struct sim_ctx *green, unsigned int flags,
			      int priority);
/* Simulates an unknown driver, which may give a stream a new TMD buffer. */
void stream_move_tmd(struct sim_stream *stream);

/* ------------------------------------------------------------------ green.c */

/* Stores the SMs of @gpu as a resource, without the SMs of the TPCs in @off. @off may be NULL. */
CUresult gpu_resource(const struct sim_gpu *gpu, const uint64_t *off,
		      struct cu_resource *resource, int type);

/* ------------------------------------------------------------------- room.c */

enum vram_kind { ROOM_LINEAR, ROOM_MANAGED, ROOM_MAPPED, ROOM_POOL, ROOM_HOST };

/* A range of address space, and the GPU memory behind it. */
struct room {
	struct sim_gpu *gpu;
	uint64_t address, space, bytes;
	struct vram_slab *slab;		/* a slab that several rooms share; NULL: not shared */
};

/* Returns false if there is not enough memory. */
bool vram_take(struct sim_ctx *ctx, enum vram_kind kind, uint64_t bytes, struct room *room);
void room_give(struct room *room);
/* Rounds @bytes up to whole allocation units of the GPU's memory. */
uint64_t vram_round(uint64_t bytes);
bool room_charge(struct sim_gpu *gpu, uint64_t bytes);
void room_discharge(struct sim_gpu *gpu, uint64_t bytes);
CUresult room_info(size_t *free_bytes, size_t *total);
#define ROOM_CONTEXT	(518ull << 20)	/* as on an H200 */

/* ------------------------------------------------------------------- pool.c */

/* Called at each wait of a thread for the GPU. Frees memory that the pools need not keep. */
void pool_waited(struct sim_gpu *gpu);
/* Frees @address. Returns false if @address does not belong to a pool. */
bool pool_free(uint64_t address);

/* ----------------------------------------------------------------- memory.c */

CUresult memory_create(struct sim_ctx *ctx, enum vram_kind kind, uint64_t bytes,
		     uint64_t *address);
bool memory_destroy(uint64_t address, enum vram_kind kind);
/* Calls memory_create() for the current context. Call this without sim_lock. */
CUresult memory_allocate(uint64_t *address, uint64_t bytes, enum vram_kind kind);
void memory_ctx_ends(struct sim_ctx *ctx);

/* Returns true if [address, address + bytes) is inside [start, start + size). */
static inline bool memory_inside(uint64_t start, uint64_t size, uint64_t address, uint64_t bytes)
{
	return address >= start && address - start <= size && bytes <= size - (address - start);
}

/* Returns true if [address, address + bytes) is inside one live allocation. */
bool memory_valid(uint64_t address, uint64_t bytes);
/*
 * Returns true if a kernel in @ctx may write to this range. To allow writes, @ctx must own the
 * memory, or the memory must be registered with @ctx.
 */
bool memory_of_ctx(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes);
/* Returns true if @work accesses only allocated memory, or is a kernel of the program. */
bool memory_work_valid(const struct sim_work *work);
/*
 * Completes @work, which is a fill or copy. The caller has set the members kind and args. A large
 * fill or copy becomes a kernel.
 */
CUresult memory_work(struct sim_ctx *ctx, struct sim_work *work);

/* ------------------------------------------------------------- registered.c */

/* Returns true if this range is registered in @ctx. If @ctx is NULL, searches all contexts. */
bool registered_valid(const struct sim_ctx *ctx, uint64_t address, uint64_t bytes);
void registered_ctx_ends(const struct sim_ctx *ctx);

/* ----------------------------------------------------------------- module.c */

bool module_make_builtin(struct sim_ctx *ctx);
/* Reports the driver's own module to the subscribers. Call without sim_lock. */
void module_report_builtin(const struct sim_ctx *ctx);
void module_unload_all(struct sim_ctx *ctx);
/* Reports the modules that module_unload_all() unloaded. Call without sim_lock. */
void module_report_unloaded(struct sim_ctx *ctx);
bool function_valid(const struct sim_function *function);
/* Returns the function of a CUkernel or of a CUfunction. Loads the code of a CUkernel. */
struct sim_function *function_of(void *handle);
/* Finds the function. Takes sim_lock, even on an error. */
struct sim_function *function_enter(CUfunction function, CUresult *error);

/* ----------------------------------------------------------------- launch.c */

/* Completes and checks @work. The caller has set the members grid, block, cluster and dynamic. */
CUresult launch_check(struct sim_function *function, struct sim_work *work);
/* If the attribute is not simulated, returns CUDA's error for an invalid value. */
CUresult launch_set_attribute(struct sim_launch *launch, int id,
			      const union cu_launch_value *value);
CUresult launch_read_args(const struct sim_code *code, void **params, void **extra,
			  struct sim_args *args);
/* Returns the pipeline's priority that corresponds to a priority of CUDA. */
unsigned int launch_priority(int priority);
/* Returns the number for the next launch. */
uint64_t launch_number(void);
/*
 * Checks the bytes of @tmd that a callback has changed. If a callback must not change one of
 * these bytes, prints a message, fails the context and returns false.
 */
bool launch_accepts_edit(const struct sim_work *work, const uint8_t *built, const uint8_t *tmd,
		     uint64_t number);
/*
 * Returns the kernel that @tmd describes. If the kernel cannot run, prints a message, fails the
 * context and returns NULL without setting *error.
 */
struct sim_kernel *launch_kernel(const struct sim_work *work, const uint8_t *tmd,
				 uint64_t number, CUresult *error);
/* Reports a failed kernel, such as a write outside memory. Later waits in @ctx return @error. */
void launch_failed(struct sim_ctx *ctx, CUresult error);
/*
 * Builds the TMD, calls the subscribers, reads the TMD back and queues the launch. @work must be
 * valid. Call without sim_lock.
 */
CUresult launch_submit(struct sim_stream *stream, const struct sim_work *work);

#endif
