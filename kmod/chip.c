// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The table of chips. To add a chip, add a row with a source for each cell. */
#include "chip.h"
#include "regs.h"

#define V CHIP_VERIFIED
#define R CHIP_REPORTED
#define I CHIP_INFERRED

#define CELL(column, t, src, ...) [column] = { .tag = (t), .source = (src), __VA_ARGS__ }

/* The cells of the table. In these macros, t is the tag of a cell, and src is its source. */
#define MAXIMA(t, src)	CELL(CHIP_MAXIMA, t, src, .at = NV_PTOP_SCAL_NUM_GPCS)
#define FUSES_22(t, src) \
	CELL(CHIP_FUSE_GPC, t, src, .at = NV_PTOP_FS_GPC_HW, .at2 = NV_PTOP_FS_GPC_SW), \
	CELL(CHIP_FUSE_TPC, t, src, .at = NV_PTOP_FS_TPC_HW, .at2 = NV_PTOP_FS_TPC_SW), \
	CELL(CHIP_FUSE_FBP, t, src, .at = NV_PTOP_FS_FBP_HW, .at2 = NV_PTOP_FS_FBP_SW)
#define FUSES_21(t, src) \
	CELL(CHIP_FUSE_GPC, t, src, .at = NV_FUSE_21_STATUS_OPT_GPC), \
	CELL(CHIP_FUSE_TPC, t, src, .at = NV_FUSE_21_STATUS_OPT_TPC), \
	CELL(CHIP_FUSE_FBP, t, src, .at = NV_FUSE_21_STATUS_OPT_FBP), \
	CELL(CHIP_FUSE_LTC, t, src, .at = NV_FUSE_21_STATUS_OPT_ROP_L2)
#define FUSES_82(t, src) \
	CELL(CHIP_FUSE_GPC, t, src, .at = NV_FUSE_STATUS_OPT_GPC), \
	CELL(CHIP_FUSE_TPC, t, src, .at = NV_FUSE_STATUS_OPT_TPC), \
	CELL(CHIP_FUSE_FBP, t, src, .at = NV_FUSE_STATUS_OPT_FBP), \
	CELL(CHIP_FUSE_LTC, t, src, .at = NV_FUSE_STATUS_OPT_ROP_L2)
#define FUSE_CPC(t, src) CELL(CHIP_FUSE_CPC, t, src, .at = NV_FUSE_STATUS_OPT_CPC)
#define MAP_ASCENDING(t, src) CELL(CHIP_GPC_MAP, t, src, .kind = CHIP_GPC_MAP_ASCENDING)
#define MAP_SMC(t, src) \
	CELL(CHIP_GPC_MAP, t, src, .kind = CHIP_GPC_MAP_SMC, .at = NV_PSMCARB_PARTITION_GPC_MAP)
#define CWD_GM200(t, src) \
	CELL(CHIP_CWD, t, src, .at = NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GM200, \
	     .at2 = NV_PGRAPH_PRI_CWD_SM_ID_GM200, .nr = 16)
#define CWD_GH100(t, src) \
	CELL(CHIP_CWD, t, src, .at = NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GH100, \
	     .at2 = NV_PGRAPH_PRI_CWD_SM_ID_GH100, .nr = 24)
#define CWD_CTL(src) \
	CELL(CHIP_CWD_CTL, V, src, .at = NV_PGRAPH_PRI_CWD_PARTITION_CTL, \
	     .at2 = NV_PGRAPH_PRI_CWD_CG)
#define ROUND_ROBIN(t, src) CELL(CHIP_ORDER, t, src, .kind = CHIP_ORDER_ROUND_ROBIN)
#define GREEDY(t, src) \
	CELL(CHIP_ORDER, t, src, .kind = CHIP_ORDER_GREEDY, \
	     .at = NV_PGRAPH_GPC0_GPM_PD_PES_TPC_ID_MASK)
#define SMS(n, t, src)	CELL(CHIP_SMS_PER_TPC, t, src, .nr = (n))
#define ENGINES_TAGGED(t, src) \
	CELL(CHIP_ENGINES, t, src, .kind = CHIP_ENGINES_TAGGED, .at = NV_PTOP_DEVICE_INFO, .nr = 1)
#define ENGINES_ROWS(dies, t, src) \
	CELL(CHIP_ENGINES, t, src, .kind = CHIP_ENGINES_ROWS, .at = NV_PTOP_DEVICE_INFO2, \
	     .nr = (dies))
