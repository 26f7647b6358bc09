// SPDX-License-Identifier: MIT
/*
 * The table of TMD layouts, and the table of chips with their compute classes. This file contains
 * nothing but data. To support a new driver or GPU, add a row.
 *
 * Each row has a comment with its source. A source cl*qmd.h is a header in the folder
 * classes/compute of NVIDIA/open-gpu-doc. The header has the bit numbers of fields in a QMD. QMD
 * is NVIDIA's name for the TMD. The source "H200" means that the fields were found in TMDs that
 * the driver built for an H200. See Documentation/internals/hardware.md.
 */
#include "lib/tmd/layouts.h"

#define FIELD(hi, lo_)		{ (lo_), (hi) - (lo_) + 1 }

/* The release slots of V01_06 to V02_04. Argument @word is the first bit of the address. */
#define RELEASE_OLD(enable_bit, word) { \
	.enable = FIELD(enable_bit, enable_bit), \
	.address = FIELD((word) + 39, word), \
	.operation = FIELD((word) + 54, (word) + 52), \
	.format = FIELD((word) + 57, (word) + 56), \
	.reduction = FIELD((word) + 58, (word) + 58), \
	.size = FIELD((word) + 63, (word) + 63), \
	.payload = FIELD((word) + 95, (word) + 64), \
}

/* The release slots of V03_00. Argument @word is the first bit of the address. */
#define RELEASE_V03(word) { \
	.address = FIELD((word) + 39, word), \
	.membar = FIELD((word) + 51, (word) + 51), \
	.operation = FIELD((word) + 54, (word) + 52), \
	.enable = FIELD((word) + 55, (word) + 55), \
	.format = FIELD((word) + 57, (word) + 56), \
	.reduction = FIELD((word) + 58, (word) + 58), \
	.trap = FIELD((word) + 60, (word) + 59), \
	.payload64 = FIELD((word) + 61, (word) + 61), \
	.size = FIELD((word) + 63, (word) + 62), \
	.payload = FIELD((word) + 127, (word) + 64), \
}

/*
 * The release slots of V04_00, V04_01 and V05_00. Argument @control is the first of 16 control
 * bits. Argument @word is the first bit of the address.
 */
#define RELEASE_V04(control, word) { \
	.enable = FIELD(control, control), \
	.size = FIELD((control) + 2, (control) + 1), \
	.membar = FIELD((control) + 3, (control) + 3), \
	.reduction = FIELD((control) + 4, (control) + 4), \
	.operation = FIELD((control) + 7, (control) + 5), \
	.format = FIELD((control) + 9, (control) + 8), \
	.trap = FIELD((control) + 11, (control) + 10), \
	.payload64 = FIELD((control) + 12, (control) + 12), \
	.address = FIELD((word) + 56, word), \
	.payload = FIELD((word) + 127, (word) + 64), \
}

/*
 * The layouts V01_06 to V03_00. These layouts have 64 mask bits, no valid bit and no type field.
 * In all these layouts, the width and the height of the grid have the same places. Argument
 * @depth is the first bit of the grid's depth.
 */
#define MASK64(depth) \
	.version_byte = 72, .size = 256, .nr_words = 1, .word_byte = { 84 }, \
	.form = TMD_BIT_IS_TPC, \
	.grid = { FIELD(415, 384), FIELD(431, 416), FIELD((depth) + 15, depth) }

#define RELEASES_V03 \
	.release = { RELEASE_V03(768), RELEASE_V03(896), RELEASE_V03(1664) }

/* Argument @enable is the enable bit of release slot 0. */
#define ROW64(row_name, row_version, depth, enable, ...) { \
	.name = row_name, .version = row_version, MASK64(depth), .classes = { __VA_ARGS__ }, \
	.release = { RELEASE_OLD(enable, 736), RELEASE_OLD((enable) + 1, 832) }, \
}

/*
 * The members that V04_00 and V04_01 share. The field for the threads of a block in z ends at bit
 * @top.
 */
#define FIELDS_V04(top) \
	.version_byte = 72, .size = 384, .valid = FIELD(31, 31), \
	.form = TMD_BIT_BY_VGPC, .type = FIELD(25, 23), \
	.grid = { FIELD(1055, 1024), FIELD(1071, 1056), FIELD(1103, 1088) }, \
	.cluster = { FIELD(2149, 2144), FIELD(2157, 2152), FIELD(2165, 2160) }, \
	.cooperative = { FIELD(2223, 2208), FIELD(2239, 2224), FIELD(2255, 2240) }, \
	.threads = { FIELD(1167, 1152), FIELD(1183, 1168), FIELD(top, 1184) }, \
	.registers = FIELD(1208, 1200), .barriers = FIELD(1215, 1211), .shared = FIELD(601, 584), \
	.release = { RELEASE_V04(320, 640), RELEASE_V04(336, 768), RELEASE_V04(352, 896) }

