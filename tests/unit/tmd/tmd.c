// SPDX-License-Identifier: MIT
/*
 * Tests tmd.c on bytes. It tests layouts, polarity, and the rule that prevents a launch from
 * hanging the GPU. The source of this test's decoder is NVIDIA's documents, not tmd.c.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "lib/tmd/layouts.h"
#include "lib/tmd/tmd.h"
#include "tests/tap.h"

static struct gpupart *gp;

/*
 * 8 GPCs with 9 TPC positions each, as on an H200. There are virtual GPCs of 4, 8, .. TPCs, and
 * singletons 11, 14, 17, 19.
 */
static struct gpupart_topology *board(const char *letter)
{
	struct gpupart_topology *topo = NULL;
	char path[128];

	snprintf(path, sizeof(path), "tests/data/gh100-h200-%s/capture.txt", letter);
	if (gpupart_topology_open(gp, path, NULL, &topo))
		printf("# %s\n", gpupart_error(gp));
	return topo;
}

static const struct tmd_layout *layout_named(const char *name)
{
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		if (!strcmp(tmd_layouts[i].name, name))
			return &tmd_layouts[i];
	return NULL;
}

/* ------------------------------------------------- V04_00 by hand, bit by bit */

struct bytes {
	unsigned char b[384] __attribute__((aligned(16)));
};

static unsigned int get(const struct bytes *t, unsigned int hi, unsigned int lo)
{
	unsigned int v = 0;

	for (unsigned int i = hi + 1; i-- > lo; )
		v = v << 1 | (t->b[i / 8] >> i % 8 & 1);
	return v;
}

static void put(struct bytes *t, unsigned int hi, unsigned int lo, unsigned int v)
{
	for (unsigned int i = lo; i <= hi; i++, v >>= 1)
		t->b[i / 8] = (t->b[i / 8] & ~(1 << i % 8)) | (v & 1) << i % 8;
}

static struct bytes fresh(unsigned int type)
{
	struct bytes t;

	memset(&t, 0, sizeof(t));
	t.b[72] = 0x40;
	put(&t, 25, 23, type);
	put(&t, 1055, 1024, 1);	/* grid 1 x 1 x 1 */
	put(&t, 1071, 1056, 1);
	put(&t, 1103, 1088, 1);
	put(&t, 1167, 1152, 128);
	put(&t, 1183, 1168, 1);
	put(&t, 1199, 1184, 1);
	put(&t, 1208, 1200, 32);
	put(&t, 601, 584, 1024);
	return t;
}

static struct bytes cluster(unsigned int x, unsigned int y, unsigned int z)
{
	struct bytes t = fresh(3);

	put(&t, 2149, 2144, x);
	put(&t, 2157, 2152, y);
	put(&t, 2165, 2160, z);
	return t;
}

static struct bytes cooperative(unsigned int x, unsigned int y, unsigned int z)
{
	struct bytes t = fresh(4);

	put(&t, 2223, 2208, x);
	put(&t, 2239, 2224, y);
	put(&t, 2255, 2240, z);
	return t;
}

/* Returns the TPCs that may run the launch. Uses the bits that were measured on the board. */
static struct gpupart_tpcset allowed_by(const struct bytes *t, const struct gpupart_topology *topo)
{
	struct gpupart_tpcset set = { { 0 } };

	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++) {
		unsigned int bit = gpupart_topology_tpc(topo, tpc)->measured_bit;

		if (!get(t, 31, 31) || !get(t, 2432 + bit, 2432 + bit))
			gpupart_tpcset_add(&set, tpc);
	}
	return set;
}

static bool same(const struct gpupart_tpcset *a, const struct gpupart_tpcset *b)
{
	return gpupart_tpcset_equal(a, b);
}

static struct gpupart_tpcset list(const char *text)
{
	struct gpupart_tpcset set;

	if (gpupart_tpcset_parse_list(gp, text, &set)) {
		printf("# %s\n", gpupart_error(gp));
		exit(1);
	}
	return set;
}

/* Everything except the mask and its valid bit must be unchanged. */
static bool rest_untouched(const struct bytes *a, const struct bytes *b)
{
	struct bytes x = *a, y = *b;

	put(&x, 31, 31, 0);
	put(&y, 31, 31, 0);
	memset(x.b + 304, 0, 16);
	memset(y.b + 304, 0, 16);
	return !memcmp(&x, &y, sizeof(x));
}