#define RUNLISTS(t, src) CELL(CHIP_RUNLISTS, t, src)
#define CE_GP100(t, src) \
	CELL(CHIP_PCE, t, src, .kind = CHIP_PCE_NIBBLES, .at = NV_CE_PCE2LCE_GP100, .nr = 1), \
	CELL(CHIP_GRCE, t, src, .at = NV_CE_GRCE_CONFIG_GP100, .nr = 2)
#define CE_GV100(n, t, src) \
	CELL(CHIP_PCE, t, src, .kind = CHIP_PCE_WORDS, .at = NV_CE_PCE2LCE_GV100, .nr = (n)), \
	CELL(CHIP_GRCE, t, src, .at = NV_CE_GRCE_CONFIG_GV100, .nr = 2)
#define CE_GA100(n, grces, t, src) \
	CELL(CHIP_PCE, t, src, .kind = CHIP_PCE_WORDS, .at = NV_CE_PCE2LCE_GA100, .nr = (n)), \
	CELL(CHIP_GRCE, t, src, .at = NV_CE_GRCE_CONFIG_GA100, .nr = (grces))
#define MEMORY_MAG6(t, src) \
	CELL(CHIP_MEMORY, t, src, .kind = CHIP_MEMORY_MAG6, .at = NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE)
#define MEMORY_MAG24(t, src) \
	CELL(CHIP_MEMORY, t, src, .kind = CHIP_MEMORY_MAG24, \
	     .at = NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE)
#define TIMER(t, src)	CELL(CHIP_TIMER, t, src, .at = NV_PTIMER_TIME_0)

/*
 * Families of chips. Chips of a family can differ in a value. In this case, the macro of the family
 * has an argument for this value.
 */
#define FERMI \
	MAXIMA(V, "envytools punits.xml; nouveau ctxgf100.c"), \
	FUSES_22(V, "envytools punits.xml; nouveau pm/gf100.c"), \
	MAP_ASCENDING(I, "nvgpu gr_config.c for later chips"), \
	ROUND_ROBIN(V, "nouveau gf100_gr_oneinit_sm_id"), \
	SMS(1, V, "nouveau ctxgf100.c"), \
	TIMER(V, "nouveau subdev/timer")
#define KEPLER(t, src) \
	MAXIMA(V, src), \
	FUSES_22(t, "envytools punits.xml; nouveau pm/gf100.c"), \
	MAP_ASCENDING(I, "nvgpu gr_config.c for later chips"), \
	ROUND_ROBIN(V, "nouveau gf100_gr_oneinit_sm_id"), \
	SMS(1, V, "nouveau gr/gk104.c"), \
	ENGINES_TAGGED(V, "nouveau subdev/top; nvgpu hw_top_gk20a.h"), \
	TIMER(V, "nouveau subdev/timer")
#define MAXWELL1 \
	MAXIMA(V, "envytools punits.xml; nouveau ctxgf100.c"), \
	FUSES_21(I, "nouveau and OGKM read other registers of this block on GM107"), \
	MAP_ASCENDING(I, "nvgpu gr_config.c for later chips"), \
	ROUND_ROBIN(V, "nouveau gf100_gr_oneinit_sm_id"), \
	SMS(1, V, "nouveau gr/gm107.c"), \
	ENGINES_TAGGED(V, "nouveau subdev/top"), \
	TIMER(V, "nouveau subdev/timer")
#define MAXWELL2(t, src) \
	MAXIMA(t, src), FUSES_21(t, src), \
	MAP_ASCENDING(t, "nvgpu gr_config.c"), \
	CWD_GM200(V, "nouveau ctxgm200.c; nvgpu hw_gr_gm20b.h"), \
	ROUND_ROBIN(t, "nvgpu gm20b_gr_config_init_sm_id_table; " \
		    "a comment in nouveau questions this rule for desktop chips"), \
	SMS(1, t, src), \
	ENGINES_TAGGED(V, "nouveau subdev/top; nvgpu hw_top_gm20b.h"), \
	TIMER(V, "nouveau subdev/timer; nvgpu hw_timer_gm20b.h")
