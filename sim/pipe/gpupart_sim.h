/* SPDX-License-Identifier: MIT */
/*
 * A software model of the scheduling pipeline of a GPU. This file declares the input and the
 * results of a run. The input is a scenario. The model is not part of libgpupart. Times are
 * integer nanoseconds since the start of the scenario. Not thread-safe.
 */
#ifndef GPUPART_SIM_PIPE_GPUPART_SIM_H
#define GPUPART_SIM_PIPE_GPUPART_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPE_MAX_SMS	512
#define PIPE_SET_WORDS	4	/* 256 TPCs; a set bit allows a TPC */
#define PIPE_MAX_DEPTH	16	/* nested loops */
#define PIPE_WHY	1024	/* size of a message, which may list a cycle of waits */

/* ------------------------------------------------------------------ hardware */

/* If several SMs have the same load, the load balancer uses them in this order. */
enum pipe_order {
	PIPE_ORDER_TPC,		/* the first SMs of all TPCs by number, then the second SMs */
	PIPE_ORDER_VGPC,	/* singletons, then virtual GPCs in turn, as measured on an H200 */
};

/* A row of chips.c. Rates are bytes per microsecond (MB/s); clocks are those of the SMs. */
struct pipe_chip {
	const char *name, *title;
	unsigned int nr_gpcs, nr_tpcs, sms_per_tpc, nr_ugpus;
	/*
	 * @quarters of each SM; the other members describe one quarter; @register_unit:
	 * allocation unit
	 */
	unsigned int quarters, warps, registers, register_unit;
	unsigned int shared, shared_reserved, shared_unit, blocks, block_threads, cluster;
	unsigned int block_shared; /* limit for one block; 0: @shared minus @shared_reserved */
	unsigned int mhz;
	/* clocks for which one instruction of a warp occupies a quarter's FP32 unit */
	unsigned int issue;
	unsigned int latency;	/* clocks until an instruction's result can be used */
	unsigned int slots, priorities, channels, pbdmas, copy_engines;
	uint64_t sm_rate, gpc_rate, ugpu_rate, dram_rate, link_rate;
	uint64_t gpc_dram_rate;	/* rate of a GPC that reads only from DRAM; 0: same as @gpc_rate */
	/* rate of a uGPU that reads only from DRAM; 0: same as @ugpu_rate */
	uint64_t ugpu_dram_rate;
	uint64_t warp_rate;	/* rate of a single warp */
	unsigned int doorbell_ns, fetch_ns, frontend_ns, done_ns;
	unsigned int place_ps;	/* time between two assignments by the load balancer */
	unsigned int begin_ns;	/* time between two consecutive blocks on an SM */
	unsigned int copy_ns, node_ns, switch_ns, slice_ns;
	enum pipe_order order;
	const char *sample;	/* the capture with its map; NULL: TPCs are distributed evenly */
	const char *source;
};

/* Returns NULL if the table has no such row. */
const struct pipe_chip *pipe_chip_find(const char *name);
/* Returns row @i, or NULL after the last row. */
const struct pipe_chip *pipe_chip_row(unsigned int i);

/* The location of an SM. The map has a row for each %smid. */
struct pipe_place {
	uint16_t tpc, gpc, vgpc, ugpu, sm_in_tpc;
};

struct pipe_map {
	unsigned int nr_sms, nr_tpcs, nr_gpcs, nr_vgpcs;
	struct pipe_place sms[PIPE_MAX_SMS];
};

/* Distributes TPCs to GPCs in turn. Each virtual GPC is a whole GPC. */
void pipe_map_even(struct pipe_map *map, const struct pipe_chip *chip);

/* ------------------------------------------------------------------ input */

struct pipe_set {
	uint64_t allowed[PIPE_SET_WORDS];	/* by TPC */
};

struct pipe_gpu {
	struct pipe_chip chip;
	struct pipe_map map;
	/* processes share the GPU; false: each process has the GPU for a time slice */
	bool mps;
	bool one_queue;		/* copies and kernels share one queue of commands */
	unsigned int turn;	/* PIPE_ORDER_VGPC: the first turn, 0 .. 15 */
	int line;
};

/*
 * A kernel and the demands of its blocks. A block has three demands: @ns, @work and @bytes. The
 * demand that takes longest determines the solo run time. If a block has only @ns, other blocks
 * never slow it down.
 */
struct pipe_kernel {
	const char *name;
	uint64_t blocks;
	unsigned int threads, registers, shared, cluster;
	bool cooperative;
	/* blocks of a cluster may share an SM; false: they are on different SMs */
	bool pack;
	uint64_t ns;
	uint64_t work;		/* instructions of each warp */
	unsigned int every;	/* clocks between two instructions; 0: the chip's latency */
	uint64_t bytes;		/* bytes that a block reads */
	bool from_l2;		/* the bytes are read from L2, not from DRAM */
	int line;
};

