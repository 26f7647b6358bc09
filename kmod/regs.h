/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The offsets and fields of all registers that are read. The names are NVIDIA's names. Each
 * register has a source. The file chip.c lists the registers of each chip.
 *
 * The sources have short names. OGKM is NVIDIA/open-gpu-kernel-modules
 * (src/common/inc/swref/published). OGD is NVIDIA/open-gpu-doc. The name nvgpu means NVIDIA's
 * linux-nvgpu (include/nvgpu/hw). The name nouveau means the driver in the Linux kernel. The name
 * envytools means the database rnndb of the envytools project. The name nvdebug means the public
 * kernel module nvdebug. "H200" means that the registers of H200 boards were read
 * (tests/data/gh100-h200-a).
 */
#ifndef GPUPART_KMOD_REGS_H
#define GPUPART_KMOD_REGS_H

#define REG_FIELD(value, hi, lo) (((value) >> (lo)) & (0xffffffffu >> (31 - (hi) + (lo))))

/* Identification. Sources: OGKM nv_ref.h; for the rule for old chips, nova-core regs.rs. */
#define NV_PMC_BOOT_0			0x000000
#define NV_PMC_BOOT_0_ARCH_1(v)		REG_FIELD(v, 8, 8)
#define NV_PMC_BOOT_0_ARCH_0(v)		REG_FIELD(v, 28, 24)
#define NV_PMC_BOOT_0_ARCH_0_FERMI	0x0c	/* older chips have no BOOT_42 */
#define NV_PMC_BOOT_1			0x000004
#define NV_PMC_BOOT_1_VGPU(v)		REG_FIELD(v, 17, 16)	/* 0: a physical GPU */
#define NV_PMC_BOOT_42			0x000a00
#define NV_PMC_BOOT_42_CHIP_ID(v)	REG_FIELD(v, 29, 20)
#define NV_PMC_BOOT_42_MAJOR(v)		REG_FIELD(v, 19, 16)
#define NV_PMC_BOOT_42_MINOR(v)		REG_FIELD(v, 15, 12)

/*
 * Design maxima, before floorsweeping. Sources: nvgpu hw_top_*.h, OGD dev_top, envytools
 * punits.xml.
 */
#define NV_PTOP_SCAL_NUM_GPCS		0x022430
#define NV_PTOP_SCAL_NUM_TPC_PER_GPC	0x022434
#define NV_PTOP_SCAL_NUM_FBPS		0x022438
#define NV_PTOP_SCAL_NUM_CES		0x022444
#define NV_PTOP_SCAL_NUM_LTC_PER_FBP	0x022450
#define NV_PTOP_SCAL_NUM_SLICES_PER_LTC	0x02245c
#define NV_PTOP_SCAL_NUM_PES_PER_GPC	0x022460
#define NV_PTOP_SCAL_VALUE(v)		REG_FIELD(v, 4, 0)

/*
 * Fuses. In each fuse word a set bit stands for a floorswept unit. The indices are physical
 * numbers.
 */
/*
 * On Fermi and Kepler, the fuse word must be ORed with a word that software writes. Sources:
 * envytools punits.xml, nouveau pm/gf100.c.
 */
#define NV_PTOP_FS_GPC_HW		0x022504
#define NV_PTOP_FS_GPC_SW		0x022584
#define NV_PTOP_FS_TPC_HW		0x022508	/* + 4 * gpc_phys */
#define NV_PTOP_FS_TPC_SW		0x022588
#define NV_PTOP_FS_FBP_HW		0x022548
#define NV_PTOP_FS_FBP_SW		0x0225c8
/* Maxwell to Turing. Source: nvgpu hw_fuse_{gm20b,gp10b,gp106,gv100,gv11b,tu104}.h. */
#define NV_FUSE_21_STATUS_OPT_GPC	0x021c1c
#define NV_FUSE_21_STATUS_OPT_TPC	0x021c38	/* + 4 * gpc_phys */
#define NV_FUSE_21_STATUS_OPT_FBP	0x021d38
#define NV_FUSE_21_STATUS_OPT_ROP_L2	0x021d70	/* + 4 * fbp */
/* Since Ampere. Sources: nvgpu hw_fuse_{ga100,ga10b,gb10b,gb20c}.h; H200. */
#define NV_FUSE_STATUS_OPT_GPC		0x820c1c
#define NV_FUSE_STATUS_OPT_TPC		0x820c38
#define NV_FUSE_STATUS_OPT_FBP		0x820d38
#define NV_FUSE_STATUS_OPT_ROP_L2	0x820d70
#define NV_FUSE_STATUS_OPT_CPC		0x822a00	/* + 4 * gpc_phys; nvgpu hw_fuse_gb10b.h */

