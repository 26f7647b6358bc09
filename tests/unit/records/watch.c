// SPDX-License-Identifier: MIT
/*
 * Tests gpupart_records_watch() with launches of known times. For all clocks, the true busy time
 * must be between its two bounds. The bounds must become narrow.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/private.h"
#include "lib/records/clocks.h"
#include "tests/unit/records/gpu.h"

#define CTX		((void *)(uintptr_t)0x7000)
#define MAX_LOG		2000000
/* on a busy machine, the bounds become narrow within this number of seconds */
#define PATIENCE	60

/* maximum delay of a record after the end of a kernel */
#define LATE_NS		3000

/*
 * A launch. All times are in ns on the CPU's clock. The launch was submitted between @before and
 * @after. This machine may delay a record more than a GPU. So the launch may count as outstanding
 * until @seen.
 */
struct logged {
	uint64_t before, after, end;
	_Atomic uint64_t seen;
};

/*
 * The launches of one thread. The thread launches kernels of @ns on a stream. The distance
 * between the beginnings of two launches is @pause.
 */
struct program {
	struct stream stream;
	/* @waits: delay of the kernel after the earliest possible begin */
	uint64_t ns, pause, waits;
	uint64_t ppm;			/* rate error of the GPU's clock */
	atomic_bool stop;
	_Atomic unsigned int nr;
	struct logged *log;
	pthread_t thread;
};

/*
 * The rate of the GPU's clock changes at some times. Between two changes, the clock runs evenly.
 * It does not jump.
 */
static uint64_t epoch, ahead;

static uint64_t cpu_now(void)
{
	return gpu_now() - GPU_AHEAD;
}

static uint64_t gpu_time(const struct program *p, uint64_t cpu)
{
	return cpu + GPU_AHEAD + ahead + (cpu - epoch) / 1000 * p->ppm / 1000;
}

/* Sleeps most of the time, so that other threads run. */
static void wait_until(uint64_t ns)
{
	for (uint64_t now = cpu_now(); now < ns; now = cpu_now())
		if (ns - now > 150000)
			usleep((ns - now - 100000) / 1000);
}

static void *play(void *arg)
{
	struct program *p = arg;
	struct launched launched;
	struct logged *l;
	uint64_t next = cpu_now();

	while (!atomic_load(&p->stop) && p->nr < MAX_LOG) {
		wait_until(next);
		l = &p->log[p->nr];
		l->before = cpu_now();
		launched = launch(&p->stream);
		l->after = cpu_now();
		l->end = l->after + p->ns + p->waits;
		l->seen = UINT64_MAX;
		p->nr++;
		next = l->before + p->pause;
		wait_until(l->end);
		/*
		 * This thread may have waited for a CPU, so use the real times instead of the
		 * planned times.
		 */
		l->end = cpu_now();
		end_at(launched, gpu_time(p, l->end));
		l->seen = cpu_now();
	}
	return NULL;
}

static void play_start(struct program *p)
{
	p->log = malloc(MAX_LOG * sizeof(*p->log));
	p->stream.ctx = CTX;
	pthread_create(&p->thread, NULL, play, p);
}

static void play_end(struct program *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	free(p->log);
}

/* ------------------------------------------------------------------- the truth */

static int by_before(const void *a, const void *b)
{
	const struct logged *x = a, *y = b;

	return (x->before > y->before) - (x->before < y->before);
}

/*
 * Returns the busy time between @from and @to, as a union of all launches. If @latest is true,
 * assumes the latest possible begin of each launch.
 */
static uint64_t truth(struct program *p, unsigned int nr, uint64_t from, uint64_t to, bool latest)
{
	struct logged *all;
	unsigned int n = 0, launched[3];
	uint64_t ns = 0, end = from;

	/* The launches continue meanwhile. */
	for (unsigned int i = 0; i < nr; i++)
		n += launched[i] = p[i].nr;
	all = malloc((n + 1) * sizeof(*all));
	n = 0;
	for (unsigned int i = 0; i < nr; i++)
		for (unsigned int k = 0; k < launched[i]; k++, n++) {
			all[n] = p[i].log[k];
			if (latest)
				all[n].before = all[n].after;
			else if (all[n].seen - all[n].end > LATE_NS)
				all[n].end = all[n].seen;
		}
	qsort(all, n, sizeof(*all), by_before);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t begin = all[i].before > end ? all[i].before : end;
		uint64_t until = all[i].end < to ? all[i].end : to;

		if (until <= begin)
			continue;
		ns += until - begin;
		end = until;
	}
	free(all);
	return ns;
}

