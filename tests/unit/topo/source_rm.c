// SPDX-License-Identifier: MIT
/*
 * Tests the source "rm" with a scripted driver. The driver answers with the numbers of a captured
 * board, and tracks all open descriptors and objects. In two cases, a call counts as a fault: a
 * real driver would refuse the call, or the script requires a different call at this point. The
 * byte offsets of the driver are independent of lib/topo/source_rm.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/topo/rm_client.h"
#include "lib/topo/topology.h"
#include "tests/tap.h"

#define DATA "tests/data/rm/gh100-h200-e."
#define MAX_GPUS 8
#define MAX_FDS 48
#define MAX_OBJECTS 16

/* ------------------------------------------------------------- the captured board */

/* The columns of the file are the words of RM's structure, in the same order. */
static struct board {
	unsigned int nr_sms, nr_tpcs;
	int word[256][9];
	uint32_t present_gpcs, present_tpcs[32];
	int phys_of[32];
	unsigned int nr_gpcs;
} board;

static void board_load(void)
{
	char line[512];
	FILE *f = fopen(DATA "sm-order.tsv", "r");
	int sm, phys, gpc, *w;
	unsigned int mask;

	while (f && fgets(line, sizeof(line), f)) {
		w = board.word[board.nr_sms];
		if (sscanf(line, "%d %d %d %d %d %d %d %d %d %d", &sm, &w[0], &w[1], &w[2], &w[3],
			   &w[4], &w[5], &w[6], &w[7], &w[8]) != 10)
			continue;
		board.nr_sms++;
		if (w[3] >= (int)board.nr_tpcs)
			board.nr_tpcs = w[3] + 1;
	}
	if (f)
		fclose(f);
	f = fopen(DATA "tpc-masks.tsv", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%d %x %d", &phys, &mask, &gpc) != 3)
			continue;
		board.present_gpcs |= 1u << phys;
		board.present_tpcs[phys] = mask;
		board.phys_of[gpc] = phys;
		board.nr_gpcs++;
	}
	if (f)
		fclose(f);
}

/* ----------------------------------------------------------------- the fake driver */

struct fake_gpu {
	uint32_t id, instance, domain;
	unsigned int minor, bus, slot;
	const char *uuid, *name;
	uint32_t alloc_status;		/* status of the allocation of the GPU's device */
};

struct fake_object {
	uint32_t handle, parent, class_id;
	int gpu;
};

static struct fake {
	/* The properties of the machine. Each test sets them. */
	unsigned int nr_gpus;
	struct fake_gpu gpus[MAX_GPUS];
	uint32_t order_size, probed_size, gpu_info_size, wrong_size_status;
	/* NVOS21 since branch 535: the size is at 24, and the status is at 28 */
	bool alloc_has_size;
	uint32_t smc_mode;
	bool no_list_form;		/* GPU_GET_INFO does not exist */
	const uint32_t *classes;	/* of a device, terminated by 0 */
	const char *version;		/* /proc/driver/nvidia/version; NULL: no such file */
	const char *information;	/* .../information of every GPU; NULL: no such file */
	const char *open_path;		/* an open of this path fails with open_err */
	int open_err;
	uint32_t refuse_cmd;		/* this control returns refuse_status */
	int64_t refuse_status;
	uint32_t spoil_cmd;		/* spoil() changes the answer of this control */
	void (*spoil)(uint8_t *params);
	/* the call with this number fails, from 0; -1: no call fails */
	int fail_ioctl, fail_open;
	/* the result of this call: a status, or -errno of the ioctl */
	int64_t fail_status;
	/* the required calls, in order; NULL: all known calls are allowed */
	const char *const *script;

	/* Recorded events. */
	unsigned int nr_ioctls, nr_opens, nr_attaches, nr_faults;
	bool free_failed;
	char failed_at[64];
	char fds[MAX_FDS][32];		/* path of each open descriptor */
	struct fake_object objects[MAX_OBJECTS];
	uint32_t next_handle;
} fake;

__attribute__((format(printf, 1, 2)))
static void fault(const char *fmt, ...)
{
	va_list ap;

	fake.nr_faults++;
	va_start(ap, fmt);
	printf("# driver: ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

/*
 * All events call this function. If the script requires a different event at this point, returns
 * false.
 */
__attribute__((format(printf, 1, 2)))
static bool event(const char *fmt, ...)
{
	char text[96];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(fake.failed_at, sizeof(fake.failed_at), "%.63s", text);
	if (!fake.script)
		return true;
	if (!*fake.script) {
		fault("\"%s\" after the script's end", text);
		return false;
	}
	if (strcmp(*fake.script, text)) {
		fault("\"%s\" where the script has \"%s\"", text, *fake.script);
		return false;
	}
	fake.script++;
	return true;
}

static uint32_t get32(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, 4);
	return v;
}

static uint64_t get64(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, 8);
	return v;
}

static void put16(uint8_t *p, size_t at, unsigned int value)
{
	uint16_t v = value;

	memcpy(p + at, &v, 2);
}

static void put32(uint8_t *p, size_t at, uint32_t value)
{
	memcpy(p + at, &value, 4);
}

static bool all_zero(const uint8_t *p, size_t from, size_t to)
{
	for (; from < to; from++)
		if (p[from])
			return false;
	return true;
}

static bool fd_live(const char *path)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		if (!strcmp(fake.fds[fd], path))
			return true;
	return false;
}

static struct fake_object *object_find(uint32_t handle)
{
	for (int i = 0; handle && i < MAX_OBJECTS; i++)
		if (fake.objects[i].handle == handle)
			return &fake.objects[i];
	return NULL;
}

static unsigned int nr_objects(void)
{
	unsigned int nr = 0;

	for (int i = 0; i < MAX_OBJECTS; i++)
		nr += fake.objects[i].handle != 0;
	return nr;
}

static int fake_gpu_by(uint32_t id)
{
	for (unsigned int i = 0; i < fake.nr_gpus; i++)
		if (fake.gpus[i].id == id)
			return i;
	return -1;
}

static int fake_open(const char *path)
{
	unsigned int minor;
	char rest;

	if (!event("open %s", path))
		return -EIO;
	if ((int)fake.nr_opens++ == fake.fail_open)
		return (int)fake.fail_status;
	if (fake.open_path && !strcmp(fake.open_path, path))
		return fake.open_err;
	if (strcmp(path, "/dev/nvidiactl")) {
		unsigned int i;

		if (sscanf(path, "/dev/nvidia%u%c", &minor, &rest) != 1)
			fault("open of %s", path);
		for (i = 0; i < fake.nr_gpus && fake.gpus[i].minor != minor; i++)
			;
		if (i == fake.nr_gpus)
			return -ENOENT;
	}
	for (int fd = 0; fd < MAX_FDS; fd++) {
		if (fake.fds[fd][0])
			continue;
		snprintf(fake.fds[fd], sizeof(fake.fds[fd]), "%s", path);
		return fd;
	}
	fault("too many descriptors");
	return -EMFILE;
}

static void fake_close(int fd)
{
	if (fd < 0 || fd >= MAX_FDS || !fake.fds[fd][0]) {
		fault("close of descriptor %d, which is not open", fd);
		return;
	}
	event("close %s", fake.fds[fd]);
	if (!strcmp(fake.fds[fd], "/dev/nvidiactl")) {
		if (nr_objects() && !fake.free_failed)
			fault("%u objects left at the close", nr_objects());
		memset(fake.objects, 0, sizeof(fake.objects));
	}
	fake.fds[fd][0] = '\0';
}

