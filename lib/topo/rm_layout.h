/* SPDX-License-Identifier: MIT */
/*
 * Declares the numbers and structures of the queries to NVIDIA's resource manager (RM). This header
 * contains data only. The files rm_client.c and source_rm.c include it. The ioctls are in
 * rm_ioctl.h.
 *
 * The source is NVIDIA/open-gpu-kernel-modules, tags 515.43.04 to 595.45.04. "ctrl/" below stands
 * for its folder src/common/sdk/nvidia/inc/ctrl/. The headers of each branch were compiled to
 * compare the sizes of the structures.
 */
#ifndef GPUPART_LIB_TOPO_RM_LAYOUT_H
#define GPUPART_LIB_TOPO_RM_LAYOUT_H

#include <stddef.h>
#include "lib/topo/rm_ioctl.h"
#include "lib/topo/topology.h"

#define RM_MAX_GPUS	32		/* NV_MAX_DEVICES, nvlimits.h */
#define RM_INVALID_ID	0xffffffffu	/* NV0000_CTRL_GPU_INVALID_ID, ctrl0000gpu.h */

/* class/cl0000.h, cl0080.h, cl2080.h */
#define RM_CLASS_CLIENT		0x41
#define RM_CLASS_DEVICE		0x80
#define RM_CLASS_SUBDEVICE	0x2080

struct rm_device_params {
	uint32_t device_instance, client_share, target_client, target_device, flags, pad;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode, pad2;
};
_Static_assert(sizeof(struct rm_device_params) == 56, "NV0080_ALLOC_PARAMETERS");

struct rm_subdevice_params {
	uint32_t subdevice_instance;
};
_Static_assert(sizeof(struct rm_subdevice_params) == 4, "NV2080_ALLOC_PARAMETERS");

/* Controls of the client: ctrl/ctrl0000/ctrl0000gpu.h */
#define RM_GET_ATTACHED_IDS	0x201
#define RM_GET_ID_INFO_V2	0x205
#define RM_GET_PROBED_IDS	0x214
#define RM_ATTACH_IDS		0x215
#define RM_GET_PCI_INFO		0x21b

struct rm_attached_ids {
	uint32_t ids[RM_MAX_GPUS];
};
_Static_assert(sizeof(struct rm_attached_ids) == 128, "GET_ATTACHED_IDS");

/* In older branches, this struct ends before the flags. */
struct rm_probed_ids {
	uint32_t ids[RM_MAX_GPUS], excluded_ids[RM_MAX_GPUS], flags[RM_MAX_GPUS];
};
_Static_assert(sizeof(struct rm_probed_ids) == 384, "GET_PROBED_IDS");
_Static_assert(offsetof(struct rm_probed_ids, flags) == 256, "GET_PROBED_IDS without flags");

static const uint32_t probed_ids_sizes[] = {
	sizeof(struct rm_probed_ids),
	offsetof(struct rm_probed_ids, flags),
};

struct rm_attach_ids {
	uint32_t ids[RM_MAX_GPUS], failed_id;
};
_Static_assert(sizeof(struct rm_attach_ids) == 132, "ATTACH_IDS");

struct rm_id_info {
	uint32_t id, flags, device_instance, subdevice_instance;
	uint32_t sli_status, board_id, gpu_instance;
	int32_t numa_node;
};
_Static_assert(sizeof(struct rm_id_info) == 32, "GET_ID_INFO_V2");

struct rm_pci_info {
	uint32_t id, domain;
	uint16_t bus, slot;
};
_Static_assert(sizeof(struct rm_pci_info) == 12, "GET_PCI_INFO");

/*
 * This control of a device is declared in ctrl/ctrl0080/ctrl0080gpu.h. If the caller passes no
 * list, the control returns the number of classes.
 */
#define RM_GPU_GET_CLASSLIST	0x800201
#define RM_CLASS_COMPUTE	0xc0	/* every compute class since Fermi has this low byte, see
					 * class/cl90c0.h */
