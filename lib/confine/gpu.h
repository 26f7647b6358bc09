/* SPDX-License-Identifier: MIT */
/* Whether an attached GPU takes a set. */
#ifndef GPUPART_LIB_CONFINE_GPU_H
#define GPUPART_LIB_CONFINE_GPU_H

#include "lib/confine/scope.h"

/* 0 if @gpu's map is trusted and @set (NULL: none) is one of its TPCs; as gpupart_set_check(). */
int gpu_may_set(struct gpupart *gp, const struct gpupart_gpu *gpu,
		const struct gpupart_tpcset *set);

#endif