static uint32_t answer_alloc(uint8_t *arg)
{
	uint32_t client = get32(arg, 0), parent = get32(arg, 4), class_id = get32(arg, 12);
	const uint8_t *params = (const uint8_t *)(uintptr_t)get64(arg, 16);
	struct fake_object *of = object_find(parent), *object = NULL;
	int gpu = of ? of->gpu : -1, i;

	for (i = 0; i < MAX_OBJECTS && !object; i++)
		if (!fake.objects[i].handle)
			object = &fake.objects[i];
	if (get32(arg, 8) || !object)
		fault("alloc with a handle of its own, or too many");
	switch (class_id) {
	case 0x41:
		if (client || parent || params)
			fault("client with a parent or parameters");
		break;
	case 0x80:
		if (!of || of->class_id != 0x41 || client != parent ||
		    (fake.alloc_has_size && get32(arg, 24) != 56) ||
		    !all_zero(params, 4, 56))
			fault("device: wrong parent, size or parameters");
		for (i = 0; i < (int)fake.nr_gpus; i++)
			if (params && fake.gpus[i].instance == get32(params, 0))
				gpu = i;
		if (gpu < 0)
			return 0x1b;
		if (fake.gpus[gpu].alloc_status)
			return fake.gpus[gpu].alloc_status;
		break;
	case 0x2080:
		if (!of || of->class_id != 0x80 || of->parent != client ||
		    (fake.alloc_has_size && get32(arg, 24) != 4) ||
		    get32(params, 0))
			fault("subdevice: wrong parent, size or parameters");
		break;
	default:
		fault("alloc of class 0x%x", class_id);
		return 0x1f;
	}
	fake.next_handle += 0x10;
	*object = (struct fake_object){ fake.next_handle, parent, class_id, gpu };
	put32(arg, 8, object->handle);
	return 0;
}

static uint32_t answer_free(const uint8_t *arg)
{
	struct fake_object *object = object_find(get32(arg, 8));
	int i;

	if (!object || object->parent != get32(arg, 4)) {
		fault("free of object 0x%x under 0x%x: not there", get32(arg, 8), get32(arg, 4));
		return 0x1f;
	}
	for (i = 0; i < MAX_OBJECTS; i++)
		if (fake.objects[i].handle && fake.objects[i].parent == object->handle &&
		    !fake.free_failed)
			fault("free of class 0x%x before its children", object->class_id);
	memset(object, 0, sizeof(*object));
	return 0;
}

/* Returns true if this driver uses the size. */
static bool right_size(uint32_t size, uint32_t right, uint32_t cmd, bool probed)
{
	if (size == right)
		return true;
	if (!probed)
		fault("control 0x%x with %u bytes, not %u", cmd, size, right);
	return false;
}

static void answer_order(uint8_t *p)
{
	unsigned int words = fake.order_size == 9240 ? 9 : fake.order_size == 7192 ? 7 : 6;
	unsigned int sm, w;

	for (sm = 0; sm < board.nr_sms; sm++)
		for (w = 0; w < words; w++)
			put16(p, (sm * words + w) * 2, board.word[sm][w]);
	put16(p, 512 * words * 2, board.nr_sms);
	put16(p, 512 * words * 2 + 2, board.nr_tpcs);
}

static void answer_fs_info(uint8_t *p)
{
	unsigned int nr = p[0] | p[1] << 8, i;

	if (!nr || nr > 96 || !all_zero(p, 2, 8) || !all_zero(p, 8 + nr * 20, 1928))
		fault("fs info: %u queries, or something after them", nr);
	for (i = 0; i < nr; i++) {
		uint8_t *q = p + 8 + i * 20;

		if (get32(q, 0) != 2)
			fault("fs info: query type %u", get32(q, 0));
		if (get32(q, 8) < board.nr_gpcs)
			put32(q, 12, board.phys_of[get32(q, 8)]);
		else
			put32(q, 4, 0x1f);
	}
}

static uint32_t answer_gr_info(uint8_t *p)
{
	uint8_t *list = (uint8_t *)(uintptr_t)get64(p, 8);
	uint32_t i;

	for (i = 0; i < get32(p, 0); i++) {
		switch (get32(list, i * 8)) {
		case 0x14: put32(list, i * 8 + 4, 8); break;
		case 0x17: put32(list, i * 8 + 4, 9); break;
		case 0x20: put32(list, i * 8 + 4, 2); break;
		default: return 0x1f;
		}
	}
	return 0;
}

static uint32_t answer_client_control(uint32_t cmd, uint8_t *p, uint32_t size)
{
	unsigned int i;
	int gpu;

	switch (cmd) {
	case 0x214:
		if (!right_size(size, fake.probed_size, cmd, true))
			return fake.wrong_size_status;
		memset(p, 0xff, 256);
		for (i = 0; i < fake.nr_gpus; i++)
			put32(p, i * 4, fake.gpus[i].id);
		return 0;
	case 0x215:
		if (!right_size(size, 132, cmd, false))
			return 0x1f;
		fake.nr_attaches++;
		for (i = 0; i < 32 && get32(p, i * 4) != 0xffffffff; i++)
			if (fake_gpu_by(get32(p, i * 4)) < 0)
				fault("attach of id 0x%x", get32(p, i * 4));
		return 0;
	case 0x201:
		if (!right_size(size, 128, cmd, false))
			return 0x1f;
		memset(p, 0xff, 128);
		for (i = 0; i < fake.nr_gpus; i++)
			put32(p, i * 4, fake.gpus[i].id);
		return 0;
	case 0x205:
		gpu = fake_gpu_by(get32(p, 0));
		if (!right_size(size, 32, cmd, false) || gpu < 0)
			return 0x1f;
		put32(p, 8, fake.gpus[gpu].instance);
		return 0;
	case 0x21b:
		gpu = fake_gpu_by(get32(p, 0));
		if (!right_size(size, 12, cmd, false) || gpu < 0)
			return 0x1f;
		put32(p, 4, fake.gpus[gpu].domain);
		put16(p, 8, fake.gpus[gpu].bus);
		put16(p, 10, fake.gpus[gpu].slot);
		return 0;
	}
	fault("control 0x%x of the client", cmd);
	return 0x1f;
}

