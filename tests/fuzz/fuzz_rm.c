// SPDX-License-Identifier: MIT
/*
 * Fuzz target: answers of NVIDIA's resource manager. The driver has one to three small GPUs. The
 * input changes or refuses some of the driver's answers. The result is a GPU or an error message.
 * A capture of this GPU can be written and read. All descriptors and objects must be released.
 */
#include <errno.h>
#include <sys/stat.h>
#include "lib/topo/rm_layout.h"
#include "lib/topo/rm_client.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/topology.h"

#define MAX_CHANGES	24
#define FIRST_FD	1000	/* above real descriptors */
#define NR_GPCS		4
#define NR_TPCS		10	/* TPC i is in GPC i % NR_GPCS */

/* The input's change of the answer to call number @nth. */
struct change {
	uint8_t nth, kind, value[16];
	uint16_t at;
	uint8_t len;
};

static struct machine {
	unsigned int nr_gpus, nr_calls, nr_changes, nr_fds, nr_objects;
	struct change changes[MAX_CHANGES];
	char version[160], information[200];
} machine;

static struct gpupart *gp;

static const struct change *change_of(unsigned int nth)
{
	for (unsigned int i = 0; i < machine.nr_changes; i++)
		if (machine.changes[i].nth == nth)
			return &machine.changes[i];
	return NULL;
}

/* ------------------------------------------------------------- answers of a driver */

static void answer_ids(uint32_t ids[RM_MAX_GPUS])
{
	for (unsigned int i = 0; i < RM_MAX_GPUS; i++)
		ids[i] = i < machine.nr_gpus ? 0x100 * (i + 1) : RM_INVALID_ID;
}

static void answer_sm_order(void *params)
{
	struct rm_sm_order_9 answered = { 0 }, *order = &answered;

	order->nr_sms = 2 * NR_TPCS;
	order->nr_tpcs = NR_TPCS;
	for (unsigned int sm = 0; sm < 2 * NR_TPCS; sm++) {
		unsigned int tpc = sm / 2, gpc = tpc % NR_GPCS;
		uint16_t *e = order->entry[sm];

		e[SM_GPC] = e[SM_VGPC] = gpc;
		e[SM_LOCAL_TPC] = e[SM_TPC_IN_VGPC] = e[SM_VIRTUAL_TPC] = tpc / NR_GPCS;
		e[SM_LOCAL_SM] = sm % 2;
		e[SM_TPC] = tpc;
		e[SM_UGPU] = gpc / 2;
		e[SM_CPC] = 0;
	}
	/* The library's structure may have the wrong alignment for this type. */
	memcpy(params, order, sizeof(*order));
}

static void answer_gr_info(const struct rm_gr_info_list *list)
{
	struct rm_info *info = (struct rm_info *)(uintptr_t)list->list;

	for (unsigned int i = 0; i < list->nr; i++)
		info[i].data = info[i].index == RM_GR_INFO_NUM_GPCS ? NR_GPCS :
			       info[i].index == RM_GR_INFO_SM_PER_TPC ? 2 : 3;
}

static void answer_fs_info(struct rm_fs_info *info)
{
	for (unsigned int i = 0; i < info->nr && i < RM_FS_MAX_QUERIES; i++)
		info->query[i].gpc_phys = info->query[i].gpc ^ 1;
}

