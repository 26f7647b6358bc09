// SPDX-License-Identifier: MIT
/*
 * Acquires a slot for this process in its tenant's file, and records the charges of the process in
 * the slot. Keeps the sum of all slots within the quota.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/state_dir.h"
#include "lib/ledger/file.h"

struct sums {
	uint64_t used, reserved;
};

/* Frees the slots of dead processes. The caller holds the guard. */
static void sweep_slots(int fd, struct ledger_memory *memory, uint64_t own_namespace)
{
	uint32_t nr = atomic_load_explicit(&memory->header.nr_slots, memory_order_relaxed);

	/* The number in the file is not trusted. */
	if (nr > LEDGER_MAX_SLOTS)
		nr = LEDGER_MAX_SLOTS;
	for (uint32_t i = 0; i < nr; i++) {
		struct ledger_slot *slot = &memory->slots[i];

		if (!atomic_load_explicit(&slot->pid, memory_order_relaxed) ||
		    ledger_file_lives(fd, i, slot, own_namespace))
			continue;
		atomic_store_explicit(&slot->pid, 0, memory_order_release);
		for (int gpu = 0; gpu < LEDGER_MAX_GPUS; gpu++) {
			atomic_store(&slot->gpus[gpu].reserved, 0);
			atomic_store(&slot->gpus[gpu].used, 0);
		}
	}
	while (nr && !atomic_load_explicit(&memory->slots[nr - 1].pid, memory_order_relaxed))
		nr--;
	atomic_store_explicit(&memory->header.nr_slots, nr, memory_order_release);
}

static void fill_slot(struct ledger_slot *slot, uint64_t own_namespace)
{
	memset(slot, 0, sizeof(*slot));
	slot->start = state_dir_process_start(getpid());
	slot->pid_namespace = own_namespace;
	snprintf(slot->program, sizeof(slot->program), "%s", program_invocation_short_name);
	atomic_store_explicit(&slot->pid, getpid(), memory_order_release);
}

/*
 * Finds a free slot and locks it through @fd. Returns its number or -errno. The caller holds
 * the guard.
 */
static int take_slot(int fd, struct ledger_memory *memory, uint64_t own_namespace)
{
	uint32_t nr = atomic_load_explicit(&memory->header.nr_slots, memory_order_relaxed), i = 0;
	int err;

	while (i < LEDGER_MAX_SLOTS && !ledger_file_lock(fd, LEDGER_LOCK_OF(i)))
		i++;
	if (i == LEDGER_MAX_SLOTS)
		return -EUSERS;
	err = i >= nr ? ledger_file_make_room(fd, i + 1) : 0;
	if (err)
		return err;
	fill_slot(&memory->slots[i], own_namespace);
	if (i >= nr)
		atomic_store(&memory->header.nr_slots, i + 1);
	return i;
}

/*
 * The mapping keeps the file open after all descriptors are closed. So this process keeps the
 * lock of its slot. The child of a fork does not inherit the mapping.
 */
