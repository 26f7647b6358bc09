/* SPDX-License-Identifier: MIT */
/* Grants of containers: root's files in a folder that one container sees, and cannot write to. */
#ifndef GPUPART_CLI_TARGET_HOLD_H
#define GPUPART_CLI_TARGET_HOLD_H

#include <limits.h>
#include <gpupart_manage.h>

/*
 * Notes @grant for the containers of @device, of the CDI class @class, and hands back the folder
 * that takes the place of GPUPART_GRANT_ROOT in them. Fills in the grant's id. For root: 0, or an
 * error.
 */
int hold_container(const char *class, const char *device, struct gpupart_grant *grant,
		   char folder[PATH_MAX]);

#endif
