/* SPDX-License-Identifier: MIT */
/*
 * Runs a program as a child and acts like this program. Passes signals on, stops when the program
 * stops, and ends in the same way as the program.
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
 * Waits for the end of the program and returns the status of waitpid(). If this process gets a
 * signal and the program does not, passes the signal on. When the program stops, this process
 * stops. When this process continues, it continues the program. If the program alone gets SIGSTOP,
 * this process does not stop. If the terminal then sends SIGTSTP, this process stops.
 */
int parent_wait(struct parent *parent);

/*
 * Returns the program's exit status. If a signal ended the program, ends this process by the same
 * signal.
 */
int parent_end_as(int wstatus);

#endif
