// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Identifies a GPU's chip and reads its GPCs and TPCs. */
#include "topo.h"
#include "regs.h"

/* ---------------------------------------------------------------- identity */

int gp_topo_identify(struct topo_reader *reader, struct gpu_id *id)
{
	u32 boot_1;
	int err;

	memset(id, 0, sizeof(*id));
	err = gp_topo_rd32(reader, NV_PMC_BOOT_0, &id->boot_0);
	if (err)
		return err;
	/* On a GPU that is new or in reset, this register reads 0. */
	if (!id->boot_0)
		return gp_topo_nonsense(reader, NV_PMC_BOOT_0, id->boot_0);
	if (!NV_PMC_BOOT_0_ARCH_1(id->boot_0) &&
	    NV_PMC_BOOT_0_ARCH_0(id->boot_0) < NV_PMC_BOOT_0_ARCH_0_FERMI) {
		id->chip_id = REG_FIELD(id->boot_0, 28, 20);
		id->why = "older than any chip in the table";
		return 0;
	}
	err = gp_topo_rd32(reader, NV_PMC_BOOT_42, &id->boot_42);
	if (err)
		return err;
	if (!id->boot_42)
		return gp_topo_nonsense(reader, NV_PMC_BOOT_42, id->boot_42);
	id->chip_id = NV_PMC_BOOT_42_CHIP_ID(id->boot_42);
	err = gp_topo_rd32(reader, NV_PMC_BOOT_1, &boot_1);
	if (err)
		return err;
	if (NV_PMC_BOOT_1_VGPU(boot_1)) {
		id->why = "a virtual function or vGPU, whose registers are not the GPU's";
		return 0;
	}
	id->chip = gp_chip_find(id->chip_id);
	if (!id->chip)
		id->why = "not in the table of chips";
	return 0;
}

/* ---------------------------------------------------------------- topology */

static void map_ascending(struct gpu_floorsweep *fs)
{
	unsigned int gpc_phys, gpc = 0;

	for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++)
		if (fs->present_gpcs & 1u << gpc_phys)
			fs->gpc_phys[gpc++] = gpc_phys;
	fs->has_map = true;
}

static void map_smc(struct topo_reader *reader, const struct chip_cell *cell,
		    struct gpu_floorsweep *fs)
{
	u8 gpc_phys[GPUPART_MAX_GPCS], ugpu[GPUPART_MAX_GPCS];
	u32 seen = 0, word;
	unsigned int gpc;

	for (gpc = 0; gpc < fs->nr_gpcs; gpc++) {
		if (gp_topo_rd32(reader, cell->at + 4 * gpc, &word)) {
			gp_topo_fault_text(&reader->fault, fs->map_why, sizeof(fs->map_why));
			fs->complete = false;
			return;
		}
		/*
		 * On H200 boards bit 31, "valid", is always 0. So instead check that the words form
		 * a map.
		 */
		gpc_phys[gpc] = NV_PSMCARB_PARTITION_GPC_MAP_PHYSICAL(word);
		ugpu[gpc] = NV_PSMCARB_PARTITION_GPC_MAP_UGPU(word);
		if (!(fs->present_gpcs & 1u << gpc_phys[gpc]) || seen & 1u << gpc_phys[gpc]) {
			snprintf(fs->map_why, sizeof(fs->map_why),
				 "0x%x names physical GPC %u for GPC %u, which cannot be",
				 cell->at + 4 * gpc, gpc_phys[gpc], gpc);
			fs->complete = false;
			return;
		}
		seen |= 1u << gpc_phys[gpc];
	}
	memcpy(fs->gpc_phys, gpc_phys, fs->nr_gpcs);
	memcpy(fs->ugpu, ugpu, fs->nr_gpcs);
	fs->has_map = true;
}

static void read_map(struct topo_reader *reader, struct gpu_floorsweep *fs)
{
	const struct chip_cell *cell = gp_chip_cell(fs->chip, CHIP_GPC_MAP);

	if (!cell)
		snprintf(fs->map_why, sizeof(fs->map_why), "not published for this chip");
	else if (cell->kind == CHIP_GPC_MAP_ASCENDING)
		map_ascending(fs);
	else
		map_smc(reader, cell, fs);
}

int gp_topo_read(const struct chip *chip, struct topo_reader *reader, struct gpu_floorsweep *fs)
{
	const struct chip_cell *gpc_fuse = gp_chip_cell(chip, CHIP_FUSE_GPC);
	const struct chip_cell *tpc_fuse = gp_chip_cell(chip, CHIP_FUSE_TPC);
	const struct chip_cell *cpc_fuse = gp_chip_cell(chip, CHIP_FUSE_CPC);
	const struct chip_cell *sms = gp_chip_cell(chip, CHIP_SMS_PER_TPC);
	const struct chip_cell *cwd = gp_chip_cell(chip, CHIP_CWD);
	unsigned int gpc_phys;
	u32 word;
	int err;

	memset(fs, 0, sizeof(*fs));
	memset(fs->gpc_phys, TOPO_UNKNOWN, sizeof(fs->gpc_phys));
	memset(fs->ugpu, TOPO_UNKNOWN, sizeof(fs->ugpu));
	fs->chip = chip;
	fs->complete = true;
	if (!gpc_fuse || !tpc_fuse || !gp_chip_cell(chip, CHIP_MAXIMA))
		return -EOPNOTSUPP;
	fs->sms_per_tpc = sms ? sms->nr : 0;

	err = gp_topo_read_maximum(reader, NV_PTOP_SCAL_NUM_GPCS, GPUPART_MAX_GPCS, &fs->max_gpcs);
	if (!err)
		err = gp_topo_read_maximum(reader, NV_PTOP_SCAL_NUM_TPC_PER_GPC, 31,
					   &fs->max_tpcs_per_gpc);
	if (!err)
		err = gp_topo_read_present(reader, gpc_fuse, 0, fs->max_gpcs, &fs->present_gpcs);
	if (err)
		return err;
	fs->nr_gpcs = popcount32(fs->present_gpcs);
	for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++) {
		/* If a GPC is floorswept, its TPC fuses have no meaning. */
		if (!(fs->present_gpcs & 1u << gpc_phys))
			continue;
		err = gp_topo_read_present(reader, tpc_fuse, gpc_phys, fs->max_tpcs_per_gpc,
					   &fs->present_tpcs[gpc_phys]);
		if (err)
			return err;
		fs->nr_tpcs += popcount32(fs->present_tpcs[gpc_phys]);
	}
	if (cpc_fuse) {
		fs->has_cpcs = true;
		for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++) {
			if (!(fs->present_gpcs & 1u << gpc_phys))
				continue;
			if (gp_topo_rd32(reader, cpc_fuse->at + 4 * gpc_phys, &word)) {
				fs->has_cpcs = false;
				fs->complete = false;
				break;
			}
			gp_topo_keep(reader, cpc_fuse->at + 4 * gpc_phys, word);
			fs->floorswept_cpcs[gpc_phys] = popcount32(word);
		}
	}
	read_map(reader, fs);

	if (!cwd)
		snprintf(fs->order_why, sizeof(fs->order_why), "this chip has no such table");
	if (!cwd || gp_topo_order_read(reader, cwd, fs))
		gp_topo_order_compute(reader, fs);
	if (fs->order == TOPO_ORDER_UNKNOWN)
		memset(fs->tpcs, TOPO_UNKNOWN, sizeof(fs->tpcs));
	return 0;
}
