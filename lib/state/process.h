/* SPDX-License-Identifier: MIT */
/* Declares the library's private functions that read the state pages of other processes. */
#ifndef GPUPART_LIB_STATE_PROCESS_H
#define GPUPART_LIB_STATE_PROCESS_H

#include <gpupart_manage.h>
#include "lib/core/ctx.h"
#include "lib/state/state_page.h"

/*
 * Does the same as gpupart_process_list(), but lists only the processes of this user. Also deletes
 * the state pages of processes that have ended.
 */
unsigned int process_list_own(struct gpupart_process *list, unsigned int max);

/*
 * The size of the part of a state page before the records. Only gpupart_records_open() reads the
 * records.
 */
#define STATE_LISTED ((ssize_t)offsetof(struct state_page, records))

/*
 * Copies the published values of @gpu and the limit @limit into @process. If @limit is NULL,
 * @process keeps its limit.
 */
GPUPART_PRIVATE
void process_show(const struct state_gpu *gpu, const struct gpupart_tpcset *limit,
		  struct gpupart_process *process);
/* Does the same as process_show(), but for a GPU in a state page of another version. */
GPUPART_PRIVATE
void process_show_other(struct gpupart_process *process, const struct shared_gpu *gpu);

/*
 * Reads the current state page of process @pid in the directory of @uid. If there is no such page,
 * returns false.
 */
GPUPART_PRIVATE
bool process_read(int pid, uid_t uid, struct gpupart_process *now);

#endif
