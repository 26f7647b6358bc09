/* SPDX-License-Identifier: MIT */
/* Calls a function in a child process. The function may hang or crash. */
#ifndef GPUPART_CLI_UTIL_CHILD_H
#define GPUPART_CLI_UTIL_CHILD_H

#include <stddef.h>

/*
 * Calls @fn in a forked child. Copies the @len bytes of @result from the child to this process. The
 * child's stdout is stderr. After an error, writes a reason to @why. After @seconds seconds, kills
 * the child and returns -ETIMEDOUT. If the child died, returns -ECHILD. If fork() failed, returns
 * -EAGAIN. Otherwise returns 0.
 */
int child_call(void (*fn)(void *arg, void *result), void *arg, void *result, size_t len,
	       unsigned int seconds, char *why, size_t why_len);

#endif
