/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The contract between gpupart.ko and user space, and the limits that both
 * sides size their arrays by.
 */
#ifndef _UAPI_LINUX_GPUPART_H
#define _UAPI_LINUX_GPUPART_H

/*
 * NVIDIA's resource manager counts up to 32 GPCs (NV2080 internal limits, MAX_GPC);
 * a TMD has at most 8 mask words (V04_01, V05_00).
 */
#define GPUPART_MAX_GPCS	32
#define GPUPART_MAX_TPCS	256
#define GPUPART_MAX_TMD_BITS	256

#endif /* _UAPI_LINUX_GPUPART_H */
