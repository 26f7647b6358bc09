// SPDX-License-Identifier: MIT
/*
 * Tests objects with a beginning and an end, for example contexts, processes and state pages.
 * Also tests requests in the environment, and another tool in the driver's slot.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include "lib/private.h"
#include "tests/lib/scenario.h"

/* ---------------------------------------------------------------------- contexts */

enum { NR = 24 };

static int streams_make(P stream[NR])
{
	int bad = 0;

	for (int i = 0; i < NR; i++)
		bad += cuStreamCreate(&stream[i], i & 1) != 0;
	return bad;
}

static void child_context(void)
{
	struct gpupart_tpcset one, all, seen = { { 0 } };
	P stream[NR], later[NR], first;
	struct program p, q;
	int bad = 0, err;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && !streams_make(stream), "attaches"))
		return;
	one = list("3");
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	first = p.ctx;
	for (int i = 0; i < NR; i++)
		bad += gpupart_stream_set(gp, gpu, stream[i], &one) || !ran_on(&p, stream[i], &one);
	bad += gpupart_stream_set(gp, gpu, NULL, &one) || !ran_on(&p, NULL, &one);
	tap_ok(!bad, "sets on %d streams of a context and on its default one", NR);
	tap_ok(gpupart_stream_set(gp, gpu, (P)-1, &one) == -EINVAL &&
		       !gpupart_stream_set(gp, gpu, (P)-1, NULL),
	       "none on a handle that is none, which to take away is no error");
	err = gpupart_census(gp, gpu, NULL, &seen);
	tap_ok(!err && gpupart_tpcset_equal(&seen, &one), "and a census in it: %s",
	       err ? gpupart_error(gp) : "");
	tap_ok(!cuCtxDestroy(p.ctx) && !program_start(&q, 0) && q.ctx == first,
	       "a new context stands where the destroyed one did");
	err = gpupart_census(gp, gpu, NULL, &seen);
	tap_ok(!err && gpupart_tpcset_equal(&seen, &all),
	       "a census there has kernels of its own: %s", err ? gpupart_error(gp) : "");
	tap_ok(!gpupart_stream_get(gpu, NULL, &seen) && ran_on(&q, NULL, &all),
	       "its default stream has no set");
	tap_ok(!streams_make(later), "as many streams");
	for (int i = 0; i < NR; i++)
		bad += !ran_on(&q, later[i], &all);
	tap_ok(!bad, "of which none inherits one: %d do", bad);
}

#define NR_CONTEXTS 4200	/* there are more functions with sets than table entries */

/*
 * The destruction of a context destroys its functions too. The set and the table entry of each
 * function must be freed.
 */
static void child_context_function(void)
{
	struct gpupart_tpcset one;
	unsigned int nr = 0;
	struct program p;

	if (!tap_ok(!attach(NULL), "attaches"))
		return;
	one = list("3");
	while (nr < NR_CONTEXTS && !program_start(&p, 0) &&
	       !gpupart_function_set(gp, gpu, p.function, &one) && !cuCtxDestroy(p.ctx))
		nr++;
	tap_ok(nr == NR_CONTEXTS, "a function's set in each of %u contexts: %s", nr,
	       nr < NR_CONTEXTS ? gpupart_error(gp) : "");
}

static void child_capturing(void)
{
	struct gpupart_tpcset one;
	struct program p;
	P stream;
	int err;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) && !cuStreamCreate(&stream, 0),
		    "attaches"))
		return;
	one = list("3");
	err = gpupart_stream_set(gp, gpu, NULL, &one);
	tap_ok(err == -EBUSY && strstr(gpupart_error(gp), "is being captured"),
	       "a default stream that is being captured: %d %s", err,
	       err ? gpupart_error(gp) : "");
	err = gpupart_stream_set(gp, gpu, stream, &one);
	tap_ok(!err && ran_on(&p, stream, &one), "a created one needs no launch: %s",
	       err ? gpupart_error(gp) : "");
}

/* --------------------------------------------------------------------- processes */

static struct gpupart_process shown[1024];

/*
 * Returns the number of entries with @pid in the list. If @process is not NULL, stores the last
 * entry in *process.
 */
static int times_listed(pid_t pid, struct gpupart_process *process)
{
	int nr = gpupart_process_list(gp, shown, sizeof(shown) / sizeof(shown[0]),
				      sizeof(struct gpupart_process)), times = 0;

	for (int i = 0; i < nr; i++)
		if (shown[i].pid == pid) {
			times++;
			if (process)
				*process = shown[i];
		}
	return times;
}

