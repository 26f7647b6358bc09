/* SPDX-License-Identifier: MIT */
/*
 * The GPU memory that is charged to the processes of a tenant, and the quota of the tenant. Each
 * tenant has one file, which all its processes map. Programs that only read the file can be
 * linked with query.c, file.c and state_dir.c alone. These sources need only libc.
 */
#ifndef GPUPART_LIB_LEDGER_LEDGER_H
#define GPUPART_LIB_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/core/state_dir.h"

#define LEDGER_MAX_GPUS		32
#define LEDGER_MAX_SLOTS	4096	/* maximum number of processes that a tenant can have */
#define LEDGER_NAME_LEN		STATE_DIR_NAME_LEN
#define LEDGER_PCI_LEN		20	/* "0000:0d:00.0" as in gpupart_gpu_info */

/*
 * A mapping of a tenant's file, with a slot for this process. The slot contains all charges of
 * the process. The slot is valid while the process lives. A kernel lock on the file shows that
 * the process lives. The kernel releases this lock when it releases the memory of the process.
 * This happens when the process ends, is killed or calls exec, and never earlier.
 *
 * In the child of a fork the mapping is empty, because the child has no GPU memory. In the
 * child, the functions that charge memory return -ESRCH, and the other functions do nothing. The
 * child must call ledger_join() to get its own slot. Any thread may call any function at any
 * time. Three functions may wait for another process: ledger_join(), ledger_gpu() and
 * ledger_charge(). ledger_charge() waits only if the charge would exceed the quota. If the other
 * process was stopped during a change, these functions wait for at most 5 s.
 */
struct ledger;

/*
 * Opens or creates the file of this user's tenant, and acquires a slot. Returns 0 or -errno.
 * -EINVAL: @tenant is not a valid name. -EPERM: the directory or the file is not private to this
 * user. -EPROTO: the file has another version and is in use. -EUSERS: all slots are in use.
 * -EBUSY: another process has kept the file locked for 5 s.
 */
int ledger_join(const char *tenant, struct ledger **ledger);

/*
 * Called at the end of a process. Other threads of the process may still be running. Removes the
 * file if no other process uses it. The slot of this process is freed when the process ends.
 */
void ledger_last_out(struct ledger *ledger);

/*
 * Returns the index, from 0 to LEDGER_MAX_GPUS-1, of the GPU at PCI address @pci in this
 * tenant's file, and adds the GPU if necessary. The index does not change while the file
 * exists. -EINVAL: @pci is not valid. -ENOSPC: the file already has 32 other GPUs. -EBUSY:
 * another process has kept the file locked for 5 s. -ESRCH: this process is the child of a
 * fork.
 */
int ledger_gpu(struct ledger *ledger, const char *pci);

/* Marks this process's GPUs as simulated, for readers of the file. */
void ledger_set_simulated(struct ledger *ledger);

/*
 * Charges @bytes. If the new total would exceed the tenant's quota, returns -ENOMEM and charges
 * nothing.
 */
int ledger_charge(struct ledger *ledger, int gpu, uint64_t bytes);
/*
 * Charges an amount that cannot be refused, such as the memory of a context. The total may then
 * exceed the quota.
 */
void ledger_charge_always(struct ledger *ledger, int gpu, uint64_t bytes);
/* Refunds @bytes of this process's charge. The charge never becomes negative. */
void ledger_release(struct ledger *ledger, int gpu, uint64_t bytes);

/* Records that @nr calls of this process may have allocated memory without a charge. */
void ledger_record_uncounted(struct ledger *ledger, uint64_t nr);

/*
 * Sets the quota in bytes; 0: no quota. The quota applies to later charges of every process. If
 * the new quota is less than the current use, no memory is freed. ledger_set_quota() stores the
 * previous quota in *before if @before is not NULL. Returns 0, or -ESRCH in the child of a fork.
 */
int ledger_set_quota(struct ledger *ledger, int gpu, uint64_t bytes, uint64_t *before);
/*
 * Sets the quota only if the GPU has no quota yet. The new quota is the tenant's quota for new
 * GPUs or, if there is none, @bytes. Returns the quota that applies.
 */
uint64_t ledger_set_quota_first(struct ledger *ledger, int gpu, uint64_t bytes);
uint64_t ledger_quota(struct ledger *ledger, int gpu);

/*
 * Returns the exact use of all living processes of the tenant. The function makes some system
 * calls for each process.
 */
uint64_t ledger_used(struct ledger *ledger, int gpu);
/* Returns the charge of only this process. The function reads only one value. */
uint64_t ledger_used_own(struct ledger *ledger, int gpu);

struct ledger_process {
	int pid;		/* pid in this namespace; 0: the process is alive, but has no
				 * pid in this namespace */
	int inner;		/* pid in the pid namespace of the process */
	uint64_t pid_namespace, start;	/* this pid namespace, and the start time of the
					 * process: state_dir.h */
	char program[LEDGER_NAME_LEN];	/* printable ASCII */
	bool simulated;		/* the process's GPUs are simulated */
	uint64_t uncounted;	/* number of calls that may have allocated uncounted memory */
	uint64_t used[LEDGER_MAX_GPUS];	/* in bytes, for each GPU by index */
};

struct ledger_share {
	char pci[LEDGER_PCI_LEN];
	uint64_t quota;		/* quota in bytes; 0: no quota */
	uint64_t used;		/* in bytes, by all processes together */
};

struct ledger_view {
	char tenant[LEDGER_NAME_LEN];
	uint64_t quota;		/* quota for GPUs that are added later; 0: no quota */
	bool other_version;	/* the file has another version, so its processes are
				 * unknown and it cannot be changed */
	unsigned int nr_gpus, nr_processes;
	struct ledger_share gpus[LEDGER_MAX_GPUS];
	struct ledger_process processes[];	/* the living processes */
};

/*
 * Reads the file of a tenant of @uid. The function neither maps nor locks the file, so that no
 * change of the file can harm the caller. Returns 0 or -errno. -ENOENT: the file does not exist.
 * -EPERM: the file is not private to @uid. -EPROTO: the file is not a ledger. -ENOMEM: there is
 * not enough memory. The caller frees *view.
 */
int ledger_read(uid_t uid, const char *tenant, struct ledger_view **view);

/* Lists the tenants of @uid that have a file, up to @max names. Returns the number of names. */
unsigned int ledger_list(uid_t uid, char (*names)[LEDGER_NAME_LEN], unsigned int max);

/*
 * Like ledger_set_quota(), but for any tenant of this user, even if this process does not belong
 * to the tenant. If the GPU is not in the file yet, adds the GPU. @pci: the GPU; NULL: all GPUs,
 * including those that are added later. @make: if the file does not exist, true creates the
 * file, and false returns -ENOENT. If @make is true and the quota for new GPUs was different,
 * sets the quota for all GPUs, as if @pci were NULL. Other errors are those of ledger_join().
 */
int ledger_set_quota_of(const char *tenant, const char *pci, uint64_t bytes, bool make,
			uint64_t *before);

/* Removes the file if no process uses it. Returns whether the file was removed. */
bool ledger_sweep(const char *tenant);

#endif
