// SPDX-License-Identifier: MIT
/*
 * Proof on the GPU: a row a claim, each from launches that record where they ran.
 * Must not know a TMD's fields. Speaks to scopes through the public interface, as a
 * program would.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/confine/probe.h"
#include "lib/confine/self_check.h"
#include "lib/confine/stream.h"
#include "lib/driver/callback.h"

struct verify {
	struct gpupart *gp;
	struct gpupart_gpu *gpu;
	struct probe *probe;
	const struct cuda_api *cuda;
	const struct gpupart_topology *topo;
	struct gpupart_tpcset all;	/* what may be used: all, or a limit from outside */
	bool outer;			/* there is such a limit */
	bool disproven; /* the mask bits are not what the table says: mask nothing more */
	void *stream[3];		/* blocking, non-blocking, priority */
	void (*row)(const struct gpupart_verify_row *row, void *user);
	void *user;
	unsigned int nr_failed;
	char detail[512];
};

#define MAX_TRIES 4	/* an SM that another program keeps busy may miss a launch */

__attribute__((format(printf, 2, 3)))
static void detail_set(struct verify *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->detail, sizeof(v->detail), fmt, ap);
	va_end(ap);
}

static void row_end(struct verify *v, const char *name, const char *what, int result)
{
	struct gpupart_verify_row row = {
		.name = name, .what = what, .result = result, .detail = v->detail,
	};

	v->nr_failed += result == GPUPART_VERIFY_FAIL;
	v->row(&row, v->user);
	v->detail[0] = 0;
}

/* --------------------------------------------------------------------- census */

/*
 * One launch: did exactly the SMs of @expected run? 1 yes, 0 no with the detail set,
 * or a negative errno. @next is given to each try (may be NULL).
 */
static int ran_exactly_as(struct verify *v, struct probe_launch *launch,
			  const struct gpupart_tpcset *expected, const struct gpupart_tpcset *next)
{
	unsigned int sm_blocks[TOPO_MAX_SMS], missing = 0;
	char list[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(expected, list, sizeof(list));
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		int err = next ? gpupart_next_set(v->gp, v->gpu, next) : 0;

		if (!err)
			err = probe_census_as(v->gp, v->probe, launch, NULL, sm_blocks);
		if (err)
			return err;
		missing = 0;
		for (unsigned int sm = 0; sm < v->topo->nr_sms; sm++) {
			unsigned int tpc = gpupart_topology_sm_tpc(v->topo, sm);
			bool in = gpupart_tpcset_has(expected, tpc);

			if (sm_blocks[sm] && !in) {
				detail_set(v,
					"TPC %u (SM %u) ran %u blocks of a launch confined to TPCs %s",
					tpc, sm, sm_blocks[sm], list);
				return 0;
			}
			if (!sm_blocks[sm] && in && !missing++)
				detail_set(v,
					"TPC %u (SM %u) ran no block of a launch confined to TPCs %s",
					tpc, sm, list);
		}
		if (!missing) {
			v->detail[0] = 0;
			return 1;
		}
	}
	return 0;
}

static int ran_exactly(struct verify *v, void *stream, const struct gpupart_tpcset *expected,
		       const struct gpupart_tpcset *next)
{
	struct probe_launch launch = { .stream = stream, .blocks = v->topo->nr_sms * 2 };

	return ran_exactly_as(v, &launch, expected, next);
}

static int process_ran(struct verify *v, const struct gpupart_tpcset *set)
{
	int err = gpupart_process_set(v->gp, v->gpu, set);

	if (!err)
		err = ran_exactly(v, v->stream[1], set, NULL);
	return err;
}

/* ----------------------------------------------------------------------- rows */

static int row_topology(struct verify *v)
{
	bool was = driver_own(true);
	int nr_sms = 0,
	    result = v->cuda->device_attr(&nr_sms, CUDA_ATTR_MULTIPROCESSORS,
				      v->gpu->driver.device);

	driver_own(was);
	detail_set(v, "CUDA counts %d SMs, the topology (%s) %u in %u TPCs",
		   nr_sms, v->topo->info.source, v->topo->nr_sms, v->topo->nr_tpcs);
	if (result)
		detail_set(v, "cuDeviceGetAttribute: %s", cuda_words(v->cuda, result));
	return !result && (unsigned int)nr_sms == v->topo->nr_sms;
}

