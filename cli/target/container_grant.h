/* SPDX-License-Identifier: MIT */
/*
 * Writes the grants of containers. A grant is a file that belongs to root. The file is in a
 * directory that one container can read.
 */
#ifndef GPUPART_CLI_TARGET_CONTAINER_GRANT_H
#define GPUPART_CLI_TARGET_CONTAINER_GRANT_H

#include <limits.h>
#include <gpupart_manage.h>

/* Each class and device of `gpupart cdi` has a subdirectory here. */
#define HOLD_ROOT "/run/gpupart/cdi"

/*
 * Writes @grant to @folder, for all users of the container. If the grant has an id, writes the
 * grant a second time under this id. GPUPART_JOB can then name the grant. The container sees
 * @folder as GPUPART_GRANT_ROOT. Needs root. Returns 0 or an error.
 */
int hold_container(const char *folder, const struct gpupart_grant *grant);

void hold_remove(const char *folder);

#endif
