// SPDX-License-Identifier: MIT
/*
 * Tests the records that the simulated GPU writes at the end of a kernel. lib/tmd/release.c
 * writes the slots. The simulated GPU has a separate decoder, so the decoder and
 * lib/tmd/release.c check each other.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include "lib/tmd/layouts.h"
#include "lib/tmd/tmd.h"
#include "tests/sim/cuda/program.h"

#define BYTES		(4u << 20)
#define PORTABLE	1
#define DEVICEMAP	2
#define NR_STREAMS	8

static __typeof__(cuMemHostRegister_v2) *host_register;
static __typeof__(cuMemHostUnregister) *host_unregister;
static __typeof__(cuMemHostGetDevicePointer_v2) *host_pointer;

struct cell {
	uint64_t payload, time;
};

static struct tmd_map map;
/* The slots of the calling thread's next launch. A slot with address 0 is not used. */
static __thread struct tmd_release plan[TMD_RELEASES];
static __thread void (*poke)(uint8_t *tmd);
static __thread struct tmd_release_seen own;	/* the driver's slot of the last launch */
static __thread unsigned int nr_free, nr_failed;

/* Returns whether the slot exists and is not enabled. */
static bool is_free(const void *tmd, unsigned int slot)
{
	struct tmd_release_seen seen;

	return tmd_release_read(&map, tmd, slot, &seen) && !seen.enabled;
}

static void on_launch(void *user, int domain, int cbid, const void *params)
{
	uint8_t *tmd = (uint8_t *)(uintptr_t)((const uint64_t *)params)[4];

	(void)user;
	if (domain != 0xb || cbid != 1)
		return;
	nr_free = 0;
	for (unsigned int slot = 0; slot < tmd_release_slots(&map); slot++) {
		nr_free += is_free(tmd, slot);
		if (plan[slot].address)
			nr_failed += !tmd_release_write(&map, tmd, slot, &plan[slot]);
	}
	tmd_release_read(&map, tmd, 0, &own);
	if (poke)
		poke(tmd);
}

static void start(const char *version)
{
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		if (!strcmp(tmd_layouts[i].name, version))
			map.layout = &tmd_layouts[i];
	release_places(&map);
	*(void **)&host_register = dlsym(libcuda, "cuMemHostRegister_v2");
	*(void **)&host_unregister = dlsym(libcuda, "cuMemHostUnregister");
	*(void **)&host_pointer = dlsym(libcuda, "cuMemHostGetDevicePointer_v2");
	if (take_table() || subscribe(&subscriber, on_launch, NULL) ||
	    enable(1, subscriber, 0xb, 1))
		check(false, "the callback table");
	begin_on(0);
}