/* Returns 0. If the size is wrong, returns a status. */
static uint32_t answer(const struct rm_control *c, void *params)
{
	switch (c->cmd) {
	case RM_GET_PROBED_IDS:
	case RM_GET_ATTACHED_IDS:
		answer_ids(params);
		break;
	case RM_GET_ID_INFO_V2:
		((struct rm_id_info *)params)->device_instance =
			((struct rm_id_info *)params)->id / 0x100 - 1;
		break;
	case RM_GET_PCI_INFO:
		((struct rm_pci_info *)params)->bus = ((struct rm_pci_info *)params)->id / 0x100;
		break;
	case RM_GPU_GET_NAME_STRING:
		strcpy(((struct rm_name *)params)->ascii, "NVIDIA made up");
		break;
	case RM_GPU_GET_GID_INFO:
		strcpy(((struct rm_gid *)params)->data, "GPU-01234567-89ab-cdef-0123-456789abcdef");
		break;
	case RM_GPU_GET_INFO:
		((struct rm_info *)(uintptr_t)((struct rm_gpu_info_list *)params)->list)->data = 0;
		break;
	case RM_MC_GET_ARCH_INFO:
		((struct rm_arch *)params)->architecture = 0x180;
		break;
	case RM_GR_GET_INFO:
		answer_gr_info(params);
		break;
	case RM_GR_GET_GLOBAL_SM_ORDER:
		if (c->params_size != sizeof(struct rm_sm_order_9))
			return 0x1f;
		answer_sm_order(params);
		break;
	case RM_GR_GET_GPC_MASK:
		((struct rm_gpc_mask *)params)->present_gpcs = (1 << NR_GPCS) - 1;
		break;
	case RM_GR_GET_TPC_MASK:
		((struct rm_tpc_mask *)params)->present_tpcs =
			((struct rm_tpc_mask *)params)->gpc_phys < 2 ? 7 : 3;
		break;
	case RM_GRMGR_GET_GR_FS_INFO:
		answer_fs_info(params);
		break;
	}
	return 0;
}

/* ------------------------------------------------------------------ changed answers */

static int control(struct rm_control *c, const struct change *change)
{
	void *params = (void *)(uintptr_t)c->params;

	c->status = answer(c, params);
	if (!change)
		return 0;
	/*
	 * The caller sets the sizes of lists. A driver does not write more entries than these
	 * sizes allow.
	 */
	if (change->kind % 4 == 0 && c->params_size && c->cmd != RM_GPU_GET_INFO &&
	    c->cmd != RM_GR_GET_INFO) {
		size_t at = change->at % c->params_size, len = change->len % 17;

		memcpy((char *)params + at, change->value,
		       len < c->params_size - at ? len : c->params_size - at);
	} else if (change->kind % 4 == 0 && c->cmd == RM_GR_GET_INFO) {
		memcpy(&((struct rm_info *)(uintptr_t)((struct rm_gr_info_list *)params)->list)
				->data, change->value, 4);
	} else if (change->kind % 4 == 1) {
		memcpy(&c->status, change->value, sizeof(c->status));
	} else if (change->kind % 4 == 2) {
		return -(change->value[0] % 133 + 1);
	}
	return 0;
}

static int alloc(struct rm_alloc *a, const struct change *change)
{
	MUST(a->class_id == RM_CLASS_CLIENT || a->parent);
	if (change && change->kind % 4 == 2)
		return -(change->value[0] % 133 + 1);
	if (change && change->kind % 4 == 1)
		memcpy(&a->status, change->value, sizeof(a->status));
	else if (change && change->kind % 4 == 0)
		memcpy(&a->params_size_or_status, change->value, 4);
	else
		a->status = 0;
	if (!(a->status == RM_ALLOC_UNTOUCHED ? a->params_size_or_status : a->status)) {
		a->object = 0x1000 + machine.nr_calls;
		machine.nr_objects++;
	}
	return 0;
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	const struct change *change = change_of(machine.nr_calls++);

	MUST(fd >= FIRST_FD);
	if (request == RM_IOCTL_CONTROL)
		return control(arg, change);
	if (request == RM_IOCTL_ALLOC)
		return alloc(arg, change);
	MUST(request == RM_IOCTL_FREE && ((struct rm_free *)arg)->object && machine.nr_objects);
	machine.nr_objects--;
	return change && change->kind % 4 == 2 ? -EIO : 0;
}

static int fake_open(const char *path)
{
	const struct change *change = change_of(machine.nr_calls++);
	unsigned int minor = 0;

	if (change && change->kind % 4 == 2)
		return -(change->value[0] % 133 + 1);
	if (sscanf(path, "/dev/nvidia%u", &minor) == 1 && minor >= machine.nr_gpus)
		return -ENOENT;
	return FIRST_FD + machine.nr_fds++;
}

