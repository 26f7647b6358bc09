/* SPDX-License-Identifier: MIT */
/*
 * Declarations that several parts of `gpupart bench` use. Functions of type int return 0, or -errno
 * with a message in bench->why. Each part runs once in a separate process, so a part does not free
 * its resources.
 */
#ifndef GPUPART_CLI_BENCH_BENCH_H
#define GPUPART_CLI_BENCH_BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <gpupart_manage.h>
#include "cli/draw/topology.h"
#include "cli/target/driver.h"
#include "cli/bench/report.h"
#include "cli/bench/sets.h"
#include "cli/bench/stats.h"

enum bench_code {
	BENCH_FMA, BENCH_READ, BENCH_CHASE, BENCH_HOLD, BENCH_VIRTUAL, BENCH_EMPTY,
	BENCH_NR_CODES,
};

/*
 * Options of the part "peers", which runs two programs. For each unit of work, a program prints the
 * time in ms.
 */
struct peers_options {
	const char *programs[2];	/* command lines for the shell */
	const char *both;	/* a program that acts as A and as B: "PROGRAM MODE PIPE PIPE" */
	const char *goal;	/* goal of A for qos, as in "latency: 8ms"; NULL: no qos */
	bool has_latency;	/* @goal is a latency goal; peers_check() sets this member */
	const char *only;	/* the groups of ways to measure; NULL: all groups */
	unsigned int seconds, rounds;
};

struct bench {
	const char *selector;		/* selector of the GPU for gpupart_attach() */
	char pci[20];			/* address of the GPU for CUDA and NVML */
	bool quick, simulated;
	struct gpupart_gpu *gpu;	/* bench_attach() sets the members from here on */
	const struct gpupart_topology *topo;
	struct driver cu;
	void *function[BENCH_NR_CODES];
	unsigned int l2_bytes;
	struct sets sets;
	char why[512];
	/* options of the part "peers"; if NULL, this part does not run */
	const struct peers_options *peers;
};

/* A part of `gpupart bench`. The function run() fills the report of the part. */
struct bench_part {
	const char *name, *title;
	int (*run)(struct bench *b, json_t *report);
	bool attaches_itself;		/* runs before CUDA is initialized */
	bool takes_programs;		/* runs only if the user names this part */
};

extern const struct bench_part bench_parts[];
extern const unsigned int bench_nr_parts;

int bench_isolation(struct bench *b, json_t *report);
int bench_scaling(struct bench *b, json_t *report);
int bench_overlap(struct bench *b, json_t *report);
int bench_slots(struct bench *b, json_t *report);
int bench_dynamic(struct bench *b, json_t *report);
int bench_protect(struct bench *b, json_t *report);
int bench_software(struct bench *b, json_t *report);
int bench_overhead(struct bench *b, json_t *report);
int bench_criteria(struct bench *b, json_t *report);
int bench_peers(struct bench *b, json_t *report);
/*
 * Checks the goal and the names of the ways, and checks that no option is missing that these ways
 * need. Returns 0 or an exit status.
 */
int peers_check(struct peers_options *options);

/* Attaches to the GPU, initializes CUDA, loads the kernels and warms up the GPU. */
int bench_attach(struct bench *b);

/*
 * Initializes CUDA on the GPU at b->pci, and loads the kernels. Does not attach to the GPU. Does
 * not warm up the GPU.
 */
int bench_start(struct bench *b);

/* Sets the message in b->why. Returns @err. */
__attribute__((format(printf, 3, 4)))
int bench_fail(struct bench *b, int err, const char *fmt, ...);

