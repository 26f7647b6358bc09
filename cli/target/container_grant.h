/* SPDX-License-Identifier: MIT */
/* Grants of containers. A grant is a file of root in a directory that one container can read. */
#ifndef GPUPART_CLI_TARGET_CONTAINER_GRANT_H
#define GPUPART_CLI_TARGET_CONTAINER_GRANT_H

#include <limits.h>
#include <gpupart_manage.h>

/* This directory has a subdirectory for each class and device of `gpupart cdi`. */
#define HOLD_ROOT "/run/gpupart/cdi"

/*
 * Writes @grant to @folder twice: once for all users of the container and, if the grant has an
 * id, once under this id, so that GPUPART_JOB can name the grant. The container sees @folder as
 * GPUPART_GRANT_ROOT. Needs root. Returns 0 or an error.
 */
int hold_container(const char *folder, const struct gpupart_grant *grant);

void hold_remove(const char *folder);

#endif
