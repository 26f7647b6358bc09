// SPDX-License-Identifier: MIT
/*
 * How long the planner takes: random demands of up to 16 tenants on GPUs of up to 32 GPCs and
 * 256 TPCs, then a climb: what took the most steps is changed a little, again and again, for as
 * long as it gets worse. Prints a line a kind: the slowest at random and of those climbed to.
 * The last kind is instances that climbs ended at before, tests/bench/plan_hard.h. Fails where
 * one at random took longer than promised, or any was not decided.
 *
 *	bench-plan [SECONDS A KIND] [SEED] [KIND, FROM 0] [MILLISECONDS TO PRINT]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/topo/topology.h"

#define NR_TENANTS GPUPART_PLAN_MAX_TENANTS
#define MAX_GPCS GPUPART_MAX_GPCS
#define MAX_SIZE 32		/* TPCs in a GPC that a topology may tell of */
#define PROMISED_MS 10.0
#define NR_FIRST 60		/* at random, before a climb from the worst of them */
#define NR_STALE 300		/* steps of a climb without a worse one */

struct demand {
	unsigned int min, max, cluster, weight, same, apart;	/* the last two: bits */
	bool gpcs, spread;
};

struct instance {
	unsigned int nr_gpcs, nr_ugpus, nr;
	/* Of a GPC: its TPCs, those outside of singletons, those out of bounds. */
	unsigned int size[MAX_GPCS], nr_main[MAX_GPCS], gone[MAX_GPCS], ugpu[MAX_GPCS];
	struct demand demands[NR_TENANTS];
};

struct result {
	double ms;
	unsigned int steps;
	int err;
};

/* What GPUs and demands are like; chances are of 100. All 0: whatever, drawn for each climb. */
struct shape {
	const char *what;
	unsigned int gpcs, ugpus, smallest, largest, step;	/* TPCs a GPC */
	unsigned int least, most;				/* tenants */
	unsigned int whole, bound, window, load, cluster, singletons, gone;
};

static const struct shape shapes[] = {
	{ "H200: 8 GPCs of 6 to 9, mixed", 8, 2, 6, 9, 1, 16, 16, 25, 25, 40, 70, 60, 20, 0 },
	{ "H200, 2 to 7, whole GPCs", 8, 2, 6, 9, 1, 2, 7, 100, 20, 20, 40, 30, 10, 0 },
	{ "H200, 2 to 7, parts missing", 8, 2, 6, 9, 1, 2, 7, 50, 20, 20, 50, 30, 10, 20 },
	{ "32 GPCs of 8, mixed", 32, 2, 8, 8, 1, 16, 16, 40, 30, 40, 80, 60, 20, 0 },
	{ "32 GPCs of 8, nothing whole", 32, 4, 8, 8, 1, 16, 16, 0, 40, 40, 90, 60, 20, 0 },
	{ "32 GPCs of 6 to 8, mixed", 32, 2, 6, 8, 1, 16, 16, 50, 30, 40, 85, 60, 20, 0 },
	{ "32 of 6 to 8, all whole, tight", 32, 2, 6, 8, 1, 16, 16, 100, 10, 50, 97, 60, 20, 0 },
	{ "28 of 7 to 9, 4 uGPUs, bound", 28, 4, 7, 9, 1, 16, 16, 30, 100, 40, 75, 60, 20, 0 },
	{ "16 of 12 to 16, 2 to 7, whole", 16, 2, 12, 16, 1, 2, 7, 100, 20, 20, 60, 30, 10, 0 },
	{ "32 GPCs of 1 to 15, mixed", 32, 2, 1, 15, 1, 16, 16, 50, 30, 50, 90, 60, 20, 0 },
	{ "32 of 1 to 15, all whole, tight", 32, 1, 1, 15, 1, 16, 16, 100, 0, 80, 98, 60, 20, 0 },
	{ "32 of 1 to 15, 8 uGPUs, bound", 32, 8, 1, 15, 1, 16, 16, 60, 100, 60, 85, 60, 20, 0 },
	{ "20 of 3, 6, 9, .. 24, all whole", 20, 2, 3, 24, 3, 16, 16, 100, 10, 70, 95, 60, 20, 0 },
	{ .what = "whatever" },
};

