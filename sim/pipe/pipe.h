/* SPDX-License-Identifier: MIT */
/*
 * What the stages of the pipeline have in common. A command goes from the CPU (cpu.c) through
 * a channel's buffer (cmdbuf.c), the host interface (host.c) and the compute front end
 * (frontend.c) into a context's task management unit (tmu.c) and its work distribution unit
 * (wdu.c, balance.c), blocks onto SMs (sm.c, memory.c). Each stage calls the next one, and
 * tells the one before by the function named for it.
 */
#ifndef GPUPART_SIM_PIPE_PIPE_H
#define GPUPART_SIM_PIPE_PIPE_H

#include "sim/pipe/gpupart_sim.h"

#define ONE		65536u	/* rate 1, and 1 ns on a clock */
#define MAX_RESIDENT	32	/* blocks on an SM */
#define MAX_QUARTERS	4
#define MAX_WORDS	(PIPE_MAX_SMS / 64)
#define MAX_LEVELS	(1 + 2 + 64)	/* GPU, uGPUs, GPCs */
#define NEVER		UINT64_MAX
#define PIPE_LAST_NS	(1ull << 46)	/* what is left of a block is kept in 1/65536 ns */
/* Of a program, with its loops: an hour or so of a core. */
#define PIPE_MOST_STEPS	1000000000ull
#define PIPE_MOST_BLOCKS 10000000000ull

struct pipe;
struct machine;
struct task;

/* ------------------------------------------------------------- queue.c: what comes when */

struct happening {
	void (*come)(struct pipe *pipe, struct happening *what);
	uint64_t time;
	uint32_t at;		/* place in the heap + 1; 0: not in it */
};

struct entry {
	uint64_t time, order;
	struct happening *what;
};

struct queue {
	struct entry *heap;
	uint32_t nr, room;
	uint64_t order;		/* equal times: first come first served */
};

/* @room of them may be in it at once: it never grows. */
int queue_init(struct queue *queue, uint32_t room);
void queue_fini(struct queue *queue);
/* Puts it in, or moves it, to @time; NEVER takes it out. */
void queue_set(struct queue *queue, struct happening *what, uint64_t time);
/* The first, taken out; NULL: there is none. */
struct happening *queue_next(struct queue *queue);

/* ------------------------------------------------------------------- sm.c, memory.c */

/* What a block of a kernel takes and asks for on a chip. */
struct shape {
	unsigned int warps, each, rest;	/* in all, in every quarter, in some quarters one more */
	unsigned int warp_registers, shared;
	uint64_t ns;			/* alone */
	uint32_t issue;			/* of a quarter's slots, by a warp; ONE: all */
	uint64_t rate;			/* bytes a us alone, in 1/16 */
	bool dram;
	/* Issue slots of each quarter that a block can use, by the quarter of its one more. */
	uint32_t need[MAX_QUARTERS][MAX_QUARTERS];
};

struct resident {
	uint64_t left;			/* ns that it needs alone, times ONE */
	uint64_t start;
	struct task *task;
	uint64_t block;
	uint32_t cluster, rate;		/* rate: ONE as if alone */
	uint32_t by_slots;		/* what the rate is without memory */
	uint8_t first;			/* the quarter of the one more */
	bool reads;
};

struct sm {
	struct happening happening;	/* its next block's end */
	struct machine *machine;
	uint64_t last;			/* what is left was right at this time */
	uint32_t used;			/* residents, a bit each */
	uint8_t age[MAX_RESIDENT];	/* their numbers, the oldest first */
	uint16_t smid, rank, blocks, warps;
	uint16_t quarter_warps[MAX_QUARTERS];
	uint32_t quarter_registers[MAX_QUARTERS];
	uint32_t quarter_issue[MAX_QUARTERS];	/* slots that its blocks could use */
	uint32_t shared;
	uint64_t demand[2];		/* bytes a us in 1/16; of these from DRAM */
	uint64_t counted[2];		/* what the levels above know of it */
	uint64_t busy_from, ended;	/* ended: when a block last went */
	uint64_t begins;		/* from then on all blocks that are here go on */
	uint16_t vgpc, gpc, ugpu;
	bool dirty;			/* in machine->dirty */
	bool changed;			/* blocks came or went since slots were shared out */
	struct resident residents[MAX_RESIDENT];
};

void shape_make(struct shape *shape, const struct pipe_chip *chip,
		const struct pipe_kernel *kernel);
bool sm_fits(const struct sm *sm, const struct pipe_chip *chip, const struct shape *shape);
/* Only after sm_fits(); it runs from @start, now or a little later. */
void sm_put(struct pipe *pipe, struct sm *sm, struct task *task, uint64_t block,
	    uint32_t cluster, uint64_t start);
