/* SPDX-License-Identifier: MIT */
/*
 * Declares the ioctls of NVIDIA's resource manager (RM). Also declares one control that gpupart
 * never issues. Other programs issue this control, and gpupart reads the answers. This header
 * contains data only.
 *
 * The source is NVIDIA/open-gpu-kernel-modules, tags 515.43.04 to 595.45.04. Comments mention other
 * sources.
 */
#ifndef GPUPART_LIB_TOPO_RM_IOCTL_H
#define GPUPART_LIB_TOPO_RM_IOCTL_H

#include <stdint.h>
#include <sys/ioctl.h>

/*
 * NVOS00, NVOS54 and NVOS21 come from src/common/sdk/nvidia/inc/nvos.h and are the same on every
 * branch.
 */
struct rm_free {
	uint32_t client, parent, object, status;
};

struct rm_control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_size, status;
};

/*
 * Drivers before 535 have no params_size. In their struct, the status is at the offset of
 * params_size. The last word of their struct is padding, which the driver returns unchanged. Both
 * forms are in gVisor, pkg/abi/nvgpu.
 */
struct rm_alloc {
	uint32_t client, parent, object, class_id;
	uint64_t params;
	uint32_t params_size_or_status, status;
};
#define RM_ALLOC_UNTOUCHED 0xffffffffu	/* no status has this value, because a status has 16 bits,
					 * see nvstatuscodes.h */

/* Numbers: src/nvidia/arch/nvalloc/unix/include/nv_escape.h */
#define RM_IOCTL_FREE		_IOWR('F', 0x29, struct rm_free)
#define RM_IOCTL_CONTROL	_IOWR('F', 0x2a, struct rm_control)
#define RM_IOCTL_ALLOC		_IOWR('F', 0x2b, struct rm_alloc)

_Static_assert(sizeof(struct rm_free) == 16, "NVOS00");
_Static_assert(sizeof(struct rm_control) == 32, "NVOS54");
_Static_assert(sizeof(struct rm_alloc) == 32, "NVOS21");

/*
 * NVOS54_FLAGS_FINN_SERIALIZED. With this flag, the parameters are serialised instead of being a
 * struct.
 */
#define RM_CONTROL_SERIALIZED	0x4u

/*
 * This control lists the processes that use a subdevice's GPU. Its struct is
 * NV2080_CTRL_GPU_GET_PIDS_PARAMS in ctrl/ctrl2080/ctrl2080gpu.h. The pids belong to the caller's
 * pid namespace. If the driver does not support namespaces, the pids belong to the first pid
 * namespace.
 */
#define RM_GPU_GET_PIDS		0x2080018d
#define RM_GPU_PIDS_MAX		950
#define RM_GPU_PIDS_OF_CLASS	0	/* idType; 1: id of a virtual machine */

struct rm_gpu_pids {
	uint32_t id_type, id, nr, pids[RM_GPU_PIDS_MAX];
};
_Static_assert(sizeof(struct rm_gpu_pids) == 3812, "GPU_GET_PIDS");

#endif