static void on_board(const char *letter)
{
	struct gpupart_topology *topo = board(letter);
	static struct tmd_map map;
	unsigned int nr, bad = 0;
	struct bytes t, before;

	if (!tap_ok(topo && !tmd_map_build(gp, topo, layout_named("V04_00"), NULL, &map),
		    "board %s: a map for V04_00", letter))
		return;
	nr = gpupart_topology_nr_tpcs(topo);

	for (unsigned int tpc = 0; tpc < nr; tpc++)
		bad += map.bit_of_tpc[tpc] != gpupart_topology_tpc(topo, tpc)->measured_bit;
	tap_ok(!bad, "board %s: the bit of every TPC is the one that was measured (%u differ)",
	       letter, bad);

	srandom(4711);
	bad = 0;
	for (int i = 0; i < 2000; i++) {
		struct gpupart_tpcset set = { { 0 } }, limit = { { 0 } }, want, got;
		struct tmd_allow s, l;
		enum tmd_outcome outcome;
		bool use_limit = random() & 1;

		for (unsigned int tpc = 0; tpc < nr; tpc++) {
			if (random() & 1)
				gpupart_tpcset_add(&set, tpc);
			if (random() % 4)
				gpupart_tpcset_add(&limit, tpc);
		}
		want = use_limit ? gpupart_tpcset_and(&set, &limit) : set;
		if (gpupart_tpcset_empty(&set) || gpupart_tpcset_empty(&want))
			continue;
		tmd_map_convert(&map, &set, &s);
		tmd_map_convert(&map, &limit, &l);
		before = t = fresh(2);
		outcome = tmd_confine(&map, &t, use_limit ? &l : NULL, &s);
		got = allowed_by(&t, topo);
		bad += outcome != TMD_CONFINED || !same(&got, &want) ||
		       !rest_untouched(&t, &before);
	}
	tap_ok(!bad, "board %s: 2000 random sets and limits arrive exactly (%u do not)", letter,
	       bad);
	gpupart_topology_close(topo);
}

struct want {
	enum tmd_outcome outcome;
	const char *allowed;
};

static void expect(const struct gpupart_topology *topo, const struct tmd_map *map, struct bytes t,
		   const char *limit, const char *set, enum tmd_outcome outcome,
		   const char *allowed, const char *what)
{
	struct gpupart_tpcset l, s, want = list(allowed), got;
	struct tmd_allow al, as;
	enum tmd_outcome o;
	char text[GPUPART_TPCSET_STRLEN];

	if (limit) {
		l = list(limit);
		tmd_map_convert(map, &l, &al);
	}
	if (set) {
		s = list(set);
		tmd_map_convert(map, &s, &as);
	}
	/*
	 * Some callers, for example scope_ring_read(), do not set the words in which the layout
	 * has no bit. This test behaves like such a caller.
	 */
	for (unsigned int i = map->nr_words; i < GPUPART_MAX_TMD_BITS / 64; i++)
		al.tmd_bits[i] = as.tmd_bits[i] = 0xa5a5a5a5a5a5a5a5;
	o = tmd_confine(map, &t, limit ? &al : NULL, set ? &as : NULL);
	got = allowed_by(&t, topo);
	gpupart_tpcset_format_list(&got, text, sizeof(text));
	tap_ok(o == outcome && same(&got, &want), "%s: outcome %d, allowed %s", what, o, text);
}

