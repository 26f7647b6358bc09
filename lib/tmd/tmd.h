/* SPDX-License-Identifier: MIT */
/*
 * Writes sets into TMDs. Only the functions of this header and of release.h write to a TMD. Only
 * tmd.c converts sets of allowed TPCs to disable bits. The functions also prevent launches from
 * hanging the GPU.
 */
#ifndef GPUPART_LIB_TMD_TMD_H
#define GPUPART_LIB_TMD_TMD_H

#include "lib/tmd/release.h"
#include "lib/topo/topology.h"

#define TMD_MIN_SIZE	256	/* in bytes; no TMD is smaller */
#define TMD_MAX_SIZE	384

struct tmd_layout;
struct tmd_parts;

/*
 * The mask bits of allowed TPCs, in the numbering of the hardware. Only tmd.c creates this
 * struct.
 */
struct tmd_allow {
	uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
};

/*
 * The resources of an SM, for cooperative grids. If a member is 0, it is unknown, and the
 * library assumes that an SM holds one block.
 */
struct tmd_sm_limits {
	unsigned int threads, registers, shared, blocks;
};

/*
 * The TPCs of a topology as bits of one layout. After a map was built, only its SM limits can
 * change.
 */
struct tmd_map {
	const struct tmd_layout *layout;
	unsigned int nr_tpcs;
	unsigned int nr_words;		/* number of words of a tmd_allow that contain bits
					 * of the layout */
	/*
	 * A launch is usual if it is a plain grid that the driver did not mask. This is true if
	 * ((32-bit word at usual_byte) & usual_mask) == usual_value. @valid_bit is set in the
	 * same word. The other members are copied from the layout.
	 */
	uint16_t usual_byte, version_byte, word_byte[GPUPART_MAX_TMD_BITS / 64];
	uint8_t version;
	uint32_t usual_mask, usual_value, valid_bit;
	unsigned int nr_releases;
	struct tmd_release_place release[TMD_RELEASES * TMD_RELEASE_KINDS];
	unsigned int sms_per_tpc;	/* the smallest number of SMs that any TPC has */
	struct tmd_allow all;
	struct tmd_allow singles;	/* TPCs outside virtual GPCs */
	unsigned int nr_vgpcs;
	struct tmd_allow vgpc[TOPO_MAX_VGPCS];	/* the TPCs of each virtual GPC that has TPCs */
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
	/*
	 * A table of allowed bits. Its indices are a group of 4 TPCs and the 4 bits of a set for
	 * this group. With this table, the conversion of a set needs one look-up for each group.
	 */
	struct tmd_allow nibble[GPUPART_MAX_TPCS / 4][16];
	/*
	 * tmd_map_build() does not set the following members. Any launch may fill in these
	 * members.
	 */
	struct tmd_sm_limits sm;
	struct tmd_parts *parts;	/* parts of green contexts; NULL: keep the TPCs that
					 * the driver chose */
};

/* The result for one launch. */
enum tmd_outcome {
	TMD_CONFINED,
	TMD_WIDENED_EMPTY,
	TMD_WIDENED_DRIVER,
	TMD_WIDENED_CLUSTER,
	TMD_WIDENED_COOPERATIVE,
	TMD_UNCONFINABLE,	/* the TMD was not changed, because its version or its launch type
				 * is not the expected one */
	TMD_NR_OUTCOMES,
};

/* Returns the name of a layout, such as "V04_00". */
GPUPART_PRIVATE
const char *tmd_layout_name(const struct tmd_layout *layout);

/*
 * Returns the compute class of a chip. The class comes from the chip's row or from the driver's
 * list. @listed: the class in the driver's list; 0: no class. Returns 0 if both sources are
 * unknown, or if both are known and differ.
 */
unsigned int tmd_compute_class(uint32_t chip_id, unsigned int listed);

/*
 * Finds the layout of a TMD that the driver built for @compute_class. Exactly one row must
 * match. If no row or several rows match, returns -EOPNOTSUPP with an error sentence that
 * describes the TMD. Otherwise returns 0.
 */
int tmd_identify(struct gpupart *gp, unsigned int compute_class, const void *tmd,
		 const struct tmd_layout **layout);

/*
 * Returns true if the grid of @tmd has @blocks blocks in x, and 1 block in y and in z. The launch
 * must have no clusters.
 */
bool tmd_grid_is(const struct tmd_layout *layout, const void *tmd, unsigned int blocks);

/*
 * Returns whether the layout was not tried and has fields for clusters and cooperative grids.
 */
bool tmd_layout_needs_shapes(const struct tmd_layout *layout);

/*
 * A launch as it was requested. The arrays contain x, y and z. cluster[0] is 0 if the launch
 * has no clusters.
 */
