// SPDX-License-Identifier: MIT
/*
 * Finds out whether this process has its own pid namespace or user namespace. Such namespaces are
 * usual in a container.
 */
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include "cli/util/namespaces.h"

/* The pid namespace of the machine, PROC_PID_INIT_INO (linux/proc_ns.h, since 3.8). */
#define FIRST_PID_NAMESPACE 0xeffffffcu

/* The user IDs of this process's user namespace. */
struct users {
	bool own;		/* the process is in its own user namespace */
	bool mapped;		/* at least one user id is mapped */
	long outside;		/* user id of this process outside the namespace; -1: not mapped */
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
	char link[64] = "", text[80] = "", outside[24] = "not mapped";
	struct users users;
	unsigned int pids;
	const char *own;

	if (!read_users(&users) || readlink("/proc/self/ns/pid", link, sizeof(link) - 1) < 0 ||
	    sscanf(link, "pid:[%u]", &pids) != 1) {
		snprintf(how, len, "/proc does not show the namespaces of this process");
		return "mount /proc";
	}
	if (!users.mapped) {
		snprintf(how, len,
			 "this process has its own user namespace without a mapping (/proc/self/uid_map is empty): user %u owns no file",
			 geteuid());
		return
			"map users with 'unshare -r', or write /proc/PID/uid_map and gid_map from outside";
	}
	own = pids != FIRST_PID_NAMESPACE ? "its own pids" : "";
	if (!*own && !users.own) {
		snprintf(how, len, "this process uses the machine's pids and users");
		return NULL;
	}
	if (users.outside >= 0)
		snprintf(outside, sizeof(outside), "%ld", users.outside);
	if (users.own)
		snprintf(text, sizeof(text), "%sits own users (user %u is %s outside)",
			 *own ? " and " : "", geteuid(), outside);
	snprintf(how, len,
		 "this process has %s%s: ps and set reach processes in the same namespaces, and outside those with the same state directory; pids differ from those outside",
		 own, text);
	return
		"use names (--name) instead of pids; 'gpupart cdi --uid' gives a container the state directory of its user outside";
}
