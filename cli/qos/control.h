/* SPDX-License-Identifier: MIT */
/*
 * Functions that `gpupart qos run` and `calibrate` share. They start, adopt and end the programs
 * of tenants. Call all functions from one thread.
 */
#ifndef GPUPART_CLI_QOS_CONTROL_H
#define GPUPART_CLI_QOS_CONTROL_H

#include <signal.h>
#include "cli/qos/live.h"

struct control {
	const struct qos_options *options;
	bool calibrating;	/* true for `calibrate`, which ends the programs that it starts */
	unsigned int number;		/* value of --epochs, or of --seconds in calibrate */
	struct qos_setup setup;
	struct live live;
	int lock, signals;
	sigset_t before;
	int ended_by;			/* the signal that ended this command; 0: none */
	/* sets before the start, which the guard process restores */
	struct gpupart_tpcset old[QOS_MAX_TENANTS];
	int guard;			/* a pipe to the guard process; 0: no guard process */
	pid_t guard_pid;
	struct lend_orders *orders;	/* one for each tenant, for watchers; NULL: none */
};

/*
 * Returns for how long scores and orders for lending are valid, in ms. If this process is stopped,
 * they expire. A swap on a slow machine takes longer than an epoch.
 */
static inline long control_hold_ms(const struct control *c)
{
	return 3 * (long)(c->setup.epoch_ns / 1000000) + 5000;
}

/* Functions that return int return 0 or an exit status. */

/*
 * Reads the options and the tenants, then opens and locks the GPU. Without the lock, two
 * controllers would undo each other's changes. Call control_close() even if this function fails.
 */
int control_open(struct control *c, const struct args *args, const struct qos_options *options);
void control_close(struct control *c);

/*
 * Adopts the running programs that the file names, and the running programs that an earlier
 * controller started.
 */
int control_adopt(struct control *c);

/* Redirects signals to a descriptor, which control_wait() reads. */
int control_take_signals(struct control *c);

/*
 * For `calibrate` and `gpupart tune`. Calls control_take_signals(), opens the socket for reports
 * and finds running programs. If some are not tenants, prints @others and lists them.
 */
int control_begin(struct control *c, const char *others);

/*
 * Starts the program of tenant @i in @set. If the program cannot be started, returns an exit
 * status. Otherwise returns 0.
 */
int control_start(struct control *c, unsigned int i, const struct gpupart_tpcset *set);

/*
 * Ends the program of tenant @i and its process group. Waits until all processes of both have
 * ended. If this command did not start the program, does nothing.
 */
void control_end(struct control *c, unsigned int i);

/*
 * Sets the TPCs of each tenant. The set of tenant @i is sets[i]. If a set cannot be changed, prints
 * a command that changes it.
 */
void control_give(struct control *c, const struct gpupart_tpcset *sets);

/*
 * Starts a guard process, if there is none. If this process is killed before control_close(), the
 * guard restores the sets and ends the programs that this process started, also those that were
 * started after this call. Afterwards the guard releases the lock of the GPU.
 */
int control_guard(struct control *c);

/* Reaps programs that ended and stores their statuses. */
void control_reap(struct control *c);

/*
 * Sleeps until @until_ns, or until all tenants have ended. Meanwhile handles signals and lines from
 * the socket.
 */
void control_wait(struct control *c, uint64_t until_ns);

bool control_all_gone(const struct control *c);

#endif
