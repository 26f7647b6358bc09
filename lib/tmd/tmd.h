/* SPDX-License-Identifier: MIT */
/*
 * Writes sets into TMDs. No functions except those of this header and of release.h write to a
 * TMD. No file except tmd.c converts sets of allowed TPCs to disable bits. The functions also
 * make sure that every launch can end.
 */
#ifndef GPUPART_LIB_TMD_TMD_H
#define GPUPART_LIB_TMD_TMD_H

#include "lib/tmd/release.h"
#include "lib/topo/topology.h"

#define TMD_MIN_SIZE	256	/* minimum size of a TMD in bytes */
#define TMD_MAX_SIZE	384

struct tmd_layout;
struct tmd_parts;

/*
 * The mask bits of allowed TPCs. The hardware defines the numbers of these bits. This struct is
 * created in tmd.c.
 */
struct tmd_allow {
	uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
};

/*
 * The resources of an SM. They are needed for cooperative grids. A member with the value 0 is
 * unknown. Then the library assumes that an SM can hold one block.
 */
struct tmd_sm_limits {
	unsigned int threads, registers, shared, blocks;
};

/*
 * The TPCs of a topology as bits of one layout. After a map is built, its SM limits can change,
 * and everything else stays.
 */
struct tmd_map {
	const struct tmd_layout *layout;
	unsigned int nr_tpcs;
	unsigned int nr_words;		/* number of words in a tmd_allow that have bits of the
					 * layout */
	/*
	 * A launch is usual if it is a plain grid and the driver did not mask it. Then ((32-bit
	 * word at usual_byte) & usual_mask) == usual_value. The same word contains the bit
	 * @valid_bit. The other members are copied from the layout.
	 */
	uint16_t usual_byte, version_byte, word_byte[GPUPART_MAX_TMD_BITS / 64];
	uint8_t version;
	uint32_t usual_mask, usual_value, valid_bit;
	unsigned int nr_releases;
	struct tmd_release_place release[TMD_RELEASES * TMD_RELEASE_KINDS];
	unsigned int sms_per_tpc;	/* number of SMs of the smallest TPC */
	struct tmd_allow all;
	struct tmd_allow singles;	/* TPCs outside all virtual GPCs */
	unsigned int nr_vgpcs;
	struct tmd_allow vgpc[TOPO_MAX_VGPCS];	/* the TPCs of each virtual GPC */
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
	/*
	 * A table of allowed bits. The first index is the number of a group of 4 TPCs. The second
	 * index is the 4 bits that a set has for this group. So the conversion of a set needs one
	 * look-up for each group.
	 */
	struct tmd_allow nibble[GPUPART_MAX_TPCS / 4][16];
	/*
	 * The function tmd_map_build() does not set the following members. A launch may write the
	 * SM limits.
	 */
	struct tmd_sm_limits sm;
	struct tmd_parts *parts;	/* parts of green contexts; NULL: a green context keeps
					 * the driver's TPCs */
};

/* The result for one launch. */
enum tmd_outcome {
	TMD_CONFINED,
	TMD_WIDENED_EMPTY,
	TMD_WIDENED_DRIVER,
	TMD_WIDENED_CLUSTER,
	TMD_WIDENED_COOPERATIVE,
	TMD_UNCONFINABLE,	/* the TMD was not changed, because its version or its launch
				 * type is unexpected */
	TMD_NR_OUTCOMES,
};

/* Returns the name of a layout, such as "V04_00". */
GPUPART_PRIVATE
const char *tmd_layout_name(const struct tmd_layout *layout);

/*
 * Returns the compute class of a chip. The class comes from the chip's row or from the driver's
 * list. Argument @listed is the class in the driver's list, or 0. If both sources have no class,
 * or if their classes differ, the function returns 0.
 */
unsigned int tmd_compute_class(uint32_t chip_id, unsigned int listed);

/*
 * Finds the layout of a TMD that the driver built for @compute_class. Returns 0 if exactly one
 * row matches. Otherwise returns -EOPNOTSUPP, and the error message describes the TMD.
 */
int tmd_identify(struct gpupart *gp, unsigned int compute_class, const void *tmd,
		 const struct tmd_layout **layout);

/*
 * Returns true if the grid of @tmd has @blocks blocks in x, one in y and one in z. The launch
 * must have no clusters.
 */
bool tmd_grid_is(const struct tmd_layout *layout, const void *tmd, unsigned int blocks);

/* Returns true if the layout was never tried but has fields for clusters and cooperative grids. */
bool tmd_layout_needs_shapes(const struct tmd_layout *layout);

/*
 * The launch that a caller requested. The arrays contain x, y and z. If the launch has no
 * clusters, the first entry of @cluster is 0.
 */
struct tmd_shape {
	unsigned int grid[3], block[3], cluster[3];
	bool cooperative;
	unsigned int registers;		/* number of registers of a thread */
	unsigned int shared;		/* shared memory of a block in bytes */
};

/*
 * Compares the fields of @tmd with @shape. Returns the name of the first field that differs, or
 * NULL.
 */
const char *tmd_shape_differs(const struct tmd_layout *layout, const void *tmd,
			      const struct tmd_shape *shape);