static int row_none(struct verify *v)
{
	return ran_exactly(v, v->stream[1], &v->all, NULL);
}

static int row_left_out(struct verify *v)
{
	struct gpupart_check kept = v->gpu->check;
	int err = check_map(v->gp, v->gpu, v->probe, v->stream[1]);

	if (!err)
		detail_set(v, "%u TPCs proven by %u launches", v->gpu->check.nr_proven,
			   v->gpu->check.nr_launches);
	else
		detail_set(v, "%s", v->gp->error);
	v->gpu->check = kept;
	v->disproven = err == -EPROTO;
	return !err;
}

static int row_alone(struct verify *v)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(&v->all, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&v->all, tpc + 1), nr++) {
		struct gpupart_tpcset one = { { 0 } };
		int ran;

		gpupart_tpcset_add(&one, tpc);
		ran = process_ran(v, &one);
		if (ran <= 0)
			return ran;
	}
	detail_set(v, "%u TPCs, each alone", nr);
	return 1;
}

static int row_gpcs(struct verify *v)
{
	unsigned int nr = 0;

	for (unsigned int gpc = 0; gpc < v->topo->nr_gpcs; gpc++) {
		struct gpupart_tpcset set = gpupart_tpcset_and(&v->topo->gpcs[gpc].tpcs, &v->all);
		int ran;

		if (gpupart_tpcset_empty(&set))
			continue;
		ran = process_ran(v, &set);
		if (ran <= 0)
			return ran;
		nr++;
	}
	detail_set(v, "%u GPCs", nr);
	return 1;
}

static int row_ugpus(struct verify *v)
{
	unsigned int nr = 0;

	for (unsigned int ugpu = 0; ugpu < v->topo->nr_ugpus; ugpu++) {
		struct gpupart_tpcset set = gpupart_topology_ugpu(v->topo, ugpu);
		int ran;

		set = gpupart_tpcset_and(&set, &v->all);
		if (gpupart_tpcset_empty(&set))
			continue;
		ran = process_ran(v, &set);
		if (ran <= 0)
			return ran;
		nr++;
	}
	detail_set(v, "%u uGPUs", nr);
	return 1;
}

static unsigned int sms_of(const struct verify *v, const struct gpupart_tpcset *set)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(set, tpc + 1))
		nr += v->topo->tpcs[tpc].nr_sms;
	return nr;
}

/* A grid that must be resident at once, of as many blocks as the set has SMs: it fits. */
static int row_cooperative(struct verify *v)
{
	struct probe_launch launch = { .stream = v->stream[1], .cooperative = true };

	for (unsigned int gpc = 0; gpc < v->topo->nr_gpcs; gpc++) {
		struct gpupart_tpcset set = gpupart_tpcset_and(&v->topo->gpcs[gpc].tpcs, &v->all);
		int ran;

		if (gpupart_tpcset_empty(&set))
			continue;
		launch.blocks = sms_of(v, &set);
		ran = gpupart_process_set(v->gp, v->gpu, &set);
		if (!ran)
			ran = ran_exactly_as(v, &launch, &set, NULL);
		if (ran <= 0)
			return ran;
	}
	return 1;
}

/*
 * Clusters of two blocks fill every set with an even number of SMs. (From four on the
 * driver takes the singletons away itself.)
 */
static int row_cluster(struct verify *v)
{
	struct probe_launch launch = { .stream = v->stream[1] };

	for (unsigned int vgpc = 0; vgpc < v->topo->end_vgpc; vgpc++) {
		struct gpupart_tpcset set = gpupart_topology_vgpc(v->topo, vgpc);
		int ran;

		set = gpupart_tpcset_and(&set, &v->all);
		if (gpupart_tpcset_empty(&set))
			continue;
		launch.cluster = sms_of(v, &set) % 2 ? 1 : 2;
		launch.blocks = sms_of(v, &set) * 4;
		ran = gpupart_process_set(v->gp, v->gpu, &set);
		if (!ran)
			ran = ran_exactly_as(v, &launch, &set, NULL);
		if (ran <= 0)
			return ran;
	}
	return 1;
}