#define RM_MAX_CLASSES		512	/* lists have about 100 entries */

struct rm_class_list {
	uint32_t nr, pad;
	uint64_t list;
};
_Static_assert(sizeof(struct rm_class_list) == 16, "GPU_GET_CLASSLIST");

/* Controls of a subdevice: ctrl/ctrl2080/ctrl2080gpu.h */
#define RM_GPU_GET_INFO		0x20800101
#define RM_GPU_GET_INFO_V2	0x20800102
#define RM_GPU_GET_NAME_STRING	0x20800110
#define RM_GPU_GET_GID_INFO	0x2080014a
#define RM_GPU_INFO_SMC_MODE	0x2a

/* Only RM_REG_OP_READ_32 is used. Type 0 is a register of the whole GPU. */
#define RM_GPU_EXEC_REG_OPS	0x20800122
#define RM_REG_OP_READ_32	0

struct rm_reg_op {
	uint8_t op, type, status, quad;
	uint32_t group_mask, subgroup_mask, offset, value_hi, value, and_not_hi, and_not;
};
_Static_assert(sizeof(struct rm_reg_op) == 32, "GPU_REG_OP");

struct rm_reg_ops {
	uint32_t client, channel, non_transactional, reserved[2], nr;
	uint64_t ops, route[2];
};
_Static_assert(sizeof(struct rm_reg_ops) == 48, "GPU_EXEC_REG_OPS");

/* NVXXXX_CTRL_XXX_INFO, ctrl/ctrlxxxx.h */
struct rm_info {
	uint32_t index, data;
};

struct rm_gpu_info_list {
	uint32_t nr, pad;
	uint64_t list;
};
_Static_assert(sizeof(struct rm_gpu_info_list) == 16, "GPU_GET_INFO");

/*
 * This control is for drivers that do not have the list form. The length of its list is
 * NV2080_CTRL_GPU_INFO_MAX_LIST_SIZE, which is larger in newer drivers. The values below come from
 * published headers. The code tries them one after the other.
 */
struct rm_gpu_info_v2 {
	uint32_t nr;
	struct rm_info list[72];
};
static const uint8_t gpu_info_v2_places[] = { 72, 70, 65, 61 };
_Static_assert(sizeof(struct rm_gpu_info_v2) == 580, "GPU_GET_INFO_V2 of 72 places");

/*
 * The text is in a union that can hold 64 UTF-16 units. If the flags are 0, the driver returns
 * ASCII.
 */
struct rm_name {
	uint32_t flags;
	char ascii[128];
};
_Static_assert(sizeof(struct rm_name) == 132, "GPU_GET_NAME_STRING");

/* If the flags are 0, the driver returns text. */
struct rm_gid {
	uint32_t index, flags, length;
	char data[256];
};
_Static_assert(sizeof(struct rm_gid) == 268, "GPU_GET_GID_INFO");

/* ctrl/ctrl2080/ctrl2080mc.h; the architecture is shifted: 0x180 */
#define RM_MC_GET_ARCH_INFO	0x20801701

struct rm_arch {
	uint32_t architecture, implementation, revision;
	uint8_t sub_revision, pad[3];
};
_Static_assert(sizeof(struct rm_arch) == 16, "MC_GET_ARCH_INFO");

/* ctrl/ctrl2080/ctrl2080gr.h. Without MIG, a route of zeros is correct. */
#define RM_GR_GET_INFO			0x20801201
#define RM_GR_GET_GLOBAL_SM_ORDER	0x2080121b
#define RM_GR_GET_GPC_MASK		0x2080122a
#define RM_GR_GET_TPC_MASK		0x2080122b
#define RM_GR_INFO_NUM_GPCS		0x14	/* LITTER: number in the chip's design */
#define RM_GR_INFO_NUM_TPC_PER_GPC	0x17	/* LITTER */
#define RM_GR_INFO_SM_PER_TPC		0x20

