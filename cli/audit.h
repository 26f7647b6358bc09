/* SPDX-License-Identifier: MIT */
/*
 * The loader's audit library, by which a program of a tenant is told its share by NVIDIA's
 * management library. Knows no tenant.
 */
#ifndef GPUPART_CLI_AUDIT_H
#define GPUPART_CLI_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Names it in LD_AUDIT for what is started from here, after another tool's libraries. Where
 * that cannot be, a note says what the program will see.
 */
void audit_join(const char *cmd);

/*
 * Whether the loader takes it here, tried with a program: then @text is its path. Else @text
 * says why not, and @advice what to do.
 */
bool audit_works(char *text, size_t len, const char **advice);

#endif
