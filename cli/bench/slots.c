// SPDX-License-Identifier: MIT
/*
 * Finds out how many kernels the work distributor can hold. If the work distributor is full, the
 * next kernel must wait, even in a disjoint set. The length of every kernel is limited.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "cli/bench/bench.h"

#define MAX_HOLDERS	256
#define HOLD_NS		8000000
#define SHORT_NS	1000
#define BLOCK_NS	100000
#define WAVES		60
#define MANY_THREADS	1024	/* two blocks for each SM */
#define NR_TRIES	3

struct order {
	const char *name, *what;
	int holders, kernel;	/* priority: -1 low, 0 middle, 1 high */
	/* start the kernel first; test if its blocks continue */
	bool kernel_first;
};

static const struct order orders[] = {
	{ "same priority", "one kernel after them", 0, 0, false },
	{ "holders high, kernel low", "one kernel after them", 1, -1, false },
	{ "holders low, kernel high", "one kernel after them", -1, 1, false },
	{ "holders high, running kernel low", "a kernel of many blocks before them", 1, -1, true },
};

struct fill {
	struct bench *b;
	struct gpupart_tpcset holders_set, kernel_set;
	void *streams[MAX_HOLDERS + 1];	/* the last stream is for the kernel */
	struct slots slots;
	struct kernel holder, kernel;
	int lowest, highest;		/* values for cuStreamCreateWithPriority() */
	unsigned int max, nr_at_once;
};

static int priority(const struct fill *f, int which)
{
	return which < 0 ? f->lowest : which > 0 ? f->highest : (f->lowest + f->highest) / 2;
}

static void close_streams(struct fill *f)
{
	for (unsigned int i = 0; i <= MAX_HOLDERS; i++) {
		if (f->streams[i])
			f->b->cu.cuStreamDestroy_v2(f->streams[i]);
		f->streams[i] = NULL;
	}
}

static int open_streams(struct fill *f, const struct order *order)
{
	int err = 0;

	for (unsigned int i = 0; !err && i <= f->max; i++) {
		bool last = i == f->max;

		err = CU(f->b, cuStreamCreateWithPriority, &f->streams[i],
			 DRIVER_STREAM_NON_BLOCKING,
			 priority(f, last ? order->kernel : order->holders)) ?:
		      bench_stream_set(f->b, f->streams[i],
				       last ? &f->kernel_set : &f->holders_set);
	}
	return err;
}

/*
 * Returns 1 if the kernel waits until one of @nr holders ends. Returns 0 if the kernel does not
 * wait. Returns a negative value after an error.
 */
static int waits(struct fill *f, const struct order *order, unsigned int nr)
{
	uint64_t first_end = UINT64_MAX;
	int err = slots_clear(&f->slots);

	f->nr_at_once = 0;
	if (!err && order->kernel_first) {
		err = kernel_launch(f->b, f->streams[f->max], &f->kernel, &f->slots, f->max);
		usleep(300);
	}
	for (unsigned int i = 0; !err && i < nr; i++)
		err = kernel_launch(f->b, f->streams[i], &f->holder, &f->slots, i);
	if (!err && !order->kernel_first)
		err = kernel_launch(f->b, f->streams[f->max], &f->kernel, &f->slots, f->max);
	if (!err)
		err = CU(f->b, cuCtxSynchronize) ?: slots_fetch(&f->slots);
	if (err)
		return err;
	for (unsigned int i = 0; i < nr; i++)
		if (f->slots.host[i].end < first_end)
			first_end = f->slots.host[i].end;
	for (unsigned int i = 0; i < nr; i++)
		f->nr_at_once += f->slots.host[i].start < first_end;
	return order->kernel_first ? f->slots.host[f->max].end >= first_end :
				     f->slots.host[f->max].start >= first_end;
}

/* Tries three times, because the host may be late once. Returns the result of the majority. */
static int mostly_waits(struct fill *f, const struct order *order, unsigned int nr)
{
	int sum = 0;

	for (int i = 0; i < NR_TRIES; i++) {
		int is = waits(f, order, nr);

		if (is < 0)
			return is;
		sum += is;
	}
	return sum * 2 > NR_TRIES;
}

