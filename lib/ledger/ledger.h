/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that the processes of a tenant are charged for, and its quota: one file for
 * each tenant, which all its processes map. Programs that only read link query.c, file.c and
 * state_dir.c, which depend on libc only.
 */
#ifndef GPUPART_LIB_LEDGER_LEDGER_H
#define GPUPART_LIB_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/core/state_dir.h"

#define LEDGER_MAX_GPUS		32
#define LEDGER_MAX_SLOTS	4096	/* processes of a tenant at the same time */
#define LEDGER_NAME_LEN		STATE_DIR_NAME_LEN
#define LEDGER_PCI_LEN		20	/* "0000:0d:00.0" as in gpupart_gpu_info */

/*
 * A tenant's file, mapped, with a slot for this process. The slot records all that the process
 * is charged for, and counts as long as the process lives. A kernel lock on the file shows
 * that; it is released when the process's memory is, by its end, its death or an exec, and by
 * nothing else.
 *
 * In the child of a fork it is empty, because the child has no GPU memory. There charging
 * returns -ESRCH, and other functions do nothing; the child joins again to get a slot of its
 * own. Any thread may call any function at any time. Only ledger_join(), ledger_gpu() and,
 * above the quota, ledger_charge() wait for another process, for at most 5 s if it was stopped
 * in the middle of a change.
 */
struct ledger;

/*
 * Creates or opens the file of this user's tenant and takes a slot: 0 or -errno. -EINVAL:
 * @tenant is not a valid name. -EPERM: the directory or the file is not private to this user.
 * -EPROTO: processes with another version of this file are in it. -EUSERS: all slots are in
 * use. -EBUSY: another process has kept it locked for 5 s.
 */
int ledger_join(const char *tenant, struct ledger **ledger);

/*
 * At the end of a process, when other threads may still run: removes the file if no other
 * process is in it. The slot ends with the process.
 */
void ledger_last_out(struct ledger *ledger);

/*
 * The index of the GPU at PCI address @pci in this tenant's file, 0 to LEDGER_MAX_GPUS-1; adds
 * the GPU if necessary. It does not change while the file exists. -EINVAL. -ENOSPC: there are
 * 32 other GPUs. -EBUSY. -ESRCH: after a fork.
 */
int ledger_gpu(struct ledger *ledger, const char *pci);

/* Marks this process's GPUs as simulated, for readers of the file. */
void ledger_set_simulated(struct ledger *ledger);

/*
 * Charges @bytes. Returns -ENOMEM, and charges nothing, if the tenant's quota would be
 * exceeded.
 */
int ledger_charge(struct ledger *ledger, int gpu, uint64_t bytes);
/* Charges what cannot be refused, such as a context; it may exceed the quota. */
void ledger_charge_always(struct ledger *ledger, int gpu, uint64_t bytes);
/* Refunds what this process was charged; the charge never becomes negative. */
void ledger_release(struct ledger *ledger, int gpu, uint64_t bytes);

/*
 * The number of calls of this process so far that may have allocated memory that is not
 * charged.
 */
void ledger_record_uncounted(struct ledger *ledger, uint64_t nr);

/*
 * Sets the quota in bytes; 0: none. It applies to later charges of every process; a quota below
 * the current use frees nothing. ledger_set_quota() stores the old quota in @before, if that is
 * not NULL. Returns 0 or -ESRCH.
 */
int ledger_set_quota(struct ledger *ledger, int gpu, uint64_t bytes, uint64_t *before);
/*
 * Sets the quota only if there is none yet: to the tenant's quota for new GPUs, or else @bytes.
 * Returns the quota that applies.
 */
uint64_t ledger_set_quota_first(struct ledger *ledger, int gpu, uint64_t bytes);
uint64_t ledger_quota(struct ledger *ledger, int gpu);

/* The exact use of all living processes of the tenant; makes some system calls per process. */
uint64_t ledger_used(struct ledger *ledger, int gpu);
/* The charge of this process only: a single read. */
uint64_t ledger_used_own(struct ledger *ledger, int gpu);

struct ledger_process {
	int pid;		/* pid here; 0: it lives, but has no number in this namespace */
	int inner;		/* in its own pid namespace */
	uint64_t pid_namespace, start;	/* that namespace, and its start time: state_dir.h */
	char program[LEDGER_NAME_LEN];	/* printable ASCII */
	bool simulated;		/* its GPUs are simulated */
	uint64_t uncounted;	/* calls that may have allocated memory that is not counted */
	uint64_t used[LEDGER_MAX_GPUS];	/* in bytes, by the index of the GPU */
};

struct ledger_share {
	char pci[LEDGER_PCI_LEN];
	uint64_t quota;		/* in bytes; 0: none */
	uint64_t used;		/* in bytes, by all processes */
};

struct ledger_view {
	char tenant[LEDGER_NAME_LEN];
	uint64_t quota;		/* for GPUs that are added later; 0: none */
	bool other_version;	/* its processes are unknown, and it cannot be changed */
	unsigned int nr_gpus, nr_processes;
	struct ledger_share gpus[LEDGER_MAX_GPUS];
	struct ledger_process processes[];	/* the living ones */
};

/*
 * Reads the file of a tenant of @uid, without a mapping or a lock, so that no change of the
 * file can harm the caller. Returns 0. -ENOENT: there is no file. -EPERM: it is not private to
 * @uid. -EPROTO: it is not a ledger. -ENOMEM. The caller frees *view.
 */
int ledger_read(uid_t uid, const char *tenant, struct ledger_view **view);

/* Lists the tenants of @uid that have a file, at most @max names. Returns their number. */
unsigned int ledger_list(uid_t uid, char (*names)[LEDGER_NAME_LEN], unsigned int max);

/*
 * Like ledger_set_quota(), for this user's tenant, which this process need not be in; a new GPU
 * is added. @pci NULL: on every GPU, also on those that are added later. @make: creates the
 * file if there is none (otherwise -ENOENT); and if the quota for new GPUs was different, sets
 * it for all GPUs, as for NULL. Other errors are those of ledger_join().
 */
int ledger_set_quota_of(const char *tenant, const char *pci, uint64_t bytes, bool make,
			uint64_t *before);

/* Removes the file if no process is in it. Returns whether it did. */
bool ledger_sweep(const char *tenant);

#endif