/*
 * The layouts for @compute_class that have a mask are numbered. Returns the layout with number
 * @n. If there is no such layout, returns NULL.
 */
const struct tmd_layout *tmd_layout_of_class(unsigned int compute_class, unsigned int n);

/* Returns how many mask bits a TMD of the layout has. */
unsigned int tmd_layout_nr_bits(const struct tmd_layout *layout);

/*
 * Builds a map. Argument @learnt has the bit of each TPC. If @learnt is NULL, the layout's
 * formula computes the bits. If the formula needs an unknown id, the function returns
 * -EOPNOTSUPP. It returns the same error if a bit is out of range or is used twice. Otherwise it
 * returns 0.
 */
GPUPART_PRIVATE
int tmd_map_build(struct gpupart *gp, const struct gpupart_topology *topo,
		  const struct tmd_layout *layout, const uint8_t *learnt, struct tmd_map *map);

/* Returns a hash of the GPU, the driver, the MIG state, the layout and the bit of each TPC. */
uint64_t tmd_map_hash(const struct tmd_map *map, const struct gpupart_gpu_info *info);

/* Converts @set to the bits of the map. The set must not be empty, and all its TPCs must exist. */
void tmd_map_convert(const struct tmd_map *map, const struct gpupart_tpcset *set,
		     struct tmd_allow *allow);

/*
 * Does the same as tmd_map_convert(), but needs no map except its @bit_of_tpc. Skips bits above
 * 255.
 */
void tmd_bits_convert(const uint16_t *bit_of_tpc, const struct gpupart_tpcset *set,
		      struct tmd_allow *allow);

/*
 * Confines one launch to the TPCs that are in both @limit and @set. One of these arguments may be
 * NULL, and the other then determines the TPCs. In a green context, the context's part of the
 * limit replaces the limit. See part.h. The function cannot fail, allocates no memory, acquires
 * no lock and has no unbounded loop.
 */
enum tmd_outcome tmd_confine(const struct tmd_map *map, void *tmd,
			     const struct tmd_allow *limit, const struct tmd_allow *set);

/*
 * Does the same as tmd_confine() for a usual launch, with fewer instructions. If the launch is
 * not usual, the function returns false and changes nothing. It also returns false if the limit
 * and the set have no TPC in common. The map must have @nr_words mask words. Callers pass a
 * constant, so there is no loop.
 */
static inline __attribute__((always_inline))
bool tmd_confine_usual(const struct tmd_map *map, void *tmd, const struct tmd_allow *limit,
		       const struct tmd_allow *set, unsigned int nr_words)
{
	uint32_t *usual = (uint32_t *)((char *)tmd + map->usual_byte);
	struct tmd_allow want;
	uint64_t any = 0;

	for (unsigned int i = 0; i < nr_words; i++) {
		want.tmd_bits[i] = (limit ? limit->tmd_bits[i] : ~0ull) &
				   (set ? set->tmd_bits[i] : ~0ull);
		any |= want.tmd_bits[i];
	}
	if (__builtin_expect(((const uint8_t *)tmd)[map->version_byte] != map->version || !any ||
			     (*usual & map->usual_mask) != map->usual_value, 0))
		return false;
	/* Disable all bits that are not wanted, even bits that belong to no TPC. */
	for (unsigned int i = 0; i < nr_words; i++) {
		uint64_t off = ~want.tmd_bits[i];

		memcpy((char *)tmd + map->word_byte[i], &off, sizeof(off));
	}
	*usual |= map->valid_bit;
	return true;
}

/*
 * Call this function after tmd_confine(). If the launch may use a TPC outside @limit, returns
 * true. Sets *nr_tpcs to the number of TPCs of the launch. Sets *cluster to the number of blocks
 * of a cluster. If the launch has no clusters, or if several clusters must run at the same time,
 * sets *cluster to 0.
 */
bool tmd_is_outside(const struct tmd_map *map, const void *tmd, const struct tmd_allow *limit,
		    unsigned int *cluster, unsigned int *nr_tpcs);

/* Returns the TPCs whose mask bits are in @allow. */
struct gpupart_tpcset tmd_map_tpcs(const struct tmd_map *map, const struct tmd_allow *allow);

/*
 * The whole mask of a TMD whose version is known. The library uses this struct to recognise or
 * restore the mask.
 */
struct tmd_mask {
	struct tmd_allow off;
	bool valid;
};

/* Reads the mask. If the version of the TMD is wrong, returns false and sets *mask to zeros. */
bool tmd_mask_read(const struct tmd_map *map, const void *tmd, struct tmd_mask *mask);
/* Restores a mask. The mask must come from a TMD of the same node. */
void tmd_mask_restore(const struct tmd_map *map, void *tmd, const struct tmd_mask *mask);

/*
 * This function is used to check a map before the map is trusted. It sets the bits of @left_out
 * and no other bits. The set @left_out must have at most half of the TPCs. So at least one TPC
 * stays enabled, even if the map has these bits at the wrong TPCs.
 */
enum tmd_outcome tmd_leave_out(const struct tmd_map *map, void *tmd,
			       const struct gpupart_tpcset *left_out);

#endif
