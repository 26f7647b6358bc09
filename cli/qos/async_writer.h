/* SPDX-License-Identifier: MIT */
/*
 * A file that takes what is written at once, and passes it on when whoever reads it does: who
 * has to go on in time does not wait for a stopped terminal or a pipe that nobody reads.
 */
#ifndef GPUPART_CLI_QOS_ASYNC_WRITER_H
#define GPUPART_CLI_QOS_ASYNC_WRITER_H

#include <stdbool.h>
#include <stdio.h>

#define PUMP_MOST	(16 << 20)	/* bytes that wait; more is a write that failed (EAGAIN) */

struct pump;

/* To @fd, which stays the caller's. NULL: no memory or no thread. No fork() from here on. */
struct pump *pump_open(int fd);
FILE *pump_file(struct pump *pump);
/* Something was not taken yet. */
bool pump_waits(struct pump *pump);
/*
 * Waits while somebody reads, and 2 s for nobody. 0, or a negative errno: not all of it was
 * passed on.
 */
int pump_close(struct pump *pump);

#endif
