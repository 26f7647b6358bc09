/* SPDX-License-Identifier: MIT */
/*
 * The directory of the files that processes share below /dev/shm, and identification of the
 * processes they belong to. Depends on libc only.
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
 * The most files that are read in another user's directory: no user has as many processes on
 * GPUs.
 */
#define STATE_DIR_MAX_FILES 4096
#define STATE_DIR_NAME_LEN 64	/* of a job, tenant or program, with its terminating 0 */

/* A descriptor that is closed at the end of its block; negative: none. */
#define STATE_CLOSED __attribute__((cleanup(control_close)))

static inline void control_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/*
 * Whether @name is valid for a job or a tenant: 1 to 63 characters from A-Z a-z 0-9 . _ -, not
 * starting with '-'.
 */
__attribute__((visibility("default"))) bool state_dir_name_valid(const char *name);
/*
 * Opens the state directory of @uid, which has mode 0700, or returns a negative errno. With
 * @make it is created if necessary.
 */
__attribute__((visibility("default")))
int state_dir_open(uid_t uid, bool make);
/*
 * Opens @dir for listing. closedir() closes the descriptor, and so does a failure, which
 * returns NULL.
 */
GPUPART_PRIVATE
DIR *state_dir_read(int dir);
/*
 * Writes a file and renames it over the old one, so that the change is atomic even if we die.
 * Returns 0 or -errno.
 */
GPUPART_PRIVATE
int state_dir_write_file(int dir, const char *file, const void *data, size_t len, mode_t mode);
/*
 * flock(): returns 0; -EBUSY if another process, which may be stopped, has held the lock for 5
 * s; or -errno.
 */
GPUPART_PRIVATE
int state_dir_lock_file(int fd);
/*
 * Limits the work on another user's files to one second of this thread's CPU time, whatever
 * they contain; this user's own files have no limit. state_dir_budget_begin() returns the time at
 * which the budget is spent.
 */
uint64_t state_dir_budget_begin(uid_t uid);
bool state_dir_budget_spent(uint64_t end);
/*
 * Lists the directories of users other than root, for root. Any user can create names in
 * STATE_DIR_ROOT, so the number of names and this thread's CPU time are bounded.
 */
#define STATE_DIR_MAX_NAMES 65536
#define STATE_DIR_MAX_SECONDS 4
struct state_dirs {
	DIR *root;		/* NULL: it cannot be listed, see errno, or this is not root */
	unsigned int nr_names;
	uint64_t end;
	bool is_cut;		/* a bound was met */
};

void state_dirs_begin(struct state_dirs *folders);
/* Finds the next user's directory and sets @uid. Returns false at the end, and closes @folders. */
bool state_dirs_next(struct state_dirs *folders, uid_t *uid);
/*
 * The user of a directory by its name: "gpupart-0", but not "gpupart-00", which any user can
 * create.
 */
bool state_dir_uid(const char *name, uid_t *uid);
/*
 * Copies a string of @room bytes that another process wrote into @len bytes: other characters
 * than printable ASCII become question marks, and the result is terminated.
 */
__attribute__((visibility("default")))
void state_dir_copy_text(char *to, size_t len, const char *from, size_t room);
/*
 * The start time of a process, in clock ticks of the first time namespace; 0: no such process,
 * or it is dead.
 */
GPUPART_PRIVATE
uint64_t state_dir_process_start(pid_t pid);
/* Whether @pid is the process that started at @start; false if @start is 0. */
GPUPART_PRIVATE
bool state_dir_process_lives(pid_t pid, uint64_t start);
__attribute__((visibility("default")))
uint64_t state_dir_pid_namespace(void);
/* Whether /proc shows the pids of our own namespace; it may be mounted from another one. */
__attribute__((visibility("default")))
bool state_dir_proc_is_own(void);

/* Values of /proc/PID/status. */
struct state_dir_status {
	unsigned int uids[4];	/* real, effective, saved, file system */
	int inner;		/* its pid in its own namespace, or 0 */
	bool nested;		/* it is in a pid namespace below ours */
};

__attribute__((visibility("default")))
bool state_dir_read_status(int pid, struct state_dir_status *status);
/* The pid namespace of a process; 0: unknown. */
__attribute__((visibility("default")))
uint64_t state_dir_namespace_of(int pid);

/*
 * Processes in pid namespaces below ours, read once for several look-ups. All members start as
 * zero.
 */
struct state_dir_nested {
	bool made;
	unsigned int nr;
	struct state_dir_nested_row {
		int pid, inner;		/* pid here, and in its own namespace */
		uint64_t pid_namespace;	/* 0: not shown by /proc */
	} *rows;
};

/*
 * Reads the list if that has not been done. It is empty if memory is short or /proc is another
 * namespace's.
 */
void state_dir_nested_create(struct state_dir_nested *nested);
void state_dir_nested_free(struct state_dir_nested *nested);

#endif
