/* SPDX-License-Identifier: MIT */
/* Checks that an attached GPU can apply a set. */
#ifndef GPUPART_LIB_CONFINE_GPU_H
#define GPUPART_LIB_CONFINE_GPU_H

#include "lib/confine/scope.h"

/*
 * Returns 0 if the map of @gpu is trusted and @set is valid. NULL is also a valid set. Otherwise
 * returns the same error as gpupart_set_check().
 */
int gpu_may_set(struct gpupart *gp, const struct gpupart_gpu *gpu,
		const struct gpupart_tpcset *set);

#endif
