// SPDX-License-Identifier: MIT
/*
 * Writes the TMD of a launch, by default like NVIDIA's driver for Hopper (version V04_00). A
 * setting selects a different version. This file shares no code with tmd_decode.c. So if the two
 * files disagree about the format, a launch fails, and a test reports the failure.
 *
 * Offsets were measured on H200 boards with driver 580.159. Bytes that the simulation does not
 * use stay 0.
 */
#include <string.h>
#include "sim/cuda/sim.h"

#define NONE	~0u

/*
 * The offset of each field. Except for V04_00, the offsets are from NVIDIA's headers clc6c0qmd.h
 * and clcdc0qmd.h.
 */
struct tmd_bytes {
	unsigned int
		/* type and valid bit; NONE: this TMD version has no type and no clusters */
		word,
		version,
		shared,		/* 18 bits in bytes, or 11 bits in units of 128 bytes */
		grid,		/* u32 width, u16 height, u16 depth, 4 bytes each */
		threads,	/* three values of u16; in V05_00 the third value is a byte */
		registers,	/* 9 bits */
		cluster,	/* a byte each */
		policy,		/* bit 31: spread the blocks of a cluster over SMs */
		at_once,	/* u16 each: the counts of a cooperative launch */
		/*
		 * words of u32, a set bit disables a TPC; @mask: bits 0 to 127, @more: bits from
		 * 128
		 */
		mask, more,
		shared_unit;
	const struct release_bytes *release;
};

/*
 * The slots for records at the end of a launch. A slot has 16 bits of control, then an address,
 * then a payload.
 */
struct release_bytes {
	unsigned int nr, control[3], address[3], payload_size;
	/* one bit for each slot, beginning at 1 << 2; 0: each slot's control bits have the bit */
	unsigned int enable_byte;
	uint16_t enable, one_word, add;
};

static const struct tmd_bytes *bytes(void)
{
	static const struct release_bytes
		r02 = { 2, { 98, 110 }, { 92, 104 }, 4, 17, 0, 0x8000, 0x400 },
		r03 = { 3, { 102, 118, 214 }, { 96, 112, 208 }, 8, 0, 0x80, 0x4000, 0x400 },
		r04 = { 3, { 40, 42, 44 }, { 80, 96, 112 }, 8, 0, 1, 2, 0x10 },
		r05 = { 3, { 36, 38, 40 }, { 60, 96, 112 }, 8, 0, 1, 2, 0x10 };
	static const struct tmd_bytes
		v02 = { NONE, 72, 68, 48, 74, 81, 0, 0, 0, 84, 0, 1, &r02 },
		v03 = { NONE, 72, 68, 48, 74, 81, 0, 0, 0, 84, 0, 1, &r03 },
		v04 = { 0, 72, 73, 128, 144, 150, 268, 272, 276, 304, 336, 1, &r04 },
		v05 = { 16, 58, 144, 156, 136, 141, 256, 260, 264, 280, 296, 128, &r05 };

	switch (sim_faults()->tmd_version) {
	case 0x23:
	case 0x24:
		return &v02;
	case 0x30:
		return &v03;
	case 0x50:
		return &v05;
	default:
		return &v04;
	}
}

#define TMD_MASK_VALID	(1u << 31)	/* a bit of the word */
#define TMD_TYPE_SHIFT	23
#define TMD_SPREAD	(1u << 31)

enum tmd_type { TMD_ORDINARY = 2, TMD_CLUSTERED = 3, TMD_COOPERATIVE = 4, TMD_BOTH = 5 };

static void put16(uint8_t *at, unsigned int value)
{
	at[0] = value;
	at[1] = value >> 8;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value);
	put16(at + 2, value >> 16);
}

unsigned int tmd_shared_of_block(unsigned int bytes, bool bare)
{
	unsigned int unit = sim_chip()->shared_unit;

	if (!bare)
		bytes += sim_chip()->shared_reserved;
	return (bytes + unit - 1) / unit * unit;
}

static void put_mask_bit(uint8_t *tmd, unsigned int bit)
{
	const struct tmd_bytes *at = bytes();
	unsigned int byte = bit < 128 ? at->mask + bit / 8 : at->more + (bit - 128) / 8;

	tmd[byte] |= 1u << bit % 8;
}

/*
 * The driver does not place clusters of four or more blocks on TPCs outside whole virtual GPCs.
 */
static uint32_t build_driver_mask(uint8_t *tmd, const struct sim_gpu *gpu,
				  const struct sim_launch *launch)
{
	unsigned int blocks = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
	uint32_t valid = 0;

	if (blocks < 4 || launch->policy != CU_CLUSTER_POLICY_DEFAULT)
		return 0;
	for (unsigned int bit = 0; bit < tmd_nr_bits(); bit++)
		if (gpu->singles[bit / 64] >> bit % 64 & 1) {
			put_mask_bit(tmd, bit);
			valid = TMD_MASK_VALID;
		}
	return valid;
}

/*
 * As measured on an H200, the driver writes words 0 to 2 of a green context's mask. Word 3 stays
 * 0.
 */