/* Three disjoint sets out of what may be used: the n'th of each three TPCs. */
static struct gpupart_tpcset third(const struct verify *v, unsigned int n)
{
	struct gpupart_tpcset set = { { 0 } };
	unsigned int at = 0;

	for (int tpc = gpupart_tpcset_next(&v->all, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&v->all, tpc + 1), at++)
		if (at % 3 == n)
			gpupart_tpcset_add(&set, tpc);
	return set;
}

static int row_process(struct verify *v)
{
	struct gpupart_tpcset set = third(v, 0);

	return process_ran(v, &set);
}

static int row_limit(struct verify *v)
{
	struct gpupart_tpcset limit = third(v, 1);
	int err, ran;

	err = gpupart_limit_set(v->gp, v->gpu, &limit);
	if (err)
		return err;
	ran = ran_exactly(v, v->stream[1], &limit, NULL);
	err = gpupart_limit_set(v->gp, v->gpu, NULL);
	return err ? err : ran;
}

/* A set on one stream confines that one, and a launch on another goes where it went. */
static int stream_confines(struct verify *v, void *stream, void *other)
{
	struct gpupart_tpcset set = third(v, 2), process = third(v, 0);
	int err, ran;

	err = gpupart_process_set(v->gp, v->gpu, &process);
	if (!err)
		err = gpupart_stream_set(v->gp, v->gpu, stream, &set);
	if (err)
		return err;
	ran = ran_exactly(v, stream, &set, NULL);
	if (ran == 1)
		ran = ran_exactly(v, other, &process, NULL);
	err = gpupart_stream_set(v->gp, v->gpu, stream, NULL);
	if (ran == 1 && !err)
		ran = ran_exactly(v, stream, &process, NULL);
	return err ? err : ran;
}

static int row_stream_blocking(struct verify *v)
{
	return stream_confines(v, v->stream[0], v->stream[1]);
}

static int row_stream_non_blocking(struct verify *v)
{
	return stream_confines(v, v->stream[1], v->stream[2]);
}

static int row_stream_priority(struct verify *v)
{
	return stream_confines(v, v->stream[2], v->stream[0]);
}

static int row_stream_legacy(struct verify *v)
{
	return stream_confines(v, NULL, v->stream[1]);
}

static int row_stream_per_thread(struct verify *v)
{
	return stream_confines(v, CUDA_STREAM_PER_THREAD, v->stream[1]);
}

static int row_next(struct verify *v)
{
	struct gpupart_tpcset process = third(v, 0), next = third(v, 1);
	int ran = gpupart_process_set(v->gp, v->gpu, &process);

	if (ran)
		return ran;
	ran = ran_exactly(v, v->stream[1], &next, &next);
	/* Once: the launch after it is the process's again. */
	return ran == 1 ? ran_exactly(v, v->stream[1], &process, NULL) : ran;
}

static int row_precedence(struct verify *v)
{
	struct gpupart_tpcset process = third(v, 0), stream = third(v, 1), next = third(v, 2);
	int err, ran;

	err = gpupart_process_set(v->gp, v->gpu, &process);
	if (!err)
		err = gpupart_stream_set(v->gp, v->gpu, v->stream[1], &stream);
	if (err)
		return err;
	ran = ran_exactly(v, v->stream[1], &next, &next);
	if (ran == 1)
		ran = ran_exactly(v, v->stream[1], &stream, NULL);
	if (ran == 1)
		ran = ran_exactly(v, v->stream[0], &process, NULL);
	err = gpupart_stream_set(v->gp, v->gpu, v->stream[1], NULL);
	return err ? err : ran;
}

