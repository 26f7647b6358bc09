/* SPDX-License-Identifier: MIT */
/*
 * Confines each launch. This code writes the set that applies to a launch into the launch's TMD.
 */
#ifndef GPUPART_LIB_CONFINE_LAUNCH_H
#define GPUPART_LIB_CONFINE_LAUNCH_H

#include "lib/driver/cuda.h"

/*
 * Starts observing launches on attached GPUs. The function may be called several times, and
 * before cuInit. If the driver reports launches in an unexpected way, the function returns
 * -EOPNOTSUPP. The error message then describes the difference.
 */
int launch_watch(struct gpupart *gp, const struct cuda_api *api);

/*
 * The size of the launch parameters in bytes. This size was measured on an H200 with drivers
 * 580.159 and 580.159.04. If a driver uses another size, probe launches must first prove that
 * size. See self_check.c.
 */
#define LAUNCH_PARAMS_SIZE	88
#define LAUNCH_MIN_PARAMS_SIZE	40	/* the library reads no slot after slot 4 */
#define LAUNCH_MAX_PARAMS_SIZE	512	/* much larger than the size in any known driver */

/*
 * The function launch_params_known() returns a size of launch parameters in bytes. This is the
 * measured size, or the size that launch_params_accept() accepted. If the parameters of a launch
 * have another size, the library does not change the launch and counts it as unconfinable. Before
 * a call of launch_params_accept(), the caller must prove that slot 4 contains the address of a
 * TMD.
 */
uint32_t launch_params_known(void);
void launch_params_accept(uint32_t size);
/*
 * Returns true if @size is a possible size of launch parameters. Slot 4 must fit into this size.
 */
bool launch_params_possible(uint32_t size);

#endif
