// SPDX-License-Identifier: MIT
/*
 * Reads a TMD like the hardware. The decoder first reads the fields by their bit ranges. Then it
 * reads the mask by the measured bits in the capture. This file shares no code with libgpupart or
 * tmd_build.c, so it can detect mistakes in both.
 */
#include <string.h>
#include "sim/cuda/sim.h"

struct range {
	unsigned int high, low;
};

/*
 * The fields are from measurements on H200s, which tmd_build.c describes. The bits are numbered
 * as in NVIDIA's headers.
 */
struct format {
	struct range mask_valid, launch_type, shared_size, grid_size[3], block_size[3],
		register_count, cluster_size[3], policy_spread, at_once[3], tpc_disable, more_tpcs;
	unsigned int shared_unit;
	const struct release_format *release;
};

/*
 * Release slots. The payload begins 64 bits after the address. Ranges are relative to @control. A
 * field whose range ends at bit 0 does not exist.
 */
struct release_format {
	unsigned int nr, control[3], address[3], address_bits, payload_bits;
	unsigned int enable[3];		/* the offset from the start of the TMD */
	struct range size, membar, reduction, operation, format, trap, wide;
};

/* Source: clc6c0qmd.h; V01_06 and later. */
static const struct release_format release02 = {
	.nr = 2, .control = { 784, 880 }, .address = { 736, 832 },
	.address_bits = 40, .payload_bits = 32, .enable = { 138, 139 },
	.operation = { 6, 4 }, .format = { 9, 8 }, .reduction = { 10, 10 }, .size = { 15, 15 },
};

/* Source: clc6c0qmd.h. */
static const struct release_format release03 = {
	.nr = 3, .control = { 816, 944, 1712 }, .address = { 768, 896, 1664 },
	.address_bits = 40, .payload_bits = 64, .enable = { 823, 951, 1719 },
	.membar = { 3, 3 }, .operation = { 6, 4 }, .format = { 9, 8 }, .reduction = { 10, 10 },
	.trap = { 12, 11 }, .wide = { 13, 13 }, .size = { 15, 14 },
};

#define RELEASE_CONTROL \
	.size = { 2, 1 }, .membar = { 3, 3 }, .reduction = { 4, 4 }, .operation = { 7, 5 }, \
	.format = { 9, 8 }, .trap = { 11, 10 }, .wide = { 12, 12 }

/* Source: clcbc0qmd.h, clcdc0qmd.h; the records as measured on H200 boards. */
static const struct release_format release04 = {
	.nr = 3, .control = { 320, 336, 352 }, .address = { 640, 768, 896 },
	.address_bits = 57, .payload_bits = 64, .enable = { 320, 336, 352 }, RELEASE_CONTROL
};

/* Source: clcdc0qmd.h. */
static const struct release_format release05 = {
	.nr = 3, .control = { 288, 304, 320 }, .address = { 480, 768, 896 },
	.address_bits = 57, .payload_bits = 64, .enable = { 288, 304, 320 }, RELEASE_CONTROL
};

static const struct format v04 = {
	.mask_valid	= { 31, 31 },
	.launch_type	= { 25, 23 },
	.shared_size	= { 601, 584 },
	.grid_size	= { { 1055, 1024 }, { 1071, 1056 }, { 1103, 1088 } },
	.block_size	= { { 1167, 1152 }, { 1183, 1168 }, { 1199, 1184 } },
	.register_count	= { 1208, 1200 },
	.cluster_size	= { { 2151, 2144 }, { 2159, 2152 }, { 2167, 2160 } },
	.policy_spread	= { 2207, 2207 },
	.at_once	= { { 2223, 2208 }, { 2239, 2224 }, { 2255, 2240 } },
	.tpc_disable	= { 2559, 2432 },
	.more_tpcs	= { 2815, 2688 },	/* only in V04_01 */
	.shared_unit	= 1,
	.release	= &release04,
};

/*
 * Source: clcdc0qmd.h. The distance between the cluster's policy and the cluster's size is
 * inferred from V04_00.
 */
