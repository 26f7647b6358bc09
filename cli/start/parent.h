/* SPDX-License-Identifier: MIT */
/*
 * Runs a program as a child and acts like this program: passes signals on, stops when the
 * program stops, and ends in the same way as the program.
 */
#ifndef GPUPART_CLI_START_PARENT_H
#define GPUPART_CLI_START_PARENT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct parent {
	int (*become)(void *arg); /* in the child: executes the program, or returns a status */
	/*
	 * Called while the program runs and at each SIGIO. Returns the time in ms until the next
	 * call.
	 */
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
 * Waits for the end of the program and returns the status of waitpid(). Passes on signals that
 * only this process gets. Stops this process when the program stops. When this process is
 * continued, it continues the program. If only the program gets SIGSTOP, this process does not
 * stop. But if the terminal sends SIGTSTP after this, this process stops.
 */
int parent_wait(struct parent *parent);

/*
 * Returns the program's exit status. If a signal ended the program, ends this process by the same
 * signal.
 */
int parent_end_as(int wstatus);

#endif
