/* SPDX-License-Identifier: MIT */
/* Calls a function in a child process, because the function may hang or crash. */
#ifndef GPUPART_CLI_UTIL_CHILD_H
#define GPUPART_CLI_UTIL_CHILD_H

#include <stddef.h>

/*
 * Calls @fn in a forked child and copies the @len bytes of its @result to this process. The child's
 * stdout is stderr. Returns 0, or -errno with a reason in @why. -ETIMEDOUT means that the child was
 * killed after @seconds. -ECHILD means that the child died. -EAGAIN means that fork() failed.
 */
int child_call(void (*fn)(void *arg, void *result), void *arg, void *result, size_t len,
	       unsigned int seconds, char *why, size_t why_len);

#endif
