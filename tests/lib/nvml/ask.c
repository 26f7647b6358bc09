// SPDX-License-Identifier: MIT
/*
 * A test program that opens libnvidia-ml itself, like nvidia-smi. ask [-l LIBRARY] [-n] [-z]
 * QUESTION... prints one line for each question. With -n, the program does not call nvmlInit.
 * With -z, calls are bound lazily. The program does not use gpupart.
 *   memory GPU | memory2 GPU VERSION | protected GPU
 *   list FUNCTION GPU ROOM ENTRY_BYTES | details GPU MODE ROOM VERSION | samples GPU ROOM
 *   utilizations GPU ROOM VERSION | kernel | control FORM PIDS | stats GPU PID | threads NR
 *   forks NR | fork | again | open LIBRARY | apart LIBRARY | again-with LIBRARY
 *
 * If ROOM is -1, "list" passes 5 entries and NULL. After "kernel", ioctl() succeeds for
 * descriptor 1000 and fails for descriptor 1001. "control" makes the simulated library's ioctl()
 * on PIDS, and prints the pids that remain.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/nvml/nvml_abi.h"
#include "lib/topo/rm_ioctl.h"

#define GUARD	0x77	/* no answer may change this value */

static const char *library = "libnvidia-ml.so.1";
static void *lib;
static bool no_init, lazy, apart;

static void *function(const char *name)
{
	void *found = dlsym(lib, name);

	if (!found) {
		printf("no %s\n", name);
		exit(1);
	}
	return found;
}

/* Returns a device. If the GPU does not exist, returns an invalid pointer. */
static void *device_of(const char *gpu)
{
	int (*by_index)(unsigned int, void **) = function("nvmlDeviceGetHandleByIndex_v2");
	void *device;

	return by_index(atoi(gpu), &device) ? (void *)library : device;
}

static void open_library(void)
{
	int (*init)(void);

	lib = apart ? dlmopen(LM_ID_NEWLM, library, RTLD_NOW) :
		      dlopen(library, lazy ? RTLD_LAZY : RTLD_NOW);
	if (!lib) {
		printf("%s\n", dlerror());
		exit(1);
	}
	init = function("nvmlInit_v2");
	if (!no_init && init())
		exit(1);
}

static void say(const char *what, int rc, const void *memory, const void *before, size_t bytes)
{
	printf("%s %d", what, rc);
	if (rc)
		printf(memcmp(memory, before, bytes) ? " CHANGED\n" : " untouched\n");
}

static void ask_memory(const char *name, const char *gpu)
{
	int (*ask)(void *, struct nvml_memory *) = function(name);
	struct nvml_memory memory, before;
	int rc;

	memset(&memory, GUARD, sizeof(memory));
	before = memory;
	rc = ask(device_of(gpu), &memory);
	say("memory", rc, &memory, &before, sizeof(memory));
	if (!rc)
		printf(" %zu %zu %zu\n", memory.total, memory.used, memory.free);
}

static void ask_memory2(const char *gpu, const char *version)
{
	int (*ask)(void *, struct nvml_memory_v2 *) = function("nvmlDeviceGetMemoryInfo_v2");
	struct nvml_memory_v2 memory, before;
	int rc;

	memset(&memory, GUARD, sizeof(memory));
	memory.version = strcmp(version, "2") ? strtoul(version, NULL, 0) : NVML_MEMORY_V2;
	memcpy(&before, &memory, sizeof(memory));
	rc = ask(device_of(gpu), &memory);
	say("memory2", rc, &memory, &before, sizeof(memory));
	if (!rc)
		printf(" %zu %zu %zu %zu\n", memory.total, memory.reserved, memory.used,
		       memory.free);
}

/*
 * Prints entries of @bytes each. Each entry has the pid. If @used_at is not 0, the function also
 * prints the value at @used_at. It checks that nothing was written after the entries.
 */
