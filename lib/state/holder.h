/* SPDX-License-Identifier: MIT */
/* Finds the process that owns a state page. */
#ifndef GPUPART_LIB_STATE_HOLDER_H
#define GPUPART_LIB_STATE_HOLDER_H

#include <sys/types.h>
#include "lib/state/state_page.h"

/*
 * The state of one scan of the files of one or more users. If there are several users, the
 * caller sets @maps_read to 0 before it scans the files of each user. Before the scan, all
 * members except @maps_max are 0.
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
 * Returns true if the scan has used up its budget for reading maps. From then on, a process
 * counts as the owner of a state page if it has the pid and the start time that are in the page.
 */
bool holder_spent(const struct holder_table *table);

/*
 * Returns the pid, in the caller's namespace, of the process that owns the state page @page in
 * the file @fd of @uid's directory. Returns 0 if the process lives but is not visible in this
 * pid namespace. Returns -ESRCH if no owner was found. The contents of the state page prove
 * nothing, because any process of the user can write to the page.
 */
GPUPART_PRIVATE
int holder_pid(int fd, uid_t uid, const struct shared_header *page, struct holder_table *table);
/*
 * Returns true if the process @pid, which owned the state page, still owns the page. If another
 * process has this pid now, that process does not hold the page's lock.
 */
GPUPART_PRIVATE
bool holder_is(int fd, uid_t uid, int pid);

/*
 * Returns true if it is certain that no process in any namespace has the file open or mapped for
 * writing. The file is then an orphan and may be deleted. @fd must be open for reading only.
 * @pid, @pid_namespace and @start are the pid, the pid namespace and the start time of the
 * process that created the file; 0 means unknown.
 */
bool holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace);

/*
 * Returns true if it is certain that no process of this user is left in the pid namespace
 * @pid_namespace.
 */
bool holder_namespace_gone(uint64_t pid_namespace);

#endif