static const struct format v05 = {
	.mask_valid	= { 159, 159 },
	.launch_type	= { 153, 151 },
	.shared_size	= { 1162, 1152 },
	.grid_size	= { { 1279, 1248 }, { 1295, 1280 }, { 1327, 1312 } },
	.block_size	= { { 1103, 1088 }, { 1119, 1104 }, { 1127, 1120 } },
	.register_count	= { 1136, 1128 },
	.cluster_size	= { { 2053, 2048 }, { 2061, 2056 }, { 2069, 2064 } },
	.policy_spread	= { 2111, 2111 },
	.at_once	= { { 2127, 2112 }, { 2143, 2128 }, { 2159, 2144 } },
	.tpc_disable	= { 2367, 2240 },
	.more_tpcs	= { 2495, 2368 },
	.shared_unit	= 128,
	.release	= &release05,
};

/* V02_03 to V03_00, source: clc6c0qmd.h. A field whose range ends at bit 0 does not exist. */
#define FORMAT02 \
	.shared_size	= { 561, 544 }, \
	.grid_size	= { { 415, 384 }, { 431, 416 }, { 463, 448 } }, \
	.block_size	= { { 607, 592 }, { 623, 608 }, { 639, 624 } }, \
	.register_count	= { 656, 648 }, \
	.tpc_disable	= { 735, 672 }, \
	.shared_unit	= 1

static const struct format v02 = { FORMAT02, .release = &release02 };
static const struct format v03 = { FORMAT02, .release = &release03 };

