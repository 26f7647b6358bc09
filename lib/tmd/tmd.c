// SPDX-License-Identifier: MIT
/*
 * Masks TMDs. No code except this file and release.c writes to a TMD. No other file converts
 * allowed TPCs to disable bits.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "lib/core/hash.h"
#include "lib/tmd/field.h"
#include "lib/tmd/fit.h"
#include "lib/tmd/layouts.h"
#include "lib/tmd/part.h"
#include "lib/tmd/tmd.h"

/* --------------------------------------------------------------- field access */

static inline uint32_t *word_at(void *tmd, unsigned int byte)
{
	return (uint32_t *)((char *)tmd + byte);
}

static inline uint64_t mask_word(const struct tmd_layout *layout, const void *tmd, unsigned int i)
{
	uint64_t word;

	/* In some layouts, the words are not aligned to 8 bytes. */
	memcpy(&word, (const char *)tmd + layout->word_byte[i], sizeof(word));
	return word;
}

/* Some layouts have mask bits outside the words. Reads these bits into @bits. */
static void extension_read(const struct tmd_layout *layout, const void *tmd, struct tmd_allow *bits)
{
	unsigned int at = layout->nr_words * 64;

	for (int i = 0; i < 2; at += layout->extension[i++].width)
		bits->tmd_bits[at / 64] |= (uint64_t)field_read(tmd, layout->extension[i])
					   << at % 64;
}

static void extension_write(const struct tmd_layout *layout, void *tmd, const struct tmd_allow *off)
{
	unsigned int at = layout->nr_words * 64;

	for (int i = 0; i < 2; at += layout->extension[i++].width) {
		struct tmd_field f = layout->extension[i];
		uint32_t mask = (1u << f.width) - 1, *word = word_at(tmd, f.lo / 32 * 4);

		*word = (*word & ~(mask << f.lo % 32)) |
			((off->tmd_bits[at / 64] >> at % 64 & mask) << f.lo % 32);
	}
}

static inline bool mask_valid(const struct tmd_layout *layout, const void *tmd)
{
	return !layout->valid.width ||
	       *word_at((void *)tmd, layout->valid.lo / 32 * 4) >> layout->valid.lo % 32 & 1;
}

/* Reads all mask bits, even if the mask is not valid. */
static __attribute__((noinline, cold))
struct tmd_allow mask_bits(const struct tmd_layout *layout, const void *tmd)
{
	struct tmd_allow bits = { { 0 } };

	for (unsigned int i = 0; i < layout->nr_words; i++)
		bits.tmd_bits[i] = mask_word(layout, tmd, i);
	if (layout->extension[0].width)
		extension_read(layout, tmd, &bits);
	return bits;
}

/* Returns the bits of the TPCs that the driver itself disabled. */
static struct tmd_allow driver_disabled(const struct tmd_layout *layout, const void *tmd)
{
	return mask_valid(layout, tmd) ? mask_bits(layout, tmd) : (struct tmd_allow){ { 0 } };
}

/*
 * Writes the whole mask. Argument @off contains the bits to set. This includes the bits that the
 * driver has set.
 */
static inline void disable(const struct tmd_layout *layout, void *tmd, const struct tmd_allow *off)
{
	for (unsigned int i = 0; i < layout->nr_words; i++)
		memcpy((char *)tmd + layout->word_byte[i], &off->tmd_bits[i], sizeof(uint64_t));
	if (__builtin_expect(layout->extension[0].width, 0))
		extension_write(layout, tmd, off);
	if (layout->valid.width)
		*word_at(tmd, layout->valid.lo / 32 * 4) |= 1u << layout->valid.lo % 32;
}

static inline bool version_matches(const struct tmd_layout *layout, const void *tmd)
{
	return ((const uint8_t *)tmd)[layout->version_byte] == layout->version;
}

/* ------------------------------------------------------------------ look-ups */

__attribute__((cold))
unsigned int tmd_compute_class(uint32_t chip_id, unsigned int listed)
{
	for (unsigned int i = 0; i < tmd_nr_chips; i++)
		if (tmd_chips[i].chip_id == chip_id)
			return !listed || listed == tmd_chips[i].compute_class
				? tmd_chips[i].compute_class : 0;
	return listed;
}

