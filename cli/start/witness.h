/* SPDX-License-Identifier: MIT */
/*
 * Searches the descendants of a process for processes that use CUDA without the injected library.
 * Reads /proc.
 */
#ifndef GPUPART_CLI_START_WITNESS_H
#define GPUPART_CLI_START_WITNESS_H

#include <time.h>
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
	 * The first process that this user cannot examine. If there are more such processes,
	 * @more_hidden is true.
	 */
	struct process hidden;
	char hidden_name[16];
	bool more_hidden;
	/*
	 * The processes that are not descendants of the program, in the order of their pids. The
	 * next scan does not read these processes again, unless they may have the report.
	 */
	struct witness_other {
		int pid;
		ino_t inode;
		struct timespec made;
		bool older;	/* than the program */
	} *others;
	unsigned int nr_others;
};

/*
 * Scans /proc once. Examines @root, the descendants of @root, and this user's processes with the
 * same GPUPART_REPORT as this process. Ignores processes of this command. Misses a process that
 * starts and ends between two scans. If the parent of a process has ended and the process lacks the
 * variable, does not find the process. If @simulated is true, there is no device to check. A
 * process without root privileges cannot examine a setuid program or a program that called
 * prctl(PR_SET_DUMPABLE). All scans with the same @witness must have the same @root.
 */
void witness_look(struct witness *witness, int root, bool simulated);

/*
 * Watches /dev/nvidia-uvm. If @simulated is true, watches the simulated libcuda.so.1 instead. When
 * a process opens the file, this process gets SIGIO. Returns a descriptor. If the file cannot be
 * watched, returns -1.
 */
int witness_watch(bool simulated);

/* Returns whether a process has opened the watched file since the last call. */
bool witness_woken(int watch);

/*
 * Returns true if @pid is a descendant of @root, or if @pid has the same GPUPART_REPORT as this
 * process.
 */
bool witness_is_below(int pid, int root);

#endif