/*
 * The physical GPC of each GPC, since Ampere. Source: nvgpu hw_smcarb_*.h; H200 (bit 31, valid, is
 * 0).
 */
#define NV_PSMCARB_PARTITION_GPC_MAP	0x00cc00	/* + 4 * gpc */
#define NV_PSMCARB_PARTITION_GPC_MAP_PHYSICAL(v) REG_FIELD(v, 20, 16)
#define NV_PSMCARB_PARTITION_GPC_MAP_UGPU(v) REG_FIELD(v, 24, 24)

/* The TPCs of each PES, for the computed order. Sources: nvgpu hw_gr_*.h, hw_proj_*.h. */
#define NV_PGRAPH_GPC0_GPM_PD_PES_TPC_ID_MASK 0x500c30	/* + 4 * pes + stride * gpc */
#define NV_PGRAPH_GPC_STRIDE		0x008000

/*
 * The work distributor has a map from each global TPC to its GPC. Sources: nvgpu hw_gr_*.h, OGD
 * pri_cwd, nouveau; H200.
 */
#define NV_PGRAPH_PRI_CWD_FS		0x405b00
#define NV_PGRAPH_PRI_CWD_FS_NUM_GPCS(v) REG_FIELD(v, 7, 0)
#define NV_PGRAPH_PRI_CWD_FS_NUM_TPCS(v) REG_FIELD(v, 15, 8)
/* The partitions of the loaded context: none, static or dynamic. Source: OGD pri_cwd. */
#define NV_PGRAPH_PRI_CWD_PARTITION_CTL	0x405b2c
#define NV_PGRAPH_PRI_CWD_CG		0x405bf0	/* clock gating; CG1 is the next word */
#define NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GM200 0x405b60	/* 16 words, 4 TPCs each */
#define NV_PGRAPH_PRI_CWD_SM_ID_GM200	0x405ba0
#define NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GH100 0x405000
#define NV_PGRAPH_PRI_CWD_SM_ID_GH100	0x405100
#define NV_PGRAPH_PRI_CWD_GPC_TPC_ID_TPC(v, j) (((v) >> (8 * (j))) & 0xf)
#define NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GPC(v, j) (((v) >> (8 * (j) + 4)) & 0xf)

/*
 * The table of engines. Sources: nvgpu hw_top_*.h, OGD dev_top, OGKM dev_top.h of ga100 and gb100.
 */