/* Board b: virtual GPC 0 is TPCs 0, 8, 16, 24; singletons are TPCs 62-65. */
static void keeps_alive(void)
{
	struct gpupart_topology *topo = board("b");
	static struct tmd_map map;
	struct bytes t;
	struct gpupart_tpcset set;
	struct tmd_allow allow;
	enum tmd_outcome outcome;

	if (tmd_map_build(gp, topo, layout_named("V04_00"), NULL, &map)) {
		tap_ok(0, "map of board b: %s", gpupart_error(gp));
		return;
	}
	map.sm = (struct tmd_sm_limits){ 2048, 65536, 233472, 32 };

	expect(topo, &map, fresh(2), "0-7", "8-9", TMD_WIDENED_EMPTY, "0-7",
	       "limit and set have nothing in common");
	expect(topo, &map, fresh(2), "0-7", NULL, TMD_CONFINED, "0-7", "a limit alone");
	expect(topo, &map, fresh(2), NULL, "65", TMD_CONFINED, "65", "a set of one singleton");

	/*
	 * The driver's own mask is kept. If both masks together would leave no TPC, only the
	 * driver's mask applies.
	 */
	t = fresh(2);
	put(&t, 31, 31, 1);
	memset(t.b + 304 + 8, 0xff, 8);
	t.b[304 + 8] = 0;	/* bits 64-71 stay 1, so only singletons are disabled */
	expect(topo, &map, t, NULL, "0-7,62-65", TMD_CONFINED, "0-7",
	       "singletons that the driver took stay off");
	set = list("62-65");
	tmd_map_convert(&map, &set, &allow);
	struct bytes kept = t;
	outcome = tmd_confine(&map, &t, NULL, &allow);
	tap_ok(outcome == TMD_WIDENED_DRIVER && !memcmp(&t, &kept, sizeof(t)),
	       "the driver's mask leaves nothing of the set: the TMD stays as it was");
	expect(topo, &map, kept, "0-7,62-65", "62-65", TMD_WIDENED_DRIVER, "0-7",
	       "the driver's mask leaves nothing of the set: the limit holds");
	t = kept;
	allow.tmd_bits[2] = allow.tmd_bits[3] = ~0ull;
	outcome = tmd_confine(&map, &t, &allow, &allow);
	tap_ok(outcome == TMD_WIDENED_DRIVER && !memcmp(&t, &kept, sizeof(t)),
	       "nor of the limit: the TMD stays as it was");
	expect(topo, &map, fresh(2), "62", "62-65", TMD_CONFINED, "62",
	       "limit and set that share one TPC");

	/* If a mask is not valid, its words may be random and must not count. */
	t = fresh(2);
	memset(t.b + 304, 0xff, 16);
	expect(topo, &map, t, NULL, "3", TMD_CONFINED, "3",
	       "mask words without the valid bit count for nothing");

	/* Tests clusters. One virtual GPC of the set must have room for a cluster. */
	expect(topo, &map, cluster(8, 1, 1), NULL, "0,8,16,24", TMD_CONFINED, "0,8,16,24",
	       "8 blocks in a virtual GPC of 4 TPCs");
	expect(topo, &map, cluster(2, 2, 2), NULL, "0,8,16", TMD_WIDENED_CLUSTER, "0,8,16,24",
	       "8 blocks where 3 TPCs of it are allowed");
	expect(topo, &map, cluster(2, 1, 1), NULL, "0,1,2", TMD_CONFINED, "0-2",
	       "2 blocks fit one TPC");
	expect(topo, &map, cluster(4, 1, 1), NULL, "0-7", TMD_WIDENED_CLUSTER, "0-8",
	       "4 blocks where each virtual GPC has one TPC");
	expect(topo, &map, cluster(4, 1, 1), "0-15", "62-65", TMD_WIDENED_EMPTY, "0-15",
	       "nothing in common: the limit alone, and it holds the cluster");
	expect(topo, &map, cluster(4, 1, 1), "1-3,11", "2", TMD_WIDENED_CLUSTER, "2,3,11",
	       "widened with TPCs of the limit where they do");
	expect(topo, &map, cluster(4, 1, 1), "62-65", "62", TMD_WIDENED_CLUSTER, "0,8,62",
	       "past the limit where its TPCs do not");
	expect(topo, &map, cluster(1, 1, 1), NULL, "62", TMD_CONFINED, "62",
	       "clusters of one block");
	expect(topo, &map, cluster(16, 1, 1), NULL, "0-7", TMD_WIDENED_CLUSTER,
	       "0-7,9,17,25,32,39,46,53", "16 blocks: the first virtual GPC of 8 TPCs");
	expect(topo, &map, cluster(20, 1, 1), "0-7", "0-1", TMD_WIDENED_CLUSTER, "0-65",
	       "20 blocks, which no virtual GPC of 18 SMs holds: no mask of ours");
	t = cluster(0, 0, 0);
	tap_ok(tmd_confine(&map, &t, NULL, &allow) == TMD_UNCONFINABLE && t.b[304] == 0 &&
		       !get(&t, 31, 31),
	       "a cluster without blocks is not understood: not touched");

	/*
	 * A cooperative launch with 128 threads, 32 registers and 1 KiB. The limit of threads
	 * allows 16 blocks per SM, or 32 blocks per TPC.
	 */
	expect(topo, &map, cooperative(64, 1, 1), NULL, "0-1", TMD_CONFINED, "0-1",
	       "a cooperative grid that fits by occupancy");
	expect(topo, &map, cooperative(65, 1, 1), NULL, "0-1", TMD_WIDENED_COOPERATIVE, "0-1,8",
	       "one block more: one TPC more");
	expect(topo, &map, cooperative(5, 13, 1), NULL, "0-1", TMD_WIDENED_COOPERATIVE, "0-1,8",
	       "the same in two dimensions");
	expect(topo, &map, cooperative(65, 1, 1), "0-1,9", "0-1", TMD_WIDENED_COOPERATIVE, "0-1,9",
	       "more TPCs of the limit first");
	t = cooperative(65, 1, 1);
	put(&t, 601, 584, 113664);	/* shared memory allows two blocks per SM */
	expect(topo, &map, t, NULL, "0-15", TMD_WIDENED_COOPERATIVE, "0-16",
	       "occupancy by shared memory");
	t = cooperative(65, 1, 1);
	put(&t, 1208, 1200, 255);	/* 256 x 128 registers allow two blocks per SM */
	expect(topo, &map, t, NULL, "0-15", TMD_WIDENED_COOPERATIVE, "0-16",
	       "occupancy by registers");
	t = cooperative(65, 1, 1);
	put(&t, 1215, 1211, 16);	/* 64 barriers per SM allow four blocks */
	expect(topo, &map, t, NULL, "0-7", TMD_WIDENED_COOPERATIVE, "0-8",
	       "occupancy by barriers");
	put(&t, 1215, 1211, 3);		/* 3 barriers per block allow 21 blocks, but the threads
					 * allow fewer */
	expect(topo, &map, t, NULL, "0-2", TMD_CONFINED, "0-2",
	       "barriers for more blocks than fit");
	expect(topo, &map, cooperative(65535, 65535, 65535), NULL, "0", TMD_WIDENED_COOPERATIVE,
	       "0-65", "more blocks than can be counted: all TPCs");
	t = kept = cooperative(8, 0, 1);
	outcome = tmd_confine(&map, &t, NULL, &allow);
	tap_ok(outcome == TMD_UNCONFINABLE && !memcmp(&t, &kept, sizeof(t)),
	       "a cooperative grid without blocks is not understood: not touched");
	t = cooperative(2112, 1, 1);
	expect(topo, &map, t, "0-1", "0", TMD_WIDENED_COOPERATIVE, "0-65",
	       "a grid for the whole GPU gets it");

	/*
	 * A cooperative launch with clusters: all clusters must run at the same time. There are
	 * four clusters of 4 blocks. Virtual GPC 0 has 8 SMs, and virtual GPC 1 has 16 SMs.
	 */
	t = cluster(4, 1, 1);
	put(&t, 25, 23, 5);
	put(&t, 2223, 2208, 4);
	put(&t, 2239, 2224, 1);
	put(&t, 2255, 2240, 1);
	expect(topo, &map, t, NULL, "0,8,16,24,1,9,17,25", TMD_CONFINED, "0,1,8,9,16,17,24,25",
	       "four cooperative clusters that fit");
	put(&t, 2223, 2208, 5);
	expect(topo, &map, t, NULL, "0,8,16,24,1,9,17,25", TMD_WIDENED_CLUSTER,
	       "0,1,8,9,16,17,24,25,32,39", "a fifth needs two TPCs of a virtual GPC");

	/* Tests that unknown TMDs are not changed. */
	for (unsigned int type = 0; type < 8; type++) {
		if (type >= 2 && type <= 5)
			continue;
		t = kept = fresh(type);
		outcome = tmd_confine(&map, &t, NULL, &allow);
		tap_ok(outcome == TMD_UNCONFINABLE && !memcmp(&t, &kept, sizeof(t)),
		       "launch type %u is left alone", type);
	}
	t = fresh(2);
	t.b[72] = 0x41;
	kept = t;
	outcome = tmd_confine(&map, &t, NULL, &allow);
	tap_ok(outcome == TMD_UNCONFINABLE && !memcmp(&t, &kept, sizeof(t)),
	       "another version is left alone");

	/*
	 * Tests launches that leave out TPCs. Only the bit of each left-out TPC may change. At
	 * most half of the TPCs may be left out.
	 */
	t = fresh(2);
	set = list("17");
	outcome = tmd_leave_out(&map, &t, &set);
	set = allowed_by(&t, topo);
	tap_ok(outcome == TMD_CONFINED && gpupart_tpcset_count(&set) == 65 &&
		       !gpupart_tpcset_has(&set, 17) &&
		       __builtin_popcount(get(&t, 2463, 2432)) +
				       __builtin_popcount(get(&t, 2495, 2464)) +
				       __builtin_popcount(get(&t, 2527, 2496)) +
				       __builtin_popcount(get(&t, 2559, 2528)) ==
			       1,
	       "leaving out TPC 17 sets one bit");
	/*
	 * Like in a green context, the mask allows only TPC 0. Without TPC 0, no TPC would
	 * remain.
	 */
	t = fresh(2);
	put(&t, 31, 31, 1);
	memset(t.b + 304, 0xff, 16);
	put(&t, 2432, 2432, 0);
	kept = t;
	set = list("0");
	outcome = tmd_leave_out(&map, &t, &set);
	tap_ok(outcome == TMD_UNCONFINABLE && !memcmp(&t, &kept, sizeof(t)),
	       "nothing is left out of what the driver masked itself");
	t = kept = fresh(2);
	set = list("0-33");
	outcome = tmd_leave_out(&map, &t, &set);
	tap_ok(outcome == TMD_UNCONFINABLE && !memcmp(&t, &kept, sizeof(t)),
	       "more than half is not left out");
	gpupart_topology_close(topo);
}