/* limit AND set; and where that is empty the limit alone, counted. */
static int row_limit_wins(struct verify *v)
{
	struct gpupart_tpcset a = third(v, 0), b = third(v, 1), c = third(v, 2), had, limit;
	bool has = gpupart_limit_get(v->gpu, &had);
	struct gpupart_counters before, after;
	int err, ran;

	limit = gpupart_tpcset_or(&a, &b);
	err = gpupart_limit_set(v->gp, v->gpu, &limit);
	if (err)
		return err;
	/* The set reaches outside the limit: only what is inside counts. */
	b = gpupart_tpcset_or(&b, &c);
	err = gpupart_process_set(v->gp, v->gpu, &b);
	b = third(v, 1);
	ran = err ? err : ran_exactly(v, v->stream[1], &b, NULL);
	gpupart_counters_get(&before);
	if (ran == 1)
		ran = ran_exactly(v, v->stream[1], &limit, &c);
	gpupart_counters_get(&after);
	if (ran == 1 && after.widened_empty == before.widened_empty) {
		detail_set(v, "a set wholly outside the limit was not counted as widened");
		ran = 0;
	}
	err = gpupart_limit_set(v->gp, v->gpu, has ? &had : NULL);
	return err ? err : ran;
}

/* ------------------------------------------------------- clusters and vGPCs */

static unsigned int group_of(unsigned int *group, unsigned int sm)
{
	while (group[sm] != sm)
		sm = group[sm] = group[group[sm]];
	return sm;
}

/* One launch with clusters, nothing masked; 0, or 1 where the GPU does not hold this size. */
static int cluster_launch(struct verify *v, unsigned int size, unsigned int *group)
{
	unsigned int seen[32], nr_clusters = v->topo->nr_sms * 2 / size;
	struct probe_launch launch = {
		.kernel = PROBE_CLUSTER, .stream = v->stream[1], .threads = 32,
		.shared = v->probe->shared, .cluster = size, .blocks = nr_clusters * size,
		.argument = PROBE_SPIN_NS,
	};
	int err;

	if (!probe_clusters_held(v->probe, size))
		return 1;
	err = probe_start(v->gp, v->probe, &launch, NULL);
	if (!err)
		err = probe_finish(v->gp, v->probe, v->stream[1], launch.blocks);
	if (err)
		return err;
	for (unsigned int c = 0; c < nr_clusters; c++) {
		for (unsigned int b = 0; b < size; b++) {
			const struct probe_record *r = &v->probe->host[c * size + b];

			if (r->cluster != c || r->smid >= v->topo->nr_sms)
				return ctx_fail(v->gp, -EIO,
						"block %u says cluster %u and SM %u", c * size + b,
						r->cluster, r->smid);
			seen[b] = r->smid;
			group[group_of(group, seen[b])] = group_of(group, seen[0]);
		}
	}
	return 0;
}

static int row_vgpcs(struct verify *v)
{
	static const unsigned int sizes[] = { 16, 8, 2, 7, 6, 5, 4, 3 };
	unsigned int group[TOPO_MAX_SMS], nr_groups = 0, nr_vgpcs = 0, turn;

	for (unsigned int sm = 0; sm < v->topo->nr_sms; sm++)
		group[sm] = sm;
	for (unsigned int vgpc = 0; vgpc < v->topo->end_vgpc; vgpc++) {
		struct gpupart_tpcset tpcs = gpupart_topology_vgpc(v->topo, vgpc);

		nr_vgpcs += !gpupart_tpcset_empty(&tpcs);
	}
	for (turn = 0; turn < 96 && nr_groups != nr_vgpcs; turn++) {
		int err = cluster_launch(v, sizes[turn % 8], group);

		if (err < 0)
			return err;
		nr_groups = 0;
		for (unsigned int sm = 0; sm < v->topo->nr_sms; sm++)
			nr_groups += group_of(group, sm) == sm;
		/* Fewer groups than virtual GPCs: some cluster spanned two. */
		if (nr_groups < nr_vgpcs)
			break;
	}
	for (unsigned int a = 0; a < v->topo->nr_sms; a++)
		for (unsigned int b = 0; b < a; b++) {
			int va = v->topo->tpcs[gpupart_topology_sm_tpc(v->topo, a)].vgpc;
			int vb = v->topo->tpcs[gpupart_topology_sm_tpc(v->topo, b)].vgpc;

			if (group_of(group, a) == group_of(group, b) && va != vb) {
				detail_set(v,
					"SMs %u and %u (TPCs %d and %d) shared a cluster, but are in virtual GPCs %d and %d",
					b, a, gpupart_topology_sm_tpc(v->topo, b),
					gpupart_topology_sm_tpc(v->topo, a), vb, va);
				return 0;
			}
		}
	if (nr_groups != nr_vgpcs) {
		detail_set(v,
			"clusters joined the SMs into %u groups in %u launches; the topology has %u virtual GPCs",
			nr_groups, turn, nr_vgpcs);
		return 0;
	}
	detail_set(v, "%u virtual GPCs, as %u cluster launches found them", nr_vgpcs, turn);
	return 1;
}