static uint32_t answer_gpu_control(const struct fake_gpu *gpu, uint32_t cmd, uint8_t *p,
				   uint32_t size)
{
	const struct { uint32_t cmd, size; } sizes[] = {
		{ 0x20800101, 16 }, { 0x20800102, fake.gpu_info_size }, { 0x20800110, 132 },
		{ 0x2080014a, 268 },
		{ 0x20801701, 16 }, { 0x20801201, 32 }, { 0x2080122a, 24 }, { 0x2080122b, 24 },
		{ 0x20803801, 1928 },
	};
	uint8_t *list;
	size_t i;

	if (cmd == 0x2080121b) {
		if (!right_size(size, fake.order_size, cmd, true)) {
			memset(p, 0xee, size);
			return fake.wrong_size_status;
		}
		if (!all_zero(p, 0, size))
			fault("SM order: not asked with zeros");
		answer_order(p);
		return 0;
	}
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i].cmd != cmd; i++)
		;
	if (i == sizeof(sizes) / sizeof(sizes[0])) {
		fault("control 0x%x of a GPU", cmd);
		return 0x1f;
	}
	if (!right_size(size, sizes[i].size, cmd, cmd == 0x20800102))
		return fake.wrong_size_status;

	switch (cmd) {
	case 0x20800101:
		list = (uint8_t *)(uintptr_t)get64(p, 8);
		if (fake.no_list_form)
			return 0x56;
		if (get32(p, 0) != 1 || get32(list, 0) != 0x2a)
			fault("GPU info other than the SMC mode");
		put32(list, 4, fake.smc_mode);
		return 0;
	case 0x20800102:
		if (get32(p, 0) != 1 || get32(p, 4) != 0x2a || !all_zero(p, 12, size))
			fault("GPU info other than the SMC mode");
		put32(p, 8, fake.smc_mode);
		return 0;
	case 0x20800110:
		if (!all_zero(p, 0, size))
			fault("name: flags");
		strcpy((char *)p + 4, gpu->name);
		return 0;
	case 0x2080014a:
		if (!all_zero(p, 0, size))
			fault("GID: index or flags");
		put32(p, 8, strlen(gpu->uuid) + 1);
		strcpy((char *)p + 12, gpu->uuid);
		return 0;
	case 0x20801701:
		put32(p, 0, 0x180);
		put32(p, 8, 0xa1);
		return 0;
	case 0x20801201:
		if (!all_zero(p, 16, 32))
			fault("GR info: a route");
		return answer_gr_info(p);
	case 0x2080122a:
		if (!all_zero(p, 0, 16))
			fault("GPC mask: a route");
		put32(p, 16, board.present_gpcs);
		return 0;
	case 0x2080122b:
		if (!all_zero(p, 0, 16) || get32(p, 16) > 31 ||
		    !(board.present_gpcs >> get32(p, 16) & 1)) {
			fault("TPC mask of physical GPC %u", get32(p, 16));
			return 0x1f;
		}
		put32(p, 20, board.present_tpcs[get32(p, 16)]);
		return 0;
	case 0x20803801:
		answer_fs_info(p);
		return 0;
	}
	return 0x1f;
}

/*
 * If the caller passes no list, returns the number of classes. Otherwise fills the list with
 * classes.
 */
static uint32_t answer_device_control(uint32_t cmd, uint8_t *p, uint32_t size)
{
	uint8_t *list = (uint8_t *)(uintptr_t)get64(p, 8);
	uint32_t i, nr = 0;

	if (cmd != 0x800201) {
		fault("control 0x%x of a device", cmd);
		return 0x1f;
	}
	if (!right_size(size, 16, cmd, false))
		return 0x1f;
	while (fake.classes[nr])
		nr++;
	if (!list) {
		if (!all_zero(p, 0, size))
			fault("class list: not asked with zeros");
		put32(p, 0, nr);
		return 0;
	}
	if (get32(p, 0) != nr)
		fault("class list: %u places, not %u", get32(p, 0), nr);
	for (i = 0; i < nr; i++)
		put32(list, i * 4, fake.classes[i]);
	return 0;
}

static uint32_t answer_control(const uint8_t *arg)
{
	uint32_t cmd = get32(arg, 8), size = get32(arg, 24), status;
	uint8_t *p = (uint8_t *)(uintptr_t)get64(arg, 16);
	const struct fake_object *object = object_find(get32(arg, 4));
	const struct fake_object *client = object_find(get32(arg, 0));

	if (!object || !client || client->class_id != 0x41 || get32(arg, 12)) {
		fault("control 0x%x: no such object or client, or flags", cmd);
		return 0x1f;
	}
	/* A driver checks the size first. */
	if (cmd == fake.refuse_cmd && (cmd != 0x2080121b || size == fake.order_size))
		return fake.refuse_status;
	if (object->class_id == 0x41)
		status = answer_client_control(cmd, p, size);
	else if (object->class_id == 0x2080)
		status = answer_gpu_control(&fake.gpus[object->gpu], cmd, p, size);
	else
		status = answer_device_control(cmd, p, size);
	if (!status && cmd == fake.spoil_cmd)
		fake.spoil(p);
	return status;
}

static int fake_ioctl(int fd, unsigned long request, void *argp)
{
	bool failing = (int)fake.nr_ioctls == fake.fail_ioctl;
	unsigned int nr = request & 0xff, size = request >> 16 & 0x3fff;
	uint8_t *arg = argp;
	size_t status_at = nr == 0x29 ? 12 : nr == 0x2b && !fake.alloc_has_size ? 24 : 28;
	uint32_t status;
	struct fake_object *object;

	fake.nr_ioctls++;
	if (fd < 0 || fd >= MAX_FDS || strcmp(fake.fds[fd], "/dev/nvidiactl")) {
		fault("ioctl on descriptor %d, not on /dev/nvidiactl", fd);
		return -EBADF;
	}
	if (request >> 30 != 3 || (request >> 8 & 0xff) != 'F' || nr < 0x29 || nr > 0x2b ||
	    size != (nr == 0x29 ? 16 : 32)) {
		fault("ioctl request 0x%lx", request);
		return -ENOTTY;
	}
	if (nr == 0x2b) {
		if (!event("alloc 0x%x", get32(arg, 12)))
			return -EIO;
	} else if (nr == 0x29) {
		object = object_find(get32(arg, 8));
		fake.free_failed |= failing;
		if (!event("free 0x%x", object ? object->class_id : 0))
			return -EIO;
	} else if (!event("control 0x%x %u", get32(arg, 8), get32(arg, 24))) {
		return -EIO;
	}
	if (failing) {
		fake.fail_ioctl = -1;
		/* Stores the failed call for the test. */
		snprintf(fake.failed_at + strlen(fake.failed_at),
			 sizeof(fake.failed_at) - strlen(fake.failed_at), "!");
		if (fake.fail_status < 0)
			return (int)fake.fail_status;
		status = fake.fail_status;
	} else {
		status = nr == 0x2b ? answer_alloc(arg) : nr == 0x29 ? answer_free(arg) :
			 answer_control(arg);
	}
	/* After a failed allocation, its handle is not an object. */
	if (nr == 0x2b && status)
		put32(arg, 8, 0xbad);
	put32(arg, status_at, status);
	return 0;
}

/* NULL: no such file. */
static const char *fake_text(const char *path)
{
	static const char gpus[] = "/proc/driver/nvidia/gpus/";

	if (!event("read %s", path))
		return NULL;
	if (!strcmp(path, "/proc/driver/nvidia/version"))
		return fake.version;
	if (!strncmp(path, gpus, strlen(gpus)) && strstr(path, ".0/information"))
		return fake.information;
	fault("read of %s", path);
	return NULL;
}

/*
 * These functions replace functions of libc for the library and for this file. See
 * tests/Makefile.inc.
 */
int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_stat(const char *path, struct stat *st);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);

static char failed_name[64];

static int result_of(int ret)
{
	if (ret < 0)
		errno = -ret;
	return ret < 0 ? -1 : ret;
}

int __wrap_open(const char *path, int flags, ...)
{
	if (flags != (O_RDWR | O_CLOEXEC))
		fault("open of %s with flags 0x%x", path, flags);
	return result_of(fake_open(path));
}