struct tmd_shape {
	unsigned int grid[3], block[3], cluster[3];
	bool cooperative;
	unsigned int registers;		/* number of registers of a thread */
	unsigned int shared;		/* shared memory of a block in bytes */
};

/*
 * Returns the name of the first field of @tmd that does not match @shape, or NULL if all fields
 * match.
 */
const char *tmd_shape_differs(const struct tmd_layout *layout, const void *tmd,
			      const struct tmd_shape *shape);

/*
 * Returns layout number @n of the layouts for @compute_class that have a mask. Returns NULL if
 * there is no such layout.
 */
const struct tmd_layout *tmd_layout_of_class(unsigned int compute_class, unsigned int n);

/* Returns the number of mask bits in a TMD of the layout. */
unsigned int tmd_layout_nr_bits(const struct tmd_layout *layout);

/*
 * Builds a map. @learnt: the bit of each TPC; NULL: the layout's formula computes the bits.
 * Returns -EOPNOTSUPP if an id that the formula needs is unknown, or if a bit is out of range or
 * is used twice. Otherwise returns 0.
 */
GPUPART_PRIVATE
int tmd_map_build(struct gpupart *gp, const struct gpupart_topology *topo,
		  const struct tmd_layout *layout, const uint8_t *learnt, struct tmd_map *map);

/* Returns a hash of the GPU, the driver, the MIG state, the layout and the bit of each TPC. */
uint64_t tmd_map_hash(const struct tmd_map *map, const struct gpupart_gpu_info *info);

/*
 * Converts @set to the bits of the map. @set must be valid: it is not empty, and all its TPCs
 * exist.
 */
void tmd_map_convert(const struct tmd_map *map, const struct gpupart_tpcset *set,
		     struct tmd_allow *allow);

/* Like tmd_map_convert(), but needs only @bit_of_tpc of a map. Skips bits above 255. */
void tmd_bits_convert(const uint16_t *bit_of_tpc, const struct gpupart_tpcset *set,
		      struct tmd_allow *allow);

/*
 * Confines one launch to the TPCs that are in both @limit and @set. If @set is NULL, it confines
 * the launch to @limit. One of @limit and @set may be NULL. In a green context, the context's
 * part of the limit replaces the limit: see part.h. The function cannot fail, allocates no
 * memory, acquires no lock and has no unbounded loops.
 */
enum tmd_outcome tmd_confine(const struct tmd_map *map, void *tmd,
			     const struct tmd_allow *limit, const struct tmd_allow *set);

/*
 * Does the same for a usual launch, with fewer instructions. Returns false and changes nothing if
 * the launch is not usual, or if the limit and the set have no TPC in common. @nr_words must be
 * the number of mask words of the map. Callers pass a constant, so there is no loop.
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
	/*
	 * To be safe, disable every bit that is not wanted, including bits that belong to no TPC.
	 */
	for (unsigned int i = 0; i < nr_words; i++) {
		uint64_t off = ~want.tmd_bits[i];

		memcpy((char *)tmd + map->word_byte[i], &off, sizeof(off));
	}
	*usual |= map->valid_bit;
	return true;
}

/*
 * Call this after tmd_confine(). Returns true if the launch may use a TPC outside @limit.
 * *nr_tpcs is set to the number of TPCs of the launch. *cluster is set to the number of blocks
 * of a cluster. If the launch has no clusters or several clusters must run at the same time,
 * *cluster is set to 0.
 */
bool tmd_is_outside(const struct tmd_map *map, const void *tmd, const struct tmd_allow *limit,
		    unsigned int *cluster, unsigned int *nr_tpcs);

/* Returns the TPCs whose mask bits are in @allow. */
struct gpupart_tpcset tmd_map_tpcs(const struct tmd_map *map, const struct tmd_allow *allow);

/*
 * The whole mask of a TMD whose version is known. It is used to recognise or to restore this
 * mask.
 */
struct tmd_mask {
	struct tmd_allow off;
	bool valid;
};

/* Reads the mask. If the TMD has another version, returns false and sets *mask to zeros. */
bool tmd_mask_read(const struct tmd_map *map, const void *tmd, struct tmd_mask *mask);
/* Restores a mask that was read from a TMD of the same node. */
void tmd_mask_restore(const struct tmd_map *map, void *tmd, const struct tmd_mask *mask);

/*
 * Used to check a map that is not trusted yet. Sets only the bits of @left_out. @left_out has at
 * most half of the TPCs, so at least one TPC remains enabled even if the map gives these bits to
 * the wrong TPCs.
 */
enum tmd_outcome tmd_leave_out(const struct tmd_map *map, void *tmd,
			       const struct gpupart_tpcset *left_out);

#endif