/* New rates and the next end, after blocks came or went. */
void sm_settle(struct pipe *pipe, struct sm *sm);
/* A machine that has the SMs no more stands still, from @now on; or goes on. */
void sm_freeze(struct pipe *pipe, struct sm *sm);
void sm_thaw(struct pipe *pipe, struct sm *sm);
void sm_advance(const struct pipe *pipe, struct sm *sm);
void sm_init(struct sm *sm, struct machine *machine, unsigned int smid);

/* Bandwidth of what several SMs share. */
struct level {
	uint64_t cap, demand;		/* bytes a us in 1/16 */
	uint32_t rate;
};

void memory_init(struct machine *machine);
/* Tells the levels what the dirty SMs ask for now; makes SMs dirty whose rate changes. */
void memory_settle(struct pipe *pipe, struct machine *machine);
/* What the levels leave to @sm. */
uint32_t memory_rate(const struct machine *machine, const struct sm *sm);

/* --------------------------------------------------- tmu.c, wdu.c, rank.c, balance.c: a context */

struct graph_run;

struct task {
	struct task *next;		/* in a list of the TMU, or free */
	struct task *above, *below;	/* in the sorted table */
	struct machine *machine;
	const struct pipe_kernel *kernel;
	const struct shape *shape;
	struct pipe_launch launch;
	const struct pipe_ask *ask;	/* of a fed GPU */
	unsigned int priority, cluster, turn;
	uint64_t units, given;		/* blocks or clusters; how many were handed out */
	uint64_t resident;
	bool slot, sorted, begun, stuck; /* stuck: found no room since blocks went */
	struct graph_run *run;
	unsigned int node;
	uint64_t allowed[MAX_WORDS], closed[MAX_WORDS];	/* by rank; closed: no room there */
	struct shape own;		/* a fed GPU has no table of shapes */
};

struct machine {
	struct pipe *pipe;
	const struct pipe_gpu *gpu;
	unsigned int gpu_index, process;
	unsigned int words;		/* of masks of ranks */
	bool active, dirty_listed;
	struct machine *next_dirty;
	/* task management unit: a list a priority */
	struct task **heads, **tails;
	uint64_t waiting;		/* tasks in them */
	/* work distribution unit */
	unsigned int nr_slots;		/* taken */
	struct task *sorted;		/* highest priority first */
	uint64_t work;			/* tasks in TMU and WDU */
	uint64_t balancer_ps;		/* when the load balancer is free again */
	/* load balancer */
	uint64_t idle[MAX_WORDS];	/* SMs, by rank */
	struct sm *sms;			/* by smid */
	struct sm *by_rank[PIPE_MAX_SMS];
	uint16_t group_start[PIPE_MAX_SMS + 1];	/* ranks of group g: [g], [g + 1] - 1 */
	uint16_t by_rest[PIPE_MAX_SMS];	/* ranks in the order that a grid's rest takes them */
	unsigned int nr_groups, nr_singles;	/* singles: the first groups, of one TPC */
	unsigned int turn;		/* the next group, singles not counted */
	unsigned int single;		/* odd: the singles' second half goes first */
	unsigned int served_half;	/* of the singles, the last: 1, 2; 0: none yet */
	bool rested, skip;		/* a rest came since a kernel began; leave a group out */
	struct sm *dirty[PIPE_MAX_SMS];
	unsigned int nr_dirty;
	struct level levels[MAX_LEVELS];
	unsigned int nr_levels;
	struct shape *shapes;		/* by kernel */
	uint64_t nr_resident, busy_from;
	unsigned int nr_running;	/* SMs with a block */
};

/* It has a block now, and the GPU; or no more. */
void machine_busy(struct pipe *pipe, struct machine *machine);
void machine_idle(struct pipe *pipe, struct machine *machine);

int machine_init(struct pipe *pipe, struct machine *machine, unsigned int gpu,
		 unsigned int process);
void machine_fini(struct machine *machine);
/* Something changed: settled when all that comes at this time has come. */
void machine_dirty(struct machine *machine);
void machine_settle(struct pipe *pipe, struct machine *machine);
void machine_sm_dirty(struct sm *sm);

void tmu_add(struct pipe *pipe, struct task *task);
void tmu_return(struct task *task);	/* evicted: to the head of its list */
struct task *tmu_head(const struct machine *machine);
void tmu_take(struct machine *machine, struct task *task);

