/* SPDX-License-Identifier: MIT */
/* The progress in the state page of a process. */
#ifndef GPUPART_LIB_STATE_PROGRESS_H
#define GPUPART_LIB_STATE_PROGRESS_H

#include "lib/core/ctx.h"
#include "lib/private.h"

struct control_block;

GPUPART_PRIVATE
void progress_read(const struct control_block *block, struct gpupart_progress *progress);

#endif