int __wrap_close(int fd)
{
	fake_close(fd);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	int ret = fake_ioctl(fd, request, arg);

	/* Events continue after the failure, so store the name of the failed call immediately. */
	if (strchr(fake.failed_at, '!'))
		snprintf(failed_name, sizeof(failed_name), "%s", fake.failed_at);
	return result_of(ret);
}

int __wrap_stat(const char *path, struct stat *st)
{
	st->st_mode = S_IFCHR | 0600;
	return result_of(event("mode %s", path) ? 0 : -EIO);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *text;

	if (strncmp(path, "/proc/", 6))
		return __real_fopen(path, mode);
	text = fake_text(path);
	errno = ENOENT;
	return text ? fmemopen((char *)(uintptr_t)text, strlen(text), "r") : NULL;
}

/* ----------------------------------------------------------------------- machines */

static const char version_580[] =
	"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x)\n"
	"GCC version:  gcc version 12.2.0\n";
static const char version_535[] =
	"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"
	"GCC version:  gcc version 12.2.0\n";

/*
 * Eight GPUs of a real host. On this host, the instances 5, 6 and 7 are at the PCI buses 0d, 0c
 * and 0b.
 */
static const struct fake_gpu host[MAX_GPUS] = {
	{ 0xd00, 5, 0, 0, 0x0d, 0, "GPU-0d000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x0300, 0, 0, 1, 0x03, 0, "GPU-03000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x0c00, 6, 0, 2, 0x0c, 0, "GPU-0c000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x10300, 4, 1, 9, 0x03, 0, "GPU-13000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x0b00, 7, 0, 3, 0x0b, 0, "GPU-0b000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x0600, 3, 0, 4, 0x06, 0, "GPU-06000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x0400, 1, 0, 6, 0x04, 0, "GPU-04000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
	{ 0x0500, 2, 0, 7, 0x05, 0, "GPU-05000000-1111-2222-3333-444444444444", "NVIDIA H200", 0 },
};

static const char *const host_pci[MAX_GPUS] = {
	"0000:03:00.0", "0000:04:00.0", "0000:05:00.0", "0000:06:00.0",
	"0000:0b:00.0", "0000:0c:00.0", "0000:0d:00.0", "0001:03:00.0",
};

static struct gpupart *gp;

/* Some classes of g_gpu_class_list.c for GH100, and one for each engine. */
static const uint32_t h200_classes[] = { 0x902d, 0xcb97, 0xcbc0, 0xcbc0, 0xcbc0, 0xc8b5, 0 };

/*
 * Sets up a machine without faults. It has the first @nr GPUs and a current driver. Tests then
 * change this machine.
 */
static void machine(unsigned int nr)
{
	memset(&fake, 0, sizeof(fake));
	fake.nr_gpus = nr;
	memcpy(fake.gpus, host, nr * sizeof(host[0]));
	fake.order_size = 9240;
	fake.probed_size = 384;
	fake.gpu_info_size = 564;
	fake.alloc_has_size = true;
	fake.wrong_size_status = 0x1f;
	fake.smc_mode = 2;
	fake.version = version_580;
	fake.classes = h200_classes;
	fake.fail_ioctl = fake.fail_open = -1;
	fake.next_handle = 0xc1d00000;
	gp->error[0] = '\0';
}

/*
 * Returns true if all descriptors and objects are closed, no call was wrong, and the script is at
 * its end.
 */
static bool clean(void)
{
	int left = 0;

	for (int fd = 0; fd < MAX_FDS; fd++)
		left += fake.fds[fd][0] != 0;
	if (left || nr_objects())
		printf("# %d descriptors and %u objects left\n", left, nr_objects());
	if (fake.script && *fake.script)
		printf("# the script still has \"%s\"\n", *fake.script);
	return !left && !nr_objects() && !fake.nr_faults && !(fake.script && *fake.script);
}

/* Returns true if @topo equals board e in all values of the form with @words words. */
static bool is_board(const struct gpupart_topology *topo, unsigned int words)
{
	unsigned int sm, gpc;

	if (topo->nr_sms != board.nr_sms || topo->nr_tpcs != board.nr_tpcs ||
	    topo->nr_gpcs != board.nr_gpcs)
		return false;
	for (sm = 0; sm < board.nr_sms; sm++) {
		const struct topo_sm *s = &topo->sms[sm];
		const int got[9] = { s->gpc, s->local_tpc, s->local_sm, s->tpc, s->vgpc,
				     s->tpc_in_vgpc, s->ugpu, s->cpc, s->virtual_tpc };

		for (unsigned int w = 0; w < 9; w++)
			if (got[w] != (w < words ? board.word[sm][w] : -1)) {
				printf("# SM %u word %u: %d\n", sm, w, got[w]);
				return false;
			}
		if (s->measured_bit != -1)
			return false;
	}
	for (gpc = 0; gpc < board.nr_gpcs; gpc++)
		if (topo->gpcs[gpc].gpc_phys != board.phys_of[gpc] ||
		    topo->gpcs[gpc].present_tpcs != board.present_tpcs[board.phys_of[gpc]])
			return false;
	return true;
}

/* Opens and closes a topology. Returns topo_rm_open()'s result. */
static int try_open(const char *gpu, struct gpupart_topology *copy)
{
	struct gpupart_topology *topo = NULL;
	int err = topo_rm_open(gp, gpu, &topo);

	if (!err) {
		*copy = *topo;
		gpupart_topology_close(topo);
	}
	return err;
}

static struct gpupart_topology got;

/* -------------------------------------------------------------------------- tests */

static void test_data(void)
{
	tap_ok(board.nr_sms == 132 && board.nr_tpcs == 66 && board.nr_gpcs == 8,
	       "the captured board was read: 132 SMs, 66 TPCs, 8 GPCs");
}

static void test_script(void)
{
	static const char *const script[] = {
		"open /dev/nvidiactl", "read /proc/driver/nvidia/version",
		"open /dev/nvidia0", "open /dev/nvidia1", "open /dev/nvidia2", "open /dev/nvidia3",
		"open /dev/nvidia4", "open /dev/nvidia5", "open /dev/nvidia6", "open /dev/nvidia7",
		"open /dev/nvidia8", "open /dev/nvidia9", "open /dev/nvidia10",
		"open /dev/nvidia11", "open /dev/nvidia12", "open /dev/nvidia13",
		"open /dev/nvidia14", "open /dev/nvidia15", "open /dev/nvidia16",
		"open /dev/nvidia17", "open /dev/nvidia18", "open /dev/nvidia19",
		"open /dev/nvidia20", "open /dev/nvidia21", "open /dev/nvidia22",
		"open /dev/nvidia23", "open /dev/nvidia24", "open /dev/nvidia25",
		"open /dev/nvidia26", "open /dev/nvidia27", "open /dev/nvidia28",
		"open /dev/nvidia29", "open /dev/nvidia30", "open /dev/nvidia31",
		"alloc 0x41", "control 0x214 384", "control 0x215 132", "control 0x201 128",
		"control 0x205 32", "control 0x21b 12", "alloc 0x80", "alloc 0x2080",
		"control 0x2080014a 268", "control 0x20800110 132",
		"control 0x20801701 16", "control 0x20800101 16", "control 0x20801201 32",
		"control 0x2080121b 9240", "control 0x2080122a 24", "control 0x20803801 1928",
		"control 0x2080122b 24", "control 0x2080122b 24", "control 0x2080122b 24",
		"control 0x2080122b 24", "control 0x2080122b 24", "control 0x2080122b 24",
		"control 0x2080122b 24", "control 0x2080122b 24",
		"control 0x800201 16", "control 0x800201 16",
		"free 0x2080", "free 0x80", "free 0x41", "close /dev/nvidia0",
		"close /dev/nvidiactl", NULL
	};
	int err;

	machine(1);
	fake.script = script;
	err = try_open(NULL, &got);
	tap_ok(!err && clean(), "one GPU: exactly this script, nothing left (%s)", gp->error);
	tap_ok(fake.nr_ioctls == 29, "one GPU: 29 ioctls (%u)", fake.nr_ioctls);
	tap_ok(!err && is_board(&got, 9), "one GPU: every SM and GPC as captured");
	tap_ok(!strcmp(got.info.source, "rm") && !strcmp(got.info.pci, "0000:0d:00.0") &&
	       !strcmp(got.info.uuid, host[0].uuid) && !strcmp(got.info.name, "NVIDIA H200") &&
	       !strcmp(got.info.driver, "580.159.04") && got.info.chip_id == 0x180 &&
	       got.info.mig == 0 && got.info.max_gpcs == 8 && got.info.max_tpcs_per_gpc == 9 &&
	       !got.info.simulated && !got.info.origin[0], "one GPU: who it is");
	tap_ok(!strcmp(got.text_rm, "RM control 0x2080121b, 9240-byte form") &&
	       !strcmp(got.text_gpc_map, "RM controls 0x2080122a, 0x2080122b; logical ids by RM "
		       "control 0x20803801, query 2"), "one GPU: where it came from (%s; %s)",
	       got.text_rm, got.text_gpc_map);
}

static void test_branches(void)
{
	static const struct {
		const char *branch;
		uint32_t size, probed, wrong;
		unsigned int words;
		const char *form;
	} row[] = {
		{ "515", 6168, 256, 0x3a, 6, "6168" }, { "535", 6168, 384, 0x3a, 6, "6168" },
		{ "570", 6168, 384, 0x1f, 6, "6168" }, { "575", 7192, 384, 0x1f, 7, "7192" },
		{ "580", 9240, 384, 0x1f, 9, "9240" }, { "595", 9240, 384, 0x1f, 9, "9240" },
	};
	char form[64];
	int err;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		machine(1);
		fake.version = i < 3 ? version_535 : version_580;
		fake.order_size = row[i].size;
		fake.probed_size = row[i].probed;
		fake.alloc_has_size = i > 0;
		fake.wrong_size_status = row[i].wrong;
		err = try_open(NULL, &got);
		snprintf(form, sizeof(form), "RM control 0x2080121b, %s-byte form", row[i].form);
		tap_ok(!err && is_board(&got, row[i].words) && !strcmp(got.text_rm, form) &&
		       clean(), "branch %s: %u-byte form (%s)", row[i].branch, row[i].size,
		       gp->error);
		tap_ok(fake.nr_attaches == 1, "branch %s: probed ids of %u bytes are attached",
		       row[i].branch, row[i].probed);
		tap_ok(!strcmp(got.info.driver, i < 3 ? "535.54.03" : "580.159.04"),
		       "branch %s: version %s", row[i].branch, got.info.driver);
	}
	machine(1);
	fake.version = NULL;
	tap_ok(!try_open(NULL, &got) && !got.info.driver[0] && clean(),
	       "no version file: no version");
	machine(1);
	fake.version = "NVRM version: none \nGCC version: gcc version 12.2.0 (x)\n";
	tap_ok(!try_open(NULL, &got) && !got.info.driver[0] && clean(),
	       "a version file without one in its line: no version");
	fake.version = "NVRM version: NVIDIA UNIX Kernel Module for x86 64  600.10  x\n";
	tap_ok(!try_open(NULL, &got) && !strcmp(got.info.driver, "600.10") && clean(),
	       "a number without a dot is no version");
}

