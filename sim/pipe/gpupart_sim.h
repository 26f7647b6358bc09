/* SPDX-License-Identifier: MIT */
/*
 * The scheduling pipeline of a GPU in software: what a scenario is and what a run of it
 * tells. Knows no file format and no driver. Not a part of libgpupart: linked into what
 * uses it (sim/pipe). Times are whole nanoseconds from the scenario's begin.
 */
#ifndef GPUPART_SIM_PIPE_GPUPART_SIM_H
#define GPUPART_SIM_PIPE_GPUPART_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPE_MAX_SMS	512
#define PIPE_SET_WORDS	4	/* 256 TPCs, bit set = allowed */
#define PIPE_MAX_DEPTH	16	/* loops in loops */
#define PIPE_WHY	1024	/* a sentence with a cycle in it */

/* ------------------------------------------------------------------- what there is */

/* In which order the load balancer takes SMs with equal load. */
enum pipe_order {
	PIPE_ORDER_TPC,		/* first SMs of all TPCs by number, then second ones */
	PIPE_ORDER_VGPC,	/* as measured on an H200: virtual GPCs in turn, singletons first */
};

/* One row of chips.c. Rates in bytes a microsecond (MB/s), clocks of the SMs. */
struct pipe_chip {
	const char *name, *title;
	unsigned int nr_gpcs, nr_tpcs, sms_per_tpc, nr_ugpus;
	unsigned int quarters, warps, registers, register_unit;	/* three a quarter */
	unsigned int shared, shared_reserved, shared_unit, blocks, block_threads, cluster;
	unsigned int block_shared;	/* of one block; 0: what an SM has, less @shared_reserved */
	unsigned int mhz;
	unsigned int issue;	/* clocks that a quarter's FP32 unit is busy with a warp */
	unsigned int latency;	/* clocks until a result can be used */
	unsigned int slots, priorities, channels, pbdmas, copy_engines;
	uint64_t sm_rate, gpc_rate, ugpu_rate, dram_rate, link_rate;
	uint64_t gpc_dram_rate;	/* of a GPC whose reads all come from DRAM; 0: gpc_rate */
	uint64_t ugpu_dram_rate;	/* the same of a uGPU; 0: ugpu_rate */
	uint64_t warp_rate;	/* what one warp's reads alone get */
	unsigned int doorbell_ns, fetch_ns, frontend_ns, done_ns;
	unsigned int place_ps;	/* between two blocks that the load balancer hands out */
	unsigned int begin_ns;	/* from one block's end to its successor's begin on that SM */
	unsigned int copy_ns, node_ns, switch_ns, slice_ns;
	enum pipe_order order;
	const char *sample;	/* capture that its map is from; NULL: an even one is made up */
	const char *source;
};

/* NULL: no such row. */
const struct pipe_chip *pipe_chip_find(const char *name);
/* Row @i, or NULL past the last. */
const struct pipe_chip *pipe_chip_row(unsigned int i);

/* Where an SM is. A row each %smid. */
struct pipe_place {
	uint16_t tpc, gpc, vgpc, ugpu, sm_in_tpc;
};

struct pipe_map {
	unsigned int nr_sms, nr_tpcs, nr_gpcs, nr_vgpcs;
	struct pipe_place sms[PIPE_MAX_SMS];
};

/* TPCs dealt out to GPCs in turn, virtual GPCs as GPCs. */
void pipe_map_even(struct pipe_map *map, const struct pipe_chip *chip);

/* ------------------------------------------------------------------- what is asked */

struct pipe_set {
	uint64_t allowed[PIPE_SET_WORDS];	/* by TPC */
};

struct pipe_gpu {
	struct pipe_chip chip;
	struct pipe_map map;
	bool mps;		/* processes share it; else they have it in turn */
	bool one_queue;		/* copies and kernels in one queue of commands */
	unsigned int turn;	/* PIPE_ORDER_VGPC: whose turn it is at the begin, 0 .. 15 */
	int line;
};