#define NR_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Where climbs ended: GPCs as SIZE/OUTSIDE SINGLETONS-OUT OF BOUNDS@UGPU, and demands. */
static const char *const hard[] = {
#include "tests/bench/plan_hard.h"
};

#define NR_HARD (sizeof(hard) / sizeof(hard[0]))

static uint64_t seed = 88172645463325252ull;
static const char *const names[NR_TENANTS] = { "a", "b", "c", "d", "e", "f", "g", "h",
					       "i", "j", "k", "l", "m", "n", "o", "p" };
static double print_ms = 1e9;

static unsigned int below(unsigned int end)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return end ? (seed >> 20) % end : 0;
}

static bool chance(unsigned int percent)
{
	return below(100) < percent;
}

/* ---------------------------------------------------------------- instances */

static unsigned int total_of(const struct instance *in)
{
	unsigned int total = 0;

	for (unsigned int g = 0; g < in->nr_gpcs; g++)
		total += in->size[g];
	return total;
}

static bool is_demand(const struct demand *d)
{
	unsigned int home = 1;

	while (2 * home < d->cluster)
		home *= 2;
	return d->min && d->min <= GPUPART_MAX_TPCS && !(d->gpcs && d->spread) &&
	       (!d->max || (d->max >= d->min && d->max >= home && d->max <= GPUPART_MAX_TPCS));
}

static bool is_instance(const struct instance *in)
{
	unsigned int ugpus = 0;

	for (unsigned int g = 0; g < in->nr_gpcs; g++) {
		if (!in->size[g] || in->size[g] > MAX_SIZE || !in->nr_main[g] ||
		    in->nr_main[g] > in->size[g] || in->gone[g] >= in->size[g])
			return false;
		ugpus |= 1u << in->ugpu[g];
	}
	for (unsigned int t = 0; t < in->nr; t++)
		if (!is_demand(&in->demands[t]))
			return false;
	return total_of(in) <= GPUPART_MAX_TPCS && ugpus + 1ull == 1ull << in->nr_ugpus;
}

static struct gpupart_topology *make_gpu(const struct instance *in, struct gpupart_tpcset *within)
{
	static struct topo_sm sms[TOPO_MAX_SMS];
	struct gpupart_gpu_info info = { .source = "made up", .mig = -1 };
	unsigned int tpc = 0, single = in->nr_gpcs;
	struct gpupart_topology *topo;

	memset(within, 0, sizeof(*within));
	for (unsigned int g = 0; g < in->nr_gpcs; g++)
		for (unsigned int i = 0; i < in->size[g]; i++, tpc++) {
			bool alone = i >= in->nr_main[g] && single < TOPO_MAX_VGPCS;

			if (i >= in->gone[g])
				gpupart_tpcset_add(within, tpc);
			for (unsigned int sm = 0; sm < 2; sm++)
				sms[2 * tpc + sm] = (struct topo_sm){
					.gpc = g, .local_tpc = i, .local_sm = sm, .tpc = tpc,
					.vgpc = alone ? single : g, .tpc_in_vgpc = alone ? 0 : i,
					.ugpu = in->ugpu[g], .cpc = -1,
					.virtual_tpc = -1, .measured_bit = -1 };
			single += alone;
		}
	return topo_build(NULL, &info, sms, 2 * tpc, NULL, 0, &topo) ? NULL : topo;
}

/* "a+c+d", NULL for nobody. */
static const char *name_them(unsigned int bits, unsigned int self, char *text)
{
	char *at = text;

	for (unsigned int t = 0; t < NR_TENANTS; t++)
		if (bits >> t & 1 && t != self)
			at += sprintf(at, "%s%s", at > text ? "+" : "", names[t]);
	return at > text ? text : NULL;
}

static void make_demands(const struct instance *in, struct gpupart_demand *demands)
{
	static char texts[2][NR_TENANTS][2 * NR_TENANTS];
	unsigned int there = (1u << in->nr) - 1;

	for (unsigned int t = 0; t < in->nr; t++) {
		const struct demand *d = &in->demands[t];

		demands[t] = (struct gpupart_demand){
			.name = names[t], .min_tpcs = d->min, .max_tpcs = d->max, .gpcs = d->gpcs,
			.spread = d->spread, .cluster = d->cluster, .weight = d->weight,
			.same = name_them(d->same & there, t, texts[0][t]),
			.apart = name_them(d->apart & there, t, texts[1][t]) };
	}
}

