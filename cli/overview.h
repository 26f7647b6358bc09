/* SPDX-License-Identifier: MIT */
/* gpupart without a command: an overview of this machine. */
#ifndef GPUPART_CLI_OVERVIEW_H
#define GPUPART_CLI_OVERVIEW_H

/* Prints the GPUs, the programs that run, and the next steps. Returns 0 or an error. */
int overview(void);

#endif
