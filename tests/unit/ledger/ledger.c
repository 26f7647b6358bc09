// SPDX-License-Identifier: MIT
/*
 * Tests the ledger of a tenant's memory with threads, with processes, and with files that have
 * wrong contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/core/state_dir.h"
#include "lib/ledger/file.h"
#include "tests/ledger_leave.h"
#include "tests/tap.h"

#define GPU "0000:0d:00.0"
#define OTHER_GPU "0000:e1:00.0"

static char tenant[LEDGER_NAME_LEN], path[200];

static void name_tenant(const char *what)
{
	snprintf(tenant, sizeof(tenant), "test-%s-%d", what, getpid());
	snprintf(path, sizeof(path), STATE_DIR_ROOT "/gpupart-%u/mem-%s", geteuid(), tenant);
}

static struct ledger *join(void)
{
	struct ledger *ledger = NULL;
	int err = ledger_join(tenant, &ledger);

	if (err)
		printf("# join: %d\n", err);
	return err ? NULL : ledger;
}

/*
 * Returns the memory in use on a GPU. Any process reads the same value. Stores the number of the
 * GPU's processes in @nr.
 */
static uint64_t seen(const char *pci, unsigned int *nr)
{
	struct ledger_view *view;
	uint64_t used = 0;

	*nr = 0;
	if (ledger_read(geteuid(), tenant, &view))
		return UINT64_MAX;
	*nr = view->nr_processes;
	for (unsigned int i = 0; i < view->nr_gpus; i++)
		if (!strcmp(view->gpus[i].pci, pci))
			used = view->gpus[i].used;
	free(view);
	return used;
}

static bool is_seen(uint64_t used, unsigned int nr)
{
	unsigned int found;
	uint64_t is = seen(GPU, &found);

	if (is != used || found != nr)
		printf("# %llu bytes of %u processes\n", (unsigned long long)is, found);
	return is == used && found == nr;
}

static bool exited(pid_t pid)
{
	int wstatus;

	return waitpid(pid, &wstatus, 0) == pid && WIFEXITED(wstatus) && !WEXITSTATUS(wstatus);
}

static void wait_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) < 0)
		_exit(3);
}

static void send_byte(int fd)
{
	if (write(fd, "", 1) < 0)
		_exit(3);
}

/* ------------------------------------------------------------------------ one process */

static void test_names(void)
{
	struct ledger *ledger;

	tap_ok(state_dir_name_valid("a") && state_dir_name_valid("A_9.b-c") &&
	       state_dir_name_valid("123-4592be-effffffc"), "names that are good");
	tap_ok(!state_dir_name_valid("") && !state_dir_name_valid("-a") &&
		       !state_dir_name_valid("a\n") && !state_dir_name_valid("a/b") &&
		       !state_dir_name_valid("a b") &&
		       !state_dir_name_valid("0123456789012345678901234567890123456789"
					     "012345678901234567890123"),
	       "names that are none");
	tap_ok(ledger_join("../x", &ledger) == -EINVAL, "such a name is refused");
}