static int enter(int fd, struct ledger *new)
{
	struct stat st;
	int nr;

	if (fstat(fd, &st))
		return -errno;
	new->memory = mmap(NULL, sizeof(*new->memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (new->memory == MAP_FAILED)
		return -errno;
	if (madvise(new->memory, sizeof(*new->memory), MADV_DONTFORK)) {
		nr = -errno;
		goto unmap;
	}
	sweep_slots(fd, new->memory, new->pid_namespace);
	nr = take_slot(fd, new->memory, new->pid_namespace);
	if (nr < 0)
		goto unmap;
	new->nr = nr;
	new->dev = st.st_dev;
	new->ino = st.st_ino;
	new->slot = &new->memory->slots[nr];
	ledger_file_unlock(fd, LEDGER_GUARD);
	return 0;

unmap:
	munmap(new->memory, sizeof(*new->memory));
	return nr;
}

__attribute__((cold))
int ledger_join(const char *tenant, struct ledger **ledger)
{
	struct ledger *new;
	int fd, err;

	if (!state_dir_name_valid(tenant))
		return -EINVAL;
	new = mmap(NULL, sizeof(*new), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new == MAP_FAILED)
		return -errno;
	if (madvise(new, sizeof(*new), MADV_WIPEONFORK)) {
		err = -errno;
		goto free_new;
	}
	snprintf(new->tenant, sizeof(new->tenant), "%s", tenant);
	new->pid_namespace = state_dir_pid_namespace();
	fd = ledger_file_open_wait(tenant, true);
	err = fd;
	if (fd >= 0) {
		err = enter(fd, new);
		close(fd);
		ledger_file_end();
	}
	if (err)
		goto free_new;
	*ledger = new;
	return 0;

free_new:
	munmap(new, sizeof(*new));
	return err;
}

static bool is_ours(const struct ledger *ledger, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == ledger->dev && st.st_ino == ledger->ino;
}

/*
 * Opens the tenant's file again. If the tenant has a different file now, the function fails. If
 * @locked is true, opens the file for writing and locks its guard. Otherwise opens the file for
 * reading.
 */
static int reopen(const struct ledger *ledger, bool locked)
{
	int fd = locked ? ledger_file_open(ledger->tenant, false)
			: ledger_file_open_read(geteuid(), ledger->tenant);

	if (fd < 0 || is_ours(ledger, fd))
		return fd;
	close(fd);
	return -ENOENT;
}

void ledger_last_out(struct ledger *ledger)
{
	LEDGER_FILE_HOLD();
	/*
	 * If another process holds the guard, that process uses the file or is joining the tenant.
	 */
	STATE_CLOSED int fd = ledger->memory ? reopen(ledger, true) : -1;

	if (fd >= 0)
		ledger_file_remove(fd, ledger->tenant, ledger->nr);
}

static bool has_gpu(const struct ledger *ledger, int gpu)
{
	return ledger->memory && gpu >= 0 && gpu < LEDGER_MAX_GPUS;
}

int ledger_gpu(struct ledger *ledger, const char *pci)
{
	int gpu, fd;

	if (!ledger->memory)
		return -ESRCH;
	if (!pci || !*pci || strlen(pci) >= LEDGER_PCI_LEN)
		return -EINVAL;
	gpu = ledger_file_find_gpu(&ledger->memory->header, pci);
	if (gpu >= 0)
		return gpu;
	fd = ledger_file_open_wait(ledger->tenant, false);
	if (fd < 0)
		return fd;
	if (is_ours(ledger, fd))
		gpu = ledger_file_add_gpu(&ledger->memory->header, pci);
	close(fd);
	ledger_file_end();
	return gpu;
}

void ledger_set_simulated(struct ledger *ledger)
{
	if (ledger->memory)
		atomic_store_explicit(&ledger->slot->simulated, 1, memory_order_relaxed);
}

int ledger_set_quota(struct ledger *ledger, int gpu, uint64_t bytes, uint64_t *before)
{
	uint64_t old;

	if (!has_gpu(ledger, gpu))
		return ledger->memory ? -EINVAL : -ESRCH;
	old = atomic_exchange(&ledger->memory->header.gpus[gpu].quota, bytes);
	if (before)
		*before = old;
	return 0;
}

uint64_t ledger_set_quota_first(struct ledger *ledger, int gpu, uint64_t bytes)
{
	uint64_t quota = 0, quota_now;

	if (!has_gpu(ledger, gpu))
		return 0;
	quota_now = atomic_load(&ledger->memory->header.quota);
	bytes = quota_now ? quota_now : bytes;
	if (atomic_compare_exchange_strong(&ledger->memory->header.gpus[gpu].quota, &quota, bytes))
		return bytes;
	return quota;
}

uint64_t ledger_quota(struct ledger *ledger, int gpu)
{
	if (!has_gpu(ledger, gpu))
		return 0;
	return atomic_load_explicit(&ledger->memory->header.gpus[gpu].quota, memory_order_relaxed);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Read the reserved bytes first. Another thread may move bytes from reserved to used at the same
 * time. In this order, the sum never misses these bytes.
 */
static void sum_slot(struct ledger_slot *slot, int gpu, struct sums *sums)
{
	struct ledger_account *account = &slot->gpus[gpu];

	sums->reserved = add(sums->reserved, atomic_load(&account->reserved));
	sums->used = add(sums->used, atomic_load(&account->used));
}

/*
 * Returns the sum of all slots in use. The sum includes the charges of all living processes. It may
 * also include charges of dead processes.
 */
static struct sums sum_taken(struct ledger *ledger, int gpu)
{
	/*
	 * This read and the reservations are sequentially consistent. Another process may join and
	 * reserve memory at the same time. Then at least one of the two processes sees the other
	 * reservation.
	 */
	uint32_t nr = atomic_load(&ledger->memory->header.nr_slots);
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < nr && i < LEDGER_MAX_SLOTS; i++)
		sum_slot(&ledger->memory->slots[i], gpu, &sums);
	return sums;
}

__attribute__((cold))
static struct sums sum_living(struct ledger *ledger, int fd, int gpu)
{
	uint32_t nr = atomic_load(&ledger->memory->header.nr_slots);
	struct sums sums = { 0 }, one;

	for (uint32_t i = 0; i < nr && i < LEDGER_MAX_SLOTS; i++) {
		one = (struct sums){ 0 };
		sum_slot(&ledger->memory->slots[i], gpu, &one);
		if ((!one.used && !one.reserved) ||
		    (i != ledger->nr && !ledger_file_lives(fd, i, &ledger->memory->slots[i],
							   ledger->pid_namespace)))
			continue;
		sums.used = add(sums.used, one.used);
		sums.reserved = add(sums.reserved, one.reserved);
	}
	return sums;
}

/*
 * Add to the used bytes first. For a short time the bytes may count twice, but a sum never misses
 * them.
 */
static void grant(struct ledger_account *mine, uint64_t bytes)
{
	atomic_fetch_add(&mine->used, bytes);
	atomic_fetch_sub(&mine->reserved, bytes);
}

/*
 * Decides about a charge. Returns 0 or -ENOMEM. If the result depends on other processes'
 * reservations, returns -EAGAIN. Such a reservation may still be refused.
 */
static int decide(struct ledger *ledger, int fd, int gpu, uint64_t bytes)
{
	struct ledger_account *mine = &ledger->slot->gpus[gpu];
	uint64_t quota = ledger_quota(ledger, gpu);
	struct sums sums;

	atomic_fetch_add(&mine->reserved, bytes);
	sums = sum_living(ledger, fd, gpu);
	if (!quota || add(sums.used, sums.reserved) <= quota) {
		grant(mine, bytes);
		return 0;
	}
	atomic_fetch_sub(&mine->reserved, bytes);
	return add(sums.used, bytes) > quota ? -ENOMEM : -EAGAIN;
}

/*
 * This function is called when the fast path found that the charge would exceed the quota. It first
 * removes the charges of dead processes, and waits for reservations that may still be refused. The
 * guard reduces the number of processes that compete for the quota. If the guard is not available,
 * the process decides without the guard, because no decision can exceed the quota. So if a process
 * is stopped while it holds the guard, it blocks no other process.
 */
static int charge_in_turn(struct ledger *ledger, int gpu, uint64_t bytes)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < LEDGER_WAIT_MS; i++) {
		if (i)
			nanosleep(&pause, NULL);
		LEDGER_FILE_HOLD();
		STATE_CLOSED int fd = reopen(ledger, true);

		if (fd >= 0)
			sweep_slots(fd, ledger->memory, ledger->pid_namespace);
		else
			fd = reopen(ledger, false);
		err = decide(ledger, fd, gpu, bytes);
	}
	return err ? -ENOMEM : 0;
}

