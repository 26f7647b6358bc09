// SPDX-License-Identifier: MIT
/* Whether this process has pids or users of its own, as in a container. */
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include "cli/util/namespaces.h"

/* The pid namespace of the machine, PROC_PID_INIT_INO (linux/proc_ns.h, since 3.8). */
#define FIRST_PID_NAMESPACE 0xeffffffcu

/* The user IDs of this process's user namespace. */
struct users {
	bool own;		/* not the machine's */
	bool mapped;		/* at least one is a user outside */
	long outside;		/* this process's user outside; -1: none */
};

static bool read_users(struct users *users)
{
	unsigned long inside, outside, nr, self = geteuid();
	FILE *map = fopen("/proc/self/uid_map", "re");

	*users = (struct users){ .own = true, .outside = -1 };
	while (map && fscanf(map, "%lu %lu %lu", &inside, &outside, &nr) == 3) {
		users->mapped = true;
		if (!inside && !outside && nr == 4294967295ul)
			users->own = false;
		if (self >= inside && self - inside < nr)
			users->outside = outside + (self - inside);
	}
	return map && !fclose(map);
}

const char *namespaces_advice(char *how, size_t len)
{
	char link[64] = "", text[80] = "", outside[24] = "nobody";
	struct users users;
	unsigned int pids;
	const char *own;

	if (!read_users(&users) || readlink("/proc/self/ns/pid", link, sizeof(link) - 1) < 0 ||
	    sscanf(link, "pid:[%u]", &pids) != 1) {
		snprintf(how, len, "/proc does not tell of them here");
		return "mount /proc";
	}
	if (!users.mapped) {
		snprintf(how, len,
			 "this has users of its own, and none of them is one outside (/proc/self/uid_map is empty): user %u here owns no file",
			 geteuid());
		return
			"map them: 'unshare -r' does, or write /proc/PID/uid_map and gid_map from outside";
	}
	own = pids != FIRST_PID_NAMESPACE ? "pids of its own" : "";
	if (!*own && !users.own) {
		snprintf(how, len, "pids and users are the machine's");
		return NULL;
	}
	if (users.outside >= 0)
		snprintf(outside, sizeof(outside), "%ld", users.outside);
	if (users.own)
		snprintf(text, sizeof(text), "%susers of its own (%u here is %s outside)",
			 *own ? " and " : "", geteuid(), outside);
	snprintf(how, len,
		 "this has %s%s: ps and set here reach what runs in here, and outside what has the same folder of blocks; a pid in here is another one outside",
		 own, text);
	return
		"name jobs (--name) and set by name; 'gpupart cdi --uid' gives a container the folder of blocks of the user that it is outside";
}
