// SPDX-License-Identifier: MIT
/*
 * Measures an inference loop next to two neighbours, with sets and without sets. One neighbour is
 * well-behaved. The other neighbour floods the GPU with work.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include "cli/bench/bench.h"
#include "cli/target/nvml.h"

#define NR_STEPS	20
#define STEP_US		35
#define PERIOD_US	1500
#define FLOOD_US	2000
#define LIMIT_US	3e6 /* time limit of a case; it can reduce the number of inferences */
#define LEAST_NR	20
#define MOST_LOOPS	400
#define NR_BARS		3	/* values of a case: median, 99%, maximum */
#define NO_SETS		"no sets"

/* A thread that runs a fixed sequence of small kernels in each period. */
struct loop {
	struct bench *b;
	void *stream, *events[2];
	struct kernel steps[NR_STEPS];
	struct slots slots;
	double us[MOST_LOOPS];
	unsigned int nr;
	/* These members are used if the loop is a well-behaved neighbour in a thread. */
	pthread_t thread;
	atomic_bool stop;
	char why[256];
	int err;
};

struct protect {
	struct bench *b;
	struct workload work;
	struct neighbour faulty;
	struct loop victim, good;
	json_t *table, *bars[NR_BARS], *spread;
	unsigned int nr;
	enum arrangement where;	/* the judged arrangement, in which the programs share the
				 * smallest part of the GPU */
	int mhz;			/* SM clock from NVML at the end of the last loop */
};

static void sleep_until(double us)
{
	struct timespec ts;
	double left = us - bench_now_us();

	if (left <= 0)
		return;
	ts = (struct timespec){ left / 1e6, (long)(left * 1e3) % 1000000000 };
	nanosleep(&ts, NULL);
}

/* Does not write a message to struct bench, because this function may run in the loop's thread. */
static int one(struct loop *l, float *ms)
{
	const struct driver *cu = &l->b->cu;
	int result = cu->cuEventRecord(l->events[0], l->stream);

	for (unsigned int i = 0; !result && i < NR_STEPS; i++) {
		struct kernel *k = &l->steps[i];
		cuda_ptr at = l->slots.device;
		void *params[] = { &at, &k->n, &k->buffer, &k->mask, &k->first };

		result = cu->cuLaunchKernel(l->b->function[k->code], k->blocks, 1, 1, k->threads, 1,
					    1, 0, l->stream, params, NULL);
	}
	if (!result)
		result = cu->cuEventRecord(l->events[1], l->stream);
	if (!result)
		result = cu->cuEventSynchronize(l->events[1]);
	if (!result)
		result = cu->cuEventElapsedTime(ms, l->events[0], l->events[1]);
	return driver_check(cu, "an inference", result, l->why, sizeof(l->why));
}

static void *be_good(void *arg)
{
	struct loop *l = arg;
	double next = bench_now_us();
	float ms;

	l->err = driver_check(&l->b->cu, "cuCtxSetCurrent", l->b->cu.cuCtxSetCurrent(l->b->cu.ctx),
			      l->why, sizeof(l->why));
	while (!l->err && !atomic_load(&l->stop)) {
		l->err = one(l, &ms);
		next += PERIOD_US;
		sleep_until(next);
	}
	return NULL;
}

static int loop_open(struct bench *b, struct workload *w, struct loop *l)
{
	unsigned int nr_sms = b->sets.nr_tpcs * 2;
	int err;

	l->b = b;
	err = bench_stream(b, &b->sets.of[SETS_INTERLEAVED].victim, &l->stream);
	for (int i = 0; !err && i < 2; i++)
		err = CU(b, cuEventCreate, &l->events[i], DRIVER_EVENT_TIMED);
	if (!err)
		err = slots_open(b, &l->slots, 1);
	/*
	 * The steps alternate between reads and multiply-adds, similar to the layers of a neural
	 * network.
	 */
	for (unsigned int i = 0; !err && i < 2; i++)
		err = workload_victim(w, i ? WORK_L2 : WORK_FMA, nr_sms, l->stream, STEP_US,
				      &l->steps[i]);
	for (unsigned int i = 2; i < NR_STEPS; i++)
		l->steps[i] = l->steps[i % 2];
	return err;
}

static int run_loop(struct protect *p, struct loop *l)
{
	double start = bench_now_us(), next = start;
	float ms;

	l->nr = 0;
	for (unsigned int i = 0; i < p->nr + 2; i++) {
		if (one(l, &ms))
			return bench_fail(p->b, -EIO, "%s", l->why);
		if (i >= 2)	/* the first two inferences warm up the GPU */
			l->us[l->nr++] = ms * 1e3;
		if (l->nr >= LEAST_NR && bench_now_us() - start > LIMIT_US)
			break;
		next += PERIOD_US;
		if (bench_now_us() > next)
			next = bench_now_us();
		sleep_until(next);
	}
	p->mhz = p->b->simulated ? -1 : nvml_sm_clock(p->b->pci);
	return 0;
}

