// SPDX-License-Identifier: MIT
/*
 * Reads the processes of any tenant and their memory use from the tenant's file. The code reads the
 * file only with system calls, so a change of the file cannot kill the reader. Also changes the
 * quota and removes the file.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/state_dir.h"
#include "lib/ledger/file.h"

#define PREFIX "mem-"

/*
 * Reads the counts until two consecutive reads return the same counts. Different counts mean that a
 * process was writing. If the counts change again and again, the function uses the counts of the
 * last read.
 */
static bool read_slot(int fd, unsigned int nr, struct ledger_slot *slot)
{
	struct ledger_slot again;
	const off_t at = LEDGER_END_OF(nr);

	for (int i = 0; i < 16; i++) {
		if (pread(fd, slot, sizeof(*slot), at) != sizeof(*slot) ||
		    pread(fd, &again, sizeof(again), at) != sizeof(again))
			return false;
		if (!memcmp(slot, &again, sizeof(again)))
			break;
	}
	return true;
}

/*
 * If the process of the slot is alive, reads the slot. The result never contains data of an earlier
 * owner of the slot.
 */
static bool read_living(int fd, unsigned int nr, uint64_t own_namespace, struct ledger_slot *slot)
{
	struct ledger_slot again;

	return read_slot(fd, nr, slot) && ledger_file_lives(fd, nr, slot, own_namespace) &&
	       read_slot(fd, nr, &again) && again.start == slot->start &&
	       again.pid_namespace == slot->pid_namespace &&
	       atomic_load(&again.pid) == atomic_load(&slot->pid);
}

static void add_process(struct ledger_view *view, struct ledger_slot *slot,
			uint64_t own_namespace)
{
	struct ledger_process *process = &view->processes[view->nr_processes++];

	process->inner = atomic_load(&slot->pid);
	process->start = slot->start;
	process->pid_namespace = slot->pid_namespace;
	process->pid = slot->pid_namespace == own_namespace ? process->inner : 0;
	state_dir_copy_text(process->program, LEDGER_NAME_LEN, slot->program, LEDGER_NAME_LEN);
	process->simulated = atomic_load(&slot->simulated);
	process->uncounted = atomic_load(&slot->uncounted);
	for (unsigned int gpu = 0; gpu < view->nr_gpus; gpu++) {
		uint64_t used = atomic_load(&slot->gpus[gpu].used);
		uint64_t *all = &view->gpus[gpu].used;

		process->used[gpu] = used;
		*all = *all > UINT64_MAX - used ? UINT64_MAX : *all + used;
	}
}

/* A process in an inner pid namespace also has a pid in this namespace. */
static void find_pids(struct ledger_view *view)
{
	struct state_dir_nested nested = { .made = false };
	bool wanted = false;

	for (unsigned int i = 0; i < view->nr_processes; i++)
		wanted |= !view->processes[i].pid;
	if (wanted)
		state_dir_nested_create(&nested);
	for (unsigned int i = 0; i < view->nr_processes * nested.nr; i++) {
		struct ledger_process *process = &view->processes[i / nested.nr];
		const struct state_dir_nested_row *row = &nested.rows[i % nested.nr];

		if (!process->pid && process->inner == row->inner &&
		    process->pid_namespace == row->pid_namespace &&
		    state_dir_process_lives(row->pid, process->start))
			process->pid = row->pid;
	}
	state_dir_nested_free(&nested);
}

static void fill_view(int fd, struct ledger_view *view, const struct ledger_header *header)
{
	const uint64_t own_namespace = state_dir_pid_namespace();
	uint32_t nr_slots = atomic_load(&header->nr_slots);
	struct ledger_slot slot;

	view->quota = atomic_load(&header->quota);
	view->nr_gpus = atomic_load(&header->shared.nr_gpus);
	for (unsigned int gpu = 0; gpu < view->nr_gpus; gpu++) {
		memcpy(view->gpus[gpu].pci, header->gpus[gpu].pci, LEDGER_PCI_LEN - 1);
		view->gpus[gpu].quota = atomic_load(&header->gpus[gpu].quota);
	}
	for (uint32_t i = 0; i < nr_slots; i++)
		if (read_living(fd, i, own_namespace, &slot))
			add_process(view, &slot, own_namespace);
	find_pids(view);
}

/*
 * Reads a file of another version. The function reads the header of the file, but not the
 * processes.
 */