static const struct format *format(void)
{
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

/* The mask of V04_00 is the first half of the mask of V04_01. */
static bool has_more_tpcs(const struct format *f)
{
	return f->more_tpcs.high && sim_faults()->tmd_version != 0x40;
}

static unsigned int nr_in(struct range range)
{
	return range.high - range.low + 1;
}

unsigned int tmd_nr_bits(void)
{
	const struct format *f = format();

	return nr_in(f->tpc_disable) + (has_more_tpcs(f) ? nr_in(f->more_tpcs) : 0);
}

static uint32_t decode(const uint8_t *tmd, struct range range)
{
	uint32_t value = 0;

	for (unsigned int bit = range.high + 1; bit-- > range.low; )
		value = value << 1 | (tmd[bit >> 3] >> (bit & 7) & 1);
	return value;
}

static void decode_mask(const uint8_t *tmd, const struct sim_gpu *gpu, struct sim_grid *grid)
{
	const struct format *f = format();
	unsigned int tpc, bit;

	memset(grid->tpc_off, 0, sizeof(grid->tpc_off));
	if (f->mask_valid.high && !decode(tmd, f->mask_valid))
		return;
	for (tpc = 0; tpc < gpu->nr_tpcs; tpc++) {
		bit = f->tpc_disable.low + gpu->tpc_bit[tpc];
		if (bit > f->tpc_disable.high)
			bit += f->more_tpcs.low - f->tpc_disable.high - 1;
		if (decode(tmd, (struct range){ bit, bit }))
			grid->tpc_off[tpc / 64] |= 1ull << tpc % 64;
	}
}

static uint64_t decode64(const uint8_t *tmd, unsigned int low, unsigned int nr)
{
	unsigned int more = nr > 32 ? nr - 32 : 0;
	uint64_t upper = more ? decode(tmd, (struct range){ low + nr - 1, low + 32 }) : 0;

	return upper << 32 | decode(tmd, (struct range){ low + nr - more - 1, low });
}

static uint32_t decode_control(const uint8_t *tmd, unsigned int control, struct range range)
{
	return range.high ? decode(tmd, (struct range){ control + range.high,
							control + range.low }) : 0;
}

/*
 * If the record is not simulated, returns false. A record of the driver can also be a store or an
 * addition of one word.
 */
static bool decode_release(const uint8_t *tmd, unsigned int i, struct sim_release *release)
{
	static const unsigned int words[4] = { 4, 1, 0, 0 };
	const struct release_format *f = format()->release;
	unsigned int control = f->control[i];

	release->words = words[decode_control(tmd, control, f->size)];
	release->adds = decode_control(tmd, control, f->reduction);
	release->wide = decode_control(tmd, control, f->wide);
	release->address = decode64(tmd, f->address[i], f->address_bits);
	release->payload = decode64(tmd, f->address[i] + 64, f->payload_bits);
	return release->words && !decode_control(tmd, control, f->trap) &&
	       !decode_control(tmd, control, f->operation) &&
	       !decode_control(tmd, control, f->format) &&
	       (release->words == 4 ? !release->adds : !release->wide);
}

static bool decode_releases(const uint8_t *tmd, struct sim_grid *grid)
{
	const struct release_format *f = format()->release;
	const struct sim_faults *faults = sim_faults();
	struct sim_release *release;

	for (unsigned int i = 0; i < f->nr; i++) {
		if (!decode(tmd, (struct range){ f->enable[i], f->enable[i] }))
			continue;
		release = &grid->releases[grid->nr_releases++];
		release->own = !i || faults->release_busy;
		if (!decode_release(tmd, i, release))
			return false;
		if (release->own || faults->release_wrong == UINT64_MAX)
			continue;
		release->address += faults->release_wrong;
		grid->nr_releases -= !faults->release_wrong;
	}
	return true;
}

bool tmd_decode(const uint8_t *built, const struct sim_gpu *gpu, struct sim_grid *grid)
{
	const struct format *f = format();
	uint8_t tmd[SIM_TMD_BYTES];
	unsigned int i, count, type;

	memcpy(tmd, built, sizeof(tmd));
	tmd_move_field(tmd);
	type = f->launch_type.high ? decode(tmd, f->launch_type) : 2;
	memset(grid, 0, sizeof(*grid));
	if (type < 2 || type > 5)
		return false;
	grid->clustered = type & 1;
	grid->cooperative = type & 4;
	grid->spread = decode(tmd, f->policy_spread);
	grid->registers = decode(tmd, f->register_count);
	grid->shared = decode(tmd, f->shared_size) * f->shared_unit;
	grid->threads = grid->cluster_blocks = 1;
	grid->nr_clusters = 1;
	for (i = 0; i < 3; i++) {
		count = decode(tmd, grid->cooperative ? f->at_once[i] : f->grid_size[i]);
		grid->cluster[i] = grid->clustered ? decode(tmd, f->cluster_size[i]) : 1;
		grid->block[i] = decode(tmd, f->block_size[i]);
		grid->grid[i] = count * grid->cluster[i];
		grid->threads *= grid->block[i];
		grid->cluster_blocks *= grid->cluster[i];
		grid->nr_clusters *= count;
	}
	grid->nr_blocks = grid->nr_clusters * grid->cluster_blocks;
	decode_mask(tmd, gpu, grid);
	return decode_releases(tmd, grid) && grid->nr_blocks && grid->threads;
}

static bool is_within(unsigned int bit, struct range range)
{
	return range.high && bit >= range.low && bit <= range.high;
}

/*
 * Returns true if the bit belongs to a release slot that the driver does not use. A callback may
 * change such slots.
 */
static bool is_of_release(unsigned int bit)
{
	const struct release_format *f = format()->release;
	const struct range *const fields[] = {
		&f->size, &f->membar, &f->reduction, &f->operation, &f->format, &f->trap, &f->wide,
	};
	unsigned int i, k;

	for (i = 1; i < f->nr && !sim_faults()->release_busy; i++) {
		if (bit == f->enable[i] ||
		    (bit >= f->address[i] && bit - f->address[i] < f->address_bits) ||
		    (bit >= f->address[i] + 64 && bit - f->address[i] - 64 < f->payload_bits))
			return true;
		for (k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
			if (bit >= f->control[i] && is_within(bit - f->control[i], *fields[k]))
				return true;
	}
	return false;
}

int tmd_foreign_edit(const uint8_t *before, const uint8_t *after)
{
	const struct format *f = format();
	unsigned int byte, bit, changed;

	for (byte = 0; byte < SIM_TMD_BYTES; byte++) {
		changed = before[byte] ^ after[byte];
		for (; changed; changed &= changed - 1) {
			bit = byte * 8 + __builtin_ctz(changed);
			if (!is_within(bit, f->mask_valid) && !is_within(bit, f->tpc_disable) &&
			    !(has_more_tpcs(f) && is_within(bit, f->more_tpcs)) &&
			    !is_of_release(bit))
				return byte;
		}
	}
	return -1;
}