/*
 * A TMD of V05_00, written by hand with the bit numbers of clcdc0qmd.h. 128 threads, 32 registers,
 * 1 KiB, 65 blocks.
 */
static struct bytes fresh_v05_00(unsigned int type)
{
	struct bytes t;

	memset(&t, 0, sizeof(t));
	t.b[58] = 0x50;
	put(&t, 153, 151, type);
	put(&t, 1103, 1088, 128);
	put(&t, 1119, 1104, 1);
	put(&t, 1127, 1120, 1);
	put(&t, 1136, 1128, 32);
	put(&t, 1162, 1152, 8);
	put(&t, 2053, 2048, 1);
	put(&t, 2061, 2056, 1);
	put(&t, 2069, 2064, 1);
	put(&t, 2127, 2112, 65);
	put(&t, 2143, 2128, 1);
	put(&t, 2159, 2144, 1);
	return t;
}

/*
 * Some fields determine the number of TPCs that a launch needs. Tests each of these fields,
 * because the check of mask bits does not test them.
 */
static void fields_of_v05_00(void)
{
	static const struct {
		const char *what;
		/* @set: number of TPCs in the set, beginning with TPC 0 */
		unsigned int type, set;
		struct { unsigned int hi, lo, value; } fields[3];
		unsigned int want;		/* TPCs that the launch gets */
	} rows[] = {
		{ "a plain grid", 2, 2, { { 0 } }, 2 },
		{ "65 cooperative blocks of 32 a TPC", 4, 2, { { 0 } }, 3 },
		{ "64 do with one less", 4, 2, { { 2127, 2112, 64 } }, 2 },
		{ "in height", 4, 2, { { 2127, 2112, 1 }, { 2143, 2128, 65 } }, 3 },
		{ "in depth", 4, 2, { { 2127, 2112, 1 }, { 2159, 2144, 65 } }, 3 },
		{ "two an SM by width", 4, 16, { { 1103, 1088, 1024 } }, 17 },
		{ "by height", 4, 16, { { 1119, 1104, 8 } }, 17 },
		{ "by depth", 4, 16, { { 1127, 1120, 8 } }, 17 },
		{ "by registers", 4, 16, { { 1136, 1128, 255 } }, 17 },
		{ "by shared memory, in units of 128 bytes", 4, 16, { { 1162, 1152, 888 } }, 17 },
		{ "four by barriers", 4, 8, { { 1141, 1137, 16 } }, 9 },
		{ "a cluster of 8 in width", 3, 1, { { 2053, 2048, 8 } }, 4 },
		{ "in height", 3, 1, { { 2061, 2056, 8 } }, 4 },
		{ "in depth", 3, 1, { { 2069, 2064, 8 } }, 4 },
	};
	struct gpupart_topology *topo = board("b");
	static struct tmd_map map;

	if (!tap_ok(!tmd_map_build(gp, topo, layout_named("V05_00"), NULL, &map),
		    "a map for V05_00"))
		return;
	map.sm = (struct tmd_sm_limits){ 2048, 65536, 233472, 32 };
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes t = fresh_v05_00(rows[i].type);
		struct gpupart_tpcset set = { { (1u << rows[i].set) - 1 } };
		struct tmd_allow allow, on;
		struct tmd_mask mask;
		unsigned int nr;

		for (int f = 0; f < 3 && rows[i].fields[f].hi; f++)
			put(&t, rows[i].fields[f].hi, rows[i].fields[f].lo,
			    rows[i].fields[f].value);
		tmd_map_convert(&map, &set, &allow);
		tmd_confine(&map, &t, NULL, &allow);
		tmd_mask_read(&map, &t, &mask);
		for (int w = 0; w < GPUPART_MAX_TMD_BITS / 64; w++)
			on.tmd_bits[w] = ~mask.off.tmd_bits[w];
		set = tmd_map_tpcs(&map, &on);
		nr = gpupart_tpcset_count(&set);
		tap_ok(mask.valid && nr == rows[i].want, "V05_00, %s: %u TPCs", rows[i].what, nr);
	}
	gpupart_topology_close(topo);
}

