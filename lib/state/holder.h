/* SPDX-License-Identifier: MIT */
/* Finds the process that owns a state page. */
#ifndef GPUPART_LIB_STATE_HOLDER_H
#define GPUPART_LIB_STATE_HOLDER_H

#include <sys/types.h>
#include "lib/state/state_page.h"

/*
 * The state of one scan of the files of one or more users. Before the scan, all members except
 * @maps_max must be 0. If there are several users, the caller sets @maps_read to 0 before it scans
 * each user's files.
 */
struct holder_table {
	struct state_dir_nested nested;
	size_t maps_max, maps_read;	/* @maps_read: number of bytes of /proc/PID/maps that were
					 * read; @maps_max: maximum of this number, or 0 for no
					 * maximum */
};

GPUPART_PRIVATE
void holder_table_free(struct holder_table *table);

/*
 * Returns true if the scan has used up its budget for reading maps. From then on, a process counts
 * as the owner of a state page if the page contains its pid and its start time.
 */
bool holder_spent(const struct holder_table *table);

/*
 * Finds the process that owns the state page @page. The page is in the file @fd in the directory of
 * @uid. Returns the pid of the owner in the caller's pid namespace. If the owner lives but is not
 * visible in this pid namespace, returns 0. If no owner was found, returns -ESRCH. The contents of
 * the state page prove nothing, because any process of the user can write to the page.
 */
GPUPART_PRIVATE
int holder_pid(int fd, uid_t uid, const struct shared_header *page, struct holder_table *table);
/*
 * Returns true if the process @pid, which owned the state page, still owns the page. Another
 * process may have this pid now, but that process does not hold the page's lock.
 */
GPUPART_PRIVATE
bool holder_is(int fd, uid_t uid, int pid);

/*
 * Returns true if it is certain that no process in any namespace has the file open or mapped for
 * writing. The file is then an orphan and may be deleted. The descriptor @fd must be open for
 * reading only. The arguments @pid, @pid_namespace and @start identify the process that created the
 * file. The value 0 means unknown.
 */
bool holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace);

/*
 * Returns true if it is certain that the pid namespace @pid_namespace contains no process of this
 * user.
 */
bool holder_namespace_gone(uint64_t pid_namespace);

#endif
