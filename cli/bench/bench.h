/* SPDX-License-Identifier: MIT */
/*
 * What the parts of bench share: the attached GPU, kernels whose launches say when and where
 * they ran, series of them, a neighbour that runs beside, sets to put them in. A function
 * that returns int returns 0 or a negative errno with its sentence in bench->why. A part has a
 * process of its own and runs once: what it opens ends with the process, and is not closed.
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

/* The part peers: two programs that print a number of ms for each unit of work. */
struct peers_options {
	const char *programs[2];	/* for the shell */
	const char *both;		/* both in one, its mode and two pipes behind it */
	const char *goal;		/* of A for qos, "latency: 8ms"; NULL: without qos */
	const char *only;		/* names of families of ways; NULL: all */
	unsigned int seconds, rounds;
};

struct bench {
	const char *selector;		/* of the GPU, as gpupart_attach() takes it */
	char pci[20];			/* of the GPU, for CUDA and NVML */
	bool quick, simulated;
	struct gpupart_gpu *gpu;	/* from bench_attach() on, as all below */
	const struct gpupart_topology *topo;
	struct driver cu;
	void *function[BENCH_NR_CODES];
	unsigned int l2_bytes;
	struct sets sets;
	char why[512];
	const struct peers_options *peers;	/* NULL: that part was not asked for */
};