static uint32_t build_green_mask(uint8_t *tmd, const struct sim_gpu *gpu,
				 const struct sim_launch *launch)
{
	uint32_t valid = 0;

	for (unsigned int bit = 0; bit < gpu->green_bits; bit++)
		if (launch->off[bit / 64] >> bit % 64 & 1) {
			put_mask_bit(tmd, bit);
			valid = TMD_MASK_VALID;
		}
	return valid;
}

void tmd_move_field(uint8_t *tmd)
{
	const int *move = sim_faults()->move_field;
	uint8_t was = tmd[move[0]];

	tmd[move[0]] = tmd[move[1]];
	tmd[move[1]] = was;
}

/* Builds the slot for a word of the driver. The GPU stores the word or adds to it. */
static void build_release(uint8_t *tmd, unsigned int slot, uint16_t control)
{
	const struct release_bytes *at = bytes()->release;
	uint64_t address = release_words(slot);

	put32(tmd + at->address[slot], address);
	put32(tmd + at->address[slot] + 4, address >> 32);
	tmd[at->address[slot] + 8] = 1;
	tmd[at->control[slot]] |= control;
	tmd[at->control[slot] + 1] |= control >> 8;
	if (at->enable_byte)
		tmd[at->enable_byte] |= 4u << slot;
}

/*
 * As measured, the value is 0003 in a stream, and 0010 or 0013 in a graph. The code's choice
 * between 0010 and 0013 is an assumption.
 */
static void build_releases(uint8_t *tmd, const struct sim_launch *launch)
{
	const struct release_bytes *at = bytes()->release;

	if (launch->place == SIM_IN_GRAPH) {
		tmd[at->control[0]] |= at->add;
		tmd[at->control[0] + 1] |= at->add >> 8;
	} else {
		build_release(tmd, 0, at->enable | at->one_word |
			      (launch->place == SIM_LAST_OF_GRAPH ? at->add : 0));
	}
	for (unsigned int slot = 1; slot < at->nr && sim_faults()->release_busy; slot++)
		build_release(tmd, slot, at->enable | at->one_word);
}

/*
 * Keeps the slots that the driver does not use. Other code may have written values into these
 * slots.
 */
static void keep_releases(uint8_t *tmd, const uint8_t *was)
{
	const struct release_bytes *at = bytes()->release;

	for (unsigned int slot = 1; slot < at->nr; slot++) {
		memcpy(tmd + at->address[slot], was + at->address[slot], 8 + at->payload_size);
		memcpy(tmd + at->control[slot], was + at->control[slot], 2);
		if (at->enable_byte)
			tmd[at->enable_byte] |= was[at->enable_byte] & 4u << slot;
	}
}

void tmd_build(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch)
{
	const struct tmd_bytes *at = bytes();
	static const unsigned int grid_at[3] = { 0, 4, 8 };
	bool clustered = launch->cluster[0];
	enum tmd_type type = launch->cooperative ? (clustered ? TMD_BOTH : TMD_COOPERATIVE) :
						   (clustered ? TMD_CLUSTERED : TMD_ORDINARY);
	uint32_t word = (uint32_t)type << TMD_TYPE_SHIFT;
	unsigned int i, count, shared = tmd_shared_of_block(launch->shared, launch->bare);

	shared /= at->shared_unit;
	memset(tmd, 0, SIM_TMD_BYTES);
	tmd[at->version] = sim_faults()->tmd_version;
	tmd[at->shared] = shared;
	tmd[at->shared + 1] = shared >> 8;
	tmd[at->shared + 2] = shared >> 16 & 3;
	for (i = 0; i < 3; i++) {
		count = launch->grid[i];
		if (clustered) {
			count /= launch->cluster[i];
			tmd[at->cluster + i] = launch->cluster[i];
		}
		/* A TMD without a type does not contain whether the launch is cooperative. */
		if (launch->cooperative && at->word != NONE) {
			put16(tmd + at->at_once + 2 * i, count);
			count = 1;
		}
		if (i == 0)
			put32(tmd + at->grid, count);
		else
			put16(tmd + at->grid + grid_at[i], count);
		put16(tmd + at->threads + 2 * i, launch->block[i]);
	}
	put16(tmd + at->registers, launch->registers & 0x1ff);
	if (clustered) {
		if (launch->policy != CU_CLUSTER_POLICY_LOAD_BALANCING)
			put32(tmd + at->policy, TMD_SPREAD);
		word |= build_driver_mask(tmd, gpu, launch);
	}
	word |= build_green_mask(tmd, gpu, launch);
	if (at->word != NONE)
		put32(tmd + at->word, word);
	build_releases(tmd, launch);
	tmd_move_field(tmd);
}

void tmd_rebuild(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch)
{
	const struct tmd_bytes *at = bytes();
	unsigned int nr = tmd_nr_bits() < 128 ? 8 : 16, more = tmd_nr_bits() > 128 ? 16 : 0, i;
	uint8_t was[SIM_TMD_BYTES];

	memcpy(was, tmd, sizeof(was));
	tmd_build(tmd, gpu, launch);
	for (i = 0; i < nr; i++)
		tmd[at->mask + i] |= was[at->mask + i];
	for (i = 0; i < more; i++)
		tmd[at->more + i] |= was[at->more + i];
	if (at->word != NONE)
		tmd[at->word + 3] |= was[at->word + 3] & TMD_MASK_VALID >> 24;
	keep_releases(tmd, was);
}
