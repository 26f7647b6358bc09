// SPDX-License-Identifier: MIT
/* A well-behaved inference loop beside one that misbehaves, with and without sets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../nvml.h"
#include "bench.h"

#define NR_STEPS	20
#define STEP_US		35
#define PERIOD_US	1500
#define FLOOD_US	2000
#define LIMIT_US	3e6	/* of a case: where each takes long, fewer are measured */
#define LEAST_NR	20

/* A fixed sequence of small kernels, again and again, one a period. */
struct loop {
	struct bench *b;
	void *stream, *events[2];
	struct kernel steps[NR_STEPS];
	struct slots slots;
	double *us;
	unsigned int nr;
	/* Of a good neighbour, a loop in a thread: */
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
	json_t *table, *samples;
	unsigned int nr;
	int mhz;			/* as NVML told at the end of the last loop */
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

/* Without the sentences of struct bench: a thread of its own may be here. */
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

static int loop_open(struct bench *b, struct workload *w, struct loop *l, unsigned int nr)
{
	unsigned int nr_sms = b->sets.nr_tpcs * 2;
	int err;

	*l = (struct loop){ .b = b, .us = calloc(nr, sizeof(*l->us)) };
	if (!l->us)
		return bench_fail(b, -ENOMEM, "no memory for %u times", nr);
	err = bench_stream(b, &b->sets.of[SETS_INTERLEAVED].victim, &l->stream);
	for (int i = 0; !err && i < 2; i++)
		err = CU(b, cuEventCreate, &l->events[i], DRIVER_EVENT_TIMED);
	if (!err)
		err = slots_open(b, &l->slots, 1);
	/* Reads and multiply-adds in turn, as layers do. */
	for (unsigned int i = 0; !err && i < 2; i++)
		err = workload_victim(w, i ? WORK_L2 : WORK_FMA, nr_sms, l->stream, STEP_US,
				      &l->steps[i]);
	for (unsigned int i = 2; i < NR_STEPS; i++)
		l->steps[i] = l->steps[i % 2];
	return err;
}

static void loop_close(struct loop *l)
{
	if (!l->b)
		return;
	for (int i = 0; i < 2; i++)
		if (l->events[i])
			l->b->cu.cuEventDestroy_v2(l->events[i]);
	if (l->stream)
		l->b->cu.cuStreamDestroy_v2(l->stream);
	slots_close(&l->slots);
	free(l->us);
}

static int run_loop(struct protect *p, struct loop *l)
{
	double start = bench_now_us(), next = start;
	float ms;

	l->nr = 0;
	for (unsigned int i = 0; i < p->nr + 2; i++) {
		if (one(l, &ms))
			return bench_fail(p->b, -EIO, "%s", l->why);
		if (i >= 2)	/* those before warm up */
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

static struct stats tell_case(struct protect *p, const char *name, double share)
{
	struct stats s;
	json_t *series = report_series(p->samples, name);

	for (unsigned int i = 0; i < p->victim.nr; i++)
		report_point(series, i + 1, p->victim.us[i]);
	s = stats_of(p->victim.us, p->victim.nr);
	report_row(p->table, "[s,f,f,f,f,f,f,i,o,i]", name, s.mean, s.sd, s.min, s.max,
		   s.median, s.p99, p->victim.nr, share >= 0 ? json_real(share) : json_null(),
		   p->mhz);
	return s;
}

static int alone(struct protect *p, const char *name, const struct gpupart_tpcset *set,
		 struct stats *stats)
{
	int err = bench_stream_set(p->b, p->victim.stream, set);

	if (!err)
		err = run_loop(p, &p->victim);
	if (!err)
		*stats = tell_case(p, name, -1);
	return err;
}

static int beside_good(struct protect *p, struct stats *stats)
{
	int err = bench_stream_set(p->b, p->victim.stream, NULL);

	if (!err)
		err = bench_stream_set(p->b, p->good.stream, NULL);
	if (err)
		return err;
	if (pthread_create(&p->good.thread, NULL, be_good, &p->good))
		return bench_fail(p->b, -EAGAIN, "no thread for the good neighbour");
	err = run_loop(p, &p->victim);
	atomic_store(&p->good.stop, true);
	pthread_join(p->good.thread, NULL);
	if (!err && p->good.err)
		err = bench_fail(p->b, p->good.err, "the good neighbour: %s", p->good.why);
	if (!err)
		*stats = tell_case(p, "beside a good instance", -1);
	return err;
}

/* One record holds all of the victim's launches: from the first to the last of them. */
static int beside_faulty(struct protect *p, const char *name, const struct gpupart_tpcset *set,
			 const struct gpupart_tpcset *faulty_set, struct stats *stats)
{
	struct gpupart_tpcset all = gpupart_topology_all(p->b->topo);
	struct kernel flood;
	double share;
	int err, stopped;

	err = bench_stream_set(p->b, p->victim.stream, set);
	if (!err)
		err = bench_stream_set(p->b, p->faulty.streams[0], faulty_set);
	if (!err)
		err = workload_neighbour(&p->work, WORK_FMA,
					 bench_nr_sms(p->b, faulty_set ? faulty_set : &all),
					 p->faulty.streams[0], FLOOD_US, &flood);
	if (!err)
		err = slots_clear(&p->victim.slots);
	if (!err)
		err = neighbour_start(&p->faulty, &flood, faulty_set);
	if (err)
		return err;
	err = run_loop(p, &p->victim);
	stopped = neighbour_stop(&p->faulty);
	if (!err)
		err = stopped;
	if (!err)
		err = slots_fetch(&p->victim.slots);
	if (err)
		return err;
	share = neighbour_share(&p->faulty, &p->victim.slots, 1);
	*stats = tell_case(p, name, share);
	return 0;
}

static int measure(struct protect *p, json_t *report)
{
	const struct sets *sets = &p->b->sets;
	enum arrangement where = *sets->of[SETS_UGPU].why_not ? *sets->of[SETS_GPC].why_not ?
				 SETS_INTERLEAVED : SETS_GPC : SETS_UGPU;
	const struct gpupart_tpcset *own = &sets->of[where].victim;
	struct stats whole, set, fair, faulty, apart, rest;
	int err;

	err = alone(p, "alone", NULL, &whole);
	if (!err)
		err = beside_good(p, &fair);
	if (!err)
		err = beside_faulty(p, "beside a faulty one", NULL, NULL, &faulty);
	if (!err)
		err = alone(p, "alone in its set", own, &set);
	if (!err)
		err = beside_faulty(p, "beside a faulty one, partitioned", own,
				    &sets->of[where].neighbour, &apart);
	if (!err && !*sets->of[SETS_REST].why_not)
		err = beside_faulty(p, "the same, faulty on all the rest",
				    &sets->of[SETS_REST].victim, &sets->of[SETS_REST].neighbour,
				    &rest);
	if (err)
		return err;
	report_check(report, !p->b->simulated,
		     "mean beside a faulty one, partitioned, to alone in the same set",
		     set.mean > 0 ? apart.mean / set.mean : 0, REPORT_AT_MOST, 1.05);
	report_mean(report, "A program that floods the GPU makes an inference take %.1f times as "
		    "long (%.0f us instead of %.0f); in sets of their own it takes %.3f times "
		    "what it takes alone in its set.",
		    whole.mean > 0 ? faulty.mean / whole.mean : 0,
		    faulty.mean, whole.mean, set.mean > 0 ? apart.mean / set.mean : 0);
	report_note(report, "Table III of \"Hardware Compute Partitioning on NVIDIA GPUs\" has it "
		    "for YOLOv2. Here an inference is %d small kernels, reads and multiply-adds "
		    "in turn, one each %d us; the faulty one launches grids that take the whole "
		    "of its set for %d us, without a pause. Sets: %s, %u TPCs each. A case ends "
		    "after %.0f s with fewer inferences. MHz: the SMs' clock by NVML at a "
		    "case's end (-1: not told).", NR_STEPS, PERIOD_US, FLOOD_US,
		    sets_name[where], sets->nr_tpcs, LIMIT_US / 1e6);
	return 0;
}

int bench_protect(struct bench *b, json_t *report)
{
	struct protect *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return bench_fail(b, -ENOMEM, "no memory");
	p->b = b;
	p->nr = bench_count(b, 400, 60);
	if (!b->sets.nr_tpcs) {
		free(p);
		return bench_fail(b, -EOPNOTSUPP, "this GPU has one TPC");
	}
	p->table = report_table(report, "An inference (us)", "case|mean|standard deviation|min|max|"
				"median|99%|inferences|faulty one ran|MHz");
	p->samples = report_chart(report, "protect.svg", REPORT_LINES, "Inferences one by one",
				  "inference", "us", true);
	err = workload_open(b, &p->work);
	if (!err)
		err = neighbour_open(b, &p->faulty);
	if (!err)
		err = loop_open(b, &p->work, &p->victim, p->nr);
	if (!err)
		err = loop_open(b, &p->work, &p->good, p->nr);
	if (!err)
		err = measure(p, report);
	loop_close(&p->victim);
	loop_close(&p->good);
	neighbour_close(&p->faulty);
	if (p->work.b)
		workload_close(&p->work);
	free(p);
	return err;
}
