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
#include "args.h"
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

/* Who is asked for, and what is known of everybody. */
struct neighbours {
	const struct args *args;
	const struct gpupart_topology *topo;
	const char *pci;
	struct gpupart_process *processes;
	struct gpupart_job *jobs;
	int nr_processes, nr_jobs;
};

static bool is_ignored(const struct args *args, int pid, const char *name)
{
	return pid == getpid() || (args->ignored_pid && pid == args->ignored_pid) ||
	       (args->ignored_name && !strcmp(name, args->ignored_name));
}

static bool shows_itself(const struct neighbours *n, int pid)
{
	for (int i = 0; i < n->nr_processes; i++)
		if (n->processes[i].pid == pid && !*n->processes[i].problem)
			return true;
	return false;
}

/* What a run was set to since it began, or @words. */
static const char *words_now(const struct neighbours *n, const char *job, const char *words)
{
	for (int i = 0; i < n->nr_jobs; i++)
		if (!strcmp(n->jobs[i].id, job))
			return n->jobs[i].limit;
	return words;
}

/* The limit that process @pid will have, by its environment, when it uses the GPU. */
static bool limit_to_be(const struct neighbours *n, const char *pid, struct gpupart_tpcset *set)
{
	const char *words, *sim = n->args->simulated ? getenv("GPUPART_SIM") : NULL;
	char *environment = read_environment(pid);
	bool found = false;

	if (!environment)
		return false;
	words = words_now(n, value_of(environment, "GPUPART_JOB"),
			  value_of(environment, "GPUPART_SET"));
	/* A simulated GPU is its captures: the same address may be another one. */
	if (*words && !strcasecmp(value_of(environment, "GPUPART_GPU"), n->pci) &&
	    (!sim || !strcmp(value_of(environment, "GPUPART_SIM"), sim)) &&
	    strcmp(value_of(environment, "GPUPART_DISABLE"), "1") &&
	    !is_ignored(n->args, atoi(pid), value_of(environment, "GPUPART_NAME")))
		found = !gpupart_set_parse(NULL, n->topo, words, set);
	free(environment);
	return found;
}

/* The limit that a process shows. */
static bool limit_shown(const struct neighbours *n, const struct gpupart_process *process,
			struct gpupart_tpcset *set)
{
	const char *source = gpupart_topology_info(n->topo)->source;

	return *process->limit && !*process->problem && !strcasecmp(process->pci, n->pci) &&
	       process->simulated == n->args->simulated &&
	       (!process->simulated || !strcmp(process->source, source)) &&
	       !is_ignored(n->args, process->pid, process->name) &&
	       !gpupart_set_parse(NULL, n->topo, process->limit, set);
}

static void add(struct gpupart_tpcset *tpcs, const struct gpupart_tpcset *set,
		const struct gpupart_tpcset *within)
{
	if (!within || !gpupart_tpcset_equal(set, within))
		*tpcs = gpupart_tpcset_or(tpcs, set);
}

struct gpupart_tpcset neighbours_tpcs(const struct args *args, struct gpupart *gp,
				      const struct gpupart_topology *topo, const char *pci,
				      const struct gpupart_tpcset *within)
{
	struct neighbours n = { .args = args, .topo = topo, .pci = pci };
	struct gpupart_tpcset tpcs = { 0 }, set;
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	n.processes = calloc(MAX_PROCESSES, sizeof(*n.processes));
	n.jobs = calloc(MAX_PROCESSES, sizeof(*n.jobs));
	if (n.processes)
		n.nr_processes = gpupart_process_list(gp, n.processes, MAX_PROCESSES);
	if (n.jobs)
		n.nr_jobs = gpupart_job_list(gp, n.jobs, MAX_PROCESSES);
	if (n.nr_processes > MAX_PROCESSES)
		n.nr_processes = MAX_PROCESSES;
	if (n.nr_jobs > MAX_PROCESSES)
		n.nr_jobs = MAX_PROCESSES;
	for (int i = 0; i < n.nr_processes; i++)
		if (limit_shown(&n, &n.processes[i], &set))
			add(&tpcs, &set, within);
	while (proc && (entry = readdir(proc)))
		if (*entry->d_name >= '1' && *entry->d_name <= '9' &&
		    !shows_itself(&n, atoi(entry->d_name)) &&
		    limit_to_be(&n, entry->d_name, &set))
			add(&tpcs, &set, within);
	if (proc)
		closedir(proc);
	free(n.processes);
	free(n.jobs);
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
