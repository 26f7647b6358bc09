/* SPDX-License-Identifier: MIT */
/* Processes: identifies them by their start times, sends signals, waits, and closes descriptors. */
#ifndef GPUPART_CLI_UTIL_PROCESS_H
#define GPUPART_CLI_UTIL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Identifies a process: a later process with the same pid has another start time. */
struct process {
	int pid;
	unsigned long long start;	/* clock ticks since boot; 0: the process has ended */
};

static inline bool process_same(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->start == b->start;
}

/* Finds process @pid. Returns false if the process has ended or is a zombie. */
bool process_find(int pid, struct process *process);

/* A process, with its parent and its name in the kernel. */
struct process_parent {
	struct process process;
	int parent;
	char name[16];
};
bool process_find_parent(int pid, struct process_parent *found);

/* Returns whether the name of the process is @name. The kernel keeps 15 characters of a name. */
bool process_is_named(const struct process *process, const char *name);

bool process_lives(const struct process *process);

/*
 * Reads the variable @name in the environment with which @pid started. If this fails, the value
 * is "".
 */
void process_variable(int pid, const char *name, char *value, size_t len);

/*
 * Sends @signal to this process, and never to a later process with the same pid. Returns 0 or
 * -errno. If the kernel has no pidfd (before Linux 5.3), sends nothing and returns -ENOSYS.
 */
int process_signal(const struct process *process, int signal);

/* Returns the current time in the unit of @start. */
unsigned long long process_ticks_now(void);

/* Returns the time of CLOCK_MONOTONIC in ns. */
uint64_t process_now_ns(void);

/*
 * process_now_ms() returns the time since boot in ms. process_pause() sleeps. The longer the
 * caller has waited, the longer the function sleeps.
 */
long process_now_ms(void);
void process_pause(long waited_ms);

/*
 * Waits for a child. Returns its exit status (128 + signal) or -errno. After @seconds (0: no
 * limit), kills the child and its process group and returns -ETIMEDOUT. The caller must not ignore
 * SIGCHLD.
 */
int process_wait(pid_t pid, unsigned int seconds);

/*
 * Uses @in as stdin, and uses @out as stdout and stderr (-1: /dev/null). Closes all other
 * descriptors except @keep and @keep_too (-1: none). Otherwise this process could keep a pipe
 * open, and the reader of this pipe would not see its end.
 */
void process_let_go(int in, int out, int keep, int keep_too);

#endif