static const char *folder(void)
{
	static char path[48];

	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u", geteuid());
	return path;
}

static const char *block_path(pid_t pid)
{
	static char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d.%llx", folder(), pid,
		 stat("/proc/self/ns/pid", &st) ? 0ull : (unsigned long long)st.st_ino);
	return path;
}

static bool ended_well(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && !status;
}

static void child_fork(void)
{
	struct gpupart_counters before, after;
	struct gpupart_process process;
	struct program p;
	int ready[2];
	pid_t pid;
	char c;

	if (!tap_ok(!attach(NULL) && !gpupart_process_publish(gp, "parent") &&
			    !program_start(&p, 0) && !program_launch(&p, NULL, 1, 1000) &&
			    !cuStreamSynchronize(NULL) && !pipe(ready),
		    "attaches"))
		return;
	gpupart_counters_get(&before);
	tap_ok(before.launches > 0, "%llu launches", (unsigned long long)before.launches);
	pid = fork();
	if (!pid) {
		struct gpupart_counters own;

		gpupart_counters_get(&own);
		if (own.launches)
			_exit(1);
		if (gpupart_process_publish(gp, "child"))
			_exit(2);
		if (times_listed(getpid(), &process) != 1 || strcmp(process.name, "child"))
			_exit(3);
		if (process.counters.launches)
			_exit(4);
		if (times_listed(getppid(), &process) != 1 || strcmp(process.name, "parent"))
			_exit(5);
		if (write(ready[1], "x", 1) != 1)
			_exit(6);
		exit(0);
	}
	close(ready[1]);
	tap_ok(read(ready[0], &c, 1) == 1 && ended_well(pid),
	       "a child counts from 0 and shows a block of its own");
	tap_ok(!times_listed(pid, NULL) && times_listed(getpid(), &process) == 1 &&
		       !strcmp(process.name, "parent") &&
		       process.counters.launches == before.launches,
	       "and when it ends its parent's stays");
	gpupart_counters_get(&after);
	tap_ok(after.launches == before.launches, "with the parent's counters");
}

static atomic_bool no_more;

static void *keep_setting(void *unused)
{
	struct gpupart_tpcset set = list("3");
	struct gpupart *own;

	(void)unused;
	if (gpupart_open(&own))
		return NULL;
	while (!no_more)
		gpupart_process_set(own, gpu, &set);
	gpupart_close(own);
	return NULL;
}

/*
 * During the fork, another thread changes a set. The locks of that thread must be free in the
 * child.
 */
static void child_fork_of_setter(void)
{
	struct gpupart_tpcset set;
	int nr, nr_well = 0;
	pthread_t setter;

	if (!tap_ok(!attach(NULL) && !pthread_create(&setter, NULL, keep_setting, NULL),
		    "attaches"))
		return;
	for (nr = 0; nr < 400 && nr_well == nr; nr++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(60);
			gpupart_process_get(gpu, &set);
			_exit(gpupart_process_set(gp, gpu, NULL));
		}
		nr_well += ended_well(pid);
	}
	no_more = true;
	pthread_join(setter, NULL);
	tap_ok(nr_well == nr, "%d children of %d set and ask", nr_well, nr);
}

/* The operation that a thread of the parent repeats. */
static atomic_int doing;

enum { TELLS, ATTACHES, COUNTS, NR_DOINGS };

static void do_once(struct gpupart *own, int what)
{
	struct gpupart_tpcset seen;
	struct gpupart_gpu *found;

	switch (what) {
	case TELLS:
		gpupart_sm_count_tell(own, gpu, true);
		gpupart_sm_count_tell(own, gpu, false);
		break;
	case ATTACHES:
		gpupart_attach(own, "cuda:0", NULL, &found);
		break;
	case COUNTS:
		gpupart_census(own, gpu, NULL, &seen);
		break;
	}
}

static void *keep_doing(void *ctx)
{
	struct gpupart *own;

	if (cuCtxSetCurrent(ctx) || gpupart_open(&own))
		return NULL;
	while (!no_more)
		do_once(own, doing);
	gpupart_close(own);
	return NULL;
}

/*
 * Makes all calls that need a lock of the library. It makes no call of the driver, because the
 * driver's locks may be held.
 */
static int child_sets(void)
{
	struct gpupart_tpcset set = list("3");

	gpupart_sm_count_tell(gp, gpu, true);
	/*
	 * If the launch callback was not proven before the fork, the library may refuse the call.
	 */
	gpupart_next_set(gp, gpu, &set);
	return gpupart_sm_count_tell(gp, gpu, false) || gpupart_process_publish(gp, "child") ||
	       gpupart_thread_set(gp, gpu, &set) ||
	       gpupart_process_set(gp, gpu, &set);
}

