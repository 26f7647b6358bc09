// SPDX-License-Identifier: MIT
/*
 * The topology as NVIDIA's driver tells it: its resource manager (RM) is asked by
 * ioctl on /dev/nvidiactl, as an ordinary user. Only controls that read are issued.
 * Must not know registers, TMDs or CUDA.
 *
 * Numbers and layouts: NVIDIA/open-gpu-kernel-modules, tags 515.43.04 to 595.45.04;
 * "ctrl/" below is its src/common/sdk/nvidia/inc/ctrl/. Sizes are compared with
 * those that its headers give when compiled, branch by branch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "topo.h"
#include "topo_rm.h"

/* -------------------------------------------------------- the system's own calls */

static int system_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void system_close(int fd)
{
	close(fd);
}

static int system_ioctl(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static int system_read_text(const char *path, char *text, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t got = 0;

	if (fd < 0)
		return -errno;
	while (have < len - 1) {
		got = read(fd, text + have, len - 1 - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += got;
	}
	got = got < 0 ? -errno : (ssize_t)have;
	text[have] = '\0';
	close(fd);
	return got;
}

static int system_mode(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -errno : (int)(st.st_mode & 07777);
}

static const struct topo_rm_io system_io = {
	.open = system_open,
	.close = system_close,
	.ioctl = system_ioctl,
	.read_text = system_read_text,
	.mode = system_mode,
};

const struct topo_rm_io *topo_rm_io = &system_io;

/* ------------------------------------------------------------------- RM's layouts */

#define RM_MAX_GPUS	32		/* NV_MAX_DEVICES, nvlimits.h */
#define RM_INVALID_ID	0xffffffffu	/* NV0000_CTRL_GPU_INVALID_ID, ctrl0000gpu.h */

/* NVOS00, NVOS54, NVOS21: src/common/sdk/nvidia/inc/nvos.h, the same on every branch. */
struct rm_free {
	uint32_t client, parent, object, status;
};

struct rm_control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_size, status;
};

/*
 * Before 535 there was no params_size: the status stood in its place and the last
 * word was padding, which comes back as it was sent (both forms: gVisor, pkg/abi/nvgpu).
 */
struct rm_alloc {
	uint32_t client, parent, object, class_id;
	uint64_t params;
	uint32_t params_size_or_status, status;
};
#define RM_ALLOC_UNTOUCHED 0xffffffffu	/* no status: they fit 16 bits, nvstatuscodes.h */

/* Numbers: src/nvidia/arch/nvalloc/unix/include/nv_escape.h */
#define RM_IOCTL_FREE		_IOWR('F', 0x29, struct rm_free)
#define RM_IOCTL_CONTROL	_IOWR('F', 0x2a, struct rm_control)
#define RM_IOCTL_ALLOC		_IOWR('F', 0x2b, struct rm_alloc)

_Static_assert(sizeof(struct rm_free) == 16, "NVOS00");
_Static_assert(sizeof(struct rm_control) == 32, "NVOS54");
_Static_assert(offsetof(struct rm_control, params) == 16, "NVOS54");
_Static_assert(offsetof(struct rm_control, status) == 28, "NVOS54");
_Static_assert(sizeof(struct rm_alloc) == 32, "NVOS21");
_Static_assert(offsetof(struct rm_alloc, params) == 16, "NVOS21");
_Static_assert(offsetof(struct rm_alloc, params_size_or_status) == 24, "NVOS21");
_Static_assert(offsetof(struct rm_alloc, status) == 28, "NVOS21");

/* class/cl0000.h, cl0080.h, cl2080.h */
#define RM_CLASS_CLIENT		0x41
#define RM_CLASS_DEVICE		0x80
#define RM_CLASS_SUBDEVICE	0x2080

struct rm_device_params {
	uint32_t device_instance, client_share, target_client, target_device, flags, pad;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode, pad2;
};
_Static_assert(sizeof(struct rm_device_params) == 56, "NV0080_ALLOC_PARAMETERS");
_Static_assert(offsetof(struct rm_device_params, va_size) == 24, "NV0080_ALLOC_PARAMETERS");
_Static_assert(offsetof(struct rm_device_params, va_mode) == 48, "NV0080_ALLOC_PARAMETERS");

struct rm_subdevice_params {
	uint32_t subdevice_instance;
};
_Static_assert(sizeof(struct rm_subdevice_params) == 4, "NV2080_ALLOC_PARAMETERS");

/* Controls of the client: ctrl/ctrl0000/ctrl0000gpu.h */
#define RM_GET_ATTACHED_IDS	0x201
#define RM_GET_ID_INFO_V2	0x205
#define RM_GET_PROBED_IDS	0x214
#define RM_ATTACH_IDS		0x215
#define RM_GET_PCI_INFO		0x21b

struct rm_attached_ids {
	uint32_t ids[RM_MAX_GPUS];
};
_Static_assert(sizeof(struct rm_attached_ids) == 128, "GET_ATTACHED_IDS");

/* Older branches end before the flags. */
struct rm_probed_ids {
	uint32_t ids[RM_MAX_GPUS], excluded_ids[RM_MAX_GPUS], flags[RM_MAX_GPUS];
};
_Static_assert(sizeof(struct rm_probed_ids) == 384, "GET_PROBED_IDS");
_Static_assert(offsetof(struct rm_probed_ids, flags) == 256, "GET_PROBED_IDS without flags");

static const uint32_t probed_ids_sizes[] = {
	sizeof(struct rm_probed_ids),
	offsetof(struct rm_probed_ids, flags),
};

struct rm_attach_ids {
	uint32_t ids[RM_MAX_GPUS], failed_id;
};
_Static_assert(sizeof(struct rm_attach_ids) == 132, "ATTACH_IDS");

struct rm_id_info {
	uint32_t id, flags, device_instance, subdevice_instance;
	uint32_t sli_status, board_id, gpu_instance;
	int32_t numa_node;
};
_Static_assert(sizeof(struct rm_id_info) == 32, "GET_ID_INFO_V2");
_Static_assert(offsetof(struct rm_id_info, device_instance) == 8, "GET_ID_INFO_V2");

struct rm_pci_info {
	uint32_t id, domain;
	uint16_t bus, slot;
};
_Static_assert(sizeof(struct rm_pci_info) == 12, "GET_PCI_INFO");

/* Controls of a subdevice: ctrl/ctrl2080/ctrl2080gpu.h */
#define RM_GPU_GET_INFO		0x20800101
#define RM_GPU_GET_INFO_V2	0x20800102
#define RM_GPU_GET_NAME_STRING	0x20800110
#define RM_GPU_GET_GID_INFO	0x2080014a
#define RM_GPU_INFO_SMC_MODE	0x2a

/* NVXXXX_CTRL_XXX_INFO, ctrl/ctrlxxxx.h */
struct rm_info {
	uint32_t index, data;
};

struct rm_gpu_info_list {
	uint32_t nr, pad;
	uint64_t list;
};
_Static_assert(sizeof(struct rm_gpu_info_list) == 16, "GPU_GET_INFO");
_Static_assert(offsetof(struct rm_gpu_info_list, list) == 8, "GPU_GET_INFO");

/*
 * For a driver without the list form. NV2080_CTRL_GPU_INFO_MAX_LIST_SIZE has grown:
 * these are the values seen in published headers; tried until one is taken.
 */
struct rm_gpu_info_v2 {
	uint32_t nr;
	struct rm_info list[72];
};
static const uint8_t gpu_info_v2_places[] = { 72, 70, 65, 61 };
_Static_assert(sizeof(struct rm_gpu_info_v2) == 580, "GPU_GET_INFO_V2 of 72 places");
_Static_assert(offsetof(struct rm_gpu_info_v2, list) == 4, "GPU_GET_INFO_V2");

/* The text is a union with 64 UTF-16 units; flags 0 asks for ASCII. */
struct rm_name {
	uint32_t flags;
	char ascii[128];
};
_Static_assert(sizeof(struct rm_name) == 132, "GPU_GET_NAME_STRING");

/* Flags 0 ask for text. */
struct rm_gid {
	uint32_t index, flags, length;
	char data[256];
};
_Static_assert(sizeof(struct rm_gid) == 268, "GPU_GET_GID_INFO");

/* ctrl/ctrl2080/ctrl2080mc.h; the architecture comes shifted: 0x180 */
#define RM_MC_GET_ARCH_INFO	0x20801701

struct rm_arch {
	uint32_t architecture, implementation, revision;
	uint8_t sub_revision, pad[3];
};
_Static_assert(sizeof(struct rm_arch) == 16, "MC_GET_ARCH_INFO");

/* ctrl/ctrl2080/ctrl2080gr.h; a route of zeros is right without MIG. */
#define RM_GR_GET_INFO			0x20801201
#define RM_GR_GET_GLOBAL_SM_ORDER	0x2080121b
#define RM_GR_GET_GPC_MASK		0x2080122a
#define RM_GR_GET_TPC_MASK		0x2080122b
#define RM_GR_INFO_NUM_GPCS		0x14	/* LITTER: of the design */
#define RM_GR_INFO_NUM_TPC_PER_GPC	0x17	/* LITTER */
#define RM_GR_INFO_SM_PER_TPC		0x20

struct rm_gr_route {
	uint32_t flags, pad;
	uint64_t route;
};
_Static_assert(sizeof(struct rm_gr_route) == 16, "GR_ROUTE_INFO");

struct rm_gr_info_list {
	uint32_t nr, pad;
	uint64_t list;
	struct rm_gr_route route;
};
_Static_assert(sizeof(struct rm_gr_info_list) == 32, "GR_GET_INFO");
_Static_assert(offsetof(struct rm_gr_info_list, route) == 16, "GR_GET_INFO");

struct rm_gpc_mask {
	struct rm_gr_route route;
	uint32_t present_gpcs, pad;	/* physical */
};
_Static_assert(sizeof(struct rm_gpc_mask) == 24, "GR_GET_GPC_MASK");
_Static_assert(offsetof(struct rm_gpc_mask, present_gpcs) == 16, "GR_GET_GPC_MASK");

struct rm_tpc_mask {
	struct rm_gr_route route;
	uint32_t gpc_phys, present_tpcs; /* physical, both, as long as MIG is off */
};
_Static_assert(sizeof(struct rm_tpc_mask) == 24, "GR_GET_TPC_MASK");
_Static_assert(offsetof(struct rm_tpc_mask, present_tpcs) == 20, "GR_GET_TPC_MASK");

/* Words of an entry of GR_GET_GLOBAL_SM_ORDER, in the order they were added. */
enum {
	SM_GPC, SM_LOCAL_TPC, SM_LOCAL_SM, SM_TPC, SM_VGPC, SM_TPC_IN_VGPC,
	SM_UGPU,
	SM_CPC, SM_VIRTUAL_TPC,
};

#define SM_ORDER_MAX_SMS 512

#define SM_ORDER_STRUCT(words)						\
struct rm_sm_order_##words {						\
	uint16_t entry[SM_ORDER_MAX_SMS][words];			\
	uint16_t nr_sms, nr_tpcs;					\
	struct rm_gr_route route __attribute__((aligned(8)));		\
}
SM_ORDER_STRUCT(6);	/* 515 to 570 */
SM_ORDER_STRUCT(7);	/* 575 */
SM_ORDER_STRUCT(9);	/* 580 to 595 */
_Static_assert(sizeof(struct rm_sm_order_6) == 6168, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(offsetof(struct rm_sm_order_6, nr_sms) == 6144, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(offsetof(struct rm_sm_order_6, route) == 6152, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(sizeof(struct rm_sm_order_7) == 7192, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(offsetof(struct rm_sm_order_7, nr_sms) == 7168, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(offsetof(struct rm_sm_order_7, route) == 7176, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(sizeof(struct rm_sm_order_9) == 9240, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(offsetof(struct rm_sm_order_9, nr_sms) == 9216, "GR_GET_GLOBAL_SM_ORDER");
_Static_assert(offsetof(struct rm_sm_order_9, route) == 9224, "GR_GET_GLOBAL_SM_ORDER");

/*
 * Tried in this order: a driver takes the one size it was built with and refuses the
 * others, so its version need not be known.
 */
static const struct sm_order_form {
	uint32_t size;
	unsigned int nr_sms_at;	/* in 16-bit words; the number of TPCs comes next */
	unsigned int entry_words;
	bool has_ugpu, has_cpc_and_virtual;
} sm_order_forms[] = {
#define SM_ORDER_FORM(words, ...) {						\
	.size = sizeof(struct rm_sm_order_##words),				\
	.nr_sms_at = offsetof(struct rm_sm_order_##words, nr_sms) / 2,		\
	.entry_words = words, ##__VA_ARGS__ }
	SM_ORDER_FORM(9, .has_ugpu = true, .has_cpc_and_virtual = true),
	SM_ORDER_FORM(7, .has_ugpu = true),
	SM_ORDER_FORM(6),
};

#define NR_SM_ORDER_FORMS (sizeof(sm_order_forms) / sizeof(sm_order_forms[0]))

/* ctrl/ctrl2080/ctrl2080grmgr.h */
#define RM_GRMGR_GET_GR_FS_INFO		0x20803801
#define RM_FS_CHIPLET_GPC_MAP		2	/* logical GPC in, physical out */
#define RM_FS_MAX_QUERIES		96

struct rm_fs_query {
	uint16_t type, pad;
	uint32_t status;
	uint32_t gpc, gpc_phys, rest;
};
_Static_assert(sizeof(struct rm_fs_query) == 20, "GRMGR_GET_GR_FS_INFO query");
_Static_assert(offsetof(struct rm_fs_query, gpc) == 8, "GRMGR_GET_GR_FS_INFO query");

struct rm_fs_info {
	uint16_t nr, pad[3];
	struct rm_fs_query query[RM_FS_MAX_QUERIES];
};
_Static_assert(sizeof(struct rm_fs_info) == 1928, "GRMGR_GET_GR_FS_INFO");
_Static_assert(offsetof(struct rm_fs_info, query) == 8, "GRMGR_GET_GR_FS_INFO");

/* -------------------------------------------------------------- connection to RM */

struct rm_gpu {
	uint32_t device_instance, subdevice_instance;
	uint32_t domain, bus, slot;
};

struct rm_conn {
	struct gpupart *gp;
	const struct topo_rm_io *io;
	int ctl;
	uint32_t client, device, subdevice;	/* 0: none */
	unsigned int nr_nodes;
	int nodes[RM_MAX_GPUS];
	unsigned int nr_gpus;
	struct rm_gpu gpus[RM_MAX_GPUS];	/* by PCI address */
	char driver[32];
	/* The first thing that kept a GPU from being seen: for the sentence, if it matters. */
	int trouble_err;
	char trouble[224];
	/* The SM order: the answer, its form, and what it says. */
	uint16_t sm_order[sizeof(struct rm_sm_order_9) / 2];
	const struct sm_order_form *form;
	unsigned int nr_sms, nr_tpcs;
	struct topo_sm sms[SM_ORDER_MAX_SMS];
	struct rm_fs_info fs_info;
};

/* src/common/sdk/nvidia/inc/nvstatuscodes.h */
static const struct rm_status {
	int64_t status;
	int err;
	bool about_size;	/* what a wrong params_size gets; 580 says 0x1f */
	const char *name, *help;
} rm_statuses[] = {
	{ 0x1b, -EACCES, false, "insufficient permissions",
	  "this user or container must be let use the GPU's /dev/nvidiaN" },
	{ 0x1f, -EOPNOTSUPP, true, "invalid argument",
	  "a gpupart that knows this driver, or the source \"kernel\", would help" },
	{ 0x3a, -EOPNOTSUPP, true, "invalid parameter structure",
	  "a gpupart that knows this driver, or the source \"kernel\", would help" },
	{ 0x56, -EOPNOTSUPP, false, "not supported",
	  "the source \"kernel\" would help, or MIG off where it is on" },
};

/* For a status that is not in the table, and for a failed system call. */
static const struct rm_status rm_status_other = {
	.err = -EOPNOTSUPP,
	.help = "the kernel log may say more, and the source \"kernel\" may work",
};

static const struct rm_status *rm_status_find(int64_t status)
{
	size_t i;

	for (i = 0; i < sizeof(rm_statuses) / sizeof(rm_statuses[0]); i++)
		if (rm_statuses[i].status == status)
			return &rm_statuses[i];
	return &rm_status_other;
}

struct rm_text {
	char text[96];
};

static struct rm_text rm_status_text(int64_t status)
{
	const char *name = rm_status_find(status)->name;
	struct rm_text t;

	if (status < 0)
		snprintf(t.text, sizeof(t.text), "ioctl failed: %s", strerror((int)-status));
	else
		snprintf(t.text, sizeof(t.text), "status 0x%02llx%s%s", (unsigned long long)status,
			 name ? ", " : "", name ? name : "");
	return t;
}

__attribute__((format(printf, 3, 4)))
static void rm_trouble(struct rm_conn *s, int err, const char *fmt, ...)
{
	va_list ap;

	if (s->trouble_err)
		return;
	s->trouble_err = err;
	va_start(ap, fmt);
	vsnprintf(s->trouble, sizeof(s->trouble), fmt, ap);
	va_end(ap);
}

static const char *rm_driver(const struct rm_conn *s)
{
	return s->driver[0] ? s->driver : "of unknown version";
}

/* These return 0, RM's status (positive) or -errno where the ioctl itself failed. */
static int64_t rm_control(struct rm_conn *s, uint32_t object, uint32_t cmd,
			  void *params, uint32_t size)
{
	struct rm_control arg = {
		.client = s->client, .object = object, .cmd = cmd,
		.params = (uintptr_t)params, .params_size = size,
	};
	int err = s->io->ioctl(s->ctl, RM_IOCTL_CONTROL, &arg);

	return err ? err : (int64_t)arg.status;
}

/* RM chooses the handle. */
static int64_t rm_alloc(struct rm_conn *s, uint32_t parent, uint32_t class_id,
			void *params, uint32_t size, uint32_t *object)
{
	struct rm_alloc arg = {
		.client = s->client, .parent = parent, .class_id = class_id,
		.params = (uintptr_t)params, .params_size_or_status = size,
		.status = RM_ALLOC_UNTOUCHED,
	};
	int err = s->io->ioctl(s->ctl, RM_IOCTL_ALLOC, &arg);

	if (err)
		return err;
	if (arg.status == RM_ALLOC_UNTOUCHED)
		arg.status = arg.params_size_or_status;
	if (!arg.status && !arg.object)
		return -EPROTO;
	*object = arg.status ? 0 : arg.object;
	return arg.status;
}

static void rm_free(struct rm_conn *s, uint32_t parent, uint32_t *object)
{
	struct rm_free arg = { .client = s->client, .parent = parent, .object = *object };

	if (!*object)
		return;
	/* Closing the descriptor frees what this could not. */
	s->io->ioctl(s->ctl, RM_IOCTL_FREE, &arg);
	*object = 0;
}

static int rm_no_access(struct rm_conn *s, const char *path)
{
	int mode = s->io->mode(path);
	char now[24] = "";

	if (mode >= 0)
		snprintf(now, sizeof(now), " (mode 0%03o)", mode);
	return ctx_fail(s->gp, -EACCES, "%s%s may not be opened by this user: "
			"mode 0666, or membership in its group, would be right", path, now);
}

static int rm_open_ctl(struct rm_conn *s)
{
	static const char path[] = "/dev/nvidiactl";

	s->ctl = s->io->open(path);
	switch (s->ctl) {
	case -ENOENT:
		return ctx_fail(s->gp, -ENODEV, "no NVIDIA driver: %s is not there", path);
	case -EACCES:
	case -EPERM:
		return rm_no_access(s, path);
	}
	if (s->ctl < 0)
		return ctx_fail(s->gp, -ENODEV, "%s is there but does not open (%s): "
				"is the nvidia kernel module loaded?", path, strerror(-s->ctl));
	return 0;
}

/*
 * A GPU has a device instance only while its node is open somewhere. Minor numbers
 * may have holes: in a container only some nodes are there.
 */
static void rm_open_nodes(struct rm_conn *s)
{
	char path[32];
	unsigned int minor;
	int fd, mode;

	for (minor = 0; minor < RM_MAX_GPUS; minor++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
		fd = s->io->open(path);
		if (fd >= 0) {
			s->nodes[s->nr_nodes++] = fd;
		} else if (fd == -EACCES || fd == -EPERM) {
			mode = s->io->mode(path);
			rm_trouble(s, -EACCES, "%s (mode 0%03o) may not be opened by this user: "
				   "mode 0666, or membership in its group, would be right",
				   path, mode < 0 ? 0 : mode);
		} else if (fd != -ENOENT) {
			rm_trouble(s, -ENODEV, "%s does not open (%s)", path, strerror(-fd));
		}
	}
}

/*
 * "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue .." or ".. Open
 * Kernel Module for x86_64  580.159.04  ..": the first word made of digits and dots.
 */
static void rm_read_driver(struct rm_conn *s)
{
	static const char start[] = "NVRM version:";
	char text[512], *line, *word, *rest;

	if (s->io->read_text("/proc/driver/nvidia/version", text, sizeof(text)) < 0)
		return;
	line = strstr(text, start);
	if (!line)
		return;
	line += strlen(start);
	line[strcspn(line, "\n")] = '\0';
	for (word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
			snprintf(s->driver, sizeof(s->driver), "%s", word);
			return;
		}
	}
}

static int rm_gpu_compare(const void *left, const void *right)
{
	const struct rm_gpu *a = left, *b = right;

	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->bus != b->bus)
		return a->bus < b->bus ? -1 : 1;
	return (a->slot > b->slot) - (a->slot < b->slot);
}

/* Finds the GPUs: their ids, and for each the device instance and the PCI address. */
static int rm_find_gpus(struct rm_conn *s)
{
	struct rm_probed_ids probed;
	struct rm_attached_ids attached;
	struct rm_attach_ids attach;
	struct rm_id_info id_info;
	struct rm_pci_info pci_info;
	int64_t status = 0;
	size_t i;

	for (i = 0; i < sizeof(probed_ids_sizes) / sizeof(probed_ids_sizes[0]); i++) {
		memset(&probed, 0, sizeof(probed));
		status = rm_control(s, s->client, RM_GET_PROBED_IDS, &probed, probed_ids_sizes[i]);
		if (!status)
			break;
	}
	/* GPUs whose node is open are attached in any case, so these two may fail. */
	if (!status && probed.ids[0] != RM_INVALID_ID) {
		memcpy(attach.ids, probed.ids, sizeof(attach.ids));
		attach.failed_id = 0;
		status = rm_control(s, s->client, RM_ATTACH_IDS, &attach, sizeof(attach));
	}
	if (status)
		rm_trouble(s, -ENODEV, "RM controls 0x%x, 0x%x: %s", RM_GET_PROBED_IDS,
			   RM_ATTACH_IDS, rm_status_text(status).text);

	memset(&attached, 0, sizeof(attached));
	status = rm_control(s, s->client, RM_GET_ATTACHED_IDS, &attached, sizeof(attached));
	if (status)
		return ctx_fail(s->gp, rm_status_find(status)->err,
				"NVIDIA's driver %s does not list its GPUs "
				"(RM control 0x%x: %s): %s", rm_driver(s), RM_GET_ATTACHED_IDS,
				rm_status_text(status).text,
				rm_status_find(status)->help);
	for (i = 0; i < RM_MAX_GPUS && attached.ids[i] != RM_INVALID_ID; i++) {
		struct rm_gpu *gpu = &s->gpus[s->nr_gpus];

		id_info = (struct rm_id_info){ .id = attached.ids[i] };
		pci_info = (struct rm_pci_info){ .id = attached.ids[i] };
		status = rm_control(s, s->client, RM_GET_ID_INFO_V2, &id_info, sizeof(id_info));
		if (!status)
			status = rm_control(s, s->client, RM_GET_PCI_INFO, &pci_info,
					    sizeof(pci_info));
		if (status) {
			rm_trouble(s, rm_status_find(status)->err,
				   "GPU id 0x%x has no PCI address or instance (%s)",
				   attached.ids[i], rm_status_text(status).text);
			continue;
		}
		gpu->device_instance = id_info.device_instance;
		gpu->subdevice_instance = id_info.subdevice_instance;
		gpu->domain = pci_info.domain;
		gpu->bus = pci_info.bus;
		gpu->slot = pci_info.slot;
		s->nr_gpus++;
	}
	qsort(s->gpus, s->nr_gpus, sizeof(s->gpus[0]), rm_gpu_compare);
	return 0;
}

static void rm_gpu_put(struct rm_conn *s)
{
	rm_free(s, s->device, &s->subdevice);
	rm_free(s, s->client, &s->device);
}

static void rm_conn_close(struct rm_conn *s)
{
	rm_gpu_put(s);
	rm_free(s, 0, &s->client);
	while (s->nr_nodes)
		s->io->close(s->nodes[--s->nr_nodes]);
	if (s->ctl >= 0)
		s->io->close(s->ctl);
	free(s);
}

static int rm_conn_open(struct gpupart *gp, struct rm_conn **conn)
{
	struct rm_conn *s = calloc(1, sizeof(*s));
	int64_t status;
	int err;

	if (!s)
		return ctx_fail(gp, -ENOMEM, "no memory to ask NVIDIA's driver");
	s->gp = gp;
	s->io = topo_rm_io;
	err = rm_open_ctl(s);
	if (err)
		goto close;
	rm_read_driver(s);
	rm_open_nodes(s);
	status = rm_alloc(s, 0, RM_CLASS_CLIENT, NULL, 0, &s->client);
	if (status) {
		err = ctx_fail(gp, rm_status_find(status)->err,
			       "NVIDIA's driver %s lets no client in (RM class 0x%x: %s): %s",
			       rm_driver(s), RM_CLASS_CLIENT, rm_status_text(status).text,
			       rm_status_find(status)->help);
		goto close;
	}
	err = rm_find_gpus(s);
	if (err)
		goto close;
	*conn = s;
	return 0;
close:
	rm_conn_close(s);
	return err;
}

/* ---------------------------------------------------------------- what a GPU says */

/* "GPU-" and 8-4-4-4-12 hexadecimal digits, and nothing after. */
static bool is_uuid(const char *text)
{
	static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	for (i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'x' ? !text[i] || !strchr("0123456789abcdefABCDEF", text[i])
				   : text[i] != form[i])
			return false;
	return !text[i];
}

/* The value of a "Key:   value" line, or "". */
static void text_value(const char *text, const char *key, char *value, size_t len)
{
	const char *at = strstr(text, key);
	size_t n;

	value[0] = '\0';
	if (!at || (at != text && at[-1] != '\n'))
		return;
	at += strlen(key);
	at += strspn(at, " \t");
	n = strcspn(at, "\n");
	if (n < len)
		snprintf(value, len, "%.*s", (int)n, at);
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Address, UUID and name. RM is asked first; its text file under /proc knows too. */
static void rm_gpu_identify(struct rm_conn *s, const struct rm_gpu *gpu,
			    struct gpupart_gpu_info *info)
{
	struct rm_name name = { 0 };
	struct rm_gid gid = { 0 };
	char path[80], text[1024];

	memset(info, 0, sizeof(*info));
	info->mig = -1;
	snprintf(info->source, sizeof(info->source), "rm");
	snprintf(info->driver, sizeof(info->driver), "%s", s->driver);
	snprintf(info->pci, sizeof(info->pci), "%04x:%02x:%02x.0", gpu->domain, gpu->bus & 0xff,
		 gpu->slot & 0x1f);

	if (!rm_control(s, s->subdevice, RM_GPU_GET_GID_INFO, &gid, sizeof(gid))) {
		gid.data[sizeof(gid.data) - 1] = '\0';
		if (is_uuid(gid.data))
			memcpy(info->uuid, gid.data, strlen(gid.data) + 1);
	}
	if (!rm_control(s, s->subdevice, RM_GPU_GET_NAME_STRING, &name, sizeof(name))) {
		name.ascii[sizeof(info->name) - 1] = '\0';
		if (is_printable(name.ascii))
			memcpy(info->name, name.ascii, strlen(name.ascii) + 1);
	}
	if (info->uuid[0] && info->name[0])
		return;
	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", info->pci);
	if (s->io->read_text(path, text, sizeof(text)) < 0)
		return;
	if (!info->name[0])
		text_value(text, "Model:", info->name, sizeof(info->name));
	if (!info->uuid[0]) {
		text_value(text, "GPU UUID:", info->uuid, sizeof(info->uuid));
		if (!is_uuid(info->uuid))
			info->uuid[0] = '\0';
	}
}

/* Makes the GPU's objects and fills in who it is; a GPU that refuses is noted as trouble. */
static bool rm_gpu_get(struct rm_conn *s, const struct rm_gpu *gpu,
		       struct gpupart_gpu_info *info)
{
	struct rm_device_params device = { .device_instance = gpu->device_instance };
	struct rm_subdevice_params subdevice = { .subdevice_instance = gpu->subdevice_instance };
	int64_t status;

	status = rm_alloc(s, s->client, RM_CLASS_DEVICE, &device, sizeof(device), &s->device);
	if (!status)
		status = rm_alloc(s, s->device, RM_CLASS_SUBDEVICE, &subdevice, sizeof(subdevice),
				  &s->subdevice);
	if (status) {
		rm_gpu_put(s);
		rm_trouble(s, rm_status_find(status)->err,
			   "GPU %04x:%02x:%02x.0 does not open (%s): %s", gpu->domain,
			   gpu->bus & 0xff, gpu->slot & 0x1f, rm_status_text(status).text,
			   rm_status_find(status)->help);
		return false;
	}
	rm_gpu_identify(s, gpu, info);
	return true;
}

/* NV2080_CTRL_GPU_INFO_GPU_SMC_MODE_*: a pending change has not happened yet. */
static int rm_mig_state(uint32_t smc_mode)
{
	static const int state[] = { [0] = 0, [1] = 1, [2] = 0, [3] = 0, [4] = 1 };

	return smc_mode < sizeof(state) / sizeof(state[0]) ? state[smc_mode] : -1;
}

static int rm_ask_mig(struct rm_conn *s)
{
	struct rm_info mode = { .index = RM_GPU_INFO_SMC_MODE, .data = ~0u };
	struct rm_gpu_info_list list = { .nr = 1, .list = (uintptr_t)&mode };
	struct rm_gpu_info_v2 v2;
	size_t i, size;

	if (!rm_control(s, s->subdevice, RM_GPU_GET_INFO, &list, sizeof(list)))
		return rm_mig_state(mode.data);
	for (i = 0; i < sizeof(gpu_info_v2_places); i++) {
		v2 = (struct rm_gpu_info_v2){ .nr = 1, .list[0] = mode };
		size = offsetof(struct rm_gpu_info_v2, list) +
		       gpu_info_v2_places[i] * sizeof(v2.list[0]);
		if (!rm_control(s, s->subdevice, RM_GPU_GET_INFO_V2, &v2, size))
			return rm_mig_state(v2.list[0].data);
	}
	return -1;
}

static uint32_t rm_ask_chip_id(struct rm_conn *s)
{
	struct rm_arch arch = { 0 };

	if (rm_control(s, s->subdevice, RM_MC_GET_ARCH_INFO, &arch, sizeof(arch)))
		return 0;
	/* BOOT_42 has six bits of architecture above four of implementation. */
	if (arch.architecture & ~0x3f0u || arch.implementation & ~0xfu)
		return 0;
	return arch.architecture | arch.implementation;
}

/* What the chip was designed with; one index that RM refuses fails a whole list. */
static unsigned int rm_ask_design(struct rm_conn *s, struct gpupart_gpu_info *info)
{
	struct rm_info want[] = {
		{ .index = RM_GR_INFO_NUM_GPCS },
		{ .index = RM_GR_INFO_NUM_TPC_PER_GPC },
		{ .index = RM_GR_INFO_SM_PER_TPC },
	};
	const size_t nr = sizeof(want) / sizeof(want[0]);
	struct rm_gr_info_list list = { .nr = nr, .list = (uintptr_t)want };
	size_t i;

	if (rm_control(s, s->subdevice, RM_GR_GET_INFO, &list, sizeof(list))) {
		for (i = 0; i < nr; i++) {
			list = (struct rm_gr_info_list){ .nr = 1, .list = (uintptr_t)&want[i] };
			if (rm_control(s, s->subdevice, RM_GR_GET_INFO, &list, sizeof(list)))
				want[i].data = 0;
		}
	}
	if (want[0].data <= GPUPART_MAX_GPCS)
		info->max_gpcs = want[0].data;
	if (want[1].data <= GPUPART_MAX_TPCS)
		info->max_tpcs_per_gpc = want[1].data;
	return want[2].data <= GPUPART_MAX_SMS_PER_TPC ? want[2].data : 0;
}

static int sm_index(uint16_t word)
{
	return word == 0xffff ? -1 : word;
}

/* RM's illegal virtual ids fit a byte: 0xff (ctrl2080gr.h). Global TPC 255 is legal. */
static int sm_virtual_index(uint16_t word)
{
	return word == 0xff ? -1 : sm_index(word);
}

static void sm_decode(const struct sm_order_form *form, const uint16_t *entry, struct topo_sm *sm)
{
	sm->gpc = sm_index(entry[SM_GPC]);
	sm->local_tpc = sm_index(entry[SM_LOCAL_TPC]);
	sm->local_sm = sm_index(entry[SM_LOCAL_SM]);
	sm->tpc = sm_index(entry[SM_TPC]);
	sm->vgpc = sm_virtual_index(entry[SM_VGPC]);
	/* Counts within the virtual GPC: nothing without one. */
	sm->tpc_in_vgpc = sm->vgpc < 0 ? -1 : sm_virtual_index(entry[SM_TPC_IN_VGPC]);
	sm->ugpu = form->has_ugpu ? sm_virtual_index(entry[SM_UGPU]) : -1;
	sm->cpc = form->has_cpc_and_virtual ? sm_virtual_index(entry[SM_CPC]) : -1;
	sm->virtual_tpc = form->has_cpc_and_virtual ? sm_virtual_index(entry[SM_VIRTUAL_TPC]) : -1;
	sm->measured_bit = -1;
}

/*
 * Zeros everywhere are the driver's way not to tell of virtual GPCs: two TPCs are
 * never the same TPC of the same virtual GPC.
 */
static void sm_order_drop_untold(struct topo_sm *sms, unsigned int nr_sms)
{
	bool two_tpcs = false;
	unsigned int sm;

	for (sm = 0; sm < nr_sms; sm++) {
		if (sms[sm].vgpc || sms[sm].tpc_in_vgpc)
			return;
		two_tpcs |= sms[sm].tpc != sms[0].tpc;
	}
	for (sm = 0; two_tpcs && sm < nr_sms; sm++)
		sms[sm].vgpc = sms[sm].tpc_in_vgpc = -1;
}

static int rm_sm_order_refused(struct rm_conn *s, const struct gpupart_gpu_info *info,
			       int64_t status)
{
	char sizes[64] = "";
	size_t i, len = 0;

	for (i = 0; i < NR_SM_ORDER_FORMS; i++)
		len += snprintf(sizes + len, sizeof(sizes) - len, "%s%u", i ? ", " : "",
				sm_order_forms[i].size);
	return ctx_fail(s->gp, rm_status_find(status)->err,
			"GPU %s: driver %s refuses RM control 0x%x, the SM order, in every "
			"known form (%s bytes; %s)%s: %s", info->pci, rm_driver(s),
			RM_GR_GET_GLOBAL_SM_ORDER, sizes, rm_status_text(status).text,
			info->mig > 0 ? " while MIG is on" : "", rm_status_find(status)->help);
}

static int rm_ask_sm_order(struct rm_conn *s, const struct gpupart_gpu_info *info)
{
	const struct sm_order_form *form;
	int64_t status, worst = 0;
	unsigned int sm;
	size_t i;

	for (i = 0; i < NR_SM_ORDER_FORMS; i++) {
		form = &sm_order_forms[i];
		memset(s->sm_order, 0, form->size);
		status = rm_control(s, s->subdevice, RM_GR_GET_GLOBAL_SM_ORDER, s->sm_order,
				    form->size);
		if (!status)
			break;
		/* Only one size is right: what it was refused for is worth telling. */
		if (!worst || rm_status_find(worst)->about_size)
			worst = status;
	}
	if (i == NR_SM_ORDER_FORMS)
		return rm_sm_order_refused(s, info, worst);

	s->form = form;
	s->nr_sms = s->sm_order[form->nr_sms_at];
	s->nr_tpcs = s->sm_order[form->nr_sms_at + 1];
	if (!s->nr_sms || s->nr_sms > SM_ORDER_MAX_SMS)
		return ctx_fail(s->gp, -EOPNOTSUPP,
				"GPU %s: driver %s tells of %u SMs (RM control 0x%x, %u-byte "
				"form): 1 to %u can be", info->pci, rm_driver(s), s->nr_sms,
				RM_GR_GET_GLOBAL_SM_ORDER, form->size, SM_ORDER_MAX_SMS);
	for (sm = 0; sm < s->nr_sms; sm++)
		sm_decode(form, &s->sm_order[sm * form->entry_words], &s->sms[sm]);
	sm_order_drop_untold(s->sms, s->nr_sms);
	return 0;
}

/*
 * Which physical GPC each logical one is, into gpc_of[] by physical id (-1 unknown).
 * An answer that contradicts itself or @present is as good as none: false.
 */
static bool rm_ask_gpc_ids(struct rm_conn *s, unsigned int nr_gpcs, uint32_t present,
			   int gpc_of[GPUPART_MAX_GPCS])
{
	struct rm_fs_query *query = s->fs_info.query;
	unsigned int gpc, phys, found = 0;

	if (!nr_gpcs)
		return false;
	memset(&s->fs_info, 0, sizeof(s->fs_info));
	s->fs_info.nr = nr_gpcs;
	for (gpc = 0; gpc < nr_gpcs; gpc++) {
		query[gpc].type = RM_FS_CHIPLET_GPC_MAP;
		query[gpc].gpc = gpc;
	}
	if (rm_control(s, s->subdevice, RM_GRMGR_GET_GR_FS_INFO, &s->fs_info, sizeof(s->fs_info)))
		return false;
	for (gpc = 0; gpc < nr_gpcs; gpc++) {
		if (query[gpc].status)
			continue;
		phys = query[gpc].gpc_phys;
		if (phys >= GPUPART_MAX_GPCS || (present && !(present >> phys & 1)) ||
		    gpc_of[phys] >= 0)
			goto contradiction;
		gpc_of[phys] = gpc;
		found++;
	}
	return found;

contradiction:
	for (phys = 0; phys < GPUPART_MAX_GPCS; phys++)
		gpc_of[phys] = -1;
	return false;
}

/* What is known of physical GPCs, in their order; rows, and in @text whence. */
static unsigned int rm_ask_gpc_map(struct rm_conn *s, struct topo_gpc map[GPUPART_MAX_GPCS],
				   char *text, size_t len)
{
	struct rm_gpc_mask gpcs = { 0 };
	int gpc_of[GPUPART_MAX_GPCS];
	unsigned int nr_gpcs = 0, nr = 0, phys, sm;
	bool has_ids, has_masks = false;

	for (phys = 0; phys < GPUPART_MAX_GPCS; phys++)
		gpc_of[phys] = -1;
	for (sm = 0; sm < s->nr_sms; sm++)
		if (s->sms[sm].gpc >= (int)nr_gpcs && s->sms[sm].gpc < GPUPART_MAX_GPCS)
			nr_gpcs = s->sms[sm].gpc + 1;

	if (rm_control(s, s->subdevice, RM_GR_GET_GPC_MASK, &gpcs, sizeof(gpcs)))
		gpcs.present_gpcs = 0;
	has_ids = rm_ask_gpc_ids(s, nr_gpcs, gpcs.present_gpcs, gpc_of);
	for (phys = 0; phys < GPUPART_MAX_GPCS; phys++) {
		struct rm_tpc_mask tpcs = { .gpc_phys = phys };

		if (!(gpcs.present_gpcs >> phys & 1) && gpc_of[phys] < 0)
			continue;
		if (!(gpcs.present_gpcs >> phys & 1) ||
		    rm_control(s, s->subdevice, RM_GR_GET_TPC_MASK, &tpcs, sizeof(tpcs)))
			tpcs.present_tpcs = 0;
		has_masks |= tpcs.present_tpcs != 0;
		map[nr++] = (struct topo_gpc){
			.gpc = gpc_of[phys], .gpc_phys = phys, .present_tpcs = tpcs.present_tpcs,
		};
	}
	text[0] = '\0';
	if (has_masks)
		snprintf(text, len, "RM controls 0x%x, 0x%x", RM_GR_GET_GPC_MASK,
			 RM_GR_GET_TPC_MASK);
	else if (gpcs.present_gpcs)
		snprintf(text, len, "RM control 0x%x", RM_GR_GET_GPC_MASK);
	if (has_ids)
		snprintf(text + strlen(text), len - strlen(text),
			 "%slogical ids by RM control 0x%x, query %u", text[0] ? "; " : "",
			 RM_GRMGR_GET_GR_FS_INFO, RM_FS_CHIPLET_GPC_MAP);
	return nr;
}

static int rm_gpu_topology(struct rm_conn *s, struct gpupart_gpu_info *info,
			   struct gpupart_topology **topo)
{
	struct topo_gpc map[GPUPART_MAX_GPCS];
	char text_gpc_map[sizeof((*topo)->text_gpc_map)];
	unsigned int nr_map, sms_per_tpc;
	struct gpupart_topology *t;
	int err;

	info->chip_id = rm_ask_chip_id(s);
	info->mig = rm_ask_mig(s);
	sms_per_tpc = rm_ask_design(s, info);
	err = rm_ask_sm_order(s, info);
	if (err)
		return err;
	nr_map = rm_ask_gpc_map(s, map, text_gpc_map, sizeof(text_gpc_map));

	err = topo_build(s->gp, info, s->sms, s->nr_sms, map, nr_map, &t);
	if (err == -EINVAL)
		return ctx_fail_because(s->gp, -EOPNOTSUPP,
					"GPU %s: what driver %s tells of its SMs cannot be "
					"(RM control 0x%x, %u-byte form)", info->pci, rm_driver(s),
					RM_GR_GET_GLOBAL_SM_ORDER, s->form->size);
	if (err)
		return err;
	if (t->nr_tpcs != s->nr_tpcs || (sms_per_tpc && t->nr_sms > t->nr_tpcs * sms_per_tpc)) {
		err = ctx_fail(s->gp, -EOPNOTSUPP,
			       "GPU %s: driver %s counts %u TPCs of %u SMs (0: not told), its SM "
			       "order has %u TPCs with %u SMs", info->pci, rm_driver(s), s->nr_tpcs,
			       sms_per_tpc, t->nr_tpcs, t->nr_sms);
		gpupart_topology_close(t);
		return err;
	}
	snprintf(t->text_rm, sizeof(t->text_rm), "RM control 0x%x, %u-byte form",
		 RM_GR_GET_GLOBAL_SM_ORDER, s->form->size);
	snprintf(t->text_gpc_map, sizeof(t->text_gpc_map), "%s", text_gpc_map);
	*topo = t;
	return 0;
}

/* ---------------------------------------------------------------------- the source */

/* The sentence for "not one GPU can be used"; @there are those that could, in words. */
static int rm_no_gpu(struct rm_conn *s, const char *gpu, const char *there)
{
	const char *colon = s->trouble_err ? "; " : "";

	if (!there[0])
		return ctx_fail(s->gp, s->trouble_err ? s->trouble_err : -ENODEV,
				"NVIDIA's driver %s shows no GPU%s%s", rm_driver(s), colon,
				s->trouble);
	return ctx_fail(s->gp, -ENODEV, "GPU \"%s\" is not there: NVIDIA's driver shows %s%s%s",
			gpu, there, colon, s->trouble);
}

int topo_rm_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo)
{
	struct gpupart_gpu_info info;
	struct rm_conn *s;
	unsigned int i, index = 0;
	char there[384] = "";
	size_t len;
	int err;

	err = rm_conn_open(gp, &s);
	if (err)
		return err;
	for (i = 0; i < s->nr_gpus; i++) {
		if (!rm_gpu_get(s, &s->gpus[i], &info))
			continue;
		if (!gpu || topo_selects(gpu, &info, index)) {
			err = rm_gpu_topology(s, &info, topo);
			goto close;
		}
		rm_gpu_put(s);
		len = strlen(there);
		snprintf(there + len, sizeof(there) - len, "%s%u (%s, %s)", index ? ", " : "",
			 index, info.pci, info.name[0] ? info.name : "no name");
		index++;
	}
	err = rm_no_gpu(s, gpu, there);
close:
	rm_conn_close(s);
	return err;
}

int topo_rm_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max)
{
	struct gpupart_gpu_info info;
	struct rm_conn *s;
	unsigned int i, nr = 0;
	int err;

	err = rm_conn_open(gp, &s);
	if (err)
		return err;
	for (i = 0; i < s->nr_gpus; i++) {
		if (!rm_gpu_get(s, &s->gpus[i], &info))
			continue;
		info.chip_id = rm_ask_chip_id(s);
		info.mig = rm_ask_mig(s);
		rm_ask_design(s, &info);
		rm_gpu_put(s);
		if (nr < max)
			list[nr] = info;
		nr++;
	}
	/* None that may be used is an answer only where nothing stood in the way. */
	err = nr || !s->trouble_err ? (int)nr : rm_no_gpu(s, NULL, "");
	rm_conn_close(s);
	return err;
}
