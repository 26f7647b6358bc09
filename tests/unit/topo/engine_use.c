// SPDX-License-Identifier: MIT
/*
 * Tests gpupart_engine_uses() and gpupart_engine_owner() with a made-up NVIDIA driver. The
 * library must only read registers, with the sizes that a driver accepts. The test covers the
 * shares of a known schedule, a driver that refuses ordinary users, and a process that is the
 * only user of the graphics engine.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/private.h"
#include "lib/topo/rm_client.h"
#include "lib/topo/topology.h"
#include "tests/kmod/regfile.h"
#include "tests/tap.h"

#define ADDRESS "0000:01:00.0"

static struct regfile regs;
static struct {
	uint32_t next_handle;
	unsigned int status;		/* of register reads */
	unsigned int reads, wrong, of_status, of_second, open;
	unsigned int pids_status, nr_compute, compute[2], graphics, asked_pids;
	unsigned long pid_ns;
} driver;

/* Behaves like NVIDIA's driver, and replaces calls of libc. */
int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_stat(const char *path, struct stat *st);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);

int __wrap_open(const char *path, int flags, ...)
{
	(void)flags;
	if (strcmp(path, "/dev/nvidiactl") && strcmp(path, "/dev/nvidia0")) {
		errno = ENOENT;
		return -1;
	}
	driver.open++;
	return 3;
}

int __wrap_close(int fd)
{
	(void)fd;
	driver.open--;
	return 0;
}

int __wrap_stat(const char *path, struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_ino = strcmp(path, "/proc/self/ns/pid") ? 1 : driver.pid_ns;
	return 0;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	static char version[] = "NVRM version: x  580.159.04  y";

	return strncmp(path, "/proc/", 6) ? __real_fopen(path, mode) :
					    fmemopen(version, strlen(version), "r");
}

/*
 * Of five samples of the graphics engine, three samples see TSG 7, one sample sees TSG 11, and
 * one sample sees a context switch.
 */
static uint32_t schedule(void)
{
	static const uint32_t words[] = { 0x80072007, 0x80072007, 0x800be007, 0x800b200b,
					  0x80072007 };

	return words[driver.of_status++ % 5];
}

static uint32_t read_registers(const uint8_t *params, uint32_t size)
{
	uint64_t at;
	uint8_t *op;
	uint32_t offset, value, type;

	memcpy(&at, params + 24, 8);
	op = (uint8_t *)(uintptr_t)at;
	memcpy(&type, op, 4);
	memcpy(&offset, op + 12, 4);
	/* Reads 32 bits of one register of the whole GPU one time. */
	driver.wrong += size != 48 || params[20] != 1 || type != 0;
	driver.reads++;
	driver.of_second += offset == 0xc00404;
	if (driver.status)
		return driver.status;
	regfile_rd32(&regs.reader, offset, &value);
	if (offset == 0xc00200)
		value = schedule();
	memcpy(op + 20, &value, 4);
	return 0;
}

/* Processes with an object of a class: {idType, class, number, pids}. */
static uint32_t list_pids(uint8_t *params, uint32_t size)
{
	uint32_t words[3];

	memcpy(words, params, sizeof(words));
	driver.wrong += size != 3812 || words[0] != 0;
	driver.asked_pids++;
	words[2] = 0;
	if (words[1] == 0xcbc0) {
		words[2] = driver.nr_compute;
		memcpy(params + 12, driver.compute, sizeof(driver.compute));
	} else if (words[1] == 0xcb97 && driver.graphics) {
		words[2] = 1;
		memcpy(params + 12, &driver.graphics, 4);
	}
	memcpy(params, words, sizeof(words));
	return driver.pids_status;
}

static uint32_t control(uint32_t cmd, uint8_t *params, uint32_t size)
{
	uint32_t first = 0x100;

	switch (cmd) {
	case 0x214:
	case 0x201:
		memset(params, 0xff, 128);
		memcpy(params, &first, 4);
		return 0;
	case 0x215:
	case 0x205:
		return 0;
	case 0x21b:
		params[8] = 1;
		return 0;
	case 0x20800122:
		return read_registers(params, size);
	case 0x2080018d:
		return list_pids(params, size);
	default:
		return 0x56;
	}
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct rm_control *c = arg;
	struct rm_alloc *a = arg;

	(void)fd;
	if (request == RM_IOCTL_CONTROL) {
		c->status = control(c->cmd, (uint8_t *)(uintptr_t)c->params, c->params_size);
	} else if (request == RM_IOCTL_ALLOC) {
		a->object = ++driver.next_handle;
		a->status = 0;
	}
	return 0;
}

