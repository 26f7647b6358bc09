/* SPDX-License-Identifier: MIT */
/*
 * Declares the layout and the locks of a tenant's file. Also declares functions that find out
 * whether the owners of slots are alive. This header is private to ledger.c and query.c.
 */
#ifndef GPUPART_LIB_LEDGER_FILE_H
#define GPUPART_LIB_LEDGER_FILE_H

#include <stdatomic.h>
#include "lib/core/shared_header.h"
#include "lib/ledger/ledger.h"

#define LEDGER_LAYOUT	5	/* increase this number whenever the layout of the data after the
				 * header changes */
#define LEDGER_WAIT_MS	5000
#define LEDGER_ROOM	64	/* number of unused slots for which a new file has room */

/*
 * Processes lock these bytes of the file with open file description locks. The bytes are the
 * same in every layout. Byte 0 is the guard, and each other byte is the lock of a slot.
 */
#define LEDGER_GUARD		0
#define LEDGER_LOCK_OF(slot)	((slot) + 1)

struct ledger_account {
	_Atomic uint64_t used, reserved;	/* numbers of bytes; reserved bytes were requested,
						 * but not granted yet */
};

/*
 * The process that owns a slot writes to the slot. If the owner is dead, another process clears the
 * slot. That process holds the guard.
 */
struct ledger_slot {
	_Alignas(64) _Atomic int32_t pid;	/* pid in the process's own pid namespace; 0:
						 * the slot is free */
	_Atomic uint32_t simulated;
	uint64_t start, pid_namespace;
	char program[LEDGER_NAME_LEN];
	_Atomic uint64_t uncounted;	/* number of calls that may have allocated
					 * memory that is not counted */
	struct ledger_account gpus[LEDGER_MAX_GPUS];
};

struct ledger_header {
	struct shared_header shared;	/* the member @name contains the name of the tenant */
	/*
	 * GPUs are added under the guard and never removed. Quotas may be written at any time.
	 */
	struct shared_gpu gpus[LEDGER_MAX_GPUS];
	_Atomic uint32_t nr_slots;	/* the file has room for the slots below this
					 * number; all other slots are free */
	_Atomic uint64_t quota;		/* quota for GPUs that are added later; 0: each
					 * process sets this quota itself */
};

_Static_assert(LEDGER_MAX_GPUS <= SHARED_MAX_GPUS, "other versions can read all GPUs");

struct ledger_memory {
	struct ledger_header header;
	_Alignas(4096) struct ledger_slot slots[LEDGER_MAX_SLOTS];
};

/*
 * The result of ledger_join(). The object occupies whole pages of memory. In the child of a fork,
 * these pages contain zeros.
 */
struct ledger {
	struct ledger_memory *memory;	/* NULL: this process is the child of a fork */
	struct ledger_slot *slot;
	unsigned int nr;		/* number of the slot */
	dev_t dev;
	ino_t ino;
	uint64_t pid_namespace;
	char tenant[LEDGER_NAME_LEN];
};

#define LEDGER_END_OF(nr_slots) \
	((off_t)(offsetof(struct ledger_memory, slots) + (nr_slots) * sizeof(struct ledger_slot)))

/*
 * The function ledger_file_begin() delays all forks until ledger_file_end() is called. Call it
 * before you open a descriptor of a ledger's file. Otherwise, the child of a fork would keep the
 * file's locks. Close the descriptor soon.
 */
void ledger_file_begin(void);
void ledger_file_end(void);

/*
 * Calls ledger_file_begin() now and ledger_file_end() at the end of the block. If a variable is
 * declared after this macro, its clean-up runs before ledger_file_end().
 */
#define LEDGER_FILE_HOLD() \
	__attribute__((cleanup(ledger_file_held))) int held = (ledger_file_begin(), 0)

static inline void ledger_file_held(const int *held)
{
	(void)held;
	ledger_file_end();
}

/*
 * Opens the file of this user's tenant and locks its guard. When the descriptor is closed, the
 * guard is released. If the file is not a ledger and no process uses it, the function writes an
 * empty ledger into it. If there is no file and @make is true, the function creates the file.
 * Returns a descriptor or -errno. If another process holds the guard, returns -EAGAIN.
 */
int ledger_file_open(const char *tenant, bool make);

/*
 * Does the same as ledger_file_open(), but does not check the contents. So it accepts any
 * version.
 */
int ledger_file_open_any(const char *tenant, bool make);

/*
 * Does the same as ledger_file_open(), but waits for the guard. If the function succeeds, it has
 * called ledger_file_begin(). Then the caller must call ledger_file_end().
 */
int ledger_file_open_wait(const char *tenant, bool make);

/*
 * Opens the file of a tenant of any user. The file is opened for reading, and its guard is not
 * locked.
 */
int ledger_file_open_read(uid_t uid, const char *tenant);

/*
 * Returns true if @header has this version and belongs to @tenant. The header was read from a file
 * of @size bytes.
 */
bool ledger_file_good(const struct ledger_header *header, off_t size, const char *tenant);

/* Extends the file to @nr_slots slots, so that they can be written. Returns 0 or -errno. */
int ledger_file_make_room(int fd, uint32_t nr_slots);

/*
 * These functions return the index of a GPU. If the file does not contain the GPU,
 * ledger_file_find_gpu() returns -ENOENT, and ledger_file_add_gpu() adds the GPU. If there is no
 * room for another GPU, ledger_file_add_gpu() returns -ENOSPC. The caller of ledger_file_add_gpu()
 * holds the guard.
 */
int ledger_file_find_gpu(const struct ledger_header *header, const char *pci);
int ledger_file_add_gpu(struct ledger_header *header, const char *pci);

/*
 * If no process uses the file, removes it. The process of slot number @own does not count as a
 * user. If @own is -1, every process counts. The caller holds the guard. Returns true if the file
 * was removed.
 */
bool ledger_file_remove(int fd, const char *tenant, int own);

bool ledger_file_lock(int fd, off_t byte);
void ledger_file_unlock(int fd, off_t byte);

/*
 * Returns true if the owner of slot @nr is alive. The descriptor of the file is @fd. If the file
 * cannot be opened, @fd is -1. The argument @own_namespace is the result of
 * state_dir_pid_namespace().
 */
bool ledger_file_lives(int fd, unsigned int nr, const struct ledger_slot *slot,
		       uint64_t own_namespace);

#endif
