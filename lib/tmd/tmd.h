/* SPDX-License-Identifier: MIT */
/*
 * Puts sets into TMDs. Only this code and the code of release.h write TMDs. Only this code
 * converts a set of allowed TPCs to disable bits. It also enforces the rule that keeps launches
 * from hanging the GPU.
 */
#ifndef GPUPART_LIB_TMD_TMD_H
#define GPUPART_LIB_TMD_TMD_H

#include "lib/tmd/release.h"
#include "lib/topo/topology.h"

#define TMD_MIN_SIZE	256	/* in bytes; no layout is smaller */
#define TMD_MAX_SIZE	384

struct tmd_layout;
struct tmd_parts;

/* Mask bits (hardware's numbers) of allowed TPCs. Only tmd.c creates one. */
struct tmd_allow {
	uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
};

/*
 * The resources of an SM, for cooperative grids. 0: unknown; the library then assumes that an SM
 * can hold one block.
 */
struct tmd_sm_limits {
	unsigned int threads, registers, shared, blocks;
};

/*
 * A topology's TPCs as bits of one layout. Does not change once built, except for the SM
 * limits.
 */
struct tmd_map {
	const struct tmd_layout *layout;
	unsigned int nr_tpcs;
	unsigned int nr_words;		/* words of a tmd_allow that bits of the layout can be in */
	/*
	 * A launch is usual (a plain grid that the driver did not mask) if (32-bit word at
	 * usual_byte & usual_mask) == usual_value; valid_bit is set in that word.
	 */
	uint16_t usual_byte;
	uint32_t usual_mask, usual_value, valid_bit;
	unsigned int nr_releases;
	struct tmd_release_place release[TMD_RELEASES * TMD_RELEASE_KINDS];
	unsigned int sms_per_tpc;	/* the smallest number that any TPC has */
	struct tmd_allow all;
	struct tmd_allow singles;	/* TPCs outside virtual GPCs */
	unsigned int nr_vgpcs;
	struct tmd_allow vgpc[TOPO_MAX_VGPCS];	/* only those with a TPC */
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
	/*
	 * The allowed bits for each value of each 4 TPCs: a set is converted with one look-up
	 * per nibble.
	 */
	struct tmd_allow nibble[GPUPART_MAX_TPCS / 4][16];
	/* The following members are not set by tmd_map_build(): any launch may fill them. */
	struct tmd_sm_limits sm;
	struct tmd_parts *parts;	/* of green contexts; NULL: keep the driver's TPCs */
};

/* The result for one launch. */
enum tmd_outcome {
	TMD_CONFINED,
	TMD_WIDENED_EMPTY,
	TMD_WIDENED_DRIVER,
	TMD_WIDENED_CLUSTER,
	TMD_WIDENED_COOPERATIVE,
	TMD_UNCONFINABLE,	/* another TMD version or launch type: unchanged */
	TMD_NR_OUTCOMES,
};

/* "V04_00" */
GPUPART_PRIVATE
const char *tmd_layout_name(const struct tmd_layout *layout);

/*
 * The compute class of a chip, from its row and from the driver's list (@listed, 0: not
 * listed). 0 if both are unknown, or known and different.
 */
unsigned int tmd_compute_class(uint32_t chip_id, unsigned int listed);

/*
 * Finds the layout of a TMD that the driver built for @compute_class: exactly one row must
 * match. -EOPNOTSUPP with an error sentence that says what was found.
 */
int tmd_identify(struct gpupart *gp, unsigned int compute_class, const void *tmd,
		 const struct tmd_layout **layout);

/* Whether @tmd, of a plain launch, has @blocks blocks in x and 1 in y and z. */
bool tmd_grid_is(const struct tmd_layout *layout, const void *tmd, unsigned int blocks);

/* Whether the layout is untried and has fields for clusters and cooperative grids. */
bool tmd_layout_needs_shapes(const struct tmd_layout *layout);

/* A launch as it was requested: x, y and z; cluster[0] is 0 if it has no clusters. */
struct tmd_shape {
	unsigned int grid[3], block[3], cluster[3];
	bool cooperative;
	unsigned int registers;		/* of a thread */
	unsigned int shared;		/* bytes of a block */
};

/* The first field of such a TMD that does not match @shape; NULL: all match. */
const char *tmd_shape_differs(const struct tmd_layout *layout, const void *tmd,
			      const struct tmd_shape *shape);

/* Layout number @n of those for @compute_class that can be masked, or NULL. */
const struct tmd_layout *tmd_layout_of_class(unsigned int compute_class, unsigned int n);

/* The number of mask bits in a TMD of the layout. */
unsigned int tmd_layout_nr_bits(const struct tmd_layout *layout);

/*
 * Builds a map from the layout's formula or, if @learnt is not NULL, from the bit in it for
 * each TPC. -EOPNOTSUPP: an id that the formula needs is unknown, or bits are out of range or
 * used twice.
 */
GPUPART_PRIVATE
int tmd_map_build(struct gpupart *gp, const struct gpupart_topology *topo,
		  const struct tmd_layout *layout, const uint8_t *learnt, struct tmd_map *map);

/* A hash of the GPU, the driver, the MIG state, the layout and the bit of each TPC. */
uint64_t tmd_map_hash(const struct tmd_map *map, const struct gpupart_gpu_info *info);

/* @set must be valid: not empty, and all members exist. */
void tmd_map_convert(const struct tmd_map *map, const struct gpupart_tpcset *set,
		     struct tmd_allow *allow);

/* The same with only the bit_of_tpc of a map; values other than 0 to 255 are left out. */
void tmd_bits_convert(const uint16_t *bit_of_tpc, const struct gpupart_tpcset *set,
		      struct tmd_allow *allow);

/*
 * Confines one launch to the intersection of the limit and the set. If one of them is NULL, the
 * other applies; they must not both be NULL. In a green context, the context's part of the limit
 * replaces the limit, see part.h. The function cannot fail, does not allocate, takes no lock and
 * has no unbounded loops.
 */
enum tmd_outcome tmd_confine(const struct tmd_map *map, void *tmd,
			     const struct tmd_allow *limit, const struct tmd_allow *set);

/*
 * Returns true if a launch that tmd_confine() has just masked has a TPC outside @limit. @nr_tpcs
 * is the number of TPCs of the launch. @cluster is the number of blocks of its cluster, or 0 if
 * it has no clusters or if several clusters must run at the same time.
 */
bool tmd_is_outside(const struct tmd_map *map, const void *tmd, const struct tmd_allow *limit,
		    unsigned int *cluster, unsigned int *nr_tpcs);

/* The TPCs whose bits are in @allow; bits beyond the map's words are ignored. */
struct gpupart_tpcset tmd_map_tpcs(const struct tmd_map *map, const struct tmd_allow *allow);

/* The whole mask of a TMD of a known version, to recognise or restore it. */
struct tmd_mask {
	struct tmd_allow off;
	bool valid;
};

/* Returns false, and zeros, for another version. */
bool tmd_mask_read(const struct tmd_map *map, const void *tmd, struct tmd_mask *mask);
/* Only for a mask that was read from a TMD of the same node. */
void tmd_mask_restore(const struct tmd_map *map, void *tmd, const struct tmd_mask *mask);

/*
 * For the check of a map that is not trusted yet: sets only the bits of @left_out, at most half
 * of the TPCs, so that whatever the bits mean some TPC remains.
 */
enum tmd_outcome tmd_leave_out(const struct tmd_map *map, void *tmd,
			       const struct gpupart_tpcset *left_out);

#endif
