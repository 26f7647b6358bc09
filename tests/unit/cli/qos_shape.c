// SPDX-License-Identifier: MIT
/*
 * Tests shapes of sets in the QoS policy, on captures of boards with seeded noise. The policy must
 * find the best shape for a tenant, settle after a change of load, and keep floors and clusters.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/qos/policy/gpupart_qos.h"
#include "tests/tap.h"

#define EPOCH_NS	200000000ull
#define SETTLED		10u	/* maximum number of epochs until the sets settle */
/* number of epochs of one load, including the epochs until the sets settle */
#define PHASE		40u
#define FIRST		15u

/*
 * The ways in which a tenant's speed depends on its set. They were fitted to an H200. DRAM: a
 * decode loop makes 114 steps per second on one uGPU, and 135 steps per second on whole GPCs of
 * both uGPUs. STREAM: a stream takes 1512 us on one TPC. The best times are 435 us on a GPC, 220
 * us on a uGPU, and 129 us on all TPCs (bench scaling). L2: if another reader has TPCs of the
 * same GPCs, a reader takes 1.99 times as long (bench isolation). WAITS: each launch waits for
 * its slowest TPC. A TPC next to a stream reduces the speed to 40 / 67 (scenario qos-neighbour).
 */
enum kind { COMPUTE, DRAM, STREAM, L2, WAITS };

struct load {
	enum kind kind;
	/* number of TPCs; more TPCs do not make the tenant faster; 0: no such limit */
	unsigned int knee;
	bool clusters;	/* clusters of 8: without four TPCs of one GPC, 18 steps instead of 118 */
};

struct world {
	struct qos_board board;
	struct qos_tenant tenants[3];
	struct load loads[3];
	unsigned int nr, noise;
	uint64_t seed, drains;	/* states of random numbers: noise, drains */
	struct qos_policy *policy;
	struct qos_decision now;

	/* Results. */
	unsigned int epoch, last_change;
	unsigned int nr_shape[QOS_SHAPES];	/* number of sets in force with 4 TPCs or more */
	/* number of times that the set of the first tenant was lowered */
	unsigned int lowered;
	/* consecutive epochs in which some TPCs made the tenant slower */
	unsigned int slower;
	/* number of sets in force without TPCs for a cluster */
	unsigned int lacking;
	/* number of sets in force below the floor */
	unsigned int below;
	unsigned int overlaps;
	unsigned int met, counted;
};

