/* SPDX-License-Identifier: MIT */
/* Staying as the parent of a program, as if it were not there. Knows no GPU. */
#ifndef GPUPART_CLI_START_PARENT_H
#define GPUPART_CLI_START_PARENT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct parent {
	int (*become)(void *arg);	/* in the child: the program, or its exit status */
	/* Now and then while it runs, also at each SIGIO; the milliseconds until the next time. */
	long (*look)(void *arg, pid_t child);
	void *arg;
	int keep;		/* a descriptor that stays open here, or -1 */
	pid_t child;		/* filled by parent_start() */
	sigset_t before;
	struct sigaction chld_before;
	bool child_held;	/* SIGSTOP stopped the program, this process runs */
};

/* Starts it: 0, or a negative errno. All signals are blocked here from then on. */
int parent_start(struct parent *parent);

/*
 * Waits for its end, and returns the status of waitpid(). What is sent to this process alone is
 * passed on; it stops when the program stops, and continues it when it is continued. Of SIGSTOP for
 * the program alone it takes no part, but then still stops for a terminal.
 */
int parent_wait(struct parent *parent);

/* The exit status that says the same; does not return where a signal ended the program. */
int parent_end_as(int wstatus);

#endif
