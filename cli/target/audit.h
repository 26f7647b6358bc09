/* SPDX-License-Identifier: MIT */
/*
 * The audit library for the loader. With this library, NVIDIA's management library reports the
 * tenant's quota to a program of a tenant.
 */
#ifndef GPUPART_CLI_TARGET_AUDIT_H
#define GPUPART_CLI_TARGET_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

/* The text that describes the consequence of a missing library for a tenant's program. */
#define AUDIT_WHOLE "programs that use NVML, such as nvidia-smi, see the whole GPU's memory"

/*
 * Appends the library to LD_AUDIT for programs that this process starts. If this fails, prints the
 * consequence.
 */
void audit_join(void);

/*
 * Tests whether the loader loads the library at @path into a program. Describes the library in
 * @text.
 */
bool audit_works(const char *path, char *text, size_t len);

#endif