/* Calls a function of the driver. */
#define CU(b, call, ...) \
	driver_check(&(b)->cu, #call, (b)->cu.call(__VA_ARGS__), (b)->why, sizeof((b)->why))

/* Copies the message of a failed call of the library to b->why. */
int bench_library(struct bench *b, int err);

/*
 * Returns a small number on the simulated GPU. On a real GPU with --quick, returns @quick.
 * Otherwise returns @full.
 */
unsigned int bench_count(const struct bench *b, unsigned int full, unsigned int quick);

/* ------------------------------------------------------------ launch.c */

/* The record that a launch writes. The code in kernels.ptx uses the same layout. */
#define SLOT_SM_WORDS 32
struct slot {
	uint64_t start, end;		/* %globaltimer in ns */
	uint64_t cycles, ns;		/* duration of block 0, in clock cycles and in ns */
	uint32_t sms[SLOT_SM_WORDS];	/* one bit for each SM; the bit is 1 if a block ran on the
					 * SM */
};

struct slots {
	struct bench *b;
	cuda_ptr device;
	struct slot *host;		/* valid after slots_fetch() */
	unsigned int nr;
};

int slots_open(struct bench *b, struct slots *slots, unsigned int nr);
int slots_clear(struct slots *slots);
int slots_fetch(struct slots *slots);
/* Returns the SM clock, in MHz, during the launch. If the clock is not known, returns 0. */
double slot_mhz(const struct slot *slot);
struct gpupart_tpcset slot_tpcs(const struct bench *b, const struct slot *slot);
unsigned int slot_nr_sms(const struct slot *slot);

struct kernel {
	enum bench_code code;
	unsigned int blocks, threads;
	uint32_t n;			/* iterations, or ns for BENCH_HOLD */
	cuda_ptr buffer;
	uint32_t mask, first;		/* parameters of the kernels in kernels.ptx */
	uint32_t step;			/* added to @first at each launch of a series */
};

int kernel_launch(struct bench *b, void *stream, const struct kernel *kernel,
		  const struct slots *slots, unsigned int slot);

int bench_stream(struct bench *b, const struct gpupart_tpcset *set, void **stream);
int bench_stream_set(struct bench *b, void *stream, const struct gpupart_tpcset *set);
int bench_alloc(struct bench *b, size_t bytes, cuda_ptr *memory);
/* Copies data to the GPU. After this function returns, launches on all streams see the data. */
int bench_upload(struct bench *b, cuda_ptr to, const void *from, size_t bytes);

#define SERIES_MOST 100

/*
 * Runs a series of consecutive launches. The GPU measures the time from the end of one launch to
 * the end of the next launch. The array @us has @nr entries, and @nr is at most SERIES_MOST. Before
 * the series, two more launches warm up the GPU. The number of slots in @slots must be larger than
 * @nr.
 */
int bench_series(struct bench *b, void *stream, const struct kernel *kernel,
		 struct slots *slots, unsigned int nr, double *us);

/*
 * Sets kernel->n. With this value, a launch on @stream takes about @us microseconds. On the
 * simulated GPU, does nothing.
 */
int bench_calibrate(struct bench *b, void *stream, struct kernel *kernel, double us);

double bench_now_us(void);

/* --------------------------------------------------------- workload.c */

/* The kernels that the parts measure. The number of blocks in a kernel depends on the set. */
enum work { WORK_FMA, WORK_L2, WORK_CHASE, WORK_DRAM, WORK_NR };

extern const char *const work_name[WORK_NR];

struct workload {
	struct bench *b;
	cuda_ptr l2[2], dram[2], chain;	/* [0]: for a victim, [1]: for a neighbour */
	uint32_t l2_mask, dram_mask, chain_mask;
};

int workload_open(struct bench *b, struct workload *w);
/*
 * Prepares a kernel with one wave of blocks on @nr_sms SMs. Alone in the set of @stream, the kernel
 * takes about @us microseconds.
 */
int workload_victim(struct workload *w, enum work work, unsigned int nr_sms, void *stream,
		    double us, struct kernel *kernel);
/*
 * Prepares a kernel that fills the SMs with more than five waves of blocks. On @nr_sms SMs, the
 * kernel takes about @us microseconds.
 */
int workload_neighbour(struct workload *w, enum work work, unsigned int nr_sms, void *stream,
		       double us, struct kernel *kernel);

/* -------------------------------------------------------- neighbour.c */

#define NEIGHBOUR_STREAMS	2
#define NEIGHBOUR_DEPTH		4
#define NEIGHBOUR_SLOTS		4096

/*
 * A thread that repeatedly launches one kernel on two streams. Several launches are queued on each
 * stream. The length of a launch and the number of launches are limited.
 */
struct neighbour {
	struct bench *b;
	struct kernel kernel;
	unsigned int nr_streams;	/* the caller may reduce it after neighbour_open() */
	void *streams[NEIGHBOUR_STREAMS];
	void *events[NEIGHBOUR_STREAMS][NEIGHBOUR_DEPTH];
	struct slots slots;
	/* when the neighbour ran; valid after neighbour_stop() */
	struct stats_span spans[NEIGHBOUR_SLOTS];
	unsigned int nr_spans;
	atomic_uint nr_launched, nr_done;
	atomic_bool stop;
	pthread_t thread;
	char why[256];			/* the error message of the thread */
	int err;
};

int neighbour_open(struct bench *b, struct neighbour *n);
/*
 * Starts the neighbour. Waits until the first kernels have ended and the next kernels are running.
 */
int neighbour_start(struct neighbour *n, const struct kernel *kernel,
		    const struct gpupart_tpcset *set);
int neighbour_stop(struct neighbour *n);
/*
 * Computes how much of each slot's time the neighbour ran, as a share. Returns the smallest share
 * of the @nr slots.
 */
double neighbour_time_share(const struct neighbour *n, const struct slots *slots, unsigned int nr);

/* ----------------------------------------------------------- cell.c */

/*
 * The results of one measurement. A victim runs alone, then next to a neighbour, then alone again.
 * The victim always uses the same set.
 */
struct cell {
	struct stats alone, beside;
	double slowdown;		/* ratio of the medians */
	double share;	/* part of the victim's time in which the neighbour ran */
	double mhz_alone, mhz_beside;	/* SM clocks from the victim's record */
	int nvml[3];	/* SM clocks from NVML: before, during and after; -1: unknown */
};

struct meter {
	struct bench *b;
	struct workload work;
	struct neighbour neighbour;
	struct slots slots;
	void *victim;			/* the victim's stream */
	unsigned int nr;		/* number of launches in a series */
	double us[SERIES_MOST], clocks[SERIES_MOST];
};

int meter_open(struct bench *b, struct meter *m, unsigned int nr);
/*
 * Measures a series of launches of @kernel in @set without a neighbour. The pointer @mhz may be
 * NULL.
 */
int meter_alone(struct meter *m, const struct kernel *kernel, const struct gpupart_tpcset *set,
		struct stats *stats, double *mhz);
int meter_cell(struct meter *m, const struct kernel *victim, const struct gpupart_tpcset *set,
	       const struct kernel *neighbour, const struct gpupart_tpcset *neighbour_set,
	       struct cell *cell);

/* ----------------------------------- overhead.c, overhead_others.c */

#define OVERHEAD_TABLE "Times to change a partition"

#define OUTSIDE_ROW "until a launch uses the new set"
#define GREEN_ROW "a new green context of 16 SMs"
#define PROCESS_ROW "a new process until its first kernel ends"
#define MPS_ROW "MPS stopped and restarted, until a first kernel ends"

/*
 * These functions use child processes to measure other ways to partition a GPU. If this machine
 * does not support the way, the function returns -EOPNOTSUPP.
 */
int overhead_green(struct bench *b, json_t *report);
int overhead_mps(struct bench *b, json_t *report);

#endif
