/* SPDX-License-Identifier: MIT */
/* Finds the process that a state page belongs to. */
#ifndef GPUPART_LIB_STATE_HOLDER_H
#define GPUPART_LIB_STATE_HOLDER_H

#include <sys/types.h>
#include "lib/state/state_page.h"

/*
 * The state of one scan of the files of a user, or of several users; @maps_read is then set to
 * 0 for each user. All members except @maps_max start as zero.
 */
struct holder_table {
	struct state_dir_nested nested;
	size_t maps_max, maps_read;	/* bytes of /proc/PID/maps; @maps_max 0: unlimited */
};

GPUPART_PRIVATE
void holder_table_free(struct holder_table *table);

/*
 * Whether the scan has read as much of the maps as it may. After that, a process that has the
 * state page's pid and start time counts as its owner.
 */
bool holder_spent(const struct holder_table *table);

/*
 * Returns the pid, in the caller's namespace, of the process that owns the state page @block in
 * the file @fd of @uid's directory. 0: the process lives, but has no number in this pid
 * namespace. -ESRCH: none was found. The contents of the state page prove nothing, because any
 * process of the user can write them.
 */
GPUPART_PRIVATE
int holder_pid(int fd, uid_t uid, const struct shared_header *block, struct holder_table *table);
/*
 * Whether @pid, which owned the state page, still owns it. The number may belong to another
 * process now; the lock does not.
 */
GPUPART_PRIVATE
bool holder_is(int fd, uid_t uid, int pid);

/*
 * Whether certainly no process, in any namespace, has the file open or mapped for writing: it
 * is then an orphan and may be deleted. @fd must be open for reading only. @pid and
 * @pid_namespace are those of the process that created the file, @start its start time; 0:
 * unknown.
 */
bool holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace);

/* Whether certainly no process of this user is left in that pid namespace. */
bool holder_namespace_gone(uint64_t pid_namespace);

#endif
