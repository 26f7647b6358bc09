/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the stages of the pipeline share. A command goes from the CPU (cpu.c)
 * through the buffer of a channel (cmdbuf.c), the host interface (host.c) and the compute front
 * end (frontend.c) into the task management unit (tmu.c) and the work distribution unit (wdu.c,
 * balance.c) of a context; its blocks go to SMs (sm.c, memory.c). Each stage calls the next
 * one, and reports back by the functions declared with it.
 */
#ifndef GPUPART_SIM_PIPE_PIPE_H
#define GPUPART_SIM_PIPE_PIPE_H

#include "sim/pipe/gpupart_sim.h"

#define ONE		65536u	/* as a rate: full speed; as a time: 1 ns */
#define MAX_RESIDENT	32	/* most blocks on an SM */
#define MAX_QUARTERS	4
#define MAX_WORDS	(PIPE_MAX_SMS / 64)
#define MAX_LEVELS	(1 + 2 + 64)	/* GPU, uGPUs, GPCs */
#define NEVER		UINT64_MAX
/* the remaining work of a block is kept in units of 1/65536 ns */
#define PIPE_LAST_NS	(1ull << 46)
/* Of a program, with its loops: about an hour of CPU time. */
#define PIPE_MOST_STEPS	1000000000ull
#define PIPE_MOST_BLOCKS 10000000000ull

struct pipe;
struct machine;
struct task;

/* --------------------------------------------------- queue.c: events by time */

struct queue_event {
	void (*come)(struct pipe *pipe, struct queue_event *what);
	uint64_t time;
	uint32_t at;		/* index in the heap + 1; 0: not in it */
};

struct entry {
	uint64_t time, order;
	struct queue_event *what;
};

struct queue {
	struct entry *heap;
	uint32_t nr, room;
	uint64_t order;		/* for equal times: first in, first out */
};

/* The queue has room for @room events and never grows. */
int queue_init(struct queue *queue, uint32_t room);
void queue_fini(struct queue *queue);
/* Inserts it at @time, or moves it there; NEVER removes it. */
void queue_set(struct queue *queue, struct queue_event *what, uint64_t time);
/* Removes and returns the first event; NULL: the queue is empty. */
struct queue_event *queue_next(struct queue *queue);

/* ------------------------------------------------------------------- sm.c, memory.c */

/* The resources and demands of a block of a kernel on a chip. */
struct shape {
	unsigned int warps, each, rest;	/* in total, in every quarter, and quarters with one more */
	unsigned int warp_registers, shared;
	uint64_t ns;			/* alone */
	uint32_t issue;	/* of a quarter's slots, by one warp; ONE: all of them */
	uint64_t rate;			/* bytes/us alone, in 1/16 */
	bool dram;
	/*
	 * Issue slots of each quarter that a block can use, by the first quarter with one more
	 * warp.
	 */
	uint32_t need[MAX_QUARTERS][MAX_QUARTERS];
};

struct resident {
	uint64_t left;			/* remaining time when alone, in ns times ONE */
	uint64_t start;
	struct task *task;
	uint64_t block;
	uint32_t cluster, rate;		/* rate: ONE is the speed when alone */
	uint32_t by_slots;		/* the rate by issue slots only */
	uint8_t first;			/* the first quarter with one more warp */
	bool reads;
};

struct sm {
	struct queue_event queue_event;	/* the next end of a block */
	struct machine *machine;
	uint64_t last;			/* time for which @left of the blocks is valid */
	uint32_t used;			/* used entries of residents, a bit each */
	uint8_t age[MAX_RESIDENT];	/* their indices, the oldest first */
	uint16_t smid, rank, blocks, warps;
	uint16_t quarter_warps[MAX_QUARTERS];
	uint32_t quarter_registers[MAX_QUARTERS];
	uint32_t quarter_issue[MAX_QUARTERS];	/* issue slots that its blocks could use */
	uint32_t shared;
	uint64_t demand[2];		/* bytes/us in 1/16; those from DRAM */
	uint64_t counted[2];		/* the demand that the levels have counted */
	uint64_t busy_from, ended;	/* ended: time at which the last block ended */
	uint64_t begins;		/* time from which all its blocks run */
	uint16_t vgpc, gpc, ugpu;
	bool dirty;			/* listed in machine->dirty */
	bool changed;	/* blocks started or ended since issue slots were distributed */
	struct resident residents[MAX_RESIDENT];
};

void shape_make(struct shape *shape, const struct pipe_chip *chip,
		const struct pipe_kernel *kernel);
bool sm_fits(const struct sm *sm, const struct pipe_chip *chip, const struct shape *shape);
/*
 * Call only after sm_fits(). The block runs from @start, which may be slightly later than now.
 */
