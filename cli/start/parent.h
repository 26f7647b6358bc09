/* SPDX-License-Identifier: MIT */
/* Runs a program as a child, transparently: passes signals on, stops and ends like it. */
#ifndef GPUPART_CLI_START_PARENT_H
#define GPUPART_CLI_START_PARENT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct parent {
	int (*become)(void *arg); /* in the child: executes the program, or returns a status */
	/* Called while the program runs and at each SIGIO. Returns ms until the next call. */
	long (*look)(void *arg, pid_t child);
	void *arg;
	int keep;		/* descriptor to keep open in this process, or -1 */
	pid_t child;		/* set by parent_start() */
	sigset_t before;
	struct sigaction chld_before;
	bool child_held;	/* SIGSTOP stopped the program, but not this process */
};

/* Starts the program and blocks all signals in this process. Returns 0 or -errno. */
int parent_start(struct parent *parent);

/*
 * Waits for the end of the program and returns the status of waitpid(). Signals for this process
 * alone are passed on. This process stops when the program stops, and continues the program when it
 * is continued itself. It does not stop if only the program gets SIGSTOP, but still stops then for
 * a terminal's SIGTSTP.
 */
int parent_wait(struct parent *parent);

/* Returns the program's exit status; if a signal ended the program, ends by the same signal. */
int parent_end_as(int wstatus);

#endif