static int look_other(int fd, struct ledger_view **view)
{
	struct ledger_view *new;
	struct shared_seen seen;

	if (shared_read(fd, SHARED_LEDGER, LEDGER_LAYOUT, &seen) != SHARED_OTHER)
		return -EPROTO;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->other_version = true;
	new->nr_gpus = seen.nr_gpus;
	for (unsigned int gpu = 0; gpu < seen.nr_gpus; gpu++) {
		strcpy(new->gpus[gpu].pci, seen.gpus[gpu].pci);
		new->gpus[gpu].quota = atomic_load(&seen.gpus[gpu].quota);
		new->gpus[gpu].used = seen.gpus[gpu].memory;
	}
	*view = new;
	return 0;
}

int ledger_read(uid_t uid, const char *tenant, struct ledger_view **view)
{
	struct ledger_header header;
	struct ledger_view *new;
	struct stat st;
	int err;

	if (!state_dir_name_valid(tenant))
		return -ENOENT;
	LEDGER_FILE_HOLD();
	STATE_CLOSED int fd = ledger_file_open_read(uid, tenant);

	if (fd < 0)
		return fd;
	/*
	 * Read the header before the size of the file, because a process extends the file before
	 * it increases the number of slots.
	 */
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) || fstat(fd, &st) ||
	    !ledger_file_good(&header, st.st_size, tenant)) {
		err = look_other(fd, view);
		if (!err)
			strcpy((*view)->tenant, tenant);
		return err;
	}
	new = calloc(1, sizeof(*new) + atomic_load(&header.nr_slots) * sizeof(new->processes[0]));
	if (!new)
		return -ENOMEM;
	strcpy(new->tenant, tenant);
	fill_view(fd, new, &header);
	*view = new;
	return 0;
}

unsigned int ledger_list(uid_t uid, char (*names)[LEDGER_NAME_LEN], unsigned int max)
{
	DIR *dir = state_dir_read(state_dir_open(uid, false));
	struct dirent *entry;
	unsigned int nr = 0, files = 0;

	while (dir && (entry = readdir(dir)) && !state_dir_has_more(uid, ++files)) {
		const char *name = entry->d_name + strlen(PREFIX);

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) || !state_dir_name_valid(name))
			continue;
		if (nr < max)
			strcpy(names[nr], name);
		nr++;
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void set_everywhere(struct ledger_header *header, uint64_t bytes)
{
	uint32_t nr = atomic_load(&header->shared.nr_gpus);

	/*
	 * First set the quota for GPUs that are added later. Adding a GPU needs the guard,
	 * which this process holds.
	 */
	atomic_store(&header->quota, bytes);
	for (uint32_t gpu = 0; gpu < nr && gpu < LEDGER_MAX_GPUS; gpu++)
		atomic_store(&header->gpus[gpu].quota, bytes);
}

int ledger_set_quota_of(const char *tenant, const char *pci, uint64_t bytes, bool make,
			uint64_t *before)
{
	struct ledger_header *header;
	uint64_t old = 0;
	int fd, gpu = 0;

	if (!state_dir_name_valid(tenant) || (pci && (!*pci || strlen(pci) >= LEDGER_PCI_LEN)))
		return -EINVAL;
	fd = ledger_file_open_wait(tenant, make);
	if (fd < 0)
		return fd;
	header = mmap(NULL, sizeof(*header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		gpu = -errno;
	/*
	 * If there is no room for the GPU, a program with this quota could not join the tenant.
	 * Report the error now.
	 */
	else if (make)
		gpu = ledger_file_make_room(fd, atomic_load(&header->nr_slots) + LEDGER_ROOM);
	if (gpu >= 0 && pci)
		gpu = ledger_file_add_gpu(header, pci);
	if (gpu >= 0) {
		old = pci ? atomic_exchange(&header->gpus[gpu].quota, bytes) : 0;
		if (!pci || (make && atomic_load(&header->quota) != bytes))
			set_everywhere(header, bytes);
		if (before)
			*before = old;
	}
	if (header != MAP_FAILED)
		munmap(header, sizeof(*header));
	close(fd);
	ledger_file_end();
	return gpu < 0 ? gpu : 0;
}

bool ledger_sweep(const char *tenant)
{
	if (!state_dir_name_valid(tenant))
		return false;
	LEDGER_FILE_HOLD();
	/*
	 * If another process holds the guard, that process is joining the tenant or is also
	 * removing the file.
	 */
	STATE_CLOSED int fd = ledger_file_open_any(tenant, false);

	return fd >= 0 && ledger_file_remove(fd, tenant, -1);
}
