/* SPDX-License-Identifier: MIT */
/* gpupart without a command. */
#ifndef GPUPART_CLI_OVERVIEW_H
#define GPUPART_CLI_OVERVIEW_H

/* Prints what is here and what to do next: 0, or an error. */
int overview(void);

#endif