#define NV_PTOP_DEVICE_INFO		0x022700	/* Kepler to Turing, 64 words */
#define NV_PTOP_DEVICE_INFO_CFG		0x0224fc
#define NV_PTOP_DEVICE_INFO2		0x022800
/* GB100 has a second table of engines. Source: OGKM gb100/dev_top.h. */
#define NV_PTOP_DIE_STRIDE		    0x010000
#define NV_PTOP_DEVICE_INFO_CFG_VERSION(v) REG_FIELD(v, 3, 0)
#define NV_PTOP_DEVICE_INFO_CFG_NUM_ROWS(v) REG_FIELD(v, 31, 20)
#define NV_PTOP_DEVICE_INFO_CHAIN(v)	REG_FIELD(v, 31, 31)
/* In the first form, a field of each word gives the kind of the word. */
#define NV_PTOP_DEVICE_INFO_ENTRY(v)	REG_FIELD(v, 1, 0)
#define NV_PTOP_DEVICE_INFO_ENTRY_DATA	1
#define NV_PTOP_DEVICE_INFO_ENTRY_ENUM	2
#define NV_PTOP_DEVICE_INFO_ENTRY_TYPE	3
#define NV_PTOP_DEVICE_INFO_DATA_NOT_ENUM2(v) REG_FIELD(v, 30, 30)
#define NV_PTOP_DEVICE_INFO_DATA_INST(v) REG_FIELD(v, 29, 26)
#define NV_PTOP_DEVICE_INFO_DATA_PRI(v)	(REG_FIELD(v, 23, 12) << 12)
#define NV_PTOP_DEVICE_INFO_DATA_FAULT(v) REG_FIELD(v, 9, 3)
#define NV_PTOP_DEVICE_INFO_DATA_FAULT_VALID(v) REG_FIELD(v, 2, 2)
#define NV_PTOP_DEVICE_INFO_ENUM_ENGINE(v) REG_FIELD(v, 29, 26)
#define NV_PTOP_DEVICE_INFO_ENUM_RUNLIST(v) REG_FIELD(v, 24, 21)
#define NV_PTOP_DEVICE_INFO_ENUM_INTR(v) REG_FIELD(v, 19, 15)
#define NV_PTOP_DEVICE_INFO_ENUM_RESET(v) REG_FIELD(v, 13, 9)
#define NV_PTOP_DEVICE_INFO_ENUM_ENGINE_VALID(v) REG_FIELD(v, 5, 5)
#define NV_PTOP_DEVICE_INFO_ENUM_RUNLIST_VALID(v) REG_FIELD(v, 4, 4)
#define NV_PTOP_DEVICE_INFO_ENUM_INTR_VALID(v) REG_FIELD(v, 3, 3)
#define NV_PTOP_DEVICE_INFO_ENUM_RESET_VALID(v) REG_FIELD(v, 2, 2)
#define NV_PTOP_DEVICE_INFO_TYPE_ENUM(v) REG_FIELD(v, 30, 2)
/* In the second form, the position of a word in its chain determines the kind of the word. */
#define NV_PTOP_DEVICE_INFO2_0_FAULT(v)	REG_FIELD(v, 10, 0)
#define NV_PTOP_DEVICE_INFO2_0_INST(v)	REG_FIELD(v, 23, 16)
#define NV_PTOP_DEVICE_INFO2_0_TYPE(v)	REG_FIELD(v, 30, 24)
#define NV_PTOP_DEVICE_INFO2_1_RESET(v)	REG_FIELD(v, 7, 0)
#define NV_PTOP_DEVICE_INFO2_1_PRI(v)	(REG_FIELD(v, 25, 8) << 8)
#define NV_PTOP_DEVICE_INFO2_1_IS_ENGINE(v) REG_FIELD(v, 30, 30)
#define NV_PTOP_DEVICE_INFO2_2_RLENG(v)	REG_FIELD(v, 1, 0)
#define NV_PTOP_DEVICE_INFO2_2_RUNLIST_PRI(v) (REG_FIELD(v, 25, 10) << 10)

/* Copy engines. Sources: nvgpu hw_ce_ga100.h, OGKM dev_ce_base.h, nvdebug; H200. */
#define NV_CE_PCE_MAP			0x104028
#define NV_CE_PCE2LCE_GP100		0x10402c	/* one nibble for each PCE; 7: none */
#define NV_CE_PCE2LCE_GV100		0x104040	/* + 4 * pce */
#define NV_CE_PCE2LCE_GA100		0x104100
#define NV_CE_PCE2LCE_LCE(v)		REG_FIELD(v, 3, 0)
#define NV_CE_PCE2LCE_LCE_NONE		0xf
#define NV_CE_PCE2LCE_LCE_NONE_GP100	0x7
/* The word has one byte for each GRCE. Bit 3 means shared, and bits 2:0 are the LCE. */
#define NV_CE_GRCE_CONFIG_GP100		0x104034
#define NV_CE_GRCE_CONFIG_GV100		0x104034	/* + 4 * grce */
#define NV_CE_GRCE_CONFIG_GA100		0x1041c0
#define NV_CE_GRCE_CONFIG_SHARED_LCE(v)	REG_FIELD(v, 3, 0)
#define NV_CE_GRCE_CONFIG_SHARED_LCE_NONE 0xf

