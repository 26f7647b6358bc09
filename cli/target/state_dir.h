/* SPDX-License-Identifier: MIT */
/* The state directory of a user: finds its path, creates the directory, and checks it. */
#ifndef GPUPART_CLI_TARGET_STATE_DIR_H
#define GPUPART_CLI_TARGET_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STATE_DIR_PARENT "/dev/shm"
#define STATE_DIR_PATH_LEN 40

/*
 * Writes the path of the state directory of user @uid to @path, which has STATE_DIR_PATH_LEN bytes.
 * Returns @path.
 */
const char *state_dir_path(uid_t uid, char *path);

/*
 * Creates the state directory of @uid if it is missing, and checks its owner and mode. Returns 0,
 * or -errno with a reason in @why.
 */
int state_dir_create(uid_t uid, char *why, size_t len);

/*
 * Checks whether processes of this user can write state pages. Returns NULL or advice. Describes
 * the directory in @why. Changes nothing.
 */
const char *state_dir_advice(char *why, size_t len);

#endif
