// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a tenant's ledger file with any content. The target lists the file, sets a quota
 * in the file, joins the ledger, charges and releases. Listed names must be text, and listed
 * amounts must add up. A charge may report that the quota applies. Then the library must enforce
 * the quota. Every charge must be released.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/ledger/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/ledger_leave.h"

#define TENANT	"it"
#define PCI	"0000:01:00.0"
#define MOST	3	/* slots in the file */

static char folder[] = "/dev/shm/fuzz-ledger.XXXXXX";
static char file[96];

/* The folder is private. A field of the slot decides whether the owner of the slot is alive. */
int __wrap_state_dir_open(uid_t uid, bool make);
bool __wrap_ledger_file_lives(int fd, unsigned int nr, const struct ledger_slot *slot,
			      uint64_t own_namespace);

/* No other process runs, so waiting is pointless. */
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted;
	(void)left;
	return 0;
}

int __wrap_state_dir_open(uid_t uid, bool make)
{
	(void)uid;
	(void)make;
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool __wrap_ledger_file_lives(int fd, unsigned int nr, const struct ledger_slot *slot,
			      uint64_t own_namespace)
{
	(void)fd;
	(void)own_namespace;
	MUST(nr < LEDGER_MAX_SLOTS);
	return atomic_load(&slot->pid) > 0;
}

static void clean_up(void)
{
	unlink(file);
	rmdir(folder);
}

static void make_file(struct input *in)
{
	static struct {
		struct ledger_header header;
		_Alignas(4096) struct ledger_slot slots[MOST];
	} ledger;
	unsigned int how = input_u8(in);
	size_t size = sizeof(ledger);
	int fd;

	_Static_assert(offsetof(typeof(ledger), slots) ==
		       offsetof(struct ledger_memory, slots), "");
	memset(&ledger, 0, sizeof(ledger));
	shared_init(&ledger.header.shared, LEDGER_LAYOUT, sizeof(ledger.header));
	atomic_init(&ledger.header.shared.magic, SHARED_MAGIC(SHARED_LEDGER));
	strcpy(ledger.header.shared.name, TENANT);
	strcpy(ledger.header.gpus[0].pci, PCI);
	atomic_init(&ledger.header.gpus[0].quota, 1000);
	atomic_init(&ledger.header.shared.nr_gpus, 1);
	atomic_init(&ledger.header.nr_slots, 2);
	for (int i = 0; i < 2; i++) {
		atomic_init(&ledger.slots[i].pid, i + 1);
		ledger.slots[i].start = i + 1;
		ledger.slots[i].pid_namespace = how & 8 ? i : 1;
		strcpy(ledger.slots[i].program, "program");
		atomic_init(&ledger.slots[i].gpus[0].used, 100);
	}
	input_patch(in, &ledger, sizeof(ledger));
	if (how & 4)
		size = size * (how >> 4) / 16;
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, &ledger, size) == (ssize_t)size);
	close(fd);
}

static void look(void)
{
	struct ledger_view *view;
	int err = ledger_read(geteuid(), TENANT, &view);

	if (err) {
		MUST(err == -EPROTO);
		return;
	}
	MUST(view->nr_gpus <= LEDGER_MAX_GPUS && view->nr_processes <= LEDGER_MAX_SLOTS);
	MUST(!strcmp(view->tenant, TENANT));
	for (unsigned int g = 0; g < view->nr_gpus; g++) {
		uint64_t sum = 0;

		MUST(strnlen(view->gpus[g].pci, LEDGER_PCI_LEN) < LEDGER_PCI_LEN);
		for (unsigned int i = 0; i < view->nr_processes; i++) {
			uint64_t used = view->processes[i].used[g];

			sum = sum > UINT64_MAX - used ? UINT64_MAX : sum + used;
		}
		MUST(view->other_version || view->gpus[g].used == sum);
	}
	for (unsigned int i = 0; i < view->nr_processes; i++)
		MUST(fuzz_printable(view->processes[i].program, LEDGER_NAME_LEN));
	free(view);
}

static void charge(struct ledger *ledger, int gpu, uint64_t bytes)
{
	uint64_t before = ledger_used_own(ledger, gpu), all = ledger_used(ledger, gpu);
	uint64_t quota = ledger_quota(ledger, gpu);
	int err;

	MUST(all >= before);
	/*
	 * Do not request more than the rest of the quota. Otherwise the library would wait
	 * several seconds for the reservations of other processes.
	 */
	if (quota && (bytes > quota || all > quota || bytes > quota - all))
		return;
	err = ledger_charge(ledger, gpu, bytes);
	MUST(!err || err == -ENOMEM);
	MUST(ledger_used_own(ledger, gpu) == before + (err ? 0 : bytes));
	if (!err && quota)
		MUST(ledger_used(ledger, gpu) <= quota);
	if (!err)
		ledger_release(ledger, gpu, bytes);
	MUST(ledger_used_own(ledger, gpu) == before);
	ledger_release(ledger, gpu, UINT64_MAX);
	MUST(!ledger_used_own(ledger, gpu));
}

static void join(struct input *in)
{
	struct ledger *ledger;
	uint64_t before = 1;
	int gpu, err;

	err = ledger_set_quota_of(TENANT, PCI, 5000, false, &before);
	MUST(!err || err == -ENOSPC || err == -EPROTO);
	err = ledger_join(TENANT, &ledger);
	if (err)
		return;
	gpu = ledger_gpu(ledger, PCI);
	MUST(gpu < LEDGER_MAX_GPUS);
	if (gpu >= 0) {
		ledger_set_quota(ledger, gpu, input_u16(in), NULL);
		charge(ledger, gpu, input_u16(in));
	}
	ledger_leave(ledger, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	struct input in = { data, size }, patches;
	size_t nr;

	if (!ready) {
		ready = true;
		MUST(mkdtemp(folder));
		snprintf(file, sizeof(file), "%s/mem-" TENANT, folder);
		atexit(clean_up);
	}
	/* The first half of the input is the content of the file. */
	nr = in.left / 2;
	patches = (struct input){ in.at, nr };
	in.at += nr;
	in.left -= nr;
	make_file(&patches);
	look();
	join(&in);
	look();
	unlink(file);
	return 0;
}
