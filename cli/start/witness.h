/* SPDX-License-Identifier: MIT */
/* Finds descendants of a process that use CUDA without the injected library. Reads /proc. */
#ifndef GPUPART_CLI_START_WITNESS_H
#define GPUPART_CLI_START_WITNESS_H

#include "cli/util/process.h"

#define WITNESS_MAX 64

struct witness {
	unsigned int nr;
	struct witness_process {
		struct process process;
		char name[16];
		/* number of consecutive scans in which the process was not confined */
		unsigned int looks;
	} processes[WITNESS_MAX];
	/*
	 * The first process that this user cannot examine. @more_hidden is true if there were
	 * more processes of this kind.
	 */
	struct process hidden;
	char hidden_name[16];
	bool more_hidden;
};

/*
 * Scans /proc once for @root, its descendants, and processes of this user that have this process's
 * GPUPART_REPORT in their environment. Ignores processes of this command. Does not find a process
 * that starts and ends between two scans. Does not find a process whose parent has ended and whose
 * environment lacks the variable. If @simulated is true, there is no device to check. Only root can
 * examine a setuid program or a program that called prctl(PR_SET_DUMPABLE).
 */
void witness_look(struct witness *witness, int root, bool simulated);

/*
 * Makes this process get SIGIO when any process opens /dev/nvidia-uvm or, if @simulated is true,
 * the simulated libcuda.so.1. Returns a descriptor, or -1 if this file cannot be watched.
 */
int witness_watch(bool simulated);

/* Returns whether a process has opened the watched file since the last call. */
bool witness_woken(int watch);

/*
 * Returns whether @pid is a descendant of @root or has this process's GPUPART_REPORT in its
 * environment.
 */
bool witness_is_below(int pid, int root);

#endif
