/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's control daemon of MPS in a directory: whether one answers, having one, ending
 * the one that was started here. Who starts or ends one holds the lock of mps.c.
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
	char dir[PATH_MAX];	/* of its pipes; its logs are in log/ */
	char control[PATH_MAX];	/* NVIDIA's program, or "" */
	char why[512];		/* the sentence of what went wrong */
};

/* Keeps a sentence; returns @err. */
__attribute__((format(printf, 3, 4)))
int mps_daemon_fail(struct mps_daemon *daemon, int err, const char *fmt, ...);

/* @name in the directory; "" where that is too long. */
void mps_daemon_path(const struct mps_daemon *daemon, const char *name, char path[PATH_MAX]);

/* Finds NVIDIA's program: 0, or -ENOENT. */
int mps_daemon_find_control(struct mps_daemon *daemon);

/*
 * Whether one answers, whoever started it. If @control is "", only the kernel is asked whether a
 * process listens there.
 */
bool mps_daemon_answers(const struct mps_daemon *daemon);

/*
 * Finds the node's daemon: 0 if clients can join it; -ENOENT if this node is to have none, which
 * is so if its directory does not exist; otherwise another -errno and the sentence. Takes 5 s at
 * most.
 */
int mps_daemon_find_node(struct mps_daemon *daemon);

/*
 * Asks the daemon to end the GPU work of process @pid, if it is a client. To be done before a
 * client is killed: one that is killed in the middle of a kernel can end all other clients of its
 * server. Returns once the daemon has answered, or at @until (process_now_ms()).
 */
void mps_daemon_terminate(const struct mps_daemon *daemon, int pid, long until);

/* -EBUSY where one was told to end and waits for its clients: it takes no new ones. */
int mps_daemon_busy(struct mps_daemon *daemon);

/* One that answers and takes clients, started if there is none: 0 or -errno. */
int mps_daemon_have(struct mps_daemon *daemon);

/* Ends the one that mps_daemon_have() started, in whichever process, and sees it gone. */
void mps_daemon_end(struct mps_daemon *daemon);

#endif
