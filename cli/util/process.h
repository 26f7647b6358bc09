/* SPDX-License-Identifier: MIT */
/* Processes: identity by start time, signals, waiting, closing descriptors. */
#ifndef GPUPART_CLI_UTIL_PROCESS_H
#define GPUPART_CLI_UTIL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Identifies a process: a later process with the same pid has another start time. */
struct process {
	int pid;
	unsigned long long start;	/* clock ticks since boot; 0: it has ended */
};

static inline bool process_same(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->start == b->start;
}

/* Finds process @pid; false if it has ended or is a zombie. */
bool process_find(int pid, struct process *process);

/* The same, with its parent and its name in the kernel. */
struct process_parent {
	struct process process;
	int parent;
	char name[16];
};
bool process_find_parent(int pid, struct process_parent *found);

/* Whether its name is @name; the kernel keeps 15 characters. */
bool process_is_named(const struct process *process, const char *name);

bool process_lives(const struct process *process);

/* Reads variable @name of the environment with which @pid started; "" if that fails. */
void process_variable(int pid, const char *name, char *value, size_t len);

/*
 * Sends @signal to this process, never to a later one with its pid. Returns 0 or -errno; -ENOSYS if
 * the kernel has no pidfd (before Linux 5.3), without sending anything.
 */
int process_signal(const struct process *process, int signal);

/* The current time in the unit of @start. */
unsigned long long process_ticks_now(void);

/* CLOCK_MONOTONIC in ns. */
uint64_t process_now_ns(void);

/* Time since boot in ms; a pause that is longer after @waited_ms of waiting. */
long process_now_ms(void);
void process_pause(long waited_ms);

/*
 * Waits for a child. Returns its exit status (128 + signal) or -errno. After @seconds (0: no limit)
 * it kills the child and its group and returns -ETIMEDOUT. SIGCHLD must not be ignored.
 */
int process_wait(pid_t pid, unsigned int seconds);

/*
 * Makes @in stdin and @out stdout and stderr (-1: /dev/null), and closes all other descriptors but
 * @keep and @keep_too (-1: none), so that no reader of a pipe waits for this process.
 */
void process_let_go(int in, int out, int keep, int keep_too);

#endif