static double now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* The CPU's time: the machine may be busy with something else. Who is slow is slow again. */
static struct result measure(struct gpupart *gp, const struct instance *in)
{
	struct gpupart_demand demands[NR_TENANTS];
	struct gpupart_tpcset within;
	struct gpupart_topology *topo = make_gpu(in, &within);
	struct gpupart_plan plan = { 0 };
	struct result r = { .ms = 1e9 };

	if (!topo)
		exit(2);
	make_demands(in, demands);
	for (int turn = 0; turn < 3 && (!turn || r.ms > PROMISED_MS / 2); turn++) {
		double start = now_ms(CLOCK_THREAD_CPUTIME_ID), ms;

		r.err = gpupart_plan_make(gp, topo, &within, demands, in->nr, &plan);
		ms = now_ms(CLOCK_THREAD_CPUTIME_ID) - start;
		if (ms < r.ms)
			r.ms = ms;
	}
	r.steps = plan.nr_steps;
	gpupart_topology_close(topo);
	return r;
}

/* ----------------------------------------------------------------- as text */

static void print_instance(const struct instance *in)
{
	printf("\"%u", in->nr_ugpus);
	for (unsigned int g = 0; g < in->nr_gpcs; g++)
		printf(" %u/%u-%u@%u", in->size[g], in->nr_main[g], in->gone[g], in->ugpu[g]);
	printf(":\"\n");
	for (unsigned int t = 0; t < in->nr; t++) {
		const struct demand *d = &in->demands[t];

		printf("\t\" %u-%u,%u,%u,%u,%x,%x\"%s", d->min, d->max, d->cluster, d->weight,
		       d->gpcs + 2 * d->spread, d->same, d->apart,
		       t + 1 < in->nr ? t % 4 == 3 ? "\n" : "" : ",\n");
	}
}

/* What print_instance() wrote. */
static void read_instance(const char *text, struct instance *in)
{
	int len = 0, form;

	memset(in, 0, sizeof(*in));
	if (sscanf(text, "%u%n", &in->nr_ugpus, &len) != 1)
		exit(2);
	for (text += len; *text != ':'; text += len) {
		unsigned int g = in->nr_gpcs++;

		if (sscanf(text, " %u/%u-%u@%u%n", &in->size[g], &in->nr_main[g], &in->gone[g],
			   &in->ugpu[g], &len) != 4)
			exit(2);
	}
	for (text++; *text; text += len) {
		struct demand *d = &in->demands[in->nr++];

		if (sscanf(text, " %u-%u,%u,%u,%d,%x,%x%n", &d->min, &d->max, &d->cluster,
			   &d->weight, &form, &d->same, &d->apart, &len) != 7)
			exit(2);
		d->gpcs = form & 1;
		d->spread = form & 2;
	}
}

/* ---------------------------------------------------------------- at random */

/* Any shape: mostly many GPCs and tenants, which takes longest. */
static void draw_shape(struct shape *s)
{
	unsigned int mean;

	s->gpcs = chance(60) ? 24 + below(9) : chance(60) ? 8 + below(25) : 2 + below(7);
	s->ugpus = chance(30) ? 1 : chance(60) ? 2 : 1 + below(4);
	if (s->ugpus > s->gpcs)
		s->ugpus = 1;
	mean = GPUPART_MAX_TPCS / s->gpcs;
	s->smallest = (const unsigned int[]){ mean, mean - 1, (mean + 1) / 2, 1 }[below(4)];
	s->largest = s->smallest + below(2 * (mean - s->smallest) + 2);
	s->step = chance(15) ? 2 + below(2) : 1;
	s->whole = chance(40) ? 100 : below(101);
	s->bound = chance(40) ? 0 : chance(50) ? below(40) : below(101);
	s->window = chance(30) ? 0 : below(101);
	s->load = 60 + below(42);
	s->cluster = chance(50) ? 0 : below(80);
	s->singletons = chance(50) ? 0 : below(40);
	s->gone = chance(70) ? 0 : below(20);
	s->least = s->most = chance(70) ? NR_TENANTS : 2 + below(NR_TENANTS - 1);
}

