// SPDX-License-Identifier: MIT
/*
 * Fuzz target: answers of NVML and RM to a program of a tenant. A filtered list must contain only
 * the tenant's own processes, in the same order. It must fit into the caller's list. The memory
 * must be at most the quota. If the form of an ioctl's answer is unknown, the library must not
 * change the answer.
 */
#include <errno.h>
#include <unistd.h>
#include "lib/ledger/ledger.h"
#include "lib/nvml/answer.h"
#include "lib/nvml/share.h"
#include "lib/topo/rm_ioctl.h"
#include "tests/fuzz/fuzz.h"

#define OWN		3	/* processes of the tenant: pids 1, 2, 3 */
#define MOST		40
#define CANARY		0x77

static struct input in;
static unsigned int nr_told;	/* number of processes in the library's last answer */
static uint32_t told[MOST];
static size_t entry_bytes;	/* size of an entry in this library */

/* The linker option --wrap replaces the tenant's ledger. */
int __wrap_ledger_read(uid_t uid, const char *tenant, struct ledger_view **view);

int __wrap_ledger_read(uid_t uid, const char *tenant, struct ledger_view **view)
{
	struct ledger_view *new = calloc(1, sizeof(*new) + OWN * sizeof(new->processes[0]));

	MUST(new && uid == geteuid() && !strcmp(tenant, "it"));
	new->nr_gpus = 1;
	new->nr_processes = OWN;
	strcpy(new->gpus[0].pci, "0000:01:00.0");
	new->gpus[0].quota = 1000;
	new->gpus[0].used = 1500;
	for (int i = 0; i < OWN; i++) {
		new->processes[i].pid = i + 1;
		new->processes[i].used[0] = 500;
	}
	*view = new;
	return 0;
}

/* ------------------------------------------------------------------ the library */

static int fake_pci(void *device, struct nvml_pci *pci)
{
	(void)device;
	pci->bus = 1;
	return 0;
}

static void make_told(void)
{
	nr_told = input_u8(&in) % MOST;
	for (unsigned int i = 0; i < nr_told; i++)
		told[i] = input_u8(&in) % 6;
}

/*
 * Like in the real library, a list that is too short is an error. The answer then contains the
 * required number.
 */
static int fake_list(void *device, unsigned int *nr, void *entries)
{
	unsigned int room = *nr;

	(void)device;
	make_told();
	*nr = nr_told;
	if (nr_told > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < nr_told; i++) {
		char *to = (char *)entries + i * entry_bytes;

		/* The entries have no padding. The memory of an entry may be unknown. */
		memcpy(to, &told[i], 4);
		if (entry_bytes > 8) {
			uint64_t used = input_u8(&in) & 1 ? NVML_NOT_AVAILABLE : 77;

			memcpy(to + 8, &used, sizeof(used));
		}
		if (entry_bytes > 16)
			memset(to + 16, 1, entry_bytes - 16);
	}
	return input_u8(&in) % 16 ? 0 : 3;
}

static int fake_memory(void *device, struct nvml_memory *memory)
{
	(void)device;
	input_bytes(&in, memory, sizeof(*memory));
	return input_u8(&in) % 8 ? 0 : 3;
}

static int fake_ioctl(int fd, unsigned long request, ...)
{
	(void)fd;
	(void)request;
	return 0;
}

/* -------------------------------------------------------------------- invariants */