struct rm_gr_route {
	uint32_t flags, pad;
	uint64_t route;
};
_Static_assert(sizeof(struct rm_gr_route) == 16, "GR_ROUTE_INFO");

struct rm_gr_info_list {
	uint32_t nr, pad;
	uint64_t list;
	struct rm_gr_route route;
};
_Static_assert(sizeof(struct rm_gr_info_list) == 32, "GR_GET_INFO");

struct rm_gpc_mask {
	struct rm_gr_route route;
	uint32_t present_gpcs, pad;	/* one bit for each physical GPC */
};
_Static_assert(sizeof(struct rm_gpc_mask) == 24, "GR_GET_GPC_MASK");

struct rm_tpc_mask {
	struct rm_gr_route route;
	uint32_t gpc_phys, present_tpcs; /* both numbers are physical while MIG is off */
};
_Static_assert(sizeof(struct rm_tpc_mask) == 24, "GR_GET_TPC_MASK");

/* The words of an entry of GR_GET_GLOBAL_SM_ORDER. NVIDIA added the words in this order. */
enum {
	SM_GPC, SM_LOCAL_TPC, SM_LOCAL_SM, SM_TPC, SM_VGPC, SM_TPC_IN_VGPC,
	SM_UGPU,
	SM_CPC, SM_VIRTUAL_TPC,
};

#define SM_ORDER_MAX_SMS 512

#define SM_ORDER_STRUCT(words)						\
struct rm_sm_order_##words {						\
	uint16_t entry[SM_ORDER_MAX_SMS][words];			\
	uint16_t nr_sms, nr_tpcs;					\
	struct rm_gr_route route __attribute__((aligned(8)));		\
}
SM_ORDER_STRUCT(6);	/* 515 to 570 */
SM_ORDER_STRUCT(7);	/* 575 */
SM_ORDER_STRUCT(9);	/* 580 to 595 */
_Static_assert(sizeof(struct rm_sm_order_6) == 6168, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(sizeof(struct rm_sm_order_7) == 7192, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(sizeof(struct rm_sm_order_9) == 9240, "GR_GET_GLOBAL_SM_ORDER");

/*
 * The code tries the forms in this order. Each driver accepts only one size, so the code need not
 * know the version of the driver.
 */
static const struct sm_order_form {
	uint32_t size;
	unsigned int nr_sms_at;	/* index of the 16-bit word with the number of SMs; the next word
				 * has the number of TPCs */
	unsigned int entry_words;
} sm_order_forms[] = {
#define SM_ORDER_FORM(words)							\
	{ sizeof(struct rm_sm_order_##words),					\
	  offsetof(struct rm_sm_order_##words, nr_sms) / 2, words }
	SM_ORDER_FORM(9), SM_ORDER_FORM(7), SM_ORDER_FORM(6),
};

#define NR_SM_ORDER_FORMS (sizeof(sm_order_forms) / sizeof(sm_order_forms[0]))

/* ctrl/ctrl2080/ctrl2080grmgr.h */
#define RM_GRMGR_GET_GR_FS_INFO		0x20803801
#define RM_FS_CHIPLET_GPC_MAP		2	/* input: logical GPC; output: physical GPC */
#define RM_FS_MAX_QUERIES		96

struct rm_fs_query {
	uint16_t type, pad;
	uint32_t status;
	uint32_t gpc, gpc_phys, rest;
};
_Static_assert(sizeof(struct rm_fs_query) == 20, "GRMGR_GET_GR_FS_INFO query");

struct rm_fs_info {
	uint16_t nr, pad[3];
	struct rm_fs_query query[RM_FS_MAX_QUERIES];
};
_Static_assert(sizeof(struct rm_fs_info) == 1928, "GRMGR_GET_GR_FS_INFO");

#endif
