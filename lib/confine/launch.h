/* SPDX-License-Identifier: MIT */
/* Confines launches: puts the sets that apply into their TMDs. */
#ifndef GPUPART_LIB_CONFINE_LAUNCH_H
#define GPUPART_LIB_CONFINE_LAUNCH_H

#include "lib/driver/cuda.h"

/*
 * Starts observing launches on attached GPUs. May be called any number of times, also before
 * cuInit. -EOPNOTSUPP: the error sentence says what the driver offers instead.
 */
int launch_watch(struct gpupart *gp, const struct cuda_api *api);

/*
 * Size in bytes of the parameters of a launch whose TMD is built; measured on an H200 with
 * drivers 580.159 and 580.159.04. Another size must first be proven by probe launches:
 * self_check.c.
 */
#define LAUNCH_PARAMS_SIZE	88
#define LAUNCH_MIN_PARAMS_SIZE	40	/* slot 4 is the last that is needed */
#define LAUNCH_MAX_PARAMS_SIZE	512	/* much larger than any size that was seen */

/*
 * The size in bytes of launch parameters that may be edited: the measured one, or the one that
 * was accepted. Launches with another size are counted as unconfinable and not changed. The
 * caller of launch_params_accept() has proven that slot 4 holds a TMD.
 */
uint32_t launch_params_known(void);
void launch_params_accept(uint32_t size);
/* Whether parameters of this size could hold a TMD's address in slot 4. */
bool launch_params_possible(uint32_t size);

#endif