static bool layout_has_class(const struct tmd_layout *layout, unsigned int compute_class)
{
	for (unsigned int i = 0; i < sizeof(layout->classes) / sizeof(layout->classes[0]); i++)
		if (layout->classes[i] && layout->classes[i] == compute_class)
			return true;
	return false;
}

const char *tmd_layout_name(const struct tmd_layout *layout)
{
	return layout->name;
}

__attribute__((cold))
const struct tmd_layout *tmd_layout_of_class(unsigned int compute_class, unsigned int n)
{
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		if (!tmd_layouts[i].refused && layout_has_class(&tmd_layouts[i], compute_class) &&
		    !n--)
			return &tmd_layouts[i];
	return NULL;
}

__attribute__((cold))
int tmd_identify(struct gpupart *gp, unsigned int compute_class, const void *tmd,
		 const struct tmd_layout **layout)
{
	const uint8_t *byte = tmd;
	const struct tmd_layout *found = NULL;

	for (unsigned int i = 0; i < tmd_nr_layouts; i++) {
		const struct tmd_layout *row = &tmd_layouts[i];

		if (!layout_has_class(row, compute_class) || !version_matches(row, tmd))
			continue;
		if (found)
			return ctx_fail(gp, -EOPNOTSUPP,
				"this TMD of compute class %#x matches two layouts: %s (byte %u is %#x) and %s (byte %u is %#x)",
				compute_class, found->name, found->version_byte, found->version,
				row->name, row->version_byte, row->version);
		found = row;
	}
	if (!found)
		return ctx_fail(gp, -EOPNOTSUPP,
				"the TMD version of this driver is unknown: compute class %#x, byte 72 is %#x, byte 58 is %#x",
				compute_class, byte[72], byte[58]);
	if (found->refused)
		return ctx_fail(gp, -EOPNOTSUPP, "TMD %s of compute class %#x cannot be masked: %s",
				found->name, compute_class, found->refused);
	*layout = found;
	return 0;
}

__attribute__((cold))
bool tmd_grid_is(const struct tmd_layout *layout, const void *tmd, unsigned int blocks)
{
	return layout->grid[0].width && field_read(tmd, layout->grid[0]) == blocks &&
	       field_read(tmd, layout->grid[1]) == 1 && field_read(tmd, layout->grid[2]) == 1;
}

/* ----------------------------------------------------------------------- map */

static inline void allow_add_bit(struct tmd_allow *a, unsigned int tmd_bit)
{
	a->tmd_bits[tmd_bit / 64] |= 1ull << (tmd_bit % 64);
}

__attribute__((cold))
unsigned int tmd_layout_nr_bits(const struct tmd_layout *layout)
{
	return layout->nr_words * 64 + layout->extension[0].width + layout->extension[1].width;
}

static int tmd_bit_of(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct tmd_layout *layout, unsigned int tpc, unsigned int *tmd_bit)
{
	const struct gpupart_gpu_info *info = &topo->info;
	const struct gpupart_tpc *t = &topo->tpcs[tpc];

	switch (layout->form) {
	case TMD_BIT_IS_TPC:
		*tmd_bit = tpc;
		return 0;
	case TMD_BIT_BY_VGPC:
		if (!info->max_gpcs || !info->max_tpcs_per_gpc)
			return ctx_fail(gp, -EOPNOTSUPP,
					"TMD %s needs the chip's maximum numbers of GPCs and of TPCs per GPC, but %s does not report them: try `gpupart verify --learn`",
					layout->name, info->source);
		if (t->vgpc < 0 || t->tpc_in_vgpc < 0)
			return ctx_fail(gp, -EOPNOTSUPP,
					"TMD %s needs the virtual GPC of TPC %u, but %s does not report it: try `gpupart verify --learn`",
					layout->name, tpc, info->source);
		if ((unsigned int)t->vgpc >= info->max_gpcs) {
			*tmd_bit =
				info->max_gpcs * info->max_tpcs_per_gpc + t->vgpc - info->max_gpcs;
			return 0;
		}
		if ((unsigned int)t->tpc_in_vgpc >= info->max_tpcs_per_gpc)
			return ctx_fail(gp, -EOPNOTSUPP,
					"TPC %u is number %d in virtual GPC %d, which can have at most %u TPCs",
					tpc, t->tpc_in_vgpc, t->vgpc, info->max_tpcs_per_gpc);
		*tmd_bit = t->vgpc * info->max_tpcs_per_gpc + t->tpc_in_vgpc;
		return 0;
	}
	return ctx_fail(gp, -EOPNOTSUPP, "gpupart has no rule for the mask bits of TMD %s",
			layout->name);
}

