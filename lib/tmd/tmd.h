/* SPDX-License-Identifier: MIT */
/*
 * Sets into TMDs. With release.h the only code that writes a TMD, the only place where a set of
 * allowed TPCs becomes disable bits, and where the rule that keeps a GPU alive is
 * applied. Knows nothing of scopes, streams or processes.
 */
#ifndef GPUPART_LIB_TMD_TMD_H
#define GPUPART_LIB_TMD_TMD_H

#include "lib/tmd/release.h"
#include "lib/topo/topology.h"

#define TMD_MIN_SIZE	256	/* bytes; no layout is smaller */
#define TMD_MAX_SIZE	384

struct tmd_layout;
struct tmd_parts;

/* Mask bits (hardware's numbers) of allowed TPCs. Only tmd.c makes one. */
struct tmd_allow {
	uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
};

/* What an SM can hold, for cooperative grids; 0 where the driver was not asked: then one block. */
struct tmd_sm_limits {
	unsigned int threads, registers, shared, blocks;
};

/* A topology's TPCs as bits of one layout. Immutable once built, but for the SM limits. */
struct tmd_map {
	const struct tmd_layout *layout;
	unsigned int nr_tpcs;
	unsigned int nr_words;		/* of a tmd_allow that any bit of the layout can be in */
	/*
	 * A launch is the usual one, a plain grid that the driver did not mask itself, where
	 * (32-bit word at usual_byte & usual_mask) == usual_value; valid_bit goes into that word.
	 */
	uint16_t usual_byte;
	uint32_t usual_mask, usual_value, valid_bit;
	unsigned int nr_releases;
	struct tmd_release_place release[TMD_RELEASES * TMD_RELEASE_KINDS];
	unsigned int sms_per_tpc;	/* the fewest that any TPC has */
	struct tmd_allow all;
	struct tmd_allow singles;	/* of no whole virtual GPC */
	unsigned int nr_vgpcs;
	struct tmd_allow vgpc[TOPO_MAX_VGPCS];	/* only those with a TPC */
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
	/* Allowed bits of each value of each 4 TPCs: a set converts in one look-up a nibble. */
	struct tmd_allow nibble[GPUPART_MAX_TPCS / 4][16];
	/* From here on not tmd_map_build()'s: any launch may fill it. */
	struct tmd_sm_limits sm;
	struct tmd_parts *parts;	/* of green contexts; NULL: what the driver left stays */
};

/* What became of one launch. */
enum tmd_outcome {
	TMD_CONFINED,
	TMD_WIDENED_EMPTY,
	TMD_WIDENED_DRIVER,
	TMD_WIDENED_CLUSTER,
	TMD_WIDENED_COOPERATIVE,
	TMD_UNCONFINABLE,	/* another TMD version or launch type: not touched */
	TMD_NR_OUTCOMES,
};

/* "V04_00" */
GPUPART_PRIVATE
const char *tmd_layout_name(const struct tmd_layout *layout);

/*
 * The compute class of a chip: by its row, and as the driver has it in its list (@listed, 0 not).
 * 0 where neither knows it, or both do and differ.
 */
unsigned int tmd_compute_class(uint32_t chip_id, unsigned int listed);

/*
 * The layout of a TMD that the driver built for @compute_class: exactly one row must
 * match. -EOPNOTSUPP with a sentence that says what was found.
 */
int tmd_identify(struct gpupart *gp, unsigned int compute_class, const void *tmd,
		 const struct tmd_layout **layout);

/* Whether @tmd, of a plain launch, is of @blocks blocks in x and 1 in y and z. */
bool tmd_grid_is(const struct tmd_layout *layout, const void *tmd, unsigned int blocks);

/* Whether nobody saw it on silicon, and clusters and cooperative grids can be told in it. */
bool tmd_layout_needs_shapes(const struct tmd_layout *layout);

/* A launch as it was asked for: x, y and z; cluster[0] is 0 where it has none. */
struct tmd_shape {
	unsigned int grid[3], block[3], cluster[3];
	bool cooperative;
	unsigned int registers;		/* of a thread */
	unsigned int shared;		/* bytes of a block */
};

/* The first field of a TMD of such a layout that does not show @shape; NULL: all do. */
const char *tmd_shape_differs(const struct tmd_layout *layout, const void *tmd,
			      const struct tmd_shape *shape);

/* The @n'th layout that may be masked and belongs to @compute_class, or NULL. */
const struct tmd_layout *tmd_layout_of_class(unsigned int compute_class, unsigned int n);

/* How many mask bits a TMD of it has. */
unsigned int tmd_layout_nr_bits(const struct tmd_layout *layout);

/*
 * By the layout's formula or, where @learnt is not NULL, with the bit that it has for each TPC.
 * -EOPNOTSUPP where an id that the formula needs is unknown, or bits do not fit or clash.
 */
GPUPART_PRIVATE
int tmd_map_build(struct gpupart *gp, const struct gpupart_topology *topo,
		  const struct tmd_layout *layout, const uint8_t *learnt, struct tmd_map *map);

/* A number for (GPU, driver, MIG state, what the layout says, which bit each TPC has). */
uint64_t tmd_map_hash(const struct tmd_map *map, const struct gpupart_gpu_info *info);

/* @set must be checked: members exist, at least one. */
void tmd_map_convert(const struct tmd_map *map, const struct gpupart_tpcset *set,
		     struct tmd_allow *allow);

/* The same by a map's bit_of_tpc alone; what has no bit of ours, 0 .. 255, is left out. */
void tmd_bits_convert(const uint16_t *bit_of_tpc, const struct gpupart_tpcset *set,
		      struct tmd_allow *allow);

/*
 * Confines one launch: limit AND (set, else all); either may be NULL, both is for
 * the caller to avoid. In a green context its part of the limit is the limit, see part.h.
 * Cannot fail, allocate, lock or loop without bound.
 */
enum tmd_outcome tmd_confine(const struct tmd_map *map, void *tmd,
			     const struct tmd_allow *limit, const struct tmd_allow *set);

/*
 * Whether a launch that tmd_confine() just saw has a TPC that is not in @limit. @nr_tpcs is how
 * many it has, @cluster the blocks of its cluster, 0 where it is none or has several at once.
 */
bool tmd_is_outside(const struct tmd_map *map, const void *tmd, const struct tmd_allow *limit,
		    unsigned int *cluster, unsigned int *nr_tpcs);

/* The TPCs whose bits are in @allow; bits beyond the map's words are not looked at. */
struct gpupart_tpcset tmd_map_tpcs(const struct tmd_map *map, const struct tmd_allow *allow);

/* A TMD's whole mask as it stands, of a known version: to know it again, to put it back. */
struct tmd_mask {
	struct tmd_allow off;
	bool valid;
};

/* False, and zeroes, for another version. */
bool tmd_mask_read(const struct tmd_map *map, const void *tmd, struct tmd_mask *mask);
/* Only with what was read from a TMD of the same node. */
void tmd_mask_restore(const struct tmd_map *map, void *tmd, const struct tmd_mask *mask);

/*
 * For the check of a map that is not yet trusted: sets the bits of @left_out alone,
 * at most half of the TPCs, so that whatever the bits truly mean some TPC stays.
 */
enum tmd_outcome tmd_leave_out(const struct tmd_map *map, void *tmd,
			       const struct gpupart_tpcset *left_out);

#endif
