/* SPDX-License-Identifier: MIT */
/*
 * The file of a tenant: what is where in it, its locks, and whether who took a slot
 * lives. Private to ledger.c and query.c.
 */
#ifndef GPUPART_LIB_LEDGER_FILE_H
#define GPUPART_LIB_LEDGER_FILE_H

#include <stdatomic.h>
#include "lib/core/shared_header.h"
#include "lib/ledger/ledger.h"

#define LEDGER_LAYOUT	5	/* counted up with every change behind the header */
#define LEDGER_WAIT_MS	5000
#define LEDGER_ROOM	64	/* slots beyond those taken, for which there is room at first */

/* Locks of open file descriptions, of every layout: byte 0 is the guard, the others are slots. */
#define LEDGER_GUARD		0
#define LEDGER_LOCK_OF(slot)	((slot) + 1)

struct ledger_account {
	_Atomic uint64_t used, reserved;	/* bytes; reserved: asked for, not granted yet */
};

/* Written by its process alone, and under the guard by whoever finds that dead. */
struct ledger_slot {
	_Alignas(64) _Atomic int32_t pid;	/* in its own namespace; 0: free */
	_Atomic uint32_t simulated;
	uint64_t start, pid_namespace;
	char program[LEDGER_NAME_LEN];
	_Atomic uint64_t uncounted;	/* calls that may have got memory nobody counts */
	struct ledger_account gpus[LEDGER_MAX_GPUS];
};

struct ledger_header {
	struct shared_header shared;	/* its name is the tenant's */
	/* Added under the guard, and never taken away; quotas are written at any time. */
	struct shared_gpu gpus[LEDGER_MAX_GPUS];
	_Atomic uint32_t nr_slots;	/* no slot beyond is taken; the file holds all below */
	_Atomic uint64_t quota;		/* of GPUs that have none yet; 0: as processes know */
};

_Static_assert(LEDGER_MAX_GPUS <= SHARED_MAX_GPUS, "other versions see them all");

struct ledger_block {
	struct ledger_header header;
	_Alignas(4096) struct ledger_slot slots[LEDGER_MAX_SLOTS];
};

/* Of ledger_join(). In pages of its own, that the child of a fork finds empty. */
struct ledger {
	struct ledger_block *block;	/* NULL: we are such a child */
	struct ledger_slot *slot;
	unsigned int nr;		/* of the slot */
	dev_t dev;
	ino_t ino;
	uint64_t pid_namespace;
	char tenant[LEDGER_NAME_LEN];
};

#define LEDGER_END_OF(nr_slots) \
	((off_t)(offsetof(struct ledger_block, slots) + (nr_slots) * sizeof(struct ledger_slot)))

/*
 * While a descriptor of a ledger's file is open, no fork begins: its child would keep the
 * file's locks. For moments.
 */
void ledger_file_begin(void);
void ledger_file_end(void);

/*
 * Opens a tenant's file of this user and locks its guard, which closing it gives up; a file
 * that nobody is in and that is no ledger becomes an empty one. @make: and makes it where
 * there is none. A descriptor, or -errno; -EAGAIN: the guard is another's now.
 */
int ledger_file_open(const char *tenant, bool make);

/* As ledger_file_open(), of any version: what is in it is not looked at. */
int ledger_file_open_any(const char *tenant, bool make);

/* As ledger_file_open(), and waits for the guard, with ledger_file_begin() when it is had. */
int ledger_file_open_wait(const char *tenant, bool make);

/* Of another's folder too, for reading alone, and without the guard. */
int ledger_file_open_read(uid_t uid, const char *tenant);

/* Whether @header, of a file of @size bytes, is one of this version's and of @tenant. */
bool ledger_file_good(const struct ledger_header *header, off_t size, const char *tenant);

/* Makes room in the file for @nr_slots slots, which may then be written: 0 or -errno. */
int ledger_file_make_room(int fd, uint32_t nr_slots);

/* The index of a GPU, -ENOENT; and, under the guard, of one that is added, -ENOSPC. */
int ledger_file_find_gpu(const struct ledger_header *header, const char *pci);
int ledger_file_add_gpu(struct ledger_header *header, const char *pci);

/*
 * Under the guard: takes the file away where no process but that with slot @own, -1 none, is in it;
 * whether it did.
 */
bool ledger_file_remove(int fd, const char *tenant, int own);

bool ledger_file_lock(int fd, off_t byte);
void ledger_file_unlock(int fd, off_t byte);
/* Whether any process has a lock on one of @nr bytes (0: all to the end). */
bool ledger_file_locked(int fd, off_t byte, off_t nr);

/*
 * Whether the process that took slot @nr lives. @fd: of the file, or -1 where it cannot be
 * opened; @own_namespace: control_pid_namespace().
 */
bool ledger_file_lives(int fd, unsigned int nr, const struct ledger_slot *slot,
		       uint64_t own_namespace);

#endif
