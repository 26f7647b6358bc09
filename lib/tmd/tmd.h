/* SPDX-License-Identifier: MIT */
/*
 * Puts sets into TMDs. This header and release.h declare the only code that writes to a TMD.
 * Sets of allowed TPCs become disable bits only here. Here is also the rule that keeps launches
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

/*
 * The mask bits of allowed TPCs, numbered as the hardware numbers them. Only tmd.c creates this
 * struct.
 */
struct tmd_allow {
	uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
};

/*
 * The resources of an SM, for cooperative grids. 0: unknown; then one block per SM is assumed.
 */
struct tmd_sm_limits {
	unsigned int threads, registers, shared, blocks;
};

/*
 * A topology's TPCs as bits of one layout. Once built, a map does not change, except for its SM
 * limits.
 */
struct tmd_map {
	const struct tmd_layout *layout;
	unsigned int nr_tpcs;
	unsigned int nr_words;		/* number of words of a tmd_allow that contain bits
					 * of the layout */
	/*
	 * A launch is usual if it is a plain grid that the driver did not mask. This is so if
	 * ((32-bit word at usual_byte) & usual_mask) == usual_value. @valid_bit is set in the
	 * same word.
	 */
	uint16_t usual_byte;
	uint32_t usual_mask, usual_value, valid_bit;
	unsigned int nr_releases;
	struct tmd_release_place release[TMD_RELEASES * TMD_RELEASE_KINDS];
	unsigned int sms_per_tpc;	/* the smallest number of SMs that any TPC has */
	struct tmd_allow all;
	struct tmd_allow singles;	/* TPCs outside virtual GPCs */
	unsigned int nr_vgpcs;
	struct tmd_allow vgpc[TOPO_MAX_VGPCS];	/* the TPCs of each virtual GPC; only for
						 * those that have a TPC */
	uint16_t bit_of_tpc[GPUPART_MAX_TPCS];
	/*
	 * For each group of 4 TPCs and each of its 16 values: the allowed bits. So the
	 * conversion of a set needs one look-up for each group.
	 */
	struct tmd_allow nibble[GPUPART_MAX_TPCS / 4][16];
	/* tmd_map_build() does not set the following members. Any launch may fill them. */
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
	TMD_UNCONFINABLE,	/* another TMD version or launch type: the TMD was not
				 * changed */
	TMD_NR_OUTCOMES,
};

/* Returns the name of a layout, such as "V04_00". */
GPUPART_PRIVATE
const char *tmd_layout_name(const struct tmd_layout *layout);

/*
 * Returns the compute class of a chip. It is known from the chip's row or from the driver's
 * list. @listed: the class in that list; 0: none. Returns 0 if neither is known, or if both are
 * known and differ.
 */
unsigned int tmd_compute_class(uint32_t chip_id, unsigned int listed);

/*
 * Finds the layout of a TMD that the driver built for @compute_class. Exactly one row must
 * match. Returns 0, or -EOPNOTSUPP with an error sentence that says what was found.
 */
int tmd_identify(struct gpupart *gp, unsigned int compute_class, const void *tmd,
		 const struct tmd_layout **layout);

/* Returns whether @tmd, of a plain launch, has @blocks blocks in x and 1 block in y and z. */
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
	unsigned int registers;		/* registers of a thread */
	unsigned int shared;		/* shared memory of a block in bytes */
};

/*
 * Returns the name of the first field of @tmd that does not match @shape, or NULL if all match.
 */
const char *tmd_shape_differs(const struct tmd_layout *layout, const void *tmd,
			      const struct tmd_shape *shape);

/* Returns layout number @n among the layouts for @compute_class that can be masked, or NULL. */
const struct tmd_layout *tmd_layout_of_class(unsigned int compute_class, unsigned int n);

/* Returns the number of mask bits in a TMD of the layout. */
unsigned int tmd_layout_nr_bits(const struct tmd_layout *layout);

/*
 * Builds a map. @learnt: the bit of each TPC; NULL: the layout's formula computes the bits.
 * Returns 0 or -EOPNOTSUPP: an id that the formula needs is unknown, or bits are out of range
 * or are used twice.
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

/*
 * Like tmd_map_convert(), but needs only the bit_of_tpc of a map. Bits other than 0 to 255 are
 * left out.
 */
void tmd_bits_convert(const uint16_t *bit_of_tpc, const struct gpupart_tpcset *set,
		      struct tmd_allow *allow);

/*
 * Confines one launch to the TPCs that are in both @limit and @set. If @set is NULL, it
 * confines the launch to @limit. @limit may be NULL too, but not both. In a green context the
 * context's part of the limit replaces the limit: see part.h. It cannot fail, does not
 * allocate, takes no lock and has no unbounded loops.
 */
enum tmd_outcome tmd_confine(const struct tmd_map *map, void *tmd,
			     const struct tmd_allow *limit, const struct tmd_allow *set);

/*
 * Returns whether a launch that tmd_confine() has just masked has a TPC outside @limit.
 * *nr_tpcs is set to the launch's number of TPCs. *cluster is set to the number of blocks of
 * its cluster, or to 0 if it has no clusters or several clusters must run at the same time.
 */
bool tmd_is_outside(const struct tmd_map *map, const void *tmd, const struct tmd_allow *limit,
		    unsigned int *cluster, unsigned int *nr_tpcs);

/*
 * True if there is such a reason and it is not only the version of the run. A strict process
 * then behaves as with --exec, where the run has ended.
 */
struct gpupart_tpcset tmd_map_tpcs(const struct tmd_map *map, const struct tmd_allow *allow);

/* The whole mask of a TMD of a known version. It is used to recognise or restore the mask. */
struct tmd_mask {
	struct tmd_allow off;
	bool valid;
};

/* Reads the mask. Returns false, and zeros in *mask, if the TMD has another version. */
bool tmd_mask_read(const struct tmd_map *map, const void *tmd, struct tmd_mask *mask);
/* Restores a mask. It must have been read from a TMD of the same node. */
void tmd_mask_restore(const struct tmd_map *map, void *tmd, const struct tmd_mask *mask);

/*
 * Used to check a map that is not trusted yet. Sets only the bits of @left_out, which contains
 * at most half of the TPCs. So at least one TPC remains, whatever the bits mean.
 */
enum tmd_outcome tmd_leave_out(const struct tmd_map *map, void *tmd,
			       const struct gpupart_tpcset *left_out);

#endif
