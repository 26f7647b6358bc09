/* SPDX-License-Identifier: MIT */
/* gpupart ps --engines: shows for each TSG the share of an engine's time that the TSG uses. */
#ifndef GPUPART_CLI_TARGET_ENGINES_H
#define GPUPART_CLI_TARGET_ENGINES_H

struct args;

/* Takes samples for @seconds and writes them as @args requires. Returns 0 or an error. */
int engines_show(struct args *args, double seconds);

#endif
