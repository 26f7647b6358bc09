/* SPDX-License-Identifier: MIT */
/* The part overhead: its table, and what others than gpupart take. */
#ifndef GPUPART_CLI_BENCH_OVERHEAD_OTHERS_H
#define GPUPART_CLI_BENCH_OVERHEAD_OTHERS_H

#include "cli/bench/bench.h"

#define OVERHEAD_TABLE "Sets, and what else there is"

#define OUTSIDE_ROW "until the obeying launch is made"
#define GREEN_ROW "a new green context of 16 SMs"
#define PROCESS_ROW "a new process until its first kernel is done"
#define MPS_ROW "MPS ended, started anew, a first client's kernel done"

/* What others take, in children of their own; -EOPNOTSUPP where there is none here. */
int overhead_green(struct bench *b, json_t *report);
int overhead_mps(struct bench *b, json_t *report);

#endif