static uint32_t rnd(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

static unsigned int in_place(const uint8_t *places, const struct gpupart_tpcset *set,
			     unsigned int place)
{
	unsigned int nr = 0;

	for (int t = gpupart_tpcset_next(set, 0); t >= 0; t = gpupart_tpcset_next(set, t + 1))
		nr += places[t] == place;
	return nr;
}

static unsigned int most_in_vgpc(const struct qos_board *board, const struct gpupart_tpcset *set)
{
	unsigned int most = 0, nr;

	for (int t = gpupart_tpcset_next(set, 0); t >= 0; t = gpupart_tpcset_next(set, t + 1)) {
		nr = in_place(board->vgpc, set, board->vgpc[t]);
		most = nr > most ? nr : most;
	}
	return most;
}

/* Counts the TPCs of @set whose GPC also has a TPC of @others. */
static unsigned int beside(const struct qos_board *board, const struct gpupart_tpcset *set,
			   const struct gpupart_tpcset *others)
{
	unsigned int nr = 0;

	for (int t = gpupart_tpcset_next(set, 0); t >= 0; t = gpupart_tpcset_next(set, t + 1))
		nr += in_place(board->gpc, others, board->gpc[t]) > 0;
	return nr;
}

/*
 * Returns the rate that the GPC ports and the uGPUs allow, in thousandths of the reads of one
 * TPC.
 */
static uint64_t streamed(const struct qos_board *board, const struct gpupart_tpcset *set)
{
	uint64_t all = 0, of_ugpu, of_gpc;

	for (unsigned int ugpu = 0; ugpu < 2; ugpu++) {
		of_ugpu = 0;
		for (unsigned int gpc = 0; gpc < 8; gpc++) {
			of_gpc = 0;
			for (unsigned int t = 0; t < board->nr_tpcs; t++)
				if (board->gpc[t] == gpc && board->ugpu[t] == ugpu)
					of_gpc += 1000 * gpupart_tpcset_has(set, t);
			of_ugpu += of_gpc < 1512000 / 435 ? of_gpc : 1512000 / 435;
		}
		all += of_ugpu < 1512000 / 220 ? of_ugpu : 1512000 / 220;
	}
	return all < 1512000 / 129 ? all : 1512000 / 129;
}

/* Returns the speed in thousandths of a unit per second. */
static uint64_t speed_of(const struct qos_board *board, const struct load *load,
			 const struct gpupart_tpcset *set, const struct gpupart_tpcset *others)
{
	unsigned int n = gpupart_tpcset_count(set), least, near;
	uint64_t speed = 1000000ull * (load->knee && n > load->knee ? load->knee : n);

	if (!n)
		return 0;
	near = beside(board, set, others);
	if (load->kind == DRAM) {
		least = in_place(board->ugpu, set, 0);
		least = least < n - least ? least : n - least;
		speed = speed * (845 * (uint64_t)n + 155 * 2 * least) / (1000ull * n);
	} else if (load->kind == STREAM) {
		speed = 1000 * streamed(board, set);
	} else if (load->kind == L2) {
		speed = speed * 1000 * n / (1000ull * n + 990 * near);
	} else if (load->kind == WAITS && near) {
		speed = speed * 40 / 67;
	}
	if (load->clusters && n >= 4 && most_in_vgpc(board, set) < 4)
		speed = speed * 18 / 118;
	return speed;
}

static struct gpupart_tpcset others_of(const struct world *w, unsigned int i)
{
	struct gpupart_tpcset set = { 0 };

	for (unsigned int j = 0; j < w->nr; j++)
		if (j != i)
			set = gpupart_tpcset_or(&set, &w->now.tenants[j].set);
	return set;
}

static uint64_t speed_now(const struct world *w, unsigned int i)
{
	struct gpupart_tpcset others = others_of(w, i);

	return speed_of(&w->board, &w->loads[i], &w->now.tenants[i].set, &others);
}

/*
 * Some TPCs of the first tenant may be in GPCs of other tenants. Returns true if the first tenant
 * would be a tenth faster without these TPCs.
 */
static bool is_slower(const struct world *w)
{
	struct gpupart_tpcset others = others_of(w, 0), alone = w->now.tenants[0].set;

	for (unsigned int t = 0; t < w->board.nr_tpcs; t++)
		if (in_place(w->board.gpc, &others, w->board.gpc[t]))
			gpupart_tpcset_del(&alone, t);
	return speed_of(&w->board, &w->loads[0], &alone, &others) * 10 > speed_now(w, 0) * 11;
}

static void look(struct world *w)
{
	for (unsigned int i = 0; i < w->nr; i++) {
		const struct qos_verdict *v = &w->now.tenants[i];
		struct gpupart_tpcset others = others_of(w, i);

		w->overlaps += gpupart_tpcset_intersects(&v->set, &others);
		w->below += gpupart_tpcset_count(&v->set) < w->tenants[i].floor;
		if (gpupart_tpcset_count(&v->set) < 4)
			continue;
		w->nr_shape[v->shape]++;
		w->lacking += most_in_vgpc(&w->board, &v->set) < w->board.cluster_tpcs;
	}
}

static void begin(struct world *w)
{
	struct qos_rules rules = { 0 };
	char why[QOS_MESSAGE_SIZE];

	if (qos_policy_new(&w->board, &rules, w->tenants, w->nr, &w->policy, &w->now, why)) {
		printf("Bail out! %s\n", why);
		exit(1);
	}
}

/*
 * Returns true if a tenant's set has moved. A set has moved if its shape has changed, or if its
 * number of TPCs has changed by more than one TPC plus a sixteenth. Noise can cause smaller
 * changes.
 */
static bool has_moved(const struct world *w, const struct qos_decision *before)
{
	for (unsigned int i = 0; i < w->nr; i++) {
		unsigned int was = before->tenants[i].nr_tpcs, is = w->now.tenants[i].nr_tpcs;

		if (before->tenants[i].shape != w->now.tenants[i].shape ||
		    (is > was ? is - was : was - is) > 1 + was / 16)
			return true;
	}
	return false;
}

static void epoch(struct world *w)
{
	struct qos_decision before = w->now;
	struct qos_measured m[3] = { 0 };
	uint64_t speed;

	while (w->now.swapping) {
		for (unsigned int i = 0; i < w->nr; i++)
			m[i].drained = rnd(&w->drains) % 2;
		qos_policy_step(w->policy, m, &w->now);
		look(w);
	}
	for (unsigned int i = 0; i < w->nr; i++) {
		int64_t noise = (int64_t)(rnd(&w->seed) % 2001 + rnd(&w->seed) % 2001) - 2000;

		speed = speed_now(w, i);
		speed += (int64_t)speed / 1000 * noise * w->noise / 1000000 * 1000;
		m[i] = (struct qos_measured){
			.valid = true, .ns = EPOCH_NS, .work = speed / 5, .reports = 40,
		};
	}
	w->slower = is_slower(w) ? w->slower + 1 : 0;
	qos_policy_step(w->policy, m, &w->now);
	look(w);
	w->epoch++;
	if (has_moved(w, &before))
		w->last_change = w->epoch;
	w->lowered += w->now.tenants[0].nr_tpcs < before.tenants[0].nr_tpcs;
	w->met += w->now.tenants[0].score >= 1000;
	w->counted++;
	if (getenv("QOS_SHOW"))
		for (unsigned int i = 0; i < w->nr; i++) {
			const struct qos_verdict *v = &w->now.tenants[i];

			printf("# %3u %u%s: %5u %7llu %2u %-8s %s | %.90s\n", w->epoch, i,
			       w->last_change == w->epoch ? "*" : " ", v->score,
			       (unsigned long long)v->speed / 1000, v->nr_tpcs,
			       qos_shape_name(v->shape), qos_class_name(v->class), v->why);
		}
}

/*
 * Creates a guaranteed tenant that needs the speed of @tpcs TPCs. Also creates a best-effort
 * tenant with a floor of 6.
 */
static struct world *new_world(char letter, unsigned int seed, unsigned int tpcs)
{
	struct world *w = calloc(1, sizeof(*w));
	struct gpupart_topology *topo;
	char path[64];

	snprintf(path, sizeof(path), "tests/data/gh100-h200-%c/capture.txt", letter);
	if (!w || gpupart_topology_open(NULL, path, NULL, &topo)) {
		printf("Bail out! %s\n", path);
		exit(1);
	}
	qos_board_of(topo, &w->board);
	gpupart_topology_close(topo);
	w->nr = 2;
	w->seed = seed;
	w->noise = 10;
	strcpy(w->tenants[0].name, "serve");
	strcpy(w->tenants[1].name, "train");
	w->tenants[0].goal = QOS_RATE;
	w->tenants[0].rate = 1000000ull * tpcs;
	w->tenants[1].floor = 6;
	return w;
}

static void end(struct world *w)
{
	qos_policy_free(w->policy);
	free(w);
}

/* -------------------------------------------------------------------------- claims */

#define BOARDS	7u		/* cases a to g */
#define SEEDS	12u

/* Sums over all cases. */
static struct {
	unsigned int below, lacking, overlaps;
	unsigned int nr_shape[QOS_SHAPES];
} sums;

static void add_up(struct world *w)
{
	sums.below += w->below;
	sums.lacking += w->lacking;
	sums.overlaps += w->overlaps;
	for (unsigned int s = 0; s < QOS_SHAPES; s++)
		sums.nr_shape[s] += w->nr_shape[s];
	end(w);
}

/*
 * Runs a phase of one load. Returns the number of epochs until the last change of a set in the
 * first epochs. Later, the first tenant's set may be lowered one time. If the set is lowered more
 * often, returns 99.
 */
static unsigned int phase(struct world *w)
{
	unsigned int from = w->epoch, settled;

	w->met = w->counted = 0;
	w->last_change = from;
	for (unsigned int e = 0; e < FIRST; e++)
		epoch(w);
	settled = w->last_change - from;
	w->lowered = 0;
	for (unsigned int e = FIRST; e < PHASE; e++)
		epoch(w);
	if (getenv("QOS_SHOW"))
		printf("# settled after %u, lowered %u, missed %u\n", settled, w->lowered,
		       w->counted - w->met);
	return w->lowered > 1 ? 99 : settled;
}

/*
 * The load of a decode loop changes. First the loop is bound by DRAM, then its data is in the L2
 * cache, then it is bound by compute, and then it is bound by DRAM again.
 */
static void own_load(void)
{
	static const enum kind kinds[] = { DRAM, L2, COMPUTE, DRAM };
	unsigned int nr = 0, wrong = 0, unsettled = 0, missed = 0, saved = 0, packed = 0;

	for (unsigned int i = 0; i < BOARDS * SEEDS; i++) {
		unsigned int seed = i / BOARDS, tpcs = 16 + seed * 7 % 17;
		struct world *w = new_world('a' + i % BOARDS, 1 + i, tpcs);

		w->loads[1].kind = L2;
		w->loads[0].clusters = seed % 2;
		begin(w);
		for (unsigned int k = 0; k < 4; k++, nr++) {
			const struct qos_verdict *v = &w->now.tenants[0];

			w->loads[0].kind = kinds[k];
			/* In the first phase, the tenants are new too. */
			unsettled += phase(w) > SETTLED + (k ? 0 : 5);
			missed += w->counted - w->met > 5;
			wrong += v->shape == (kinds[k] == DRAM ? QOS_PACKED :
					      kinds[k] == L2 ? QOS_SPREAD : QOS_SHAPES);
			if (k)
				continue;
			/*
			 * On one uGPU the tenant needs 135 / 114 times as many TPCs as on both
			 * uGPUs.
			 */
			packed += tpcs * 135 / 114;
			saved += v->nr_tpcs;
		}
		add_up(w);
	}
	/* The noise of an unlucky seed can make a slower shape look better. */
	tap_ok(wrong * 50 < nr, "%u phases of loads: the shape is wrong at the end of %u", nr,
	       wrong);
	tap_ok(!unsettled, "a change of load settles within %u epochs: not in %u of %u", SETTLED,
	       unsettled, nr);
	tap_ok(!missed, "the goal is missed in 5 of 40 epochs at most: not in %u of %u", missed,
	       nr);
	tap_ok(saved < packed, "bound by DRAM: %u TPCs in %u runs, %u where they are packed", saved,
	       BOARDS * SEEDS, packed);
}

/*
 * A stream from DRAM needs more bandwidth than one uGPU has. Nine spread TPCs are enough for this
 * bandwidth. If the stream had the full DRAM bandwidth in every tried shape, its set may stay
 * packed.
 */
static void stream(void)
{
	unsigned int wrong = 0, most = 0, unsettled = 0, nr = BOARDS * SEEDS;

	for (unsigned int i = 0; i < BOARDS * SEEDS; i++) {
		struct world *w = new_world('a' + i % BOARDS, 1 + i, 8);

		w->loads[0].kind = STREAM;
		begin(w);
		unsettled += phase(w) > SETTLED + 5;
		phase(w);
		if (w->now.tenants[0].shape != QOS_SPREAD)
			wrong++;
		else if (w->now.tenants[0].nr_tpcs > most)
			most = w->now.tenants[0].nr_tpcs;
		add_up(w);
	}
	tap_ok(wrong * 7 < nr && most <= 12,
	       "a stream: spread in %u of %u runs, with %u TPCs at most",
	       nr - wrong, nr, most);
	tap_ok(!unsettled, "a stream: settles within %u epochs: not in %u", SETTLED + 5, unsettled);
}

/* A best-effort stream gets a few spread TPCs, and another tenant gets the remaining TPCs. */
static void stream_beside(void)
{
	unsigned int packed = 0, most = 0, least = 99;
	uint64_t slowest = UINT64_MAX, speed;

	for (unsigned int i = 0; i < BOARDS * SEEDS; i++) {
		struct world *w = new_world('a' + i % BOARDS, 1 + i, 12);

		w->nr = 3;
		strcpy(w->tenants[2].name, "copy");
		w->tenants[1].floor = w->tenants[2].floor = 3;
		w->loads[2].kind = STREAM;
		begin(w);
		phase(w);
		packed += w->now.tenants[2].shape == QOS_PACKED;
		most = w->now.tenants[2].nr_tpcs > most ? w->now.tenants[2].nr_tpcs : most;
		least = w->now.tenants[1].nr_tpcs < least ? w->now.tenants[1].nr_tpcs : least;
		speed = speed_now(w, 2);
		slowest = speed < slowest ? speed : slowest;
		add_up(w);
	}
	tap_ok(!packed && slowest >= 9000000,
	       "a stream as best effort: packed in %u of %u runs, %u.%u units a second at least",
	       packed, BOARDS * SEEDS, (unsigned int)(slowest / 1000000),
	       (unsigned int)(slowest / 100000 % 10));
	tap_ok(most <= 22 && least >= 30, "it has %u TPCs at most, and the other one %u at least",
	       most, least);
}

/*
 * A launch of this tenant ends with its slowest block. So a TPC next to the neighbour makes the
 * tenant slower.
 */
static void waits(void)
{
	unsigned int nr = 0, longest = 0, kept = 0, missed = 0;

	for (unsigned int i = 0; i < BOARDS * SEEDS; i++) {
		struct world *w = new_world('a' + i % BOARDS, 1 + i, 12 + i % 23);

		w->loads[0].kind = WAITS;
		begin(w);
		for (unsigned int e = 0; e < 100; e++) {
			epoch(w);
			nr += w->slower == 1;
			longest = w->slower > longest ? w->slower : longest;
		}
		kept += w->slower > 0;
		missed += w->now.tenants[0].score < 1000;
		if (getenv("QOS_SHOW"))
			printf("# board %c, %u TPCs: slower for %u, %s\n", 'a' + i % BOARDS,
			       12 + i % 23, w->slower, w->now.tenants[0].why);
		add_up(w);
	}
	tap_ok(nr && !kept, "TPCs beside a neighbour make a tenant slower %u times: kept in %u", nr,
	       kept);
	tap_ok(longest <= 5, "and for %u epochs at most", longest);
	tap_ok(!missed, "its goal is met at the end: not in %u", missed);
}

/*
 * The best-effort tenant has only a few TPCs more than its floor. While TPCs are exchanged, the
 * tenant must keep its floor.
 */
static void tight(void)
{
	for (unsigned int i = 0; i < BOARDS * SEEDS; i++) {
		struct world *w = new_world('a' + i % BOARDS, 1 + i, 10);

		w->loads[0].kind = DRAM;
		w->tenants[1].floor = 50;
		begin(w);
		phase(w);
		add_up(w);
	}
}

int main(void)
{
	own_load();
	stream();
	stream_beside();
	waits();
	tight();
	tap_ok(!sums.below, "sets in force are below the floor %u times", sums.below);
	tap_ok(!sums.overlaps, "sets overlap %u times", sums.overlaps);
	tap_ok(!sums.lacking && sums.nr_shape[QOS_PACKED] > 1000 &&
	       sums.nr_shape[QOS_BALANCED] > 1000 && sums.nr_shape[QOS_SPREAD] > 1000,
	       "a cluster of 8 has no room in %u of %u packed, %u balanced and %u spread sets",
	       sums.lacking, sums.nr_shape[QOS_PACKED], sums.nr_shape[QOS_BALANCED],
	       sums.nr_shape[QOS_SPREAD]);
	return tap_done();
}
