/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's MPS control daemon in a directory: checks whether one answers, starts one, and ends the
 * one that gpupart started. Callers that start or end one hold the lock of mps.c.
 */
#ifndef GPUPART_CLI_MPS_MPS_DAEMON_H
#define GPUPART_CLI_MPS_MPS_DAEMON_H

#include <limits.h>
#include <stdbool.h>

#define MPS_DAEMON_PIPES "CUDA_MPS_PIPE_DIRECTORY"
#define MPS_DAEMON_LOGS "CUDA_MPS_LOG_DIRECTORY"

/* The node's daemon, which gpupart-mps.service starts for all users. */
#define MPS_DAEMON_NODE "/run/gpupart/mps"

struct mps_daemon {
	char dir[PATH_MAX];	/* directory of its pipes; its logs are in log/ */
	char control[PATH_MAX];	/* NVIDIA's program, or "" */
	char why[512];		/* reason of the last failure */
};

/* Stores a reason in @why. Returns @err. */
__attribute__((format(printf, 3, 4)))
int mps_daemon_fail(struct mps_daemon *daemon, int err, const char *fmt, ...);

/* Makes the path of @name in the directory; "" if it is too long. */
void mps_daemon_path(const struct mps_daemon *daemon, const char *name, char path[PATH_MAX]);

/* Finds NVIDIA's program. Returns 0 or -ENOENT. */
int mps_daemon_find_control(struct mps_daemon *daemon);

/*
 * Whether a daemon answers, started by anyone. If @control is "", only asks the kernel whether a
 * process listens there.
 */
bool mps_daemon_answers(const struct mps_daemon *daemon);

/*
 * Finds the node's daemon. Returns 0 if clients can use it; -ENOENT if its directory does not
 * exist, so that the node has no daemon; else another -errno with a reason in @why. Takes 5 s at
 * most. /
 */
int mps_daemon_find_node(struct mps_daemon *daemon);

/*
 * Asks the daemon to end the GPU work of process @pid, if it is a client. Call it before a client
 * is killed: a client that is killed during a kernel can take down all other clients of its server.
 * Returns when the daemon has answered, or at @until (process_now_ms()). /
 */
void mps_daemon_terminate(const struct mps_daemon *daemon, int pid, long until);

/* Returns -EBUSY if a daemon is ending: it waits for its clients and accepts no new ones. */
int mps_daemon_busy(struct mps_daemon *daemon);

/* Makes sure that a daemon answers and accepts clients; starts one if needed. 0 or -errno. */
int mps_daemon_have(struct mps_daemon *daemon);

/* Ends the daemon that mps_daemon_have() started in any process, and waits for its end. */
void mps_daemon_end(struct mps_daemon *daemon);

#endif