/* ---------------------------------------------------------------- concurrency */

struct span {
	uint64_t start, end;
};

/* Starts counted work on @stream, its records at slot @slot of two. */
static int work_start(struct verify *v, void *stream, unsigned int slot, unsigned int blocks,
		      uint32_t iterations)
{
	struct probe_launch launch = {
		.kernel = PROBE_WORK, .stream = stream, .blocks = blocks, .threads = 256,
		.shared = v->probe->shared, .argument = iterations,
		.records = v->probe->records +
			   slot * (v->probe->max_blocks / 2) * sizeof(struct probe_record),
	};

	return probe_start(v->gp, v->probe, &launch, NULL);
}

static int work_span(struct verify *v, void *stream, unsigned int slot, unsigned int blocks,
		     const struct gpupart_tpcset *set, struct span *span)
{
	const struct probe_record *r = v->probe->host + slot * (v->probe->max_blocks / 2);
	int err = probe_finish(v->gp, v->probe, stream, v->probe->max_blocks);

	if (err)
		return err;
	*span = (struct span){ ~0ull, 0 };
	for (unsigned int b = 0; b < blocks; b++, r++) {
		int tpc = gpupart_topology_sm_tpc(v->topo, r->smid);

		if (tpc < 0 || !gpupart_tpcset_has(set, tpc)) {
			detail_set(v,
				"TPC %d (SM %u) ran a block of a launch that its stream's set keeps off it",
				tpc, r->smid);
			return 1;
		}
		if (r->start < span->start)
			span->start = r->start;
		if (r->end > span->end)
			span->end = r->end;
	}
	return 0;
}

static int row_concurrent(struct verify *v)
{
	enum { ITERATIONS = 400000, WAVES = 1 };
	struct gpupart_tpcset set[2] = { third(v, 0), third(v, 1) };
	unsigned int blocks[2] = { sms_of(v, &set[0]) * WAVES, sms_of(v, &set[1]) * WAVES };
	struct span alone[2], both[2];
	double slower = 0, overlap = 0;
	int err;

	for (int i = 0; i < 2; i++) {
		err = gpupart_stream_set(v->gp, v->gpu, v->stream[1 + i], &set[i]);
		if (err)
			return err;
	}
	/* The first turn warms up; the last of each counts. */
	for (int turn = 0; turn < 2; turn++)
		for (int i = 0; i < 2; i++) {
			err = work_start(v, v->stream[1 + i], i, blocks[i], ITERATIONS);
			if (!err)
				err = work_span(v, v->stream[1 + i], i, blocks[i], &set[i],
						&alone[i]);
			if (err)
				goto take_away;
		}
	for (int tries = 0; tries < 5; tries++) {
		uint64_t start, end, shorter;

		for (int i = 0; i < 2; i++) {
			err = work_start(v, v->stream[1 + i], i, blocks[i], ITERATIONS);
			if (err)
				goto take_away;
		}
		for (int i = 0; i < 2; i++) {
			err = work_span(v, v->stream[1 + i], i, blocks[i], &set[i], &both[i]);
			if (err)
				goto take_away;
		}
		start = both[0].start > both[1].start ? both[0].start : both[1].start;
		end = both[0].end < both[1].end ? both[0].end : both[1].end;
		slower = 0;
		shorter = ~0ull;
		for (int i = 0; i < 2; i++) {
			uint64_t took = both[i].end - both[i].start;
			double ratio = (double)took / (alone[i].end - alone[i].start);

			slower = ratio > slower ? ratio : slower;
			shorter = took < shorter ? took : shorter;
		}
		overlap = end > start ? (double)(end - start) / shorter : 0;
		detail_set(v,
			"counted work on %u and %u SMs overlapped for %.0f%% and took %.3f of its time alone",
			blocks[0], blocks[1], overlap * 100, slower);
		err = !(overlap >= 0.5 && slower <= 1.1);
		if (!err)
			break;
	}
take_away:
	for (int i = 0; i < 2; i++)
		gpupart_stream_set(v->gp, v->gpu, v->stream[1 + i], NULL);
	return err < 0 ? err : !err;
}

