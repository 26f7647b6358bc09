// SPDX-License-Identifier: MIT
/*
 * Tests which processes an epilog kills. The test replaces a process in the list by a different
 * process. The same happens if a pid is reused after the list was made and before the signal.
 * tests/other_mps.sh is the node's MPS daemon.
 */
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "cli/util/process.c"
#include "cli/mps/mps_daemon.c"
#include "slurm/orphans.c"
#include "lib/state/state_page.h"
#include "tests/tap.h"

#define UID	54323	/* uid of the job */
#define OTHER	54324
#define JOB	123

int __real_gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
				size_t size);
int __wrap_gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
				size_t size);

static const struct gpupart_grant grant = { .id = "0-7b", .name = "123", .uid = UID };
static unsigned int nr_lists;
static int found_as;	/* the list shows this pid for the job's process; 0: its own pid */

int __wrap_gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
				size_t size)
{
	int nr = __real_gpupart_process_list(gp, list, max, size);

	nr_lists++;
	for (int i = 0; found_as && i < nr && i < (int)max; i++)
		if (list[i].uid == UID)
			list[i].pid = found_as;
	return nr;
}

/* A process of the test. */
struct kind {
	uid_t uid;
	const char *job;	/* the job in the state page of the process; NULL: no state page */
	bool environment;	/* SLURM_JOB_ID is in its environment */
};

static pid_t start(const struct kind *kind)
{
	char c = 0, me[256];
	ssize_t len = readlink("/proc/self/exe", me, sizeof(me) - 1);
	char *argv[] = { me, (char *)(kind->job ? kind->job : "-"), NULL };
	char *envp[] = { (char *)(kind->environment ? "SLURM_JOB_ID=123" : "A=b"), NULL };
	int fds[2];
	pid_t pid;

	me[len > 0 ? len : 0] = 0;
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		if (setgid(kind->uid) || setuid(kind->uid))
			_exit(1);
		execve(me, argv, envp);
		_exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		tap_ok(false, "a process starts");
	close(fds[0]);
	return pid;
}

/* Runs a process of the test; argv[1] is the job in its state page. */
static int be_process(char **argv)
{
	struct gpupart *gp;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(argv[1], "-") && (setenv("GPUPART_JOB", argv[1], 1) || gpupart_open(&gp) ||
				     gpupart_process_publish(gp, "left")))
		return 1;
	(void)!write(1, "x", 1);
	for (;;)
		pause();
}

