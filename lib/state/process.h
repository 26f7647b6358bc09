/* SPDX-License-Identifier: MIT */
/* Other processes' blocks: what the library itself needs of them. */
#ifndef GPUPART_LIB_STATE_PROCESS_H
#define GPUPART_LIB_STATE_PROCESS_H

#include <gpupart_manage.h>

/* As gpupart_process_list(), of this user alone; takes away the blocks of dead ones. */
unsigned int process_list_own(struct gpupart_process *list, unsigned int max);

#endif
