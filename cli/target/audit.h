/* SPDX-License-Identifier: MIT */
/*
 * The audit library for the loader. With it NVIDIA's management library reports its quota to a
 * program of a tenant.
 */
#ifndef GPUPART_CLI_TARGET_AUDIT_H
#define GPUPART_CLI_TARGET_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

/* The effect on a program of a tenant without the library. */
#define AUDIT_WHOLE "programs that use NVML, such as nvidia-smi, see the whole GPU's memory"

/*
 * Appends the library to LD_AUDIT for programs that this process starts. If that fails, prints the
 * effect.
 */
void audit_join(void);

/* Tries with a program whether the loader loads the library at @path; describes it in @text. */
bool audit_works(const char *path, char *text, size_t len);

#endif
