/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the stages of the pipeline share. The CPU (cpu.c) writes a command into the
 * buffer of a channel (cmdbuf.c). The host interface (host.c) reads the command and passes it to
 * the compute front end (frontend.c). From the front end, the command enters the task management
 * unit (tmu.c) of a context, and then the context's work distribution unit (wdu.c, balance.c).
 * The work distribution unit assigns the blocks to SMs (sm.c, memory.c). Each stage calls the
 * next stage. For reports to the previous stage, a stage calls functions of the previous stage.
 */
#ifndef GPUPART_SIM_PIPE_PIPE_H
#define GPUPART_SIM_PIPE_PIPE_H

#include "sim/pipe/gpupart_sim.h"

#define ONE		65536u	/* a rate of ONE is full speed; a time of ONE is 1 ns */
#define MAX_RESIDENT	32	/* maximum number of blocks on an SM */
#define MAX_QUARTERS	4
#define MAX_WORDS	(PIPE_MAX_SMS / 64)
#define MAX_LEVELS	(1 + 2 + 64)	/* GPU, uGPUs, GPCs */
#define NEVER		UINT64_MAX
/* maximum time of a block; the remaining time is stored in units of 1/65536 ns */
#define PIPE_LAST_NS	(1ull << 46)
/*
 * The maximum number of steps of a program, including rounds of loops. These steps take about an
 * hour of CPU time.
 */
#define PIPE_MOST_STEPS	1000000000ull
#define PIPE_MOST_BLOCKS 10000000000ull

struct pipe;
struct machine;
struct task;

/* --------------------------------------------------- queue.c: events by time */

struct queue_event {
	void (*come)(struct pipe *pipe, struct queue_event *what);
	uint64_t time;
	uint32_t at;		/* 1 + the index in the heap; 0: not in the heap */
};

struct entry {
	uint64_t time, order;
	struct queue_event *what;
};

struct queue {
	struct entry *heap;
	uint32_t nr, room;
	uint64_t order;		/* insertion number, for the order of events with equal times */
};

/* Creates a queue with room for @room events. The queue never grows. Returns 0 or -ENOMEM. */
int queue_init(struct queue *queue, uint32_t room);
void queue_fini(struct queue *queue);
/* Inserts @what at @time, or moves @what to @time. If the time is NEVER, removes @what. */
void queue_set(struct queue *queue, struct queue_event *what, uint64_t time);
/* Removes and returns the first event. If the queue is empty, returns NULL. */
struct queue_event *queue_next(struct queue *queue);

/* ------------------------------------------------------------------- sm.c, memory.c */

/* The resources and demands of a kernel's block on a chip. */
struct shape {
	/*
	 * @warps: total number; @each: warps in every quarter; @rest: quarters with one more warp
	 */
	unsigned int warps, each, rest;
	unsigned int warp_registers, shared;
	uint64_t ns;			/* run time if the block runs alone */
	uint32_t issue;	/* share of a quarter's issue slots that one warp uses; ONE: all slots */
	uint64_t rate;		/* memory rate if the block runs alone, in 1/16 bytes/us */
	bool dram;
	/*
	 * If quarter f is the first quarter with one more warp, a block can use need[f][q] issue
	 * slots of quarter q.
	 */
	uint32_t need[MAX_QUARTERS][MAX_QUARTERS];
};

struct resident {
	uint64_t left;			/* remaining solo run time, in ns times ONE */
	uint64_t start;
	struct task *task;
	uint64_t block;
	uint32_t cluster, rate;		/* rate: ONE is the solo speed */
	/* rate that the issue slots allow, without the limits of memory */
	uint32_t by_slots;
	uint8_t first;			/* the first quarter with one more warp */
	bool reads;
};

struct sm {
	struct queue_event queue_event;	/* the time when the next block ends */
	struct machine *machine;
	uint64_t last;			/* the time at which @left of each block is valid */
	uint32_t used;			/* a bit for each used entry of @residents */
	uint8_t age[MAX_RESIDENT];	/* indices of the used entries, the oldest first */
	uint16_t smid, rank, blocks, warps;
	uint16_t quarter_warps[MAX_QUARTERS];
	uint32_t quarter_registers[MAX_QUARTERS];
	uint32_t quarter_issue[MAX_QUARTERS];	/* issue slots that its blocks could use */
	uint32_t shared;
	uint64_t demand[2];	/* in 1/16 bytes/us: total demand; demand for reads from DRAM */
	/* the part of @demand that the levels have already counted */
	uint64_t counted[2];
	uint64_t busy_from, ended;	/* ended: the end of the last block */
	uint64_t begins;		/* the time from which all its blocks run */
	uint16_t vgpc, gpc, ugpu;
	bool dirty;			/* listed in machine->dirty */
	bool changed;	/* blocks have started or ended since issue slots were distributed */
	struct resident residents[MAX_RESIDENT];
};

