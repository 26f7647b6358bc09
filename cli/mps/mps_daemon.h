/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's MPS control daemon in a directory. Checks whether a daemon answers, starts a daemon, and
 * ends a daemon that gpupart started. Callers that start or end a daemon hold the lock of mps.c.
 */
#ifndef GPUPART_CLI_MPS_MPS_DAEMON_H
#define GPUPART_CLI_MPS_MPS_DAEMON_H

#include <limits.h>
#include <stdbool.h>

#define MPS_DAEMON_PIPES "CUDA_MPS_PIPE_DIRECTORY"
#define MPS_DAEMON_LOGS "CUDA_MPS_LOG_DIRECTORY"

/* The node's daemon. gpupart-mps.service starts it for all users. */
#define MPS_DAEMON_NODE "/run/gpupart/mps"

struct mps_daemon {
	char dir[PATH_MAX];	/* directory of the pipes; the directory log/ in it has the logs */
	char control[PATH_MAX];	/* path of NVIDIA's program, or "" */
	char why[512];		/* reason of the last failure */
};

/* Stores the reason of a failure in @why. Returns @err. */
__attribute__((format(printf, 3, 4)))
int mps_daemon_fail(struct mps_daemon *daemon, int err, const char *fmt, ...);

/* Makes the path of @name in the directory. If the path is too long, it is "". */
void mps_daemon_path(const struct mps_daemon *daemon, const char *name, char path[PATH_MAX]);

/* Finds NVIDIA's program. Returns 0 or -ENOENT. */
int mps_daemon_find_control(struct mps_daemon *daemon);

/*
 * Returns whether a daemon answers. Another program may have started the daemon. If @control is "",
 * asks the kernel whether a process listens there, and does not ask the daemon.
 */
bool mps_daemon_answers(const struct mps_daemon *daemon);

/*
 * Finds the node's daemon. If clients can use the daemon, returns 0. If the directory does not
 * exist, the node has no daemon, and the result is -ENOENT. Otherwise returns another -errno with a
 * reason in @why. Takes at most 5 s.
 */
int mps_daemon_find_node(struct mps_daemon *daemon);

/*
 * If process @pid is a client of the daemon, asks the daemon to end the GPU work of this process.
 * Call this function before a client is killed. If a client is killed while its kernel runs, all
 * other clients of the same server may fail. Returns when the daemon has answered, or when
 * process_now_ms() reaches @until.
 */
void mps_daemon_terminate(const struct mps_daemon *daemon, int pid, long until);

/*
 * If a daemon is ending, returns -EBUSY. Such a daemon waits for its clients and accepts no new
 * clients.
 */
int mps_daemon_busy(struct mps_daemon *daemon);

/* If no daemon answers and accepts clients, starts a daemon. Returns 0 or -errno. */
int mps_daemon_have(struct mps_daemon *daemon);

/*
 * Ends the daemon that mps_daemon_have() started in this process or in another process. Waits for
 * the end of the daemon.
 */
void mps_daemon_end(struct mps_daemon *daemon);

#endif
