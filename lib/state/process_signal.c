// SPDX-License-Identifier: MIT
/*
 * Sends a signal to a process from the list of processes. If another process has the pid now, sends
 * no signal.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/core/ctx.h"
#include "lib/state/process.h"

int gpupart_process_signal(struct gpupart *gp, const struct gpupart_process *process, int signal,
			   bool (*still)(const struct gpupart_process *now, void *arg), void *arg)
{
	int pidfd = process->pid > 0 ? syscall(SYS_pidfd_open, process->pid, 0) : -1, err = 0;
	struct gpupart_process now;

	if (pidfd < 0 && process->pid > 0 && errno != ESRCH)
		return ctx_fail(gp, -errno,
				"process %d was not signalled: pidfd_open: %s; without a pidfd the signal could reach another process",
				process->pid, strerror(errno));
	/*
	 * From now on, if the process ends and another process gets its pid, pidfd_send_signal()
	 * fails.
	 */
	if (pidfd < 0 || !process_read(process->pid, process->uid, &now) ||
	    (still && !still(&now, arg)))
		err = -ESRCH;
	else if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0))
		err = -errno;
	if (pidfd >= 0)
		close(pidfd);
	return !err ? 0 : ctx_fail(gp, err, "process %d of user %u was not signalled: %s",
				   process->pid, process->uid, err == -ESRCH ?
				   "the process has ended, or executes another program now" :
				   strerror(-err));
}