static void test_account(void)
{
	struct ledger *ledger;
	struct stat st;
	uint64_t before;
	int gpu, other;

	name_tenant("account");
	ledger = join();
	if (!tap_ok(ledger, "joined"))
		return;
	tap_ok(!stat(path, &st) && (st.st_mode & 07777) == 0600 && st.st_uid == geteuid(),
	       "its file is 0600 and ours");
	gpu = ledger_gpu(ledger, GPU);
	other = ledger_gpu(ledger, OTHER_GPU);
	tap_ok(gpu >= 0 && other >= 0 && gpu != other && ledger_gpu(ledger, GPU) == gpu,
	       "two GPUs have two numbers, and keep them");
	tap_ok(ledger_gpu(ledger, "") == -EINVAL && ledger_gpu(ledger, "0000:0d:00.0 and more!") ==
	       -EINVAL, "what is no address is refused");
	tap_ok(!ledger_quota(ledger, gpu) && !ledger_charge(ledger, gpu, 1ull << 50) &&
	       ledger_used(ledger, gpu) == 1ull << 50, "without a quota everything fits");
	ledger_release(ledger, gpu, 1ull << 50);
	tap_ok(!ledger_set_quota(ledger, gpu, 1000, &before) && !before &&
	       ledger_quota(ledger, gpu) == 1000, "a quota");
	tap_ok(!ledger_charge(ledger, gpu, 600) && ledger_charge(ledger, gpu, 401) == -ENOMEM &&
	       ledger_used(ledger, gpu) == 600, "more than the quota leaves is refused whole");
	tap_ok(!ledger_charge(ledger, gpu, 400) && ledger_charge(ledger, gpu, 1) == -ENOMEM &&
	       !ledger_charge(ledger, gpu, 0), "the last byte fits, and no more");
	tap_ok(!ledger_charge(ledger, other, 5000) && ledger_used(ledger, gpu) == 1000 &&
	       ledger_used(ledger, other) == 5000, "another GPU has an account of its own");
	tap_ok(!ledger_set_quota(ledger, gpu, 500, &before) && before == 1000 &&
	       ledger_used(ledger, gpu) == 1000 && ledger_charge(ledger, gpu, 1) == -ENOMEM,
	       "a quota below what is used takes nothing, and gives nothing");
	ledger_release(ledger, gpu, 501);
	tap_ok(!ledger_charge(ledger, gpu, 1) && ledger_charge(ledger, gpu, 1) == -ENOMEM,
	       "once enough is given back, it gives again");
	ledger_charge_always(ledger, gpu, 700);
	tap_ok(ledger_used(ledger, gpu) == 1200 && ledger_used_own(ledger, gpu) == 1200,
	       "what cannot be refused goes beyond");
	ledger_release(ledger, gpu, 5000);
	tap_ok(!ledger_used(ledger, gpu), "never below zero");
	tap_ok(ledger_charge(ledger, gpu, UINT64_MAX) == -ENOMEM && !ledger_used(ledger, gpu),
	       "a size that wraps round is too much");
	ledger_charge_always(ledger, gpu, UINT64_MAX - 5);
	tap_ok(ledger_charge(ledger, gpu, 10) == -ENOMEM, "nor does the sum wrap round");
	ledger_release(ledger, gpu, UINT64_MAX);
	tap_ok(ledger_set_quota_first(ledger, gpu, 7) == 500 && ledger_quota(ledger, gpu) == 500,
	       "a first quota leaves the one that is there");
	tap_ok(ledger_set_quota_first(ledger, other, 7) == 7, "and is one where none was");
	tap_ok(ledger_charge(ledger, 99, 1) == -EINVAL && ledger_charge(ledger, -1, 1) == -EINVAL &&
	       !ledger_used(ledger, 99), "a number that no GPU has is refused");
	ledger_leave(ledger, true);
	tap_ok(access(path, F_OK) && errno == ENOENT, "the last one out takes the file away");
}

static void test_gpus(void)
{
	struct ledger *ledger;
	char pci[LEDGER_PCI_LEN];
	bool good = true;

	name_tenant("gpus");
	ledger = join();
	for (int i = 0; ledger && i < LEDGER_MAX_GPUS; i++) {
		snprintf(pci, sizeof(pci), "0000:%02x:00.0", i);
		good = good && ledger_gpu(ledger, pci) == i && !ledger_charge(ledger, i, i);
	}
	tap_ok(ledger && good && ledger_gpu(ledger, "0000:ff:00.0") == -ENOSPC &&
	       ledger_used(ledger, LEDGER_MAX_GPUS - 1) == LEDGER_MAX_GPUS - 1,
	       "%d GPUs, and not one more", LEDGER_MAX_GPUS);
	ledger_leave(ledger, true);
}

static void test_many(void)
{
	enum { NR = 1100 };
	static struct ledger *ledgers[NR];
	bool good = true;
	int gpu = -1, i;

	name_tenant("many");
	for (i = 0; i < NR && good; i++) {
		ledgers[i] = join();
		gpu = ledgers[i] ? ledger_gpu(ledgers[i], GPU) : -1;
		good = gpu >= 0 && !ledger_charge(ledgers[i], gpu, 3);
	}
	tap_ok(good && is_seen(3 * NR, NR), "%d slots, summed up", NR);
	ledger_set_quota(ledgers[0], gpu, 3 * NR + 1, NULL);
	tap_ok(!ledger_charge(ledgers[5], gpu, 1) && ledger_charge(ledgers[6], gpu, 1) == -ENOMEM,
	       "and the quota is of their sum");
	while (i--)
		ledger_leave(ledgers[i], true);
	tap_ok(access(path, F_OK), "the file is gone with the last of them");
}

/* --------------------------------------------------------------------------- threads */

struct thread {
	pthread_t thread;
	struct ledger *ledger;
	int gpu, seed, too_much;
};

#define QUOTA 100000