static void draw_gpc(struct instance *in, const struct shape *s, unsigned int g)
{
	in->size[g] = s->smallest + s->step * below((s->largest - s->smallest) / s->step + 1);
	in->nr_main[g] = chance(s->singletons) ? 1 + below(in->size[g]) : in->size[g];
	in->gone[g] = chance(s->gone) ? below(in->size[g]) : 0;
	in->ugpu[g] = chance(80) ? g * in->nr_ugpus / in->nr_gpcs : below(in->nr_ugpus);
}

static void draw_demand(struct instance *in, const struct shape *s, unsigned int t)
{
	struct demand *d = &in->demands[t];
	unsigned int mean = total_of(in) * s->load / 100 / in->nr, other = below(in->nr);

	*d = (struct demand){ .weight = 1 + below(4), .gpcs = chance(s->whole) };
	d->min = 1 + below(2 * mean);
	d->cluster = chance(s->cluster) ? 1u << below(6) : 0;
	if (chance(s->window))
		d->max = d->min + below(chance(50) ? 4 : 10);
	if (d->max && d->cluster > 2 * d->max)
		d->cluster = 0;
	d->spread = !d->gpcs && chance(30);
	for (unsigned int i = 0; i < in->nr; i++) {
		in->demands[i].same &= ~(1u << t);
		in->demands[i].apart &= ~(1u << t);
	}
	if (chance(s->bound) && other != t && in->nr_ugpus > 1)
		*(chance(40) ? &d->same : &d->apart) |= 1u << other;
}

static void draw(struct instance *in, const struct shape *s)
{
	do {
		*in = (struct instance){ .nr_gpcs = s->gpcs, .nr_ugpus = s->ugpus,
					 .nr = s->least + below(s->most - s->least + 1) };
		for (unsigned int g = 0; g < in->nr_gpcs; g++)
			draw_gpc(in, s, g);
		while (total_of(in) > GPUPART_MAX_TPCS) {
			unsigned int g = below(in->nr_gpcs);

			if (in->size[g] < 2)
				continue;
			in->size[g]--;
			in->gone[g] = 0;
			if (in->nr_main[g] > in->size[g])
				in->nr_main[g] = in->size[g];
		}
		for (unsigned int t = 0; t < in->nr; t++)
			draw_demand(in, s, t);
	} while (!is_instance(in));
}

/* ------------------------------------------------------------------ climbing */

static void change_gpc(struct instance *in, const struct shape *s)
{
	unsigned int g = below(in->nr_gpcs), other = below(in->nr_gpcs);

	switch (below(6)) {
	case 0:
		draw_gpc(in, s, g);
		return;
	case 1:
		in->ugpu[g] = below(in->nr_ugpus);
		return;
	case 2:
		in->nr_main[g] = 1 + below(in->size[g]);
		return;
	case 3:
		in->size[g] = in->size[other];
		in->nr_main[g] = in->nr_main[other];
		in->gone[g] = in->gone[other];
		return;
	default:
		in->size[g] += below(3) - 1;
		if (chance(50))
			in->nr_main[g] = in->size[g];
	}
}

static void change_demand(struct instance *in, const struct shape *s)
{
	unsigned int t = below(in->nr), other = below(in->nr);
	struct demand *d = &in->demands[t], before = *d;

	switch (below(12)) {
	case 0:
		draw_demand(in, s, t);
		return;
	case 1:
		*d = in->demands[other];
		d->same = before.same;
		d->apart = before.apart;
		return;
	case 2:
	case 3:
		d->max = d->max ? d->max + below(5) - 2 : d->min + below(5);
		return;
	case 4:
		d->max = 0;
		return;
	case 5:
		d->gpcs = !d->gpcs;
		d->spread &= !d->gpcs;
		return;
	case 6:
		d->cluster = chance(50) ? 0 : 1u << below(6);
		return;
	case 7:
		if (other != t && in->nr_ugpus > 1)
			*(chance(50) ? &d->same : &d->apart) ^= 1u << other;
		return;
	default:
		d->min += below(7) - 3;
	}
}