#define PASCAL(t, src, sms, sms_tag, sms_src) \
	MAXIMA(t, src), FUSES_21(t, src), \
	MAP_ASCENDING(t, "nvgpu gr_config.c"), \
	CWD_GM200(V, "nouveau ctxgp100.c; nvgpu hw_gr_gp106.h"), \
	ROUND_ROBIN(t, "nvgpu gm20b_gr_config_init_sm_id_table; " \
		    "a comment in nouveau questions this rule for desktop chips"), \
	SMS(sms, sms_tag, sms_src), \
	ENGINES_TAGGED(V, "nouveau subdev/top; nvgpu hw_top_gp106.h"), \
	CE_GP100(R, "nvdebug"), MEMORY_MAG6(t, "nvgpu hw_fb_gp106.h; nvdebug"), \
	TIMER(V, "nouveau subdev/timer; nvgpu hw_timer_gp106.h")
#define VOLTA(src, ce_tag) \
	MAXIMA(V, src), FUSES_21(V, src), \
	MAP_ASCENDING(V, "nvgpu gr_config.c"), \
	CWD_GM200(V, src), \
	GREEDY(V, "nvgpu and nouveau gv100_gr_*_sm_id; " \
	       "if two candidates are equal, the first is used, as in nouveau"), \
	SMS(2, V, "nvgpu hw_proj_gv100.h, hw_proj_gv11b.h"), \
	ENGINES_TAGGED(V, "nouveau subdev/top; nvgpu hw_top_gv100.h"), \
	CE_GV100(0, ce_tag, "nvdebug"), \
	MEMORY_MAG6(ce_tag, "nvgpu hw_fb_gv100.h; nvdebug"), \
	TIMER(V, "nouveau subdev/timer; nvgpu hw_timer_gv100.h")
#define TURING(t, src, ce_tag) \
	MAXIMA(t, src), FUSES_21(t, src), \
	MAP_ASCENDING(t, "nvgpu gr_config.c for TU104"), \
	CWD_GM200(t, "OGD tu104 pri_cwd; nvgpu hw_gr_tu104.h"), \
	GREEDY(t, "nvgpu gv100_gr_config_init_sm_id_table, which nvgpu uses for TU104"), \
	SMS(2, t, "nvgpu hw_proj_tu104.h"), \
	ENGINES_TAGGED(t, "OGD tu104 dev_top.ref.txt; nvgpu hw_top_tu104.h"), \
	CE_GV100(4, ce_tag, "OGKM tu102/dev_ce_base.h; nvdebug"), \
	MEMORY_MAG6(t, "nvgpu fb_tu104; nvdebug"), \
	TIMER(V, "OGKM; nouveau subdev/timer")
#define AMPERE(t, src, pces, ce_tag) \
	MAXIMA(t, src), FUSES_82(t, src), \
	MAP_SMC(t, "nvgpu hw_smcarb_ga100.h, hw_smcarb_ga10b.h"), \
	CWD_GM200(t, "nvgpu hw_gr_ga100.h, hw_gr_ga10b.h"), \
	GREEDY(t, "nvgpu gv100_gr_config_init_sm_id_table; nouveau gr/ga102.c"), \
	SMS(2, t, "nvgpu hw_proj_ga100.h, hw_proj_ga10b.h"), \
	ENGINES_ROWS(1, t, "nvgpu hw_top_ga100.h; OGKM ga100/dev_top.h"), \
	CE_GA100(pces, 2, ce_tag, \
		 "OGKM ga100, ga102 dev_ce_base.h; nvgpu hw_ce_ga100.h; nvdebug"), \
	MEMORY_MAG6(I, "nvgpu fb_tu104 for Turing; nvdebug"), \
	TIMER(V, "OGKM; nouveau subdev/timer")
#define ADA \
	MAXIMA(R, "nvdebug"), FUSES_82(R, "nvdebug; in OGKM this block has the same base"), \
	MAP_SMC(I, "nvgpu hw_smcarb_ga100.h and hw_smcarb_gb10b.h for neighbouring chips"), \
	CWD_GH100(R, "nvdebug"), \
	SMS(2, I, "older and newer chips have the same number"), \
	ENGINES_ROWS(1, R, "nvdebug"), \
	CE_GA100(0, 2, R, "nvdebug"), \
	MEMORY_MAG6(I, "nvgpu fb_tu104 for Turing; nvdebug"), \
	TIMER(I, "OGKM for older and newer chips")
