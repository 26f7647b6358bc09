/* SPDX-License-Identifier: MIT */
/*
 * Prepares the use of the audit library. If the loader loads this library into a tenant's program,
 * NVIDIA's management library reports the tenant's quota to the program.
 */
#ifndef GPUPART_CLI_TARGET_AUDIT_H
#define GPUPART_CLI_TARGET_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The message text for a missing library. The text describes the consequence for a tenant's
 * program.
 */
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
