// SPDX-License-Identifier: MIT
/*
 * Whether this process has pids or users of its own, as in a container. Must not know
 * why that matters.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "namespaces.h"

/* Of the machine's first pid namespace, PROC_PID_INIT_INO (linux/proc_ns.h, since 3.8). */
#define FIRST_PID_NAMESPACE 0xeffffffcu

static void find_users(struct namespaces *found)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long inside, outside, nr, self = geteuid();

	found->users_known = map;
	/* Until somebody has written it the map is empty: everybody is nobody. */
	found->own_users = map;
	while (map && fscanf(map, "%lu %lu %lu", &inside, &outside, &nr) == 3) {
		found->users_mapped = true;
		if (!inside && !outside && nr == 4294967295ul)
			found->own_users = false;
		if (self >= inside && self - inside < nr)
			found->uid_outside = outside + (self - inside);
	}
	if (map)
		fclose(map);
}

void namespaces_find(struct namespaces *found)
{
	char link[64];
	ssize_t len = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
	unsigned int number;

	*found = (struct namespaces){ .uid_outside = -1 };
	link[len > 0 ? len : 0] = 0;
	found->pids_known = sscanf(link, "pid:[%u]", &number) == 1;
	found->own_pids = found->pids_known && number != FIRST_PID_NAMESPACE;
	find_users(found);
}
