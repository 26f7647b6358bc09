/* SPDX-License-Identifier: MIT */
/* The folder in which a user's processes show themselves. */
#ifndef GPUPART_CLI_TARGET_BLOCKS_H
#define GPUPART_CLI_TARGET_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define BLOCKS_ROOT "/dev/shm"
#define BLOCKS_PATH_LEN 40

/* The folder of user @uid. Returns @path, of BLOCKS_PATH_LEN bytes. */
const char *blocks_path(uid_t uid, char *path);

/*
 * The folder of @uid is there and that user's alone; made where it is missing. 0, or
 * -errno with a sentence in @why.
 */
int blocks_make(uid_t uid, char *why, size_t len);

/*
 * Whether a process of this user can show itself: NULL if it can, or what to do. @why says how it
 * is. Changes nothing.
 */
const char *blocks_advice(char *why, size_t len);

#endif
