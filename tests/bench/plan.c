// SPDX-License-Identifier: MIT
/*
 * Measures the time of the planner. It plans random demands of up to 16 tenants, on the boards of
 * tests/data and on made-up GPUs that are similar to real GPUs. Then it makes a climb. A climb
 * begins with the demands that needed the most steps. It changes these demands a little, and
 * repeats this as long as the number of steps grows. For each kind of GPU, the program prints a
 * line with the slowest random case and the slowest case of the climb. If a random case took
 * longer than the limit, or if the planner did not decide a case, the program fails.
 *
 *         bench-plan [SECONDS PER KIND] [SEED] [KIND, FROM 0] [MILLISECONDS TO PRINT]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/topo/cluster.h"
#include "lib/topo/topology.h"

#define NR_TENANTS GPUPART_PLAN_MAX_TENANTS
#define MAX_GPCS GPUPART_MAX_GPCS
#define MAX_SIZE 32		/* maximum number of TPCs in a GPC */
#define PROMISED_MS 15.0
#define NR_BOARDS 7
#define NR_FIRST 60		/* number of random cases; the climb begins with the slowest of
				 * them */
/* if no slower case is found in this number of steps, the climb ends */
#define NR_STALE 300

struct demand {
	unsigned int min, max, cluster, weight, same, apart;	/* @same and @apart have a bit for
								 * each tenant */
	bool gpcs, spread;
};

struct instance {
	unsigned int nr_gpcs, nr_ugpus, nr;
	/*
	 * For each GPC: the number of all TPCs, the number of TPCs without the singletons, and
	 * the number of TPCs that are not available.
	 */
	unsigned int size[MAX_GPCS], nr_main[MAX_GPCS], gone[MAX_GPCS], ugpu[MAX_GPCS];
	struct demand demands[NR_TENANTS];
};

struct result {
	double ms;
	unsigned int steps;
	int err;
};

/* The properties of GPUs and demands. Chances are percentages. */
struct shape {
	const char *what;
	unsigned int gpcs, ugpus, smallest, largest; /* TPCs per GPC; if gpcs is 0, a real board */
	unsigned int least, most;				/* tenants */
	unsigned int whole, bound, window, load, cluster, singletons, gone;
};

static const struct shape shapes[] = {
	{ "H200 boards, mixed", 0, 0, 0, 0, 16, 16, 25, 25, 40, 70, 60, 0, 0 },
	{ "H200 boards, 2 to 7, whole GPCs", 0, 0, 0, 0, 2, 7, 100, 20, 20, 40, 30, 0, 0 },
	{ "H200 boards, parts missing", 0, 0, 0, 0, 2, 16, 50, 30, 40, 70, 30, 0, 20 },
	{ "8 GPCs of 6 to 9, mixed", 8, 2, 6, 9, 16, 16, 25, 25, 40, 70, 60, 20, 0 },
	{ "8 GPCs of 8 to 10, mixed", 8, 2, 8, 10, 16, 16, 40, 30, 40, 80, 60, 20, 0 },
	{ "8 GPCs, bound", 8, 2, 6, 9, 2, 16, 40, 100, 50, 70, 40, 20, 10 },
	{ "12 GPCs of 6 to 8, mixed", 12, 1, 6, 8, 16, 16, 40, 0, 40, 80, 60, 20, 0 },
	{ "12 GPCs, all whole, tight", 12, 1, 6, 9, 2, 12, 100, 0, 30, 90, 40, 20, 0 },
	{ "12 GPCs, 2 uGPUs, bound", 12, 2, 6, 9, 2, 16, 60, 100, 60, 75, 40, 20, 10 },
	{ "32 GPCs of 8, mixed", 32, 2, 8, 8, 16, 16, 40, 30, 40, 80, 60, 20, 0 },
};

#define NR_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* The GPCs of the boards. */
static struct instance boards[NR_BOARDS];

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

/* Names such as "a+c+d", or NULL for no names. */
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

/*
 * The machine may be busy, so use CPU time. A case that is really slow is also slow in a second
 * run.
 */
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

/* ---------------------------------------------------------------- at random */

static void read_boards(struct gpupart *gp)
{
	for (unsigned int i = 0; i < NR_BOARDS; i++) {
		struct instance *in = &boards[i];
		struct gpupart_topology *topo;
		char path[64];

		sprintf(path, "tests/data/gh100-h200-%c/capture.txt", 'a' + i);
		if (gpupart_topology_open(gp, path, NULL, &topo)) {
			fprintf(stderr, "%s\n", gpupart_error(gp));
			exit(2);
		}
		in->nr_gpcs = gpupart_topology_nr_gpcs(topo);
		in->nr_ugpus = gpupart_topology_nr_ugpus(topo);
		for (unsigned int g = 0; g < in->nr_gpcs; g++) {
			const struct gpupart_gpc *gpc = gpupart_topology_gpc(topo, g);
			struct gpupart_tpcset main_tpcs = cluster_tpcs(topo, &gpc->tpcs);

			in->size[g] = gpupart_tpcset_count(&gpc->tpcs);
			in->nr_main[g] = gpupart_tpcset_count(&main_tpcs);
			in->ugpu[g] = gpc->ugpu;
		}
		gpupart_topology_close(topo);
	}
}

static void draw_gpc(struct instance *in, const struct shape *s, unsigned int g)
{
	in->size[g] = s->smallest + below(s->largest - s->smallest + 1);
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
		if (!s->gpcs)
			*in = boards[below(NR_BOARDS)];
		else
			*in = (struct instance){ .nr_gpcs = s->gpcs, .nr_ugpus = s->ugpus };
		in->nr = s->least + below(s->most - s->least + 1);
		for (unsigned int g = 0; g < in->nr_gpcs; g++)
			if (s->gpcs)
				draw_gpc(in, s, g);
			else
				in->gone[g] = chance(s->gone) ? below(in->size[g]) : 0;
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
			if (!s->gpcs || chance(70))
				change_demand(in, s);
			else
				change_gpc(in, s);
		} while (chance(35));
	} while (!is_instance(in));
}

/* -------------------------------------------------------------------- kinds */

struct tally {
	unsigned int nr[2], planned, late[2], undecided, steps;
	double slowest[2][2];		/* first index: planned or refused; second index: random
					 * or climb */
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

/* Makes one climb that begins with the slowest of several cases. */
static void climb(struct gpupart *gp, const struct shape *s, double end, struct tally *t)
{
	struct instance in, top = { 0 };
	unsigned int most = 0, stale = 0;

	for (unsigned int i = 0; i < NR_FIRST && now_ms(CLOCK_MONOTONIC) < end; i++) {
		struct result r;

		draw(&in, s);
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
		change(&in, s);
		r = measure(gp, &in);
		count(t, &in, &r, true);
		stale++;
		/*
		 * Also continue with a case that is slightly faster than the slowest case,
		 * because it may lead to a slower case.
		 */
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
	read_boards(gp);
	for (size_t i = 0; i < NR_SHAPES; i++)
		if (argc < 4 || strtoul(argv[3], NULL, 10) == i)
			failed |= run(gp, &shapes[i], 1e3 * seconds);
	gpupart_close(gp);
	return failed;
}