static void print_entries(const char *entries, unsigned int nr, unsigned int room, size_t bytes,
			  size_t pid_at, size_t used_at)
{
	const size_t all = 2000 * 64;
	uint32_t pid;
	uint64_t used;

	for (unsigned int i = 0; i < nr; i++) {
		memcpy(&pid, entries + i * bytes + pid_at, sizeof(pid));
		memcpy(&used, entries + i * bytes + used_at, sizeof(used));
		printf(" %u", pid);
		if (used_at)
			printf("=%zu", used);
	}
	for (size_t i = (nr < room ? nr : room) * bytes; i < all; i++)
		if (entries[i] != GUARD) {
			printf(" OVERRUN at %zu", i);
			break;
		}
	printf("\n");
}

static char *new_entries(void)
{
	char *entries = malloc(2000 * 64);

	memset(entries, GUARD, 2000 * 64);
	return entries;
}

static void ask_list(const char *name, const char *gpu, int room, size_t bytes)
{
	int (*ask)(void *, unsigned int *, void *) = function(name);
	char *entries = new_entries();
	unsigned int nr = room < 0 ? 5 : room;
	int rc = ask(device_of(gpu), &nr, room < 0 ? NULL : entries);

	printf("list %d %u:", rc, nr);
	print_entries(entries, rc ? 0 : nr, room, bytes, 0, bytes > 4 ? 8 : 0);
	free(entries);
}

static void ask_details(const char *gpu, unsigned int mode, unsigned int room, const char *version)
{
	int (*ask)(void *, void *) = function("nvmlDeviceGetRunningProcessDetailList");
	char *entries = new_entries();
	struct nvml_detail_list list = { .version = strtoul(version, NULL, 0), .mode = mode,
					 .nr = room, .processes = (void *)entries };
	int rc;

	if (!strcmp(version, "1"))
		list.version = NVML_DETAIL_LIST_V1;
	rc = ask(device_of(gpu), &list);
	printf("details %d %u:", rc, list.nr);
	print_entries(entries, rc ? 0 : list.nr, room, sizeof(*list.processes), 0, 8);
	free(entries);
}

static void ask_samples(const char *gpu, int room)
{
	int (*ask)(void *, void *, unsigned int *, unsigned long long) =
		function("nvmlDeviceGetProcessUtilization");
	char *entries = new_entries();
	unsigned int nr = room < 0 ? 0 : room;
	int rc = ask(device_of(gpu), room < 0 ? NULL : entries, &nr, 7);

	printf("samples %d %u:", rc, nr);
	print_entries(entries, rc ? 0 : nr, room, sizeof(struct nvml_sample), 0, 0);
	free(entries);
}

static void ask_utilizations(const char *gpu, unsigned int room, const char *version)
{
	int (*ask)(void *, void *) = function("nvmlDeviceGetProcessesUtilizationInfo");
	char *entries = new_entries();
	struct nvml_utilizations list = { .version = strtoul(version, NULL, 0), .nr = room,
					  .processes = (void *)entries };
	int rc;

	if (!strcmp(version, "1"))
		list.version = NVML_UTILIZATIONS_V1;
	rc = ask(device_of(gpu), &list);
	printf("utilizations %d %u:", rc, list.nr);
	print_entries(entries, rc ? 0 : list.nr, room, sizeof(*list.processes), 8, 0);
	free(entries);
}

static void ask_stats(const char *gpu, unsigned int pid)
{
	int (*ask)(void *, unsigned int, void *) = function("nvmlDeviceGetAccountingStats");
	uint32_t stats[64] = { 0 };
	int rc = ask(device_of(gpu), pid, stats);

	printf("stats %d %u\n", rc, stats[0]);
}

/* -------------------------------------------------------------------- its own ioctl */

#define ANSWERS	1000
#define FAILS	1001

/* A faked answer of the kernel needs no driver, because the fake writes nothing. */
static void be_a_kernel(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ANSWERS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FAILS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENODEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		printf("no seccomp: %s\n", strerror(errno));
		exit(77);
	}
}

/* Prepares a list of processes with spare room, and a request for the list. One value is wrong. */
struct question {
	int fd;
	unsigned long request;
	struct rm_control control;
	struct rm_gpu_pids list;
	uint32_t behind[64];
};