/* A GH100 with two engines, each on its own runlist. Values are made up. */
static void make_registers(void)
{
	static const uint32_t rows[] = {
		0x80000005, 0xc0400000, 0xc00000, 0x9302002b, 0xc0104000, 0xc00400,
	};
	uint32_t base = 0xc00000;

	memset(&regs, 0, sizeof(regs));
	regs.reader.rd32 = regfile_rd32;
	regfile_set(&regs, 0x0, 0x180000a1);
	regfile_set(&regs, 0x4, 0);
	regfile_set(&regs, 0xa00, 0x180a1000);
	regfile_set(&regs, 0x224fc, 2 | 6 << 20);
	for (unsigned int i = 0; i < 6; i++)
		regfile_set(&regs, 0x22800 + 4 * i, rows[i]);
	for (; base <= 0xc00400; base += 0x400) {
		regfile_set(&regs, base + 0x4, 0xc2000b);
		regfile_set(&regs, base + 0x8, base == 0xc00000 ? 0 : 1 << 16);
		regfile_set(&regs, base + 0x94, 0);
		regfile_set(&regs, base + 0x108, 0x33);
		regfile_set(&regs, base + 0x200, 0);
		regfile_set(&regs, base + 0x208, 0x800a);
	}
}

static struct gpupart_gpu_info info;

/* Called after the first sample. */
static void begun(void *begins)
{
	*(unsigned int *)begins += driver.of_status == 1 && !strcmp(info.pci, ADDRESS);
}

int main(void)
{
	static struct gpupart_engine_use list[GPUPART_MAX_ENGINES];
	unsigned int begins = 0;
	struct gpupart *gp;
	const struct gpupart_engine_use *e = &list[0];
	int nr;

	if (gpupart_open(&gp))
		return 1;
	make_registers();
	nr = gpupart_engine_uses(gp, ADDRESS, "rm", 0.5, begun, &begins, &info, list);
	tap_ok(nr == 2, "2 engines (%d: %s)", nr, nr < 0 ? gpupart_error(gp) : "");
	tap_ok(!strcmp(info.pci, ADDRESS) && !strcmp(info.source, "rm") && !info.simulated,
	       "of %s, by %s", info.pci, info.source);
	tap_ok(!strcmp(e->name, "Graphics/Compute") && e->runlist == 0xc00000 &&
	       e->samples == driver.of_status && e->samples >= 10, "%u samples of %s",
	       e->samples, e->name);
	tap_ok(e->nr_tsgs == 2 && e->tsgs[0].tsg == 7 && e->tsgs[1].tsg == 11 &&
	       e->tsgs[0].samples + e->tsgs[1].samples + e->switching == e->samples,
	       "TSG 7 first: %u, TSG 11: %u, switching: %u", e->tsgs[0].samples,
	       e->tsgs[1].samples, e->switching);
	tap_ok(e->tsgs[0].samples * 5 >= e->samples * 3 - 10 &&
	       e->tsgs[0].samples * 5 <= e->samples * 3 + 10 && e->tsgs[0].channel == 10,
	       "three fifths of the samples are TSG 7's, on channel 10");
	tap_ok(driver.reads > 100 && !driver.wrong, "%u reads, %u that a driver would not take",
	       driver.reads, driver.wrong);
	tap_ok(!driver.open, "all descriptors are closed");
	tap_ok(begins == 1, "after the first sample the caller is called once");

	driver.of_second = 0;
	regs.bad_offset = 0xc00404;
	regs.bad_value = 0xbadf5040;
	nr = gpupart_engine_uses(gp, NULL, "rm", 0.2, NULL, NULL, &info, list);
	tap_ok(nr == 1 && driver.of_second == 1 && e->samples > 2,
	       "a runlist that is refused is asked for once, not in each of %u samples (%u)",
	       e->samples, driver.of_second);
	regs.bad_value = 0;

	driver.pid_ns = 0xeffffffc;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 0, "no process has a context: no owner");
	driver.nr_compute = 1;
	driver.compute[0] = 812;
	driver.compute[1] = 950;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 812, "one process computes: it is the owner");
	driver.graphics = 812;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 812, "it draws as well");
	driver.graphics = 77;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 0, "another one draws: the owner is not known");
	driver.graphics = 0;
	driver.nr_compute = 2;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 0, "two processes: the owner is not known");
	driver.nr_compute = 951;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 0, "more than the list holds: not known");
	driver.nr_compute = 1;
	driver.pids_status = 0x56;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 0, "a driver that does not tell: not known");
	driver.pids_status = driver.asked_pids = 0;
	driver.pid_ns = 0xf0000001;
	tap_ok(gpupart_engine_owner(gp, ADDRESS) == 0 && !driver.asked_pids,
	       "a pid namespace that may hide processes: the driver is not asked");
	tap_ok(!driver.wrong && !driver.open, "all descriptors are closed");

	driver.status = 4;
	nr = gpupart_engine_uses(gp, NULL, "rm", 0.1, begun, &begins, &info, list);
	tap_ok(nr == -EACCES && strstr(gpupart_error(gp), "try as root"), "an ordinary user: %s",
	       gpupart_error(gp));
	tap_ok(!driver.open && begins == 1, "all descriptors are closed, the caller is not called");
	gpupart_close(gp);
	return tap_done();
}
