// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Reads the table of engines with their runlists, and reads the copy engines. */
#include "topo.h"
#include "regs.h"

/* ----------------------------------------------------------------- engines */

/*
 * The numbers are from OGKM ga100/dev_top.h and its addendum, and from gb100/dev_top.h. The names
 * of engines are the same as in nvdebug.
 */
static const struct {
	unsigned int type;
	const char *name;
} engine_names[] = {
	{ 0, "Graphics/Compute" },
	{ 1, "COPY0" },
	{ 2, "COPY1" },
	{ 3, "COPY2" },
	{ 8, "MSPDEC: Picture Decoder" },
	{ 9, "MSPPP: Post Processing" },
	{ 10, "MSVLD: Variable Length Decoder" },
	{ 11, "MSENC: Encoder" },
	{ 12, "VIC: Video Image Compositor" },
	{ 13, "SEC: Sequencer" },
	{ 14, "NVENC: NVIDIA Video Encoder" },
	{ 15, "NVENC1: NVIDIA Video Encoder #1" },
	{ 16, "NVDEC: NVIDIA Video Decoder" },
	{ 18, "IOCTRL: I/O Controller" },
	{ 19, "LCE: Logical Copy Engine" },
	{ 20, "GSP: GPU System Processor" },
	{ 21, "NVJPG: NVIDIA JPEG Decoder" },
	{ 22, "OFA: Optical Flow Accelerator" },
	{ 23, "FLA: Fabric Logical Addressing" },
	{ 24, "HSHUB: High Speed Hub" },
	{ 25, "C2C" },
	{ 26, "FSP" },
	{ 0x1f, "TMR" },
	{ 0x33, "PBUS" },
	{ 0x34, "PTOP" },
	{ 0x35, "HUBMMU" },
};

const char *gp_topo_engine_name(unsigned int type)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(engine_names); i++)
		if (engine_names[i].type == type)
			return engine_names[i].name;
	return NULL;
}

static void tagged_row(u32 row, struct gpu_engine *engine)
{
	switch (NV_PTOP_DEVICE_INFO_ENTRY(row)) {
	case NV_PTOP_DEVICE_INFO_ENTRY_DATA:
		if (NV_PTOP_DEVICE_INFO_DATA_NOT_ENUM2(row))
			break;
		engine->instance = NV_PTOP_DEVICE_INFO_DATA_INST(row);
		engine->pri_base = NV_PTOP_DEVICE_INFO_DATA_PRI(row);
		if (NV_PTOP_DEVICE_INFO_DATA_FAULT_VALID(row))
			engine->fault = NV_PTOP_DEVICE_INFO_DATA_FAULT(row);
		break;
	case NV_PTOP_DEVICE_INFO_ENTRY_ENUM:
		if (NV_PTOP_DEVICE_INFO_ENUM_ENGINE_VALID(row))
			engine->engine_id = NV_PTOP_DEVICE_INFO_ENUM_ENGINE(row);
		if (NV_PTOP_DEVICE_INFO_ENUM_RUNLIST_VALID(row))
			engine->runlist = NV_PTOP_DEVICE_INFO_ENUM_RUNLIST(row);
		if (NV_PTOP_DEVICE_INFO_ENUM_INTR_VALID(row))
			engine->intr = NV_PTOP_DEVICE_INFO_ENUM_INTR(row);
		if (NV_PTOP_DEVICE_INFO_ENUM_RESET_VALID(row))
			engine->reset = NV_PTOP_DEVICE_INFO_ENUM_RESET(row);
		break;
	case NV_PTOP_DEVICE_INFO_ENTRY_TYPE:
		engine->type = NV_PTOP_DEVICE_INFO_TYPE_ENUM(row);
		break;
	}
}

static void indexed_row(unsigned int index, u32 row, struct gpu_engine *engine)
{
	switch (index) {
	case 0:
		engine->type = NV_PTOP_DEVICE_INFO2_0_TYPE(row);
		engine->instance = NV_PTOP_DEVICE_INFO2_0_INST(row);
		engine->fault = NV_PTOP_DEVICE_INFO2_0_FAULT(row);
		break;
	case 1:
		engine->reset = NV_PTOP_DEVICE_INFO2_1_RESET(row);
		engine->pri_base = NV_PTOP_DEVICE_INFO2_1_PRI(row);
		break;
	case 2:
		engine->rleng = NV_PTOP_DEVICE_INFO2_2_RLENG(row);
		engine->runlist_pri_base = NV_PTOP_DEVICE_INFO2_2_RUNLIST_PRI(row);
		break;
	}
}

void gp_topo_engine_row(const struct chip *chip, unsigned int index, u32 row,
			struct gpu_engine *engine)
{
	if (index == 0)
		*engine = (struct gpu_engine){
			.type = 0xffff, .engine_id = -1, .runlist = -1, .intr = -1,
			.reset = -1, .fault = -1, .rleng = -1,
		};
	if (chip->cells[CHIP_ENGINES].kind == CHIP_ENGINES_TAGGED)
		tagged_row(row, engine);
	else
		indexed_row(index, row, engine);
}

static int engines_of_die(const struct chip *chip, const struct chip_cell *cell,
			  struct topo_reader *reader, unsigned int die,
			  struct gpu_engines *engines)
{
	u32 base = cell->at + die * NV_PTOP_DIE_STRIDE;
	unsigned int nr_rows = 64, index = 0, i;
	struct gpu_engine engine = { 0 };
	int err;

