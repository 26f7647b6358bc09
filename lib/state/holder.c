// SPDX-License-Identifier: MIT
/*
 * Finds the process that owns a state page. The kernel reports which process holds the lock on the
 * file, and which processes have mapped the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "lib/state/holder.h"

static bool has_uid(const struct state_dir_status *status, uid_t uid)
{
	for (int i = 0; i < 4; i++)
		if (status->uids[i] == uid)
			return true;
	return false;
}

/*
 * Returns true if process @pid may be the owner of @page, a state page in @uid's directory. A
 * process has at most one state page. In the caller's own directory and in root's directory, the
 * function does not compare the uid. A process with a state page there may have changed its user.
 */
static bool may_be(int pid, uid_t uid, const struct shared_header *page)
{
	bool trusted = uid == geteuid() || !uid;
	struct state_dir_status status;
	uint64_t name_space;

	if (!state_dir_proc_is_own() || !state_dir_read_status(pid, &status))
		return trusted;
	name_space = state_dir_namespace_of(pid);
	return (trusted || has_uid(&status, uid)) &&
	       (!status.inner || status.inner == page->pid) &&
	       (!name_space || !page->pid_namespace || name_space == page->pid_namespace);
}

/*
 * If process @pid has a shared mapping of the file, returns 1. If it has no such mapping, returns
 * 0. If /proc does not show the mappings, or if the budget of this scan is used up, returns -1.
 */
static int has_mapped(int pid, const struct stat *st, struct holder_table *table)
{
	char path[32], *line = NULL;
	size_t room = 0;
	int found = -1;
	ssize_t len;
	FILE *maps;

	if (holder_spent(table))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && found < 1 && (len = getline(&line, &room, maps)) > 0) {
		unsigned int dev_major, dev_minor;
		unsigned long long inode;
		char mode[5];

		table->maps_read += len;
		if (holder_spent(table)) {
			found = -1;
			break;
		}
		found = sscanf(line, "%*s %4s %*x %x:%x %llu", mode, &dev_major, &dev_minor,
			       &inode) == 4 &&
			mode[3] == 's' && inode == st->st_ino &&
			makedev(dev_major, dev_minor) == st->st_dev;
	}
	/* Kernel threads and processes that are ending have no mappings. */
	if (maps && found < 0 && !ferror(maps) && !holder_spent(table))
		found = 0;
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

/*
 * Returns true if a process has mapped the state page. A program that closes unknown descriptors
 * loses its lock on the file, but keeps the mapping. The pids and uids are compared first,
 * because it can take a long time to read a process's maps.
 */
static bool holds(int pid, uid_t uid, const struct stat *st, const struct shared_header *page,
		  struct holder_table *table)
{
	int mapped;

	if (pid <= 0 || !state_dir_proc_is_own() || !may_be(pid, uid, page))
		return false;
	mapped = has_mapped(pid, st, table);
	return mapped < 0 ? state_dir_process_lives(pid, page->start) : mapped;
}

bool holder_spent(const struct holder_table *table)
{
	return table->maps_max && table->maps_read > table->maps_max;
}

void holder_table_free(struct holder_table *table)
{
	state_dir_nested_free(&table->nested);
}

/*
 * Returns the pid of the process that holds the lock on the file. If the kernel does not show the
 * pid, returns 0. If no process holds the lock, returns -ESRCH. This check is fast.
 */
static int lock_pid(int fd)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		return -ESRCH;
	return lock.l_pid > 0 ? lock.l_pid : 0;
}

int holder_pid(int fd, uid_t uid, const struct shared_header *page, struct holder_table *table)
{
	int pid = lock_pid(fd);
	struct stat st;

	if (pid > 0)
		return may_be(pid, uid, page) ? pid : -ESRCH;
	if (!pid || fstat(fd, &st))
		return pid;
	if (page->pid_namespace == state_dir_pid_namespace())
		return holds(page->pid, uid, &st, page, table) ? page->pid : -ESRCH;
	state_dir_nested_create(&table->nested);
	for (unsigned int i = 0; i < table->nested.nr; i++) {
		const struct state_dir_nested_row *row = &table->nested.rows[i];

		if (row->inner == page->pid &&
		    (!row->pid_namespace || row->pid_namespace == page->pid_namespace) &&
		    holds(row->pid, uid, &st, page, table))
			return row->pid;
	}
	return -ESRCH;
}

bool holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace)
{
	uint64_t now;

	/*
	 * The kernel grants a read lease only if no process has the file open for writing. If a
	 * process opens the file for writing during the lease, the kernel sends this process a
	 * signal. Choose a signal that is ignored by default.
	 */
	fcntl(fd, F_SETSIG, SIGURG);
	if (!fcntl(fd, F_SETLEASE, F_RDLCK)) {
		fcntl(fd, F_SETLEASE, F_UNLCK);
		return true;
	}
	if (errno == EAGAIN)
		return false;
	/*
	 * Leases are disabled, or the kernel refused this lease. So only processes in this
	 * process's pid namespace can be checked.
	 */
	if (pid_namespace != state_dir_pid_namespace())
		return false;
	if (pid <= 0 || (kill(pid, 0) && errno == ESRCH))
		return true;
	now = state_dir_proc_is_own() ? state_dir_process_start(pid) : 0;
	return now && start && !state_dir_process_lives(pid, start);
}

bool holder_namespace_gone(uint64_t pid_namespace)
{
	bool gone = state_dir_pid_namespace() == STATE_DIR_FIRST_PID_NAMESPACE;
	struct state_dir_nested nested = { .made = false };
	struct state_dir_status status;

	/* The mounted /proc may hide the processes of other users. */
	if (!gone || !state_dir_proc_is_own() || !state_dir_read_status(1, &status))
		return false;
	gone = state_dir_nested_create(&nested);
	for (unsigned int i = 0; gone && i < nested.nr; i++) {
		const struct state_dir_nested_row *row = &nested.rows[i];

		if (row->pid_namespace)
			gone = row->pid_namespace != pid_namespace;
		else if (state_dir_read_status(row->pid, &status))
			gone = !has_uid(&status, geteuid());
	}
	state_dir_nested_free(&nested);
	return gone;
}

bool holder_is(int fd, uid_t uid, int pid)
{
	struct holder_table table = { .maps_max = 4 << 20 };
	struct shared_header header;
	int holder = lock_pid(fd);

	if (holder < 0 && pread(fd, &header, sizeof(header), 0) == sizeof(header)) {
		holder = holder_pid(fd, uid, &header, &table);
		holder_table_free(&table);
	}
	return holder == pid;
}