/*
 * What a block does; the longest of its three demands is how long it takes alone. One with
 * nothing but @ns is slowed down by nobody.
 */
struct pipe_kernel {
	const char *name;
	uint64_t blocks;
	unsigned int threads, registers, shared, cluster;
	bool cooperative;
	bool pack;		/* a cluster's blocks may share SMs; else an SM each */
	uint64_t ns;
	uint64_t work;		/* instructions of each warp */
	unsigned int every;	/* clocks from one to the next; 0: the chip's latency */
	uint64_t bytes;		/* read by a block */
	bool from_l2;		/* they are in L2: no DRAM is asked */
	int line;
};

struct pipe_stream {
	const char *name;
	unsigned int gpu, process, priority;	/* 0 is the lowest */
	const struct pipe_set *set;		/* NULL: all TPCs */
	int line;
};

#define PIPE_NO_KERNEL	UINT32_MAX	/* a node of a fed GPU: done as soon as it may start */

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
	unsigned int what;		/* kernel, graph or event */
	unsigned int stream;
	uint64_t amount;		/* ns of CPU, bytes of a copy, rounds of a loop */
	enum pipe_way way;
	const struct pipe_set *set;	/* of this launch alone; NULL: the stream's */
	unsigned int turn;		/* 1 + whose turn it is when it begins; 0: as it stands */
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

/* What a call costs the CPU, ns; ring: commands that a channel's buffer holds. */
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
	uint64_t stop_ns;		/* 0: when all is done */
};

/* ------------------------------------------------------------------- what comes out */

struct pipe_block {
	unsigned int gpu, smid, kernel, stream, cluster;
	uint64_t launch, block, start, end;
	const struct pipe_ask *ask;	/* of a fed GPU's launch; else NULL */
};

/* A launch, a node of a graph, or (kernel UINT_MAX) a copy. */
struct pipe_launch {
	uint64_t launch;	/* counts up from 0 in the order the host interface issues them */
	unsigned int gpu, kernel, stream, engine;
	uint64_t asked;		/* the CPU had put it into the command buffer */
	uint64_t issued;	/* the host interface had passed it on */
	uint64_t start, end;	/* of its first and last block; a copy's own */
	uint64_t blocks, bytes;
	uint64_t sms[PIPE_MAX_SMS / 64];	/* by %smid, those that had a block */
	unsigned int evicted;	/* times that it lost its slot */
};

/* Either function may be NULL. What they are given is theirs for the call only. */
struct pipe_watch {
	void *user;
	void (*block)(void *user, const struct pipe_block *block);
	void (*launch)(void *user, const struct pipe_launch *launch);
};

struct pipe_gpu_result {
	uint64_t first, last;	/* of all blocks; last 0: there were none */
	uint64_t busy_ns;	/* at least one block was there, and went on */
	uint64_t sm_ns;		/* summed over SMs with such a block */
	uint64_t copy_ns;	/* summed over copy engines */
	uint64_t switches;	/* from one process to another */
};

struct pipe_program_result {
	bool done;		/* else it was stopped */
	uint64_t end;		/* 0: it was stopped */
	uint64_t full_ns;	/* it waited for room in a command buffer */
	uint64_t sync_ns;	/* it waited for the GPU because it asked to */
};

#define PIPE_MAX_GPUS	8
#define PIPE_MAX_PROGRAMS 64

struct pipe_result {
	uint64_t end;		/* when the last thing was done */
	uint64_t launches, blocks, copies, events;
	bool stopped;		/* at stop_ns, with work left: what was under way counts to there */
	uint64_t busy_ns;	/* at least one block was on any GPU, and went on */
	int line;		/* of the scenario, that @why is about; 0: none */
	char why[PIPE_WHY];
	struct pipe_gpu_result gpus[PIPE_MAX_GPUS];
	struct pipe_program_result programs[PIPE_MAX_PROGRAMS];
};

/*
 * Runs @scenario. 0; -EINVAL what it asks for can never finish or is out of range;
 * -EDEADLK it came to a standstill; -EOVERFLOW it would take longer than the clock has;
 * -ENOMEM. result->why is then a sentence and result->line the place.
 */