void sm_put(struct pipe *pipe, struct sm *sm, struct task *task, uint64_t block,
	    uint32_t cluster, uint64_t start);
/* Computes new rates and the next end, after blocks have started or ended. */
void sm_settle(struct pipe *pipe, struct sm *sm);
/* Stops the blocks of the SM at @now when another context gets the GPU; or continues them. */
void sm_freeze(struct pipe *pipe, struct sm *sm);
void sm_thaw(struct pipe *pipe, struct sm *sm);
void sm_advance(const struct pipe *pipe, struct sm *sm);
void sm_init(struct sm *sm, struct machine *machine, unsigned int smid);

/* The bandwidth of a resource that several SMs share. */
struct level {
	uint64_t cap, demand;		/* bytes/us in 1/16 */
	uint32_t rate;
};

void memory_init(struct machine *machine);
/*
 * Updates the demand of the dirty SMs at all levels, and marks SMs as dirty whose rate changes.
 */
void memory_settle(struct pipe *pipe, struct machine *machine);
/* The rate that the levels allow for @sm. */
uint32_t memory_rate(const struct machine *machine, const struct sm *sm);

/* ----------------------------------- tmu.c, wdu.c, rank.c, balance.c: a context */

struct graph_run;

struct task {
	struct task *next;		/* in a list of the TMU, or among free ones */
	struct task *above, *below;	/* in the sorted table */
	struct machine *machine;
	const struct pipe_kernel *kernel;
	const struct shape *shape;
	struct pipe_launch launch;
	const struct pipe_ask *ask;	/* of a launch without a scenario */
	unsigned int priority, cluster, turn;
	uint64_t units, given;		/* in blocks or clusters; @given: assigned so far */
	uint64_t resident;
	bool slot, sorted, begun, stuck; /* stuck: found no room since the last block ended */
	struct graph_run *run;
	unsigned int node;
	uint64_t allowed[MAX_WORDS], closed[MAX_WORDS];	/* by rank; closed: no room there */
	struct shape own;		/* without a scenario there is no table of shapes */
};

struct machine {
	struct pipe *pipe;
	const struct pipe_gpu *gpu;
	unsigned int gpu_index, process;
	unsigned int words;		/* in masks of ranks */
	bool active, dirty_listed;
	struct machine *next_dirty;
	/* task management unit: a list for each priority */
	struct task **heads, **tails;
	uint64_t waiting;		/* tasks in these lists */
	/* work distribution unit */
	unsigned int nr_slots;		/* taken */
	struct task *sorted;		/* highest priority first */
	uint64_t work;			/* tasks in TMU and WDU */
	uint64_t balancer_ps;		/* time at which the load balancer is free again */
	/* load balancer */
	uint64_t idle[MAX_WORDS];	/* SMs, by rank */
	struct sm *sms;			/* by smid */
	struct sm *by_rank[PIPE_MAX_SMS];
	uint16_t group_start[PIPE_MAX_SMS + 1];	/* ranks of group g: [g] to [g + 1] - 1 */
	uint16_t by_rest[PIPE_MAX_SMS];	/* ranks in the order for remaining blocks */
	unsigned int nr_groups, nr_singles;	/* singles: the first groups, of one TPC each */
	unsigned int turn;		/* the next group, not counting singles */
	unsigned int single;		/* odd: the second half of the singles begins */
	unsigned int served_half;	/* of the singles, the last: 1 or 2; 0: none yet */
	bool rested, skip; /* remaining blocks were placed since a kernel began; skip a group */
	struct sm *dirty[PIPE_MAX_SMS];
	unsigned int nr_dirty;
	struct level levels[MAX_LEVELS];
	unsigned int nr_levels;
	struct shape *shapes;		/* by kernel */
	uint64_t nr_resident, busy_from;
	unsigned int nr_running;	/* SMs with a block */
};

/* It has a running block and the GPU, or no longer. */
void machine_busy(struct pipe *pipe, struct machine *machine);
void machine_idle(struct pipe *pipe, struct machine *machine);

int machine_init(struct pipe *pipe, struct machine *machine, unsigned int gpu,
		 unsigned int process);
void machine_fini(struct machine *machine);
/* Something changed: settle it after all events of this time. */
void machine_dirty(struct machine *machine);
void machine_settle(struct pipe *pipe, struct machine *machine);
void machine_sm_dirty(struct sm *sm);

void tmu_add(struct pipe *pipe, struct task *task);
void tmu_return(struct task *task);	/* after an eviction: to the head of its list */
struct task *tmu_head(const struct machine *machine);
void tmu_take(struct machine *machine, struct task *task);

