/* SPDX-License-Identifier: MIT */
/*
 * Protects the program while the library writes small files. If a write exceeds the file size limit
 * (ulimit -f), this code discards the signal. Then the write fails, and the signal does not kill
 * the program. All other signals wait until the end. Otherwise a signal, for example the signal of
 * a profiler's timer, would make posix_fallocate() on a tmpfs fail with EINTR in older kernels.
 */
#ifndef GPUPART_LIB_CORE_FSIZE_H
#define GPUPART_LIB_CORE_FSIZE_H

#include <signal.h>
#include <stdbool.h>

struct fsize_guard {
	sigset_t before;
	bool was_pending;
};

static inline void fsize_guard_begin(struct fsize_guard *guard)
{
	sigset_t set;

	sigpending(&set);
	guard->was_pending = sigismember(&set, SIGXFSZ) == 1;
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, &guard->before);
}

static inline void fsize_guard_end(const struct fsize_guard *guard)
{
	static const struct timespec at_once;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	if (!guard->was_pending)
		while (sigtimedwait(&set, NULL, &at_once) > 0)
			;
	pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

#endif
