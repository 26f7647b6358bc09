/* SPDX-License-Identifier: MIT */
/* Runs a program inside a set as its parent, and reports at its end what was not confined. */
#ifndef GPUPART_CLI_START_RUN_PARENT_H
#define GPUPART_CLI_START_RUN_PARENT_H

#include "cli/start/run.h"

/* run_confine() and run_become() in a child of this process: an error, or CMD_ENDED. */
int run_as_parent(struct args *args, const struct run_wishes *wishes);

#endif