/* Takes tasks from the TMU while there are free slots, and evicts tasks of lower priority. */
void wdu_accept(struct machine *machine);
/* All its blocks were assigned, or it was evicted. */
void wdu_unsort(struct task *task);
/* Called by sm.c: a block of the task has ended. */
void wdu_block_done(struct pipe *pipe, struct task *task);

void balance_init(struct machine *machine);
/*
 * Bits 0 and 4 of @turn select the single, bits 1 to 3 the group. Blocks begin with the half of
 * the singles that bit 0 selects, clusters with exactly that single.
 */
void balance_set_turn(struct machine *machine, unsigned int turn);
/* Assigns as many blocks as possible. */
void balance(struct pipe *pipe, struct machine *machine);
void balance_idle(struct machine *machine, const struct sm *sm, bool idle);
void balance_room(struct machine *machine, const struct sm *sm);
/* The units that the idle machine can hold at once within @allowed (by rank). */
uint64_t balance_capacity(const struct machine *machine, const struct pipe_kernel *kernel,
			  const uint64_t *allowed);
void balance_mask(const struct machine *machine, const struct pipe_set *set, uint64_t *allowed);

/* --------------------------------------------- slices.c: time slices of contexts */

struct slices {
	struct queue_event queue_event;
	struct machine *machines;	/* of this GPU */
	unsigned int nr, now;
	bool switching;
};

int slices_init(struct pipe *pipe, unsigned int gpu);
void slices_fini(struct slices *slices);
/* The run is stopped: running blocks count up to this moment. */
void slices_stop(struct pipe *pipe, struct slices *slices);
struct machine *slices_machine(struct pipe *pipe, unsigned int gpu, unsigned int process);
/* A machine has got work, or has none left. */
void slices_work_changed(struct pipe *pipe, struct machine *machine);

/* ---------------------------------------------- cmdbuf.c, host.c, frontend.c */

#define NO_STREAM	UINT32_MAX

enum command_kind { DO_LAUNCH, DO_GRAPH, DO_COPY, DO_RECORD, DO_WAIT };

/* What a command without a scenario contains; a scenario has tables for it. */
struct pipe_submission {
	struct pipe_submission *next;	/* in its stream, the oldest first; or among free ones */
	struct pipe_step step;
	const struct pipe_ask *const *asks;	/* by kernel; for a launch: &ask */
	const struct pipe_ask *ask;
	const struct pipe_graph *graph;
	unsigned int other;		/* the stream to wait for */
};

struct command {
	struct command *next;
	enum command_kind kind;
	unsigned int stream;
	uint64_t seq;			/* in its stream, from 1 */
	uint64_t visible;		/* time from which the GPU sees it */
	const struct pipe_step *step;
	const struct pipe_submission *pipe_submission;	/* NULL: the command of a scenario */
	/*
	 * For a wait: the command of that stream to wait for; NO_STREAM: the first record of
	 * the event.
	 */
	uint64_t value;
	unsigned int other;
};

struct runlist;

struct channel {
	struct command *head, **tail;	/* back and front of the ring */
	unsigned int nr;
	struct runlist *runlist;
	struct channel *next;		/* in the run list or in a list of waiters */
	bool served;			/* not idle: in a list or in a PBDMA */
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
	struct queue_event finish;	/* its oldest command is done; the GPU will report it */
	uint64_t asked, done;		/* sequence numbers; @done is the progress value */
	struct channel *waiters;	/* channels whose first command waits for this stream */
	struct program *sleeper;	/* programs that wait for it */
	struct channel *compute, *copies[2];
	/* Without a scenario: */
	/* channels whose first command waits for a command of this stream */
	struct channel *followers;
	struct pipe_submission *errands, **last_errand;
	void *user;
};

