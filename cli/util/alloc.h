/* SPDX-License-Identifier: MIT */
/* Allocates memory. If there is no memory, these functions end the command. */
#ifndef GPUPART_CLI_UTIL_ALLOC_H
#define GPUPART_CLI_UTIL_ALLOC_H

#include <stdbool.h>
#include <stdio.h>
#include <gpupart_manage.h>

/* Whether the command starts a program. For cmd_exit_status(); main() sets this variable. */
extern bool alloc_before_start;

/* Prints "gpupart CMD: no memory" and exits. */
void alloc_failed(void) __attribute__((noreturn));

/*
 * Allocates @nr * @size zeroed bytes. The caller frees the result of this function. The caller also
 * frees the results of the next three functions.
 */
void *alloc_zeroed(size_t nr, size_t size);
/* Changes the size of @old to @nr * @size bytes. The pointer @old may be NULL. */
void *alloc_resized(void *old, size_t nr, size_t size);
__attribute__((format(printf, 1, 2)))
char *alloc_text(const char *fmt, ...);

/*
 * Returns a copy of part @n of @list. The first part has the number 0. If there is no part @n,
 * returns NULL. The character @separator separates the parts.
 */
char *alloc_part(const char *list, char separator, unsigned int n);

/* Opens a file in memory. After alloc_file_close() the caller frees *text. */
FILE *alloc_file(char **text, size_t *len);
void alloc_file_close(FILE *file);

/*
 * The command's context of the library. It contains the last error message. The function main()
 * opens the context.
 */
extern struct gpupart *cmd_gp;

/* Opens another context of the library. */
struct gpupart *alloc_gpupart(void);

#endif