static struct question question_of(const char *form, const char *pids)
{
	struct question q = { .fd = ANSWERS, .request = RM_IOCTL_CONTROL };
	char *end;

	q.control.cmd = RM_GPU_GET_PIDS;
	q.control.params_size = sizeof(q.list);
	memset(&q.list, GUARD, sizeof(q.list) + sizeof(q.behind));
	q.list.id_type = q.list.nr = 0;
	for (; *pids && q.list.nr < RM_GPU_PIDS_MAX; pids = *end ? end + 1 : end)
		q.list.pids[q.list.nr++] = strtoul(pids, &end, 10);
	if (!strcmp(form, "full"))
		while (q.list.nr < RM_GPU_PIDS_MAX)
			q.list.pids[q.list.nr++] = 1;
	q.fd = strcmp(form, "fails") ? ANSWERS : FAILS;
	q.request += !strcmp(form, "request");
	q.control.cmd += !strcmp(form, "cmd");
	q.control.flags = strcmp(form, "flags") ? 0 : 4;
	q.control.params_size += !strcmp(form, "longer") ? 4 : !strcmp(form, "shorter") ? -4 : 0;
	q.control.status = strcmp(form, "status") ? 0 : 0x56;
	q.list.id_type = strcmp(form, "type") ? RM_GPU_PIDS_OF_CLASS : 1;
	if (!strcmp(form, "many"))
		q.list.nr = RM_GPU_PIDS_MAX + 1;
	return q;
}

/*
 * Prints the list. The table after the end of the list must be unchanged or cleared. Other
 * content is reported.
 */
static void print_pids(const struct question *q, const struct question *before)
{
	for (uint32_t i = 0; i < q->list.nr; i++)
		printf(" %u", q->list.pids[i]);
	for (uint32_t i = q->list.nr; i < RM_GPU_PIDS_MAX; i++)
		if (q->list.pids[i] != (i < before->list.nr ? 0 : before->list.pids[i])) {
			printf(" LEFT at %u", i);
			break;
		}
	if (memcmp(q->behind, before->behind, sizeof(q->behind)))
		printf(" OVERRUN");
	printf("\n");
}

static void ask_control(const char *form, const char *pids)
{
	int (*by_library)(int, unsigned long, void *) = function("nvmlSimulatedIoctl");
	struct question q = question_of(form, pids), before;
	int rc;

	q.control.params = strcmp(form, "null") ? (uintptr_t)&q.list : 0;
	memcpy(&before, &q, sizeof(q));
	errno = 333;
	rc = by_library(q.fd, q.request, strcmp(form, "nothing") ? &q.control : NULL);
	printf("control %d %d:", rc, errno);
	if (!memcmp(&before, &q, sizeof(q)))
		printf(" untouched\n");
	else
		print_pids(&q, &before);
}

/* --------------------------------------------------------------- threads and forks */

struct asked {
	int rc;
	struct nvml_memory memory;
	unsigned int nr;
	struct nvml_process_v2 processes[64];
};

static struct asked ask_all(void *device)
{
	int (*memory)(void *, void *) = function("nvmlDeviceGetMemoryInfo");
	int (*list)(void *, unsigned int *, void *) =
		function("nvmlDeviceGetComputeRunningProcesses_v3");
	struct asked asked = { .nr = 64 };

	asked.rc = memory(device, &asked.memory) | list(device, &asked.nr, asked.processes);
	return asked;
}

static void *ask_often(void *wanted)
{
	void *device = device_of("0");

	for (int i = 0; i < 200; i++) {
		struct asked asked = ask_all(device);

		if (memcmp(&asked.memory, &((struct asked *)wanted)->memory,
			   sizeof(asked.memory)) ||
		    asked.nr != ((struct asked *)wanted)->nr || asked.rc)
			return "differs";
	}
	return NULL;
}

static void ask_in_threads(int nr)
{
	struct asked wanted = ask_all(device_of("0"));
	pthread_t threads[64];
	void *differs;
	int bad = 0;

	for (int i = 0; i < nr && i < 64; i++)
		pthread_create(&threads[i], NULL, ask_often, &wanted);
	for (int i = 0; i < nr && i < 64; i++) {
		pthread_join(threads[i], &differs);
		bad += !!differs;
	}
	printf("threads %d: %zu, %u processes, %d differ\n", nr, wanted.memory.total, wanted.nr,
	       bad);
}

