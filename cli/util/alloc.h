/* SPDX-License-Identifier: MIT */
/* Memory allocation of the command. If there is no memory, these functions end the command. */
#ifndef GPUPART_CLI_UTIL_ALLOC_H
#define GPUPART_CLI_UTIL_ALLOC_H

#include <stdbool.h>
#include <stdio.h>
#include <gpupart_manage.h>

/* True if the command starts a program. main() sets this value for cmd_exit_status(). */
extern bool alloc_before_start;

/* Prints "gpupart CMD: no memory" and exits. */
void alloc_failed(void) __attribute__((noreturn));

/*
 * Allocates @nr times @size zeroed bytes. The caller frees the results of this function and of
 * the three functions below it.
 */
void *alloc_zeroed(size_t nr, size_t size);
/* Resizes @old, which may be NULL, to @nr times @size bytes. */
void *alloc_resized(void *old, size_t nr, size_t size);
__attribute__((format(printf, 1, 2)))
char *alloc_text(const char *fmt, ...);

/*
 * Returns a copy of part @n of @list, or NULL after the last part. @separator separates the parts.
 * The first part has the number 0.
 */
char *alloc_part(const char *list, char separator, unsigned int n);

/* Opens a file in memory. After alloc_file_close() the caller frees *text. */
FILE *alloc_file(char **text, size_t *len);
void alloc_file_close(FILE *file);

/*
 * The command's context of the library, which contains the text of the last error. main() opens it.
 */
extern struct gpupart *cmd_gp;

/* Opens another context of the library. */
struct gpupart *alloc_gpupart(void);

#endif
