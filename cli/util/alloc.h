/* SPDX-License-Identifier: MIT */
/*
 * Memory of the command. Without memory each of these functions ends it: they do not return.
 */
#ifndef GPUPART_CLI_UTIL_ALLOC_H
#define GPUPART_CLI_UTIL_ALLOC_H

#include <stdbool.h>
#include <stdio.h>
#include <gpupart_manage.h>

/* Whether the command that runs starts a program, as cmd_exit_status() has it: main() says so. */
extern bool alloc_before_start;

/* "gpupart CMD: no memory", and its exit status. */
void alloc_failed(void) __attribute__((noreturn));

/* @nr times @size bytes, zeroed. The caller frees what these four return. */
void *alloc_zeroed(size_t nr, size_t size);
/* @old (NULL: none) with room for @nr times @size bytes. */
void *alloc_resized(void *old, size_t nr, size_t size);
__attribute__((format(printf, 1, 2)))
char *alloc_text(const char *fmt, ...);

/* Part @n, from 0, of @list, whose parts @separator parts; NULL after the last. */
char *alloc_part(const char *list, char separator, unsigned int n);

/* A file whose content is in *text, which the caller frees, after alloc_file_close(). */
FILE *alloc_file(char **text, size_t *len);
void alloc_file_close(FILE *file);

/* The command's context of the library, which holds the last error's text. main() opens it. */
extern struct gpupart *cmd_gp;

/* Another one, which only memory can keep from opening. */
struct gpupart *alloc_gpupart(void);

#endif