/*
 * If the type and the valid bit of a layout are in the same word, the layout has a fast path. For
 * other layouts, the function sets values with which the comparison never matches.
 */
static void map_usual(struct tmd_map *map)
{
	struct tmd_field type = map->layout->type, valid = map->layout->valid;

	map->version = map->layout->version;
	map->version_byte = map->layout->version_byte;
	memcpy(map->word_byte, map->layout->word_byte, sizeof(map->word_byte));
	map->usual_value = ~0u;
	if (!type.width || !valid.width || type.lo / 32 != valid.lo / 32 ||
	    map->layout->extension[0].width)
		return;
	map->usual_byte = valid.lo / 32 * 4;
	map->valid_bit = 1u << valid.lo % 32;
	map->usual_mask = ((1u << type.width) - 1) << type.lo % 32 | map->valid_bit;
	map->usual_value = (uint32_t)TMD_TYPE_GRID << type.lo % 32;
}

static void map_vgpcs(struct tmd_map *map, const struct gpupart_topology *topo)
{
	for (unsigned int v = 0; v < topo->end_vgpc; v++) {
		struct gpupart_tpcset tpcs = gpupart_topology_vgpc(topo, v);

		if (gpupart_tpcset_empty(&tpcs))
			continue;
		tmd_map_convert(map, &tpcs, &map->vgpc[map->nr_vgpcs]);
		if (v >= topo->info.max_gpcs)
			for (int i = 0; i < WORDS64; i++)
				map->singles.tmd_bits[i] |=
					map->vgpc[map->nr_vgpcs].tmd_bits[i];
		map->nr_vgpcs++;
	}
}

__attribute__((cold))
int tmd_map_build(struct gpupart *gp, const struct gpupart_topology *topo,
		  const struct tmd_layout *layout, const uint8_t *learnt, struct tmd_map *map)
{
	unsigned int nr_bits = tmd_layout_nr_bits(layout);
	int err = 0;

	/*
	 * Do not clear the SM limits. These limits belong to the GPU and not to the layout. A
	 * launch in another thread may be writing the limits.
	 */
	memset(map, 0, offsetof(struct tmd_map, sm));
	map->layout = layout;
	map->nr_tpcs = topo->nr_tpcs;
	map->nr_words = (nr_bits + 63) / 64;
	map->sms_per_tpc = topo_sms_per_tpc(topo);
	for (unsigned int tpc = 0; tpc < topo->nr_tpcs; tpc++) {
		unsigned int tmd_bit = 0;

		if (learnt)
			tmd_bit = learnt[tpc];
		else
			err = tmd_bit_of(gp, topo, layout, tpc, &tmd_bit);
		if (err)
			return err;
		if (tmd_bit >= nr_bits)
			return ctx_fail(
				gp, -EOPNOTSUPP,
				"TPC %u would use mask bit %u, but a TMD %s has only %u mask bits",
				tpc, tmd_bit, layout->name, nr_bits);
		for (unsigned int other = 0; other < tpc; other++)
			if (map->bit_of_tpc[other] == tmd_bit)
				return ctx_fail(gp, -EOPNOTSUPP,
						"TPCs %u and %u would both use mask bit %u of a TMD %s",
						other, tpc, tmd_bit, layout->name);
		map->bit_of_tpc[tpc] = tmd_bit;
		allow_add_bit(&map->all, tmd_bit);
		for (unsigned int value = 0; value < 16; value++)
			if (value >> (tpc % 4) & 1)
				allow_add_bit(&map->nibble[tpc / 4][value], tmd_bit);
	}
	map_vgpcs(map, topo);
	map_usual(map);
	release_places(map);
	return 0;
}

