/* SPDX-License-Identifier: MIT */
/* Finds descendants of a process that use CUDA without the injected library, from /proc. */
#ifndef GPUPART_CLI_START_WITNESS_H
#define GPUPART_CLI_START_WITNESS_H

#include "cli/util/process.h"

#define WITNESS_MAX 64

struct witness {
	unsigned int nr;
	struct witness_process {
		struct process process;
		char name[16];
		unsigned int looks;	/* consecutive scans that found it unconfined */
	} processes[WITNESS_MAX];
	/* The first process that this user cannot examine, and whether there were others. */
	struct process hidden;
	char hidden_name[16];
	bool more_hidden;
};

/*
 * Scans /proc once for @root, its descendants, and this user's processes that have this process's
 * GPUPART_REPORT in their environment. Processes of this command itself are ignored. It misses a
 * process that started and ended between two scans, and one whose parent has ended and whose
 * environment lacks the variable. @simulated: there is no device to check. Only root can examine a
 * setuid program, or one that called prctl(PR_SET_DUMPABLE).
 */
void witness_look(struct witness *witness, int root, bool simulated);

/*
 * Makes this process get SIGIO when any process opens /dev/nvidia-uvm or, if @simulated, the
 * simulated libcuda.so.1. Returns a descriptor, or -1 if that cannot be watched.
 */
int witness_watch(bool simulated);

/* Returns whether a process has opened that file since the last call. */
bool witness_woken(int watch);

/* Whether @pid is below @root or has this process's GPUPART_REPORT in its environment. */
bool witness_is_below(int pid, int root);

#endif