/*
 * Watches @p. The true value must always be inside the bounds, and the final width of the bounds
 * must be at most @points.
 */
static void watch_them(struct program *p, unsigned int nr, double points, const char *what)
{
	struct gpupart_records_watched was = { 0 }, now;
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	unsigned int pause_us, windows = 0, good = 0;
	double least = 0, most = 1;
	uint64_t from[2], to[2] = { 0 }, last[2], begin = cpu_now();
	bool narrow = false;

	epoch = begin;
	for (unsigned int i = 0; i < nr; i++)
		play_start(&p[i]);
	if (gpupart_records_open(gp, 0, PCI, &reader))
		abort();
	clocks_measure();
	from[0] = cpu_now();
	gpupart_records_watch(gp, reader, &r, &pause_us);
	last[0] = from[0];
	from[1] = last[1] = cpu_now();
	while (!narrow && cpu_now() - begin < PATIENCE * 1000000000ull) {
		uint64_t until = cpu_now() + 500000000;

		while (cpu_now() < until) {
			usleep(pause_us);
			memcpy(to, last, sizeof(to));
			last[0] = cpu_now();
			gpupart_records_watch(gp, reader, &r, &pause_us);
			last[1] = cpu_now();
		}
		gpupart_records_watched(reader, &now);
		least = (double)(now.least_ns - was.least_ns) / (now.ns - was.ns);
		most = (double)(now.most_ns - was.most_ns) / (now.ns - was.ns);
		windows++;
		good += now.least_ns - was.least_ns <= truth(p, nr, from[0], to[1], false) &&
			now.most_ns - was.most_ns >= truth(p, nr, from[1], to[0], true);
		if (good < windows)
			printf("# window %u: %.3f to %.3f, is %.3f to %.3f\n", windows, least, most,
			       truth(p, nr, from[1], to[0], true) / (double)(now.ns - was.ns),
			       truth(p, nr, from[0], to[1], false) / (double)(now.ns - was.ns));
		was = now;
		from[0] = to[0];
		from[1] = to[1];
		narrow = windows > 2 && most - least <= points / 100;
	}
	tap_ok(good == windows, "%s: the truth is between the bounds in %u of %u windows", what,
	       good, windows);
	tap_ok(narrow, "which are %.1f%% and %.1f%%, at most %.0f apart", 100 * least, 100 * most,
	       points);
	for (unsigned int i = 0; i < nr; i++)
		play_end(&p[i]);
	last[0] = cpu_now();
	ahead = gpu_time(p, last[0]) - last[0] - GPU_AHEAD;
	gpupart_records_close(reader);
}

int main(void)
{
	static struct program one = { .ns = 20000, .pause = 220000 };
	static struct program fast = { .ns = 20000, .pause = 220000, .ppm = 50 };
	static struct program three[3] = {
		{ .ns = 300000, .pause = 900000 }, { .ns = 100000, .pause = 700000 },
		{ .ns = 500000, .pause = 2000000 },
	};
	static struct program waits[2] = {
		{ .ns = 200000, .pause = 1000000 },
		{ .ns = 100000, .pause = 1000000, .waits = 300000 },
	};

	if (!tap_ok(start() && records_context(records, &cuda, CTX), "records of this process"))
		return tap_done();
	watch_them(&one, 1, 4, "20 us each 220");
	watch_them(&fast, 1, 4, "the same, with a clock that is faster");
	watch_them(three, 3, 4, "three streams");
	watch_them(waits, 2, 4, "a stream that waits");
	return tap_done();
}