static __attribute__((noinline, cold)) uint64_t hash_more(uint64_t hash, const void *bytes,
							  size_t len)
{
	return hash_bytes(hash, bytes, len);
}

static __attribute__((noinline, cold)) uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_more(hash, text, strlen(text) + 1);
}

__attribute__((cold))
uint64_t tmd_map_hash(const struct tmd_map *map, const struct gpupart_gpu_info *info)
{
	uint64_t hash = HASH_INIT;

	hash = hash_text(hash, info->uuid);
	hash = hash_text(hash, info->pci);
	hash = hash_text(hash, info->driver);
	hash = hash_more(hash, &info->mig, sizeof(info->mig));
	hash = hash_more(hash, &info->simulated, sizeof(info->simulated));
	hash = hash_text(hash, map->layout->name);
	/*
	 * If a row was never tried, the self-check proves its fields together with its bits.
	 * Older versions of gpupart did not prove fields, so their stored results are invalid.
	 */
	hash = hash_more(hash, "fields", map->layout->tested_on ? 0 : 6);
	/*
	 * The hash includes all contents of the row. So after a correction of the row, the map is
	 * checked again.
	 */
	hash = hash_more(hash, map->layout->classes,
			 offsetof(struct tmd_layout, refused) -
				 offsetof(struct tmd_layout, classes));
	hash = hash_more(hash, &map->nr_tpcs, sizeof(map->nr_tpcs));
	hash = hash_more(hash, map->bit_of_tpc, map->nr_tpcs * sizeof(map->bit_of_tpc[0]));
	return hash;
}

/*
 * Converts @set to mask bits, and looks up the bits for 4 TPCs at a time. The first @words words
 * of the result contain the bits.
 */
static inline __attribute__((always_inline)) struct tmd_allow
convert_words(const struct tmd_map *map, const struct gpupart_tpcset *set, int words)
{
	struct tmd_allow r = { { 0 } };

	for (int w = 0; w < GPUPART_TPCSET_WORDS; w++) {
		const struct tmd_allow (*part)[16] = &map->nibble[w * 16];

		for (uint64_t tpcs = set->allowed[w]; tpcs; tpcs >>= 4, part++)
			for (int i = 0; i < words; i++)
				r.tmd_bits[i] |= (*part)[tpcs & 15].tmd_bits[i];
	}
	return r;
}

void tmd_map_convert(const struct tmd_map *map, const struct gpupart_tpcset *set,
		     struct tmd_allow *allow)
{
	/* For layouts with 128 bits, the constant 2 halves the work. */
	*allow = map->nr_words <= 2 ? convert_words(map, set, 2) : convert_words(map, set, WORDS64);
}

