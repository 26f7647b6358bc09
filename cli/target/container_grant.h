/* SPDX-License-Identifier: MIT */
/* Grants of containers: root's files in a directory that one container can read. */
#ifndef GPUPART_CLI_TARGET_CONTAINER_GRANT_H
#define GPUPART_CLI_TARGET_CONTAINER_GRANT_H

#include <limits.h>
#include <gpupart_manage.h>

/* Directories of the devices of `gpupart cdi`, by class and device. */
#define HOLD_ROOT "/run/gpupart/cdi"

/*
 * Writes @grant to @folder, which is mounted as GPUPART_GRANT_ROOT in the container: once for all
 * users there, and once by its id, if it has one, for GPUPART_JOB. Needs root. Returns 0 or an
 * error.
 */
int hold_container(const char *folder, const struct gpupart_grant *grant);

void hold_remove(const char *folder);

#endif