/*
 * Tests every layout that can be masked, on a GPU with few TPCs. Each bit must be at the offset
 * that the row gives.
 */
static void all_layouts(void)
{
	struct gpupart_topology *topo = board("b");
	struct topo_sm sms[8];
	struct gpupart_topology *small = NULL;
	struct gpupart_gpu_info info = *gpupart_topology_info(topo);
	static struct tmd_map map;

	for (int i = 0; i < 8; i++)
		sms[i] = (struct topo_sm){
			.gpc = i / 2 % 2,
			.local_tpc = i / 4,
			.local_sm = i % 2,
			.tpc = i / 2,
			.vgpc = i / 2 % 2,
			.tpc_in_vgpc = i / 4,
			.ugpu = 0,
			.cpc = 0,
			.virtual_tpc = i / 4,
			.measured_bit = -1,
		};
	info.max_gpcs = 2;
	info.max_tpcs_per_gpc = 2;
	if (!tap_ok(!topo_build(gp, &info, sms, 8, NULL, 0, &small), "a small topology: %s",
		    gpupart_error(gp)))
		return;
	for (unsigned int i = 0; i < tmd_nr_layouts; i++) {
		const struct tmd_layout *row = &tmd_layouts[i], *found = NULL;
		unsigned char t[512] __attribute__((aligned(16))), was[512];
		struct gpupart_tpcset set = list("1-2");
		struct tmd_allow allow;
		int err;

		memset(t, 0, sizeof(t));
		t[row->version_byte] = row->version;
		err = tmd_identify(gp, row->classes[0], t, &found);
		if (row->refused) {
			tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), row->name),
			       "%s is refused: %s", row->name, gpupart_error(gp));
			continue;
		}
		tap_ok(!err && found == row, "%s of class %#x is identified", row->name,
		       row->classes[0]);
		if (tmd_map_build(gp, small, row, NULL, &map)) {
			tap_ok(0, "%s: %s", row->name, gpupart_error(gp));
			continue;
		}
		if (row->type.width)
			t[(row->type.lo + 1) / 8] |= 1 << (row->type.lo + 1) % 8;
		memcpy(was, t, sizeof(t));
		tmd_map_convert(&map, &set, &allow);
		/*
		 * The GPU has four TPCs. With bits by number, TPCs 1 and 2 have the bits 1 and 2.
		 * With bits by virtual GPC, TPCs 1 and 2 are (1,0) and (0,1), and have the bits 2
		 * and 1.
		 */
		unsigned long long word;

		tap_ok(tmd_confine(&map, t, NULL, &allow) == TMD_CONFINED, "%s confines",
		       row->name);
		memcpy(&word, t + row->word_byte[0], 8);
		tap_ok(~word == 0x6, "%s: the first 64 bits are %#llx", row->name, word);
		for (unsigned int w = 0; w < row->nr_words; w++) {
			memcpy(&word, t + row->word_byte[w], 8);
			if (w && ~word)
				tap_ok(0, "%s: word %u is %#llx", row->name, w, word);
			memset(t + row->word_byte[w], 0, 8);
		}
		for (int e = 0; e < 2; e++)
			for (unsigned int b = row->extension[e].lo; row->extension[e].width &&
			     b < row->extension[e].lo + row->extension[e].width; b++) {
				if (!(t[b / 8] >> b % 8 & 1))
					tap_ok(0, "%s: extension bit %u stays clear", row->name, b);
				t[b / 8] &= ~(1 << b % 8);
			}
		if (row->valid.width) {
			tap_ok(t[row->valid.lo / 8] >> row->valid.lo % 8 & 1,
			       "%s: its valid bit is set", row->name);
			t[row->valid.lo / 8] &= ~(1 << row->valid.lo % 8);
		}
		tap_ok(!memcmp(t, was, sizeof(t)), "%s: nothing else is touched", row->name);
	}
	gpupart_topology_close(small);
	gpupart_topology_close(topo);
}

