/* SPDX-License-Identifier: MIT */
/* Which process a block is of. */
#ifndef GPUPART_LIB_STATE_HOLDER_H
#define GPUPART_LIB_STATE_HOLDER_H

#include <sys/types.h>
#include "lib/state/process_block.h"

/*
 * One look at the files of a user, or of several: then @maps_read is set to 0 for each. All zero
 * at first, but for @maps_max.
 */
struct holder_table {
	struct control_nested nested;
	size_t maps_max, maps_read;	/* bytes of /proc/PID/maps; @maps_max 0: no limit */
};

GPUPART_PRIVATE
void holder_table_free(struct holder_table *table);

/*
 * Whether the look has read all of the maps that it may. From then on a process that has the
 * block's number and start time counts as its holder.
 */
bool holder_spent(const struct holder_table *table);

/*
 * The pid here of the process that shows itself by @block, the file @fd in the folder of
 * @uid; 0: it lives, but has no number in this pid namespace; -ESRCH: none was found. What
 * the block says of itself proves nothing: anybody may write it.
 */
GPUPART_PRIVATE
int holder_pid(int fd, uid_t uid, const struct shared_header *block, struct holder_table *table);
/* Whether @pid, which had it, has it yet: its number may be another's by now, its lock is not. */
GPUPART_PRIVATE
bool holder_is(int fd, uid_t uid, int pid);

/*
 * Whether surely no process has the file open for writing, or mapped so, in whatever
 * namespace: nobody's block, and it may be taken away. @fd must be open for reading alone.
 * @pid and @pid_namespace are of who made it, @start when that began; 0: not known.
 */
bool holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace);

/* Whether surely no process of this user's is in that pid namespace any more. */
bool holder_namespace_gone(uint64_t pid_namespace);

#endif
