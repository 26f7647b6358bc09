// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Reads the L2 slices and the size of the memory. */
#include "topo.h"
#include "regs.h"

/* ------------------------------------------------------------------ memory */

int gp_topo_read_memory(const struct chip *chip, struct topo_reader *reader,
			struct gpu_memory *memory)
{
	const struct chip_cell *fbps = gp_chip_cell(chip, CHIP_FUSE_FBP);
	const struct chip_cell *ltcs = gp_chip_cell(chip, CHIP_FUSE_LTC);
	unsigned int fbp;
	u32 present;
	int err;

	memset(memory, 0, sizeof(*memory));
	memory->nr_ltcs = -1;
	if (!fbps)
		return -EOPNOTSUPP;
	err = gp_topo_read_maximum(reader, NV_PTOP_SCAL_NUM_FBPS, 31, &memory->max_fbps);
	if (!err)
		err = gp_topo_read_present(reader, fbps, 0, memory->max_fbps,
					   &memory->present_fbps);
	if (err)
		return err;
	memory->nr_fbps = popcount32(memory->present_fbps);
	if (!ltcs)
		return 0;
	err = gp_topo_read_maximum(reader, NV_PTOP_SCAL_NUM_LTC_PER_FBP, 31, &memory->ltcs_per_fbp);
	if (!err)
		err = gp_topo_read_maximum(reader, NV_PTOP_SCAL_NUM_SLICES_PER_LTC, 31,
					   &memory->slices_per_ltc);
	if (err)
		return err;
	memory->nr_ltcs = 0;
	for (fbp = 0; fbp < memory->max_fbps; fbp++) {
		if (!(memory->present_fbps & 1u << fbp))
			continue;
		err = gp_topo_read_present(reader, ltcs, fbp, memory->ltcs_per_fbp, &present);
		if (err)
			return err;
		memory->nr_ltcs += popcount32(present);
	}
	return 0;
}

int gp_topo_read_local_memory(const struct chip *chip, struct topo_reader *reader, u64 *bytes)
{
	const struct chip_cell *cell = gp_chip_cell(chip, CHIP_MEMORY);
	u32 word, magnitude;
	int err;

	if (!cell)
		return -EOPNOTSUPP;
	err = gp_topo_rd32(reader, cell->at, &word);
	if (err)
		return err;
	if (cell->kind == CHIP_MEMORY_MAG6)
		magnitude = NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_MAG_GP100(word);
	else
		magnitude = NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_MAG_GH100(word);
	*bytes = ((u64)magnitude << NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_SCALE(word)) << 20;
	/*
	 * The check bits of ECC use a part of the memory. Source: nvgpu gv100_fb_get_vidmem_size.
	 */
	if (cell->kind == CHIP_MEMORY_MAG6 && NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_ECC(word))
		*bytes = *bytes / 16 * 15;
	return 0;
}
