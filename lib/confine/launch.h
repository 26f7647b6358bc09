/* SPDX-License-Identifier: MIT */
/* What is done at launches: the sets that apply are put into their TMDs. */
#ifndef GPUPART_LIB_CONFINE_LAUNCH_H
#define GPUPART_LIB_CONFINE_LAUNCH_H

#include "lib/driver/cuda.h"

/*
 * From now on launches on attached GPUs are looked at; any number of times. Works before cuInit.
 * -EOPNOTSUPP with what the driver offered instead.
 */
int launch_watch(struct gpupart *gp, const struct cuda_api *api);

/*
 * Of the parameters of a built TMD, in bytes; H200, drivers 580.159 and 580.159.04. Another
 * size is proven by launches of our own first: self_check.c.
 */
#define LAUNCH_PARAMS_SIZE	88
#define LAUNCH_MIN_PARAMS_SIZE	40	/* slot 4 is the last that is needed */
#define LAUNCH_MAX_PARAMS_SIZE	512	/* far beyond any that was seen */

/*
 * The size in bytes of a launch's parameters that may be edited: the measured one, else the one
 * that was accepted. Launches with another are counted as unconfinable, and not touched. The
 * caller of launch_params_accept() has shown that slot 4 is a TMD.
 */
uint32_t launch_params_known(void);
void launch_params_accept(uint32_t size);
/* Whether parameters of this size could hold a TMD's address in slot 4. */
bool launch_params_possible(uint32_t size);

#endif