#define HOPPER(t, src) \
	MAXIMA(t, src), FUSES_82(t, src), FUSE_CPC(I, "nvgpu hw_fuse_gb10b.h for GB10B"), \
	MAP_SMC(t, src), CWD_GH100(t, src), SMS(2, t, src), ENGINES_ROWS(1, t, src), \
	CE_GA100(16, 2, t, "OGKM gh100/dev_ce_base.h; H200"), \
	MEMORY_MAG24(t, src), TIMER(t, src)
/*
 * GB100 and similar chips. They have two dies, and the fuses of the second die are not published.
 */
#define BLACKWELL_1(pces, ce_tag, t) \
	MAXIMA(R, "nvdebug"), \
	FUSES_82(I, "OGKM gb100/hwproject.h: this block has the same base as on GA100"), \
	FUSE_CPC(I, "nvgpu hw_fuse_gb10b.h for GB10B"), \
	MAP_SMC(I, "nvgpu hw_smcarb_gb10b.h for GB10B"), \
	CWD_GH100(I, "nvgpu hw_gr_gb10b.h for GB10B"), \
	SMS(2, I, "nvgpu hw_proj_gb10b.h for GB10B"), \
	ENGINES_ROWS(2, t, "OGKM gb100/dev_top.h"), \
	CE_GA100(pces, 2, ce_tag, "OGKM gb100/dev_ce_base.h"), \
	TIMER(t, "OGKM gb100/hwproject.h")
#define DIE_1 "the chip has two dies; only the fuses of the first die are published and read"
#define BLACKWELL_2(t, src, pces, grces, ce_tag) \
	MAXIMA(t, src), FUSES_82(t, src), FUSE_CPC(t, src), \
	MAP_SMC(I, "nvgpu hw_smcarb_gb10b.h for GB10B"), \
	SMS(2, t, "nvgpu hw_proj_gb20c.h"), \
	ENGINES_ROWS(1, t, "nvgpu hw_top_gb20c.h"), \
	CE_GA100(pces, grces, ce_tag, "OGKM gb202, gb20b dev_ce_base.h; nvgpu"), \
	TIMER(I, "OGKM gb100/hwproject.h for GB100")

#define ENVY "envytools punits.xml; nouveau ctxgf100.c"
#define GM20B "nvgpu hw_{top,fuse,proj}_gm20b.h"
#define GP106 "nvgpu hw_{top,fuse,proj}_gp106.h"
#define TU104 "nvgpu hw_{top,fuse}_tu104.h; OGD tu104"
#define GA100 "nvgpu hw_{top,fuse}_ga100.h"
#define GA10B "nvgpu hw_{top,fuse}_ga10b.h"
#define H200 "read on H200 boards"
#define GB20C "nvgpu hw_{top,fuse}_gb20c.h"
/* The source is OGKM: kfifoStartChannelHalt_GA100 is also used for GA102 to AD107. */
#define GA100_FIFO "nouveau fifo/ga102.c uses the functions of ga100.c; OGKM g_kernel_fifo_nvoc.c"
#define GP100_SMS "NVIDIA's GP100 white paper"

#define CHIP(i, n, f, ...) { .id = (i), .name = (n), .family = (f), .cells = { __VA_ARGS__ } }
#define CHIP_NOTE(i, n, f, remark, ...) \
	{ .id = (i), .name = (n), .family = (f), .note = (remark), .cells = { __VA_ARGS__ } }

/*
 * Sources of the ids: OGKM nv_arch.h and ctrl2080mc.h; for older chips nouveau
 * engine/device/base.c.
 */
