/* SPDX-License-Identifier: MIT */
/* Which processes below another one use CUDA without the injected library, seen from outside. */
#ifndef GPUPART_CLI_START_WITNESS_H
#define GPUPART_CLI_START_WITNESS_H

#include "cli/util/process.h"

#define WITNESS_MAX 64

struct witness {
	unsigned int nr;
	struct witness_process {
		struct process process;
		char name[16];
		unsigned int looks;	/* in which it was seen so, one after the other */
	} processes[WITNESS_MAX];
	/* The first that this user may not look into, and whether there were others. */
	struct process hidden;
	char hidden_name[16];
	bool more_hidden;
};

/*
 * Looks once at @root and what it started: what is below it, and this user's processes that have
 * this process's GPUPART_REPORT in their environment. A process that began and ended between two
 * looks is missed, and so is one whose parent ended and whose environment lacks that; one of this
 * command itself is none. @simulated: there is no device to see. Of a setuid
 * program, or one that forbade it by prctl(PR_SET_DUMPABLE), only root sees more than that it runs.
 */
void witness_look(struct witness *witness, int root, bool simulated);

/*
 * A descriptor by which this process gets SIGIO when any process begins to use CUDA: opens
 * /dev/nvidia-uvm or, @simulated, the simulated libcuda.so.1. -1 where that cannot be watched.
 */
int witness_watch(bool simulated);

/* Whether one did since the last time. */
bool witness_woken(int watch);

/* Whether @pid is @root, below it, or has that in its environment. */
bool witness_is_below(int pid, int root);

#endif