static void change(struct instance *in, const struct shape *s)
{
	struct instance before = *in;

	do {
		*in = before;
		do {
			if (chance(70))
				change_demand(in, s);
			else
				change_gpc(in, s);
		} while (chance(35));
	} while (!is_instance(in));
}

/* -------------------------------------------------------------------- kinds */

struct tally {
	unsigned int nr[2], planned, late[2], undecided, steps;
	double slowest[2][2];		/* planned, refused; at random, climbed to */
};

static void count(struct tally *t, const struct instance *in, const struct result *r, bool climbed)
{
	double *slowest = &t->slowest[!!r->err][climbed];

	t->nr[climbed]++;
	t->planned += !r->err;
	t->late[climbed] += r->ms > PROMISED_MS;
	t->undecided += r->err && r->err != -ENOSPC;
	if (r->ms > *slowest)
		*slowest = r->ms;
	if (r->steps > t->steps)
		t->steps = r->steps;
	if (r->ms > print_ms)
		print_instance(in);
}

static int report(const char *what, const struct tally *t)
{
	printf("%-32s %5u planned, %.3f ms, climbed to %.3f; %5u refused, %.3f, %.3f; %u steps",
	       what, t->planned, t->slowest[0][0], t->slowest[0][1],
	       t->nr[0] + t->nr[1] - t->planned, t->slowest[1][0], t->slowest[1][1], t->steps);
	if (t->late[0] + t->late[1])
		printf("; %u of %u and %u of %u above %.0f ms", t->late[0], t->nr[0], t->late[1],
		       t->nr[1], PROMISED_MS);
	if (t->undecided)
		printf("; %u not decided", t->undecided);
	putchar('\n');
	fflush(stdout);
	return t->undecided || t->late[0];
}

/* One climb, from the worst of some. */
static void climb(struct gpupart *gp, const struct shape *kind, double end, struct tally *t)
{
	struct shape s = *kind;
	struct instance in, top = { 0 };
	unsigned int most = 0, stale = 0;

	if (!s.gpcs)
		draw_shape(&s);
	for (unsigned int i = 0; i < NR_FIRST && now_ms(CLOCK_MONOTONIC) < end; i++) {
		struct result r;

		draw(&in, &s);
		r = measure(gp, &in);
		count(t, &in, &r, false);
		if (!top.nr || r.steps > most) {
			top = in;
			most = r.steps;
		}
	}
	while (stale < NR_STALE && now_ms(CLOCK_MONOTONIC) < end) {
		struct result r;

		in = top;
		change(&in, &s);
		r = measure(gp, &in);
		count(t, &in, &r, true);
		stale++;
		/* A little less than the most is no reason not to go on from there. */
		if (r.steps < most - most / 32)
			continue;
		top = in;
		if (r.steps > most) {
			most = r.steps;
			stale = 0;
		}
	}
}

static int run(struct gpupart *gp, const struct shape *kind, double ms)
{
	double end = now_ms(CLOCK_MONOTONIC) + ms;
	struct tally t = { 0 };

	while (now_ms(CLOCK_MONOTONIC) < end)
		climb(gp, kind, end, &t);
	return report(kind->what, &t);
}

static int run_hard(struct gpupart *gp)
{
	struct tally t = { 0 };

	for (size_t i = 0; i < NR_HARD; i++) {
		struct instance in;
		struct result r;

		read_instance(hard[i], &in);
		r = measure(gp, &in);
		count(&t, &in, &r, true);
	}
	return report("where climbs ended", &t);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	struct gpupart *gp;
	int failed = 0;

	if (argc > 2)
		seed += 2 * strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15ull;
	if (argc > 4)
		print_ms = strtod(argv[4], NULL);
	if (gpupart_open(&gp))
		return 2;
	for (size_t i = 0; i < NR_SHAPES; i++)
		if (argc < 4 || strtoul(argv[3], NULL, 10) == i)
			failed |= run(gp, &shapes[i], 1e3 * seconds);
	if (argc < 4 || strtoul(argv[3], NULL, 10) == NR_SHAPES)
		failed |= run_hard(gp);
	gpupart_close(gp);
	return failed;
}