static void *charge_and_release(void *arg)
{
	struct thread *t = arg;
	unsigned int seed = t->seed;

	for (int i = 0; i < 20000; i++) {
		uint64_t bytes = rand_r(&seed) % 40000;

		if (ledger_charge(t->ledger, t->gpu, bytes))
			continue;
		if (i % 64 == 0 && ledger_used(t->ledger, t->gpu) > QUOTA)
			t->too_much++;
		ledger_release(t->ledger, t->gpu, bytes);
	}
	return NULL;
}

static void test_threads(void)
{
	struct thread threads[4];
	struct ledger *ledger;
	int gpu, too_much = 0;

	name_tenant("threads");
	ledger = join();
	gpu = ledger_gpu(ledger, GPU);
	ledger_set_quota(ledger, gpu, QUOTA, NULL);
	for (int i = 0; i < 4; i++) {
		threads[i] = (struct thread){ .ledger = ledger, .gpu = gpu, .seed = i };
		pthread_create(&threads[i].thread, NULL, charge_and_release, &threads[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i].thread, NULL);
		too_much += threads[i].too_much;
	}
	tap_ok(!too_much, "threads never have more than the quota");
	tap_ok(!ledger_used(ledger, gpu) && !ledger_charge(ledger, gpu, QUOTA),
	       "and in the end nothing, nor anything reserved");
	ledger_leave(ledger, true);
}

/* ------------------------------------------------------------------------- processes */

/* A barrier for processes. The processes continue at nearly the same time. */
struct meeting {
	atomic_int here;
	atomic_uint round;
};

static void meet(struct meeting *meeting, int nr)
{
	unsigned int round = meeting->round;

	if (atomic_fetch_add(&meeting->here, 1) + 1 == nr) {
		meeting->here = 0;
		meeting->round++;
		return;
	}
	for (int i = 0; meeting->round == round; i++)
		if (i > 2000)
			sched_yield();
}

#define ASKING	2
#define ROUNDS	50000

struct asked {
	struct meeting begin, end;
	atomic_uchar got[ROUNDS];
};

static void ask(struct asked *asked)
{
	struct ledger *ledger = join();
	int gpu = ledger_gpu(ledger, GPU);

	ledger_set_quota(ledger, gpu, 1000, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		bool got;

		meet(&asked->begin, ASKING);
		got = !ledger_charge(ledger, gpu, 501);
		asked->got[round] += got;
		meet(&asked->end, ASKING);
		if (got)
			ledger_release(ledger, gpu, 501);
	}
	ledger_leave(ledger, false);
}

/*
 * In each round, several processes each request more than half of the quota at the same time.
 * Exactly one of these requests must succeed.
 */
static void test_one_gets_it(void)
{
	int none = 0, several = 0;
	struct asked *asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = true;
	pid_t pids[ASKING];

	name_tenant("one");
	for (int i = 0; i < ASKING; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			ask(asked);
			_exit(0);
		}
	}
	for (int i = 0; i < ASKING; i++)
		good = exited(pids[i]) && good;
	for (int i = 0; i < ROUNDS; i++) {
		none += !asked->got[i];
		several += asked->got[i] > 1;
	}
	tap_ok(good && !several, "%d processes ask at once: never do both get it (%d of %d)",
	       ASKING, several, ROUNDS);
	tap_ok(!none, "and never neither (%d)", none);
	tap_ok(ledger_sweep(tenant) && access(path, F_OK), "a sweep takes the file away");
	munmap(asked, sizeof(*asked));
}

static void test_fork(void)
{
	struct ledger *ledger, *own;
	int to[2], from[2], gpu;
	pid_t pid;

	name_tenant("fork");
	ledger = join();
	gpu = ledger_gpu(ledger, GPU);
	ledger_charge(ledger, gpu, 100);
	if (pipe(to) || pipe(from))
		return;
	pid = fork();
	if (!pid) {
		bool good = ledger_charge(ledger, gpu, 1) == -ESRCH && !ledger_used(ledger, gpu) &&
			    ledger_gpu(ledger, GPU) == -ESRCH;

		ledger_charge_always(ledger, gpu, 50);
		ledger_release(ledger, gpu, 50);
		ledger_leave(ledger, true);
		own = join();
		good = good && own && !ledger_charge(own, ledger_gpu(own, GPU), 7);
		send_byte(from[1]);
		wait_byte(to[0]);
		_exit(!good);
	}
	wait_byte(from[0]);
	tap_ok(is_seen(107, 2), "a child is not its parent, and has a slot where it joins");
	send_byte(to[1]);
	tap_ok(exited(pid), "before that it has nothing, and changes nothing");
	tap_ok(is_seen(100, 1), "its end gives its own back");
	pid = fork();
	if (!pid) {
		wait_byte(to[0]);
		_exit(0);
	}
	ledger_leave(ledger, false);
	tap_ok(is_seen(0, 0), "a child that lives on does not keep its parent's slot");
	send_byte(to[1]);
	exited(pid);
	ledger_sweep(tenant);
}

