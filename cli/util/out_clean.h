/* SPDX-License-Identifier: MIT */
/* Makes text of any bytes safe for a terminal. */
#ifndef GPUPART_CLI_UTIL_OUT_CLEAN_H
#define GPUPART_CLI_UTIL_OUT_CLEAN_H

/*
 * Puts a '?' in the place of every byte of @text that is a control character, a part of
 * one, or no UTF-8. Returns @text.
 */
char *out_clean(char *text);

#endif
