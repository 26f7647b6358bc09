// SPDX-License-Identifier: MIT
/*
 * Finds processes that use CUDA; see witness.h. A process uses CUDA if it has mapped libcuda.so and
 * opened /dev/nvidia-uvm. The function cuInit opens this device, but NVML does not. Each scan reads
 * all of /proc, so callers wait longer after each scan.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/start/witness.h"
#include "cli/util/paths.h"

#define DEVICE "/dev/nvidia-uvm"
#define MAX_LINES 65536
#define MAX_FDS 4096
#define MAX_DEPTH 64
#define MAX_PIDS (4 << 20)	/* PID_MAX_LIMIT in linux/threads.h */

/* Returns whether /proc/PID/@what is the same file for process @pid and for this process. */
static bool is_same(int pid, const char *what)
{
	char own_path[32], path[32];
	struct stat own, other;

	snprintf(own_path, sizeof(own_path), "/proc/self/%s", what);
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return !stat(own_path, &own) && !stat(path, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

/*
 * Returns whether the environment of process @pid, a process of this user, contains the report of
 * this run. This check finds processes whose parent has ended. A child subreaper would find all
 * such processes. But a child subreaper would become the parent of daemons instead of init, and
 * some daemons check their parent.
 */
static bool has_report(int pid)
{
	const char *report = getenv("GPUPART_REPORT");
	char path[32], found[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	if (!report || !*report || !is_same(pid, "ns/pid") || stat(path, &st) ||
	    st.st_uid != geteuid())
		return false;
	process_variable(pid, "GPUPART_REPORT", found, sizeof(found));
	return !strcmp(found, report);
}

bool witness_is_below(int pid, int root)
{
	struct process_parent found = { .parent = pid };

	for (int depth = 0; depth < MAX_DEPTH && found.parent > 1; depth++) {
		if (found.parent == root)
			return true;
		/* A process without its main thread looks like a zombie, but can have children. */
		if (!process_find_parent(found.parent, &found) && !found.parent)
			break;
	}
	return has_report(pid);
}

enum { UNKNOWN, BELOW, NOT_FOUND, NOT_BELOW };

/*
 * Finds out whether @found is a descendant of @root. The results of this scan are in @memo, by pid.
 * This limits the cost: another user may have many processes with MAX_DEPTH ancestors each.
 * NOT_BELOW is final: a process whose parent ends gets an ancestor of this parent as its parent. If
 * an ancestor ended during the scan, or there are too many ancestors, the result is NOT_FOUND.
 */
static unsigned char find_place(const struct process_parent *found, int root, unsigned char *memo)
{
	unsigned char result = found->process.pid == root ? BELOW : UNKNOWN;
	struct process_parent at = *found;
	int path[MAX_DEPTH], depth = 0;

	while (!result && depth < MAX_DEPTH && at.parent > 1 && at.parent < MAX_PIDS) {
		result = at.parent == root ? BELOW : memo[at.parent];
		path[depth++] = at.parent;
		if (!result && !process_find_parent(at.parent, &at) && !at.parent)
			result = NOT_FOUND;
	}
	if (!result)
		result = at.parent <= 1 ? NOT_BELOW : NOT_FOUND;
	while (depth)
		memo[path[--depth]] = result;
	return result;
}

static bool has_device(int pid)
{
	char path[300], link[64];
	struct dirent *entry;
	bool found = false;
	ssize_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	for (int i = 0; dir && !found && i < MAX_FDS && (entry = readdir(dir)); i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = 0;
		found = !strcmp(link, DEVICE);
	}
	if (dir)
		closedir(dir);
	return found;
}

/*
 * Returns whether @pid uses CUDA and is not confined. If the process has the library of this
 * package, sets *@ours.
 */
static bool is_unconfined(int pid, bool simulated, bool *ours, bool *hidden)
{
	bool cuda = false;
	char path[32], *line = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	*hidden = !file && errno == EACCES;
	*ours = false;
	for (int i = 0; file && !*ours && i < MAX_LINES && getline(&line, &room, file) > 0; i++) {
		cuda |= !!strstr(line, "/libcuda.so");
		*ours = strstr(line, "/libgpupart-inject.so");
	}
	free(line);
	if (file)
		fclose(file);
	/* A child of this command uses CUDA before the program starts. */
	return cuda && !*ours && (simulated || has_device(pid)) && !is_same(pid, "exe");
}

static void record(struct witness *witness, const struct process_parent *found)
{
	struct witness_process *p = witness->processes;
	unsigned int i = 0;

	while (i < witness->nr && !process_same(&p[i].process, &found->process))
		i++;
	if (i == WITNESS_MAX)
		return;
	if (i == witness->nr) {
		p[witness->nr++] = (struct witness_process){ .process = found->process };
		snprintf(p[i].name, sizeof(p[i].name), "%s", found->name);
	}
	p[i].looks++;
}

static void note_hidden(struct witness *witness, const struct process_parent *found)
{
	if (!witness->hidden.pid) {
		witness->hidden = found->process;
		snprintf(witness->hidden_name, sizeof(witness->hidden_name), "%s", found->name);
	} else if (!process_same(&witness->hidden, &found->process)) {
		witness->more_hidden = true;
	}
}

/* An earlier scan saw the process during cuInit. Now the process has the injected library. */
static void forget(struct witness *witness, const struct process *process)
{
	for (unsigned int i = 0; i < witness->nr; i++)
		if (process_same(&witness->processes[i].process, process))
			witness->processes[i].looks = 0;
}

/*
 * Identifies a process by its file environ. If another process gets the pid, the file has another
 * inode. Sets *@is_mine to whether has_report() can be true. The user of a process can change.
 */
static bool identify(int proc, int pid, struct witness_other *other, bool *is_mine)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "%d/environ", pid);
	if (fstatat(proc, path, &st, 0))
		return false;
	*other = (struct witness_other){ .pid = pid, .inode = st.st_ino, .made = st.st_ctim };
	*is_mine = st.st_uid == geteuid();
	return true;
}

/*
 * Returns whether the previous scan found that @other is not a descendant of @root. Both scans list
 * the processes in the order of their pids. *at is the position in the list of the previous scan.
 */
static bool is_known(const struct witness *witness, unsigned int *at, struct witness_other *other)
{
	const struct witness_other *known;

	while (*at < witness->nr_others && witness->others[*at].pid < other->pid)
		(*at)++;
	known = &witness->others[*at];
	if (*at == witness->nr_others || known->pid != other->pid || known->inode != other->inode ||
	    known->made.tv_sec != other->made.tv_sec || known->made.tv_nsec != other->made.tv_nsec)
		return false;
	other->older = known->older;
	return true;
}

/* Adds @other to the list @others, which has @nr entries. */
static void keep(struct witness_other **others, unsigned int *nr, const struct witness_other *other)
{
	struct witness_other *more = *others;

	/* The list has room for a power of two of entries. */
	if (!(*nr & (*nr - 1)))
		more = realloc(more, (*nr ? 2 * *nr : 1) * sizeof(*more));
	if (!more)
		return;
	*others = more;
	more[(*nr)++] = *other;
}

void witness_look(struct witness *witness, int root, bool simulated)
{
	unsigned char *memo = calloc(MAX_PIDS, 1), place;
	struct witness_other *others = NULL, other;
	unsigned int nr_others = 0, at = 0;
	DIR *proc = opendir("/proc");
	struct process_parent found;
	struct process first;
	bool ours, hidden, identified, is_mine, known, lives;
	int pid;

	process_find(root, &first);
	while (memo && proc && (pid = process_next(proc)) && pid < MAX_PIDS) {
		identified = identify(dirfd(proc), pid, &other, &is_mine);
		known = identified && is_known(witness, &at, &other);
		lives = known || process_find_parent(pid, &found);
		if (!lives && !found.parent)
			continue;
		place = known ? NOT_BELOW : find_place(&found, root, memo);
		/* A process that is older than @root is not a descendant of @root. */
		if (!known)
			other.older = lives && found.process.start < first.start;
		if (place == NOT_BELOW && identified)
			keep(&others, &nr_others, &other);
		memo[pid] = place;
		if (!lives)
			continue;
		if (place != BELOW &&
		    (!identified || !is_mine || other.older || pid == getpid() || !has_report(pid)))
			continue;
		if (known && !process_find_parent(pid, &found))
			continue;
		if (is_unconfined(pid, simulated, &ours, &hidden))
			record(witness, &found);
		else if (ours)
			forget(witness, &found.process);
		if (hidden)
			note_hidden(witness, &found);
	}
	if (proc)
		closedir(proc);
	free(memo);
	free(witness->others);
	witness->others = others;
	witness->nr_others = nr_others;
}

int witness_watch(bool simulated)
{
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[PATH_MAX] = DEVICE;

	if (watch < 0)
		return -1;
	if ((!simulated || !paths_package(PATHS_SIM "/libcuda.so.1", path, sizeof(path))) &&
	    inotify_add_watch(watch, path, IN_OPEN) >= 0 && !fcntl(watch, F_SETOWN, getpid()) &&
	    !fcntl(watch, F_SETFL, O_ASYNC | O_NONBLOCK))
		return watch;
	close(watch);
	return -1;
}

bool witness_woken(int watch)
{
	char events[4096];
	bool woken = false;

	while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
		woken = true;
	return woken;
}
