/* SPDX-License-Identifier: MIT */
/* gpupart ps --engines: the share of each engine's time by TSG. */
#ifndef GPUPART_CLI_TARGET_ENGINES_H
#define GPUPART_CLI_TARGET_ENGINES_H

struct args;

/* Samples for @seconds and writes as @args says: 0, or an error. */
int engines_show(struct args *args, double seconds);

#endif
