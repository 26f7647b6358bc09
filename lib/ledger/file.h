/* SPDX-License-Identifier: MIT */
/*
 * The file of a tenant: its layout, its locks, and whether the owners of slots are alive.
 * Private to ledger.c and query.c.
 */
#ifndef GPUPART_LIB_LEDGER_FILE_H
#define GPUPART_LIB_LEDGER_FILE_H

#include <stdatomic.h>
#include "lib/core/shared_header.h"
#include "lib/ledger/ledger.h"

#define LEDGER_LAYOUT	5	/* increase it with every change of what follows the header */
#define LEDGER_WAIT_MS	5000
#define LEDGER_ROOM	64	/* room for slots beyond those in use, at first */

/*
 * Open file description locks, the same in every layout: byte 0 is the guard, the others are
 * slots.
 */
#define LEDGER_GUARD		0
#define LEDGER_LOCK_OF(slot)	((slot) + 1)

struct ledger_account {
	_Atomic uint64_t used, reserved;	/* in bytes; reserved: requested, but not granted
						 * yet */
};

/* Its process writes it; a holder of the guard that finds the process dead clears it. */
struct ledger_slot {
	_Alignas(64) _Atomic int32_t pid;	/* pid in its own namespace; 0: free */
	_Atomic uint32_t simulated;
	uint64_t start, pid_namespace;
	char program[LEDGER_NAME_LEN];
	_Atomic uint64_t uncounted;	/* calls that may have allocated memory that is not
					 * counted */
	struct ledger_account gpus[LEDGER_MAX_GPUS];
};

struct ledger_header {
	struct shared_header shared;	/* its name is that of the tenant */
	/* Added under the guard and never removed; quotas may be written at any time. */
	struct shared_gpu gpus[LEDGER_MAX_GPUS];
	_Atomic uint32_t nr_slots;	/* all slots beyond are free; the file holds all below */
	_Atomic uint64_t quota;		/* for GPUs that are added later; 0: as the processes say */
};

_Static_assert(LEDGER_MAX_GPUS <= SHARED_MAX_GPUS, "other versions can read all GPUs");

struct ledger_block {
	struct ledger_header header;
	_Alignas(4096) struct ledger_slot slots[LEDGER_MAX_SLOTS];
};

/*
 * The result of ledger_join(). It is in pages of its own, which are empty in the child of a
 * fork.
 */
struct ledger {
	struct ledger_block *block;	/* NULL: this is such a child */
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
 * While a descriptor of a ledger's file is open, no fork can begin, because the child would
 * keep the file's locks. Hold it for a short time only.
 */
void ledger_file_begin(void);
void ledger_file_end(void);

/* The same until the end of the block; variables declared after it are cleaned up before. */
#define LEDGER_FILE_HOLD() \
	__attribute__((cleanup(ledger_file_held))) int held = (ledger_file_begin(), 0)

static inline void ledger_file_held(const int *held)
{
	(void)held;
	ledger_file_end();
}

/*
 * Opens the file of this user's tenant and locks its guard, which closing the descriptor
 * releases. A file that is not a ledger and that no process is in becomes an empty ledger.
 * @make: creates the file if there is none. Returns a descriptor or -errno; -EAGAIN: another
 * process holds the guard.
 */
int ledger_file_open(const char *tenant, bool make);

/* Like ledger_file_open(), for any version: the contents are not checked. */
int ledger_file_open_any(const char *tenant, bool make);

/*
 * Like ledger_file_open(), but waits for the guard. If it succeeds, ledger_file_begin() is in
 * effect.
 */
int ledger_file_open_wait(const char *tenant, bool make);

/* Opens a tenant's file, also of another user, for reading only and without the guard. */
int ledger_file_open_read(uid_t uid, const char *tenant);

/* Whether @header, in a file of @size bytes, is of this version and for @tenant. */
bool ledger_file_good(const struct ledger_header *header, off_t size, const char *tenant);

/* Extends the file for @nr_slots slots, so that they can be written: 0 or -errno. */
int ledger_file_make_room(int fd, uint32_t nr_slots);

/*
 * The index of a GPU, or -ENOENT. With the guard held: adds it if necessary, or returns
 * -ENOSPC.
 */
int ledger_file_find_gpu(const struct ledger_header *header, const char *pci);
int ledger_file_add_gpu(struct ledger_header *header, const char *pci);

/*
 * With the guard held: removes the file if no process is in it except that with slot @own (-1:
 * none). Returns whether it did.
 */
bool ledger_file_remove(int fd, const char *tenant, int own);

bool ledger_file_lock(int fd, off_t byte);
void ledger_file_unlock(int fd, off_t byte);
/* Whether any process has a lock on one of @nr bytes (0: all to the end). */
bool ledger_file_locked(int fd, off_t byte, off_t nr);

/*
 * Whether the owner of slot @nr is alive. @fd: the file, or -1 if it cannot be opened;
 * @own_namespace: state_dir_pid_namespace().
 */
bool ledger_file_lives(int fd, unsigned int nr, const struct ledger_slot *slot,
		       uint64_t own_namespace);

#endif
