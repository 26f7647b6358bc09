/* SPDX-License-Identifier: MIT */
/*
 * Where things stand in a TMD, by compute class and TMD version: data only.
 * Included by tmd.c and by what prints the table; nobody else decodes a TMD.
 */
#ifndef GPUPART_LIB_TMD_LAYOUTS_H
#define GPUPART_LIB_TMD_LAYOUTS_H

#include <stdint.h>

#define TMD_MAX_WORDS	4

/* The number of its lowest bit from the TMD's start, and its width; 0: not there or unknown. */
struct tmd_field {
	uint16_t lo;
	uint8_t width;
};

/* How a mask bit's number follows from the ids of a TPC. */
enum tmd_bit_form {
	TMD_BIT_IS_TPC, /* the global TPC number */
	TMD_BIT_BY_VGPC, /* vgpc * max_tpcs_per_gpc + tpc_in_vgpc, singletons after all those */
};

/* Values of the type field. */
enum {
	TMD_TYPE_GRID = 2,
	TMD_TYPE_CLUSTER = 3,
	TMD_TYPE_COOPERATIVE = 4,
	TMD_TYPE_COOPERATIVE_CLUSTER = 5,
};

struct tmd_layout {
	const char *name;
	uint16_t classes[8];		/* compute classes that have it, 0 ends */
	uint8_t version;		/* (major << 4) | minor at: */
	uint16_t version_byte;
	uint16_t size;			/* bytes */
	uint8_t nr_words;		/* of 64 mask bits; 0: cannot be masked, see refused */
	uint16_t word_byte[TMD_MAX_WORDS];
	struct tmd_field extension[2];	/* further mask bits after the words */
	struct tmd_field valid;		/* the mask counts only with this bit; width 0: always */
	enum tmd_bit_form form;
	struct tmd_field type;
	struct tmd_field grid[3];	/* blocks (or clusters) of a grid: x, y, z */
	struct tmd_field cluster[3];	/* blocks of a cluster: x, y, z */
	struct tmd_field cooperative[3]; /* blocks (or clusters) that must be resident at once */
	struct tmd_field threads[3];	/* of a block */
	struct tmd_field registers;	/* of a thread */
	struct tmd_field barriers;	/* of a block */
	struct tmd_field shared;	/* of a block, in units of: */
	uint8_t shared_shift;		/* 1 << shared_shift bytes */
	const char *refused;		/* why it cannot be masked, or NULL */
	const char *tested_on;		/* the GPU and driver, or NULL: untried */
	const char *source;
};

/* A chip (BOOT_42 bits 29:20) and the compute class its launches are built for. */
struct tmd_chip {
	uint16_t chip_id;
	uint16_t compute_class;
	char name[8];			/* in place: pointers would cost each program relocations */
};

extern const struct tmd_layout tmd_layouts[];
extern const unsigned int tmd_nr_layouts;
extern const struct tmd_chip tmd_chips[];
extern const unsigned int tmd_nr_chips;

#endif