static void test_several(void)
{
	static const unsigned int counts[] = { 1, 4, 8 };
	struct gpupart_gpu_info list[MAX_GPUS];
	char selector[64];
	bool good;
	int nr;

	for (size_t i = 0; i < 3; i++) {
		machine(counts[i]);
		memset(list, 0, sizeof(list));
		nr = topo_rm_list(gp, list, MAX_GPUS);
		good = nr == (int)counts[i] && clean();
		for (int g = 1; g < nr; g++)
			good &= strcmp(list[g - 1].pci, list[g].pci) < 0;
		tap_ok(good, "%u GPUs: listed in PCI order (%d)", counts[i], nr);
	}
	good = true;
	for (int g = 0; g < MAX_GPUS; g++)
		good &= !strcmp(list[g].pci, host_pci[g]) && list[g].chip_id == 0x180 &&
			list[g].mig == 0 && list[g].max_gpcs == 8 &&
			!strcmp(list[g].source, "rm") &&
			strtoul(list[g].uuid + 4, NULL, 16) >> 24 ==
			(g == 7 ? 0x13 : strtoul(list[g].pci + 5, NULL, 16));
	tap_ok(good, "8 GPUs: each with its own address, UUID and facts");

	memset(list, 0x5a, sizeof(list));
	machine(8);
	tap_ok(topo_rm_list(gp, list, 2) == 8 && !strcmp(list[1].pci, host_pci[1]) &&
	       list[2].pci[0] == 0x5a && clean(), "room for 2 of 8: 8 there are, 2 written");
	machine(8);
	tap_ok(topo_rm_list(gp, NULL, 0) == 8 && clean(), "room for none: 8 there are");

	for (unsigned int g = 0; g < MAX_GPUS; g++) {
		for (int how = 0; how < 3; how++) {
			const struct fake_gpu *want = NULL;

			for (int h = 0; h < MAX_GPUS; h++) {
				char pci[20];

				snprintf(pci, sizeof(pci), "%04x:%02x:00.0", host[h].domain,
					 host[h].bus);
				if (!strcmp(pci, host_pci[g]))
					want = &host[h];
			}
			if (how == 0)
				snprintf(selector, sizeof(selector), "%u", g);
			else
				snprintf(selector, sizeof(selector), "%s", how == 1 ? host_pci[g] :
					 want->uuid);
			machine(8);
			memset(&got, 0, sizeof(got));
			nr = try_open(selector, &got);
			tap_ok(!nr && !strcmp(got.info.pci, host_pci[g]) &&
			       !strcmp(got.info.uuid, want->uuid) && is_board(&got, 9) && clean(),
			       "of 8 GPUs, \"%s\" opens %s (%s)", selector, host_pci[g], gp->error);
		}
	}
	machine(8);
	tap_ok(!try_open(NULL, &got) && !strcmp(got.info.pci, host_pci[0]) && clean(),
	       "no selector: the first in PCI order");
}

/* Opens a topology, which must fail with this error and message. */
static void refused(const char *what, const char *gpu, int want, const char *words,
		    const char *words2)
{
	int err = try_open(gpu, &got);

	tap_ok(err == want && strstr(gp->error, words) && strstr(gp->error, words2) &&
	       !strchr(gp->error, '\n') && clean(), "%s: %d, \"%s\"", what, err, gp->error);
}

