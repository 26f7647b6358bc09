/* SPDX-License-Identifier: MIT */
/* Other processes' blocks: what the library itself needs of them. */
#ifndef GPUPART_LIB_STATE_PROCESS_H
#define GPUPART_LIB_STATE_PROCESS_H

#include <gpupart_manage.h>
#include "lib/core/ctx.h"

/* As gpupart_process_list(), of this user alone; takes away the blocks of dead ones. */
unsigned int process_list_own(struct gpupart_process *list, unsigned int max);

/* What process @pid shows of itself in the folder of @uid now: its numbers name the file. */
GPUPART_PRIVATE
bool process_read(int pid, uid_t uid, struct gpupart_process *now);

#endif