const struct tmd_layout tmd_layouts[] = {
	{	/* cla0c0qmd.h */
		.name = "V00_06",
		.version = 0x06,
		.version_byte = 72,
		.size = 256,
		.classes = { 0xa0c0, 0xa1c0, 0xb0c0, 0xb1c0 },
		.refused = "it has no mask field",
	},
	ROW64("V01_06", 0x16, 432, 202, 0xa0c0), /* cla0c0qmd.h */
	/* clb1c0qmd.h */
	ROW64("V01_07", 0x17, 432, 202, 0xa0c0, 0xa1c0, 0xb0c0, 0xb1c0, 0xc0c0, 0xc1c0),
	ROW64("V02_00", 0x20, 448, 202, 0xc0c0, 0xc1c0), /* clc0c0qmd.h */
	ROW64("V02_01", 0x21, 448, 138, 0xc0c0, 0xc1c0), /* clc0c0qmd.h */
	ROW64("V02_02", 0x22, 448, 138, 0xc3c0, 0xc4c0), /* clc3c0qmd.h, clc4c0qmd.h */
	ROW64("V02_03", 0x23, 448, 138, 0xc5c0, 0xc6c0, 0xc7c0), /* clc5c0qmd.h */
	ROW64("V02_04", 0x24, 448, 138, 0xc6c0, 0xc7c0, 0xc9c0), /* clc6c0qmd.h */
	{	/* clc6c0qmd.h */
		.name = "V03_00",
		.version = 0x30,
		MASK64(448),
		RELEASES_V03,
		.classes = { 0xc6c0, 0xc7c0, 0xcbc0 },
	},
	{	/* clc9c0qmd.h */
		/*
		 * AD102 has 72 TPCs. So Ada has 8 additional mask bits, which no other layout
		 * has. Their order is inferred.
		 */
		.name = "V03_00",
		.version = 0x30,
		MASK64(448),
		RELEASES_V03,
		.classes = { 0xc9c0 },
		.extension = { FIELD(377, 372), FIELD(380, 379) },
	},
	{	/* clcbc0qmd.h; H200 */
		.name = "V04_00",
		.version = 0x40,
		FIELDS_V04(1199),
		.classes = { 0xcbc0 },
		.nr_words = 2,
		.word_byte = { 304, 312 },
		.tested_on = "H200 (GH100), driver 580.159, CUDA 13.0",
		.release_tested_on = "H200 (GH100), driver 580.159, CUDA 13.0",
	},
	{	/* clcdc0qmd.h */
		.name = "V04_01",
		.version = 0x41,
		FIELDS_V04(1191),
		.classes = { 0xcdc0, 0xcec0 },
		.nr_words = 4,
		.word_byte = { 304, 312, 336, 344 },
	},
	{	/* clcdc0qmd.h */
		.name = "V05_00",
		.version = 0x50,
		.version_byte = 58,
		.size = 384,
		.classes = { 0xcdc0, 0xcec0 },
		.nr_words = 4,
		.word_byte = { 280, 288, 296, 304 },
		.valid = FIELD(159, 159),
		.form = TMD_BIT_BY_VGPC,
		.type = FIELD(153, 151),
		.grid = { FIELD(1279, 1248), FIELD(1295, 1280), FIELD(1327, 1312) },
		.cluster = { FIELD(2053, 2048), FIELD(2061, 2056), FIELD(2069, 2064) },
		.cooperative = { FIELD(2127, 2112), FIELD(2143, 2128), FIELD(2159, 2144) },
		.threads = { FIELD(1103, 1088), FIELD(1119, 1104), FIELD(1127, 1120) },
		.registers = FIELD(1136, 1128),
		.barriers = FIELD(1141, 1137),
		.shared = FIELD(1162, 1152),
		.shared_shift = 7,
		.release = {
			RELEASE_V04(288, 480), RELEASE_V04(304, 768), RELEASE_V04(320, 896),
		},
	},
	{	/* clcdc0qmd.h */
		.name = "V05_01",
		.version = 0x51,
		.version_byte = 58,
		.size = 512,
		.classes = { 0xcdc0, 0xcec0 },
		.refused = "the position of its mask is unknown",
	},
};

const unsigned int tmd_nr_layouts = sizeof(tmd_layouts) / sizeof(tmd_layouts[0]);

const struct tmd_chip tmd_chips[] = {
#define CHIP(id, compute_class, name) { id, compute_class },
	TMD_CHIPS(CHIP)
#undef CHIP
};

const unsigned int tmd_nr_chips = sizeof(tmd_chips) / sizeof(tmd_chips[0]);
