/* SPDX-License-Identifier: MIT */
/*
 * Opens and reads the directory below /dev/shm that contains the files that processes share. Also
 * identifies the processes to which these files belong. This code depends only on libc.
 */
#ifndef GPUPART_LIB_CORE_STATE_DIR_H
#define GPUPART_LIB_CORE_STATE_DIR_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>
#include "lib/core/ctx.h"

#define STATE_DIR_ROOT "/dev/shm"
/*
 * The maximum number of files that are read in another user's directory or in root's directory.
 * Root's directory is included, because containers can share it if their root user has uid 0. A
 * user is not expected to have more processes on GPUs.
 */
#define STATE_DIR_MAX_FILES 4096

static inline bool state_dir_has_more(uid_t uid, unsigned int nr_files)
{
	return nr_files > STATE_DIR_MAX_FILES && (!uid || uid != geteuid());
}

/* length of the name of a job, tenant or program, with the terminating 0 */
#define STATE_DIR_NAME_LEN 64

/*
 * This attribute closes a descriptor at the end of its block. A negative value means that there is
 * no descriptor.
 */
#define STATE_CLOSED __attribute__((cleanup(control_close)))

static inline void control_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/*
 * Returns true if @name is a valid name of a job or a tenant. Such a name has 1 to 63 characters
 * and does not start with '-'. The valid characters are A-Z a-z 0-9 . _ -
 */
__attribute__((visibility("default"))) bool state_dir_name_valid(const char *name);
/*
 * Opens the state directory of @uid, which has mode 0700. If there is no directory and @make is
 * true, creates the directory. Returns a descriptor or a negative errno.
 */
__attribute__((visibility("default")))
int state_dir_open(uid_t uid, bool make);
/*
 * Opens the descriptor @dir for listing. The caller calls closedir(), which also closes the
 * descriptor. If the function fails, it closes the descriptor and returns NULL.
 */
GPUPART_PRIVATE
DIR *state_dir_read(int dir);
/*
 * Writes a new file. Then renames the new file, which replaces the old file. So the change is
 * atomic, even if this process dies. Returns 0 or -errno.
 */
GPUPART_PRIVATE
int state_dir_write_file(int dir, const char *file, const void *data, size_t len, mode_t mode);
/*
 * Acquires a lock with flock(). Returns 0 or -errno. If another process holds the lock for 5 s, for
 * example because that process is stopped, returns -EBUSY.
 */
GPUPART_PRIVATE
int state_dir_lock_file(int fd);
/*
 * These functions limit the work on another user's files to one second of this thread's CPU time.
 * There is no limit for this user's own files. The result of state_dir_budget_begin() is the CPU
 * time at which the budget is used up.
 */
uint64_t state_dir_budget_begin(uid_t uid);
bool state_dir_budget_spent(uint64_t end);
/*
 * The state of a listing of the directories of all users except root. Only root makes such a
 * listing. Any user can create names in STATE_DIR_ROOT, so the number of names and the CPU time
 * of this thread are bounded.
 */
#define STATE_DIR_MAX_NAMES 65536
#define STATE_DIR_MAX_SECONDS 4
struct state_dirs {
	/* NULL: the caller is not root, or the directory cannot be listed (see errno) */
	DIR *root;
	unsigned int nr_names;
	uint64_t end;
	bool is_cut;		/* the listing is incomplete, because a maximum was reached */
};

void state_dirs_begin(struct state_dirs *folders);
/* Finds the next user's directory and sets @uid. At the end, closes @folders and returns false. */
bool state_dirs_next(struct state_dirs *folders, uid_t *uid);
/*
 * Reads the uid in the name of a directory. "gpupart-0" is a valid name. "gpupart-00" is not
 * valid, because any user can create it.
 */
bool state_dir_uid(const char *name, uid_t *uid);
/*
 * Copies the string in the @room bytes at @from. Another process wrote this string. The copy has at
 * most @len bytes and is terminated. The function replaces characters that are not printable ASCII
 * with question marks.
 */
__attribute__((visibility("default")))
void state_dir_copy_text(char *to, size_t len, const char *from, size_t room);
/*
 * Returns the start time of a process, in clock ticks of the initial time namespace. If there is no
 * such process, or if the process is dead, returns 0.
 */
GPUPART_PRIVATE
uint64_t state_dir_process_start(pid_t pid);
/* Returns true if @pid is the process that started at @start. Returns false if @start is 0. */
GPUPART_PRIVATE
bool state_dir_process_lives(pid_t pid, uint64_t start);
__attribute__((visibility("default")))
uint64_t state_dir_pid_namespace(void);
/*
 * The inode of the first pid namespace (PROC_PID_INIT_INO in the kernel). In this namespace, every
 * process is visible.
 */
#define STATE_DIR_FIRST_PID_NAMESPACE 0xeffffffcu
/*
 * Returns true if /proc shows the pids of this process's own pid namespace. The mounted /proc may
 * belong to another namespace.
 */
__attribute__((visibility("default")))
bool state_dir_proc_is_own(void);

/* Values of /proc/PID/status. */
struct state_dir_status {
	unsigned int uids[4];	/* the real, effective, saved and file system uid */
	int inner;		/* pid in the process's own namespace, or 0 */
	bool nested;		/* the process is in a pid namespace below ours */
};

__attribute__((visibility("default")))
bool state_dir_read_status(int pid, struct state_dir_status *status);
/* Returns the pid namespace of a process. If the namespace is unknown, returns 0. */
__attribute__((visibility("default")))
uint64_t state_dir_namespace_of(int pid);

/*
 * A list of the processes in pid namespaces below this process's namespace. The list is read one
 * time for several look-ups. At the start, all members must be zero.
 */
struct state_dir_nested {
	bool made, complete;
	unsigned int nr;
	struct state_dir_nested_row {
		int pid, inner;		/* pid in our namespace, and in its own namespace */
		uint64_t pid_namespace;	/* 0: not shown by /proc */
	} *rows;
};

/*
 * If the list was not read yet, reads the list. If memory is short, or if /proc belongs to another
 * pid namespace, the list may lack processes. In this case the function returns false.
 */
bool state_dir_nested_create(struct state_dir_nested *nested);
void state_dir_nested_free(struct state_dir_nested *nested);

#endif