/* A part: what it is called and what it does to a report. */
struct bench_part {
	const char *name, *title;
	int (*run)(struct bench *b, json_t *report);
	bool attaches_itself;		/* begins before CUDA was started */
	bool takes_programs;		/* measured only where it is named */
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
/* Whether its options name what there is: 0, or an error. */
int peers_check(const struct peers_options *options);

/* Attaches, starts CUDA, loads the kernels, warms the GPU up. */
int bench_attach(struct bench *b);

/* The same without attaching and warming up: CUDA's device at b->pci. */
int bench_start(struct bench *b);

/* Keeps a sentence; returns @err. */
__attribute__((format(printf, 3, 4)))
int bench_fail(struct bench *b, int err, const char *fmt, ...);

/* A call of the driver by its name. */
#define CU(b, call, ...) \
	driver_check(&(b)->cu, #call, (b)->cu.call(__VA_ARGS__), (b)->why, sizeof((b)->why))

/* The same for a call of the library. */
int bench_library(struct bench *b, int err);

/* @full on a GPU, @quick with --quick, few on the simulated GPU. */
unsigned int bench_count(const struct bench *b, unsigned int full, unsigned int quick);

/* ------------------------------------------------------------ launch.c */

/* What a launch leaves behind: the layout of kernels.ptx. */
#define SLOT_SM_WORDS 32
struct slot {
	uint64_t start, end;		/* %globaltimer, ns */
	uint64_t cycles, ns;		/* of block 0 */
	uint32_t sms[SLOT_SM_WORDS];	/* a bit an SM that ran a block */
};

struct slots {
	struct bench *b;
	cuda_ptr device;
	struct slot *host;		/* after slots_fetch() */
	unsigned int nr;
};

int slots_open(struct bench *b, struct slots *slots, unsigned int nr);
int slots_clear(struct slots *slots);
int slots_fetch(struct slots *slots);
/* The clock while that launch ran; 0 where it cannot be told. */
double slot_mhz(const struct slot *slot);
struct gpupart_tpcset slot_tpcs(const struct bench *b, const struct slot *slot);
unsigned int slot_nr_sms(const struct slot *slot);

struct kernel {
	enum bench_code code;
	unsigned int blocks, threads;
	uint32_t n;			/* iterations, or ns of BENCH_HOLD */
	cuda_ptr buffer;
	uint32_t mask, first;		/* as kernels.ptx has them */
	uint32_t step;			/* of first, from launch to launch of a series */
};

int kernel_launch(struct bench *b, void *stream, const struct kernel *kernel,
		  const struct slots *slots, unsigned int slot);

int bench_stream(struct bench *b, const struct gpupart_tpcset *set, void **stream);
int bench_stream_set(struct bench *b, void *stream, const struct gpupart_tpcset *set);
int bench_alloc(struct bench *b, size_t bytes, cuda_ptr *memory);
/* All there when it returns, whatever stream reads it. */
int bench_upload(struct bench *b, cuda_ptr to, const void *from, size_t bytes);

#define SERIES_MOST 100

/*
 * A series of launches one behind the other, each timed by the GPU from the end of the one
 * before: @us has @nr entries, SERIES_MOST at most (two that warm up apart), @slots room
 * for more than @nr.
 */
int bench_series(struct bench *b, void *stream, const struct kernel *kernel,
		 struct slots *slots, unsigned int nr, double *us);

/* Chooses kernel->n so that a launch on @stream takes about @us; none on the simulated GPU. */
int bench_calibrate(struct bench *b, void *stream, struct kernel *kernel, double us);

double bench_now_us(void);

/* --------------------------------------------------------- workload.c */

/* The kernels that parts measure with, sized for a set. */
enum work { WORK_FMA, WORK_L2, WORK_CHASE, WORK_DRAM, WORK_NR };

extern const char *const work_name[WORK_NR];

struct workload {
	struct bench *b;
	cuda_ptr l2[2], dram[2], chain;	/* for a victim and for a neighbour */
	uint32_t l2_mask, dram_mask, chain_mask;
};

int workload_open(struct bench *b, struct workload *w);
/* One wave of blocks on @nr_sms SMs, about @us long on them when alone (@stream's set). */
int workload_victim(struct workload *w, enum work work, unsigned int nr_sms, void *stream,
		    double us, struct kernel *kernel);
/* More than five waves that leave no room on an SM: about @us long, on @nr_sms SMs. */
int workload_neighbour(struct workload *w, enum work work, unsigned int nr_sms, void *stream,
		       double us, struct kernel *kernel);

/* -------------------------------------------------------- neighbour.c */

#define NEIGHBOUR_STREAMS	2
#define NEIGHBOUR_DEPTH		4
#define NEIGHBOUR_SLOTS		4096

/*
 * Somebody who launches one kernel again and again on two streams from a thread of its own,
 * with some queued ahead on each. Every launch is bounded, and so is their number.
 */
struct neighbour {
	struct bench *b;
	struct kernel kernel;
	unsigned int nr_streams;	/* used: all, unless changed after neighbour_open() */
	void *streams[NEIGHBOUR_STREAMS];
	void *events[NEIGHBOUR_STREAMS][NEIGHBOUR_DEPTH];
	struct slots slots;
	struct stats_span spans[NEIGHBOUR_SLOTS];	/* when it ran, after neighbour_stop() */
	unsigned int nr_spans;
	atomic_uint nr_launched, nr_done;
	atomic_bool stop;
	pthread_t thread;
	char why[256];			/* of the thread */
	int err;
};

int neighbour_open(struct bench *b, struct neighbour *n);
/* Returns when the first of its kernels have ended and the next are running. */
int neighbour_start(struct neighbour *n, const struct kernel *kernel,
		    const struct gpupart_tpcset *set);
int neighbour_stop(struct neighbour *n);
/* The smallest part of a slot's time during which it ran. */
double neighbour_share(const struct neighbour *n, const struct slots *slots, unsigned int nr);

/* ----------------------------------------------------------- cell.c */

/* One measurement: a victim alone, beside a neighbour, alone again, in the same set. */
struct cell {
	struct stats alone, beside;
	double slowdown;		/* of medians */
	double share;			/* of the victim's time the neighbour ran */
	double mhz_alone, mhz_beside;	/* by the victim's own clock */
	int nvml[3];			/* before, during, after; -1 not told */
};

struct meter {
	struct bench *b;
	struct workload work;
	struct neighbour neighbour;
	struct slots slots;
	void *victim;			/* its stream */
	unsigned int nr;		/* launches of a series */
	double us[SERIES_MOST], clocks[SERIES_MOST];
};

int meter_open(struct bench *b, struct meter *m, unsigned int nr);
/* A series of @kernel in @set, nobody beside; *mhz may be NULL. */
int meter_alone(struct meter *m, const struct kernel *kernel, const struct gpupart_tpcset *set,
		struct stats *stats, double *mhz);
int meter_cell(struct meter *m, const struct kernel *victim, const struct gpupart_tpcset *set,
	       const struct kernel *neighbour, const struct gpupart_tpcset *neighbour_set,
	       struct cell *cell);

/* ----------------------------------- overhead.c, overhead_others.c */

#define OVERHEAD_TABLE "Sets, and what else there is"

#define OUTSIDE_ROW "until the obeying launch is made"
#define GREEN_ROW "a new green context of 16 SMs"
#define PROCESS_ROW "a new process until its first kernel is done"
#define MPS_ROW "MPS ended, started anew, a first client's kernel done"

/* What others take, in children of their own; -EOPNOTSUPP where there is none here. */
int overhead_green(struct bench *b, json_t *report);
int overhead_mps(struct bench *b, json_t *report);

#endif