static void check_list(enum copy_function which, size_t ours)
{
	struct copy copy = { .taken = true, .pci = fake_pci };
	unsigned int room = input_u8(&in) % MOST, nr = room, expected = 0;
	char entries[(MOST + 1) * sizeof(struct nvml_process_detail)];
	int rc;

	memset(entries, CANARY, sizeof(entries));
	atomic_init(&copy.real[which], (uintptr_t)fake_list);
	rc = which == COPY_ACCOUNTING_PIDS ?
		     answer_pids(&copy, which, NULL, &nr, (unsigned int *)entries) :
		     answer_list(&copy, which, NULL, &nr, entries);
	/* No form of the function may write beyond the end of the caller's list. */
	for (size_t i = room * (entry_bytes > ours ? entry_bytes : ours); i < sizeof(entries); i++)
		MUST(entries[i] == CANARY);
	for (unsigned int i = 0; i < nr_told; i++)
		expected += told[i] >= 1 && told[i] <= OWN;
	if (rc == NVML_ERROR_INSUFFICIENT_SIZE)
		MUST(nr == expected && nr > room);
	if (rc)
		return;
	MUST(nr == expected && nr <= room);
	for (unsigned int i = 0, k = 0; i < nr_told; i++) {
		uint32_t pid;

		if (!told[i] || told[i] > OWN)
			continue;
		memcpy(&pid, entries + k * ours, 4);
		/*
		 * In the form of an older driver, entries are longer than in the standard form of
		 * the function.
		 */
		if (entry_bytes == ours)
			MUST(pid == told[i]);
		k++;
	}
}

static void check_memory(void)
{
	struct copy copy = { .taken = true, .pci = fake_pci };
	struct nvml_memory memory = { 0 };

	atomic_init(&copy.real[COPY_MEMORY], (uintptr_t)fake_memory);
	if (answer_memory(&copy, COPY_MEMORY, NULL, &memory))
		return;
	MUST(memory.total <= 1000 && memory.free <= memory.total);
	MUST(memory.used == 1500 || !memory.total);
}

static void check_ioctl(void)
{
	static struct rm_gpu_pids list, before;
	struct copy copy = { .taken = true, .pci = fake_pci };
	struct rm_control control = {
		.cmd = RM_GPU_GET_PIDS, .params = (uintptr_t)&list, .params_size = sizeof(list),
	};
	bool known = true;
	uint32_t nr = 0;

	memset(&list, 0, sizeof(list));
	list.nr = input_u16(&in) % 1200;
	for (unsigned int i = 0; i < list.nr && i < RM_GPU_PIDS_MAX; i++)
		list.pids[i] = input_u8(&in) % 6;
	if (input_u8(&in) & 1) {
		input_patch(&in, &control, offsetof(struct rm_control, params));
		control.flags = input_u8(&in);
		control.status = input_u8(&in);
		list.id_type = input_u8(&in);
		known = control.cmd == RM_GPU_GET_PIDS && !control.status && !list.id_type &&
			!(control.flags & RM_CONTROL_SERIALIZED);
	}
	known &= list.nr <= RM_GPU_PIDS_MAX;
	before = list;
	atomic_init(&copy.ioctl, (uintptr_t)fake_ioctl);
	MUST(!answer_ioctl(&copy, 3, RM_IOCTL_CONTROL, &control));
	if (!known) {
		MUST(!memcmp(&before, &list, sizeof(list)));
		return;
	}
	for (uint32_t i = 0; i < before.nr; i++)
		if (before.pids[i] >= 1 && before.pids[i] <= OWN)
			MUST(list.pids[nr++] == before.pids[i]);
	MUST(list.nr == nr);
	for (uint32_t i = nr; i < RM_GPU_PIDS_MAX; i++)
		MUST(!list.pids[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	unsigned int how;

	if (!ready) {
		setenv("GPUPART_TENANT", "it", 1);
		setenv("GPUPART_MEM", "1000", 1);
		MUST(share_setup());
		ready = true;
	}
	in = (struct input){ data, size };
	how = input_u8(&in);
	switch (how % 5) {
	case 0:
		entry_bytes = sizeof(struct nvml_process_v1);
		check_list(COPY_COMPUTE, sizeof(struct nvml_process_v1));
		break;
	case 1:
		entry_bytes = how & 128 ? sizeof(struct nvml_process_detail) :
					  sizeof(struct nvml_process_v2);
		check_list(COPY_COMPUTE_V3, sizeof(struct nvml_process_v2));
		break;
	case 2:
		entry_bytes = 4;
		check_list(COPY_ACCOUNTING_PIDS, 4);
		break;
	case 3:
		check_memory();
		break;
	default:
		check_ioctl();
	}
	return 0;
}
