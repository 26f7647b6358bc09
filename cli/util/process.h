/* SPDX-License-Identifier: MIT */
/*
 * Identifies processes by their start times. Sends signals to processes and waits for processes.
 * Closes descriptors.
 */
#ifndef GPUPART_CLI_UTIL_PROCESS_H
#define GPUPART_CLI_UTIL_PROCESS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Identifies a process. If a later process has the same pid, its start time is different. */
struct process {
	int pid;
	unsigned long long start;	/* clock ticks since boot; 0: the process has ended */
};

static inline bool process_same(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->start == b->start;
}

/* Returns the pid of the next process in the directory /proc, or 0 if there are no more. */
int process_next(DIR *proc);

/* Finds process @pid. Returns false if the process has ended or is a zombie. */
bool process_find(int pid, struct process *process);

/* A process, its parent, and its name in the kernel. */
struct process_parent {
	struct process process;
	int parent;
	char name[16];
};
bool process_find_parent(int pid, struct process_parent *found);

/*
 * Returns whether the name of the process is @name. Compares 15 characters, because the kernel
 * shortens names.
 */
bool process_is_named(const struct process *process, const char *name);

bool process_lives(const struct process *process);

/*
 * Reads the variable @name from the initial environment of process @pid. If this fails, the value
 * is "".
 */
void process_variable(int pid, const char *name, char *value, size_t len);

/*
 * Sends @signal to this process, and never to a later process with the same pid. Before Linux 5.3,
 * there is no pidfd; then sends nothing and returns -ENOSYS. Otherwise returns 0 or -errno.
 */
int process_signal(const struct process *process, int signal);

/* Returns the current time in the unit of @start. */
unsigned long long process_ticks_now(void);

/* Returns the time of CLOCK_MONOTONIC in ns. */
uint64_t process_now_ns(void);

/*
 * The first function returns the time since boot in ms. The second function sleeps. Its sleep is
 * longer if the caller has already waited for a long time.
 */
long process_now_ms(void);
void process_pause(long waited_ms);

/*
 * Waits for a child. Returns the exit status of the child. If a signal killed the child, returns
 * 128 + signal. After an error, returns -errno. After @seconds seconds, kills the child and its
 * process group, and returns -ETIMEDOUT. If @seconds is 0, there is no time limit. The caller must
 * not ignore SIGCHLD.
 */
int process_wait(pid_t pid, unsigned int seconds);

/*
 * Uses @in as stdin, and uses @out as stdout and stderr. The value -1 means /dev/null. Closes all
 * other descriptors except @keep and @keep_too. For these, -1 means no descriptor. Otherwise this
 * process could keep a pipe open, and the reader of this pipe would see no end of file.
 */
void process_let_go(int in, int out, int keep, int keep_too);

#endif
