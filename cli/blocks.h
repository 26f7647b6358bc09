/* SPDX-License-Identifier: MIT */
/* The folder in which a user's processes show themselves. Knows not what they show. */
#ifndef GPUPART_CLI_BLOCKS_H
#define GPUPART_CLI_BLOCKS_H

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
 * Whether a process of ours can show itself: a sentence in @why, where it cannot what to
 * do in *@advice. Changes nothing.
 */
bool blocks_usable(char *why, size_t len, const char **advice);

#endif