static void refusals(void)
{
	struct gpupart_topology *topo = board("b");
	static struct tmd_map map;
	unsigned char t[384] = { 0 };
	const struct tmd_layout *layout;

	t[72] = 0x44;
	tap_ok(tmd_identify(gp, 0xcbc0, t, &layout) == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "0x44"),
	       "an unknown version is named: %s", gpupart_error(gp));
	t[72] = 0x41;
	t[58] = 0x50;
	tap_ok(tmd_identify(gp, 0xcdc0, t, &layout) == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "V04_01") && strstr(gpupart_error(gp), "V05_00"),
	       "two that match are refused: %s", gpupart_error(gp));
	tap_ok(tmd_map_build(gp, topo, layout_named("V03_00"), NULL, &map) == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "64"),
	       "66 TPCs in 64 bits are refused: %s", gpupart_error(gp));
	topo->info.max_gpcs = 0;
	tap_ok(tmd_map_build(gp, topo, layout_named("V04_00"), NULL, &map) == -EOPNOTSUPP,
	       "V04_00 without design maxima is refused: %s", gpupart_error(gp));
	topo->info.max_gpcs = 7;
	tap_ok(tmd_map_build(gp, topo, layout_named("V04_00"), NULL, &map) == -EOPNOTSUPP,
	       "wrong maxima make bits clash: %s", gpupart_error(gp));
	tap_ok(tmd_compute_class(0x180, 0xcbc0) == 0xcbc0 &&
		       tmd_compute_class(0x180, 0xcec0) == 0 &&
		       tmd_compute_class(0x1bb, 0xcec0) == 0xcec0,
	       "the driver's list is the first witness, and must not contradict the table");
	tap_ok(tmd_compute_class(0x180, 0) == 0xcbc0 && tmd_compute_class(0x1c0, 0) == 0,
	       "chips: 0x180 is of class 0xcbc0, 0x1c0 is unknown");
	gpupart_topology_close(topo);
}