/* For NVIDIA's files, these functions replace functions of libc. */
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_stat(const char *path, struct stat *st);
int __real_stat(const char *path, struct stat *st);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);

static int result_of(int ret)
{
	if (ret < 0)
		errno = -ret;
	return ret < 0 ? -1 : ret;
}

int __wrap_open(const char *path, int flags, ...)
{
	return strncmp(path, "/dev/nvidia", 11) ? __real_open(path, flags, 0600) :
						  result_of(fake_open(path));
}

int __wrap_close(int fd)
{
	if (fd < FIRST_FD)
		return __real_close(fd);
	MUST(machine.nr_fds);
	machine.nr_fds--;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	return result_of(fake_ioctl(fd, request, arg));
}

int __wrap_stat(const char *path, struct stat *st)
{
	if (strncmp(path, "/dev/nvidia", 11))
		return __real_stat(path, st);
	st->st_mode = 0600;
	return result_of(strlen(path) % 2 ? 0 : -ENOENT);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char *from = strstr(path, "version") ? machine.version : machine.information;

	if (strncmp(path, "/proc/driver/", 13))
		return __real_fopen(path, mode);
	return *from ? fmemopen(from, strlen(from), "r") : NULL;
}

/* -------------------------------------------------------------------- invariants */

static void check_info(const struct gpupart_gpu_info *info)
{
	MUST(fuzz_printable(info->pci, sizeof(info->pci)) && info->pci[0]);
	MUST(fuzz_printable(info->uuid, sizeof(info->uuid)));
	MUST(!info->uuid[0] || topo_is_uuid(info->uuid));
	MUST(fuzz_printable(info->name, sizeof(info->name)));
	MUST(fuzz_printable(info->driver, sizeof(info->driver)));
	MUST(info->mig >= -1 && info->mig <= 1 && info->max_gpcs <= GPUPART_MAX_GPCS);
}

static void check_failed(int err)
{
	MUST(err < 0 && err > -4096 && gp->error[0]);
}

static void check_topology(struct gpupart_topology *topo)
{
	check_info(&topo->info);
	fuzz_check_topology(gp, topo);
	gpupart_topology_close(topo);
}

static void begin(void)
{
	machine.nr_calls = machine.nr_fds = machine.nr_objects = 0;
	gp->error[0] = 0;
}

static void set_up(struct input *in)
{
	unsigned int how = input_u8(in);

	memset(&machine, 0, sizeof(machine));
	machine.nr_gpus = how % 4;
	strcpy(machine.version,
	       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1  Tue\n");
	if (how & 4) {
		input_bytes(in, machine.version + 13, input_u8(in) % 128);
		input_bytes(in, machine.information, input_u8(in) % 190);
	}
	while (in->left && machine.nr_changes < MAX_CHANGES) {
		struct change *c = &machine.changes[machine.nr_changes++];

		c->nth = input_u8(in);
		c->kind = input_u8(in);
		c->at = input_u16(in);
		c->len = input_u8(in);
		input_bytes(in, c->value, c->kind % 4 ? 4 : c->len % 17);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpupart_gpu_info list[2];
	struct gpupart_topology *topo;
	struct input in = { data, size };
	int err;

	if (!gp)
		MUST(!gpupart_open(&gp));
	fuzz_words = gp->error;
	set_up(&in);

	begin();
	err = topo_rm_list(gp, list, 2);
	MUST(!machine.nr_fds && !machine.nr_objects);
	if (err < 0)
		check_failed(err);
	MUST(err <= RM_MAX_GPUS);
	for (int i = 0; i < err && i < 2; i++)
		check_info(&list[i]);

	for (int i = 0; i < 3; i++) {
		static const char *const which[] = { NULL, "1", "GPU-01234567" };

		begin();
		err = topo_rm_open(gp, which[i], &topo);
		MUST(!machine.nr_fds && !machine.nr_objects);
		if (err)
			check_failed(err);
		else
			check_topology(topo);
	}
	return 0;
}