/*
 * The size of the local memory, in MiB, is magnitude << scale. Sources: nvgpu fb_*; H200. On the
 * H200, the wide field gives 143771 MiB.
 */
#define NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE 0x100ce0
#define NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_SCALE(v) REG_FIELD(v, 3, 0)
#define NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_MAG_GP100(v) REG_FIELD(v, 9, 4)
#define NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_MAG_GH100(v) REG_FIELD(v, 27, 4)
#define NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_ECC(v) REG_FIELD(v, 30, 30)

/*
 * The nanosecond timer. Its words are read in the order high, low, high. Sources: OGKM, nvgpu
 * hw_timer_*.h, nouveau; H200.
 */
#define NV_PTIMER_TIME_0		0x009400
#define NV_PTIMER_TIME_0_NSEC(v)	((v) & 0xffffffe0u)
#define NV_PTIMER_TIME_1		0x009410
#define NV_PTIMER_TIME_1_NSEC(v)	REG_FIELD(v, 28, 0)

/*
 * Registers of runlists, and words of channels, since Ampere. The offsets are relative to a base.
 * This base is in row 2 of the device table. Sources: OGD ga100 dev_runlist.ref.txt; H200.
 */
#define NV_RUNLIST_CHANNEL_CONFIG	0x004
#define NV_RUNLIST_CHANNEL_CONFIG_NUM_CHANNELS(v) (1u << REG_FIELD(v, 3, 0))
#define NV_RUNLIST_CHANNEL_CONFIG_CHRAM(v) ((v) & 0xfffffff0u)
#define NV_RUNLIST_DOORBELL_CONFIG	0x008
#define NV_RUNLIST_DOORBELL_CONFIG_ID(v) REG_FIELD(v, 31, 16)
#define NV_RUNLIST_SCHED_DISABLE	0x094
#define NV_RUNLIST_SCHED_DISABLE_RUNLIST(v) REG_FIELD(v, 0, 0)
#define NV_RUNLIST_INFO			0x108
#define NV_RUNLIST_INFO_ENG_IDLE(v)	REG_FIELD(v, 8, 8)
#define NV_RUNLIST_INFO_RUNLIST_IDLE(v)	REG_FIELD(v, 9, 9)
#define NV_RUNLIST_ENGINE_STATUS0(i)	(0x200 + 64 * (i))
#define NV_RUNLIST_ENGINE_STATUS0_TSGID(v) REG_FIELD(v, 11, 0)
#define NV_RUNLIST_ENGINE_STATUS0_CTX_STATUS(v) REG_FIELD(v, 15, 13)
#define NV_RUNLIST_ENGINE_STATUS0_NEXT_TSGID(v) REG_FIELD(v, 27, 16)
#define NV_RUNLIST_ENGINE_STATUS0_FAULTED(v) REG_FIELD(v, 30, 30)
#define NV_RUNLIST_ENGINE_STATUS0_BUSY(v) REG_FIELD(v, 31, 31)
#define NV_RUNLIST_ENGINE_STATUS_CHANNEL(i) (0x208 + 64 * (i))
#define NV_RUNLIST_ENGINE_STATUS_CHANNEL_ID(v) REG_FIELD(v, 11, 0)
#define NV_RUNLIST_ENGINE_STATUS_CHANNEL_VALID(v) REG_FIELD(v, 15, 15)
#define NV_RUNLIST_SIZE			0x300

/* The size of the whole BAR0. The whole BAR0 is mapped only to read runlists. */
#define NV_BAR0_SIZE			0x1000000
/*
 * The end of the registers that are not for runlists. If no runlist is read, BAR0 is mapped up to
 * this offset.
 */
#define NV_BAR0_USED			0x823000

#endif