/*
 * Tests bits that replace the bits of a formula. Each bit must be a bit of the layout, and may
 * occur one time.
 */
static void learnt_bits(void)
{
	const struct tmd_layout *layout = layout_named("V04_00");
	struct gpupart_topology *topo = board("b");
	static struct tmd_map map, formula;
	struct gpupart_tpcset set = { { 0 } };
	uint8_t bits[GPUPART_MAX_TPCS];
	struct tmd_allow allow;

	if (!tap_ok(topo && !tmd_map_build(gp, topo, layout, NULL, &formula), "a formula's map"))
		return;
	for (unsigned int tpc = 0; tpc < topo->nr_tpcs; tpc++)
		bits[tpc] = formula.bit_of_tpc[tpc];
	tap_ok(!tmd_map_build(gp, topo, layout, bits, &map) &&
		       tmd_map_hash(&map, &topo->info) == tmd_map_hash(&formula, &topo->info),
	       "the same bits, learnt: the same map");
	bits[3] = 127;
	gpupart_tpcset_add(&set, 3);
	tap_ok(!tmd_map_build(gp, topo, layout, bits, &map) &&
		       tmd_map_hash(&map, &topo->info) != tmd_map_hash(&formula, &topo->info),
	       "another bit: another map");
	tmd_map_convert(&map, &set, &allow);
	tap_ok(allow.tmd_bits[1] == 1ull << 63 && !allow.tmd_bits[0], "and sets have it");
	bits[3] = bits[5];
	tap_ok(tmd_map_build(gp, topo, layout, bits, &map) == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "TPCs 3 and 5 would both use mask bit"),
	       "two TPCs of one bit: %s", gpupart_error(gp));
	bits[3] = 128;
	tap_ok(tmd_map_build(gp, topo, layout, bits, &map) == -EOPNOTSUPP &&
		       strstr(gpupart_error(gp), "TPC 3 would use mask bit 128"),
	       "a bit that is not there: %s", gpupart_error(gp));
	gpupart_topology_close(topo);
}