static void test_errors(void)
{
	machine(1);
	fake.open_path = "/dev/nvidiactl";
	fake.open_err = -ENOENT;
	refused("no driver", NULL, -ENODEV, "no NVIDIA driver", "/dev/nvidiactl does not exist");
	tap_ok(topo_rm_list(gp, NULL, 0) == -ENODEV && clean(), "no driver: no list either");
	fake.open_err = -EACCES;
	refused("ctl not readable", NULL, -EACCES, "/dev/nvidiactl (mode 0600)", "0666");
	fake.open_err = -ENXIO;
	refused("ctl without a driver", NULL, -ENODEV, "No such device or address",
		"nvidia kernel module");

	machine(0);
	refused("no GPU", NULL, -ENODEV, "580.159.04", "shows no GPU");
	machine(0);
	tap_ok(topo_rm_list(gp, NULL, 0) == 0 && clean(), "no GPU: an empty list");

	machine(1);
	fake.open_path = "/dev/nvidia0";
	fake.open_err = -EACCES;
	fake.gpus[0].alloc_status = 0x1b;
	refused("node not readable", NULL, -EACCES, "/dev/nvidia0 (mode 0600)", "0666");
	tap_ok(topo_rm_list(gp, NULL, 0) == -EACCES && clean(),
	       "node not readable: -EACCES, not none");

	machine(2);
	refused("index 2 of 2", "2", -ENODEV, "GPU \"2\" does not exist",
		"0 (0000:03:00.0, NVIDIA H200), 1 (0000:0d:00.0, NVIDIA H200)");
	machine(2);
	refused("a PCI address that is not there", "0000:7f:00.0", -ENODEV, "0000:7f:00.0",
		"0000:0d:00.0");
	machine(1);
	fake.alloc_has_size = false;
	fake.gpus[0].alloc_status = 0x1b;
	refused("a GPU that is not ours, before 535", NULL, -EACCES, "0000:0d:00.0",
		"status 0x1b");
	machine(8);
	refused("no match of 8", "GPU-00000000-0000-0000-0000-000000000000", -ENODEV,
		"GPU-00000000", "7 (0001:03:00.0, NVIDIA H200)");

	machine(2);
	fake.gpus[1].alloc_status = 0x1b;
	tap_ok(!try_open("0", &got) && !strcmp(got.info.pci, "0000:0d:00.0") && clean(),
	       "a GPU that is not ours is passed over: 0 is the next");
	refused("a GPU that is not ours, by address", "0000:03:00.0", -ENODEV,
		"0 (0000:0d:00.0, NVIDIA H200); GPU 0000:03:00.0 cannot be opened (status 0x1b, ins",
		"/dev/nvidiaN");

	machine(1);
	fake.order_size = 10000;
	refused("driver too new", NULL, -EOPNOTSUPP, "9240, 7192, 6168 bytes; status 0x1f, invalid",
		"0x2080121b");
	machine(1);
	fake.refuse_cmd = 0x2080121b;
	fake.refuse_status = 0x1b;
	refused("no permission", NULL, -EACCES, "status 0x1b, insufficient permissions", "9240");
	fake.refuse_status = fake.wrong_size_status = 0x3a;
	refused("invalid parameters", NULL, -EOPNOTSUPP, "status 0x3a, invalid parameter", "9240");
	fake.refuse_status = 0x56;
	fake.smc_mode = 1;
	refused("MIG", NULL, -EOPNOTSUPP, "status 0x56, not supported) while MIG is on", "9240");
	fake.refuse_status = 0xdeadbeef;
	fake.order_size = 6168;
	refused("an unknown status", NULL, -EOPNOTSUPP, "status 0xdeadbeef)", "9240");
	machine(1);
	fake.refuse_cmd = 0x201;
	fake.refuse_status = 0x56;
	refused("no attached ids", NULL, -EOPNOTSUPP, "0x201", "status 0x56");
}

/* Returns true if a fault of this call prevents a topology. */
static bool is_vital(const char *name)
{
	static const char *const vital[] = {
		"alloc 0x41", "control 0x201 ", "control 0x205 ", "control 0x21b ", "alloc 0x80",
		"alloc 0x2080", "control 0x2080121b ",
	};

	for (size_t i = 0; i < sizeof(vital) / sizeof(vital[0]); i++)
		if (!strncmp(name, vital[i], strlen(vital[i])) &&
		    (vital[i][strlen(vital[i]) - 1] == ' ' || name[strlen(vital[i])] == '!'))
			return true;
	return false;
}

static void test_failing(void)
{
	static const int64_t how[] = { -EIO, 0x56, 0xffff };
	static const int64_t open_how[] = { -EACCES, -EMFILE, -EIO };
	unsigned int total, opens, bad = 0, nr_vital = 0;
	int err;

	machine(1);
	try_open(NULL, &got);
	total = fake.nr_ioctls;
	opens = fake.nr_opens;
	for (unsigned int h = 0; h < 3; h++) {
		for (unsigned int n = 0; n < total; n++) {
			machine(1);
			fake.fail_ioctl = n;
			fake.fail_status = how[h];
			failed_name[0] = '\0';
			err = try_open(NULL, &got);
			nr_vital += is_vital(failed_name);
			if (clean() && failed_name[0] && (is_vital(failed_name) ?
			    err && gp->error[0] : !err && got.nr_sms == board.nr_sms))
				continue;
			bad++;
			printf("# ioctl %u, %s: %d \"%s\"\n", n, failed_name, err, gp->error);
		}
	}
	tap_ok(!bad, "each of %u ioctls failing in 3 ways: vital ones refuse, the others are "
	       "missed", total);
	tap_ok(nr_vital == 3 * 7, "7 of them are vital (%u / 3)", nr_vital);

	bad = 0;
	for (unsigned int h = 0; h < 3; h++) {
		for (unsigned int n = 0; n < total; n++) {
			machine(2);
			fake.fail_ioctl = n;
			fake.fail_status = how[h];
			err = topo_rm_list(gp, NULL, 0);
			if (!clean() || (err < 0 && !gp->error[0]))
				bad++;
		}
	}
	tap_ok(!bad, "list of 2 GPUs: nothing left whichever ioctl fails");

	bad = 0;
	for (unsigned int h = 0; h < 3; h++) {
		for (unsigned int n = 0; n < opens; n++) {
			machine(1);
			fake.fail_open = n;
			fake.fail_status = open_how[h];
			err = try_open(NULL, &got);
			if (!clean() || (n == 0) != (err < 0))
				bad++;
		}
	}
	tap_ok(!bad, "each of %u opens failing in 3 ways: only /dev/nvidiactl is vital", opens);
}