/* Takes tasks from the TMU while there are slots, evicting lower ones. */
void wdu_accept(struct machine *machine);
/* Every block was handed out, or it was evicted. */
void wdu_unsort(struct task *task);
/* From sm.c: a block of the task is done. */
void wdu_block_done(struct pipe *pipe, struct task *task);

void balance_init(struct machine *machine);
/*
 * Bits 0 and 4 of @turn are the single whose turn it is, bits 1 to 3 the group. Blocks begin with
 * the half of the singles that the lowest bit names, clusters with the very single.
 */
void balance_set_turn(struct machine *machine, unsigned int turn);
/* Hands out what it can. */
void balance(struct pipe *pipe, struct machine *machine);
void balance_idle(struct machine *machine, const struct sm *sm, bool idle);
void balance_room(struct machine *machine, const struct sm *sm);
/* Units that the idle machine holds at once within @allowed (by rank). */
uint64_t balance_capacity(const struct machine *machine, const struct pipe_kernel *kernel,
			  const uint64_t *allowed);
void balance_mask(const struct machine *machine, const struct pipe_set *set, uint64_t *allowed);

/* ------------------------------------------------------ slices.c: contexts on a GPU in turn */

struct slices {
	struct happening happening;
	struct machine *machines;	/* of this GPU */
	unsigned int nr, now;
	bool switching;
};

int slices_init(struct pipe *pipe, unsigned int gpu);
void slices_fini(struct slices *slices);
/* The run is stopped: what is under way counts as far as it came. */
void slices_stop(struct pipe *pipe, struct slices *slices);
struct machine *slices_machine(struct pipe *pipe, unsigned int gpu, unsigned int process);
/* A machine has got work, or has no more. */
void slices_look(struct pipe *pipe, struct machine *machine);

/* ---------------------------------------------------------- cmdbuf.c, host.c, frontend.c */

#define NO_STREAM	UINT32_MAX

enum command_kind { DO_LAUNCH, DO_GRAPH, DO_COPY, DO_RECORD, DO_WAIT };

/* What a fed GPU's command is about: a scenario has tables for that. */
struct errand {
	struct errand *next;		/* in its stream, the oldest first; or free */
	struct pipe_step step;
	const struct pipe_ask *const *asks;	/* by kernel; of a launch: &ask */
	const struct pipe_ask *ask;
	const struct pipe_graph *graph;
	unsigned int other;		/* the stream that is waited for */
};

struct command {
	struct command *next;
	enum command_kind kind;
	unsigned int stream;
	uint64_t seq;			/* in its stream, from 1 */
	uint64_t visible;		/* to the GPU, from then on */
	const struct pipe_step *step;
	const struct errand *errand;	/* NULL: a scenario's */
	/* Of a wait: which command of that stream; NO_STREAM: of who records the event first. */
	uint64_t value;
	unsigned int other;
};

struct runlist;

struct channel {
	struct command *head, **tail;	/* back and front */
	unsigned int nr;
	struct runlist *runlist;
	struct channel *next;		/* in the run list or among who waits */
	bool served;			/* not idle: in a list or in a PBDMA */
	struct program *full;		/* waits for room */
};

struct pbdma {
	struct happening happening;
	struct runlist *runlist;
	struct channel *channel;	/* NULL: idle */
};

/* Channels that share an engine. */
struct runlist {
	struct channel *head, **tail;
	struct pbdma *pbdmas;
	unsigned int nr_pbdmas, gpu;
};

struct stream {
	struct happening finish;	/* its oldest command is done, the GPU is about to say so */
	uint64_t asked, done;		/* sequence numbers: progress value */
	struct channel *waiters;	/* whose head waits for this stream */
	struct program *sleeper;	/* programs that wait for it */
	struct channel *compute, *copies[2];
	/* Of a fed GPU: */
	struct channel *followers;	/* whose head waits for a command of this stream */
	struct errand *errands, **last_errand;
	void *user;
};

/* Who waits for a record that was asked for waits for the command of the stream that has it. */
struct event {
	unsigned int stream;		/* of the last record that was asked for, or NO_STREAM */
	uint64_t seq;
	bool done;			/* a record is */
	struct channel *waiters;	/* until one is */
	struct program *sleeper;
};

struct copy_engine {
	struct happening happening;
	struct copy *head, **tail;
	bool busy;
	unsigned int gpu, index;
};

struct copy {
	struct copy *next;
	struct pipe_launch launch;
};

struct frontend {
	struct happening happening;
	struct task *head, **tail;
	bool busy;
};

