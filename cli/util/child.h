/* SPDX-License-Identifier: MIT */
/* Calls a function that may hang or crash in a child process. */
#ifndef GPUPART_CLI_UTIL_CHILD_H
#define GPUPART_CLI_UTIL_CHILD_H

#include <stddef.h>

/*
 * Calls @fn in a forked child and copies the @len bytes of its @result back. The child's stdout is
 * stderr. Returns 0, or -errno with a reason in @why: -ETIMEDOUT (killed after @seconds), -ECHILD
 * (the child died), -EAGAIN (fork failed).
 */
int child_call(void (*fn)(void *arg, void *result), void *arg, void *result, size_t len,
	       unsigned int seconds, char *why, size_t why_len);

#endif
