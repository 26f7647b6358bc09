/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The provider of integrated GPUs; see platform.c. */
#ifndef GPUPART_KMOD_PLATFORM_H
#define GPUPART_KMOD_PLATFORM_H

int platform_gpus_init(void);
void platform_gpus_fini(void);

#endif