/* A row may be corrected under the same name. An earlier proof of its bits is then not valid. */
static void hash_of_row(void)
{
	struct gpupart_topology *topo = board("b");
	static struct tmd_map map;
	struct tmd_layout row;
	uint64_t hash;

	tap_ok(!tmd_map_build(gp, topo, layout_named("V04_00"), NULL, &map), "a map");
	hash = tmd_map_hash(&map, &topo->info);
#define MOVES(change) do { \
		memcpy(&row, layout_named("V04_00"), sizeof(row)); \
		map.layout = &row; \
		tap_ok(tmd_map_hash(&map, &topo->info) == hash, "a copy of the row is the row"); \
		change; \
		tap_ok(tmd_map_hash(&map, &topo->info) != hash, "not with " #change); \
	} while (0)
	MOVES(row.word_byte[1] += 8);
	MOVES(row.nr_words = 1);
	MOVES(row.valid.lo++);
	MOVES(row.extension[1].width++);
	MOVES(row.version_byte = 58);
	MOVES(row.cooperative[0].lo++);
	MOVES(row.shared_shift = 7);
	MOVES(row.classes[1] = 0xcdc0);
	MOVES(row.form = TMD_BIT_IS_TPC);
	MOVES(row.type.width--);
	MOVES(row.grid[2].lo++);
	MOVES(row.cluster[1].lo++);
	MOVES(row.threads[2].width = 8);
	MOVES(row.registers.lo++);
	MOVES(row.barriers.lo++);
	MOVES(row.shared.width++);
	/* For an untried row, the proof covers more than its bits. */
	MOVES(row.tested_on = NULL);
#undef MOVES
	gpupart_topology_close(topo);
}

static struct tmd_map shared_map;
static atomic_bool built;

static void *builds(void *topo)
{
	for (int i = 0; i < 20000; i++)
		if (tmd_map_build(gp, topo, layout_named("V04_00"), NULL, &shared_map))
			break;
	atomic_store(&built, true);
	return NULL;
}

/*
 * The first launch of any thread fills in these values. At the same time, an attach may build the
 * map.
 */
static void limits_stay(void)
{
	struct gpupart_topology *topo = board("b");
	unsigned int nr = 0, lost = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, builds, topo);
	while (!atomic_load(&built)) {
		__atomic_store_n(&shared_map.sm.threads, ++nr, __ATOMIC_RELAXED);
		for (int i = 0; i < 100; i++)
			lost += __atomic_load_n(&shared_map.sm.threads, __ATOMIC_RELAXED) != nr;
	}
	pthread_join(thread, NULL);
	tap_ok(nr && !lost, "SM limits stay while the map is built: %u were lost", lost);
	gpupart_topology_close(topo);
}

/* Leaves bits other than 0 on the stack, for variables that are not initialized. */
static __attribute__((noinline)) void fill_stack(void)
{
	volatile unsigned char bytes[8192];

	memset((void *)bytes, 0xa5, sizeof(bytes));
}

/*
 * In a layout with one mask word, the driver has disabled all TPCs of the set. A mask that
 * disables all TPCs would hang the GPU.
 */
static void one_mask_word(void)
{
	static const char *const rows[] = { "V01_06", "V02_03", "V02_04" };
	struct gpupart_topology *topo = board("b");
	struct gpupart_tpcset set = list("8-15"), limit = list("8-23");
	static struct tmd_map map;

	topo->nr_tpcs = 60;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tmd_layout *layout = layout_named(rows[i]);
		struct tmd_allow s, l;
		struct bytes t = { { 0 } }, kept;
		enum tmd_outcome outcome;

		if (!tap_ok(layout && !tmd_map_build(gp, topo, layout, NULL, &map), "%s: %s",
			    rows[i], gpupart_error(gp)))
			continue;
		tmd_map_convert(&map, &set, &s);
		tmd_map_convert(&map, &limit, &l);
		t.b[layout->version_byte] = layout->version;
		t.b[layout->word_byte[0] + 1] = 0xff;	/* TPCs 8-15 */
		kept = t;
		fill_stack();
		outcome = tmd_confine(&map, &t, NULL, &s);
		tap_ok(outcome == TMD_WIDENED_DRIVER && !memcmp(&t, &kept, sizeof(t)),
		       "%s: the driver's mask leaves nothing of the set: outcome %d",
		       rows[i], outcome);
		fill_stack();
		outcome = tmd_confine(&map, &t, &l, &s);
		tap_ok(outcome == TMD_WIDENED_DRIVER &&
			       t.b[layout->word_byte[0] + 1] == 0xff &&
			       t.b[layout->word_byte[0] + 2] == 0,
		       "%s: the limit has other TPCs: outcome %d", rows[i], outcome);
	}
	gpupart_topology_close(topo);
}

int main(void)
{
	static const char *const boards[] = { "b", "c", "d", "e", "f", "g" };

	if (gpupart_open(&gp))
		return 1;
	for (unsigned int i = 0; i < sizeof(boards) / sizeof(boards[0]); i++)
		on_board(boards[i]);
	keeps_alive();
	fields_of_v05_00();
	all_layouts();
	refusals();
	learnt_bits();
	hash_of_row();
	limits_stay();
	one_mask_word();
	gpupart_close(gp);
	return tap_done();
}
