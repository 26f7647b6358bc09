/* SPDX-License-Identifier: MIT */
/*
 * Records the GPU memory that is charged to the processes of a tenant, and the quota of the tenant.
 * Each tenant has one file, which all its processes map. A program that only reads the file can be
 * linked with query.c, file.c and state_dir.c alone. These sources depend only on libc.
 */
#ifndef GPUPART_LIB_LEDGER_LEDGER_H
#define GPUPART_LIB_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/core/state_dir.h"

#define LEDGER_MAX_GPUS		32
#define LEDGER_MAX_SLOTS	4096	/* maximum number of processes that a tenant can have */
#define LEDGER_NAME_LEN		STATE_DIR_NAME_LEN
#define LEDGER_PCI_LEN		20	/* a PCI address in the form of gpupart_gpu_info, such as
					 * "0000:0d:00.0" */

/*
 * A mapping of a tenant's file, with a slot for this process. The slot contains all charges of the
 * process. The slot is valid while the process lives. A kernel lock on the file shows that the
 * process lives. The kernel releases this lock when the process ends, is killed or calls exec. At
 * this moment the kernel also releases the memory of the process.
 *
 * In the child of a fork the mapping is empty, because the child has no GPU memory. In the child,
 * the functions that charge memory return -ESRCH, and the other functions do nothing. The child
 * must call ledger_join() to get its own slot. Any thread may call any function at any time. The
 * functions ledger_join(), ledger_gpu() and ledger_charge() may wait for another process. If a
 * charge fits into the quota, ledger_charge() does not wait. If the other process was stopped
 * during a change, the wait takes at most 5 s.
 */
struct ledger;

/*
 * Opens or creates the file of this user's tenant, and acquires a slot. Returns 0 or -errno. The
 * error -EINVAL means that @tenant is not a valid name. The error -EPERM means that the directory
 * or the file is not private to this user. The error -EPROTO means that the file has another
 * version and is in use. The error -EUSERS means that all slots are in use. The error -EBUSY means
 * that another process has kept the file locked for 5 s.
 */
int ledger_join(const char *tenant, struct ledger **ledger);

/*
 * Call this function at the end of a process. Other threads of the process may still be running. If
 * no other process uses the file, the function removes the file. The slot of this process is freed
 * when the process ends.
 */
void ledger_last_out(struct ledger *ledger);

/*
 * Returns the index of the GPU at PCI address @pci in this tenant's file. If necessary, adds the
 * GPU. The index is from 0 to LEDGER_MAX_GPUS-1, and does not change while the file exists. The
 * error -EINVAL means that @pci is not valid. The error -ENOSPC means that the file already has 32
 * other GPUs. The error -EBUSY means that another process has kept the file locked for 5 s. The
 * error -ESRCH means that this process is the child of a fork.
 */
int ledger_gpu(struct ledger *ledger, const char *pci);

/* Marks this process's GPUs as simulated, for readers of the file. */
void ledger_set_simulated(struct ledger *ledger);

/*
 * Charges @bytes and returns 0. If the new total would exceed the tenant's quota, charges nothing
 * and returns -ENOMEM.
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
 * Sets the quota in bytes. If @bytes is 0, removes the quota. The quota applies to later charges of
 * every process. If the new quota is less than the current use, no memory is freed. If @before is
 * not NULL, stores the previous quota in *before. Returns 0, or -ESRCH in the child of a fork.
 */
int ledger_set_quota(struct ledger *ledger, int gpu, uint64_t bytes, uint64_t *before);
/*
 * If the GPU has no quota yet, sets its quota. The new quota is the tenant's quota for new GPUs. If
 * the tenant has no quota for new GPUs, the new quota is @bytes. Returns the quota that applies.
 */
uint64_t ledger_set_quota_first(struct ledger *ledger, int gpu, uint64_t bytes);
uint64_t ledger_quota(struct ledger *ledger, int gpu);

/*
 * Returns the exact memory use of all living processes of the tenant. The function makes some
 * system calls for each process.
 */
uint64_t ledger_used(struct ledger *ledger, int gpu);
/*
 * Returns the charge of this process alone. The function is fast, because it reads a single
 * value.
 */
uint64_t ledger_used_own(struct ledger *ledger, int gpu);

struct ledger_process {
	int pid;		/* pid in this namespace; 0: the process is alive, but has no
				 * pid in this namespace */
	int inner;		/* pid in the pid namespace of the process */
	uint64_t pid_namespace, start;	/* this pid namespace, and the start time of the process;
					 * see state_dir.h */
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
 * Reads the file of a tenant of @uid. The function does not map or lock the file, so a change of
 * the file cannot harm the caller. Returns 0 or -errno. The error -ENOENT means that the file does
 * not exist. The error -EPERM means that the file is not private to @uid. The error -EPROTO means
 * that the file is not a ledger. The error -ENOMEM means that memory is short. The caller frees
 * *view.
 */
int ledger_read(uid_t uid, const char *tenant, struct ledger_view **view);

/*
 * Lists the tenants of @uid that have a file. Stores at most @max names. Returns the number of
 * names.
 */
unsigned int ledger_list(uid_t uid, char (*names)[LEDGER_NAME_LEN], unsigned int max);

/*
 * Sets the quota of any tenant of this user. This process need not belong to the tenant. If the GPU
 * is not in the file yet, adds the GPU. If @pci is NULL, sets the quota of all GPUs and of GPUs
 * that are added later. If the file does not exist, the function creates the file if @make is true,
 * and returns -ENOENT if @make is false. If @make is true and the quota for new GPUs was different,
 * @pci is treated like NULL. Other errors are the errors of ledger_join().
 */
int ledger_set_quota_of(const char *tenant, const char *pci, uint64_t bytes, bool make,
			uint64_t *before);

/* If no process uses the file, removes it. Returns true if the file was removed. */
bool ledger_sweep(const char *tenant);

#endif
