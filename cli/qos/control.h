/* SPDX-License-Identifier: MIT */
/* What run and calibrate share: the programs that they start or adopt, and when they end. */
#ifndef GPUPART_CLI_QOS_CONTROL_H
#define GPUPART_CLI_QOS_CONTROL_H

#include <signal.h>
#include "cli/qos/live.h"

struct control {
	const struct qos_options *options;
	bool calibrating;		/* this command ends what it starts */
	unsigned int number;		/* of --epochs, or of --seconds where it is calibrating */
	struct qos_setup setup;
	struct live live;
	int lock, signals;
	sigset_t before;
	int ended_by;			/* a signal to this command; 0 none */
	struct gpupart_tpcset old[QOS_MAX_TENANTS];	/* that control_restore() gives back */
	int guard;			/* a pipe to the process of control_guard(); 0 none */
	pid_t guard_pid;
};

/* Those that return a number return 0, or an error. */

/*
 * Reads the options and the tenants, opens the GPU, and takes its lock: a second controller would
 * undo what the first one does. Close it in any case.
 */
int control_open(struct control *c, const struct args *args, const struct qos_options *options);
void control_close(struct control *c);

/* Takes what runs already: what the file names, and what an earlier controller has started. */
int control_adopt(struct control *c);

/* Signals come by a descriptor from now on, to control_wait(). */
int control_take_signals(struct control *c);

/* Starts tenant @i's program in a set; an error is that of what could not be started. */
int control_start(struct control *c, unsigned int i, const struct gpupart_tpcset *set);

/* Ends tenant @i's program and its process group @group: none of it runs when this returns. */
void control_end(struct control *c, unsigned int i, pid_t group);

/* Gives each tenant its c->old. Where it cannot, it says how a user can. */
void control_restore(struct control *c);

/*
 * Until control_guard_end() another process restores the sets, and ends the programs that were
 * started, where this one dies by whatever signal. The GPU's lock is held until that is done.
 */
int control_guard(struct control *c);
void control_guard_end(struct control *c);

/* Takes the statuses of programs that ended. */
void control_reap(struct control *c);

/* Sleeps until @until_ns, or all tenants are gone; signals and lines that come are taken. */
void control_wait(struct control *c, uint64_t until_ns);

bool control_all_gone(const struct control *c);

#endif