/* Sends SIGTERM to the process. Returns true if SIGKILL had already ended the process. */
static bool was_killed(pid_t pid)
{
	int status = 0;

	kill(pid, SIGTERM);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * Makes one pass of an epilog. Returns the number of processes that the pass killed or could not
 * kill.
 */
static int look_once(const char **why)
{
	struct meant meant = { .job = JOB, .grant = &grant };
	struct left left = { NULL, 0 };
	int nr;

	list_all(&left);
	nr = kill_once(&meant, &left, why);
	free(left.list);
	return nr;
}

static void try(const char *what, const struct kind *kind, bool meant)
{
	const char *why;
	pid_t pid = start(kind);
	int left = look_once(&why);

	tap_ok(left == meant && was_killed(pid) == meant, "%s is %skilled", what,
	       meant ? "" : "not ");
}

/* The list has a process of the job. The pid in the list now belongs to a process of @kind. */
static void try_again(const char *what, const struct kind *kind)
{
	pid_t listed = start(&(struct kind){ .uid = UID, .job = "0-7b" }), pid = start(kind);
	const char *why;
	int left;

	found_as = pid;
	left = look_once(&why);
	found_as = 0;
	tap_ok(!left && !was_killed(pid), "%s that has the number of one of the job is not killed",
	       what);
	end(listed);
}

/* Kernels before 5.3. */
static int without_pidfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void try_old_kernel(void)
{
	pid_t pid = start(&(struct kind){ .uid = UID, .job = "0-7b" }), child = fork();
	int status = 1;

	if (!child) {
		const char *why = "";

		if (without_pidfd())
			_exit(77);
		_exit(look_once(&why) == 1 && strstr(why, "pidfd") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		tap_skip("no seccomp filter can be set here"), end(pid);
	else
		tap_ok(!status && !was_killed(pid),
		       "a kernel without pidfds: it is left alone, counted, and the reason given");
}

/*
 * Many jobs have ended, and one of them has a remaining process. The files of other users must be
 * listed rarely.
 */
static void try_many(void)
{
	struct gpupart_grant ended = { .id = "0-7d", .name = "124", .uid = UID };
	pid_t pid = start(&(struct kind){ .uid = UID, .job = "0-7b" });
	struct left left = { NULL, 0 };
	unsigned int nr = 0;
	const char *why;

	nr_lists = 0;
	for (int i = 0; i < 30; i++)
		nr += left_kill(&left, 124, &ended, &why);
	tap_ok(!nr && nr_lists == 1, "30 jobs of which nothing is left: %u lists of processes",
	       nr_lists);
	nr = left_kill(&left, JOB, &grant, &why);
	/*
	 * The dead process is a zombie until this process waits for it. But the list no longer
	 * contains the dead process.
	 */
	tap_ok(!nr && was_killed(pid) && nr_lists == 2, "one left a process: %u lists", nr_lists);
	free(left.list);
}

/* ------------------------------------------------------------------ the node's MPS daemon */

static char fake[64];	/* arguments of tests/other_mps.sh, and its log */

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fake, name);
	unlink(path);
	file = text ? fopen(path, "w") : NULL;
	if (text && (!file || fputs(text, file) < 0 || fclose(file)))
		printf("# cannot write %s\n", path);
}

/*
 * Returns true if the daemon got exactly these requests about process @pid. Each request has the
 * form "SERVER STATE".
 */
static bool was_asked(pid_t pid, const char *const *wanted)
{
	char path[128], line[128], expected[128];
	FILE *file;
	bool same = true;

	snprintf(path, sizeof(path), "%s/log", fake);
	file = fopen(path, "r");
	for (; file && fgets(line, sizeof(line), file); wanted += !!*wanted) {
		snprintf(expected, sizeof(expected), "terminate_client %.*s %d%s\n",
			 (int)strcspn(*wanted ? *wanted : "", " "), *wanted ? *wanted : "", pid,
			 *wanted ? strchr(*wanted, ' ') : "");
		same = same && !strcmp(line, expected);
		if (strcmp(line, expected))
			printf("# asked: %s", line);
	}
	if (file)
		fclose(file);
	put("log", NULL);
	return same && !*wanted;
}

/*
 * While the daemon is in this state, ends a process of job @job. The daemon must get the request
 * @wanted.
 */
static void try_mps(const char *what, const char *job, const char *const *wanted)
{
	pid_t pid = start(&(struct kind){ .uid = UID, .job = job });
	bool meant = !strcmp(job, grant.id), killed;
	struct left left = { NULL, 0 };
	const char *why;

	left_kill(&left, JOB, &grant, &why);
	free(left.list);
	killed = was_killed(pid);
	tap_ok(was_asked(pid, wanted) && killed == meant, "%s", what);
}

static bool start_daemon_in(const char *dir)
{
	char path[PATH_MAX], command[PATH_MAX];

	snprintf(command, sizeof(command), "mkdir -p %s && CUDA_MPS_PIPE_DIRECTORY=%s " CONTROL
		 " -d >%s/said", dir, dir, fake);
	if (system(command))
		return false;
	snprintf(path, sizeof(path), "%s/control", dir);
	for (int i = 0; access(path, F_OK) && i < 1000; i++)
		usleep(10000);
	put("log", NULL);
	return !access(path, F_OK);
}

static void test_mps(void)
{
	static const char *const none[] = { NULL };
	static const char *const both[] = { "501 lives", "502 lives", NULL };
	static const char *const first[] = { "501 lives", NULL };
	char *source = realpath("tests/other_mps.sh", NULL), path[4096];

	strcpy(fake, "/tmp/left.XXXXXX");
	if (!source || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/run", "tmpfs", 0, "mode=755") || !mkdtemp(fake)) {
		tap_skip("no /run of its own can be had here");
		free(source);
		return;
	}
	snprintf(path, sizeof(path), "%s/" CONTROL, fake);
	(void)!symlink(source, path);
	free(source);
	snprintf(path, sizeof(path), "%s:%s", fake, getenv("PATH"));
	setenv("PATH", path, 1);
	setenv("FAKE_MPS", fake, 1);

	put("servers", "501\n502\n");
	try_mps("a node without a daemon: it is killed", "0-7b", none);
	tap_ok(start_daemon_in(MPS_DAEMON_NODE), "the node's daemon is started");
	try_mps("each server is asked to end its work, then it is killed", "0-7b", both);
	try_mps("another job's process: nothing is asked for", "0-7c", none);
	put("refuses", "");
	try_mps("they refuse: it is killed", "0-7b", both);
	put("refuses", NULL);
	put("servers", "no server\n");
	try_mps("no server: it is killed", "0-7b", none);
	put("servers", "501\n502\n");
	put("hangs", "terminate_client 502");
	try_mps("a server gives no answer: it is killed", "0-7b", first);
	put("hangs", "");
	try_mps("the daemon gives no answer: it is killed", "0-7b", none);
	put("hangs", NULL);
	snprintf(path, sizeof(path), "rm -r %s " MPS_DAEMON_NODE, fake);
	(void)!system(path);
}

static void remove_folder(uid_t uid)
{
	char path[400];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u", uid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return be_process(argv);
	if (geteuid()) {
		tap_skip("processes of other users: only as root");
		return tap_done();
	}
	try("one of the job", &(struct kind){ .uid = UID, .job = "0-7b" }, true);
	try("one of a run in the job", &(struct kind){ .uid = UID, .job = "9-9-9",
						       .environment = true }, true);
	try("one of another job", &(struct kind){ .uid = UID, .job = "0-7c" }, false);
	try("another user's that says it is of the job",
	    &(struct kind){ .uid = OTHER, .job = "0-7b", .environment = true }, false);
	try("one without a GPU", &(struct kind){ .uid = UID, .environment = true }, false);
	try_again("another user's process", &(struct kind){ .uid = OTHER });
	try_again("root's process", &(struct kind){ .uid = 0 });
	try_again("another user's process with a block",
		  &(struct kind){ .uid = OTHER, .job = "0-7b", .environment = true });
	try_again("the same user's process without a block",
		  &(struct kind){ .uid = UID, .environment = true });
	try_again("the same user's process of another job",
		  &(struct kind){ .uid = UID, .job = "0-7c" });
	try_old_kernel();
	try_many();
	test_mps();
	remove_folder(UID);
	remove_folder(OTHER);
	return tap_done();
}
