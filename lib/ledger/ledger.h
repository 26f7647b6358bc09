/* SPDX-License-Identifier: MIT */
/*
 * The ledger of a tenant records how much GPU memory each process of the tenant uses, and the
 * tenant's quota. Each tenant has one file, which all its processes map. Programs that only read
 * ledgers link query.c, file.c and state_dir.c, which depend on libc only.
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
 * A tenant's mapped file, with a slot for this process. The slot contains the total that the
 * process is charged, and it is valid as long as the process lives. To show that it lives, the
 * process holds a kernel lock on the file. The kernel releases this lock only when it releases
 * the process's memory, at an exec or at the end of the process.
 *
 * The child of a fork has no slot, because it has no GPU memory. In the child, functions that
 * charge memory return -ESRCH, and other functions do nothing. The child must join again to get
 * its own slot. Any thread may call any function at any time. Only ledger_join(), ledger_gpu()
 * and, above the quota, ledger_charge() wait for another process, for at most 5 s, if that
 * process was stopped in the middle of a change.
 */
struct ledger;

/*
 * Creates or opens the file of this user's tenant and acquires a slot. Returns 0 or -errno.
 * -EINVAL: @tenant is not a valid name. -EPERM: the directory or the file is not private to this
 * user. -EPROTO: processes with another version of this file are in it. -EUSERS: all slots are
 * in use. -EBUSY: another process has kept it locked for 5 s.
 */
int ledger_join(const char *tenant, struct ledger **ledger);

/*
 * Removes the file if no other process uses it. It is called at the end of a process, while
 * other threads may still run. The slot becomes free when the process ends.
 */
void ledger_last_out(struct ledger *ledger);

/*
 * Returns the index of the GPU at PCI address @pci in this tenant's file, 0 to
 * LEDGER_MAX_GPUS-1, and adds the GPU if necessary. The index does not change while the file
 * exists. -EINVAL: @pci is invalid. -ENOSPC: the file already has 32 other GPUs. -EBUSY: another
 * process keeps the file locked. -ESRCH: this is the child of a fork.
 */
int ledger_gpu(struct ledger *ledger, const char *pci);

/* Marks this process's GPUs as simulated, for readers of the file. */
void ledger_set_simulated(struct ledger *ledger);

/*
 * Charges @bytes. Returns -ENOMEM, and charges nothing, if the tenant's quota would be
 * exceeded.
 */
int ledger_charge(struct ledger *ledger, int gpu, uint64_t bytes);
/*
 * Charges memory that cannot be refused, such as that of a context. The total may then exceed
 * the quota.
 */
void ledger_charge_always(struct ledger *ledger, int gpu, uint64_t bytes);
/* Reduces the charge of this process. The charge never becomes negative. */
void ledger_release(struct ledger *ledger, int gpu, uint64_t bytes);

/*
 * Sets the number of calls that this process has made and that may have allocated memory which
 * is not charged.
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

/*
 * Returns the exact use of all living processes of the tenant. Makes some system calls for each
 * process.
 */
uint64_t ledger_used(struct ledger *ledger, int gpu);
/* Returns the charge of this process only, with one memory read. */
uint64_t ledger_used_own(struct ledger *ledger, int gpu);

struct ledger_process {
	int pid;		/* pid in the caller's pid namespace; 0: it is not visible there */
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
 * Reads the file of a tenant of @uid. The function neither maps nor locks the file, so no change
 * of the file can harm the caller. Returns 0. -ENOENT: there is no file. -EPERM: it is not
 * private to @uid. -EPROTO: it is not a ledger. -ENOMEM. The caller frees *view.
 */
int ledger_read(uid_t uid, const char *tenant, struct ledger_view **view);

/* Lists the tenants of @uid that have a file, at most @max names. Returns their number. */
unsigned int ledger_list(uid_t uid, char (*names)[LEDGER_NAME_LEN], unsigned int max);

/*
 * Sets the quota of one of this user's tenants like ledger_set_quota(). The process need not be
 * in the tenant. If the GPU is not in the file, it is added. If @pci is NULL, the quota applies
 * to every GPU, including GPUs that are added later. If @make is true, the function creates the
 * file if there is none, and if the quota for new GPUs was different, it sets the quota of all
 * GPUs, as for a NULL @pci. -ENOENT: there is no file and @make is false. The other errors are
 * those of ledger_join().
 */
int ledger_set_quota_of(const char *tenant, const char *pci, uint64_t bytes, bool make,
			uint64_t *before);

/* Removes the file if no process is in it. Returns true if it removed the file. */
bool ledger_sweep(const char *tenant);

#endif
