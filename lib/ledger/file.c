// SPDX-License-Identifier: MIT
/* Opens and locks the file of a tenant. Asks the kernel whether the owner of a slot is alive. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/fork.h"
#include "lib/core/fsize.h"
#include "lib/core/state_dir.h"
#include "lib/ledger/file.h"

#define FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(open_lock, 1);

void ledger_file_begin(void)
{
	fork_guard();
	pthread_mutex_lock(&open_lock);
}

void ledger_file_end(void)
{
	pthread_mutex_unlock(&open_lock);
}

static void file_name(char name[LEDGER_NAME_LEN + 8], const char *tenant)
{
	snprintf(name, LEDGER_NAME_LEN + 8, "mem-%.63s", tenant);
}

static struct flock lock_of(short type, off_t byte, off_t nr)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = byte,
			       .l_len = nr };
}

bool ledger_file_lock(int fd, off_t byte)
{
	struct flock lock = lock_of(F_WRLCK, byte, 1);

	return !fcntl(fd, F_OFD_SETLK, &lock);
}

void ledger_file_unlock(int fd, off_t byte)
{
	struct flock lock = lock_of(F_UNLCK, byte, 1);

	fcntl(fd, F_OFD_SETLK, &lock);
}

/*
 * Checks the @nr bytes that begin at @byte. If @nr is 0, checks all bytes from @byte to the end.
 * Returns true if any process has a lock on at least one of these bytes.
 */
static bool is_locked(int fd, off_t byte, off_t nr)
{
	struct flock lock = lock_of(F_WRLCK, byte, nr);

	return fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

bool ledger_file_lives(int fd, unsigned int nr, const struct ledger_slot *slot,
		       uint64_t own_namespace)
{
	int pid = atomic_load_explicit(&slot->pid, memory_order_acquire);
	uint64_t now;

	if (pid <= 0 || (fd >= 0 && !is_locked(fd, LEDGER_LOCK_OF(nr), 1)))
		return false;
	/*
	 * A child from a direct clone() system call may also hold the lock, so check the pid, too.
	 * If the file cannot be opened, the lock cannot be checked, so check the start time.
	 */
	if (slot->pid_namespace != own_namespace)
		return true;
	if (kill(pid, 0) && errno == ESRCH)
		return false;
	if (fd >= 0 || !state_dir_proc_is_own())
		return true;
	now = state_dir_process_start(pid);
	return !now || state_dir_process_lives(pid, slot->start);
}

bool ledger_file_good(const struct ledger_header *header, off_t size, const char *tenant)
{
	uint32_t nr_slots = atomic_load_explicit(&header->nr_slots, memory_order_relaxed);

	return shared_is(&header->shared, SHARED_LEDGER, LEDGER_LAYOUT) &&
	       !strncmp(header->shared.name, tenant, LEDGER_NAME_LEN) &&
	       atomic_load_explicit(&header->shared.nr_gpus, memory_order_relaxed) <=
		       LEDGER_MAX_GPUS &&
	       nr_slots <= LEDGER_MAX_SLOTS && size >= LEDGER_END_OF(nr_slots);
}

int ledger_file_make_room(int fd, uint32_t nr_slots)
{
	struct fsize_guard guard;
	int err;

	if (nr_slots > LEDGER_MAX_SLOTS)
		nr_slots = LEDGER_MAX_SLOTS;
	/*
	 * Allocate the pages now. If the kernel could not allocate a page at the first write to it,
	 * the kernel would kill the program.
	 */
	fsize_guard_begin(&guard);
	err = posix_fallocate(fd, 0, LEDGER_END_OF(nr_slots));
	fsize_guard_end(&guard);
	return -err;
}

/* Writes an empty ledger into a file that no process uses. */
static int make_empty(int fd, const char *tenant)
{
	const size_t magic = sizeof(((struct shared_header *)NULL)->magic);
	struct ledger_header header = { 0 };
	struct fsize_guard guard;
	int err;

	snprintf(header.shared.name, sizeof(header.shared.name), "%s", tenant);
	shared_init(&header.shared, LEDGER_LAYOUT, sizeof(header));
	header.shared.uid = geteuid();
	atomic_init(&header.shared.magic, SHARED_MAGIC(SHARED_LEDGER));
	fsize_guard_begin(&guard);
	err = ftruncate(fd, 0) || fchmod(fd, 0600) ? errno : 0;
	/* Make room for slots now, because later an error could not be reported to the user. */
	if (!err)
		err = -ledger_file_make_room(fd, LEDGER_ROOM);
	/*
	 * Write the magic number last, because this process may be killed before everything is
	 * written.
	 */
	if (!err && pwrite(fd, (char *)&header + magic, sizeof(header) - magic, magic) !=
			    (ssize_t)(sizeof(header) - magic))
		err = EIO;
	if (!err && pwrite(fd, &header, magic, 0) != (ssize_t)magic)
		err = EIO;
	fsize_guard_end(&guard);
	return -err;
}

/*
 * Checks that the file is a ledger. If the file is not a ledger, writes an empty ledger into it.
 * Returns 0 or -errno. The caller holds the guard.
 */
static int check_content(int fd, off_t size, const char *tenant)
{
	struct ledger_header header;

	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    ledger_file_good(&header, size, tenant))
		return 0;
	/*
	 * The quota also applies before the first process joins. The code in tenant.c decides how
	 * long the quota is kept.
	 */
	if (shared_version(fd, SHARED_LEDGER, LEDGER_LAYOUT, &header.shared) == SHARED_OTHER)
		return -EPROTO;
	if (is_locked(fd, LEDGER_LOCK_OF(0), 0))
		return -EPROTO;
	return make_empty(fd, tenant);
}

