// SPDX-License-Identifier: MIT
/*
 * A library for coverage builds. If a process calls _exit() or exec, or if a signal such as
 * SIGTERM ends the process, this library writes the counters of the process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/coverage/ends.h"

#define PUBLIC __attribute__((visibility("default")))

/*
 * A unit is a program, a library, or a second copy of a library in the process. If the table is
 * full, the counters of further units are not written.
 */
static struct coverage_unit {
	void (*dump)(void);
	void (*reset)(void);
} units[64];

void coverage_add(void (*dump)(void), void (*reset)(void))
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].dump)
			continue;
		units[i] = (struct coverage_unit){ dump, reset };
		return;
	}
}

void coverage_remove(void (*dump)(void))
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].dump == dump)
			units[i] = (struct coverage_unit){ 0 };
}

static void dump_all(void)
{
	int err = errno;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].dump)
			units[i].dump();
	errno = err;
}

/* A process may continue after its counters were written. Then it must count from zero again. */
static void reset_all(void)
{
	int err = errno;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].dump)
			units[i].reset();
	errno = err;
}

PUBLIC __attribute__((noreturn)) void _exit(int status)
{
	void (*end)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_exit");

	dump_all();
	end(status);
	__builtin_unreachable();
}

PUBLIC int execve(const char *path, char *const argv[], char *const env[])
{
	int (*become)(const char *, char *const *, char *const *) =
		(int (*)(const char *, char *const *, char *const *))dlsym(RTLD_NEXT, "execve");
	int ret;

	dump_all();
	ret = become(path, argv, env);
	reset_all();
	return ret;
}

PUBLIC int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

PUBLIC int execvpe(const char *file, char *const argv[], char *const env[])
{
	int (*become)(const char *, char *const *, char *const *) =
		(int (*)(const char *, char *const *, char *const *))dlsym(RTLD_NEXT, "execvpe");
	int ret;

	dump_all();
	ret = become(file, argv, env);
	reset_all();
	return ret;
}

PUBLIC int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/*
 * This library must not change the wait status of the process. If the process hangs at this
 * point, the alarm ends the process.
 */
static void on_signal(int sig)
{
	signal(SIGALRM, SIG_DFL);
	alarm(10);
	dump_all();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void __attribute__((constructor)) catch_signals(void)
{
	static const int sigs[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction now, ours = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		if (!sigaction(sigs[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaction(sigs[i], &ours, NULL);
}
