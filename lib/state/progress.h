/* SPDX-License-Identifier: MIT */
/* Reads the progress in the state page of a process. */
#ifndef GPUPART_LIB_STATE_PROGRESS_H
#define GPUPART_LIB_STATE_PROGRESS_H

#include "lib/core/ctx.h"
#include "lib/private.h"

struct state_page;

GPUPART_PRIVATE
void progress_read(const struct state_page *page, struct gpupart_progress *progress);

#endif