/*
 * The library holds some locks during calls of the driver. These locks must be new in the child.
 */
static void child_fork_of_caller(void)
{
	static const char *const names[NR_DOINGS] = { "tells SMs", "attaches", "takes a census" };
	struct program p;
	pthread_t caller;

	if (!tap_ok(!attach(NULL) && !program_start(&p, 0) &&
			    !pthread_create(&caller, NULL, keep_doing, p.ctx), "attaches"))
		return;
	for (int what = 0; what < NR_DOINGS; what++) {
		int nr, nr_ended = 0;

		doing = what;
		for (nr = 0; nr < 60 && nr_ended == nr; nr++) {
			struct timespec pause = { .tv_nsec = 100000 * (nr % 7) };
			int status = -1;
			pid_t pid;

			nanosleep(&pause, NULL);
			pid = fork();
			if (!pid) {
				alarm(60);
				_exit(child_sets());
			}
			nr_ended += waitpid(pid, &status, 0) == pid && !status;
		}
		tap_ok(nr_ended == nr, "while a thread %s %d children of %d set and tell",
		       names[what], nr_ended, nr);
	}
	no_more = true;
	pthread_join(caller, NULL);
}

/* The child of a fork does not use the library and ends. It must remove no files. */
static void child_fork_unseen(void)
{
	pid_t pid;

	if (!tap_ok(!gpupart_open(&gp) && !gpupart_process_publish(gp, "parent"), "shows itself"))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(0);
	tap_ok(ended_well(pid) && !access(block_path(getpid()), F_OK) &&
		       times_listed(getpid(), NULL) == 1,
	       "a child that shows nothing leaves its parent's block");
	/* Bypasses the C library, so that no fork handler runs. */
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		exit(0);
	tap_ok(ended_well(pid) && !access(block_path(getpid()), F_OK) &&
		       times_listed(getpid(), NULL) == 1,
	       "so does one that the library was not told of");
}

static void child_exit(void)
{
	int told[2];
	pid_t pid;
	char c;

	if (!tap_ok(!gpupart_open(&gp) && !pipe(told), "starts"))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int err = gpupart_process_publish(gp, "short");

		if (err || access(block_path(getpid()), F_OK))
			_exit(1);
		if (write(told[1], "x", 1) != 1)
			_exit(2);
		exit(0);
	}
	close(told[1]);
	tap_ok(read(told[0], &c, 1) == 1 && ended_well(pid), "a process shows itself and ends");
	/*
	 * Do not use the list of processes. To make the list, the library removes the files of
	 * dead processes.
	 */
	tap_ok(access(block_path(pid), F_OK) && errno == ENOENT, "its block is gone with it");
}

/*
 * Replaces the file at @path by a new file with the same bytes. No process has the new file open.
 */
static bool make_copy(const char *path)
{
	static char bytes[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, bytes, sizeof(bytes));

	close(fd);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	return len > 0 && write(fd, bytes, len) == len && !close(fd);
}

static void child_pid_again(void)
{
	int told[2], end[2];
	pid_t pid;
	char c;

	if (!tap_ok(!gpupart_open(&gp) && !pipe(told) && !pipe(end), "starts"))
		return;
	pid = fork();
	if (!pid) {
		close(end[1]);
		_exit(gpupart_process_publish(gp, "now") || write(told[1], "x", 1) != 1 ||
		      read(end[0], &c, 1));
	}
	close(told[1]);
	tap_ok(read(told[0], &c, 1) == 1 && times_listed(pid, NULL) == 1, "a process is listed");
	/*
	 * The new file looks like the file of a dead process with this pid, but its content is
	 * the same.
	 */
	if (tap_ok(make_copy(block_path(pid)), "a block of its pid that is not its own"))
		tap_ok(!times_listed(pid, NULL) && access(block_path(pid), F_OK),
		       "has no owner, whatever it says");
	close(end[1]);
	tap_ok(ended_well(pid), "and it does not mind");
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good ? 0 : -1;
}

/*
 * Creates a mount namespace. If the user is not root, first creates a user namespace that keeps
 * the uid.
 */
static int own_mounts(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];

	if (!unshare(CLONE_NEWNS))
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -1;
	if (write_file("/proc/self/setgroups", "deny"))
		return -1;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	if (write_file("/proc/self/gid_map", map))
		return -1;
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	return write_file("/proc/self/uid_map", map);
}