	if (cell->kind == CHIP_ENGINES_ROWS) {
		u32 at = NV_PTOP_DEVICE_INFO_CFG + die * NV_PTOP_DIE_STRIDE, config;

		err = gp_topo_rd32(reader, at, &config);
		if (err)
			return err;
		nr_rows = NV_PTOP_DEVICE_INFO_CFG_NUM_ROWS(config);
		/*
		 * Version 2: GA100 to GB100. Version 3: GB20C, whose rows have the same form
		 * (nvgpu hw_top_gb20c.h).
		 */
		if ((NV_PTOP_DEVICE_INFO_CFG_VERSION(config) != 2 &&
		     NV_PTOP_DEVICE_INFO_CFG_VERSION(config) != 3) ||
		    !nr_rows || nr_rows > TOPO_MAX_ROWS)
			return gp_topo_nonsense(reader, at, config);
		gp_topo_keep(reader, at, config);
	}
	for (i = 0; i < nr_rows; i++) {
		u32 row;

		err = gp_topo_rd32(reader, base + 4 * i, &row);
		if (err)
			return err;
		/* The table has empty rows, both between groups of rows and inside groups. */
		if (cell->kind == CHIP_ENGINES_TAGGED ? !NV_PTOP_DEVICE_INFO_ENTRY(row) : !row)
			continue;
		/* If a row is single and starts no chain, it does not describe an engine. */
		if (cell->kind == CHIP_ENGINES_ROWS && !index && !NV_PTOP_DEVICE_INFO_CHAIN(row))
			continue;
		if (engines->nr_rows == TOPO_MAX_ROWS || index > 8)
			return gp_topo_nonsense(reader, base + 4 * i, row);
		engines->rows[engines->nr_rows] = row;
		engines->row_index[engines->nr_rows++] = index;
		gp_topo_engine_row(chip, index, row, &engine);
		index++;
		if (NV_PTOP_DEVICE_INFO_CHAIN(row))
			continue;
		if (engines->nr == TOPO_MAX_ENGINES)
			return gp_topo_nonsense(reader, base + 4 * i, row);
		engine.die = die;
		engines->engines[engines->nr++] = engine;
		index = 0;
	}
	/*
	 * The table does not change. All rows were accepted. So keep the values of these registers.
	 */
	for (i = 0; reader->keep && engines->nr && i < nr_rows; i++) {
		u32 row;

		if (!gp_topo_rd32(reader, base + 4 * i, &row))
			gp_topo_keep(reader, base + 4 * i, row);
	}
	return 0;
}

int gp_topo_read_engines(const struct chip *chip, struct topo_reader *reader,
			 struct gpu_engines *engines)
{
	const struct chip_cell *cell = gp_chip_cell(chip, CHIP_ENGINES);
	unsigned int die;
	int err;

	memset(engines, 0, sizeof(*engines));
	if (!cell)
		return -EOPNOTSUPP;
	for (die = 0; die < cell->nr; die++) {
		err = engines_of_die(chip, cell, reader, die, engines);
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------ copy engines */

int gp_topo_read_copy(const struct chip *chip, struct topo_reader *reader, struct gpu_copy *copy)
{
	const struct chip_cell *pces = gp_chip_cell(chip, CHIP_PCE);
	const struct chip_cell *grces = gp_chip_cell(chip, CHIP_GRCE);
	unsigned int pce, grce;
	u32 word = 0;
	int err;

	memset(copy, 0, sizeof(*copy));
	memset(copy->pce_lce, TOPO_UNKNOWN, sizeof(copy->pce_lce));
	memset(copy->grce_lce, TOPO_UNKNOWN, sizeof(copy->grce_lce));
	if (!pces || !grces)
		return -EOPNOTSUPP;
	err = gp_topo_rd32(reader, NV_CE_PCE_MAP, &copy->present_pces);
	if (err)
		return err;
	for (pce = 0; pce < 32; pce++) {
		unsigned int lce, none;

		if (!(copy->present_pces & 1u << pce))
			continue;
		if (pces->kind == CHIP_PCE_NIBBLES) {
			if (pce >= 8)
				return gp_topo_nonsense(reader, NV_CE_PCE_MAP, copy->present_pces);
			err = gp_topo_rd32(reader, pces->at, &word);
			lce = word >> (4 * pce) & 0xf;
			none = NV_CE_PCE2LCE_LCE_NONE_GP100;
		} else {
			if (pces->nr && pce >= pces->nr)
				return gp_topo_nonsense(reader, NV_CE_PCE_MAP, copy->present_pces);
			err = gp_topo_rd32(reader, pces->at + 4 * pce, &word);
			lce = NV_CE_PCE2LCE_LCE(word);
			none = NV_CE_PCE2LCE_LCE_NONE;
		}
		if (err)
			return err;
		if (lce != none)
			copy->pce_lce[pce] = lce;
	}
	copy->nr_grces = grces->nr;
	for (grce = 0; grce < grces->nr; grce++) {
		if (pces->kind == CHIP_PCE_NIBBLES) {
			err = gp_topo_rd32(reader, grces->at, &word);
			word = word >> (8 * grce) & 0xff;
			if (!err && word & 0x8)
				copy->grce_lce[grce] = word & 0x7;
		} else {
			err = gp_topo_rd32(reader, grces->at + 4 * grce, &word);
			if (!err &&
			    NV_CE_GRCE_CONFIG_SHARED_LCE(word) != NV_CE_GRCE_CONFIG_SHARED_LCE_NONE)
				copy->grce_lce[grce] = NV_CE_GRCE_CONFIG_SHARED_LCE(word);
		}
		if (err)
			return err;
	}
	return 0;
}