static void *ask_always(void *stop)
{
	void *device = device_of("0");

	while (!*(volatile bool *)stop)
		ask_all(device);
	return NULL;
}

/* Forks children while other threads of the program ask questions. */
static void ask_in_forks(int nr)
{
	struct asked wanted = ask_all(device_of("0")), asked;
	void *device = device_of("0");
	int bad = 0, status;
	bool stop = false;
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, ask_always, &stop);
	for (int i = 0; i < nr; i++) {
		if (!fork()) {
			/* ends a child that waits forever for a lock without an owner */
			alarm(60);
			asked = ask_all(device);
			_exit(asked.rc || asked.nr != wanted.nr);
		}
		wait(&status);
		bad += !!status;
		if (bad > 2)
			break;
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("forks: %d bad\n", bad);
}

static int ask_one(char **argv, int left)
{
	if (!strcmp(argv[0], "memory") && left > 1)
		return ask_memory("nvmlDeviceGetMemoryInfo", argv[1]), 2;
	if (!strcmp(argv[0], "protected") && left > 1)
		return ask_memory("nvmlDeviceGetConfComputeProtectedMemoryUsage", argv[1]), 2;
	if (!strcmp(argv[0], "memory2") && left > 2)
		return ask_memory2(argv[1], argv[2]), 3;
	if (!strcmp(argv[0], "list") && left > 4)
		return ask_list(argv[1], argv[2], atoi(argv[3]), atoi(argv[4])), 5;
	if (!strcmp(argv[0], "details") && left > 4)
		return ask_details(argv[1], atoi(argv[2]), atoi(argv[3]), argv[4]), 5;
	if (!strcmp(argv[0], "samples") && left > 2)
		return ask_samples(argv[1], atoi(argv[2])), 3;
	if (!strcmp(argv[0], "utilizations") && left > 3)
		return ask_utilizations(argv[1], atoi(argv[2]), argv[3]), 4;
	if (!strcmp(argv[0], "kernel"))
		return be_a_kernel(), 1;
	if (!strcmp(argv[0], "control") && left > 2)
		return ask_control(argv[1], argv[2]), 3;
	if (!strcmp(argv[0], "stats") && left > 2)
		return ask_stats(argv[1], atoi(argv[2])), 3;
	if (!strcmp(argv[0], "forks") && left > 1)
		return ask_in_forks(atoi(argv[1])), 2;
	if (!strcmp(argv[0], "threads") && left > 1)
		return ask_in_threads(atoi(argv[1])), 2;
	return 0;
}

/*
 * A child asks the questions after "fork". Before the questions after "again", the program opens
 * the library again. "open" adds a second library, and "again-with" replaces the first library by
 * a different library. "apart" uses a library with a separate libc.
 */
static int change(char **argv, int left)
{
	const char *word = argv[0];
	int status;

	if (!strncmp(word, "again", 5))
		dlclose(lib);
	apart = !strcmp(word, "apart");
	if ((apart || !strcmp(word, "open") || !strcmp(word, "again-with")) && left > 1) {
		library = argv[1];
		open_library();
		return 2;
	}
	if (!strcmp(word, "again")) {
		open_library();
	} else if (strcmp(word, "fork")) {
		return 0;
	} else if (fork()) {
		wait(&status);
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	return 1;
}

int main(int argc, char **argv)
{
	int i = 1, took;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; i < argc && argv[i][0] == '-'; i++)
		if (!strcmp(argv[i], "-n"))
			no_init = true;
		else if (!strcmp(argv[i], "-z"))
			lazy = true;
		else
			library = argv[++i];
	open_library();
	for (; i < argc; i += took) {
		took = change(argv + i, argc - i);
		if (!took)
			took = ask_one(argv + i, argc - i);
		if (!took) {
			fprintf(stderr, "ask: '%s'?\n", argv[i]);
			return 2;
		}
	}
	return 0;
}
