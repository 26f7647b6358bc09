/* SPDX-License-Identifier: MIT */
/* Something that may hang or crash, done in a child of its own. */
#ifndef GPUPART_CLI_UTIL_CHILD_H
#define GPUPART_CLI_UTIL_CHILD_H

#include <stddef.h>

/*
 * Calls @fn in a forked child and hands back the @len bytes it put into @result.
 * What the child prints goes to stderr. 0, or -errno with a sentence in @why:
 * -ETIMEDOUT (it was killed after @seconds), -ECHILD (it died), -EAGAIN (no fork).
 */
int child_call(void (*fn)(void *arg, void *result), void *arg, void *result, size_t len,
	       unsigned int seconds, char *why, size_t why_len);

#endif
