/* SPDX-License-Identifier: MIT */
/*
 * What files that processes share below /dev/shm have in common: the folder they are in,
 * and which process is which. Needs libc alone.
 */
#ifndef GPUPART_LIB_CORE_STATE_DIR_H
#define GPUPART_LIB_CORE_STATE_DIR_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>
#include "lib/core/ctx.h"

#define CONTROL_ROOT "/dev/shm"
/* Of another user's folder no more is looked at: no user has that many processes on GPUs. */
#define CONTROL_MAX_FILES 4096
#define CONTROL_NAME_LEN 64	/* of a job, a tenant, a program, with its end */

/* A descriptor that is closed where its block ends; negative: there is none. */
#define CONTROL_CLOSED __attribute__((cleanup(control_close)))

static inline void control_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Of a job or a tenant: 1 to 63 letters, digits, '.', '_' and '-', the first no '-'. */
__attribute__((visibility("default"))) bool control_name_good(const char *name);
/* 0700 and @uid's, or a negative errno; *path is made. */
__attribute__((visibility("default")))
int control_open_dir(uid_t uid, bool make);
/* Lists the folder @dir, which is closed with the list or on failure; NULL: it cannot be listed. */
GPUPART_PRIVATE
DIR *control_read_dir(int dir);
/* Whole or not at all, whenever we die: another file takes the place of the old one. 0, -errno. */
GPUPART_PRIVATE
int control_write_file(int dir, const char *file, const void *data, size_t len, mode_t mode);
/* flock(): 0; -EBUSY: another has held it for 5 s, who may have been stopped; -errno. */
GPUPART_PRIVATE
int control_lock_file(int fd);
/*
 * Work for the files of another user: a second of this thread's CPU time, however many there are
 * and whatever is in them; what is this user's own has no bound. control_budget_begin() returns
 * when it is used up.
 */
uint64_t control_budget_begin(uid_t uid);
bool control_budget_spent(uint64_t end);
/*
 * The folders of the users other than root, for root. Any user can make names below CONTROL_ROOT:
 * of all names so many are looked at, for so many seconds of this thread's CPU time in all.
 */
#define CONTROL_MAX_NAMES 65536
#define CONTROL_MAX_SECONDS 4
struct control_folders {
	DIR *root;		/* NULL: it cannot be listed, see errno, or this is not root */
	unsigned int nr_names;
	uint64_t end;
	bool is_cut;		/* not all was looked at */
};

void control_folders_begin(struct control_folders *folders);
/* The next user's, in @uid; false: the end, and @folders is closed. */
bool control_next_folder(struct control_folders *folders, uid_t *uid);
/* Whose folder that is: "gpupart-0", not "gpupart-00" which anybody can make. */
bool control_folder_uid(const char *name, uid_t *uid);
/* @room bytes of another process into @len: printable ASCII or a question mark, and an end. */
__attribute__((visibility("default")))
void control_copy_text(char *to, size_t len, const char *from, size_t room);
/* When a process began, in clock ticks of the first time namespace; 0: it is none, or dead. */
GPUPART_PRIVATE
uint64_t control_process_start(pid_t pid);
/* Whether @pid is the process that began at @start; false where that is 0. */
GPUPART_PRIVATE
bool control_process_lives(pid_t pid, uint64_t start);
__attribute__((visibility("default")))
uint64_t control_pid_namespace(void);
/* Whether /proc shows the pids of our own namespace: it may be mounted from another. */
__attribute__((visibility("default")))
bool control_proc_is_ours(void);

/* What /proc/PID/status says. */
struct control_status {
	unsigned int uids[4];	/* real, effective, saved, of files */
	int inner;		/* its pid in its own namespace, or 0 */
	bool nested;		/* which is none of ours */
};

__attribute__((visibility("default")))
bool control_read_status(int pid, struct control_status *status);
/* The pid namespace of a process; 0: it is not told. */
__attribute__((visibility("default")))
uint64_t control_namespace_of(int pid);

/* Processes of pid namespaces below ours, once for all that is looked up. All zero at first. */
struct control_nested {
	bool made;
	unsigned int nr;
	struct control_nested_row {
		int pid, inner;		/* here, and in its own namespace */
		uint64_t pid_namespace;	/* 0: /proc does not tell it */
	} *rows;
};

/* Lists them, unless that was done; none where there is no memory or /proc is another's. */
void control_nested_make(struct control_nested *nested);
void control_nested_free(struct control_nested *nested);

#endif
