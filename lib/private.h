/* SPDX-License-Identifier: MIT */
/*
 * What gpupart's own programs need of libgpupart beyond its public headers: the command, the
 * injected library, Slurm's plugin and libsmctrl, each of the same build. Exported as
 * GPUPART_PRIVATE; changes without notice.
 */
#ifndef GPUPART_LIB_PRIVATE_H
#define GPUPART_LIB_PRIVATE_H

#include <gpupart_manage.h>

#pragma GCC visibility push(default)

/*
 * The same for a library that the driver loads at cuInit: makes no launch and no
 * CUDA context, so the mask bits must have been checked before, by this user's cache
 * or as @key says (struct gpupart_check, from a process that checked; may be NULL).
 * Stream sets need a gpupart_attach() later. -EOPNOTSUPP where they were not checked.
 */
int gpupart_attach_early(struct gpupart *gp, const char *gpu, const char *key,
			 struct gpupart_gpu **attached);

/*
 * Writes one, or another in its place: whole or not at all, whenever the caller dies. Who
 * plans around others must take turns. -EINVAL another id, name or address; -EACCES, .. who
 * is not root.
 */
int gpupart_grant_put(struct gpupart *gp, const struct gpupart_grant *grant);

/* No error where there is none. -EINVAL another id; -EACCES, .. who is not root. */
int gpupart_grant_drop(struct gpupart *gp, const char *id);

/*
 * What the processes of a run leave for it: which of them used CUDA, and which launches ran
 * outside of the run's limit, with more TPCs than it or on another GPU.
 */
#define GPUPART_REPORT_NR_KERNELS 16

/* Why: the counters of struct gpupart_counters that may leave a limit, in their order. */
enum gpupart_outside {
	GPUPART_OUTSIDE_DRIVER = 2,
	GPUPART_OUTSIDE_CLUSTER,
	GPUPART_OUTSIDE_COOPERATIVE,
	GPUPART_OUTSIDE_VERSION,
	GPUPART_OUTSIDE_MAP,
	GPUPART_OUTSIDE_GPU,
};

struct gpupart_report_kernel {
	char name[160];		/* as the driver has it; "" where it was not found out */
	unsigned int outside;	/* enum gpupart_outside */
	uint64_t count;		/* launches; nodes of graphs count when they are built */
	unsigned int cluster;	/* blocks of one cluster, or 0 */
	unsigned int nr_tpcs;	/* that the first such launch was given; 0: not known */
	struct gpupart_tpcset limit;	/* that it left; empty: not known */
};

enum gpupart_report_state {
	GPUPART_REPORT_BEGUN,	/* it began to use CUDA, and is not confined, for @why */
	GPUPART_REPORT_CONFINED,	/* on the GPU at @pci */
	GPUPART_REPORT_REFUSED,	/* strict: calls of the driver fail, for @why */
	GPUPART_REPORT_NOT_REFUSED,	/* strict: the driver cannot be made to fail them */
};

struct gpupart_report_process {
	int pid;		/* in @pid_namespace */
	unsigned int state;	/* enum gpupart_report_state */
	bool simulated;
	uint64_t start;		/* clock ticks since boot */
	uint64_t pid_namespace;	/* the inode of its /proc/PID/ns/pid */
	char name[16];
	char pci[20];
	char source[512];	/* of that GPU's topology, as struct gpupart_process has it */
	char why[256];
	struct gpupart_report_kernel kernels[GPUPART_REPORT_NR_KERNELS];	/* @count 0: none */
	uint64_t others;	/* launches outside of further kernels */
};

struct gpupart_report;

/*
 * A place for such reports, gone with gpupart_report_close(). @id is for GPUPART_REPORT, and
 * holds for processes of this user while the caller lives. There is room for 256 processes that
 * live or left something to report.
 */
int gpupart_report_open(struct gpupart *gp, struct gpupart_report **report, const char **id);
void gpupart_report_close(struct gpupart_report *report);

/*
 * What the @n'th process has left up to now, from 0: -ENOENT after the last. It is that process's
 * word; texts are printable ASCII. By any thread.
 */
int gpupart_report_get(const struct gpupart_report *report, unsigned int n,
		       struct gpupart_report_process *process);

/* Processes that found no room. */
unsigned int gpupart_report_lost(const struct gpupart_report *report);

/*
 * The calling process began to use CUDA, and reports to the place that @id names: for the library
 * that the driver loads at cuInit, before gpupart_attach_early(). -EINVAL, -ENOENT, .. for @id;
 * -ENOSPC where there is no room.
 */
int gpupart_report_start(struct gpupart *gp, const char *id);

/* Finds the names of kernels that are still missing, where the process ends normally. */
void gpupart_report_end(void);

/*
 * A strict process: after the first launch that ran outside of its limit each call of the driver
 * that launches fails with 800 (operation not permitted). @refuse: each of them fails from now
 * on, and so does what initializes CUDA or makes a context: for one that cannot be confined.
 * -EBUSY where another tool has the driver's callback; -EOPNOTSUPP where this driver does not
 * tell of its functions; -ENOSPC without @refuse where gpupart_report_start() had no room.
 */
int gpupart_strict_start(struct gpupart *gp, bool refuse);

/*
 * Whether /etc/gpupart/config, which root writes, has the line "strict = yes": 1 or 0. -EPERM
 * where another user could have written it, which is then ignored; -EINVAL for another value.
 */
int gpupart_config_strict(struct gpupart *gp);

#pragma GCC visibility pop

#endif