/* Adds the results of a case to the report. The name of the case is "WHERE / WHAT". */
static struct stats report_case(struct protect *p, const char *where, const char *what,
				double share)
{
	struct stats s = stats_of(p->victim.us, p->victim.nr);
	const double bars[NR_BARS] = { s.min, s.median, s.p99 };
	char name[64];

	snprintf(name, sizeof(name), "%s / %s", where, what);
	for (int i = 0; i < NR_BARS; i++)
		report_bar(p->bars[i], name, bars[i]);
	report_row(p->table, "[s,f,f,f,f,f,f,i,o,i]", name, s.mean, s.sd, s.min, s.max,
		   s.median, s.p99, p->victim.nr, share >= 0 ? json_real(share) : json_null(),
		   p->mhz);
	return s;
}

/* Adds a curve for the most recent case. The curve shows the inferences, sorted by duration. */
static void report_spread(struct protect *p, const char *where, const char *what, double alone)
{
	char name[64];
	json_t *series;

	snprintf(name, sizeof(name), "%s / %s", where, what);
	series = report_series(p->spread, name);
	for (unsigned int percent = 1; alone > 0 && percent < 100; percent++)
		report_point(series, percent,
			     stats_quantile(p->victim.us, p->victim.nr, percent) / alone);
}

static int alone(struct protect *p, const char *where, const struct gpupart_tpcset *set,
		 struct stats *stats)
{
	int err = bench_stream_set(p->b, p->victim.stream, set) ?:
		  run_loop(p, &p->victim);

	if (!err)
		*stats = report_case(p, where, "alone", -1);
	return err;
}

static int beside_good(struct protect *p, const char *where, const struct gpupart_tpcset *set,
		       const struct gpupart_tpcset *good_set, struct stats *stats)
{
	int err = bench_stream_set(p->b, p->victim.stream, set) ?:
		  bench_stream_set(p->b, p->good.stream, good_set);

	if (err)
		return err;
	atomic_store(&p->good.stop, false);
	if (pthread_create(&p->good.thread, NULL, be_good, &p->good))
		return bench_fail(p->b, -EAGAIN, "cannot create a thread for the good neighbour");
	err = run_loop(p, &p->victim);
	atomic_store(&p->good.stop, true);
	pthread_join(p->good.thread, NULL);
	if (!err && p->good.err)
		err = bench_fail(p->b, p->good.err, "the good neighbour: %s", p->good.why);
	if (!err)
		*stats = report_case(p, where, "good neighbour", -1);
	return err;
}

/*
 * All launches of the victim use the same record. The record has the start of the first launch and
 * the end of the last launch.
 */
static int beside_faulty(struct protect *p, const char *where, const struct gpupart_tpcset *set,
			 const struct gpupart_tpcset *faulty_set, struct stats *stats)
{
	struct gpupart_tpcset all = gpupart_topology_all(p->b->topo);
	struct kernel flood;
	int err, stopped;

	err = bench_stream_set(p->b, p->victim.stream, set) ?:
	      bench_stream_set(p->b, p->faulty.streams[0], faulty_set) ?:
	      workload_neighbour(&p->work, WORK_FMA,
				 topology_nr_sms(p->b->topo, faulty_set ? faulty_set : &all),
				 p->faulty.streams[0], FLOOD_US, &flood) ?:
	      slots_clear(&p->victim.slots) ?:
	      neighbour_start(&p->faulty, &flood, faulty_set);
	if (err)
		return err;
	err = run_loop(p, &p->victim);
	stopped = neighbour_stop(&p->faulty);
	if (!err)
		err = stopped ?: slots_fetch(&p->victim.slots);
	if (!err)
		*stats = report_case(p, where, "faulty neighbour",
				     neighbour_time_share(&p->faulty, &p->victim.slots, 1));
	return err;
}

/*
 * Measures the victim alone, next to a good neighbour, and next to a faulty neighbour. All runs use
 * sets of one shape. Divides the time next to the faulty neighbour by the solo time, and stores the
 * ratio in *times. Also divides this time by @good, and stores the ratio in *of_good. The time
 * @good was measured next to a good neighbour without sets. If this board has no sets of this
 * shape, both ratios are 0.
 */
static int in_sets(struct protect *p, enum arrangement where, const struct stats *good,
		   double *times, double *of_good)
{
	const struct gpupart_tpcset *set = &p->b->sets.of[where].victim;
	const struct gpupart_tpcset *others = &p->b->sets.of[where].neighbour;
	struct stats own, beside;
	int err;

	*times = *of_good = 0;
	if (*p->b->sets.of[where].why_not)
		return 0;
	err = alone(p, sets_name[where], set, &own);
	if (err)
		return err;
	if (where == p->where)
		report_spread(p, sets_name[where], "alone", own.median);
	err = beside_good(p, sets_name[where], set, others, &beside) ?:
	      beside_faulty(p, sets_name[where], set, others, &beside);
	if (err)
		return err;
	report_spread(p, sets_name[where], "faulty neighbour", own.median);
	*times = own.mean > 0 ? beside.mean / own.mean : 0;
	*of_good = good->mean > 0 ? beside.mean / good->mean : 0;
	return 0;
}