/* Starts a child that joins, charges 100 bytes, runs @then and stays alive. */
static pid_t start(void (*then)(void), int *to, int *from)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	struct ledger *ledger = join();

	ledger_charge(ledger, ledger_gpu(ledger, GPU), 100);
	then();
	if (to) {
		send_byte(from[1]);
		wait_byte(to[0]);
	}
	_exit(!(ledger_charge(ledger, ledger_gpu(ledger, GPU), 1) == 0 &&
		ledger_used(ledger, ledger_gpu(ledger, GPU)) == 101));
}

static void do_nothing(void)
{
}

static void test_killed(void)
{
	int to[2], from[2];
	struct stat st, later;
	pid_t pid;
	bool good = true;

	name_tenant("killed");
	if (pipe(to) || pipe(from))
		return;
	pid = start(do_nothing, to, from);
	wait_byte(from[0]);
	tap_ok(is_seen(100, 1), "another process is seen");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(is_seen(0, 0), "and not once it was killed");
	stat(path, &st);
	for (int i = 0; i < 40; i++) {
		pid = start(do_nothing, to, from);
		wait_byte(from[0]);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		good = good && is_seen(0, 0);
	}
	tap_ok(good && !stat(path, &later) && later.st_size == st.st_size,
	       "slots of the dead are taken again: the file does not grow");
	tap_ok(ledger_sweep(tenant) && access(path, F_OK), "and nothing is left of them");
}

static void close_all(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		char name[32], target[64];
		ssize_t len;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		len = readlink(name, target, sizeof(target) - 1);
		if (len > 0 && strncmp(target, "pipe:", 5))
			close(fd);
	}
}

static void test_closed(void)
{
	int to[2], from[2];
	pid_t pid;

	name_tenant("closed");
	if (pipe(to) || pipe(from))
		return;
	pid = start(close_all, to, from);
	wait_byte(from[0]);
	tap_ok(is_seen(100, 1), "a process that closed all descriptors still counts");
	tap_ok(!ledger_sweep(tenant), "and keeps the file");
	send_byte(to[1]);
	tap_ok(exited(pid), "and can be charged");
	tap_ok(is_seen(0, 0), "until it ends");
	ledger_sweep(tenant);
}

static int exec_ready = -1;

/* The new program reports that it runs. */
static void exec_other(void)
{
	dup2(exec_ready, 9);
	execl("/bin/sh", "sh", "-c", "echo >&9; exec sleep 100", NULL);
	_exit(4);
}

static void test_exec(void)
{
	int ready[2];
	pid_t pid;

	name_tenant("exec");
	if (pipe(ready))
		return;
	exec_ready = ready[1];
	pid = start(exec_other, NULL, NULL);
	close(ready[1]);
	wait_byte(ready[0]);
	close(ready[0]);
	tap_ok(is_seen(0, 0), "after an exec the process has nothing");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ledger_sweep(tenant);
}

/*
 * A process makes a clone without fork handlers, and the clone outlives its parent. When the
 * parent ends, the parent's slot must be freed.
 */
static void clone_raw(void)
{
	setpgid(0, 0);
	if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) {
		pause();
		_exit(0);
	}
}

