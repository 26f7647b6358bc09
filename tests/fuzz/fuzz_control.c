// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the state page of a process. Any process of the same user may have written into
 * the page. The target lists the page, reads its GPUs and its progress, and sets its limit. All
 * listed names must be text. After a set from outside, exactly this set must be in force, in mask
 * bits of the page's map. The library must not write anything else in the page.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/state/state_page.h"
#include "lib/state/holder.h"
#include "lib/state/process.h"
#include "tests/fuzz/fuzz.h"

#define PID 4242
#define PCI "0000:01:00.0"

static char folder[] = "/dev/shm/fuzz-control.XXXXXX";
static char file[96];
static struct state_page *block;

/*
 * The linker option --wrap replaces these functions. So the folder is private, and the process is
 * alive.
 */
int __wrap_state_dir_open(uid_t uid, bool make);
bool __wrap_state_dir_process_lives(pid_t pid, uint64_t start);
int __wrap_holder_pid(int fd, uid_t uid, const struct shared_header *b,
			struct holder_table *table);
bool __wrap_holder_is(int fd, uid_t uid, int pid);
bool __wrap_holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace);

int __wrap_state_dir_open(uid_t uid, bool make)
{
	MUST(uid == geteuid() && !make);
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool __wrap_state_dir_process_lives(pid_t pid, uint64_t start)
{
	return pid == PID && start;
}

int __wrap_holder_pid(int fd, uid_t uid, const struct shared_header *b,
			struct holder_table *table)
{
	MUST(fd >= 0 && uid == geteuid() && b && table);
	return PID;
}

bool __wrap_holder_is(int fd, uid_t uid, int pid)
{
	return fd >= 0 && uid == geteuid() && pid == PID;
}

bool __wrap_holder_none(int fd, int pid, uint64_t start, uint64_t pid_namespace)
{
	(void)fd;
	(void)start;
	(void)pid_namespace;
	return pid != PID;
}

static void clean_up(void)
{
	unlink(file);
	rmdir(folder);
}

static void set_up(void)
{
	block = aligned_alloc(_Alignof(struct state_page), sizeof(*block));
	MUST(block && mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/%d.%llx", folder, PID,
		 (unsigned long long)state_dir_pid_namespace());
	atexit(clean_up);
}

/* Makes a page with one GPU of ten TPCs and a limit. Then the input changes this page. */
static void make_block(struct input *in)
{
	struct state_gpu *gpu = &block->gpus[0];

	memset(block, 0, sizeof(*block));
	for (unsigned int i = 0; i < GPUPART_MAX_TPCS; i++)
		gpu->bit_of_tpc[i] = GPUPART_MAX_TMD_BITS - 1 - i;
	shared_init(&block->header, STATE_LAYOUT, sizeof(*block));
	atomic_init(&block->header.magic, SHARED_MAGIC(SHARED_PROCESS));
	block->header.pid = PID;
	block->header.start = 1;
	block->header.pid_namespace = state_dir_pid_namespace();
	strcpy(block->header.name, "name");
	strcpy(block->shared[0].pci, PCI);
	block->shared[0].nr_tpcs = 10;
	block->shared[0].set = (struct shared_place){
		.at = offsetof(struct state_page, gpus[0].limit.slot[0].tpcs),
		.stride = sizeof(struct ring_slot), .nr = LIMIT_SLOTS,
		.count_at = offsetof(struct state_page, gpus[0].limit.published),
	};
	strcpy(gpu->pci, PCI);
	strcpy(gpu->source, "rm");
	atomic_init(&block->header.nr_gpus, 1);
	atomic_init(&gpu->nr_tpcs, 10);
	/* A random offset would rarely be the offset of an important field. */
	switch (input_u8(in) % 3) {
	case 0:
		input_patch(in, block, offsetof(struct state_page, lanes));
		break;
	case 1:
		input_patch(in, block->gpus, sizeof(block->gpus));
		break;
	default:
		input_patch(in, block->gpus, sizeof(block->gpus[0]));
	}
}

static void write_block(size_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, block, size) == (ssize_t)size);
	close(fd);
}

static void read_block(struct state_page *into)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0 && read(fd, into, sizeof(*into)) == sizeof(*into));
	close(fd);
}

static void check_shown(const struct gpupart_process *p)
{
	struct gpupart_tpcset set;

	MUST(fuzz_printable(p->name, sizeof(p->name)) && fuzz_printable(p->job, sizeof(p->job)));
	MUST(fuzz_printable(p->pci, sizeof(p->pci)) && fuzz_printable(p->limit, sizeof(p->limit)));
	MUST(fuzz_printable(p->source, sizeof(p->source)));
	MUST(fuzz_printable(p->problem, sizeof(p->problem)));
	MUST(!p->limit[0] || !gpupart_tpcset_parse_list(NULL, p->limit, &set));
	MUST(p->nr_gpus <= (p->other_version ? SHARED_MAX_GPUS : STATE_MAX_GPUS));
	MUST(p->pid == PID);
}

