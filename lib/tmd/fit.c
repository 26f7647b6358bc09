// SPDX-License-Identifier: MIT
/*
 * Widens a set if a launch in this set would never end. See fit.h. All blocks of a cluster run in
 * one virtual GPC. All blocks of a cooperative launch run at the same time. If the set has no
 * room for these blocks, the launch never ends.
 */
#include "lib/tmd/field.h"
#include "lib/tmd/fit.h"

static unsigned int sms_of(const struct tmd_map *map, const struct tmd_allow *a)
{
	return allow_count(a) * map->sms_per_tpc;
}

/*
 * Returns how many clusters of @size blocks fit into @a at the same time. Each block needs its
 * own SM. All SMs of a cluster must be in the same virtual GPC.
 */
static unsigned int clusters_held(const struct tmd_map *map, const struct tmd_allow *a,
				  unsigned int size)
{
	unsigned int nr = 0;

	for (unsigned int v = 0; v < map->nr_vgpcs; v++) {
		struct tmd_allow in = allow_and(a, &map->vgpc[v]);

		nr += sms_of(map, &in) / size;
	}
	return nr;
}

/*
 * Adds TPCs of @pool to @want until one more cluster fits into @want. Adds as few TPCs as
 * possible. If no virtual GPC has enough TPCs, returns false.
 */
static bool make_room_for_cluster(const struct tmd_map *map, struct tmd_allow *want,
				  const struct tmd_allow *pool, unsigned int size)
{
	unsigned int best_v = 0, best_missing = ~0u;

	for (unsigned int v = 0; v < map->nr_vgpcs; v++) {
		struct tmd_allow in = allow_and(want, &map->vgpc[v]);
		struct tmd_allow more = allow_and(pool, &map->vgpc[v]);
		unsigned int have = sms_of(map, &in);
		unsigned int sms = (have / size + 1) * size - have;
		unsigned int missing = (sms + map->sms_per_tpc - 1) / map->sms_per_tpc;

		more = allow_andnot(&more, &in);
		if (missing <= allow_count(&more) && missing < best_missing) {
			best_missing = missing;
			best_v = v;
		}
	}
	if (best_missing == ~0u)
		return false;

	struct tmd_allow more = allow_and(pool, &map->vgpc[best_v]);

	allow_add_lowest(want, &more, best_missing);
	return true;
}

/*
 * Widens @want until @nr clusters fit. First it adds TPCs of the limit. If these are not enough,
 * it adds TPCs outside the limit. Argument @free has the bits that the driver did not disable. If
 * all these TPCs together are not enough, returns false.
 */
static bool fit_clusters(const struct tmd_map *map, struct tmd_allow *want,
			 const struct tmd_allow *limit, const struct tmd_allow *free,
			 unsigned int size, unsigned int nr)
{
	struct tmd_allow pool = limit ? allow_and(limit, free) : *free;

	/* Each iteration makes room for one cluster. So each loop has at most @nr iterations. */
	while (clusters_held(map, want, size) < nr)
		if (!make_room_for_cluster(map, want, &pool, size))
			break;
	while (clusters_held(map, want, size) < nr)
		if (!make_room_for_cluster(map, want, free, size))
			return false;
	return true;
}

/*
 * Returns how many blocks of this launch one SM can hold at the same time. The code computes this
 * number like CUDA's occupancy. The number is at least 1.
 */
static unsigned int blocks_per_sm(const struct tmd_map *map, const void *tmd)
{
	const struct tmd_layout *layout = map->layout;
	unsigned int warps, per_warp, shared, barriers, nr, n;

	if (!layout->threads[0].width || !map->sm.threads || !map->sm.registers ||
	    !map->sm.shared || !map->sm.blocks)
		return 1;
	warps = (product(tmd, layout->threads) + 31) / 32;
	if (!warps)
		return 1;
	nr = map->sm.threads / 32 / warps;
	if (map->sm.blocks < nr)
		nr = map->sm.blocks;
	/* Each warp gets its registers from one quarter of the SM, in units of 256 registers. */
	per_warp = (field_read(tmd, layout->registers) * 32 + 255) / 256 * 256;
	if (per_warp) {
		n = map->sm.registers / 4 / per_warp * 4 / warps;
		if (n < nr)
			nr = n;
	}
	shared = field_read(tmd, layout->shared) << layout->shared_shift;
	if (shared && map->sm.shared / shared < nr)
		nr = map->sm.shared / shared;
	/*
	 * According to cuda_occupancy.h, an SM has two barriers for each block that it can hold.
	 */
	barriers = field_read(tmd, layout->barriers);
	if (barriers && map->sm.blocks * 2 / barriers < nr)
		nr = map->sm.blocks * 2 / barriers;
	return nr ? nr : 1;
}

static bool fit_cooperative(const struct tmd_map *map, const void *tmd, struct tmd_allow *want,
			    const struct tmd_allow *limit, const struct tmd_allow *free,
			    unsigned int blocks)
{
	unsigned int per_tpc = blocks_per_sm(map, tmd) * map->sms_per_tpc;
	/* Round up after the division. An addition before the division could overflow. */
	unsigned int need = blocks / per_tpc + (blocks % per_tpc != 0), have = allow_count(want);

	if (need > have && limit) {
		struct tmd_allow pool = allow_and(limit, free);

		allow_add_lowest(want, &pool, need - have);
		have = allow_count(want);
	}
	if (need > have)
		allow_add_lowest(want, free, need - have);
	return allow_count(want) >= need;
}

enum tmd_outcome tmd_fit(const struct tmd_map *map, const void *tmd, unsigned int type,
			 struct tmd_allow *want, const struct tmd_allow *limit,
			 const struct tmd_allow *free)
{
	const struct tmd_layout *layout = map->layout;
	struct tmd_allow before = *want;
	unsigned int size, nr;
	bool cluster = type != TMD_TYPE_COOPERATIVE, good;

	if (!layout->cooperative[0].width || (cluster && !layout->cluster[0].width))
		return TMD_UNCONFINABLE;
	nr = type == TMD_TYPE_CLUSTER ? 1 : product(tmd, layout->cooperative);
	if (!nr)
		return TMD_UNCONFINABLE;
	if (cluster) {
		size = product(tmd, layout->cluster);
		if (!size)
			return TMD_UNCONFINABLE;
		good = fit_clusters(map, want, limit, free, size, nr);
	} else {
		good = fit_cooperative(map, tmd, want, limit, free, nr);
	}
	/*
	 * According to this computation, even the whole GPU has no room for the launch. So do not
	 * widen the set. The driver decides.
	 */
	if (!good)
		*want = *free;
	if (!memcmp(want, &before, sizeof(before)))
		return TMD_CONFINED;
	return cluster ? TMD_WIDENED_CLUSTER : TMD_WIDENED_COOPERATIVE;
}