void shape_make(struct shape *shape, const struct pipe_chip *chip,
		const struct pipe_kernel *kernel);
bool sm_fits(const struct sm *sm, const struct pipe_chip *chip, const struct shape *shape);
/*
 * Puts a block on an SM. Before the call, sm_fits() must have returned true. The block runs from
 * @start, which may be slightly later than the current time.
 */
void sm_put(struct pipe *pipe, struct sm *sm, struct task *task, uint64_t block,
	    uint32_t cluster, uint64_t start);
/*
 * Computes the new rates and the end time of the next block. Called after blocks have started or
 * ended.
 */
void sm_settle(struct pipe *pipe, struct sm *sm);
/*
 * When another context gets the GPU, the first function stops the SM's blocks. Later, the second
 * function continues the blocks.
 */
void sm_freeze(struct pipe *pipe, struct sm *sm);
void sm_thaw(struct pipe *pipe, struct sm *sm);
void sm_advance(const struct pipe *pipe, struct sm *sm);
void sm_init(struct sm *sm, struct machine *machine, unsigned int smid);

/* The bandwidth of a resource that several SMs share. */
struct level {
	uint64_t cap, demand;		/* in 1/16 bytes/us */
	uint32_t rate;
};

void memory_init(struct machine *machine);
/*
 * Updates the demand of the dirty SMs at all levels. If the rate of an SM changes, marks the SM as
 * dirty.
 */
void memory_settle(struct pipe *pipe, struct machine *machine);
/* Returns the rate that the levels allow for @sm. */
uint32_t memory_rate(const struct machine *machine, const struct sm *sm);

/* ----------------------------------- tmu.c, wdu.c, rank.c, balance.c: a context */

struct graph_run;

struct task {
	struct task *next;		/* the next task in a list of the TMU or in the free list */
	struct task *above, *below;	/* neighbours in the sorted table */
	struct machine *machine;
	const struct pipe_kernel *kernel;
	const struct shape *shape;
	struct pipe_launch launch;
	const struct pipe_ask *ask;	/* the kernel, if there is no scenario */
	unsigned int priority, cluster, turn;
	/* number of blocks or clusters: @units in total, @given already assigned */
	uint64_t units, given;
	uint64_t resident;
	/* stuck: since the last end of a block, no room was found */
	bool slot, sorted, begun, stuck;
	struct graph_run *run;
	unsigned int node;
	/* a bit for each SM, by rank; closed: the SM has no room for a block of this task */
	uint64_t allowed[MAX_WORDS], closed[MAX_WORDS];
	struct shape own;		/* the shape, if there is no scenario */
};

struct machine {
	struct pipe *pipe;
	const struct pipe_gpu *gpu;
	unsigned int gpu_index, process;
	unsigned int words;		/* number of words in a mask of ranks */
	bool active, dirty_listed;
	struct machine *next_dirty;
	/* task management unit: a list for each priority */
	struct task **heads, **tails;
	uint64_t waiting;		/* tasks in these lists */
	/* work distribution unit */
	unsigned int nr_slots;		/* number of slots in use */
	struct task *sorted;		/* tasks with slots, the highest priority first */
	uint64_t work;			/* number of tasks in TMU and WDU */
	uint64_t balancer_ps;		/* the load balancer is free again at this time, in ps */
	/* load balancer */
	uint64_t idle[MAX_WORDS];	/* a bit for each idle SM, by rank */
	struct sm *sms;			/* by %smid */
	struct sm *by_rank[PIPE_MAX_SMS];
	uint16_t group_start[PIPE_MAX_SMS + 1];	/* group g has the ranks [g] to [g + 1] - 1 */
	uint16_t by_rest[PIPE_MAX_SMS];	/* ranks in the order in which remaining blocks use them */
	/* singles: the first groups; each single has one TPC */
	unsigned int nr_groups, nr_singles;
	unsigned int turn;		/* the next group, not counting singles */
	unsigned int single;		/* odd: the second half of the singles begins */
	/* the last served half of the singles, 1 or 2; 0: no half was served yet */
	unsigned int served_half;
	/* rested: since a kernel began, remaining blocks were assigned; skip: skip a group */
	bool rested, skip;
	struct sm *dirty[PIPE_MAX_SMS];
	unsigned int nr_dirty;
	struct level levels[MAX_LEVELS];
	unsigned int nr_levels;
	struct shape *shapes;		/* one for each kernel */
	uint64_t nr_resident, busy_from;
	unsigned int nr_running;	/* number of SMs with a block */
};