/* ------------------------------------------------------------------------ all */

#define NEEDS_STREAMS	1
#define NEEDS_CLUSTERS	2
#define NEEDS_ALL	4	/* makes launches that a limit from outside forbids */
#define NEEDS_THREE	8
#define NEEDS_UGPUS	16
#define NEEDS_COOPERATIVE 32
#define SLOW		64

static const struct {
	const char *name, *what;
	int (*run)(struct verify *v);	/* 1 holds, 0 does not, or -errno */
	unsigned int flags;
} rows[] = {
	{ "topology", "the topology counts the SMs that CUDA counts", row_topology, 0 },
	{ "none", "without a set every SM that may be used runs", row_none, 0 },
	{ "tpc-left-out", "every TPC, left out of a launch, runs none of it", row_left_out,
	  NEEDS_ALL | SLOW },
	{ "tpc-alone", "every TPC, allowed alone, runs all of it", row_alone, SLOW },
	{ "gpc", "every GPC's set runs on that GPC and nowhere else", row_gpcs, 0 },
	{ "ugpu", "every uGPU's set runs on that uGPU and nowhere else", row_ugpus, NEEDS_UGPUS },
	{ "cooperative", "a cooperative grid that fits a GPC runs on that GPC and nowhere else",
	  row_cooperative, NEEDS_COOPERATIVE },
	{ "cluster", "a launch with clusters keeps to the set of a virtual GPC", row_cluster,
	  NEEDS_CLUSTERS },
	{ "process", "a set of the process confines", row_process, NEEDS_THREE },
	{ "limit", "a limit confines", row_limit, NEEDS_THREE },
	{ "stream-blocking", "a set of a blocking stream confines it and no other",
	  row_stream_blocking, NEEDS_THREE | NEEDS_STREAMS },
	{ "stream-non-blocking", "a set of a non-blocking stream confines it and no other",
	  row_stream_non_blocking, NEEDS_THREE | NEEDS_STREAMS },
	{ "stream-priority", "a set of a priority stream confines it and no other",
	  row_stream_priority, NEEDS_THREE | NEEDS_STREAMS },
	{ "stream-legacy", "a set of the legacy default stream confines it and no other",
	  row_stream_legacy, NEEDS_THREE | NEEDS_STREAMS },
	{ "stream-per-thread", "a set of the per-thread default stream confines it and no other",
	  row_stream_per_thread, NEEDS_THREE | NEEDS_STREAMS },
	{ "next", "a next-launch set confines one launch and no second", row_next, NEEDS_THREE },
	{ "precedence", "next launch over stream over process", row_precedence,
	  NEEDS_THREE | NEEDS_STREAMS },
	{ "limit-wins",
	  "no set escapes the limit; one wholly outside is widened to it, and counted",
	  row_limit_wins, NEEDS_THREE },
	{ "vgpc-clusters", "clusters of blocks find the virtual GPCs that the topology has",
	  row_vgpcs, NEEDS_ALL | NEEDS_CLUSTERS | SLOW },
	{ "concurrent", "two streams on disjoint sets run counted work at the same time",
	  row_concurrent, NEEDS_THREE | NEEDS_STREAMS | SLOW },
};