/* Creates a private /dev/shm. In this /dev/shm, the test may damage the folder. */
static bool own_shm(void)
{
	if (!own_mounts() && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777"))
		return true;
	tap_skip("no mount namespace here to try a bad folder in: %s", strerror(errno));
	return false;
}

static void refuses_folder(const char *why)
{
	struct gpupart_process process;
	int err;

	if (!tap_ok(!gpupart_open(&gp), "opens"))
		return;
	err = gpupart_process_publish(gp, "x");
	tap_ok(err < 0 && access(block_path(getpid()), F_OK), "%s: not used: %d %s", why, err,
	       err ? gpupart_error(gp) : "");
	tap_ok(!times_listed(getpid(), &process), "nor listed");
}

/* Creates this user's folder in /dev/shm. The library would create the same folder. */
static bool good_folder(void)
{
	if (!own_shm())
		return false;
	tap_ok(!mkdir(folder(), 0700), "a folder");
	return true;
}

static void child_folder_mode(void)
{
	if (!good_folder())
		return;
	tap_ok(!chmod(folder(), 0750), "that a group may read");
	refuses_folder("mode 0750");
	tap_ok(!chmod(folder(), 0700) && !gpupart_process_publish(gp, "x") &&
		       times_listed(getpid(), NULL) == 1,
	       "with mode 0700 it is used");
	tap_ok(!chmod(folder(), 0701) && !times_listed(getpid(), NULL),
	       "opened up later, what is in it is not believed");
}

static void child_folder_owner(void)
{
	if (!good_folder())
		return;
	if (chown(folder(), geteuid() + 1, -1)) {
		tap_skip("only root can give a folder away");
		return;
	}
	refuses_folder("another user's");
	tap_ok(!chown(folder(), geteuid(), -1) && !gpupart_process_publish(gp, "x") &&
		       times_listed(getpid(), NULL) == 1,
	       "given back it is used");
	tap_ok(!chown(folder(), geteuid() + 1, -1) && !times_listed(getpid(), NULL),
	       "given away later, what is in it is not believed");
}

static void child_folder_link(void)
{
	if (!own_shm())
		return;
	tap_ok(!mkdir("/dev/shm/elsewhere", 0700) && !symlink("elsewhere", folder()),
	       "a link to a folder");
	refuses_folder("a link");
}

/* --------------------------------------------------- requests in the environment */

static void no_callback(void *user, int domain, int cbid, const void *params)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)params;
}

/* The driver accepts one subscriber. If there is already a subscriber, the driver returns 210. */
static void place_is(int want)
{
	static const unsigned char id[16] = {
		0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
		0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
	};
	int (*subscribe)(U *, void (*)(void *, int, int, const void *), void *);
	const void *const *table;
	struct program p;
	U handle;

	if (!tap_ok(!driver_open() && !program_start(&p, 0) &&
			    !cuGetExportTable((const void **)&table, id),
		    "a program"))
		return;
	memcpy(&subscribe, &table[3], sizeof(subscribe));
	tap_ok(subscribe(&handle, no_callback, NULL) == want, "another tool's subscription: %d",
	       want);
}

static void child_subscribed(void) { place_is(210); }
static void child_not_subscribed(void) { place_is(0); }