/*
 * When the machine has the GPU and a running block, call the first function. When the machine
 * loses the GPU or its last running block, call the second function.
 */
void machine_busy(struct pipe *pipe, struct machine *machine);
void machine_idle(struct pipe *pipe, struct machine *machine);

int machine_init(struct pipe *pipe, struct machine *machine, unsigned int gpu,
		 unsigned int process);
void machine_fini(struct machine *machine);
/*
 * Marks the machine as changed. The run updates changed machines after all events of the current
 * time.
 */
void machine_dirty(struct machine *machine);
void machine_settle(struct pipe *pipe, struct machine *machine);
void machine_sm_dirty(struct sm *sm);

void tmu_add(struct pipe *pipe, struct task *task);
void tmu_return(struct task *task);	/* puts an evicted task at the head of its list */
struct task *tmu_head(const struct machine *machine);
void tmu_take(struct machine *machine, struct task *task);

/* Takes tasks from the TMU while there are free slots. Also evicts tasks of lower priority. */
void wdu_accept(struct machine *machine);
/*
 * Removes a task from the sorted table. Called when all blocks of the task are assigned, or when
 * the task is evicted.
 */
void wdu_unsort(struct task *task);
/* Called by sm.c when a block of the task has ended. */
void wdu_block_done(struct pipe *pipe, struct task *task);

void balance_init(struct machine *machine);
/*
 * Bits 0 and 4 of @turn select a single. Bits 1 to 3 select a group. Bit 0 also selects a half of
 * the singles. A kernel without clusters begins with this half. A kernel with clusters begins
 * with the selected single.
 */
void balance_set_turn(struct machine *machine, unsigned int turn);
/* Assigns as many blocks to SMs as possible. */
void balance(struct pipe *pipe, struct machine *machine);
void balance_idle(struct machine *machine, const struct sm *sm, bool idle);
void balance_room(struct machine *machine, const struct sm *sm);
/*
 * For an idle machine, returns the number of blocks or clusters that fit on the SMs in @allowed
 * at the same time. @allowed has a bit for each rank.
 */
uint64_t balance_capacity(const struct machine *machine, const struct pipe_kernel *kernel,
			  const uint64_t *allowed);
void balance_mask(const struct machine *machine, const struct pipe_set *set, uint64_t *allowed);

/* --------------------------------------------- slices.c: time slices of contexts */

struct slices {
	struct queue_event queue_event;
	struct machine *machines;	/* the machines of this GPU */
	unsigned int nr, now;
	bool switching;
};

int slices_init(struct pipe *pipe, unsigned int gpu);
void slices_fini(struct slices *slices);
/* Stops the GPU at the end of a run. Running blocks count up to the current time. */
void slices_stop(struct pipe *pipe, struct slices *slices);
struct machine *slices_machine(struct pipe *pipe, unsigned int gpu, unsigned int process);
/* Called when an idle machine gets work, or when a machine has done all its work. */
void slices_work_changed(struct pipe *pipe, struct machine *machine);

/* ---------------------------------------------- cmdbuf.c, host.c, frontend.c */

#define NO_STREAM	UINT32_MAX

enum command_kind { DO_LAUNCH, DO_GRAPH, DO_COPY, DO_RECORD, DO_WAIT };

/* The contents of a command without a scenario. A scenario has tables for these contents. */
struct pipe_submission {
	/* the next newer command of the stream, or the next element of the free list */
	struct pipe_submission *next;
	struct pipe_step step;
	const struct pipe_ask *const *asks;	/* one for each kernel; for a single launch: &ask */
	const struct pipe_ask *ask;
	const struct pipe_graph *graph;
	unsigned int other;		/* the stream to wait for */
};