static void test_clone(void)
{
	int to[2], from[2];
	pid_t pid;

	name_tenant("clone");
	if (pipe(to) || pipe(from))
		return;
	pid = start(clone_raw, to, from);
	wait_byte(from[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(is_seen(0, 0), "neither does a child by clone() keep its parent's");
	kill(-pid, SIGKILL);
	ledger_sweep(tenant);
}

/* ---------------------------------------------------------- concurrency and races */

static void test_outside(void)
{
	struct ledger *ledger;
	struct ledger_view *view;
	char names[64][LEDGER_NAME_LEN];
	uint64_t before = 1;
	unsigned int nr;
	bool listed = false;
	int gpu;

	name_tenant("outside");
	tap_ok(ledger_read(geteuid(), tenant, &view) == -ENOENT &&
	       ledger_set_quota_of(tenant, GPU, 5, false, NULL) == -ENOENT && access(path, F_OK),
	       "a tenant that is not there is not made by looking");
	tap_ok(!ledger_set_quota_of(tenant, GPU, 5, true, &before) && !before &&
	       !access(path, F_OK), "it may be made by a quota");
	ledger = join();
	gpu = ledger_gpu(ledger, GPU);
	tap_ok(ledger_quota(ledger, gpu) == 5, "who joins finds it");
	tap_ok(!ledger_set_quota_of(tenant, GPU, 20, false, &before) && before == 5 &&
	       ledger_quota(ledger, gpu) == 20, "it changes while a program runs");
	ledger_charge(ledger, gpu, 11);
	nr = ledger_list(geteuid(), names, 64);
	for (unsigned int i = 0; i < nr && i < 64; i++)
		listed |= !strcmp(names[i], tenant);
	tap_ok(listed, "it is listed");
	tap_ok(!ledger_read(geteuid(), tenant, &view) && view->nr_gpus == 1 &&
	       !strcmp(view->gpus[0].pci, GPU) && view->gpus[0].quota == 20 &&
	       view->gpus[0].used == 11 && view->nr_processes == 1 &&
	       view->processes[0].pid == getpid() && view->processes[0].inner == getpid() &&
	       view->processes[0].used[0] == 11 &&
	       !strcmp(view->processes[0].program, program_invocation_short_name),
	       "and seen: quota, use, process");
	free(view);
	tap_ok(!ledger_sweep(tenant) && !access(path, F_OK), "no sweep takes it from us");
	ledger_leave(ledger, false);
	tap_ok(!access(path, F_OK) && ledger_sweep(tenant), "who leaves may let it stay");
}

/*
 * Processes join, leave and remove the file in a loop. A process that has joined must always be in
 * the file.
 */
static void test_race(void)
{
	enum { NR = 4 };
	pid_t pids[NR];
	bool good = true;

	name_tenant("race");
	for (int i = 0; i < NR; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		for (int n = 0; n < 300; n++) {
			struct ledger *ledger = join();
			struct ledger_view *view = NULL;
			bool found = false;

			if (!ledger || ledger_charge(ledger, ledger_gpu(ledger, GPU), 1) ||
			    ledger_read(geteuid(), tenant, &view))
				_exit(1);
			for (unsigned int p = 0; p < view->nr_processes; p++)
				found |= view->processes[p].pid == getpid();
			free(view);
			if (!found)
				_exit(2);
			ledger_leave(ledger, n % 2);
			if (n % 3 == 0)
				ledger_sweep(tenant);
		}
		_exit(0);
	}
	for (int i = 0; i < NR; i++)
		good = exited(pids[i]) && good;
	tap_ok(good, "who joins while another takes the file away is in the one that is there");
	ledger_sweep(tenant);
	tap_ok(access(path, F_OK), "and in the end there is none");
}

/* ---------------------------------------------------------------------- pid namespaces */

/* If necessary, uses a new user namespace, and keeps the uid of this process. */
static bool unshare_pids(void)
{
	char text[40];
	int fd, len = snprintf(text, sizeof(text), "%u %u 1", geteuid(), geteuid());

	if (!unshare(CLONE_NEWPID))
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, len) == len;
}

/*
 * Runs as process 1 of a namespace. The process joins, reads the list, reports the list, and
 * waits.
 */
static bool in_namespace(int to, int from)
{
	struct ledger *own = join();
	struct ledger_view *view;
	unsigned int nr;
	bool good = own && getpid() == 1 && !ledger_charge(own, ledger_gpu(own, GPU), 5);

	good = good && seen(GPU, &nr) == 15 && nr == 2 &&
	       ledger_used(own, ledger_gpu(own, GPU)) == 15 &&
	       !ledger_read(geteuid(), tenant, &view);
	for (unsigned int i = 0; good && i < view->nr_processes; i++)
		good = view->processes[i].pid == (view->processes[i].used[0] == 5);
	send_byte(from);
	wait_byte(to);
	return good;
}

static void test_namespaces(void)
{
	struct ledger_view *view;
	struct ledger *ledger;
	int to[2], from[2], outer = -1, inner = -1, wstatus;
	unsigned int nr;
	char byte;
	pid_t pid;

	name_tenant("namespaces");
	ledger = join();
	ledger_charge(ledger, ledger_gpu(ledger, GPU), 10);
	if (pipe(to) || pipe(from))
		return;
	pid = fork();
	if (!pid) {
		pid_t child;

		if (!unshare_pids())
			_exit(77);
		child = fork();
		if (!child)
			_exit(!in_namespace(to[0], from[1]));
		_exit(!exited(child));
	}
	close(from[1]);
	if (read(from[0], &byte, 1) != 1) {
		waitpid(pid, &wstatus, 0);
		if (WIFEXITED(wstatus) && WEXITSTATUS(wstatus) == 77)
			tap_skip("a pid namespace cannot be made here");
		else
			tap_ok(0, "a process in a pid namespace of its own");
		goto leave;
	}
	tap_ok(seen(GPU, &nr) == 15 && nr == 2, "a process of another pid namespace counts");
	if (!ledger_read(geteuid(), tenant, &view)) {
		for (unsigned int i = 0; i < view->nr_processes; i++)
			if (view->processes[i].used[0] == 5) {
				outer = view->processes[i].pid;
				inner = view->processes[i].inner;
			}
		free(view);
	}
	tap_ok(inner == 1 && outer > 1 && !kill(outer, 0), "it is 1 there, and %d here", outer);
	send_byte(to[1]);
	tap_ok(exited(pid), "from in there we count too, with no number");
	tap_ok(is_seen(10, 1), "and it goes with its namespace");
leave:
	ledger_leave(ledger, true);
}

/* --------------------------------------------------------------------------- hostile */

static int write_file(const char *text, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), bad;

	bad = fd < 0 || write(fd, text, len) != (ssize_t)len || fchmod(fd, mode);
	if (fd >= 0)
		close(fd);
	return bad;
}

