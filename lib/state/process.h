/* SPDX-License-Identifier: MIT */
/* Other processes' blocks: what the library itself needs of them. */
#ifndef GPUPART_LIB_STATE_PROCESS_H
#define GPUPART_LIB_STATE_PROCESS_H

#include <gpupart_manage.h>

/* As gpupart_process_list(), of this user alone; takes away the blocks of dead ones. */
unsigned int process_list_own(struct gpupart_process *list, unsigned int max);

struct shared_gpu;

/* The GPU of a process of another version, as its header has it. */
void process_copy_gpu(struct gpupart_process *process, const struct shared_gpu *gpu);

/* @room bytes of another process into @len: printable ASCII or a question mark, and an end. */
void process_copy_text(char *to, size_t len, const char *from, size_t room);

#endif
