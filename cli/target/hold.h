/* SPDX-License-Identifier: MIT */
/* Grants of containers: root's files in a folder that one container sees, and cannot write to. */
#ifndef GPUPART_CLI_TARGET_HOLD_H
#define GPUPART_CLI_TARGET_HOLD_H

#include <limits.h>
#include <gpupart_manage.h>

/* Of the devices that `gpupart cdi` describes: a folder by class and device. */
#define HOLD_ROOT "/run/gpupart/cdi"

/*
 * Notes @grant in @folder, which takes the place of GPUPART_GRANT_ROOT in the container: as one
 * that binds each user there, and if it has an id by that too, for GPUPART_JOB. For root: 0, or an
 * error.
 */
int hold_container(const char *folder, const struct gpupart_grant *grant);

void hold_remove(const char *folder);

#endif
