/* SPDX-License-Identifier: MIT */
/*
 * The loader's audit library, by which a program of a tenant is told its share by NVIDIA's
 * management library.
 */
#ifndef GPUPART_CLI_TARGET_AUDIT_H
#define GPUPART_CLI_TARGET_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

/* What a program in a tenant sees without the library. */
#define AUDIT_WHOLE "what asks NVML there, as nvidia-smi does, is told of the whole GPU"

/*
 * Names it in LD_AUDIT for what is started from here, after another tool's libraries. Where
 * that cannot be, a note says what the program will see.
 */
void audit_join(void);

/* Whether the loader takes the library at @path here, tried with a program; @text says so. */
bool audit_works(const char *path, char *text, size_t len);

#endif