/* Why a row cannot be tried here, or NULL. */
static const char *row_skip(const struct verify *v, unsigned int row, unsigned int flags)
{
	unsigned int needs = rows[row].flags;

	/* A set might leave nothing of the GPU: such a launch would never end. */
	if (v->disproven)
		return "the mask bits did not hold: nothing more is masked";
	if ((needs & SLOW) && (flags & GPUPART_VERIFY_QUICK))
		return "not in a quick run";
	if ((needs & NEEDS_ALL) && v->outer)
		return "a limit from outside is in force";
	if ((needs & NEEDS_STREAMS) && !v->gpu->streams_known)
		return v->gpu->check.streams;
	if ((needs & NEEDS_CLUSTERS) && (!probe_clusters_held(v->probe, 1) || !v->topo->end_vgpc))
		return "this GPU or its driver has no clusters";
	if ((needs & NEEDS_COOPERATIVE) && !v->cuda->launch_ex)
		return "this driver has no cuLaunchKernelEx";
	if ((needs & NEEDS_UGPUS) && !v->topo->nr_ugpus)
		return "the source does not tell uGPUs";
	if ((needs & NEEDS_THREE) && gpupart_tpcset_count(&v->all) < 3)
		return "fewer than three TPCs may be used";
	return NULL;
}

static void rows_run(struct verify *v, unsigned int flags)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *skip = row_skip(v, i, flags);
		int held;

		/* Each begins with nothing set. */
		gpupart_process_set(v->gp, v->gpu, NULL);
		gpupart_next_set(v->gp, v->gpu, NULL);
		if (skip) {
			detail_set(v, "%s", skip);
			row_end(v, rows[i].name, rows[i].what, GPUPART_VERIFY_SKIP);
			continue;
		}
		held = rows[i].run(v);
		if (held < 0)
			detail_set(v, "%s", v->gp->error);
		row_end(v, rows[i].name, rows[i].what,
			held == 1	     ? GPUPART_VERIFY_PASS :
			held == -EOPNOTSUPP ? GPUPART_VERIFY_SKIP :
					      GPUPART_VERIFY_FAIL);
	}
}

/* ------------------------------------------------------- the sets that there were */

/* In the probe's context, which is the caller's where that is on this GPU. */
static void *const default_stream[] = { CUDA_STREAM_LEGACY, CUDA_STREAM_PER_THREAD };

#define NR_DEFAULT_STREAMS (sizeof(default_stream) / sizeof(default_stream[0]))

/*
 * What launches of ours would obey besides what the rows set. None is of a function of the
 * program's, nor on a stream that it created.
 */
struct kept {
	struct limit_sets limit;
	struct gpupart_tpcset process, thread, stream[NR_DEFAULT_STREAMS];
	struct tmd_allow next;
	bool has_process, has_thread, has_stream[NR_DEFAULT_STREAMS], has_next;
};

static void sets_take(struct gpupart_gpu *gpu, const struct cuda_api *cuda, struct kept *kept)
{
	struct scope_id id;

	scope_limit_get(gpu, &kept->limit);
	scope_limit_set(gpu, LIMIT_INNER, NULL);
	kept->has_process = gpupart_process_get(gpu, &kept->process);
	scope_ring_set(gpu, &gpu->process, NULL);
	kept->has_thread = scope_sticky_get(gpu, &kept->thread);
	scope_sticky_set(NULL, gpu, NULL);
	kept->has_next = scope_next_take(gpu, &kept->next);
	for (unsigned int i = 0; i < NR_DEFAULT_STREAMS; i++) {
		kept->has_stream[i] = false;
		if (stream_identify(NULL, cuda, default_stream[i], &id))
			continue;
		scope_get_known(&gpu->streams, &id, &kept->stream[i], &kept->has_stream[i]);
		scope_set_known(gpu, &gpu->streams, &id, NULL);
	}
}

/*
 * Past what checks sets: they were good, and where the mask bits were disproven it refuses all.
 * All that can be put back is, whatever failed before: the sentence is of the first.
 */
