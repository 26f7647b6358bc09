/* SPDX-License-Identifier: MIT */
/* Declares the overview that gpupart prints if the user gives no command. */
#ifndef GPUPART_CLI_OVERVIEW_H
#define GPUPART_CLI_OVERVIEW_H

/* Prints the GPUs, the programs that run, and the next steps. Returns 0 or an error. */
int overview(void);

#endif