/* Checks the errors of both ways to open the file at @path. */
static bool both_say(int looking, int joining)
{
	struct ledger *ledger = NULL;
	struct ledger_view *view = NULL;
	int look = ledger_read(geteuid(), tenant, &view);
	int joined = ledger_join(tenant, &ledger);

	if (!look)
		free(view);
	if (!joined)
		ledger_leave(ledger, false);
	if (look != looking || joined != joining)
		printf("# looking: %d, joining: %d\n", look, joined);
	return look == looking && joined == joining;
}

static void test_files_that_lie(void)
{
	struct ledger_header header = { 0 };
	char target[] = STATE_DIR_ROOT "/gpupart-test-XXXXXX";
	int fd = mkstemp(target);
	struct stat st;

	name_tenant("hostile");
	if (!tap_ok(fd >= 0 && !symlink(target, path) && both_say(-EPERM, -EPERM) &&
		    !fstat(fd, &st) && !st.st_size, "a link is not followed"))
		return;
	unlink(path);
	unlink(target);
	close(fd);
	tap_ok(!mkfifo(path, 0600) && both_say(-EPERM, -EPERM), "a pipe is no ledger");
	unlink(path);
	tap_ok(!mkdir(path, 0700) && both_say(-EPERM, -EPERM), "nor is a folder");
	rmdir(path);
	tap_ok(!write_file("", 0, 0660) && both_say(-EPERM, -EPERM),
	       "what others may write is not trusted");
	unlink(path);
	if (!geteuid()) {
		tap_ok(!write_file("", 0, 0600) && !chown(path, 4242, -1) &&
		       both_say(-EPERM, -EPERM), "nor what is another user's");
		unlink(path);
	} else {
		tap_skip("who is not root makes no file of another user");
	}
	tap_ok(!write_file("", 0, 0600) && both_say(-EPROTO, 0), "an empty file is made a ledger");
	unlink(path);
	tap_ok(!write_file("garbage, garbage", 16, 0600) && both_say(-EPROTO, 0),
	       "so is one of garbage");
	unlink(path);
	shared_init(&header.shared, LEDGER_LAYOUT, sizeof(header));
	atomic_init(&header.shared.magic, SHARED_MAGIC(SHARED_LEDGER));
	snprintf(header.shared.name, sizeof(header.shared.name), "%s", tenant);
	atomic_init(&header.nr_slots, 3);
	tap_ok(!write_file((char *)&header, sizeof(header), 0600) && both_say(-EPROTO, 0),
	       "so is one that is too short for its slots");
	unlink(path);
	atomic_init(&header.nr_slots, 0);
	atomic_init(&header.shared.nr_gpus, LEDGER_MAX_GPUS + 1);
	tap_ok(!write_file((char *)&header, sizeof(header), 0600) && both_say(-EPROTO, 0),
	       "or has too many GPUs");
	unlink(path);
	atomic_init(&header.shared.nr_gpus, 0);
	header.shared.name[0] ^= 1;
	tap_ok(!write_file((char *)&header, sizeof(header), 0600) && both_say(-EPROTO, 0),
	       "or is another tenant's");
	unlink(path);
	header.shared.name[0] ^= 1;
	header.shared.layout++;
	tap_ok(!write_file((char *)&header, sizeof(header), 0600) && both_say(0, -EPROTO) &&
	       both_say(0, -EPROTO),
	       "one of another layout is not created again, even without processes");
	tap_ok(ledger_sweep(tenant) && access(path, F_OK), "and can be taken away");
}

