// SPDX-License-Identifier: MIT
/*
 * How long the planner takes: many random demands of 16 tenants on GPUs of up to 32 GPCs and
 * 256 TPCs, and a search that goes on from the slowest ones it finds. Prints a line a kind:
 * the slowest at random and of those searched for. Fails where of those at random more than
 * one of a hundred took longer than promised, or one was not decided.
 *
 *	bench-plan [SECONDS A KIND] [SEED] [KIND, FROM 0]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "topo.h"

#define NR_TENANTS 16
#define NR_KEPT 24		/* of the slowest, which the search goes on from */
#define PROMISED_MS 10.0

struct instance {
	unsigned int nr_gpcs, nr_ugpus, size[GPUPART_MAX_GPCS], nr_main[GPUPART_MAX_GPCS];
	unsigned int nr;
	struct gpupart_demand demands[NR_TENANTS];
	int other[NR_TENANTS];	/* whom it names in same (odd) or apart; -1 nobody */
	double ms;
	int err;
	unsigned int steps;
};

/* What a kind's GPUs and demands are like. */
static const struct kind {
	const char *what;
	unsigned int gpcs, ugpus, smallest, largest;	/* TPCs a GPC */
	unsigned int whole, bound, window, load;	/* of 100 */
} kinds[] = {
	{ "H200: 8 GPCs of 6 to 9, mixed", 8, 2, 6, 9, 25, 25, 40, 70 },
	{ "H200, whole GPCs", 8, 2, 6, 9, 100, 20, 30, 90 },
	{ "32 GPCs of 8, mixed", 32, 2, 8, 8, 40, 30, 40, 80 },
	{ "32 GPCs of 8, nothing whole", 32, 4, 8, 8, 0, 40, 40, 90 },
	{ "32 GPCs of 6 to 8, mixed", 32, 2, 6, 8, 50, 30, 40, 85 },
	{ "32 GPCs of 6 to 8, all whole, tight", 32, 2, 6, 8, 100, 10, 50, 97 },
	{ "32 GPCs of 7 to 9, 4 uGPUs, bound", 28, 4, 7, 9, 30, 100, 40, 75 },
	{ "16 GPCs of 12 to 16, all whole", 16, 2, 12, 16, 100, 20, 40, 85 },
	{ "32 GPCs of 1 to 15, mixed", 32, 2, 1, 15, 50, 30, 50, 90 },
	{ "32 GPCs of 1 to 15, all whole, tight", 32, 1, 1, 15, 100, 0, 80, 98 },
	{ "32 GPCs of 1 to 15, 8 uGPUs, bound", 32, 8, 1, 15, 60, 100, 60, 85 },
	{ "20 GPCs of 3, 6, 9, .. 24, all whole", 20, 2, 3, 24, 100, 10, 70, 95 },
};

static uint64_t seed = 88172645463325252ull;
static const char *const names[NR_TENANTS] = { "a", "b", "c", "d", "e", "f", "g", "h",
					       "i", "j", "k", "l", "m", "n", "o", "p" };

static unsigned int below(unsigned int end)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % end;
}

static bool chance(unsigned int percent)
{
	return below(100) < percent;
}

static struct gpupart_topology *make_gpu(const struct instance *in)
{
	static struct topo_sm sms[TOPO_MAX_SMS];
	struct gpupart_gpu_info info = { .source = "made up", .mig = -1 };
	unsigned int tpc = 0, single = in->nr_gpcs;
	struct gpupart_topology *topo;

	for (unsigned int g = 0; g < in->nr_gpcs; g++)
		for (unsigned int i = 0; i < in->size[g]; i++, tpc++) {
			bool alone = i >= in->nr_main[g] && single < TOPO_MAX_VGPCS;

			for (unsigned int sm = 0; sm < 2; sm++)
				sms[2 * tpc + sm] = (struct topo_sm){
					.gpc = g, .local_tpc = i, .local_sm = sm, .tpc = tpc,
					.vgpc = alone ? single : g, .tpc_in_vgpc = alone ? 0 : i,
					.ugpu = g * in->nr_ugpus / in->nr_gpcs, .cpc = -1,
					.virtual_tpc = -1, .measured_bit = -1 };
			single += alone;
		}
	return topo_build(NULL, &info, sms, 2 * tpc, NULL, 0, &topo) ? NULL : topo;
}

static void change_demand(struct instance *in, const struct kind *kind, unsigned int t,
			  unsigned int total)
{
	struct gpupart_demand *d = &in->demands[t];
	unsigned int mean = total * kind->load / 100 / NR_TENANTS;

	*d = (struct gpupart_demand){ .name = names[t], .weight = 1 + below(4),
				      .gpcs = chance(kind->whole) };
	d->min_tpcs = 1 + below(2 * mean);
	d->cluster = below(3) ? 0 : 1u << below(5);
	if (chance(kind->window))
		d->max_tpcs = d->min_tpcs + below(4);
	if (d->max_tpcs && d->cluster > 2 * d->max_tpcs)
		d->cluster = 0;
	if (d->max_tpcs && d->cluster > d->max_tpcs)
		d->max_tpcs = d->cluster;
	d->spread = !d->gpcs && chance(30);
	in->other[t] = chance(kind->bound) ? (int)below(NR_TENANTS) : -1;
	if (in->other[t] == (int)t)
		in->other[t] = -1;
}