static bool look(struct gpupart *gp)
{
	static struct gpupart_process list[2], gpus[SHARED_MAX_GPUS];
	unsigned int nr = process_list_own(list, 2);
	int nr_gpus;

	MUST(nr <= 1);
	if (!nr)
		return false;
	check_shown(&list[0]);
	nr_gpus = gpupart_process_gpu_list(gp, &list[0], gpus, SHARED_MAX_GPUS,
					   sizeof(struct gpupart_process));
	MUST(nr_gpus >= 0 && nr_gpus <= SHARED_MAX_GPUS);
	for (int i = 0; i < nr_gpus; i++)
		check_shown(&gpus[i]);
	return true;
}

/* Checks that only limits and their flags have changed. */
static void check_untouched(const struct state_page *before, const struct state_page *after)
{
	size_t from = offsetof(struct state_page, gpus);

	MUST(!memcmp(before, after, from));
	for (int i = 0; i < STATE_MAX_GPUS; i++) {
		const struct state_gpu *a = &before->gpus[i], *b = &after->gpus[i];

		from = offsetof(struct state_gpu, pci);
		MUST(!memcmp((char *)a + from, (char *)b + from, sizeof(*a) - from));
	}
	MUST(!memcmp(&before->progress, &after->progress, sizeof(before->progress)));
}

static void check_in_force(const struct state_gpu *gpu, const struct gpupart_tpcset *set)
{
	uint64_t now = atomic_load(&gpu->limit.published);
	const struct ring_slot *slot = &gpu->limit.slot[now % LIMIT_SLOTS];
	struct tmd_allow allow;
	struct limit_sets sets;

	MUST(limit_get(&gpu->limit, &sets));
	if (set)
		MUST(!gpupart_tpcset_empty(&sets.in_force) &&
		     gpupart_tpcset_subset(&sets.in_force, set) &&
		     gpupart_tpcset_equal(&sets.outer, set));
	tmd_bits_convert(gpu->bit_of_tpc, &sets.in_force, &allow);
	MUST(!memcmp(&allow, (const void *)slot->tmd_bits, sizeof(allow)));
}

static void set_limit(struct gpupart *gp, const struct gpupart_tpcset *set)
{
	static struct state_page before, after;
	struct gpupart_remote *remote;
	struct gpupart_progress *progress = malloc(sizeof(*progress));
	struct gpupart_tpcset was, now;
	int err;

	gp->error[0] = 0;
	err = gpupart_remote_open(gp, PID, PCI, &remote);
	if (err) {
		MUST(err < 0 && gp->error[0]);
		free(progress);
		return;
	}
	read_block(&before);
	MUST(progress && !gpupart_remote_progress(gp, remote, progress));
	err = gpupart_remote_set(gp, remote, set, &was);
	read_block(&after);
	check_untouched(&before, &after);
	for (int i = 0; i < STATE_MAX_GPUS; i++) {
		if (before.gpus[i].limit.published == after.gpus[i].limit.published)
			continue;
		MUST(!err && !strncmp(before.gpus[i].pci, PCI, sizeof(before.gpus[i].pci)));
		check_in_force(&after.gpus[i], set);
	}
	if (err)
		MUST(err < 0 && gp->error[0]);
	else
		MUST(!gpupart_remote_get(gp, remote, &now) &&
		     (set ? gpupart_tpcset_equal(&now, set) : gpupart_tpcset_empty(&now)));
	if (!err && set)
		MUST(gpupart_tpcset_next(set, atomic_load(&after.gpus[0].nr_tpcs)) < 0 ||
		     strncmp(after.gpus[0].pci, PCI, sizeof(after.gpus[0].pci)));
	gpupart_remote_close(remote);
	free(progress);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpupart *gp;
	struct input in = { data, size };
	struct gpupart_tpcset set = { 0 };
	size_t bytes = sizeof(*block);
	unsigned int how;

	if (!gp) {
		MUST(!gpupart_open(&gp));
		set_up();
	}
	how = input_u8(&in);
	set.allowed[0] = input_u16(&in);
	make_block(&in);
	if (how & 2)
		bytes = bytes * (how >> 2) / 64;
	write_block(bytes);
	if (!look(gp)) {
		unlink(file);
		return 0;
	}
	set_limit(gp, how & 1 ? NULL : &set);
	unlink(file);
	return 0;
}
