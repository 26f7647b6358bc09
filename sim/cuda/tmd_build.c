// SPDX-License-Identifier: MIT
/*
 * Writes a launch's TMD as NVIDIA's driver does for Hopper (V04_00). Must not know
 * how a TMD is read back: tmd_decode.c has its own idea of the format, and where the
 * two disagree a launch goes wrong and a test sees it.
 *
 * Offsets are as measured on H200 boards with driver 580.159; bytes that carry
 * nothing the simulation uses stay 0.
 */
#include <string.h>
#include "sim/cuda/sim.h"

enum tmd_byte {
	TMD_VERSION	= 72,
	TMD_SHARED	= 73,		/* 18 bits from here */
	TMD_GRID	= 128,		/* u32 width, u16 height, u16 depth, 4 bytes each */
	TMD_THREADS	= 144,		/* u16 each */
	TMD_REGISTERS	= 150,		/* 9 bits */
	TMD_CLUSTER	= 268,		/* a byte each */
	TMD_POLICY	= 272,		/* bit 31: spread a cluster's blocks */
	TMD_AT_ONCE	= 276,		/* u16 each: a cooperative launch's counts */
	TMD_MASK	= 304,		/* u32 each, set = disabled */
};

#define TMD_MASK_VALID	(1u << 31)	/* of word 0 */
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

unsigned int shared_of_block(unsigned int bytes, bool bare)
{
	unsigned int unit = sim_chip()->shared_unit;

	if (!bare)
		bytes += sim_chip()->shared_reserved;
	return (bytes + unit - 1) / unit * unit;
}

/*
 * The driver keeps clusters of four and more off the TPCs that belong to no whole
 * virtual GPC: their bits come after those of a full set of GPCs.
 */
static uint32_t build_driver_mask(uint8_t *tmd, const struct sim_gpu *gpu,
				  const struct sim_launch *launch)
{
	unsigned int blocks = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
	unsigned int bit = gpu->info.max_gpcs * gpu->info.max_tpcs_per_gpc;

	if (blocks < 4 || launch->policy != CU_CLUSTER_POLICY_DEFAULT || !bit)
		return 0;
	for (; bit < SIM_TMD_BITS; bit++)
		tmd[TMD_MASK + bit / 8] |= 1u << bit % 8;
	return TMD_MASK_VALID;
}

void tmd_build(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch)
{
	static const unsigned int grid_at[3] = { 0, 4, 8 };
	bool clustered = launch->cluster[0];
	enum tmd_type type = launch->cooperative ? (clustered ? TMD_BOTH : TMD_COOPERATIVE) :
						   (clustered ? TMD_CLUSTERED : TMD_ORDINARY);
	uint32_t word0 = (uint32_t)type << TMD_TYPE_SHIFT;
	unsigned int i, count, shared = shared_of_block(launch->shared, launch->bare);

	memset(tmd, 0, SIM_TMD_BYTES);
	tmd[TMD_VERSION] = sim_faults()->tmd_version;
	tmd[TMD_SHARED] = shared;
	tmd[TMD_SHARED + 1] = shared >> 8;
	tmd[TMD_SHARED + 2] = shared >> 16 & 3;
	for (i = 0; i < 3; i++) {
		count = launch->grid[i];
		if (clustered) {
			count /= launch->cluster[i];
			tmd[TMD_CLUSTER + i] = launch->cluster[i];
		}
		if (launch->cooperative) {
			put16(tmd + TMD_AT_ONCE + 2 * i, count);
			count = 1;
		}
		if (i == 0)
			put32(tmd + TMD_GRID, count);
		else
			put16(tmd + TMD_GRID + grid_at[i], count);
		put16(tmd + TMD_THREADS + 2 * i, launch->block[i]);
	}
	put16(tmd + TMD_REGISTERS, launch->registers & 0x1ff);
	if (clustered) {
		if (launch->policy != CU_CLUSTER_POLICY_LOAD_BALANCING)
			put32(tmd + TMD_POLICY, TMD_SPREAD);
		word0 |= build_driver_mask(tmd, gpu, launch);
	}
	put32(tmd, word0);
}

void tmd_rebuild(uint8_t *tmd, const struct sim_gpu *gpu, const struct sim_launch *launch)
{
	uint8_t mask[SIM_TMD_BITS / 8], valid = tmd[3] & TMD_MASK_VALID >> 24;
	unsigned int i;

	memcpy(mask, tmd + TMD_MASK, sizeof(mask));
	tmd_build(tmd, gpu, launch);
	for (i = 0; i < sizeof(mask); i++)
		tmd[TMD_MASK + i] |= mask[i];
	tmd[3] |= valid;
}