/* A wait for a submitted record waits for the command of the stream that contains it. */
struct event {
	unsigned int stream;		/* of the last submitted record, or NO_STREAM */
	uint64_t seq;
	bool done;			/* a record is done */
	struct channel *waiters;	/* channels that wait for the first record */
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

/* Of one GPU. */
struct host {
	struct runlist *runlists;	/* compute, then copy engines */
	unsigned int nr_runlists;
	struct channel *channels;
	unsigned int nr_channels;	/* for each engine and process */
	struct copy_engine *copy_engines;
	struct frontend frontend;
};

/* Returns false if the channel's buffer is full. */
bool cmdbuf_put(struct pipe *pipe, struct channel *channel, const struct command *command);
void cmdbuf_take(struct pipe *pipe, struct channel *channel);

int host_init(struct pipe *pipe, unsigned int gpu);
void host_fini(struct host *host);
/* The channel has new commands. */
void host_doorbell(struct pipe *pipe, struct channel *channel);
/* The stream's oldest command is done. */
void host_stream_done(struct pipe *pipe, unsigned int stream);
/* The same, after the time in which the GPU reports it. */
void host_done_later(struct pipe *pipe, unsigned int stream);
struct channel *host_channel(struct pipe *pipe, unsigned int stream,
			     const struct pipe_step *step);
/* Creates the channels of a stream, which is the @nth of its process. */
void host_attach(struct pipe *pipe, unsigned int gpu, unsigned int stream, unsigned int nth);

void copy_start(struct pipe *pipe, const struct command *command);
void copy_stop(struct pipe *pipe, const struct copy_engine *engine);
void copy_init(struct copy_engine *engine, unsigned int gpu, unsigned int index);

void frontend_init(struct frontend *frontend);
void frontend_add(struct pipe *pipe, struct task *task);

/* Creates the task of a launch, not submitted yet; NULL: no memory. */
struct task *launch_task(struct pipe *pipe, const struct command *command, unsigned int kernel);
/* Called by wdu.c: its last block has ended. */
void launch_done(struct pipe *pipe, struct task *task);

/* A running graph. */
struct graph_run {
	struct queue_event queue_event;	/* when nodes become ready */
	struct graph_run *next;
	struct command command;
	const struct pipe_graph *graph;
	unsigned int left, nr_ready;
	unsigned int *waits, *ready;
	/* The nodes that depend on node n: next_nodes[first[n]] up to first[n + 1]. */
	unsigned int *first, *next_nodes;
};

void graph_start(struct pipe *pipe, const struct command *command);
void graph_node_done(struct pipe *pipe, struct graph_run *run, unsigned int node);

/* ----------------------------------------------------------------------------- cpu.c */

struct frame {
	const struct pipe_step *steps;
	unsigned int nr, at;
	uint64_t left;			/* rounds */
};

enum program_state { PROGRAM_RUNS, PROGRAM_FULL, PROGRAM_SLEEPS, PROGRAM_DONE };

struct program {
	struct queue_event queue_event;
	const struct pipe_program *spec;
	struct pipe_program_result *result;
	struct program *next;		/* in a list of waiters */
	struct frame frames[PIPE_MAX_DEPTH];
	unsigned int depth;
	const struct pipe_step *step;	/* done when @queue_event occurs */
	enum program_state state;
	struct channel *waits_for;	/* for PROGRAM_FULL */
	uint64_t since, value;		/* sleeps until this progress value */
	unsigned int asleep_on;	/* of a stream; NO_STREAM: until its event is recorded */
};

/* The CPU time of a step, in ns. */
uint64_t cpu_cost(const struct pipe_host *host, const struct pipe_step *step);
void cpu_start(struct pipe *pipe, struct program *program, const struct pipe_program *spec,
	       struct pipe_program_result *result);
/* A channel has room again; a progress value has increased. */
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
	struct host *hosts;		/* by GPU */
	struct slices *slices;		/* by GPU */
	uint64_t nr_launches;
	uint64_t in_flight;		/* commands that are submitted and not done */
	unsigned int nr_running;	/* programs that have not ended */
	unsigned int nr_busy;		/* machines */
	uint64_t busy_from;
	struct command *free_commands;
	struct task *free_tasks;
	struct copy *free_copies;
	struct pipe_submission *free_errands;
	const struct pipe_fed_watch *fed;	/* NULL: a scenario runs */
	struct graph_run *runs;		/* running graphs */
	struct chunk *chunks;
};

/* Creates stages for @nr_streams streams. Returns 0 or -ENOMEM; destroy them in both cases. */
int run_make(struct pipe *pipe, unsigned int nr_streams);
void run_unmake(struct pipe *pipe);
/*
 * Handles all events at the time of @first, which is no longer in the queue, and their
 * consequences.
 */
void run_instant(struct pipe *pipe, struct queue_event *first);

/* Called by host.c and graph.c: the oldest command of a stream is done; a node has started. */
void fed_done(struct pipe *pipe, struct stream *stream);
void fed_node(struct pipe *pipe, const struct graph_run *run, unsigned int node);

/* Allocates @size bytes that are freed with the run; NULL: no memory. */
void *pool_new(struct pipe *pipe, void *free_list, size_t size);
int pipe_error(struct pipe *pipe, int err, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* check.c: rejects what can never finish, before the run. */
int check_scenario(struct pipe *pipe);
/* Whether steps record @event, including the steps of loops. */
bool check_records(const struct pipe_step *steps, unsigned int nr, unsigned int event);
/* deadlock.c: no event is left; reports the chain of waits. */
int deadlock_report(struct pipe *pipe);
const char *stream_name(const struct pipe *pipe, unsigned int stream);

static inline uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* a * b / c without an intermediate overflow. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

#endif