__attribute__((cold))
void tmd_bits_convert(const uint16_t *bit_of_tpc, const struct gpupart_tpcset *set,
		      struct tmd_allow *allow)
{
	memset(allow, 0, sizeof(*allow));
	for (int tpc = gpupart_tpcset_next(set, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(set, tpc + 1))
		if (bit_of_tpc[tpc] < GPUPART_MAX_TMD_BITS)
			allow->tmd_bits[bit_of_tpc[tpc] / 64] |= 1ull << bit_of_tpc[tpc] % 64;
}

/* --------------------------------------------------------------------- launches */

/*
 * Returns true if the driver itself disabled the singletons for a launch with clusters. Then @off
 * contains the bits of the singletons. The driver disables them if a singleton has no room for a
 * cluster.
 */
static bool spares_singles(const struct tmd_map *map, const void *tmd, unsigned int type,
			   const struct tmd_allow *off)
{
	struct tmd_allow left = allow_andnot(&map->singles, off);

	return (type == TMD_TYPE_CLUSTER || type == TMD_TYPE_COOPERATIVE_CLUSTER) &&
	       product(tmd, map->layout->cluster) > map->sms_per_tpc && allow_empty(&left);
}

/*
 * Returns true if the driver wrote the mask @off in this TMD for a green context. Such a mask
 * contains the TPCs outside the context. If @spares is true, it also contains the singletons. If
 * the launch is an ordinary grid, @off may also be an old mask of the library. Such a mask can
 * stay in a node of an unknown graph. The library also sets bits that belong to no TPC. The
 * driver never sets such bits.
 */
static bool is_green(const struct tmd_map *map, const struct tmd_allow *off, bool grid, bool spares)
{
	struct tmd_allow tpcs = allow_and(off, &map->all);
	uint64_t unset = 0, others = 0;

	if (spares)
		tpcs = allow_andnot(&tpcs, &map->singles);
	for (unsigned int i = 0; i < map->layout->nr_words; i++) {
		others |= ~map->all.tmd_bits[i];
		unset |= ~map->all.tmd_bits[i] & ~off->tmd_bits[i];
	}
	return !allow_empty(&tpcs) && (!grid || unset || !others);
}

/*
 * Handles unusual launches. Such a launch has clusters, is cooperative, has the driver's own
 * mask, or has extension bits. Argument @wanted is the intersection of limit and set. The function
 * ignores the bits of both masks beyond the map's words. Argument @outcome is the outcome of the
 * computation of @wanted.
 */
static __attribute__((noinline, cold)) enum tmd_outcome
confine_other(const struct tmd_map *map, void *tmd, const struct tmd_allow *limit_given,
	      const struct tmd_allow *wanted, enum tmd_outcome outcome)
{
	size_t len = map->nr_words * sizeof(uint64_t);
	struct tmd_allow whole = { { 0 } }, want = { { 0 } };
	const struct tmd_allow *limit = limit_given ? &whole : NULL;
	const struct tmd_layout *layout = map->layout;
	struct tmd_allow off = driver_disabled(layout, tmd), free = allow_andnot(&map->all, &off);
	unsigned int type = layout->type.width ? field_read(tmd, layout->type) : TMD_TYPE_GRID;
	bool grid = type == TMD_TYPE_GRID, spares = !grid && spares_singles(map, tmd, type, &off);
	bool green = false;
	struct tmd_allow part, beyond;

	if (type < TMD_TYPE_GRID || type > TMD_TYPE_COOPERATIVE_CLUSTER)
		return TMD_UNCONFINABLE;
	memcpy(&want, wanted, len);
	if (limit) {
		memcpy(&whole, limit_given, len);
		part = whole;
		beyond = allow_andnot(&map->all, limit);
		green = map->parts && !allow_empty(&beyond) && is_green(map, &off, grid, spares);
	}
	if (green) {
		part = tmd_part(map, limit, &free, spares);
		want = allow_and(&want, &part);
		memset(&off, 0, sizeof(off));
		if (spares)
			off = map->singles;
		free = allow_andnot(&map->all, &off);
	}
	want = allow_andnot(&want, &off);
	/* If the driver disabled all wanted TPCs, first try other TPCs of the limit. */
	if (allow_empty(&want) && limit) {
		want = allow_andnot(&part, &off);
		outcome = TMD_WIDENED_DRIVER;
	}
	/* This library may have written an old set to the TMD. Stay inside the limit. */
	if (allow_empty(&want) && limit && map->parts && grid)
		want = whole;
	if (allow_empty(&want) && !green)
		return TMD_WIDENED_DRIVER;
	if (!grid) {
		enum tmd_outcome fitted = tmd_fit(map, tmd, type, &want, limit, &free);

		if (fitted == TMD_UNCONFINABLE)
			return fitted;
		if (fitted != TMD_CONFINED)
			outcome = fitted;
		if (fitted != TMD_CONFINED && green) {
			/* Use the whole limit. If the limit is too small, use more TPCs. */
			want = allow_and(limit, &free);
			tmd_fit(map, tmd, type, &want, limit, &free);
		}
	}
	for (int i = 0; i < WORDS64; i++)
		off.tmd_bits[i] = ~want.tmd_bits[i];
	disable(layout, tmd, &off);
	return outcome;
}

enum tmd_outcome tmd_confine(const struct tmd_map *map, void *tmd,
			     const struct tmd_allow *limit, const struct tmd_allow *set)
{
	enum tmd_outcome outcome = TMD_CONFINED;
	struct tmd_allow want = { { 0 } };
	uint64_t any = 0;

	if (!version_matches(map->layout, tmd))
		return TMD_UNCONFINABLE;
	if (tmd_confine_usual(map, tmd, limit, set, map->nr_words))
		return TMD_CONFINED;
	for (unsigned int i = 0; i < map->nr_words; i++) {
		want.tmd_bits[i] = (limit ? limit->tmd_bits[i] : ~0ull) &
				   (set ? set->tmd_bits[i] : ~0ull);
		any |= want.tmd_bits[i];
	}
	/* The limit and the set have no TPC in common. */
	if (!any) {
		want = *limit;
		outcome = TMD_WIDENED_EMPTY;
	}
	return confine_other(map, tmd, limit, &want, outcome);
}

__attribute__((cold))
bool tmd_is_outside(const struct tmd_map *map, const void *tmd, const struct tmd_allow *limit,
		    unsigned int *cluster, unsigned int *nr_tpcs)
{
	const struct tmd_layout *layout = map->layout;
	struct tmd_allow off, has;
	uint64_t beyond = 0;

	*cluster = *nr_tpcs = 0;
	if (!version_matches(layout, tmd))
		return true;
	off = driver_disabled(layout, tmd);
	has = allow_andnot(&map->all, &off);
	*nr_tpcs = allow_count(&has);
	if (layout->type.width && layout->cluster[0].width &&
	    field_read(tmd, layout->type) == TMD_TYPE_CLUSTER)
		*cluster = product(tmd, layout->cluster);
	for (unsigned int i = 0; i < map->nr_words; i++)
		beyond |= has.tmd_bits[i] & ~limit->tmd_bits[i];
	return beyond;
}

__attribute__((cold))
struct gpupart_tpcset tmd_map_tpcs(const struct tmd_map *map, const struct tmd_allow *allow)
{
	struct gpupart_tpcset set = { 0 };

