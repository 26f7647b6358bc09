// SPDX-License-Identifier: MIT
/*
 * Which TPCs of a GPU other programs are limited to now. A program shows its limit when
 * it first uses the GPU; before that, and where it never does, its environment says it.
 * Must not know who asks.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>
#include "neighbours.h"
#include "paths.h"

#define LOCK_SECONDS 5
#define MAX_PROCESSES 256

/* The environment of a process, a string after the other, two 0 at the end; NULL not ours. */
static char *read_environment(const char *pid)
{
	char path[300], *text = NULL, *more;
	size_t used = 0, room = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	do {
		if (room - used < 4096) {
			room += 16384;
			more = realloc(text, room);
			if (!more)
				break;
			text = more;
		}
		n = read(fd, text + used, room - used - 2);
		used += n > 0 ? n : 0;
	} while (n > 0);
	close(fd);
	if (text)
		text[used] = text[used + 1] = 0;
	return text;
}

static const char *value_of(const char *environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment += strlen(environment) + 1)
		if (!strncmp(environment, name, len) && environment[len] == '=')
			return environment + len + 1;
	return "";
}

/* The limit that run put into the environment of process @pid. */
static bool limit_of(const struct gpupart_topology *topo, const char *pid, const char *pci,
		     const char *sim, struct gpupart_tpcset *set)
{
	const char *words;
	char *environment = read_environment(pid);
	bool found = false;

	if (!environment)
		return false;
	words = value_of(environment, "GPUPART_SET");
	/* A simulated GPU is its captures: the same address may be another one. */
	if (*words && !strcasecmp(value_of(environment, "GPUPART_GPU"), pci) &&
	    (!sim || !strcmp(value_of(environment, "GPUPART_SIM"), sim)) &&
	    strcmp(value_of(environment, "GPUPART_DISABLE"), "1"))
		found = !gpupart_set_parse(NULL, topo, words, set);
	free(environment);
	return found;
}

static void add(struct gpupart_tpcset *tpcs, const struct gpupart_tpcset *set,
		const struct gpupart_tpcset *within)
{
	if (!within || !gpupart_tpcset_equal(set, within))
		*tpcs = gpupart_tpcset_or(tpcs, set);
}

struct gpupart_tpcset neighbours_tpcs(struct gpupart *gp, const struct gpupart_topology *topo,
				      const char *pci, bool simulated,
				      const struct gpupart_tpcset *within)
{
	const char *sim = simulated ? getenv("GPUPART_SIM") : NULL;
	struct gpupart_tpcset tpcs = { 0 }, set;
	struct gpupart_process *list;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int nr;

	while (proc && (entry = readdir(proc)))
		if (*entry->d_name >= '1' && *entry->d_name <= '9' &&
		    atoi(entry->d_name) != getpid() &&
		    limit_of(topo, entry->d_name, pci, sim, &set))
			add(&tpcs, &set, within);
	if (proc)
		closedir(proc);
	/* Of a block it is not told which captures an address was of. */
	list = simulated ? NULL : calloc(MAX_PROCESSES, sizeof(*list));
	nr = list ? gpupart_process_list(gp, list, MAX_PROCESSES) : 0;
	for (int i = 0; i < nr && i < MAX_PROCESSES; i++)
		if (*list[i].limit && !*list[i].problem && !strcasecmp(list[i].pci, pci) &&
		    !gpupart_set_parse(NULL, topo, list[i].limit, &set))
			add(&tpcs, &set, within);
	free(list);
	return tpcs;
}

void neighbours_lock(void)
{
	char path[PATH_MAX];
	int fd;

	if (paths_package(PATHS_INJECT, path, sizeof(path)))
		return;
	/* Left open: the program's start or this one's end closes it. */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && i < LOCK_SECONDS * 100; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return;
		usleep(10000);
	}
}