const struct chip gp_chips[] = {
	CHIP(0x0c0, "GF100", "Fermi", FERMI),
	CHIP(0x0c1, "GF108", "Fermi", FERMI),
	CHIP(0x0c3, "GF106", "Fermi", FERMI),
	CHIP(0x0c4, "GF104", "Fermi", FERMI),
	CHIP(0x0c8, "GF110", "Fermi", FERMI),
	CHIP(0x0ce, "GF114", "Fermi", FERMI),
	CHIP(0x0cf, "GF116", "Fermi", FERMI),
	CHIP(0x0d7, "GF117", "Fermi", FERMI),
	CHIP(0x0d9, "GF119", "Fermi", FERMI),
	CHIP(0x0e4, "GK104", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x0e6, "GK106", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x0e7, "GK107", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x0f0, "GK110", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x0f1, "GK110B", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x106, "GK208B", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x108, "GK208", "Kepler", KEPLER(V, ENVY)),
	CHIP(0x117, "GM107", "Maxwell", MAXWELL1),
	CHIP(0x118, "GM108", "Maxwell", MAXWELL1),
	CHIP(0x120, "GM200", "Maxwell", MAXWELL2(I, GM20B)),
	CHIP(0x124, "GM204", "Maxwell", MAXWELL2(I, GM20B)),
	CHIP(0x126, "GM206", "Maxwell", MAXWELL2(I, GM20B)),
	CHIP(0x12b, "GM20B", "Maxwell", MAXWELL2(V, GM20B)),
	CHIP(0x130, "GP100", "Pascal", PASCAL(I, GP106, 2, R, GP100_SMS)),
	CHIP(0x132, "GP102", "Pascal", PASCAL(I, GP106, 1, I, GP106)),
	CHIP(0x134, "GP104", "Pascal", PASCAL(I, GP106, 1, I, GP106)),
	CHIP(0x136, "GP106", "Pascal", PASCAL(V, GP106, 1, V, GP106)),
	CHIP(0x137, "GP107", "Pascal", PASCAL(I, GP106, 1, I, GP106)),
	CHIP(0x138, "GP108", "Pascal", PASCAL(I, GP106, 1, I, GP106)),
	CHIP(0x13b, "GP10B", "Pascal",
	     PASCAL(V, "nvgpu hw_{top,fuse,proj}_gp10b.h", 1, V, "nvgpu hw_proj_gp10b.h")),
	CHIP(0x140, "GV100", "Volta", VOLTA("nvgpu hw_{top,fuse,gr}_gv100.h; OGD gv100", R),
	     CWD_CTL("OGD gv100 pri_cwd")),
	CHIP(0x15b, "GV11B", "Volta", VOLTA("nvgpu hw_{top,fuse,gr}_gv11b.h", I)),
	CHIP(0x162, "TU102", "Turing", TURING(I, TU104, V)),
	CHIP(0x164, "TU104", "Turing", TURING(V, TU104, I), CWD_CTL("OGD tu104 pri_cwd")),
	CHIP(0x166, "TU106", "Turing", TURING(I, TU104, I)),
	CHIP(0x167, "TU117", "Turing", TURING(I, TU104, I)),
	CHIP(0x168, "TU116", "Turing", TURING(I, TU104, I)),
	CHIP(0x170, "GA100", "Ampere", AMPERE(V, GA100, 18, V), CWD_CTL("OGD ga100 pri_cwd"),
	     RUNLISTS(V, "OGD ga100 dev_runlist; nvgpu hw_runlist_ga100.h")),
	CHIP(0x172, "GA102", "Ampere", AMPERE(I, GA10B, 6, V), RUNLISTS(R, GA100_FIFO)),
	CHIP(0x173, "GA103", "Ampere", AMPERE(I, GA10B, 6, I), RUNLISTS(R, GA100_FIFO)),
	CHIP(0x174, "GA104", "Ampere", AMPERE(I, GA10B, 6, I), RUNLISTS(R, GA100_FIFO)),
	CHIP(0x176, "GA106", "Ampere", AMPERE(I, GA10B, 6, I), RUNLISTS(R, GA100_FIFO)),
	CHIP(0x177, "GA107", "Ampere", AMPERE(I, GA10B, 6, I), RUNLISTS(R, GA100_FIFO)),
	CHIP(0x17b, "GA10B", "Ampere", AMPERE(V, GA10B, 6, I)),
	CHIP(0x17f, "GA102F", "Ampere", AMPERE(I, GA10B, 6, I)),
	CHIP(0x180, "GH100", "Hopper", HOPPER(V, H200), RUNLISTS(V, H200)),
	CHIP(0x181, "GH100_SOC", "Hopper", HOPPER(I, H200)),
	CHIP(0x192, "AD102", "Ada", ADA, RUNLISTS(R, GA100_FIFO)),
	CHIP(0x193, "AD103", "Ada", ADA, RUNLISTS(R, GA100_FIFO)),
	CHIP(0x194, "AD104", "Ada", ADA, RUNLISTS(R, GA100_FIFO)),
	CHIP(0x196, "AD106", "Ada", ADA, RUNLISTS(R, GA100_FIFO)),
	CHIP(0x197, "AD107", "Ada", ADA, RUNLISTS(R, GA100_FIFO)),
	CHIP_NOTE(0x1a0, "GB100", "Blackwell", DIE_1, BLACKWELL_1(24, V, V)),
	CHIP_NOTE(0x1a2, "GB102", "Blackwell", DIE_1, BLACKWELL_1(24, I, I)),
	CHIP_NOTE(0x1a3, "GB110", "Blackwell", DIE_1, BLACKWELL_1(24, I, I)),
	CHIP_NOTE(0x1a4, "GB112", "Blackwell", DIE_1, BLACKWELL_1(24, I, I)),
	CHIP(0x1ab, "GB10B", "Blackwell",
	     MAXIMA(V, "nvgpu hw_top_gb10b.h"), FUSES_82(V, "nvgpu hw_fuse_gb10b.h"),
	     FUSE_CPC(V, "nvgpu hw_fuse_gb10b.h"), MAP_SMC(V, "nvgpu hw_smcarb_gb10b.h"),
	     CWD_GH100(V, "nvgpu hw_gr_gb10b.h"), SMS(2, V, "nvgpu hw_proj_gb10b.h"),
	     ENGINES_ROWS(1, V, "nvgpu hw_top_gb10b.h"),
	     CE_GA100(2, 2, V, "OGKM gb10b/dev_ce_base.h; nvgpu"),
	     TIMER(I, "OGKM gb100/hwproject.h for GB100")),
	CHIP(0x1b2, "GB202", "Blackwell", BLACKWELL_2(I, GB20C, 4, 4, V)),
	CHIP(0x1b3, "GB203", "Blackwell", BLACKWELL_2(I, GB20C, 4, 4, I)),
	CHIP(0x1b5, "GB205", "Blackwell", BLACKWELL_2(I, GB20C, 4, 4, I)),
	CHIP(0x1b6, "GB206", "Blackwell", BLACKWELL_2(I, GB20C, 4, 4, I)),
	CHIP(0x1b7, "GB207", "Blackwell", BLACKWELL_2(I, GB20C, 4, 4, I)),
	CHIP(0x1bb, "GB20B", "Blackwell", BLACKWELL_2(I, GB20C, 2, 1, V)),
	CHIP(0x1bc, "GB20C", "Blackwell", BLACKWELL_2(V, GB20C, 2, 1, I)),
};