static unsigned int total_of(const struct instance *in)
{
	unsigned int total = 0;

	for (unsigned int g = 0; g < in->nr_gpcs; g++)
		total += in->size[g];
	return total;
}

static void change_gpc(struct instance *in, const struct kind *kind, unsigned int g)
{
	unsigned int step = kind->largest == 24 ? 3 : 1;
	unsigned int most = GPUPART_MAX_TPCS - (total_of(in) - in->size[g]);

	in->size[g] = kind->smallest + step * below((kind->largest - kind->smallest) / step + 1);
	if (in->size[g] > most)
		in->size[g] = most;
	in->nr_main[g] = in->size[g] && chance(20) ? 1 + below(in->size[g]) : in->size[g];
}

static void make(struct instance *in, const struct kind *kind)
{
	memset(in, 0, sizeof(*in));
	in->nr_gpcs = kind->gpcs;
	in->nr_ugpus = kind->ugpus;
	in->nr = NR_TENANTS;
	for (unsigned int g = 0; g < in->nr_gpcs; g++) {
		change_gpc(in, kind, g);
		if (!in->size[g])
			in->nr_gpcs = g;	/* the TPCs are used up */
	}
	for (unsigned int t = 0; t < in->nr; t++)
		change_demand(in, kind, t, total_of(in));
}

/* A demand or a GPC of a slow one is changed, sometimes two. */
static void change(struct instance *in, const struct kind *kind)
{
	do {
		unsigned int g = below(in->nr_gpcs), t = below(in->nr);

		if (chance(70)) {
			change_demand(in, kind, t, total_of(in));
		} else {
			struct instance before = *in;

			change_gpc(in, kind, g);
			if (!in->size[g])
				*in = before;
		}
	} while (chance(30));
}

static void measure(struct gpupart *gp, struct instance *in)
{
	struct gpupart_demand demands[NR_TENANTS];
	struct gpupart_topology *topo = make_gpu(in);
	struct timespec start, end;
	struct gpupart_plan plan = { 0 };
	double ms;

	if (!topo)
		exit(2);
	memcpy(demands, in->demands, sizeof(demands));
	for (unsigned int t = 0; t < in->nr; t++)
		if (in->other[t] >= 0) {
			struct gpupart_demand *d = &demands[t];

			*(in->other[t] % 2 ? &d->same : &d->apart) = names[in->other[t]];
		}
	in->ms = 1e9;
	/* The machine may have been busy with something else: who is slow is slow again. */
	for (int turn = 0; turn < 3 && (!turn || in->ms > PROMISED_MS / 2); turn++) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		in->err = gpupart_plan_make(gp, topo, NULL, demands, in->nr, &plan);
		clock_gettime(CLOCK_MONOTONIC, &end);
		ms = (end.tv_sec - start.tv_sec) * 1e3 + (end.tv_nsec - start.tv_nsec) / 1e6;
		if (ms < in->ms)
			in->ms = ms;
	}
	in->steps = plan.nr_steps;
	gpupart_topology_close(topo);
}

static int slower(const void *a, const void *b)
{
	const struct instance *l = a, *r = b;

	return (l->ms < r->ms) - (l->ms > r->ms);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Half the time at random, then from the slowest on. */
static int run(struct gpupart *gp, const struct kind *kind, double ms)
{
	struct instance kept[NR_KEPT + 1] = { 0 }, in;
	double slowest[2][2] = { 0 };	/* planned, refused; at random, searched for */
	double *worst, start = now_ms(), spent;
	unsigned int nr = 0, planned = 0, undecided[2] = { 0 }, late[2] = { 0 }, nr_random = 0;

	for (; (spent = now_ms() - start) < ms; nr++) {
		bool searched = spent > ms / 2 && kept[0].nr;

		if (!searched) {
			make(&in, kind);
		} else {
			in = kept[below(NR_KEPT)];
			if (!in.nr)
				in = kept[0];
			change(&in, kind);
		}
		measure(gp, &in);
		planned += !in.err;
		nr_random += !searched;
		undecided[searched] += in.err == -E2BIG;
		late[searched] += in.ms > PROMISED_MS;
		worst = &slowest[!!in.err][searched];
		if (in.ms > *worst)
			*worst = in.ms;
		kept[NR_KEPT] = in;
		qsort(kept, NR_KEPT + 1, sizeof(in), slower);
	}
	printf("%-40s %5u planned, %.3f ms, searched for %.3f; %5u refused, %.3f, %.3f",
	       kind->what, planned, slowest[0][0], slowest[0][1], nr - planned, slowest[1][0],
	       slowest[1][1]);
	if (late[0] + late[1])
		printf("; %u and %u above %.0f ms", late[0], late[1], PROMISED_MS);
	if (undecided[0] + undecided[1])
		printf("; %u and %u not decided", undecided[0], undecided[1]);
	putchar('\n');
	fflush(stdout);
	return undecided[0] || (late[0] > 1 && late[0] * 100 > nr_random);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	struct gpupart *gp;
	int failed = 0;

	if (argc > 2)
		seed += 2 * strtoull(argv[2], NULL, 10);
	if (gpupart_open(&gp))
		return 2;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (argc < 4 || strtoul(argv[3], NULL, 10) == i)
			failed |= run(gp, &kinds[i], 1e3 * seconds);
	gpupart_close(gp);
	return failed;
}