struct command {
	struct command *next;
	enum command_kind kind;
	unsigned int stream;
	uint64_t seq;			/* number of the command in its stream, from 1 */
	uint64_t visible;		/* the GPU sees the command from this time on */
	const struct pipe_step *step;
	const struct pipe_submission *pipe_submission;	/* NULL: the command of a scenario */
	/*
	 * A wait command waits for command number @value of the stream @other. If @other is
	 * NO_STREAM, it waits for the first record of the event.
	 */
	uint64_t value;
	unsigned int other;
};

struct runlist;

struct channel {
	struct command *head, **tail;	/* the commands in the ring, the oldest first */
	unsigned int nr;
	struct runlist *runlist;
	/* the next channel in the run list or in a list of waiters */
	struct channel *next;
	/* a list or a PBDMA contains the channel; false: the channel is idle */
	bool served;
	struct program *full;		/* the program that waits for room */
};

struct pbdma {
	struct queue_event queue_event;
	struct runlist *runlist;
	struct channel *channel;	/* NULL: idle */
};

/* The channels of an engine. */
struct runlist {
	struct channel *head, **tail;
	struct pbdma *pbdmas;
	unsigned int nr_pbdmas, gpu;
};

struct stream {
	/* the event in which the GPU reports the end of a command */
	struct queue_event finish;
	/* numbers of the last submitted command (@asked) and the last finished command (@done) */
	uint64_t asked, done;
	struct channel *waiters;	/* channels whose first command waits for this stream */
	struct program *sleeper;	/* programs that wait for this stream */
	struct channel *compute, *copies[2];
	/* The members below are used only without a scenario. */
	/* channels whose first command waits for a command of this stream */
	struct channel *followers;
	struct pipe_submission *errands, **last_errand;
	void *user;
};

/*
 * An event. A wait for an event is a wait for the command with the event's last submitted record.
 */
struct event {
	unsigned int stream;		/* the stream of the last submitted record, or NO_STREAM */
	uint64_t seq;			/* number of the command with that record */
	bool done;			/* at least one record is done */
	struct channel *waiters;	/* channels that wait for the first record of the event */
	struct program *sleeper;
};

struct copy_engine {
	struct queue_event queue_event;
	struct copy *head, **tail;
	bool busy;
	unsigned int gpu, index;
};

struct copy {
	struct copy *next;
	struct pipe_launch launch;
};

struct frontend {
	struct queue_event queue_event;
	struct task *head, **tail;
	bool busy;
};

/* The host interface of one GPU. */
struct host {
	/* first the runlist of the compute engine, then the runlists of copy engines */
	struct runlist *runlists;
	unsigned int nr_runlists;
	struct channel *channels;
	unsigned int nr_channels;	/* number of channels for each engine and process */
	struct copy_engine *copy_engines;
	struct frontend frontend;
};

/* Returns false if the channel's buffer is full. */
bool cmdbuf_put(struct pipe *pipe, struct channel *channel, const struct command *command);
void cmdbuf_take(struct pipe *pipe, struct channel *channel);

int host_init(struct pipe *pipe, unsigned int gpu);
void host_fini(struct host *host);
/* Informs the host interface that the channel has new commands. */
void host_doorbell(struct pipe *pipe, struct channel *channel);
/* Informs the host interface that the stream's oldest command is done. */
void host_stream_done(struct pipe *pipe, unsigned int stream);
/*
 * Calls host_stream_done() after a delay. The delay is the time in which the GPU reports the end
 * of a command.
 */
void host_done_later(struct pipe *pipe, unsigned int stream);
struct channel *host_channel(struct pipe *pipe, unsigned int stream,
			     const struct pipe_step *step);
/* Assigns channels to a stream. The stream has the number @nth in its process. */
void host_attach(struct pipe *pipe, unsigned int gpu, unsigned int stream, unsigned int nth);

void copy_start(struct pipe *pipe, const struct command *command);
void copy_stop(struct pipe *pipe, const struct copy_engine *engine);
void copy_init(struct copy_engine *engine, unsigned int gpu, unsigned int index);

void frontend_init(struct frontend *frontend);
void frontend_add(struct pipe *pipe, struct task *task);

/* Creates the task of a launch, but does not submit it. Returns NULL if memory is out. */
struct task *launch_task(struct pipe *pipe, const struct command *command, unsigned int kernel);
/* Called by wdu.c when the last block of a launch has ended. */
void launch_done(struct pipe *pipe, struct task *task);

