/* SPDX-License-Identifier: MIT */
/* A driver and a GPU for tests of lib/records. Launches wait in a list until the test ends them. */
#ifndef GPUPART_TESTS_UNIT_RECORDS_GPU_H
#define GPUPART_TESTS_UNIT_RECORDS_GPU_H

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/records/records.h"
#include "lib/tmd/layouts.h"
#include "tests/tap.h"

#define PCI		"0000:01:00.0"
#define SLOT(i)		(40 + 2 * (i))	/* V04_00: byte of the enable bit (clcbc0qmd.h) */
#define ADDRESS(i)	(80 + 16 * (i))
#define PAYLOAD(i)	(88 + 16 * (i))
#define GPU_AHEAD	500000000000000ull	/* the GPU's clock minus CLOCK_MONOTONIC, ns */

static struct gpupart *gp;
static struct tmd_map map;
static struct state_gpu *gpu;
static struct records *records;
static int refuses_registered;	/* the driver's result for the registration of memory */
static void *registered[64];
static unsigned int nr_registered;

struct stream {
	_Alignas(64) unsigned char tmd[TMD_MAX_SIZE];
	void *ctx;
};

struct launched {
	struct records_cell *cell;	/* NULL: no record */
	uint64_t payload;
};

static cuda_result fake_register(void *at, size_t size, unsigned int flags)
{
	(void)size;
	for (unsigned int i = 0; i < nr_registered; i++)
		if (registered[i] == at && refuses_registered)
			return refuses_registered;
	registered[nr_registered++ % 64] = at;
	return flags == CUDA_HOST_DEVICEMAP ? 0 : 1;
}

static cuda_result fake_pointer(cuda_ptr *address, void *at, unsigned int flags)
{
	*address = (uintptr_t)at;
	return flags;
}

static const struct cuda_api cuda = {
	.host_register = fake_register, .host_pointer = fake_pointer,
};

static uint64_t gpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec + GPU_AHEAD;
}

static const struct tmd_layout *layout_v04_00(void)
{
	const struct tmd_layout *layout;

	for (unsigned int n = 0; (layout = tmd_layout_of_class(0xcbc0, n)); n++)
		if (!strcmp(tmd_layout_name(layout), "V04_00"))
			break;
	return layout;
}

static bool start(void)
{
	static struct gpupart_gpu_info info = { .pci = PCI, .simulated = true };
	struct gpupart_topology *topo;

	records_clock_start(NULL);
	return !gpupart_open(&gp) &&
	       !gpupart_topology_open(gp, "tests/data/gh100-h200-b/capture.txt", NULL, &topo) &&
	       !tmd_map_build(gp, topo, layout_v04_00(), NULL, &map) &&
	       (gpu = state_add_gpu(&info, 1)) && !records_start(gp, gpu, &map, &records);
}

/* Builds the TMD like the driver. The driver uses slot 0. */
__attribute__((unused))
static void build(struct stream *s)
{
	memset(s->tmd, 0, sizeof(s->tmd));
	s->tmd[map.layout->version_byte] = map.layout->version;
	s->tmd[SLOT(0)] = 3;
}

__attribute__((unused))
static struct launched launch_built(struct stream *s, uint64_t function)
{
	struct launch_params params = {
		.size = sizeof(params), .ctx = s->ctx, .function = (void *)(uintptr_t)function,
		.tmd = s->tmd,
	};
	struct launched launched = { NULL, 0 };
	struct state_lane lane;

	records_launch_in_call(&params, &lane, records);
	for (int i = 1; i <= 2; i++)
		if ((s->tmd[SLOT(i)] & 7) == 1 && s->tmd[SLOT(i) + 1] == 0x10) {
			memcpy(&launched.cell, s->tmd + ADDRESS(i), 8);
			memcpy(&launched.payload, s->tmd + PAYLOAD(i), 8);
		}
	return launched;
}

__attribute__((unused))
static struct launched launch(struct stream *s)
{
	build(s);
	return launch_built(s, 0x1000);
}

__attribute__((unused))
static void end_at(struct launched l, uint64_t time)
{
	if (!l.cell)
		return;
	atomic_store_explicit(&l.cell->time, time, memory_order_relaxed);
	atomic_store_explicit(&l.cell->payload, l.payload, memory_order_release);
}

__attribute__((unused))
static void end(struct launched l)
{
	end_at(l, gpu_now());
}

__attribute__((unused))
static bool read_own(struct gpupart_records *r)
{
	struct gpupart_records_reader *reader;
	bool good = !gpupart_records_open(gp, 0, PCI, &reader) &&
		    !gpupart_records_read(gp, reader, r, sizeof(*r));

	if (good && (gpupart_records_busy(gp, reader) == 0) !=
			    (r->all_known && !r->outstanding)) {
		printf("# busy differs\n");
		good = false;
	}
	gpupart_records_close(reader);
	return good;
}

/* If the read values are wrong, prints the values. */
__attribute__((unused))
static bool reads(uint64_t issued, uint64_t ended, uint64_t outstanding, uint64_t unrecorded,
		  uint64_t unknown)
{
	struct gpupart_records r;
	bool same = read_own(&r) && r.on && r.issued == issued && r.ended == ended &&
		    r.outstanding == outstanding && r.unrecorded == unrecorded &&
		    r.unknown == unknown && r.all_known == !unknown;

	if (!same)
		printf("# issued %lu ended %lu outstanding %lu unrecorded %lu unknown %lu\n",
		       r.issued, r.ended, r.outstanding, r.unrecorded, r.unknown);
	return same;
}

/* Runs a test in a separate process with a context. So tests do not affect each other. */
__attribute__((unused))
static void gpu_child(void (*test)(void))
{
	int status = 1, before = tap_count;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!start())
			_exit(255);
		records_context(records, &cuda, (void *)0x7000);
		test();
		fflush(stdout);
		_exit(tap_failed ? 255 : tap_count - before);
	}
	waitpid(pid, &status, 0);
	tap_count += WEXITSTATUS(status) == 255 ? 0 : WEXITSTATUS(status);
	tap_failed += !WIFEXITED(status) || !WEXITSTATUS(status) || WEXITSTATUS(status) == 255;
}

#endif