/* The memory is below 1 TiB. In layouts before V04_00, an address has 40 bits. */
static void *map_anonymous(void)
{
	void *at = MAP_FAILED;

	for (uintptr_t hint = 0x20000000; hint < 0x70000000 && at == MAP_FAILED; hint += BYTES)
		at = mmap((void *)hint, BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return at;
}

static struct cell *registered(void)
{
	struct cell *cells = map_anonymous();

	TRY(host_register(cells, BYTES, DEVICEMAP));
	return cells;
}

static void plan_slot(unsigned int slot, enum tmd_release_kind kind, const void *at,
		      uint64_t payload)
{
	plan[slot] = (struct tmd_release){ (uintptr_t)at, payload, kind };
}

static void plan_nothing(void)
{
	memset(plan, 0, sizeof(plan));
}

static CUresult empty(CUstream stream)
{
	const struct shape shape = {
		.blocks = 3, .threads = 32, .stream = stream, .function = f_empty,
	};

	return launch(&shape, 0);
}

/* Creates a context, makes the context current, and loads f_empty into the context. */
static CUcontext another_context(void)
{
	CUcontext second;

	TRY(cu.cuCtxCreate_v2(&second, 0, 0));
	TRY(cu.cuModuleLoadData(&module, ptx));
	TRY(cu.cuModuleGetFunction(&f_empty, module, "gpupart_empty"));
	return second;
}

static uint64_t payload_of(uint64_t value)
{
	return map.layout->release[0].payload.width == 64 ? value : (uint32_t)value;
}

/* ------------------------------------------------------------------- scenarios */

/* Tests every slot of a layout, both kinds of records, and two slots of one launch. */
static void layouts(const char *version)
{
	static struct record records[4];
	const struct shape shape = { .blocks = 4, .threads = 32 };
	struct cell *cells;
	uint64_t last = 0;

	start(version);
	cells = registered();
	for (unsigned int slot = 1; slot < tmd_release_slots(&map); slot++) {
		struct cell *cell = &cells[slot * 4];
		uint64_t payload = 0x123456789abcdef0 + slot;

		plan_nothing();
		plan_slot(slot, TMD_RELEASE_TIME, cell, payload);
		check(!run(&shape, records) && cell->payload == payload_of(payload),
		      "slot %u: payload %#llx", slot, (unsigned long long)cell->payload);
		for (unsigned int i = 0; i < shape.blocks; i++)
			last = records[i].end > last ? records[i].end : last;
		check(cell->time >= last && cell->time - last < 100000,
		      "slot %u: %llu ns after the last block", slot,
		      (unsigned long long)(cell->time - last));
		check(!cell[-1].time && !cell[1].payload, "slot %u: and nothing beside it", slot);
		plan_slot(slot, TMD_RELEASE_ADD, &cell[2], 0x1000000000000003);
		for (int i = 0; i < 5; i++)
			TRY(empty(NULL));
		TRY(cu.cuCtxSynchronize());
		check(cell[2].payload == 15 && !cell[2].time, "slot %u: 5 launches add 3 each",
		      slot);
	}
	check(own.enabled && own.words == 1 && !own.reduction, "the driver uses slot 0");
	check(nr_free == tmd_release_slots(&map) - 1, "and no other");
	if (tmd_release_slots(&map) < 3)
		return;
	plan_slot(1, TMD_RELEASE_ADD, &cells[32], 1);
	plan_slot(2, TMD_RELEASE_TIME, &cells[33], 7);
	TRY(empty(NULL));
	TRY(cu.cuCtxSynchronize());
	check(cells[32].payload == 1 && cells[33].payload == 7 && cells[33].time > last,
	      "two slots of one launch");
	check(!nr_failed, "every slot was written");
}

struct worker {
	struct cell *cells;
	uint32_t *count;
	unsigned int nr;
	bool good;
};

/* A stream with a separate counter, and with a word for each launch. */
static void *work(void *of)
{
	struct worker *w = of;
	CUstream stream;

	if (cu.cuCtxSetCurrent(ctx) || cu.cuStreamCreate(&stream, 1))
		return NULL;
	plan_slot(1, TMD_RELEASE_ADD, w->count, 1);
	for (unsigned int i = 0; i < w->nr; i++) {
		plan_slot(2, TMD_RELEASE_TIME, &w->cells[i], i + 1);
		if (empty(stream))
			return NULL;
	}
	w->good = !cu.cuStreamSynchronize(stream) && !nr_failed;
	return NULL;
}

/* Makes 100,000 launches on 8 streams by 8 threads. */
static void streams(const char *arg)
{
	const unsigned int nr = 12500;
	struct worker workers[NR_STREAMS];
	pthread_t threads[NR_STREAMS];
	unsigned int missing = 0, back = 0;
	struct cell *cells;
	uint32_t *count;
	uint64_t before;

	(void)arg;
	start("V04_00");
	cells = registered();
	TRY(cu.cuMemAllocHost_v2((void **)&count, 64));
	*count = 0;
	for (int s = 0; s < NR_STREAMS; s++) {
		workers[s] = (struct worker){ &cells[s * nr], count, nr, false };
		pthread_create(&threads[s], NULL, work, &workers[s]);
	}
	for (int s = 0; s < NR_STREAMS; s++) {
		pthread_join(threads[s], NULL);
		check(workers[s].good, "stream %d", s);
		before = 0;
		for (unsigned int i = 0; i < nr; i++) {
			missing += cells[s * nr + i].payload != i + 1;
			back += cells[s * nr + i].time < before;
			before = cells[s * nr + i].time;
		}
	}
	check(*count == NR_STREAMS * nr, "%u launches added %u", NR_STREAMS * nr, *count);
	check(!missing, "each has its payload: %u have not", missing);
	check(!back, "time never goes back in a stream: %u times", back);
}

/* The time is written before the payload. */
static void polled(const char *arg)
{
	struct worker w = { .nr = 100 };
	unsigned int nr = 0, torn = 0, early = 0;
	pthread_t thread;

	(void)arg;
	start("V04_00");
	w.cells = registered();
	w.count = (uint32_t *)&w.cells[w.nr];
	pthread_create(&thread, NULL, work, &w);
	for (; nr < w.nr; nr++) {
		while (!__atomic_load_n(&w.cells[nr].time, __ATOMIC_ACQUIRE) &&
		       !__atomic_load_n(&w.cells[nr].payload, __ATOMIC_ACQUIRE))
			sched_yield();
		early += !__atomic_load_n(&w.cells[nr].payload, __ATOMIC_ACQUIRE);
		torn += !__atomic_load_n(&w.cells[nr].time, __ATOMIC_ACQUIRE);
		while (!__atomic_load_n(&w.cells[nr].payload, __ATOMIC_ACQUIRE))
			sched_yield();
	}
	pthread_join(thread, NULL);
	check(w.good && !torn, "%u records, %u whose payload came before the time", nr, torn);
	check(early, "%u times the time was there before the payload", early);
}

/* The address and payload of a node's TMD are the same at every launch of the graph. */
static void graphs(const char *arg)
{
	struct cell *cells, *cell[3];
	CUgraphNode node = NULL, nodes[3];
	uint32_t *count[3];
	CUgraphExec exec;
	CUgraph graph;
	struct tmd_release_seen slot0[3];

	(void)arg;
	start("V04_00");
	cells = registered();
	TRY(cu.cuGraphCreate(&graph, 0));
	for (int i = 0; i < 3; i++) {
		const struct cu_kernel_node_params params = {
			.v1 = { f_empty, 2, 1, 1, 64, 1, 1, 0, NULL, NULL },
		};

		TRY(cu.cuGraphAddKernelNode_v2(&nodes[i], graph, &node, i > 0, &params));
		node = nodes[i];
		cell[i] = &cells[8 + i];
		count[i] = (uint32_t *)&cells[16 + i];
	}
	/* Each call builds one node, because all other nodes are disabled. */
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		TRY(cu.cuGraphNodeSetEnabled(exec, nodes[i], 0));
	for (int i = 0; i < 3; i++) {
		TRY(cu.cuGraphNodeSetEnabled(exec, nodes[i], 1));
		plan_slot(1, TMD_RELEASE_ADD, count[i], 1);
		plan_slot(2, TMD_RELEASE_TIME, cell[i], 100 + i);
		TRY(cu.cuGraphUpload(exec, NULL));
		slot0[i] = own;
	}
	plan_nothing();
	for (int i = 0; i < 1000; i++)
		TRY(cu.cuGraphLaunch(exec, NULL));
	TRY(cu.cuCtxSynchronize());
	for (int i = 0; i < 3; i++)
		check(*count[i] == 1000 && cell[i]->payload == 100u + i &&
			      (!i || cell[i]->time > cell[i - 1]->time),
		      "node %d: 1000 launches, counted %u, payload %llu", i, *count[i],
		      (unsigned long long)cell[i]->payload);
	check(!slot0[0].enabled && slot0[0].reduction && slot0[2].enabled && slot0[2].reduction,
	      "slot 0 is 0010 in a node, 0013 in the last");
	check(!nr_failed, "all slots were free");
}

static struct cell *moved_to;

static void move_record(uint8_t *tmd)
{
	const struct tmd_release r = { (uintptr_t)moved_to, 9, TMD_RELEASE_TIME };
	bool in_use = !is_free(tmd, 2);

	check(in_use && tmd_release_clear(&map, tmd, 2, (uintptr_t)(moved_to - 1)) &&
		      tmd_release_write(&map, tmd, 2, &r),
	      "a node that is built again has its slot as it was");
}

static void rebuilt(const char *arg)
{
	struct cu_kernel_node_params params = {
		.v1 = { NULL, 2, 1, 1, 64, 1, 1, 0, NULL, NULL },
	};
	struct cell *cells;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	start(arg);
	cells = registered();
	params.v1.function = f_empty;
	TRY(cu.cuGraphCreate(&graph, 0));
	TRY(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	TRY(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	plan_slot(2, TMD_RELEASE_TIME, cells, 8);
	TRY(cu.cuGraphLaunch(exec, NULL));
	plan_nothing();
	params.v1.grid_x = 3;
	TRY(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
	moved_to = cells + 1;
	poke = move_record;
	TRY(cu.cuGraphLaunch(exec, NULL));
	TRY(cu.cuCtxSynchronize());
	check(cells[0].payload == 8 && cells[1].payload == 9 && cells[1].time > cells[0].time,
	      "and writes to the address that was set since");
}

/*
 * Another process reads the records through the file. This process does not wait for its
 * launches.
 */
static void file(const char *arg)
{
	char path[] = "/dev/shm/gpupart-release-XXXXXX";
	int fd = mkstemp(path), status;
	struct cell *cells, *theirs;
	pid_t pid;

	(void)arg;
	unlink(path);
	if (fd < 0 || ftruncate(fd, BYTES) || fflush(report))
		_exit(1);
	pid = fork();
	if (!pid) {
		unsigned int bad = 0;

		alarm(100);
		theirs = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
		for (unsigned int i = 0; i < 500; i++) {
			while (!__atomic_load_n(&theirs[i].payload, __ATOMIC_ACQUIRE))
				usleep(100);
			bad += theirs[i].payload != i + 1 || !theirs[i].time ||
			       (i && theirs[i].time < theirs[i - 1].time);
		}
		_exit(bad ? 1 : 0);
	}
	start("V04_00");
	cells = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	TRY(host_register(cells, BYTES, DEVICEMAP));
	for (unsigned int i = 0; i < 500; i++) {
		plan_slot(2, TMD_RELEASE_TIME, &cells[i], i + 1);
		TRY(empty(NULL));
	}
	check(waitpid(pid, &status, 0) == pid && !status, "another process has seen 500 records");
}

static void registrations(const char *arg)
{
	char *cells, *other, name[] = "/dev/shm/gpupart-release-XXXXXX";
	int fd = mkstemp(name);
	CUdeviceptr device = 0;
	CUcontext second;

	(void)arg;
	unlink(name);
	start("V04_00");
	if (fd < 0 || ftruncate(fd, BYTES))
		_exit(1);
	cells = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	other = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(host_register(NULL, 1, 0) == CUDA_ERROR_INVALID_VALUE &&
		      host_register(cells, 0, 0) == CUDA_ERROR_INVALID_VALUE &&
		      host_register(cells, BYTES, 64) == CUDA_ERROR_INVALID_VALUE,
	      "nothing, no bytes, an unknown flag");
	check(host_pointer(&device, cells, 0) == CUDA_ERROR_INVALID_VALUE, "not registered");
	check(!host_register(cells, BYTES, DEVICEMAP) && !host_pointer(&device, cells + 16, 0) &&
		      device == (uintptr_t)cells + 16, "registered: its address is its own");
	check(host_register(cells + 4096, 16, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	      "once only");
	check(host_unregister(other) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "not that one");
	TRY(cu.cuCtxCreate_v2(&second, 0, 0));
	check(host_unregister(cells) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED &&
		      host_pointer(&device, cells, 0) == CUDA_ERROR_INVALID_VALUE,
	      "another context has not registered it");
	check(!host_register(other, BYTES, DEVICEMAP), "it registers another mapping of the file");
	TRY(cu.cuCtxSetCurrent(ctx));
	plan_slot(2, TMD_RELEASE_TIME, cells, 1);
	TRY(empty(NULL));
	check(!host_unregister(cells) && ((struct cell *)other)->payload == 1,
	      "what is queued is done before memory is unregistered");
	TRY(cu.cuCtxDestroy_v2(second));
	munmap(other, BYTES);
	check(host_register(other, BYTES, 0) == CUDA_ERROR_INVALID_VALUE, "memory that is gone");
	check(!host_register(cells, BYTES, PORTABLE) && !host_unregister(cells), "again");
}

/* Makes a launch with a record at @at, and waits. Returns the error of the wait. */
static CUresult record_to(const void *at)
{
	plan_slot(1, TMD_RELEASE_ADD, at, 1);
	TRY(empty(NULL));
	return cu.cuCtxSynchronize();
}

static void outside(const char *which)
{
	char *cells;

	start("V04_00");
	cells = map_anonymous();
	if (!strcmp(which, "another context's")) {
		TRY(host_register(cells, BYTES, 0));
		another_context();
	} else if (!strcmp(which, "another context's device")) {
		TRY(cu.cuMemAlloc_v2((CUdeviceptr *)&cells, BYTES));
		another_context();
	} else if (!strcmp(which, "unregistered")) {
		TRY(host_register(cells, BYTES, 0));
		TRY(host_unregister(cells));
	} else if (!strcmp(which, "behind the end")) {
		TRY(host_register(cells, BYTES / 2, 0));
		cells += BYTES / 2;
	}
	check(record_to(cells) == CUDA_ERROR_ILLEGAL_ADDRESS && !*cells,
	      "%s memory: the context is lost", which);
	check(cu.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS, "and stays lost");
}

static void inside(const char *arg)
{
	CUdeviceptr device;
	uint32_t *pinned, *portable = map_anonymous();

	(void)arg;
	start("V04_00");
	TRY(cu.cuMemAlloc_v2(&device, 64));
	TRY(cu.cuMemAllocHost_v2((void **)&pinned, 64));
	*(uint32_t *)(uintptr_t)device = *pinned = 0;
	TRY(host_register(portable, BYTES, PORTABLE));
	check(!record_to((void *)(uintptr_t)device) && *(uint32_t *)(uintptr_t)device == 1,
	      "device memory");
	check(!record_to(pinned) && *pinned == 1, "pinned memory");
	another_context();
	check(!record_to(portable) && *portable == 1, "what another context made portable");
}

static struct {
	const char *which;
	unsigned int byte, flips;
} edits[] = {
	{ "trap", 45, 4 },		/* 330 + 2 * 16 */
	{ "minimum", 44, 0x20 },	/* 325 + 2 * 16 */
	{ "reserved", 45, 0x20 },	/* 333 + 2 * 16 */
	{ "own", 88, 2 },
	{ "busy", 104, 2 },
}, *edit;

static void flip(uint8_t *tmd)
{
	tmd[edit->byte] ^= edit->flips;
}

static void refused(const char *which)
{
	start("V04_00");
	if (strcmp(which, "busy"))
		plan_slot(2, TMD_RELEASE_ADD, registered(), 1);
	for (edit = edits; strcmp(edit->which, which); edit++)
		;
	poke = flip;
	TRY(empty(NULL));
	check(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED, "%s: the launch fails", which);
	check(nr_free == (strcmp(which, "busy") ? 2 : 0), "free slots: %u", nr_free);
}

/* -------------------------------------------------------------------- faults */

static struct cell *one_record(CUresult expect)
{
	struct cell *cells = registered();

	plan_slot(2, TMD_RELEASE_TIME, &cells[4], 5);
	TRY(empty(NULL));
	check(cu.cuCtxSynchronize() == expect && !nr_failed, "the launch ends");
	plan_nothing();
	return &cells[4];
}

static void busy(const char *version)
{
	start(version);
	TRY(empty(NULL));
	check(!cu.cuCtxSynchronize() && !nr_free, "no slot is free");
}

static void never(const char *arg)
{
	(void)arg;
	start("V04_00");
	check(!one_record(CUDA_SUCCESS)->time, "its record does not come");
}

static void elsewhere(const char *arg)
{
	struct cell *cell;

	(void)arg;
	start("V04_00");
	cell = one_record(CUDA_SUCCESS);
	check(!cell[0].time && !cell[0].payload && cell[2].payload == 5,
	      "its record comes 32 bytes further");
}

/*
 * Each record is written 300 us after its kernel ends. So the records have the order of the
 * kernels' ends.
 */
static void late(const char *arg)
{
	struct cell *cells;
	uint64_t end;

	(void)arg;
	start("V04_00");
	cells = registered();
	for (int i = 0; i < 3; i++) {
		plan_slot(2, TMD_RELEASE_TIME, &cells[i], i + 1);
		TRY(empty(NULL));
	}
	TRY(cu.cuCtxSynchronize());
	check(!cells[0].payload && !cells[2].payload, "all has ended, and no record has come");
	plan_nothing();
	end = 0;
	for (int i = 0; i < 2000 && !cells[2].payload; i++, end++) {
		TRY(empty(NULL));
		TRY(cu.cuCtxSynchronize());
	}
	check(end > 20 && cells[0].payload == 1 && cells[1].payload == 2 && cells[2].payload == 3,
	      "they came after %llu more launches", (unsigned long long)end);
	check(cells[0].time && cells[0].time < cells[1].time && cells[1].time < cells[2].time &&
		      cells[2].time - cells[0].time < 200000, "with the times of the ends");
}

/*
 * A context is destroyed before its records are written. A new context gets the address of the
 * destroyed context.
 */
static void late_of_none(const char *arg)
{
	struct cell *cells;
	CUcontext second;

	(void)arg;
	start("V04_00");
	second = another_context();
	cells = registered();
	plan_slot(2, TMD_RELEASE_TIME, cells, 1);
	TRY(empty(NULL));
	TRY(cu.cuCtxDestroy_v2(second));
	munmap(cells, BYTES);
	check(another_context() == second, "another context at its address");
	plan_nothing();
	for (int i = 0; i < 500; i++)
		TRY(empty(NULL));
	check(!cu.cuCtxSynchronize(), "nothing is written into memory that is gone");
}

/* Launch 3 makes the context unusable, so later launches have no record. */
static void lost(const char *arg)
{
	struct cell *cells;

	(void)arg;
	start("V04_00");
	cells = registered();
	for (int i = 0; i < 5; i++) {
		plan_slot(2, TMD_RELEASE_TIME, &cells[i], i + 1);
		TRY(empty(NULL));
	}
	check(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED, "the context is lost");
	check(cells[0].payload == 1 && cells[1].payload == 2 && !cells[2].payload &&
		      !cells[3].payload && !cells[4].payload, "two records came");
	check(host_register(map_anonymous(), BYTES, 0) == CUDA_ERROR_LAUNCH_FAILED,
	      "nothing can be registered with it");
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* With the host's clock, the time of a record is CLOCK_MONOTONIC minus a constant. */
static void clocks(const char *arg)
{
	int64_t least = INT64_MIN, most = INT64_MAX;
	struct cell *cells;
	uint64_t before;

	(void)arg;
	start("V04_00");
	cells = registered();
	for (int i = 0; i < 50; i++) {
		plan_slot(2, TMD_RELEASE_TIME, &cells[i], i + 1);
		before = now();
		TRY(empty(NULL));
		TRY(cu.cuCtxSynchronize());
		if ((int64_t)(cells[i].time - before) < most)
			most = cells[i].time - before;
		if ((int64_t)(cells[i].time - now()) > least)
			least = cells[i].time - now();
		usleep(1000);
	}
	check(least <= most, "one constant fits all: %lld to %lld ns", (long long)least,
	      (long long)most);
	check(most < -1000000 || least > 1000000, "and it is not 0");
}

int main(void)
{
	static const char *const versions[] = {
		"V02_03", "V02_04", "V03_00", "V04_00", "V04_01", "V05_00",
	};
	static const struct {
		const char *name, *faults, *words;
		void (*body)(const char *arg);
		const char *arg;
	} all[] = {
		{ "streams", "", NULL, streams, "" },
		{ "polled", "release-torn=2000", NULL, polled, "" },
		{ "graphs", "", NULL, graphs, "" },
		{ "rebuilt", "", NULL, rebuilt, "V04_00" },
		{ "file", "host-clock,host-thread", NULL, file, "" },
		{ "registrations", "", NULL, registrations, "" },
		{ "inside", "", NULL, inside, "" },
		{ "outside", "", "outside the device's memory", outside, "no" },
		{ "another's", "", "outside the device's memory", outside, "another context's" },
		{ "another's device", "", "outside the device's memory", outside,
		  "another context's device" },
		{ "unregistered", "", "outside the device's memory", outside, "unregistered" },
		{ "behind the end", "", "outside the device's memory", outside,
		  "behind the end" },
		{ "trap", "", "TMD is invalid", refused, "trap" },
		{ "minimum", "", "TMD is invalid", refused, "minimum" },
		{ "reserved", "", "changed byte 45", refused, "reserved" },
		{ "own", "", "changed byte 88", refused, "own" },
		{ "overwritten", "release-busy", "changed byte 104", refused, "busy" },
		{ "release-lost", "release-lost", NULL, never, "" },
		{ "release-wrong=0", "release-wrong=0", NULL, never, "" },
		{ "release-wrong=32", "release-wrong=32", NULL, elsewhere, "" },
		{ "release-late", "release-late=300", NULL, late, "" },
		{ "late, no context", "release-late=300,reuse-contexts", NULL, late_of_none, "" },
		{ "lose-context", "lose-context=3", "fails, because GPUPART_SIM_FAULTS", lost, "" },
		{ "host-clock", "host-clock", NULL, clocks, "" },
	};
	const char *build = getenv("BUILD");
	char sim[600], faults[128], name[64];
	const char *env[] = { sim, faults, NULL };

	for (unsigned int i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const char *version = versions[i];

		/* A GPU of 24 TPCs. Each TPC has a bit in masks of 64 bits. */
		snprintf(sim, sizeof(sim), "GPUPART_SIM=%s/tests/generated/22.capture",
			 build ? build : "build");
		snprintf(faults, sizeof(faults),
			 "GPUPART_SIM_FAULTS=order=number,tmd-version=0x%c%c", version[2],
			 version[5]);
		scenario(version, layouts, version, env, NULL);
		strcat(faults, ",release-busy");
		snprintf(name, sizeof(name), "%s busy", version);
		scenario(name, busy, version, env, NULL);
	}
	snprintf(sim, sizeof(sim), "GPUPART_SIM=%s", BOARD_B);
	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(faults, sizeof(faults), "GPUPART_SIM_FAULTS=%s", all[i].faults);
		scenario(all[i].name, all[i].body, all[i].arg, env, all[i].words);
	}
	return tap_done();
}
