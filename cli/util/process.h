/* SPDX-License-Identifier: MIT */
/* Processes: which one is which, waiting for one, being one that stays. */
#ifndef GPUPART_CLI_UTIL_PROCESS_H
#define GPUPART_CLI_UTIL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process, by what no later one with its number has too. */
struct process {
	int pid;
	unsigned long long start;	/* clock ticks since boot; 0: it is gone */
};

static inline bool process_same(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->start == b->start;
}

/* Finds process @pid; false where it is gone, or only its status is left. */
bool process_find(int pid, struct process *process);

/* The same, with its parent and the name that the kernel keeps. */
struct process_parent {
	struct process process;
	int parent;
	char name[16];
};
bool process_find_parent(int pid, struct process_parent *found);

/* Whether it is called @name, of which the kernel keeps 15 letters. */
bool process_is_named(const struct process *process, const char *name);

bool process_lives(const struct process *process);

/* The value of @name in the environment that @pid began with; "": it has none, or is not ours. */
void process_variable(int pid, const char *name, char *value, size_t len);

/*
 * Sends @signal to that process and to no later one with its number: 0, or -errno; -ENOSYS
 * where the kernel has no pidfd (before Linux 5.3): nothing is sent.
 */
int process_signal(const struct process *process, int signal);

/* Now, as in @start of a process that starts now. */
unsigned long long process_ticks_now(void);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t process_now_ns(void);

/* Milliseconds since boot, and a pause: short while little was waited, then longer. */
long process_now_ms(void);
void process_pause(long waited_ms);

/*
 * A child's exit status (128 + signal), or -errno: -ETIMEDOUT after @seconds (0: never),
 * when it and its group are killed. SIGCHLD must not be ignored.
 */
int process_wait(pid_t pid, unsigned int seconds);

/*
 * In a child: @in and @out (-1: nothing) become stdin, stdout and stderr, and every other
 * descriptor but the two to keep (-1: none) is closed: nobody is to wait for this one.
 */
void process_let_go(int in, int out, int keep, int keep_too);

#endif