static void test_optional(void)
{
	unsigned int gpc;
	bool good;

	machine(1);
	fake.refuse_cmd = 0x20803801;
	fake.refuse_status = 0x56;
	good = !try_open(NULL, &got) && got.nr_gpc_map == 8 && clean();
	for (gpc = 0; gpc < got.nr_gpc_map; gpc++)
		good &= got.gpc_map[gpc].gpc == -1 &&
			got.gpc_map[gpc].present_tpcs == board.present_tpcs[gpc];
	tap_ok(good && !strcmp(got.text_gpc_map, "RM controls 0x2080122a, 0x2080122b"),
	       "no logical ids: the masks alone (%s)", got.text_gpc_map);

	machine(1);
	fake.refuse_cmd = 0x2080122a;
	fake.refuse_status = 0x56;
	good = !try_open(NULL, &got) && got.nr_gpc_map == 8 && clean();
	for (gpc = 0; gpc < 8; gpc++)
		good &= got.gpcs[gpc].gpc_phys == board.phys_of[gpc] && !got.gpcs[gpc].present_tpcs;
	tap_ok(good && !strcmp(got.text_gpc_map, "logical ids by RM control 0x20803801, query 2"),
	       "no masks: the ids alone (%s)", got.text_gpc_map);

	machine(1);
	fake.refuse_cmd = 0x2080122b;
	fake.refuse_status = 0x56;
	tap_ok(!try_open(NULL, &got) && got.gpcs[0].gpc_phys == board.phys_of[0] &&
	       !got.gpcs[0].present_tpcs && clean() &&
	       !strncmp(got.text_gpc_map, "RM control 0x2080122a;", 22),
	       "no TPC masks: the ids alone (%s)", got.text_gpc_map);

	machine(1);
	fake.refuse_cmd = 0x20801201;
	fake.refuse_status = 0x56;
	tap_ok(!try_open(NULL, &got) && !got.info.max_gpcs && !got.info.max_tpcs_per_gpc &&
	       fake.nr_ioctls == 32 && clean(), "no design maxima: unknown, each asked alone too");
	machine(1);
	fake.refuse_cmd = 0x20801701;
	fake.refuse_status = 0x56;
	tap_ok(!try_open(NULL, &got) && !got.info.chip_id && clean(), "no chip id: 0");

	machine(1);
	tap_ok(!try_open(NULL, &got) && got.compute_class == 0xcbc0 && clean(),
	       "the compute class of the list, %#x", got.compute_class);
	fake.refuse_cmd = 0x800201;
	fake.refuse_status = 0x56;
	tap_ok(!try_open(NULL, &got) && !got.compute_class && clean(), "no list: no class");
	machine(1);
	fake.classes = (const uint32_t []){ 0xcbc0, 0x902d, 0xcec0, 0 };
	tap_ok(!try_open(NULL, &got) && !got.compute_class && clean(), "two: none is sure");
	fake.classes = (const uint32_t []){ 0x902d, 0xcb97, 0 };
	tap_ok(!try_open(NULL, &got) && !got.compute_class && clean(), "none of them computes");
	fake.classes = (const uint32_t []){ 0 };
	tap_ok(!try_open(NULL, &got) && !got.compute_class && clean(), "an empty list");

	machine(1);
	fake.refuse_cmd = 0x2080014a;
	fake.refuse_status = 0x56;
	fake.information = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 27\n"
			   "GPU UUID: \t GPU-0d000000-aaaa-bbbb-cccc-444444444444\nVideo BIOS: x\n";
	tap_ok(!try_open(NULL, &got) &&
	       !strcmp(got.info.uuid, "GPU-0d000000-aaaa-bbbb-cccc-444444444444") &&
	       !strcmp(got.info.name, "NVIDIA H200") && clean(), "UUID from the text file");
	fake.information = "GPU UUID: \t GPU-xxxxxxxx-0000-0000-0000-000000000000\n";
	tap_ok(!try_open(NULL, &got) && !got.info.uuid[0] && clean(),
	       "a UUID that the text file does not know either: \"\"");
	fake.information = NULL;
	tap_ok(!try_open(NULL, &got) && !got.info.uuid[0] && clean(), "no text file: \"\"");
	machine(1);
	fake.refuse_cmd = 0x20800110;
	fake.refuse_status = 0x56;
	fake.information = "Model: \t\t NVIDIA H200 NVL\n";
	tap_ok(!try_open(NULL, &got) && !strcmp(got.info.name, "NVIDIA H200 NVL") &&
	       !strcmp(got.info.uuid, host[0].uuid) && clean(), "name from the text file");
}

static void test_mig(void)
{
	static const struct { uint32_t mode; int mig; const char *what; } row[] = {
		{ 0, 0, "unsupported" }, { 1, 1, "enabled" }, { 2, 0, "disabled" },
		{ 3, 0, "enable pending" }, { 4, 1, "disable pending" }, { 5, -1, "5" },
		{ 0xffffffff, -1, "garbage" },
	};
	static const uint32_t sizes[] = { 492, 524, 564, 580 };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		machine(1);
		fake.smc_mode = row[i].mode;
		tap_ok(!try_open(NULL, &got) && got.info.mig == row[i].mig && clean(),
		       "MIG: SMC mode %s is %d", row[i].what, row[i].mig);
	}
	machine(1);
	fake.no_list_form = true;
	fake.smc_mode = 1;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fake.gpu_info_size = sizes[i];
		tap_ok(!try_open(NULL, &got) && got.info.mig == 1 && clean(),
		       "MIG: the second form, %u bytes", sizes[i]);
	}
	fake.refuse_cmd = 0x20800102;
	fake.refuse_status = 0x1f;
	tap_ok(!try_open(NULL, &got) && got.info.mig == -1 && clean(), "MIG: neither form: -1");
}

static void no_sms(uint8_t *p) { put16(p, 9216, 0); }
static void many_sms(uint8_t *p) { put16(p, 9216, 600); }
static void tpc_300(uint8_t *p) { put16(p, 131 * 18 + 6, 300); }
static void gpc_none(uint8_t *p) { put16(p, 5 * 18, 0xffff); }
static void gpc_40(uint8_t *p) { put16(p, 5 * 18, 40); }
static void garbage(uint8_t *p) { memset(p, 0xa5, 9216); }
static void zeros(uint8_t *p) { memset(p, 0, 9216); }
static void tpc_count(uint8_t *p) { put16(p, 9218, 65); }

static void illegal(uint8_t *p)
{
	for (int sm = 0; sm < 2; sm++) {
		put16(p, sm * 18 + 8, 0xff);
		put16(p, sm * 18 + 14, 0xffff);
		put16(p, sm * 18 + 16, 0xffff);
	}
	for (int sm = 2; sm < 4; sm++)
		put16(p, sm * 18 + 8, 0xffff);
}

static void no_ugpus(uint8_t *p)
{
	for (unsigned int sm = 0; sm < board.nr_sms; sm++)
		put16(p, sm * 18 + 12, 0xff);
}

static void no_vgpcs(uint8_t *p)
{
	for (unsigned int sm = 0; sm < board.nr_sms; sm++) {
		put16(p, sm * 18 + 8, 0);
		put16(p, sm * 18 + 10, 0);
	}
}

static void map_twice(uint8_t *p) { put32(p, 8 + 20 + 12, get32(p, 8 + 12)); }
static void map_absent(uint8_t *p) { put32(p, 8 + 12, 31); }
static void map_huge(uint8_t *p) { put32(p, 8 + 12, 0xffffffff); }
static void map_partial(uint8_t *p) { put32(p, 8 + 3 * 20 + 4, 0x1f); }
static void arch_odd(uint8_t *p) { put32(p, 0, 0x18); }
static void classes_many(uint8_t *p) { put32(p, 0, 513); }
static void name_odd(uint8_t *p) { memset(p + 4, 0xe9, 128); }
static void name_long(uint8_t *p) { memset(p + 4, 'x', 128); }
static void gid_odd(uint8_t *p) { memset(p + 12, 'G', 256); }
static void gid_long(uint8_t *p) { memset(p + 12 + 40, '0', 60); }
static void ids_all(uint8_t *p) { memset(p, 0, 128); }