/*
 * *least is the smallest number of holders with which the kernel waits. If the kernel never waits,
 * *least is 0. The function launches the largest number of holders. The number of holders that then
 * ran at the same time is *at_once.
 */
static int find(struct fill *f, const struct order *order, unsigned int *least,
		unsigned int *at_once)
{
	unsigned int below = 0, above = f->max;
	int is;

	*least = 0;
	f->kernel = (struct kernel){ .code = BENCH_HOLD, .blocks = 1, .threads = 32,
				     .n = SHORT_NS };
	if (order->kernel_first)
		f->kernel = (struct kernel){
			.code = BENCH_HOLD, .threads = MANY_THREADS, .n = BLOCK_NS,
			.blocks = topology_nr_sms(f->b->topo, &f->kernel_set) * 2 * WAVES,
		};
	is = mostly_waits(f, order, above);
	*at_once = f->nr_at_once;
	if (is <= 0)
		return is;
	while (above - below > 1) {
		unsigned int middle = (above + below) / 2;

		is = mostly_waits(f, order, middle);
		if (is < 0)
			return is;
		*(is ? &above : &below) = middle;
	}
	*least = above;
	return 0;
}

static int measure(struct fill *f, json_t *report)
{
	json_t *table = report_table(report, "Until a kernel in a disjoint set waits",
				     "priorities|what waits|holders that make it wait|"
				     "holders that ran at once"),
	       *chart = report_chart(report, "slots.svg", REPORT_BARS,
				     "Kernels held before an independent partition waits", "",
				     "kernels", false),
	       *series = report_series(chart, "holders that make it wait");
	unsigned int least = 0, at_once = 0, first = 0;
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(orders) / sizeof(orders[0]); i++) {
		err = open_streams(f, &orders[i]) ?:
		      find(f, &orders[i], &least, &at_once);
		close_streams(f);
		if (err)
			break;
		report_row(table, "[s,s,o,i]", orders[i].name, orders[i].what,
			   least ? json_integer(least) : json_null(), at_once);
		if (least)
			report_bar(series, orders[i].name, least);
		if (!i)
			first = least;
	}
	if (err)
		return err;
	if (first)
		report_mean(report, "A kernel in its own set waits while %u other kernels are "
			    "running. Partitions are independent only while a slot is free, so "
			    "use at most %u streams at the same time.", first, first);
	else
		report_mean(report, "A kernel in its own set did not wait while up to %u other "
			    "kernels were running.", f->max);
	return 0;
}

int bench_slots(struct bench *b, json_t *report)
{
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	struct gpupart_tpcset all = gpupart_topology_all(b->topo);
	static struct fill fill, *f = &fill;
	int err = 0;

	fill = (struct fill){
		.b = b, .max = bench_count(b, MAX_HOLDERS, MAX_HOLDERS),
		.holder = { .code = BENCH_HOLD, .blocks = 1, .threads = 32, .n = HOLD_NS },
		.holders_set = sets_packed(b->topo, b->sets.nr_tpcs),
	};
	f->kernel_set = gpupart_tpcset_andnot(&all, &f->holders_set);
	if (gpupart_tpcset_empty(&f->kernel_set) || gpupart_tpcset_empty(&f->holders_set))
		return bench_fail(b, -EOPNOTSUPP, "this GPU has too few TPCs for two sets");
	if (b->simulated)
		f->max = 8;
	if (b->cu.cuCtxGetStreamPriorityRange)
		err = CU(b, cuCtxGetStreamPriorityRange, &f->lowest, &f->highest);
	err = err ?: slots_open(b, &f->slots, f->max + 1) ?: measure(f, report);
	report_note(
		report,
		"Figure 12 of \"Hardware Compute Partitioning on NVIDIA GPUs\" (32 on a GTX "
		"1060). A holder is a block of 32 threads that runs for %d ms on its own stream; "
		"there are at most %u holders. The smallest number of holders that delays the "
		"kernel is found by bisection, and each number is tried %d times. Priorities "
		"here are %d (low) to %d (high). If there are more streams than channels "
		"(CUDA_DEVICE_MAX_CONNECTIONS=%s), streams share channels. If the result equals "
		"the number of channels, shared channels may be the cause.",
		HOLD_NS / 1000000, f->max, NR_TRIES, f->lowest, f->highest,
		connections ? connections : "8, the default");
	return err;
}
