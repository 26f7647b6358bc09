/* SPDX-License-Identifier: MIT */
/* Reads the state pages of other processes for use inside the library. */
#ifndef GPUPART_LIB_STATE_PROCESS_H
#define GPUPART_LIB_STATE_PROCESS_H

#include <gpupart_manage.h>
#include "lib/core/ctx.h"
#include "lib/state/state_page.h"

/*
 * Like gpupart_process_list(), for this user only; deletes the state pages of processes that
 * have ended.
 */
unsigned int process_list_own(struct gpupart_process *list, unsigned int max);

/* The size of a state page without its records, which only gpupart_records_open() reads. */
#define STATE_LISTED ((ssize_t)offsetof(struct state_page, records))

/*
 * Copies the published values of @gpu into @process, together with @limit. A NULL @limit means
 * that there is no limit.
 */
GPUPART_PRIVATE
void process_show(const struct state_gpu *gpu, const struct gpupart_tpcset *limit,
		  struct gpupart_process *process);
/* Does the same for a GPU in a state page of another version. */
GPUPART_PRIVATE
void process_show_other(struct gpupart_process *process, const struct shared_gpu *gpu);

/*
 * Reads the current state page of process @pid in the directory of @uid. Returns false if there
 * is none.
 */
GPUPART_PRIVATE
bool process_read(int pid, uid_t uid, struct gpupart_process *now);

#endif
