// SPDX-License-Identifier: MIT
/*
 * Parses the cgroup paths of kubelet, containerd, CRI-O, docker, podman and Slurm. A process cannot
 * change its path. But a user who may create cgroups can give a cgroup any name.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/cgroup.h"

#define MAX_TEXT	16384	/* maximum number of bytes of /proc/PID/cgroup */
#define UUID		"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
#define X16		"xxxxxxxxxxxxxxxx"

/*
 * Compares the text at @at with @pattern. If the text matches and a path component ends after it,
 * copies the text to @into. A '-' in @pattern also matches '_'.
 */
static void take(const char *at, const char *pattern, char *into)
{
	size_t n = 0;

	for (; pattern[n]; n++)
		if (pattern[n] == 'x' ? !strspn(at + n, "0123456789abcdef") :
					at[n] != '-' && at[n] != '_')
			return;
	if (at[n] && !strchr("/\n", at[n]) && strncmp(at + n, ".scope", 6) &&
	    strncmp(at + n, ".slice", 6))
		return;
	for (into[n] = 0; n--;)
		into[n] = at[n] == '_' ? '-' : at[n];
}

void cgroup_parse(const char *text, struct cgroup_ids *ids)
{
	bool slurm = false;

	memset(ids, 0, sizeof(*ids));
	/* A name is preceded by '/' or '-'. Use the innermost name. */
	for (const char *at = text; *at; at++) {
		size_t digits = strspn(at + 1, "0123456789");

		if (*at == '\n')
			slurm = false;
		if (*at == '/' && !strncmp(at + 1, "slurm", 5))
			slurm = true;
		if (slurm && *at == '_' && at - text > 4 && !strncmp(at - 4, "/job", 4) &&
		    digits && digits < sizeof(ids->slurm) && strchr("/\n", at[1 + digits]))
			snprintf(ids->slurm, sizeof(ids->slurm), "%.*s", (int)digits, at + 1);
		if (*at != '/' && *at != '-')
			continue;
		take(at + 1, X16 X16 X16 X16, ids->container);
		if (!strncmp(at + 1, "pod", 3))
			take(at + 4, UUID, ids->pod);
	}
}

void cgroup_read(int pid, struct cgroup_ids *ids)
{
	char path[32], text[MAX_TEXT + 1];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + len, MAX_TEXT - len)) > 0)
		len += n;
	if (fd >= 0)
		close(fd);
	text[len] = 0;
	cgroup_parse(text, ids);
}