static void gr_odd(uint8_t *p)
{
	uint8_t *list = (uint8_t *)(uintptr_t)get64(p, 8);

	for (int i = 0; i < 3; i++)
		put32(list, i * 8 + 4, 0xffffffff);
}

static void gr_one_sm(uint8_t *p)
{
	put32((uint8_t *)(uintptr_t)get64(p, 8), 2 * 8 + 4, 1);
}

static void spoiled(uint32_t cmd, void (*how)(uint8_t *))
{
	machine(1);
	fake.spoil_cmd = cmd;
	fake.spoil = how;
}

static void test_odd(void)
{
	static const struct {
		void (*how)(uint8_t *);
		const char *what, *words;
	} order[] = {
		{ no_sms, "0 SMs", "reports 0 SMs" },
		{ many_sms, "600 SMs", "reports 600 SMs" },
		{ tpc_300, "TPC 300", "300" },
		{ gpc_none, "no GPC", "SM 5" },
		{ gpc_40, "GPC 40", "40" },
		{ garbage, "garbage", "inconsistent" },
		{ zeros, "all zeros", "inconsistent" },
		{ tpc_count, "65 TPCs told", "65" },
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		spoiled(0x2080121b, order[i].how);
		refused(order[i].what, NULL, -EOPNOTSUPP, order[i].words, "0000:0d:00.0");
	}
	spoiled(0x20801201, gr_one_sm);
	refused("more SMs than the design has", NULL, -EOPNOTSUPP, "132 SMs", "with 1 SMs");

	spoiled(0x2080121b, illegal);
	tap_ok(!try_open(NULL, &got) && got.sms[0].vgpc == -1 && got.sms[1].tpc_in_vgpc == -1 &&
	       got.sms[0].cpc == -1 && got.sms[0].virtual_tpc == -1 && got.sms[2].vgpc == -1 &&
	       got.sms[4].vgpc == board.word[4][4] && clean(), "illegal virtual ids are -1 (%s)",
	       gp->error);
	spoiled(0x2080121b, no_ugpus);
	tap_ok(!try_open(NULL, &got) && got.sms[131].ugpu == -1 && !got.nr_ugpus && clean(),
	       "illegal uGPUs are -1 (%s)", gp->error);
	spoiled(0x2080121b, no_vgpcs);
	tap_ok(!try_open(NULL, &got) && got.sms[0].vgpc == -1 && got.sms[131].tpc_in_vgpc == -1 &&
	       got.end_vgpc == 0 && clean(), "virtual ids all zero are not told (%s)", gp->error);

	spoiled(0x20803801, map_twice);
	tap_ok(!try_open(NULL, &got) && got.gpcs[0].gpc_phys == -1 && got.gpcs[7].gpc_phys == -1 &&
	       !strcmp(got.text_gpc_map, "RM controls 0x2080122a, 0x2080122b") && clean(),
	       "a GPC map with two GPCs in one place is none (%s)", gp->error);
	spoiled(0x20803801, map_absent);
	tap_ok(!try_open(NULL, &got) && got.gpcs[0].gpc_phys == -1 && clean(),
	       "a GPC map with a GPC that is floorswept is none (%s)", gp->error);
	spoiled(0x20803801, map_huge);
	tap_ok(!try_open(NULL, &got) && got.gpcs[0].gpc_phys == -1 && clean(),
	       "a GPC map out of range is none (%s)", gp->error);
	spoiled(0x20803801, map_huge);
	fake.refuse_cmd = 0x2080122a;
	fake.refuse_status = 0x56;
	tap_ok(!try_open(NULL, &got) && !got.nr_gpc_map && !got.text_gpc_map[0] && clean(),
	       "a GPC map out of range is none without masks too (%s)", gp->error);
	spoiled(0x20803801, map_partial);
	tap_ok(!try_open(NULL, &got) && got.gpcs[3].gpc_phys == -1 &&
	       got.gpcs[4].gpc_phys == board.phys_of[4] && clean(),
	       "a GPC whose query failed is unknown, the others stay (%s)", gp->error);

	spoiled(0x20801701, arch_odd);
	tap_ok(!try_open(NULL, &got) && !got.info.chip_id && clean(),
	       "an odd architecture: chip id 0");
	spoiled(0x800201, classes_many);
	tap_ok(!try_open(NULL, &got) && !got.compute_class && clean(), "more classes than can be");
	spoiled(0x20800110, name_odd);
	tap_ok(!try_open(NULL, &got) && !got.info.name[0] && clean(), "an unprintable name: \"\"");
	spoiled(0x20800110, name_long);
	tap_ok(!try_open(NULL, &got) && strlen(got.info.name) == 63 && clean(),
	       "a name without end: cut");
	spoiled(0x2080014a, gid_odd);
	tap_ok(!try_open(NULL, &got) && !got.info.uuid[0] && clean(), "an odd UUID: \"\"");
	spoiled(0x2080014a, gid_long);
	tap_ok(!try_open(NULL, &got) && !got.info.uuid[0] && clean(), "a UUID too long: \"\"");
	spoiled(0x20801201, gr_odd);
	tap_ok(!try_open(NULL, &got) && !got.info.max_gpcs && !got.info.max_tpcs_per_gpc && clean(),
	       "odd design maxima: unknown");
	spoiled(0x201, ids_all);
	refused("attached ids that are none", NULL, -EOPNOTSUPP, "shows no GPU", "status 0x1f");
}

/*
 * Checks that the fake driver detects a violated script. Otherwise the tests above would prove
 * nothing.
 */
static void test_fake(void)
{
	static const char *const wrong[] = { "open /dev/nvidia0", NULL };
	static const char *const longer[] = { "open /dev/nvidiactl", "close /dev/nvidiactl", NULL };

	machine(1);
	fake.script = wrong;
	try_open(NULL, &got);
	tap_ok(fake.nr_faults && !clean(), "the fake sees an event out of order");
	machine(1);
	fake.script = longer;
	fake.open_path = "/dev/nvidiactl";
	fake.open_err = -ENOENT;
	try_open(NULL, &got);
	tap_ok(!clean(), "the fake sees what is left of a script");
	machine(1);
	fake.fds[7][0] = 'x';
	tap_ok(!clean(), "the fake sees a descriptor left open");
	machine(1);
	fake.objects[0].handle = 1;
	tap_ok(!clean(), "the fake sees an object left");
	machine(1);
	fake_ioctl(fake_open("/dev/nvidia0"), 0xc020462a, &got);
	tap_ok(fake.nr_faults == 1 && fd_live("/dev/nvidia0"),
	       "the fake takes no ioctl but on /dev/nvidiactl");
}

int main(void)
{
	if (gpupart_open(&gp))
		return 1;
	board_load();
	test_data();
	test_fake();
	test_script();
	test_branches();
	test_several();
	test_errors();
	test_failing();
	test_optional();
	test_mig();
	test_odd();
	gpupart_close(gp);
	return tap_done();
}
