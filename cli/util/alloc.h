/* SPDX-License-Identifier: MIT */
/* Memory allocation of the command. If there is no memory, these functions end the command. */
#ifndef GPUPART_CLI_UTIL_ALLOC_H
#define GPUPART_CLI_UTIL_ALLOC_H

#include <stdbool.h>
#include <stdio.h>
#include <gpupart_manage.h>

/* Whether the command starts a program, for cmd_exit_status(). main() sets it. */
extern bool alloc_before_start;

/* Prints "gpupart CMD: no memory" and exits. */
void alloc_failed(void) __attribute__((noreturn));

/* Allocates @nr times @size bytes, zeroed. The caller frees the results of these four. */
void *alloc_zeroed(size_t nr, size_t size);
/* Resizes @old, which may be NULL, to @nr times @size bytes. */
void *alloc_resized(void *old, size_t nr, size_t size);
__attribute__((format(printf, 1, 2)))
char *alloc_text(const char *fmt, ...);

/* A copy of part @n, from 0, of @list, which is split at @separator; NULL after the last part. */
char *alloc_part(const char *list, char separator, unsigned int n);

/* Opens a file in memory. After alloc_file_close() the caller frees *text. */
FILE *alloc_file(char **text, size_t *len);
void alloc_file_close(FILE *file);

/* The command's context of the library, which holds the last error's text. main() opens it. */
extern struct gpupart *cmd_gp;

/* Opens another context. */
struct gpupart *alloc_gpupart(void);

#endif