/* Other processes must not repair the damaged file of a living process. */
static void test_held(void)
{
	int to[2], from[2];
	pid_t pid;

	name_tenant("held");
	if (pipe(to) || pipe(from))
		return;
	pid = start(do_nothing, to, from);
	wait_byte(from[0]);
	tap_ok(!truncate(path, 4500) && both_say(-EPROTO, -EPROTO),
	       "a file cut short under those who are in it ends no reader");
	tap_ok(!truncate(path, 0) && both_say(-EPROTO, -EPROTO), "nor does one cut to nothing");
	tap_ok(!ledger_sweep(tenant) && !access(path, F_OK), "and it is not taken away");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(both_say(-EPROTO, 0) && ledger_sweep(tenant) && access(path, F_OK),
	       "without processes it is created again");
}

/* The slots have no owner, but they contain values. Values in such slots must not count. */
static void test_claims(void)
{
	struct ledger_slot slot = { .start = 1, .program = "ghost" };
	struct ledger *ledger;
	int fd, gpu;

	name_tenant("claims");
	ledger = join();
	gpu = ledger_gpu(ledger, GPU);
	ledger_set_quota(ledger, gpu, 1000, NULL);
	slot.pid_namespace = state_dir_pid_namespace() + 1;
	atomic_init(&slot.pid, 1);
	atomic_init(&slot.gpus[gpu].used, 5000);
	fd = open(path, O_RDWR | O_CLOEXEC);
	for (int i = 1; i < 4; i++)
		if (pwrite(fd, &slot, sizeof(slot), LEDGER_END_OF(i)) != sizeof(slot))
			tap_ok(0, "the file can be written");
	if (pwrite(fd, &(uint32_t){ 4 }, 4, offsetof(struct ledger_header, nr_slots)) != 4)
		tap_ok(0, "the file can be written");
	close(fd);
	tap_ok(is_seen(0, 1), "slots without a lock have no owner");
	tap_ok(!ledger_charge(ledger, gpu, 1000), "and take no room");
	ledger_leave(ledger, true);
}

/*
 * A pid alone does not identify a process. So the library also compares the start time and the
 * namespace.
 */
static void test_lives(void)
{
	uint64_t own = state_dir_pid_namespace(), start = state_dir_process_start(getpid());
	struct ledger_slot slot = { .start = start, .pid_namespace = own };
	struct ledger *ledger;
	pid_t pid = fork();
	int fd;

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	atomic_init(&slot.pid, getpid());
	tap_ok(ledger_file_lives(-1, 0, &slot, own), "without the file: a process lives");
	slot.start = start - 100;
	tap_ok(!ledger_file_lives(-1, 0, &slot, own), "another that has its number now does not");
	slot.pid_namespace = own + 1;
	tap_ok(ledger_file_lives(-1, 0, &slot, own), "one of another namespace may");
	slot.pid_namespace = own;
	slot.start = start;
	atomic_store(&slot.pid, pid);
	tap_ok(!ledger_file_lives(-1, 0, &slot, own), "one that is gone does not");
	/* A clone that was never reported now holds the slot's lock. */
	name_tenant("lives");
	ledger = join();
	atomic_store(&slot.gpus[ledger_gpu(ledger, GPU)].used, 77);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (pwrite(fd, &slot, sizeof(slot), LEDGER_END_OF(1)) != sizeof(slot) ||
	    pwrite(fd, &(uint32_t){ 2 }, 4, offsetof(struct ledger_header, nr_slots)) != 4)
		tap_ok(0, "the file can be written");
	tap_ok(ledger_file_lock(fd, LEDGER_LOCK_OF(1)) && is_seen(0, 1),
	       "nor if a process has its lock");
	close(fd);
	ledger_leave(ledger, true);
}

/*
 * While the request of one process is not decided yet, other processes must wait with their
 * requests.
 */
static void *withdraw(void *arg)
{
	_Atomic uint64_t *reserved = arg;

	usleep(20000);
	atomic_store(reserved, 0);
	return NULL;
}

