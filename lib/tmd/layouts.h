/* SPDX-License-Identifier: MIT */
/*
 * The positions of fields in a TMD. They depend on the compute class and on the TMD version. This
 * header contains nothing but data. Its users are tmd.c and the program that prints the table.
 */
#ifndef GPUPART_LIB_TMD_LAYOUTS_H
#define GPUPART_LIB_TMD_LAYOUTS_H

#include <stdint.h>
#include "lib/tmd/release.h"

#define TMD_MAX_WORDS	4

/*
 * The position of a field. This is the field's lowest bit, counted from the start of the TMD, and
 * the field's width in bits. If the width is 0, the field does not exist, or its position is
 * unknown.
 */
struct tmd_field {
	uint16_t lo;
	uint8_t width;
};

/* The formula that computes a mask bit's number from the ids of a TPC. */
enum tmd_bit_form {
	TMD_BIT_IS_TPC, /* the logical TPC number */
	TMD_BIT_BY_VGPC, /* vgpc * max_tpcs_per_gpc + tpc_in_vgpc; singletons have the next bits */
};

/* Values of the type field of a TMD. */
enum {
	TMD_TYPE_GRID = 2,
	TMD_TYPE_CLUSTER = 3,
	TMD_TYPE_COOPERATIVE = 4,
	TMD_TYPE_COOPERATIVE_CLUSTER = 5,
};

/*
 * Values of the fields of a release slot. See cl*qmd.h. Of all reductions, gpupart uses the
 * addition and no other.
 */
enum {
	TMD_RELEASE_FOUR_WORDS = 0,
	TMD_RELEASE_ONE_WORD = 1,
	TMD_RELEASE_TWO_WORDS = 2,	/* exists if the size field has two bits */
	TMD_RELEASE_RED_ADD = 0,
	TMD_RELEASE_UNSIGNED_32 = 0,
};

/*
 * A release slot contains an address and data. When the grid has ended, the hardware writes this
 * data to memory at this address.
 */
struct tmd_release_fields {
	struct tmd_field enable;
	struct tmd_field size;		/* TMD_RELEASE_FOUR_WORDS or another size */
	struct tmd_field membar;	/* width 0: all slots share one bit, and this bit belongs
					 * to the driver */
	struct tmd_field reduction;	/* 1: an atomic operation instead of a store */
	struct tmd_field operation, format;	/* the operation and the number format of a
						 * reduction */
	struct tmd_field trap;		/* if not 0, the hardware also interrupts the CPU */
	struct tmd_field payload64;	/* width 0: a payload has 32 bits */
	struct tmd_field address, payload;
};

struct tmd_layout {
	char name[8];
	uint16_t classes[8];		/* compute classes that have this layout; the last entry
					 * is 0 */
	uint8_t version;		/* (major << 4) | minor */
	uint16_t version_byte;
	uint16_t size;			/* in bytes */
	uint8_t nr_words;		/* number of 64-bit mask words; 0: the TMD cannot be
					 * masked, see @refused */
	uint16_t word_byte[TMD_MAX_WORDS];
	struct tmd_field extension[2];	/* the mask bits that are not in the words */
	struct tmd_field valid;		/* the mask is used if this bit is set; width 0: the mask
					 * is always used */
	enum tmd_bit_form form;
	struct tmd_field type;
	struct tmd_field grid[3];	/* number of blocks or clusters of the grid in x, y and z */
	struct tmd_field cluster[3];	/* number of blocks of a cluster in x, y and z */
	struct tmd_field cooperative[3]; /* how many blocks or clusters must run at the same time */
	struct tmd_field threads[3];	/* threads of a block */
	struct tmd_field registers;	/* registers of a thread */
	struct tmd_field barriers;	/* barriers of a block */
	struct tmd_field shared;	/* shared memory of a block, in units of 1 <<
					 * shared_shift bytes */
	uint8_t shared_shift;		/* see @shared */
	struct tmd_release_fields release[TMD_RELEASES]; /* a slot does not exist if its address
							  * field has width 0 */
	const char *refused;		/* why such a TMD cannot be masked, or NULL */
	const char *tested_on;		/* GPU and driver on which the layout was tried; NULL:
					 * not tried yet */
	const char *release_tested_on;	/* GPU and driver on which the release slots were tried */
};

/* A chip (bits 29:20 of BOOT_42) and the compute class of its TMDs. */
struct tmd_chip {
	uint16_t chip_id;
	uint16_t compute_class;
};

/*
 * The chip ids come from ctrl2080mc.h and nv_arch.h in NVIDIA's open-gpu-kernel-modules, and from
 * nvkm/engine/device/base.c in nouveau. The compute classes come from classes/compute in
 * open-gpu-doc. No public source has the compute classes of GB10B, GB20B and GB20C. So these
 * chips have no row, and the driver reports their classes. Class c4c0 has a header, but no public
 * source has the chip of this class.
 */
#define TMD_CHIPS(C) \
	C(0x0e4, 0xa0c0, GK104) C(0x0e6, 0xa0c0, GK106) C(0x0e7, 0xa0c0, GK107) \
	C(0x0ea, 0xa0c0, GK20A) C(0x0f0, 0xa1c0, GK110) C(0x0f1, 0xa1c0, GK110B) \
	C(0x106, 0xa1c0, GK208B) C(0x108, 0xa1c0, GK208) C(0x117, 0xb0c0, GM107) \
	C(0x118, 0xb0c0, GM108) C(0x120, 0xb1c0, GM200) C(0x124, 0xb1c0, GM204) \
	C(0x126, 0xb1c0, GM206) C(0x12b, 0xb1c0, GM20B) C(0x130, 0xc0c0, GP100) \
	C(0x132, 0xc1c0, GP102) C(0x134, 0xc1c0, GP104) C(0x136, 0xc1c0, GP106) \
	C(0x137, 0xc1c0, GP107) C(0x138, 0xc1c0, GP108) C(0x13b, 0xc0c0, GP10B) \
	C(0x140, 0xc3c0, GV100) C(0x15b, 0xc3c0, GV11B) C(0x162, 0xc5c0, TU102) \
	C(0x164, 0xc5c0, TU104) C(0x166, 0xc5c0, TU106) C(0x167, 0xc5c0, TU117) \
	C(0x168, 0xc5c0, TU116) C(0x170, 0xc6c0, GA100) C(0x172, 0xc7c0, GA102) \
	C(0x173, 0xc7c0, GA103) C(0x174, 0xc7c0, GA104) C(0x176, 0xc7c0, GA106) \
	C(0x177, 0xc7c0, GA107) C(0x17b, 0xc7c0, GA10B) C(0x180, 0xcbc0, GH100) \
	C(0x192, 0xc9c0, AD102) C(0x193, 0xc9c0, AD103) C(0x194, 0xc9c0, AD104) \
	C(0x196, 0xc9c0, AD106) C(0x197, 0xc9c0, AD107) C(0x1a0, 0xcdc0, GB100) \
	C(0x1a2, 0xcdc0, GB102) C(0x1a3, 0xcdc0, GB110) C(0x1a4, 0xcdc0, GB112) \
	C(0x1b2, 0xcec0, GB202) C(0x1b3, 0xcec0, GB203) C(0x1b5, 0xcec0, GB205) \
	C(0x1b6, 0xcec0, GB206) C(0x1b7, 0xcec0, GB207)

extern const struct tmd_layout tmd_layouts[];
extern const unsigned int tmd_nr_layouts;
extern const struct tmd_chip tmd_chips[];
extern const unsigned int tmd_nr_chips;

#endif