/* Formats measured values as text such as "interleaved 1.012, own GPC 1.013". */
static void format_times(const double *times, char *text, size_t len)
{
	*text = 0;
	for (int where = SETS_INTERLEAVED; where < SETS_NR; where++)
		if (times[where] > 0)
			out_append(text, len, "%s%s %.3f", *text ? ", " : "", sets_name[where],
				   times[where]);
}

static void tell(struct protect *p, json_t *report, const struct stats *whole,
		 const struct stats *faulty, const double *times, const double *of_good)
{
	char text[256];

	format_times(times, text, sizeof(text));
	report_check(report, !p->b->simulated,
		     "mean next to a faulty neighbour, partitioned, relative to alone in the "
		     "same set",
		     times[p->where], REPORT_AT_MOST, 1.05);
	report_mean(report, "Next to a program that floods the GPU, an inference takes %.1f times "
		    "its solo time (%.0f us instead of %.0f us). If each program has its own "
		    "set, the inference takes this multiple of its solo time in the same set: %s.",
		    whole->mean > 0 ? faulty->mean / whole->mean : 0, faulty->mean, whole->mean,
		    text);
	format_times(of_good, text, sizeof(text));
	report_mean(
		report,
		"The paper reports a quotient of two times: the time of an inference with sets "
		"next to a faulty neighbour, and its time without sets next to a good neighbour. "
		"Here the quotient is %s. In the paper, the quotient is 1.10 (44 ms and 40 ms): "
		"with sets, the inference has half of a GPU there; without sets, two good programs "
		"compete for the GPU.",
		text);
	report_note(report, "Table III of \"Hardware Compute Partitioning on NVIDIA GPUs\" shows "
		    "results for YOLOv2. Here an inference runs %d small kernels, which alternate "
		    "between reads and multiply-adds. An inference starts every %d us. The "
		    "faulty neighbour launches grids that fill all of its set for %d us, without "
		    "a pause. The faulty neighbour only computes. The neighbours in the part "
		    "'isolation' also read the L2 or DRAM. Each program has %u TPCs, but in "
		    "\"%s\" the faulty neighbour has all TPCs that the inference does not use. "
		    "The arrangement that is judged is \"%s\". A case ends after %.0f s, even if "
		    "it has not made all its inferences. MHz is the clock of the SMs; NVML "
		    "reports this clock at the end of a case (-1 means unknown).",
		    NR_STEPS, PERIOD_US, FLOOD_US, p->b->sets.nr_tpcs, sets_name[SETS_REST],
		    sets_name[p->where], LIMIT_US / 1e6);
}

static int measure(struct protect *p, json_t *report)
{
	struct stats whole, good, faulty;
	double times[SETS_NR] = { 0 }, of_good[SETS_NR] = { 0 };
	int err;

	err = alone(p, NO_SETS, NULL, &whole) ?:
	      beside_good(p, NO_SETS, NULL, NULL, &good) ?:
	      beside_faulty(p, NO_SETS, NULL, NULL, &faulty);
	for (int where = SETS_INTERLEAVED; !err && where < SETS_NR; where++)
		err = in_sets(p, where, &good, &times[where], &of_good[where]);
	if (!err)
		tell(p, report, &whole, &faulty, times, of_good);
	return err;
}

static void add_charts(struct protect *p, json_t *report)
{
	static const char *const bars[NR_BARS] = { "min", "median", "99%" };
	json_t *chart = report_chart(report, "protect.svg", REPORT_BARS,
				     "Time of an inference, alone and next to a neighbour",
				     "", "us", true);

	for (int i = 0; i < NR_BARS; i++)
		p->bars[i] = report_series(chart, bars[i]);
	p->spread = report_chart(report, "protect-sets.svg", REPORT_LINES,
				 "In sets: inferences sorted by length", "shortest inferences, %",
				 "time relative to the solo median in the same set", false);
	report_chart_near(p->spread);
}

int bench_protect(struct bench *b, json_t *report)
{
	static struct protect all, *p = &all;

	p->b = b;
	p->nr = bench_count(b, MOST_LOOPS, 60);
	p->where = !*b->sets.of[SETS_UGPU].why_not ? SETS_UGPU :
		   !*b->sets.of[SETS_GPC].why_not ? SETS_GPC : SETS_INTERLEAVED;
	if (!b->sets.nr_tpcs)
		return bench_fail(b, -EOPNOTSUPP, "this GPU has only one TPC");
	p->table = report_table(report, "An inference (us)", "case|mean|standard deviation|min|max|"
				"median|99%|inferences|faulty one ran|MHz");
	add_charts(p, report);
	return workload_open(b, &p->work) ?:
	       neighbour_open(b, &p->faulty) ?:
	       loop_open(b, &p->work, &p->victim) ?:
	       loop_open(b, &p->work, &p->good) ?:
	       measure(p, report);
}
