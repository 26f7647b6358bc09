// SPDX-License-Identifier: MIT
/*
 * Which container a process is in. docker, podman, containerd and CRI-O put the container's id into
 * the name of its control group: "libpod-ID.scope", "docker-ID.scope", "cri-containerd-ID.scope",
 * or the id alone. Who may make control groups can name them as any container.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/util/container.h"

#define DIGITS "0123456789abcdef"
#define ID_LEN (CONTAINER_ID_LEN - 1)
#define MAX_TEXT 16384	/* a line has the path of one group, 4096 bytes at most */

bool container_parse(const char *text, char id[CONTAINER_ID_LEN])
{
	size_t digits;

	*id = 0;
	for (const char *at = text; *at; at += digits + !!at[digits]) {
		digits = strspn(at, DIGITS);
		if (digits == ID_LEN && at > text && strchr("/-", at[-1]) &&
		    (!at[digits] || strchr("/.\n", at[digits])))
			snprintf(id, CONTAINER_ID_LEN, "%.*s", ID_LEN, at);
	}
	return *id;
}

bool container_of(int pid, char id[CONTAINER_ID_LEN])
{
	char path[32], text[MAX_TEXT];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	if (fd >= 0)
		close(fd);
	text[len] = 0;
	return container_parse(text, id);
}