struct pipe_stream {
	const char *name;
	unsigned int gpu, process, priority;	/* 0 is the lowest */
	const struct pipe_set *set;		/* NULL: all TPCs */
	/*
	 * Lending: while stream @lender - 1 has no outstanding command, a launch may use @lent
	 * instead of @set. The launch must have no separate set, and may_borrow[] must be true
	 * for its kernel. A graph or a cooperative kernel never uses @lent. The caller may change
	 * @lent and may_borrow[] in functions of the watch. If @lender is 0, there is no lending.
	 */
	unsigned int lender;
	const struct pipe_set *lent;
	const bool *may_borrow;
	int line;
};

#define PIPE_NO_KERNEL	UINT32_MAX	/* a node without a kernel; its end is its start */

struct pipe_node {
	unsigned int kernel;
	const unsigned int *after;	/* earlier nodes of the graph */
	unsigned int nr_after;
};

struct pipe_graph {
	const char *name;
	const struct pipe_node *nodes;
	unsigned int nr_nodes;
};

enum pipe_step_kind {
	PIPE_LAUNCH, PIPE_GRAPH, PIPE_COPY, PIPE_RECORD, PIPE_WAIT,
	PIPE_SYNC, PIPE_SYNC_EVENT, PIPE_SYNC_ALL, PIPE_CPU, PIPE_LOOP,
};

enum pipe_way { PIPE_TO_GPU, PIPE_FROM_GPU };

struct pipe_step {
	enum pipe_step_kind kind;
	unsigned int what;		/* index of the kernel, graph or event */
	unsigned int stream;
	uint64_t amount;		/* CPU time in ns, bytes of a copy, or rounds of a loop */
	enum pipe_way way;
	const struct pipe_set *set;	/* the set of this launch; NULL: the stream's set */
	unsigned int turn;	/* 1 + the turn with which the launch starts; 0: the current turn */
	const struct pipe_step *body;
	unsigned int nr_body;
	int line;
};

struct pipe_program {
	const char *name;
	unsigned int process;
	uint64_t start_ns;
	const struct pipe_step *steps;
	unsigned int nr_steps;
};

/* The CPU time of each call, in ns. @ring is the size of a channel's buffer, in commands. */
struct pipe_host {
	unsigned int launch_ns, graph_ns, copy_ns, call_ns, sync_ns, ring;
};
extern const struct pipe_host pipe_host_default;

struct pipe_scenario {
	struct pipe_host host;
	const struct pipe_gpu *gpus;
	const struct pipe_kernel *kernels;
	const struct pipe_graph *graphs;
	const struct pipe_stream *streams;
	const char *const *events, *const *processes;
	const struct pipe_program *programs;
	unsigned int nr_gpus, nr_kernels, nr_graphs, nr_streams, nr_events, nr_processes,
		     nr_programs;
	uint64_t stop_ns;		/* 0: run until everything is done */
};

/* ------------------------------------------------------------------ results */

struct pipe_block {
	unsigned int gpu, smid, kernel, stream, cluster;
	uint64_t launch, block, start, end;
	const struct pipe_ask *ask;	/* NULL in a scenario; otherwise the kernel */
};

/* A launch, a node of a graph, or a copy (kernel is UINT_MAX). */
struct pipe_launch {
	uint64_t launch;	/* numbered from 0 in the order of the host interface */
	unsigned int gpu, kernel, stream, engine;
	uint64_t asked;		/* time when the CPU finished writing the command to the buffer */
	uint64_t issued;	/* time when the host interface finished passing the command on */
	/* start of the first block and end of the last block, or start and end of the copy */
	uint64_t start, end;
	uint64_t blocks, bytes;
	uint64_t sms[PIPE_MAX_SMS / 64];	/* a bit for each %smid that ran a block */
	unsigned int evicted;	/* number of times that the launch lost its slot */
	bool lent;		/* the launch used the set @lent of its stream */
};

/* Both functions may be NULL. The arguments are valid only during the call. */
struct pipe_watch {
	void *user;
	void (*block)(void *user, const struct pipe_block *block);
	void (*launch)(void *user, const struct pipe_launch *launch);
};

struct pipe_gpu_result {
	/* earliest start and latest end of a block; @last 0: no block ran */
	uint64_t first, last;
	uint64_t busy_ns;	/* time during which at least one block ran */
	/* busy time of each SM, added up over all SMs */
	uint64_t sm_ns;
	uint64_t copy_ns;	/* time of copies, added up over all copy engines */
	uint64_t switches;	/* number of switches from one process to another */
};

struct pipe_program_result {
	bool done;		/* false: the program was stopped */
	uint64_t end;		/* the time when the program ended; 0: the program was stopped */
	uint64_t full_ns;	/* time in which the program waited for room in a command
				 * buffer */
	uint64_t sync_ns;	/* time in calls that wait for the GPU */
};

#define PIPE_MAX_GPUS	8
#define PIPE_MAX_PROGRAMS 64

struct pipe_result {
	uint64_t end;		/* end of the last activity */
	uint64_t launches, blocks, copies, events;
	/* the run ended at stop_ns before all work was done; results count up to stop_ns */
	bool stopped;
	uint64_t busy_ns;	/* time during which at least one block ran on any GPU */
	int line;		/* line of the scenario that @why describes; 0: no line */
	char why[PIPE_WHY];
	struct pipe_gpu_result gpus[PIPE_MAX_GPUS];
	struct pipe_program_result programs[PIPE_MAX_PROGRAMS];
};