	for (unsigned int tpc = 0; tpc < map->nr_tpcs; tpc++)
		if (allow->tmd_bits[map->bit_of_tpc[tpc] / 64] >> map->bit_of_tpc[tpc] % 64 & 1)
			gpupart_tpcset_add(&set, tpc);
	return set;
}

__attribute__((cold))
bool tmd_mask_read(const struct tmd_map *map, const void *tmd, struct tmd_mask *mask)
{
	const struct tmd_layout *layout = map->layout;

	memset(mask, 0, sizeof(*mask));
	if (!version_matches(layout, tmd))
		return false;
	mask->valid = mask_valid(layout, tmd);
	mask->off = mask_bits(layout, tmd);
	return true;
}

__attribute__((cold))
void tmd_mask_restore(const struct tmd_map *map, void *tmd, const struct tmd_mask *mask)
{
	const struct tmd_layout *layout = map->layout;

	if (!version_matches(layout, tmd))
		return;
	disable(layout, tmd, &mask->off);
	if (layout->valid.width && !mask->valid)
		*word_at(tmd, layout->valid.lo / 32 * 4) &= ~(1u << layout->valid.lo % 32);
}

__attribute__((cold))
enum tmd_outcome tmd_leave_out(const struct tmd_map *map, void *tmd,
			       const struct gpupart_tpcset *left_out)
{
	struct tmd_allow off, drivers;

	if (!version_matches(map->layout, tmd) ||
	    gpupart_tpcset_count(left_out) * 2 > map->nr_tpcs)
		return TMD_UNCONFINABLE;
	/* If the driver itself has disabled TPCs, a larger mask could disable all TPCs. */
	drivers = driver_disabled(map->layout, tmd);
	if (!allow_empty(&drivers))
		return TMD_UNCONFINABLE;
	tmd_map_convert(map, left_out, &off);
	disable(map->layout, tmd, &off);
	return TMD_CONFINED;
}
