/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The table of chips. Each chip has a row. A row has a cell for each kind of data that can be read.
 * A cell has a source and a tag. The tag says how reliable the source is.
 */
#ifndef GPUPART_KMOD_CHIP_H
#define GPUPART_KMOD_CHIP_H

#include "compat.h"

enum chip_tag {
	/* the chip lacks these registers, or the offsets are not published */
	CHIP_ABSENT,
	/* published in NVIDIA's headers or drivers for this chip, or read on such a chip */
	CHIP_VERIFIED,
	CHIP_REPORTED,		/* found in a third party's tool that supports this chip */
	CHIP_INFERRED,		/* the chips before and after this chip have the same value */
};

enum chip_column {
	CHIP_MAXIMA,		/* the registers of the PTOP block have the offsets in regs.h */
	/* the value at @at; if @at2 is not 0, it is ORed with the value at @at2 */
	CHIP_FUSE_GPC,
	CHIP_FUSE_TPC,		/* like CHIP_FUSE_GPC, but add 4 * gpc_phys to both offsets */
	CHIP_FUSE_CPC,		/* at + 4 * gpc_phys */
	CHIP_FUSE_FBP,		/* @at and @at2 have the same meaning as for CHIP_FUSE_GPC */
	CHIP_FUSE_LTC,		/* at + 4 * fbp */
	CHIP_GPC_MAP,		/* kind: the map from a logical GPC to a physical GPC */
	CHIP_CWD,		/* at: GPC_TPC_ID, at2: SM_ID, nr: words in each array */
	CHIP_CWD_CTL,		/* at: PARTITION_CTL, at2: CG, followed by CG1 */
	CHIP_ORDER,		/* kind: the published rule for TPC numbers */
	CHIP_SMS_PER_TPC,	/* nr */
	CHIP_ENGINES,		/* kind: form of the device table; at: its offset; nr: dies */
	CHIP_RUNLISTS,		/* the registers of runlists have the offsets in regs.h */
	CHIP_PCE,		/* kind: form of PCE2LCE; nr: number of words, 0 if not published */
	CHIP_GRCE,		/* nr: number of GRCEs; the form is that of CHIP_PCE */
	CHIP_MEMORY,		/* kind: width of the field that contains the magnitude */
	CHIP_TIMER,		/* at */
	CHIP_COLUMNS
};

enum {
	CHIP_GPC_MAP_ASCENDING = 1,	/* GPC n is the n'th GPC that is present */
	CHIP_GPC_MAP_SMC,		/* the SMC arbiter has the map, at offset @at + 4 * gpc */
};

enum {
	/* round robin: the next TPC is in the next GPC */
	CHIP_ORDER_ROUND_ROBIN = 1,
	/* the remaining TPCs stay balanced; at: offset of the PES masks */
	CHIP_ORDER_GREEDY,
};

enum {
	CHIP_ENGINES_TAGGED = 1,	/* each word has a field that gives the kind of the word */
	/* fixed order of words; a configuration register has the size of a row */
	CHIP_ENGINES_ROWS,
};

enum {
	CHIP_PCE_NIBBLES = 1,		/* Pascal: one word has all PCEs; each GRCE has a byte */
	CHIP_PCE_WORDS,			/* one word for each PCE */
};

enum {
	CHIP_MEMORY_MAG6 = 1,
	CHIP_MEMORY_MAG24,
};

struct chip_cell {
	u32 at, at2;
	u16 nr;
	u8 kind;
	u8 tag;
	const char *source;
};

struct chip {
	u16 id;			/* bits 29:20 of BOOT_42 */
	const char *name;
	const char *family;
	const char *note;	/* known missing parts, or NULL */
	struct chip_cell cells[CHIP_COLUMNS];
};

extern const struct chip gp_chips[];
extern const unsigned int gp_nr_chips;

/*
 * Returns the row with exactly this id. If there is no such row, returns NULL. Never returns the
 * row of a similar chip.
 */
const struct chip *gp_chip_find(u32 id);

/* Returns the cell. If the chip has no such cell, returns NULL. */
const struct chip_cell *gp_chip_cell(const struct chip *chip, enum chip_column column);

const char *gp_chip_column_name(enum chip_column column);
const char *gp_chip_tag_name(u8 tag);

#endif