int ledger_charge(struct ledger *ledger, int gpu, uint64_t bytes)
{
	struct ledger_account *mine;
	struct sums sums;
	uint64_t quota;

	if (!has_gpu(ledger, gpu))
		return ledger->memory ? -EINVAL : -ESRCH;
	mine = &ledger->slot->gpus[gpu];
	quota = ledger_quota(ledger, gpu);
	if (!quota) {
		atomic_fetch_add(&mine->used, bytes);
		return 0;
	}
	if (bytes > quota)
		return -ENOMEM;
	/*
	 * A process sees all reservations that precede its own reservation. If two reservations
	 * together exceed the quota, they can never both succeed.
	 */
	atomic_fetch_add(&mine->reserved, bytes);
	sums = sum_taken(ledger, gpu);
	if (add(sums.used, sums.reserved) <= quota) {
		grant(mine, bytes);
		return 0;
	}
	atomic_fetch_sub(&mine->reserved, bytes);
	return charge_in_turn(ledger, gpu, bytes);
}

void ledger_charge_always(struct ledger *ledger, int gpu, uint64_t bytes)
{
	if (has_gpu(ledger, gpu))
		atomic_fetch_add(&ledger->slot->gpus[gpu].used, bytes);
}

void ledger_release(struct ledger *ledger, int gpu, uint64_t bytes)
{
	struct ledger_account *mine;
	uint64_t used;

	if (!has_gpu(ledger, gpu))
		return;
	mine = &ledger->slot->gpus[gpu];
	used = atomic_load_explicit(&mine->used, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&mine->used, &used,
					     used > bytes ? used - bytes : 0))
		;
}

void ledger_record_uncounted(struct ledger *ledger, uint64_t nr)
{
	uint64_t uncounted;

	if (!ledger->memory)
		return;
	uncounted = atomic_load_explicit(&ledger->slot->uncounted, memory_order_relaxed);
	/* Another thread may already have recorded a later count. */
	while (uncounted < nr &&
	       !atomic_compare_exchange_weak(&ledger->slot->uncounted, &uncounted, nr))
		;
}

uint64_t ledger_used(struct ledger *ledger, int gpu)
{
	if (!has_gpu(ledger, gpu))
		return 0;
	LEDGER_FILE_HOLD();
	STATE_CLOSED int fd = reopen(ledger, false);

	return sum_living(ledger, fd, gpu).used;
}

uint64_t ledger_used_own(struct ledger *ledger, int gpu)
{
	return has_gpu(ledger, gpu) ? atomic_load(&ledger->slot->gpus[gpu].used) : 0;
}
