// SPDX-License-Identifier: MIT
/* Opens and reads the directory of shared files, and identifies processes through /proc. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/fsize.h"
#include "lib/core/state_dir.h"

#define LOCK_SECONDS 5
#define SKIP_4 " %*s %*s %*s %*s "	/* for sscanf(): four fields */

bool state_dir_name_valid(const char *name)
{
	size_t len = strlen(name);

	return len && len < STATE_DIR_NAME_LEN && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789._-") == len;
}

void state_dir_copy_text(char *to, size_t len, const char *from, size_t room)
{
	size_t i;

	for (i = 0; i < room && i + 1 < len && from[i]; i++)
		to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?';
	to[i] = 0;
}

/* Returns the clock offset of this process's time namespace, in clock ticks. */
static int64_t ticks_ahead(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	long long seconds, nanoseconds, ticks = 0;
	long per_second = sysconf(_SC_CLK_TCK);
	char name[16];

	while (file && fscanf(file, "%15s %lld %lld", name, &seconds, &nanoseconds) == 3)
		if (!strcmp(name, "boottime"))
			ticks = seconds * per_second + nanoseconds * per_second / 1000000000;
	if (file)
		fclose(file);
	return ticks;
}

uint64_t state_dir_process_start(pid_t pid)
{
	char path[32], text[1024], *at, state;
	unsigned long long start;
	long nr_threads;
	ssize_t len;
	int fd;

	/*
	 * In the pid namespace of /proc, this process's pid may belong to another process. The
	 * unusual path is deliberate. Emulators invent the contents of the usual path, but other
	 * processes read the kernel's data about this process.
	 */
	if (pid == getpid())
		snprintf(path, sizeof(path), "/proc/./self/stat");
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return 0;
	text[len] = 0;
	/*
	 * The name in field 2 may contain blanks and brackets, so read the fields after the last
	 * bracket. The state is field 3, the number of threads is field 20, and the start time is
	 * field 22.
	 */
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %c" SKIP_4 SKIP_4 SKIP_4 SKIP_4 "%ld %*s %llu", &state,
			  &nr_threads, &start) != 3)
		return 0;
	/*
	 * This process is dead, but its parent has not reaped it yet. A process of which only the
	 * first thread has ended is still alive.
	 */
	if (state == 'X' || (state == 'Z' && nr_threads <= 1))
		return 0;
	return start - ticks_ahead();
}

bool state_dir_process_lives(pid_t pid, uint64_t start)
{
	uint64_t now = pid > 0 && start ? state_dir_process_start(pid) : 0;

	/* Two processes in different time namespaces may round the time differently. */
	return now && now - start + 1 <= 2;
}

uint64_t state_dir_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

/* Opens a directory. If any other user owns or can access the directory, the function fails. */
int state_dir_open(uid_t uid, bool make)
{
	char path[48];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), STATE_DIR_ROOT "/gpupart-%u", uid);
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != uid || (st.st_mode & 077)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

DIR *state_dir_read(int dir)
{
	DIR *list = dir >= 0 ? fdopendir(dir) : NULL;
	int err = errno;

	if (dir >= 0 && !list)
		close(dir);
	errno = err;
	return list;
}

