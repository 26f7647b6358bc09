/* SPDX-License-Identifier: MIT */
/*
 * What the processes of one tenant hold of the memory of GPUs, and how much they may: one file a
 * tenant, mapped by all of them. Who only looks links query.c, file.c and state_dir.c, which need
 * libc alone.
 */
#ifndef GPUPART_LIB_LEDGER_LEDGER_H
#define GPUPART_LIB_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/core/state_dir.h"

#define LEDGER_MAX_GPUS		32
#define LEDGER_MAX_SLOTS	4096	/* processes of a tenant at one time */
#define LEDGER_NAME_LEN		CONTROL_NAME_LEN
#define LEDGER_PCI_LEN		20	/* "0000:0d:00.0" as gpupart_gpu_info has it */

/*
 * A tenant's file, mapped, with a slot for this process. All that it holds is told by its
 * slot, and a slot counts as long as the process lives that took it: a lock of the kernel's
 * on the file says so, which goes with the process's memory, by its end, its death or an
 * exec, and with nothing else.
 *
 * In the child of a fork it is empty: the child holds no memory of a GPU. There charging is
 * -ESRCH, the rest does nothing; it joins anew, for a slot of its own. Any thread may
 * call anything at any time; no function waits for another process but ledger_join(), ledger_gpu() and, over the quota, ledger_charge(): for 5 s at
 * most, for one that was stopped in the middle.
 */
struct ledger;

/*
 * Makes or opens the file of this user's tenant and takes a slot: 0 or -errno. -EINVAL: no name;
 * -EPERM: the folder or the file is not ours alone; -EPROTO: processes with another version of this
 * file hold it; -EUSERS: no slot is left; -EBUSY: another process has locked it for 5 s.
 */
int ledger_join(const char *tenant, struct ledger **ledger);

/*
 * At a process's end, when other threads may run yet: takes the file away where no other
 * process is in it. The slot goes with the process.
 */
void ledger_last_out(struct ledger *ledger);

/*
 * The index of the GPU at PCI address @pci in this tenant's file, 0..LEDGER_MAX_GPUS-1,
 * made where it is new; -EINVAL, -ENOSPC: 32 others are there; -EBUSY; -ESRCH after a fork.
 * It stays the same as long as the file is there.
 */
int ledger_gpu(struct ledger *ledger, const char *pci);

/* This process's GPUs are not of silicon; whoever looks is told. */
void ledger_set_simulated(struct ledger *ledger);

/* All of @bytes, or -ENOMEM: then more than the quota would be used by the tenant. */
int ledger_charge(struct ledger *ledger, int gpu, uint64_t bytes);
/* What cannot be refused, as a context: may go beyond the quota. */
void ledger_charge_always(struct ledger *ledger, int gpu, uint64_t bytes);
/* Of what this process was charged for; never below zero. */
void ledger_release(struct ledger *ledger, int gpu, uint64_t bytes);

/* So many calls of this process, up to now, may have got memory that is not charged. */
void ledger_tell_uncounted(struct ledger *ledger, uint64_t nr);

/*
 * In bytes; 0: no quota, everything fits. Holds for charges from now on, of every process;
 * less than is used takes nothing from anybody. ledger_set_quota() gives what was before
 * in @before, if that is not NULL. 0 or -ESRCH.
 */
int ledger_set_quota(struct ledger *ledger, int gpu, uint64_t bytes, uint64_t *before);
/* Only where it has none yet: the tenant's for such, or else @bytes; what then holds. */
uint64_t ledger_set_quota_first(struct ledger *ledger, int gpu, uint64_t bytes);
uint64_t ledger_quota(struct ledger *ledger, int gpu);

/* Of all living processes of the tenant: exact, and costs some system calls a process. */
uint64_t ledger_used(struct ledger *ledger, int gpu);
/* Of this process alone; a read. */
uint64_t ledger_used_own(struct ledger *ledger, int gpu);

struct ledger_process {
	int pid;		/* here; 0: it lives, but has no number in this namespace */
	int inner;		/* in its own pid namespace */
	uint64_t pid_namespace, start;	/* of which, and when it began: state_dir.h */
	char program[LEDGER_NAME_LEN];	/* printable ASCII */
	bool simulated;		/* its GPUs are */
	uint64_t uncounted;	/* calls that may have got memory which is not in here */
	uint64_t used[LEDGER_MAX_GPUS];	/* bytes, by the index of the GPU */
};

struct ledger_share {
	char pci[LEDGER_PCI_LEN];
	uint64_t quota;		/* bytes; 0: none */
	uint64_t used;		/* bytes, of all processes */
};

struct ledger_view {
	char tenant[LEDGER_NAME_LEN];
	uint64_t quota;		/* of GPUs that are not here yet; 0: nothing is said */
	bool other_version;	/* its processes are not known, and nothing changes it */
	unsigned int nr_gpus, nr_processes;
	struct ledger_share gpus[LEDGER_MAX_GPUS];
	struct ledger_process processes[];	/* those that live */
};

/*
 * What is in the file of a tenant of @uid now, read without a map or a lock, whatever
 * somebody does to the file meanwhile: 0, or -ENOENT: there is none; -EPERM: it is not
 * @uid's alone; -EPROTO: it is no ledger; -ENOMEM. The caller frees *view.
 */
int ledger_look(uid_t uid, const char *tenant, struct ledger_view **view);

/* Names of the tenants of @uid that have a file, at most @max of them; how many there are. */
unsigned int ledger_list(uid_t uid, char (*names)[LEDGER_NAME_LEN], unsigned int max);

/*
 * As ledger_set_quota(), of this user's tenant that this process need not be in; a GPU that
 * is new there is added. @pci NULL: on each GPU, also on those that are new there later.
 * @make: makes the file where there is none, or it is -ENOENT; and where new GPUs were to
 * have another quota, it is everyone's as for NULL. Else as ledger_join().
 */
int ledger_set_quota_of(const char *tenant, const char *pci, uint64_t bytes, bool make,
			uint64_t *before);

/* Takes the file away where no process is in it; whether it did. */
bool ledger_sweep(const char *tenant);

#endif
