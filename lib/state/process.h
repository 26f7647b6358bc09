/* SPDX-License-Identifier: MIT */
/* Other processes' blocks: what the library itself needs of them. */
#ifndef GPUPART_LIB_STATE_PROCESS_H
#define GPUPART_LIB_STATE_PROCESS_H

#include <gpupart_manage.h>
#include "lib/core/ctx.h"
#include "lib/state/process_block.h"

/* As gpupart_process_list(), of this user alone; takes away the blocks of dead ones. */
unsigned int process_list_own(struct gpupart_process *list, unsigned int max);

/* Of a block: its records are for those who open them. */
#define CONTROL_LISTED ((ssize_t)offsetof(struct control_block, records))

/* Puts what @gpu shows, with @limit (NULL: none), into @process. */
GPUPART_PRIVATE
void process_show(const struct control_gpu *gpu, const struct gpupart_tpcset *limit,
		  struct gpupart_process *process);
/* The same of another version's GPU. */
GPUPART_PRIVATE
void process_show_other(struct gpupart_process *process, const struct shared_gpu *gpu);

/* What process @pid shows of itself in the folder of @uid now: its numbers name the file. */
GPUPART_PRIVATE
bool process_read(int pid, uid_t uid, struct gpupart_process *now);

#endif