int state_dir_write_file(int dir, const char *file, const void *data, size_t len, mode_t mode)
{
	struct fsize_guard guard;
	char new_file[128];
	int fd, err = 0;
	ssize_t n;

	snprintf(new_file, sizeof(new_file), ".%.100s.%d", file, getpid());
	fd = openat(dir, new_file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	fsize_guard_begin(&guard);
	n = write(fd, data, len);
	if (n != (ssize_t)len)
		err = n < 0 ? -errno : -ENOSPC;
	fsize_guard_end(&guard);
	/* The mode must not depend on the caller's umask. */
	if (!err && fchmod(fd, mode))
		err = -errno;
	close(fd);
	if (!err && renameat(dir, new_file, dir, file))
		err = -errno;
	if (err)
		unlinkat(dir, new_file, 0);
	return err;
}

int state_dir_lock_file(int fd)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct timespec now;
	time_t until = 0;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (!until)
			until = now.tv_sec + LOCK_SECONDS;
		if (now.tv_sec >= until)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t state_dir_budget_begin(uid_t uid)
{
	return uid == geteuid() ? UINT64_MAX : cpu_ns() + 1000000000;
}

void state_dirs_begin(struct state_dirs *folders)
{
	*folders = (struct state_dirs){
		.root = geteuid() ? NULL : opendir(STATE_DIR_ROOT),
		.end = cpu_ns() + STATE_DIR_MAX_SECONDS * 1000000000ull,
	};
}

bool state_dir_budget_spent(uint64_t end)
{
	return end != UINT64_MAX && cpu_ns() > end;
}

bool state_dir_uid(const char *name, uid_t *uid)
{
	char canonical[48];
	unsigned int number;

	if (sscanf(name, "gpupart-%u", &number) != 1)
		return false;
	*uid = number;
	snprintf(canonical, sizeof(canonical), "gpupart-%u", number);
	return !strcmp(name, canonical);
}

bool state_dirs_next(struct state_dirs *folders, uid_t *uid)
{
	struct dirent *entry;
	struct stat st;

	while (folders->root && (entry = readdir(folders->root))) {
		folders->is_cut = ++folders->nr_names > STATE_DIR_MAX_NAMES ||
				  state_dir_budget_spent(folders->end);
		if (folders->is_cut)
			break;
		/*
		 * Any user can create a directory with the name for @uid. Only the user @uid and
		 * root can create a directory that belongs to @uid.
		 */
		if (state_dir_uid(entry->d_name, uid) && *uid &&
		    !fstatat(dirfd(folders->root), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    st.st_uid == *uid)
			return true;
	}
	if (folders->root)
		closedir(folders->root);
	return false;
}

bool state_dir_proc_is_own(void)
{
	char text[16];
	ssize_t len = readlink("/proc/self", text, sizeof(text) - 1);

	if (len <= 0)
		return false;
	text[len] = 0;
	return atoi(text) == getpid();
}

static void read_inner(const char *text, struct state_dir_status *status)
{
	int nr = 0, pid, len;

	for (; sscanf(text, "%d%n", &pid, &len) == 1; text += len, nr++)
		status->inner = pid;
	status->nested = nr > 1;
}

bool state_dir_read_status(int pid, struct state_dir_status *status)
{
	char path[32], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *file;

	memset(status, 0, sizeof(*status));
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0)
		if (!strncmp(line, "NSpid:", 6))
			read_inner(line + 6, status);
		else if (sscanf(line, "Uid: %u %u %u %u", &status->uids[0], &status->uids[1],
				&status->uids[2], &status->uids[3]) == 4)
			found = true;
	free(line);
	if (file)
		fclose(file);
	return found;
}

uint64_t state_dir_namespace_of(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

bool state_dir_nested_create(struct state_dir_nested *nested)
{
	DIR *proc = !nested->made && state_dir_proc_is_own() ? opendir("/proc") : NULL;
	struct state_dir_nested_row *rows;
	struct state_dir_status status;
	struct dirent *entry;
	int pid;

	if (nested->made)
		return nested->complete;
	nested->made = true;
	nested->complete = proc;
	while (proc && (entry = readdir(proc))) {
		pid = atoi(entry->d_name);
		if (pid <= 0 || !state_dir_read_status(pid, &status) || !status.nested)
			continue;
		rows = nested->nr % 256 ? nested->rows :
		       realloc(nested->rows, (nested->nr + 256) * sizeof(*rows));
		nested->complete = rows;
		if (!rows)
			break;
		nested->rows = rows;
		rows[nested->nr++] = (struct state_dir_nested_row){
			.pid = pid, .inner = status.inner,
			.pid_namespace = state_dir_namespace_of(pid),
		};
	}
	if (proc)
		closedir(proc);
	return nested->complete;
}

void state_dir_nested_free(struct state_dir_nested *nested)
{
	free(nested->rows);
	*nested = (struct state_dir_nested){ .made = false };
}
