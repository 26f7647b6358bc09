/* SPDX-License-Identifier: MIT */
/* Which container a process is in, as container runtimes name its control group. */
#ifndef GPUPART_CLI_UTIL_CONTAINER_H
#define GPUPART_CLI_UTIL_CONTAINER_H

#include <stdbool.h>

#define CONTAINER_ID_LEN 65

/*
 * The container's id, 64 hexadecimal digits, from the text of /proc/PID/cgroup; of nested
 * containers the innermost. False: the text names none, and *id is "".
 */
bool container_parse(const char *text, char id[CONTAINER_ID_LEN]);

/* The same of process @pid; also false where /proc does not tell. */
bool container_of(int pid, char id[CONTAINER_ID_LEN]);

#endif