static int sets_put_back(struct gpupart *gp, struct gpupart_gpu *gpu, const struct cuda_api *cuda,
			 const struct kept *kept)
{
	bool inside = true;
	struct scope_id id;
	int err = 0;

	for (unsigned int i = 0; i < NR_DEFAULT_STREAMS; i++) {
		struct gpupart *say = err ? NULL : gp;
		int failed;

		if (!kept->has_stream[i])
			continue;
		failed = stream_identify(say, cuda, default_stream[i], &id);
		if (!failed)
			failed = stream_set_first(say, gpu, cuda, &id, &kept->stream[i]);
		err = err ? err : failed;
	}
	scope_ring_set(gpu, &gpu->process, kept->has_process ? &kept->process : NULL);
	if (kept->has_thread) {
		int failed = scope_sticky_set(err ? NULL : gp, gpu, &kept->thread);

		err = err ? err : failed;
	}
	if (!gpupart_tpcset_empty(&kept->limit.inner))
		inside = scope_limit_set(gpu, LIMIT_INNER, &kept->limit.inner);
	if (kept->has_next)
		scope_next_put_back(gpu, &kept->next);
	if (err)
		return ctx_fail_because(gp, err, "a set could not be put back");
	return inside ? 0 : ctx_fail(gp, -EPERM,
			"the limit could not be put back: one from outside was narrowed meanwhile");
}

/*
 * Rows launch on the default streams, and read records back in order with them: that would
 * end a capture of the program's. A capture of a stream that does not wait for them goes on.
 */
static int nothing_captured(struct gpupart *gp, const struct cuda_api *cuda)
{
	int err = 0;

	for (unsigned int i = 0; i < NR_DEFAULT_STREAMS && !err; i++)
		err = stream_not_captured(gp, cuda, default_stream[i]);
	return err ? ctx_fail_because(gp, err, "nothing is verified now") : 0;
}

int gpupart_verify(struct gpupart *gp, struct gpupart_gpu *gpu, unsigned int flags,
		   void (*row)(const struct gpupart_verify_row *row, void *user), void *user)
{
	struct verify v = {
		.gp = gp, .gpu = gpu, .topo = gpu->driver.topo, .cuda = cuda_loaded(),
		.row = row, .user = user,
	};
	struct limit_sets limit;
	struct kept kept;
	int err, result, mode;

	if (!row || (flags & ~GPUPART_VERIFY_QUICK))
		return ctx_fail(gp, -EINVAL,
				row ? "verify has no flags %#x"
				    : "verify needs a function for its rows, flags are %#x",
				flags);
	if (!gpu->learned)
		return ctx_fail(gp, -EINVAL, "the GPU at %s was not attached with launches",
				gpu->driver.topo->info.pci);
	scope_limit_get(gpu, &limit);
	v.outer = !gpupart_tpcset_empty(&limit.outer);
	v.all = v.outer ? limit.outer : gpupart_topology_all(gpu->driver.topo);
	err = probe_get(gp, v.cuda, gpu, gpu->driver.device, &v.probe);
	if (!err)
		err = probe_enter(gp, v.probe, &mode);
	if (err)
		return err;
	err = nothing_captured(gp, v.cuda);
	if (err)
		goto leave;
	result = v.cuda->stream_create(&v.stream[0], 0);
	if (!result)
		result = v.cuda->stream_create(&v.stream[1], CUDA_STREAM_NON_BLOCKING);
	if (!result)
		result = v.cuda->stream_create_priority(&v.stream[2], CUDA_STREAM_NON_BLOCKING, -1);
	if (result) {
		err = ctx_fail(gp, -EIO, "cuStreamCreate: %s", cuda_words(v.cuda, result));
		goto destroy;
	}
	sets_take(gpu, v.cuda, &kept);
	rows_run(&v, flags);
	if (v.disproven) {
		atomic_store_explicit(&gpu->trusted, false, memory_order_release);
		atomic_store_explicit(&gpu->shared->nr_tpcs, 0, memory_order_release);
	}
	err = sets_put_back(gp, gpu, v.cuda, &kept);
destroy:
	for (int i = 0; i < 3; i++)
		if (v.stream[i])
			v.cuda->stream_destroy(v.stream[i]);
leave:
	probe_leave(v.probe, mode);
	return err ? err : (int)v.nr_failed;
}