static void limited_to(const char *text, const char *selector)
{
	struct gpupart_tpcset limit, want;
	int err = attach(selector);
	bool has;

	if (!tap_ok(!err, "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	want = text ? list(text) : gpupart_topology_all(gpupart_gpu_topology(gpu));
	has = gpupart_limit_get(gpu, &limit);
	tap_ok(has == (text != NULL) && gpupart_tpcset_equal(&limit, &want), "limit: %s",
	       text ? text : "none");
}

/*
 * The program must run like without gpupart. No GPU is attached, so the sets of the program have
 * no effect.
 */
static void child_kept_out(void)
{
	struct gpupart_gpu *early = NULL;
	int err = attach(NULL);

	tap_ok(err == -ECANCELED && strstr(gpupart_error(gp), "GPUPART_DISABLE=1"),
	       "nothing is attached: %s", gpupart_error(gp));
	err = gpupart_attach_early(gp, NULL, NULL, &early);
	tap_ok(err == -ECANCELED && !early, "early neither");
}

static void child_no_limit(void) { limited_to(NULL, NULL); }
static void child_limit(void) { limited_to("0-3", NULL); }

static void child_other_gpu(void)
{
	struct gpupart_tpcset wide;
	struct program p;

	limited_to(NULL, "cuda:0");
	wide = list("0-9");
	tap_ok(!gpupart_process_set(gp, gpu, &wide) && !program_start(&p, 0) &&
		       ran_on(&p, NULL, &wide),
	       "the first GPU is not held by the second's limit");
	limited_to("0-3", "cuda:1");
}

/* --------------------------------------------------------------- another tool */

static int tool_calls(void)
{
	char line[64];
	int nr = 0;
	FILE *log = fopen(getenv("OTHER_TOOL_LOG"), "r");

	while (log && fgets(line, sizeof(line), log))
		nr++;
	if (log)
		fclose(log);
	return nr;
}

static void tool_called_once(void)
{
	char path[4096];
	int (*initialize)(void) = NULL;
	void *ours;

	tap_ok(tool_calls() == 1, "the other tool was called: %d", tool_calls());
	/*
	 * The driver calls this function one time. If the driver does not call it, the library
	 * calls it.
	 */
	snprintf(path, sizeof(path), "%s/lib/gpupart/libgpupart-inject.so", getenv("TEST_BUILD"));
	ours = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (ours)
		*(void **)&initialize = dlsym(ours, "InitializeInjection");
	tap_ok(initialize && initialize() == 1 && tool_calls() == 1, "once and no more");
}

static void child_tool(void)
{
	program_unaware("5-9");
	tool_called_once();
}

static void child_tool_disabled(void)
{
	program_unaware(NULL);
	tap_ok(tool_calls() == 1, "the other tool was called: %d", tool_calls());
}

/* ------------------------------------------------------------------- parent */

static void check_once(const struct scenario *s, void (*check)(void), const char *name)
{
	const struct scenario first = { name, check, "@b", { NULL }, NULL };

	tap_ok(!child_quiet(&first), "%s: the board was checked before", s->name);
}

static void prepare_checked(const struct scenario *s)
{
	check_once(s, child_no_limit, "no-limit");
}

#define INJECT "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9"
#define LOGGED "OTHER_TOOL_LOG=@/calls"

static const struct scenario scenarios[] = {
	{ "context", child_context, "@b", { "GPUPART_SIM_FAULTS=reuse-contexts" }, NULL },
	{ "context-function", child_context_function, "@b",
	  { "GPUPART_SIM_FAULTS=reuse-contexts" }, NULL },
	{ "capturing", child_capturing, "@b", { "GPUPART_SIM_FAULTS=capturing" }, NULL },
	{ "fork", child_fork, "@b", { NULL }, NULL },
	{ "fork-of-setter", child_fork_of_setter, "@b", { NULL }, NULL },
	{ "fork-of-caller", child_fork_of_caller, "@b", { NULL }, NULL },
	{ "fork-unseen", child_fork_unseen, "@b", { NULL }, NULL },
	{ "exit", child_exit, "@b", { NULL }, NULL },
	{ "pid-again", child_pid_again, "@b", { NULL }, NULL },
	{ "folder-mode", child_folder_mode, "@b", { NULL }, NULL },
	{ "folder-owner", child_folder_owner, "@b", { NULL }, NULL },
	{ "folder-link", child_folder_link, "@b", { NULL }, NULL },
	{ "no-limit", child_no_limit, "@b", { NULL }, NULL },
	{ "limit", child_limit, "@b", { "GPUPART_SET=0-3" }, NULL },
	{ "limit-disabled",
	  child_kept_out,
	  "@b",
	  { "GPUPART_SET=0-3", "GPUPART_DISABLE=1" },
	  NULL },
	{ "other-gpu",
	  child_other_gpu,
	  "@b:@e",
	  { "GPUPART_SET=0-3", "GPUPART_GPU=@pci1" },
	  NULL },
	{ "injected", child_subscribed, "@b", { INJECT }, prepare_checked },
	{ "injected-disabled",
	  child_not_subscribed,
	  "@b",
	  { INJECT, "GPUPART_DISABLE=1" },
	  prepare_checked },
	{ "injected-no-set",
	  child_not_subscribed,
	  "@b",
	  { "CUDA_INJECTION64_PATH=@inject" },
	  prepare_checked },
	{ "tool",
	  child_tool,
	  "@b",
	  { INJECT, "GPUPART_NEXT_INJECTION=@tool", LOGGED },
	  prepare_checked },
	{ "tool-preloaded",
	  child_tool,
	  "@b",
	  { "LD_PRELOAD=@inject", "CUDA_INJECTION64_PATH=@tool", "GPUPART_SET=5-9", LOGGED },
	  prepare_checked },
	{ "tool-disabled",
	  child_tool_disabled,
	  "@b",
	  { INJECT, "GPUPART_NEXT_INJECTION=@tool", "GPUPART_DISABLE=1", LOGGED },
	  prepare_checked },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