int pipe_run(const struct pipe_scenario *scenario, const struct pipe_watch *watch,
	     struct pipe_result *result);

/* Blocks of @kernel that an idle SM of @chip holds; 0: it fits on none. */
unsigned int pipe_occupancy(const struct pipe_chip *chip, const struct pipe_kernel *kernel);

/* ------------------------------------------------------------- a GPU that is fed */

/*
 * The same stages without a scenario: commands are put into a GPU's buffers as they come up,
 * and time goes on only when it is told to. Fed at the same times, it answers as pipe_run()
 * does. Not thread-safe: one call at a time, and none from within a function of the watch.
 */
struct pipe_fed;

#define PIPE_MAX_STREAMS 16384	/* of a fed GPU, at once */

/* A kernel as it is launched. */
struct pipe_ask {
	struct pipe_kernel kernel;
	struct pipe_set set;
	unsigned int priority;	/* 0 is the lowest */
	unsigned int turn;	/* as in struct pipe_step */
};

/* Any function may be NULL. @stream is what the stream was opened with. */
struct pipe_fed_watch {
	void *user;
	/* A block is done. */
	void (*block)(void *user, const struct pipe_block *block);
	/* A node without a kernel may start, and has. */
	void (*node)(void *user, void *stream, uint64_t number, unsigned int node);
	/* The stream's command @number is done, and so are all before it. */
	void (*done)(void *user, void *stream, uint64_t number);
};

/*
 * @gpu and @watch are copied. What a launch or a graph is given must stay until it is done.
 * 0 or -ENOMEM.
 */
int pipe_fed_open(struct pipe_fed **fed, const struct pipe_gpu *gpu,
		  const struct pipe_fed_watch *watch);
void pipe_fed_close(struct pipe_fed *fed);

/* The number of a stream of its own order, whose commands count from 1; -ENOSPC, -ENOMEM. */
int pipe_fed_stream(struct pipe_fed *fed, void *user);
/* All of its commands are done. Its number may be given out again, and counts on. */
void pipe_fed_stream_close(struct pipe_fed *fed, int stream);

/*
 * Puts a command behind those that the stream has: its number there; -EAGAIN: the command
 * buffer is full, and has room again when time has gone on; -ENOMEM. What can never finish is
 * the caller's to find, by pipe_fed_room().
 */
int64_t pipe_fed_launch(struct pipe_fed *fed, int stream, const struct pipe_ask *ask);
/* Nodes' kernels are indices into @asks; the graph's own name is not looked at. */
int64_t pipe_fed_graph(struct pipe_fed *fed, int stream, const struct pipe_graph *graph,
		       const struct pipe_ask *const *asks);
int64_t pipe_fed_copy(struct pipe_fed *fed, int stream, enum pipe_way way, uint64_t bytes);
/* Does nothing: a moment that can be waited for. */
int64_t pipe_fed_record(struct pipe_fed *fed, int stream);
/* What comes behind it waits until command @number of stream @other is done. */
int64_t pipe_fed_wait(struct pipe_fed *fed, int stream, int other, uint64_t number);

/* Blocks, or clusters, that the idle GPU holds at once in the set; 0: it can never run. */
uint64_t pipe_fed_room(const struct pipe_fed *fed, const struct pipe_ask *ask);

/* ns since it was opened. */
uint64_t pipe_fed_now(const struct pipe_fed *fed);
/* When something comes next; UINT64_MAX: nothing is under way. */
uint64_t pipe_fed_next(const struct pipe_fed *fed);
/* All that comes next. 1; 0: nothing is under way; -ENOMEM, -EOVERFLOW: it stands for ever. */
int pipe_fed_step(struct pipe_fed *fed);
/* All that comes up to @ns, which it is then at least. 0 or as pipe_fed_step(). */
int pipe_fed_until(struct pipe_fed *fed, uint64_t ns);

#endif
