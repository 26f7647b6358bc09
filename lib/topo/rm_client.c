// SPDX-License-Identifier: MIT
/*
 * Queries NVIDIA's resource manager (RM) by ioctls on /dev/nvidiactl. The caller can be an ordinary
 * user.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/topo/rm_client.h"

/* Returns a descriptor or -errno. */
static int open_node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Returns 0 or -errno. NVIDIA's driver stores its status in the argument struct. */
static int rm_ioctl(const struct rm_conn *s, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(s->ctl, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

size_t rm_read_text(const char *path, char *text, size_t len)
{
	FILE *file = fopen(path, "re");
	size_t nr = file ? fread(text, 1, len - 1, file) : 0;

	text[nr] = 0;
	if (file)
		fclose(file);
	return nr;
}

/* Returns the permission bits of a file, or -errno. */
static int mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -errno : (int)(st.st_mode & 07777);
}

/* src/common/sdk/nvidia/inc/nvstatuscodes.h */
static const struct rm_status rm_statuses[] = {
	{ 0x1b, -EACCES, false, "insufficient permissions",
	  "allow this user or container to use the GPU's /dev/nvidiaN" },
	{ 0x1f, -EOPNOTSUPP, true, "invalid argument",
	  "a gpupart that knows this driver, or the source \"kernel\", would help" },
	{ 0x3a, -EOPNOTSUPP, true, "invalid parameter structure",
	  "a gpupart that knows this driver, or the source \"kernel\", would help" },
	{ 0x56, -EOPNOTSUPP, false, "not supported",
	  "the source \"kernel\" would help, or MIG off where it is on" },
};

/* This entry is used for failed system calls and for each status that is not in the table. */
static const struct rm_status rm_status_other = {
	.err = -EOPNOTSUPP,
	.help = "the kernel log may say more, and the source \"kernel\" may work",
};

const struct rm_status *rm_status_find(int64_t status)
{
	size_t i;

	for (i = 0; i < sizeof(rm_statuses) / sizeof(rm_statuses[0]); i++)
		if (rm_statuses[i].status == status)
			return &rm_statuses[i];
	return &rm_status_other;
}

struct rm_text rm_status_text(int64_t status)
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

void rm_trouble(struct rm_conn *s, int err, const char *fmt, ...)
{
	va_list ap;

	if (s->trouble_err)
		return;
	s->trouble_err = err;
	va_start(ap, fmt);
	vsnprintf(s->trouble, sizeof(s->trouble), fmt, ap);
	va_end(ap);
}

const char *rm_driver(const struct rm_conn *s)
{
	return s->driver[0] ? s->driver : "of unknown version";
}

int64_t rm_control(struct rm_conn *s, uint32_t object, uint32_t cmd, void *params, uint32_t size)
{
	struct rm_control arg = {
		.client = s->client, .object = object, .cmd = cmd,
		.params = (uintptr_t)params, .params_size = size,
	};
	int err = rm_ioctl(s, RM_IOCTL_CONTROL, &arg);

	return err ? err : (int64_t)arg.status;
}

int64_t rm_alloc(struct rm_conn *s, uint32_t parent, uint32_t class_id, void *params,
		 uint32_t size, uint32_t *object)
{
	struct rm_alloc arg = {
		.client = s->client, .parent = parent, .class_id = class_id,
		.params = (uintptr_t)params, .params_size_or_status = size,
		.status = RM_ALLOC_UNTOUCHED,
	};
	int err = rm_ioctl(s, RM_IOCTL_ALLOC, &arg);

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
	/* If an object could not be freed here, closing the descriptor frees it. */
	rm_ioctl(s, RM_IOCTL_FREE, &arg);
	*object = 0;
}

#define NOT_OPENED \
	"cannot be opened by this user: it needs mode 0666, or membership in its group"

static int rm_no_access(struct rm_conn *s, const char *path)
{
	int mode = mode_of(path);
	char now[24] = "";

	if (mode >= 0)
		snprintf(now, sizeof(now), " (mode 0%03o)", mode);
	return ctx_fail(s->gp, -EACCES, "%s%s %s", path, now, NOT_OPENED);
}

static int rm_open_ctl(struct rm_conn *s)
{
	static const char path[] = "/dev/nvidiactl";

	s->ctl = open_node(path);
	switch (s->ctl) {
	case -ENOENT:
		return ctx_fail(s->gp, -ENODEV, "there is no NVIDIA driver: %s does not exist",
				path);
	case -EACCES:
	case -EPERM:
		return rm_no_access(s, path);
	}
	if (s->ctl < 0)
		return ctx_fail(s->gp, -ENODEV,
				"%s cannot be opened (%s): is the nvidia kernel module loaded?",
				path, strerror(-s->ctl));
	return 0;
}

/*
 * A GPU has a device instance only while some process has the GPU's device node open. A
 * container may have only some of the nodes, so there may be gaps in the minor numbers.
 */
static void rm_open_nodes(struct rm_conn *s)
{
	char path[32];
	unsigned int minor;
	int fd, mode;

	for (minor = 0; minor < RM_MAX_GPUS; minor++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
		fd = open_node(path);
		if (fd >= 0) {
			s->nodes[s->nr_nodes++] = fd;
		} else if (fd == -EACCES || fd == -EPERM) {
			mode = mode_of(path);
			rm_trouble(s, -EACCES,
				   "%s (mode 0%03o) %s", path, mode < 0 ? 0 : mode, NOT_OPENED);
		} else if (fd != -ENOENT) {
			rm_trouble(s, -ENODEV, "%s cannot be opened (%s)", path, strerror(-fd));
		}
	}
}

/*
 * Finds the first word of digits and dots in the text "NVRM version: NVIDIA UNIX x86_64 Kernel
 * Module 535.54.03  Tue .." or ".. Open Kernel Module for x86_64  580.159.04  ..".
 */
static void rm_read_driver(struct rm_conn *s)
{
	static const char start[] = "NVRM version:";
	char text[512], *line, *word, *rest;

	if (!rm_read_text("/proc/driver/nvidia/version", text, sizeof(text)))
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

/* Finds the ids of the GPUs, and the device instance and the PCI address of each GPU. */
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
	/*
	 * A failure of these two calls is not an error. While the device node of a GPU is open, the
	 * GPU is attached anyway.
	 */
	if (!status && probed.ids[0] != RM_INVALID_ID) {
		memcpy(attach.ids, probed.ids, sizeof(attach.ids));
		attach.failed_id = 0;
		status = rm_control(s, s->client, RM_ATTACH_IDS, &attach, sizeof(attach));
	}
	if (status)
		rm_trouble(s, -ENODEV, "RM controls 0x%x and 0x%x failed: %s", RM_GET_PROBED_IDS,
			   RM_ATTACH_IDS, rm_status_text(status).text);

	memset(&attached, 0, sizeof(attached));
	status = rm_control(s, s->client, RM_GET_ATTACHED_IDS, &attached, sizeof(attached));
	if (status)
		return ctx_fail(s->gp, rm_status_find(status)->err,
				"NVIDIA's driver %s does not list its GPUs (RM control 0x%x: %s): %s",
				rm_driver(s), RM_GET_ATTACHED_IDS,
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
				   "NVIDIA's driver does not report the PCI address and instance of GPU id 0x%x (%s)",
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

void rm_gpu_put(struct rm_conn *s)
{
	rm_free(s, s->device, &s->subdevice);
	rm_free(s, s->client, &s->device);
}

void rm_conn_close(struct rm_conn *s)
{
	rm_gpu_put(s);
	rm_free(s, 0, &s->client);
	while (s->nr_nodes)
		close(s->nodes[--s->nr_nodes]);
	if (s->ctl >= 0)
		close(s->ctl);
	free(s);
}

int rm_conn_open(struct gpupart *gp, struct rm_conn **conn)
{
	struct rm_conn *s = calloc(1, sizeof(*s));
	int64_t status;
	int err;

	if (!s)
		return ctx_fail(gp, -ENOMEM, "out of memory for a request to NVIDIA's driver");
	s->gp = gp;
	err = rm_open_ctl(s);
	if (err)
		goto close;
	rm_read_driver(s);
	rm_open_nodes(s);
	status = rm_alloc(s, 0, RM_CLASS_CLIENT, NULL, 0, &s->client);
	if (status) {
		err = ctx_fail(gp, rm_status_find(status)->err,
			       "NVIDIA's driver %s refuses clients (RM class 0x%x: %s): %s",
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