/* Of one GPU. */
struct host {
	struct runlist *runlists;	/* compute, then copy engines */
	unsigned int nr_runlists;
	struct channel *channels;
	unsigned int nr_channels;	/* an engine and process */
	struct copy_engine *copy_engines;
	struct frontend frontend;
};

/* False: no room in the channel's buffer. */
bool cmdbuf_put(struct pipe *pipe, struct channel *channel, const struct command *command);
void cmdbuf_take(struct pipe *pipe, struct channel *channel);

int host_init(struct pipe *pipe, unsigned int gpu);
void host_fini(struct host *host);
/* There is something new in the channel. */
void host_doorbell(struct pipe *pipe, struct channel *channel);
/* The stream's oldest command is done. */
void host_stream_done(struct pipe *pipe, unsigned int stream);
/* The same when the GPU has said so. */
void host_done_later(struct pipe *pipe, unsigned int stream);
struct channel *host_channel(struct pipe *pipe, unsigned int stream,
			     const struct pipe_step *step);
/* The channels of a stream, the @nth of its process. */
void host_attach(struct pipe *pipe, unsigned int gpu, unsigned int stream, unsigned int nth);

void copy_start(struct pipe *pipe, const struct command *command);
void copy_stop(struct pipe *pipe, const struct copy_engine *engine);
void copy_init(struct copy_engine *engine, unsigned int gpu, unsigned int index);

void frontend_init(struct frontend *frontend);
void frontend_add(struct pipe *pipe, struct task *task);

/* A task for a launch, not yet on its way; NULL: no memory. */
struct task *launch_task(struct pipe *pipe, const struct command *command, unsigned int kernel);
/* From wdu.c: its last block is done. */
void launch_done(struct pipe *pipe, struct task *task);

/* A graph on its way. */
struct graph_run {
	struct happening happening;	/* nodes that may start */
	struct graph_run *next;
	struct command command;
	const struct pipe_graph *graph;
	unsigned int left, nr_ready;
	unsigned int *waits, *ready;
	/* What comes after node n: next_nodes[first[n]] and on, to that of n + 1. */
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
	struct happening happening;
	const struct pipe_program *spec;
	struct pipe_program_result *result;
	struct program *next;		/* among who wait for the same */
	struct frame frames[PIPE_MAX_DEPTH];
	unsigned int depth;
	const struct pipe_step *step;	/* done when @happening comes */
	enum program_state state;
	struct channel *waits_for;	/* of PROGRAM_FULL */
	uint64_t since, value;		/* sleeps until that progress value */
	unsigned int asleep_on;		/* of a stream, or NO_STREAM: until its event is recorded */
};

/* What a step costs the CPU, ns. */
uint64_t cpu_cost(const struct pipe_host *host, const struct pipe_step *step);
void cpu_start(struct pipe *pipe, struct program *program, const struct pipe_program *spec,
	       struct pipe_program_result *result);
/* There is room again; the progress value has risen. */
void cpu_room(struct pipe *pipe, struct program *program);
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
	uint64_t in_flight;		/* commands that are asked for and not done */
	unsigned int nr_running;	/* programs that have not ended */
	unsigned int nr_busy;		/* machines */
	uint64_t busy_from;
	struct command *free_commands;
	struct task *free_tasks;
	struct copy *free_copies;
	struct errand *free_errands;
	const struct pipe_fed_watch *fed;	/* NULL: a scenario is run */
	struct graph_run *runs;		/* on their way */
	struct chunk *chunks;
};

/* Stages for so many streams; 0 or -ENOMEM, to be unmade either way. */
int run_make(struct pipe *pipe, unsigned int nr_streams);
void run_unmake(struct pipe *pipe);
/* All that comes at the time of @first, which is out of the queue, and what follows from it. */
void run_instant(struct pipe *pipe, struct happening *first);

/* From host.c and graph.c: the oldest command of a fed GPU's stream is done, a node started. */
void fed_done(struct pipe *pipe, struct stream *stream);
void fed_node(struct pipe *pipe, const struct graph_run *run, unsigned int node);

/* One of @size bytes, from memory that goes with the run; NULL: none left. */
void *pool_new(struct pipe *pipe, void *free_list, size_t size);
int pipe_error(struct pipe *pipe, int err, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* check.c: what can never finish, before anything runs. */
int check_scenario(struct pipe *pipe);
/* Whether steps record @event, in loops that are walked too. */
bool check_records(const struct pipe_step *steps, unsigned int nr, unsigned int event);
/* deadlock.c: nothing will come any more; says who waits for whom. */
int deadlock_report(struct pipe *pipe);
const char *stream_name(const struct pipe *pipe, unsigned int stream);

static inline uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* a * b / c without an overflow in between. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

#endif