const unsigned int gp_nr_chips = ARRAY_SIZE(gp_chips);

const struct chip *gp_chip_find(u32 id)
{
	unsigned int i;

	for (i = 0; i < gp_nr_chips; i++)
		if (gp_chips[i].id == id)
			return &gp_chips[i];
	return NULL;
}

const struct chip_cell *gp_chip_cell(const struct chip *chip, enum chip_column column)
{
	const struct chip_cell *cell = &chip->cells[column];

	return cell->tag == CHIP_ABSENT ? NULL : cell;
}

const char *gp_chip_column_name(enum chip_column column)
{
	static const char *const names[CHIP_COLUMNS] = {
		[CHIP_MAXIMA] = "maxima",
		[CHIP_FUSE_GPC] = "gpc-fuses",
		[CHIP_FUSE_TPC] = "tpc-fuses",
		[CHIP_FUSE_CPC] = "cpc-fuses",
		[CHIP_FUSE_FBP] = "fbp-fuses",
		[CHIP_FUSE_LTC] = "ltc-fuses",
		[CHIP_GPC_MAP] = "gpc-map",
		[CHIP_CWD] = "cwd-tables",
		[CHIP_CWD_CTL] = "cwd-control",
		[CHIP_ORDER] = "order-rule",
		[CHIP_SMS_PER_TPC] = "sms-per-tpc",
		[CHIP_ENGINES] = "engines",
		[CHIP_RUNLISTS] = "runlists",
		[CHIP_PCE] = "pce-map",
		[CHIP_GRCE] = "grce-map",
		[CHIP_MEMORY] = "memory",
		[CHIP_TIMER] = "timer",
	};

	return names[column];
}

const char *gp_chip_tag_name(u8 tag)
{
	static const char *const names[] = { "-", "verified", "reported", "inferred" };

	return tag < ARRAY_SIZE(names) ? names[tag] : "?";
}
