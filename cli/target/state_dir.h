/* SPDX-License-Identifier: MIT */
/* Finds the path of a user's state directory. Creates and checks this directory. */
#ifndef GPUPART_CLI_TARGET_STATE_DIR_H
#define GPUPART_CLI_TARGET_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STATE_DIR_PARENT "/dev/shm"
#define STATE_DIR_PATH_LEN 40

/*
 * Writes the path of user @uid's state directory to @path. The buffer has STATE_DIR_PATH_LEN bytes.
 * Returns @path.
 */
const char *state_dir_path(uid_t uid, char *path);

/*
 * If the state directory of user @uid is missing, creates this directory. Checks its owner and
 * mode. Returns 0, or returns -errno and writes a reason to @why.
 */
int state_dir_create(uid_t uid, char *why, size_t len);

/*
 * Checks whether processes of this user can write state pages. Describes the directory in @why. If
 * there is a problem, returns advice. Otherwise returns NULL. Changes nothing.
 */
const char *state_dir_advice(char *why, size_t len);

#endif