/* A running graph. */
struct graph_run {
	struct queue_event queue_event;	/* the time when nodes become ready */
	struct graph_run *next;
	struct command command;
	const struct pipe_graph *graph;
	unsigned int left, nr_ready;
	unsigned int *waits, *ready;
	/*
	 * next_nodes[first[n]] to next_nodes[first[n + 1] - 1] are the nodes that depend on node
	 * n.
	 */
	unsigned int *first, *next_nodes;
};

void graph_start(struct pipe *pipe, const struct command *command);
void graph_node_done(struct pipe *pipe, struct graph_run *run, unsigned int node);

/* ----------------------------------------------------------------------------- cpu.c */

struct frame {
	const struct pipe_step *steps;
	unsigned int nr, at;
	uint64_t left;			/* remaining rounds of the loop */
};

enum program_state { PROGRAM_RUNS, PROGRAM_FULL, PROGRAM_SLEEPS, PROGRAM_DONE };

struct program {
	struct queue_event queue_event;
	const struct pipe_program *spec;
	struct pipe_program_result *result;
	struct program *next;		/* the next program in a list of waiters */
	struct frame frames[PIPE_MAX_DEPTH];
	unsigned int depth;
	/* the present step; @queue_event ends this step */
	const struct pipe_step *step;
	enum program_state state;
	struct channel *waits_for;	/* for PROGRAM_FULL */
	/* @value: the program sleeps until this progress value */
	uint64_t since, value;
	/* the stream of @value; NO_STREAM: sleeps until the event is recorded */
	unsigned int asleep_on;
};

/* Returns the CPU time of a step, in ns. */
uint64_t cpu_cost(const struct pipe_host *host, const struct pipe_step *step);
void cpu_start(struct pipe *pipe, struct program *program, const struct pipe_program *spec,
	       struct pipe_program_result *result);
/*
 * When a program's channel has room again, the first function continues the program. When a
 * progress value has increased, the second function continues the programs that wait for it.
 */
void cpu_buffer_free(struct pipe *pipe, struct program *program);
void cpu_wake(struct pipe *pipe, struct program **list);
void cpu_stop(struct pipe *pipe, struct program *program);

/* ------------------------------------------------------------------- run.c and others */

struct pipe {
	const struct pipe_scenario *scenario;
	const struct pipe_watch *watch;
	struct pipe_result *result;
	struct queue queue;
	uint64_t now;
	int error;
	struct machine *dirty;
	struct stream *streams;
	struct event *events;
	struct program *programs;
	struct host *hosts;		/* one for each GPU */
	struct slices *slices;		/* one for each GPU */
	uint64_t nr_launches;
	uint64_t in_flight;		/* number of submitted commands that are not done */
	unsigned int nr_running;	/* number of programs that have not ended */
	unsigned int nr_busy;		/* number of busy machines */
	uint64_t busy_from;
	struct command *free_commands;
	struct task *free_tasks;
	struct copy *free_copies;
	struct pipe_submission *free_errands;
	const struct pipe_fed_watch *fed;	/* NULL: a scenario runs */
	struct graph_run *runs;		/* running graphs */
	struct chunk *chunks;
};

/*
 * Creates the stages for @nr_streams streams. Returns 0 or -ENOMEM. In both cases, the caller
 * must destroy the stages.
 */
int run_init(struct pipe *pipe, unsigned int nr_streams);
void run_fini(struct pipe *pipe);
/*
 * Handles all events at the time of @first, and their consequences. The caller has removed
 * @first from the queue.
 */
void run_instant(struct pipe *pipe, struct queue_event *first);

/* Called by host.c when the oldest command of a stream is done. */
void fed_done(struct pipe *pipe, struct stream *stream);
/* Called by graph.c when a node has started. */
void fed_node(struct pipe *pipe, const struct graph_run *run, unsigned int node);

/* Allocates @size bytes. The end of the run frees these bytes. If memory is out, returns NULL. */
void *pool_new(struct pipe *pipe, void *free_list, size_t size);
int pipe_error(struct pipe *pipe, int err, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Before the run, rejects a scenario that can never finish (check.c). */
int check_scenario(struct pipe *pipe);
/* Returns true if one of @steps, or a step in one of their loops, records @event. */
bool check_records(const struct pipe_step *steps, unsigned int nr, unsigned int event);
/* If no event is left, reports the chain of waits (deadlock.c). */
int deadlock_report(struct pipe *pipe);
const char *stream_name(const struct pipe *pipe, unsigned int stream);

static inline uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* Returns a * b / c without an intermediate overflow. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

#endif
