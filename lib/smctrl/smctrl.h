/* SPDX-License-Identifier: MIT */
/* What the two files of libsmctrl share. Knows no mask. */
#ifndef GPUPART_LIB_SMCTRL_SMCTRL_H
#define GPUPART_LIB_SMCTRL_SMCTRL_H

#include <stdbool.h>

/* GPUPART_DISABLE=1: the program is to run as if nothing of us were there. */
bool smctrl_stands_aside(void);

/*
 * From inside of cuInit, where no driver function may be called yet: LIBSMCTRL_MASK, on
 * all GPUs whose mask bits were checked before.
 */
void smctrl_cap_early(void);

#endif