/* If the file belongs to another user, or if other users can access it, returns -EPERM. */
static int open_private(uid_t uid, const char *tenant, int flags)
{
	char name[LEDGER_NAME_LEN + 8];
	STATE_CLOSED int dir = state_dir_open(uid, flags & O_CREAT);
	struct stat st;
	int fd;

	if (dir < 0)
		return dir;
	file_name(name, tenant);
	fd = openat(dir, name, flags | FLAGS, 0600);
	if (fd < 0)
		fd = errno == ELOOP || errno == EISDIR ? -EPERM : -errno;
	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == uid &&
		       !(st.st_mode & 077)))
		return fd;
	close(fd);
	return -EPERM;
}

int ledger_file_open_any(const char *tenant, bool make)
{
	int fd = open_private(geteuid(), tenant, O_RDWR | (make ? O_CREAT : 0));
	struct stat st;

	/* Another process may have removed the file before this process locked it. */
	if (fd < 0 || (ledger_file_lock(fd, LEDGER_GUARD) && !fstat(fd, &st) && st.st_nlink))
		return fd;
	close(fd);
	return -EAGAIN;
}

bool ledger_file_remove(int fd, const char *tenant, int own)
{
	STATE_CLOSED int dir = state_dir_open(geteuid(), false);
	char name[LEDGER_NAME_LEN + 8];

	file_name(name, tenant);
	return dir >= 0 && !is_locked(fd, LEDGER_LOCK_OF(own + 1), 0) &&
	       (own <= 0 || !is_locked(fd, LEDGER_LOCK_OF(0), own)) &&
	       !unlinkat(dir, name, 0);
}

int ledger_file_open(const char *tenant, bool make)
{
	int fd = ledger_file_open_any(tenant, make), err = fd;
	struct stat st;

	if (fd >= 0)
		err = fstat(fd, &st) ? -errno : check_content(fd, st.st_size, tenant);
	if (fd >= 0 && err)
		close(fd);
	return err ? err : fd;
}

int ledger_file_open_wait(const char *tenant, bool make)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int fd = -EAGAIN;

	for (int i = 0; i < LEDGER_WAIT_MS && fd == -EAGAIN; i++) {
		if (i)
			nanosleep(&pause, NULL);
		ledger_file_begin();
		fd = ledger_file_open(tenant, make);
		if (fd < 0)
			ledger_file_end();
	}
	return fd == -EAGAIN ? -EBUSY : fd;
}

int ledger_file_open_read(uid_t uid, const char *tenant)
{
	return open_private(uid, tenant, O_RDONLY);
}

int ledger_file_find_gpu(const struct ledger_header *header, const char *pci)
{
	uint32_t nr = atomic_load_explicit(&header->shared.nr_gpus, memory_order_acquire);

	for (uint32_t i = 0; i < nr && i < LEDGER_MAX_GPUS; i++)
		if (!strncmp(header->gpus[i].pci, pci, LEDGER_PCI_LEN))
			return i;
	return -ENOENT;
}

int ledger_file_add_gpu(struct ledger_header *header, const char *pci)
{
	uint32_t nr = atomic_load_explicit(&header->shared.nr_gpus, memory_order_relaxed);
	int found = ledger_file_find_gpu(header, pci);

	if (found >= 0)
		return found;
	if (nr >= LEDGER_MAX_GPUS)
		return -ENOSPC;
	snprintf(header->gpus[nr].pci, LEDGER_PCI_LEN, "%s", pci);
	atomic_store_explicit(&header->gpus[nr].quota, 0, memory_order_relaxed);
	header->gpus[nr].held = (struct shared_place){
		.at = LEDGER_END_OF(0) + offsetof(struct ledger_slot, gpus[nr].used),
		.stride = sizeof(struct ledger_slot), .nr = LEDGER_MAX_SLOTS,
	};
	atomic_store_explicit(&header->shared.nr_gpus, nr + 1, memory_order_release);
	return nr;
}