/*
 * Runs @scenario. Returns 0 or a negative errno. -EINVAL: the scenario can never finish, or a
 * value is out of range. -EDEADLK: the run ends in a deadlock. -EOVERFLOW: the run exceeds the
 * range of the clock. -ENOMEM: memory is out. After an error, result->why is a message, and
 * result->line is the number of the line that the message describes.
 */
int pipe_run(const struct pipe_scenario *scenario, const struct pipe_watch *watch,
	     struct pipe_result *result);

/* Returns the number of blocks of @kernel that fit on an idle SM of @chip. */
unsigned int pipe_occupancy(const struct pipe_chip *chip, const struct pipe_kernel *kernel);

/* ------------------------------------------------ a GPU without a scenario */

/*
 * A GPU with the same stages, but without a scenario. The caller submits commands at any time,
 * and advances the time. If the caller submits the commands of a scenario at the scenario's
 * times, the results equal those of pipe_run(). Not thread-safe. The functions of the watch may
 * not call the functions below.
 */
struct pipe_fed;

#define PIPE_MAX_STREAMS 16384	/* maximum number of open streams of one GPU */

/* A kernel of a launch. */
struct pipe_ask {
	struct pipe_kernel kernel;
	struct pipe_set set;
	unsigned int priority;	/* 0 is the lowest */
	unsigned int turn;	/* see struct pipe_step */
};

/* Each function may be NULL. @stream is the argument @user of pipe_fed_stream(). */
struct pipe_fed_watch {
	void *user;
	/* A block has ended. */
	void (*block)(void *user, const struct pipe_block *block);
	/* A node without a kernel has started and ended. */
	void (*node)(void *user, void *stream, uint64_t number, unsigned int node);
	/* Command @number of the stream and all earlier commands of the stream are done. */
	void (*done)(void *user, void *stream, uint64_t number);
};

/*
 * Creates a GPU. Copies @gpu and @watch. The GPU does not copy launches and graphs. So the caller
 * must keep each launch or graph valid until it is done. Returns 0 or -ENOMEM.
 */
int pipe_fed_open(struct pipe_fed **fed, const struct pipe_gpu *gpu,
		  const struct pipe_fed_watch *watch);
void pipe_fed_close(struct pipe_fed *fed);

/*
 * Opens a stream. The commands of the stream are numbered from 1. Returns the number of the
 * stream, -ENOSPC or -ENOMEM.
 */
int pipe_fed_stream(struct pipe_fed *fed, void *user);
/*
 * Closes a stream. All commands of the stream must be done. A new stream may get the number of a
 * closed stream. The numbers of its commands then continue after the numbers of the closed
 * stream's commands.
 */
void pipe_fed_stream_close(struct pipe_fed *fed, int stream);

/*
 * Each of these functions appends a command to the stream. The result is the number of the
 * command or an error. -EAGAIN: the command buffer is full. When the time has advanced, the
 * caller can try again. -ENOMEM: memory is out. Before a launch, the caller checks with
 * pipe_fed_room() that the launch can finish.
 */
int64_t pipe_fed_launch(struct pipe_fed *fed, int stream, const struct pipe_ask *ask);
/* The kernel of each node is an index into @asks. The name of the graph is not used. */
int64_t pipe_fed_graph(struct pipe_fed *fed, int stream, const struct pipe_graph *graph,
		       const struct pipe_ask *const *asks);
int64_t pipe_fed_copy(struct pipe_fed *fed, int stream, enum pipe_way way, uint64_t bytes);
/* This command does nothing, but other streams can wait for it. */
int64_t pipe_fed_record(struct pipe_fed *fed, int stream);
/* All later commands of @stream wait until command @number of stream @other is done. */
int64_t pipe_fed_wait(struct pipe_fed *fed, int stream, int other, uint64_t number);

/*
 * Returns the number of blocks or clusters that fit into the set of @ask at the same time on the
 * idle GPU. If the kernel can never run, returns 0.
 */
uint64_t pipe_fed_room(const struct pipe_fed *fed, const struct pipe_ask *ask);

/* Returns the time since the GPU was created, in ns. */
uint64_t pipe_fed_now(const struct pipe_fed *fed);
/* Returns the time of the next event. If nothing is in progress, returns UINT64_MAX. */
uint64_t pipe_fed_next(const struct pipe_fed *fed);
/*
 * Advances to the next event and handles all events of that time. Normally returns 1. If nothing
 * is in progress, returns 0. If the GPU cannot continue, returns -ENOMEM or -EOVERFLOW.
 */
int pipe_fed_step(struct pipe_fed *fed);
/*
 * Handles all events up to the time @ns and advances to that time. Returns 0 or an error of
 * pipe_fed_step().
 */
int pipe_fed_until(struct pipe_fed *fed, uint64_t ns);

#endif
