/* SPDX-License-Identifier: MIT */
/* Confines each launch by putting the set that applies into the launch's TMD. */
#ifndef GPUPART_LIB_CONFINE_LAUNCH_H
#define GPUPART_LIB_CONFINE_LAUNCH_H

#include "lib/driver/cuda.h"

/*
 * Starts observing launches on attached GPUs. The function may be called any number of times,
 * even before cuInit. -EOPNOTSUPP: the driver does not report launches as expected. The error
 * sentence describes the difference.
 */
int launch_watch(struct gpupart *gp, const struct cuda_api *api);

/*
 * The size in bytes of the launch parameters, as measured on an H200 with drivers 580.159 and
 * 580.159.04. If a driver uses another size, probe launches must first prove this size. See
 * self_check.c.
 */
#define LAUNCH_PARAMS_SIZE	88
#define LAUNCH_MIN_PARAMS_SIZE	40	/* the library reads no slot after slot 4 */
#define LAUNCH_MAX_PARAMS_SIZE	512	/* much larger than the size in any known driver */

/*
 * launch_params_known() returns the size in bytes of the launch parameters that the library may
 * edit. This is the measured size, or the size that launch_params_accept() accepted. If the
 * parameters of a launch have any other size, the library does not change the launch and counts
 * it as unconfinable. The caller of launch_params_accept() must have proven that slot 4 contains
 * the address of a TMD.
 */
uint32_t launch_params_known(void);
void launch_params_accept(uint32_t size);
/* Returns true if parameters of @size bytes could contain the address of a TMD in slot 4. */
bool launch_params_possible(uint32_t size);

#endif