static void test_reserved(void)
{
	_Atomic uint64_t *reserved = NULL;
	struct ledger_memory *block;
	int to[2], from[2], gpu, fd;
	struct ledger *ledger;
	pthread_t thread;
	pid_t pid;

	name_tenant("reserved");
	if (pipe(to) || pipe(from))
		return;
	pid = start(do_nothing, to, from);
	wait_byte(from[0]);
	ledger = join();
	gpu = ledger_gpu(ledger, GPU);
	ledger_set_quota(ledger, gpu, 1000, NULL);
	fd = open(path, O_RDWR | O_CLOEXEC);
	block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	for (int i = 0; i < 2; i++)
		if (atomic_load(&block->slots[i].pid) == pid)
			reserved = &block->slots[i].gpus[gpu].reserved;
	if (!tap_ok(reserved, "the other's slot is found"))
		return;
	atomic_store(reserved, 600);
	pthread_create(&thread, NULL, withdraw, reserved);
	tap_ok(!ledger_charge(ledger, gpu, 501), "what another may yet not get is waited for");
	pthread_join(thread, NULL);
	ledger_release(ledger, gpu, 501);
	atomic_store(reserved, 600);
	tap_ok(ledger_charge(ledger, gpu, 901) == -ENOMEM && !ledger_charge(ledger, gpu, 300),
	       "what fits in no case is refused at once, and what fits in any is not");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(!ledger_charge(ledger, gpu, 700), "what a dead one had reserved is free");
	munmap(block, sizeof(*block));
	ledger_leave(ledger, true);
}

static void test_folder(void)
{
	struct ledger *ledger;
	struct ledger_view *view;
	pid_t pid;

	if (geteuid()) {
		tap_skip("who is not root cannot become another user");
		return;
	}
	name_tenant("folder");
	pid = fork();
	if (!pid) {
		/* A different user has already created this folder. */
		if (mkdir(STATE_DIR_ROOT "/gpupart-4243", 0777) || setuid(4243))
			_exit(2);
		_exit(!(ledger_join(tenant, &ledger) == -EPERM &&
			ledger_read(4243, tenant, &view) == -EPERM));
	}
	tap_ok(exited(pid), "a folder that is another's is not trusted");
	rmdir(STATE_DIR_ROOT "/gpupart-4243");
}

/* ------------------------------------------------------------------- a full /dev/shm */

#define SMALL_SHM "size=512k,mode=1777"

/* Fills /dev/shm until @left pages are free. */
static bool fill_shm(int left)
{
	int fd = open(STATE_DIR_ROOT "/fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static char page[4096];
	off_t size = 0;

	while (fd >= 0 && write(fd, page, sizeof(page)) == sizeof(page))
		size += sizeof(page);
	return fd >= 0 && size > left * 4096 && !ftruncate(fd, size - left * 4096) && !close(fd);
}

/*
 * Runs with a private /dev/shm. Returns 0 or the number of the failed check. If a private
 * /dev/shm is impossible, returns 77.
 */
static int in_full_shm(void)
{
	uint64_t before;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/dev/shm", "tmpfs", 0, SMALL_SHM))
		return 77;
	if (ledger_set_quota_of(tenant, GPU, 1000, true, &before) || !fill_shm(0))
		return 1;
	/* Five or six slots fit into a page. */
	for (int i = 0; i < 20; i++)
		if (!join())
			return 2;
	if (unlink(STATE_DIR_ROOT "/fill") || unlink(path) || !fill_shm(2))
		return 3;
	return ledger_set_quota_of(tenant, GPU, 1000, true, &before) == -ENOSPC ? 0 : 4;
}

static void test_full(void)
{
	int wstatus;
	pid_t pid;

	name_tenant("full");
	pid = fork();
	if (!pid)
		_exit(in_full_shm());
	waitpid(pid, &wstatus, 0);
	if (WIFEXITED(wstatus) && WEXITSTATUS(wstatus) == 77)
		tap_skip("a /dev/shm of its own cannot be made here");
	else
		tap_ok(!wstatus, "full later on, processes join; full before, it is refused: %x",
		       wstatus);
}

int main(void)
{
	test_names();
	test_account();
	test_gpus();
	test_many();
	test_threads();
	test_one_gets_it();
	if (getenv("TEST_EMULATOR"))
		tap_skip("%s leaves a child what madvise() takes from it: forks",
			 getenv("TEST_EMULATOR"));
	else
		test_fork();
	test_killed();
	test_closed();
	test_exec();
	test_clone();
	test_outside();
	test_race();
	test_namespaces();
	test_files_that_lie();
	test_held();
	test_claims();
	test_lives();
	test_reserved();
	test_folder();
	test_full();
	return tap_done();
}
