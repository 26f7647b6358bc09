// SPDX-License-Identifier: MIT
/*
 * Tests run --mps with a fake nvidia-cuda-mps-control (tests/other_mps.sh). It tests which
 * process starts a daemon, which process ends a daemon, and which states are refused. A "user" is
 * a child of the test. Like `gpupart run`, a user joins the daemon and then executes a program.
 * The test does not test NVIDIA's own program.
 */
#include <sched.h>
#include <sys/mount.h>
#include "lib/state/state_page.h"
#include "tests/tap.h"
#include "cli/util/process.c"
#include "cli/mps/mps_daemon.c"
#include "cli/mps/mps.c"

static char top[64], own[128], fake[128], noted[2048];

const char *cmd_name;
struct gpupart *cmd_gp;

void cmd_note(const char *cmd, const char *fmt, ...)
{
	size_t len = strlen(noted);
	va_list ap;

	(void)cmd;
	va_start(ap, fmt);
	vsnprintf(noted + len, sizeof(noted) - len, fmt, ap);
	va_end(ap);
}

/*
 * Waits for a short time until a condition is true. The result is false if the condition did not
 * become true.
 */
#define SOON(what) ({ \
	long since_ = process_now_ms(); \
	while (!(what) && process_now_ms() - since_ < 60000) \
		usleep(10000); \
	!!(what); })

static const char *in(const char *dir, const char *name)
{
	static char paths[8][512];
	static unsigned int next;

	snprintf(paths[++next % 8], sizeof(paths[0]), "%s/%s", dir, name);
	return paths[next % 8];
}

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		printf("# cannot write %s\n", path);
}

/*
 * Counts the lines of @path that equal @line. If @line ends in '=' or a blank, counts the lines
 * that begin with @line.
 */
static int nr_lines(const char *path, const char *line)
{
	FILE *file = fopen(path, "r");
	size_t len = strlen(line);
	char text[4096];
	int nr = 0;

	while (file && fgets(text, sizeof(text), file)) {
		text[strcspn(text, "\n")] = 0;
		nr += strchr("= ", line[len - 1]) ? !strncmp(text, line, len) : !strcmp(text, line);
	}
	if (file)
		fclose(file);
	return nr;
}

static int nr_done(const char *what)
{
	return nr_lines(in(fake, "log"), what);
}

static bool env_has(const char *path, const char *name, const char *value)
{
	char line[512];

	snprintf(line, sizeof(line), "%s=%s", name, value);
	return nr_lines(path, line) == 1;
}

/*
 * Returns true if the process is a keeper. A keeper has a separate session. A keeper sets its
 * name, but a new keeper may not have set its name yet.
 */
static bool is_keeper(const char *name, int session, bool named)
{
	return !strcmp(name, "gpupart-mps") ||
	       (!named && session != getsid(0) &&
		!strncmp(name, program_invocation_short_name, 15));
}

/*
 * Counts the living keepers. If @named is true, counts only keepers that already wait for
 * clients. Orphans become children of this process. Stores the pid of the last counted keeper in
 * @keeper.
 */
static int count_keepers(int *keeper, bool named)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int nr = 0;

	while (proc && (entry = readdir(proc))) {
		char text[1024], *name, *rest, state;
		int pid = atoi(entry->d_name), parent, session;

		if (pid <= 0 || !read_stat(pid, text, &name, &rest) ||
		    sscanf(rest, " %c %d %*d %d", &state, &parent, &session) != 3 ||
		    parent != getpid() || !is_keeper(name, session, named))
			continue;
		if (state == 'Z') {
			waitpid(pid, NULL, 0);
			continue;
		}
		nr++;
		if (keeper)
			*keeper = pid;
	}
	if (proc)
		closedir(proc);
	return nr;
}

static int nr_keepers(int *keeper)
{
	return count_keepers(keeper, false);
}

static int daemon_of(const char *dir)
{
	struct mps_daemon daemon = { 0 };
	struct process process;

	strcpy(daemon.dir, dir);
	return find_any(&daemon, &process) ? process.pid : 0;
}

static void kill_daemon(const char *dir)
{
	int pid = daemon_of(dir);

	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct user {
	pid_t pid;
	bool joined, childless;
	char noted[2048];
	int answer;		/* the descriptor to which the user writes its results */
};

/*
 * Starts a user with @out as its stdout. If @out is -1, the user has the stdout of this process.
 * The test reads the result later.
 */
static void begin(struct user *user, int out)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return;
	fflush(stdout);
	user->pid = fork();
	if (!user->pid) {
		if (out >= 0)
			dup2(out, 1);
		*noted = 0;
		user->joined = mps_join(false);
		user->childless = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
		strcpy(user->noted, noted);
		setenv("TO", in(top, "env"), 1);
		if (write(fds[1], user, sizeof(*user)) == sizeof(*user))
			execlp("sh", "sh", "-c", "env >$TO.$$; mv $TO.$$ $TO; exec sleep 100",
			       NULL);
		_exit(127);
	}
	close(fds[1]);
	user->answer = fds[0];
}

static void finish(struct user *user)
{
	pid_t pid = user->pid;
	int fd = user->answer;

	if (read(fd, user, sizeof(*user)) != sizeof(*user))
		memset(user, 0, sizeof(*user));
	user->pid = pid;
	close(fd);
}

static struct user join(void)
{
	struct user user = { 0 };

	unlink(in(top, "env"));
	begin(&user, -1);
	finish(&user);
	(void)SOON(is_there(in(top, "env")));
	return user;
}

static void end(struct user *user)
{
	kill(user->pid, SIGKILL);
	waitpid(user->pid, NULL, 0);
}

/* Restores the initial state after each test. */
static void clear(void)
{
	char command[512];
	int keeper;

	while (nr_keepers(&keeper)) {
		kill(keeper, SIGKILL);
		waitpid(keeper, NULL, 0);
	}
	kill_daemon(own);
	kill_daemon(in(top, "named"));
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	snprintf(command, sizeof(command),
		 "rm -rf %s/run %s/named %s/fake; mkdir -m 700 %s/run %s/named %s/named/log %s/fake",
		 top, top, top, top, top, top, top);
	if (system(command))
		printf("# cannot clear %s\n", top);
	unsetenv(MPS_DAEMON_PIPES);
	unsetenv(MPS_DAEMON_LOGS);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	*noted = 0;
}

/* Starts a daemon in @dir without gpupart. gpupart treats this daemon as foreign. */
static void start_foreign(const char *dir)
{
	char command[1024], control_path[256];

	snprintf(control_path, sizeof(control_path), "%s/control", dir);
	snprintf(command, sizeof(command),
		 "umask 077; mkdir -p %s/log; export %s=%s %s=%s/log; " CONTROL " -d", dir,
		 MPS_DAEMON_PIPES, dir, MPS_DAEMON_LOGS, dir);
	if (system(command) || !SOON(is_there(control_path)))
		printf("# no daemon: %s\n", control_path);
	unlink(in(fake, "log"));
}

/* Listens at @path, but never reads data. Returns the descriptor of the socket. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1))
		printf("# no socket %s\n", path);
	return fd;
}

static void test_two_users(void)
{
	struct user a = { 0 }, b = { 0 };
	int fds[2], keeper = 0;
	struct pollfd pfd;
	char byte;

	clear();
	setenv("CUDA_INJECTION64_PATH", "/lib/x.so", 1);
	setenv("GPUPART_SET", "0-3", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	setenv("LD_PRELOAD", "libm.so.6", 1);
	if (pipe2(fds, O_CLOEXEC))
		return;
	begin(&a, fds[1]);
	begin(&b, fds[1]);
	close(fds[1]);
	finish(&a);
	finish(&b);
	unsetenv("LD_PRELOAD");
	tap_ok(a.joined && b.joined && !*a.noted && !*b.noted, "two at once join: %s%s", a.noted,
	       b.noted);
	tap_ok(a.childless && b.childless, "the program has no child it did not start");
	tap_ok(nr_done("start") == 1, "one daemon was started: %d", nr_done("start"));
	tap_ok(SOON(count_keepers(&keeper, true) == 2), "a keeper each");
	/* The file is written while the test reads it. */
	tap_ok(SOON(env_has(in(top, "env"), MPS_DAEMON_PIPES, own) &&
		    env_has(in(top, "env"), MPS_DAEMON_LOGS, in(own, "log")) &&
		    env_has(in(top, "env"), "CUDA_DEVICE_MAX_CONNECTIONS", "8") &&
		    env_has(in(top, "env"), "CUDA_VISIBLE_DEVICES", "1")),
	       "the program's environment");
	tap_ok(env_has(in(fake, "env"), MPS_DAEMON_PIPES, own) &&
		       env_has(in(fake, "env"), MPS_DAEMON_LOGS, in(own, "log")),
	       "the daemon's environment names its directories");
	tap_ok(!nr_lines(in(fake, "env"), "CUDA_INJECTION64_PATH=") &&
		       !nr_lines(in(fake, "env"), "GPUPART_SET=") &&
		       !nr_lines(in(fake, "env"), "CUDA_VISIBLE_DEVICES=") &&
		       !nr_lines(in(fake, "env"), "LD_PRELOAD="),
	       "and has nothing of the program's");
	kill(keeper, SIGTERM);
	kill(keeper, SIGINT);
	kill(keeper, SIGHUP);
	usleep(100000);
	tap_ok(nr_keepers(NULL) == 2, "a keeper takes no signal for itself");
	end(&a);
	tap_ok(SOON(nr_keepers(NULL) == 1), "the first ends: its keeper goes");
	usleep(300000);
	tap_ok(nr_keepers(NULL) == 1 && !nr_done("quit") && daemon_of(own),
	       "the daemon stays for the other");
	end(&b);
	pfd = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	tap_ok(poll(&pfd, 1, 10000) == 1 && !read(fds[0], &byte, 1),
	       "nothing that is left holds the programs' stdout");
	tap_ok(SOON(!nr_keepers(NULL)), "the last ends: no keeper is left");
	tap_ok(nr_done("quit") == 1 && !daemon_of(own) && !is_there(in(own, STARTED)),
	       "and no daemon");
	close(fds[0]);
	unsetenv("CUDA_INJECTION64_PATH");
	unsetenv("GPUPART_SET");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

/*
 * A program starts a daemon and ends. A reader of the program's stdout must then see the end of
 * file, even if the daemon continues.
 */
static void test_end_of_file(void)
{
	struct user a = { 0 }, b;
	struct pollfd pfd;
	int fds[2];

	clear();
	if (pipe2(fds, O_CLOEXEC))
		return;
	begin(&a, fds[1]);
	close(fds[1]);
	finish(&a);
	b = join();
	end(&a);
	pfd = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	tap_ok(a.joined && b.joined && poll(&pfd, 1, 10000) == 1 && (pfd.revents & POLLHUP),
	       "the daemon that a program had started does not hold its stdout");
	close(fds[0]);
	end(&b);
	tap_ok(SOON(!nr_keepers(NULL)) && nr_done("quit") == 1, "and ends with the other");
}

/*
 * A user arrives while the last user leaves. The new user must get a daemon that stays. This can
 * be the old daemon or a new daemon.
 */
static void test_race(void)
{
	int bad = 0, rounds = 12;
	struct user old, new;

	clear();
	old = join();
	for (int i = 0; i < rounds; i++) {
		memset(&new, 0, sizeof(new));
		kill(old.pid, SIGKILL);
		usleep(i * 3000);
		begin(&new, -1);
		waitpid(old.pid, NULL, 0);
		finish(&new);
		usleep(200000);
		(void)SOON(nr_keepers(NULL) == 1 && !is_there(in(own, "quit")));
		bad += !new.joined || !daemon_of(own) || nr_keepers(NULL) != 1 ||
		       is_there(in(own, "quit"));
		old = new;
	}
	tap_ok(!bad, "%d times one comes while the last goes: %d without a daemon that stays",
	       rounds, bad);
	end(&old);
	tap_ok(SOON(!nr_keepers(NULL)) && nr_done("start") == nr_done("quit"),
	       "as many ended as started: %d, %d", nr_done("start"), nr_done("quit"));
}

static void test_named(void)
{
	struct user user, inner;
	char named[128];

	clear();
	snprintf(named, sizeof(named), "%s", in(top, "named"));
	start_foreign(named);
	setenv(MPS_DAEMON_PIPES, named, 1);
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 1);
	user = join();
	tap_ok(user.joined && !*user.noted && !nr_done("start"), "the user's own is joined: %s",
	       user.noted);
	tap_ok(env_has(in(top, "env"), MPS_DAEMON_PIPES, named) &&
		       env_has(in(top, "env"), "CUDA_DEVICE_MAX_CONNECTIONS", "2") &&
		       !nr_lines(in(top, "env"), MPS_DAEMON_LOGS "="),
	       "the environment stays as it is");
	tap_ok(!nr_keepers(NULL) && !is_there(own), "no keeper, nothing of ours");
	end(&user);
	usleep(300000);
	tap_ok(daemon_of(named) && !nr_done("quit"), "and it is not ended");

	kill_daemon(named);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	user = join();
	tap_ok(user.joined && nr_done("start") == 1 &&
		       env_has(in(top, "env"), MPS_DAEMON_PIPES, own),
	       "no daemon where the user named one: ours");
	tap_ok(strstr(user.noted, "no daemon answers in") && strstr(user.noted, named), "%s",
	       user.noted);
	/* An inner `gpupart run` finds the directory of the outer run's daemon. */
	setenv(MPS_DAEMON_PIPES, own, 1);
	inner = join();
	tap_ok(inner.joined && !*inner.noted && SOON(nr_keepers(NULL) == 2),
	       "a run inside a run is a user like another");
	end(&user);
	(void)SOON(nr_keepers(NULL) == 1);
	tap_ok(!nr_done("quit"), "the outer one ends: the daemon stays");
	end(&inner);
	tap_ok(SOON(!nr_keepers(NULL)) && nr_done("quit") == 1, "and ends with the inner one");
}

/*
 * Like in a container, only the pipes are visible. The kernel reports whether a process listens
 * on these pipes.
 */
static void test_no_program(void)
{
	char path[4096], folder[4096] = "";
	struct user user;
	int fd;

	clear();
	if (!access("/usr/bin/" CONTROL, X_OK) || !access("/usr/local/nvidia/bin/" CONTROL, X_OK)) {
		tap_skip("there is an NVIDIA program here");
		return;
	}
	snprintf(path, sizeof(path), "%s", getenv("PATH"));
	if (!getcwd(folder, sizeof(folder)))
		return;
	/*
	 * For a daemon, a relative folder in PATH would be a different folder. So relative
	 * folders must be left out.
	 */
	setenv("PATH", "/bin:bin:.", 1);
	if (chdir(top))
		printf("# not in %s\n", top);
	user = join();
	if (chdir(folder))
		printf("# not in %s\n", folder);
	tap_ok(!user.joined && strstr(user.noted, "there is no " CONTROL) &&
		       strstr(user.noted, "in time slices") &&
		       !nr_lines(in(top, "env"), "CUDA_MPS_"),
	       "no program: %s", user.noted);
	tap_ok(user.pid > 0 && !kill(user.pid, 0) && is_there(in(top, "env")),
	       "and the program runs");
	end(&user);
	fd = listen_at(in(top, "named/control"));
	setenv(MPS_DAEMON_PIPES, in(top, "named"), 1);
	user = join();
	tap_ok(user.joined && !*user.noted, "no program, but a process listens: joined");
	end(&user);
	close(fd);
	user = join();
	tap_ok(!user.joined, "no program, and no process listens");
	end(&user);
	setenv("PATH", path, 1);
}

static void test_whose(void)
{
	static const struct { const char *words; bool is_ours; } markers[] = {
		{ "", false }, { "1 1 r", false }, { "PID 1 r", false }, { "0 1 s", false },
		{ "rubbish", false }, { "0 NOW s", true }, { "PID START r", true },
	};

	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
		struct process process;
		char text[64] = "";
		struct user user;

		clear();
		start_foreign(own);
		process_find(daemon_of(own), &process);
		if (!strcmp(markers[i].words, "PID START r"))
			snprintf(text, sizeof(text), "%d %llu r", process.pid, process.start);
		else if (!strcmp(markers[i].words, "PID 1 r"))
			snprintf(text, sizeof(text), "%d 1 r", process.pid);
		else if (!strcmp(markers[i].words, "0 NOW s"))
			snprintf(text, sizeof(text), "0 %llu s", process.start - 10);
		else
			strcpy(text, markers[i].words);
		if (*text)
			put(in(own, STARTED), text);
		user = join();
		end(&user);
		(void)SOON(!nr_keepers(NULL));
		tap_ok(user.joined && !nr_done("start") && nr_done("quit") == markers[i].is_ours &&
			       !daemon_of(own) == markers[i].is_ours,
		       "a daemon that was there, '%s': joined, %s", markers[i].words,
		       markers[i].is_ours ? "ended" : "not ended");
	}
}

static void test_dead(void)
{
	struct user user;
	char text[32];

	clear();
	user = join();
	kill_daemon(own);
	end(&user);
	tap_ok(SOON(!nr_keepers(NULL)) && is_there(in(own, STARTED)) && !nr_done("quit"),
	       "the daemon dies: no quit is sent");
	/* The pid now belongs to another process. */
	snprintf(text, sizeof(text), "%d\n", getpid());
	put(in(own, CONTROL ".pid"), text);
	user = join();
	tap_ok(user.joined && !*user.noted && nr_done("start") == 2,
	       "marker of a dead one: a new one: %s", user.noted);
	end(&user);
	tap_ok(SOON(!nr_keepers(NULL)) && nr_done("quit") == 1 && !daemon_of(own),
	       "which is ended");
}

static void refused(const char *command, const char *words)
{
	char line[1024];
	struct user user;

	clear();
	snprintf(line, sizeof(line), "cd %s/run; %s", top, command);
	if (system(line))
		printf("# %s\n", line);
	user = join();
	tap_ok(!user.joined && strstr(user.noted, words) && strstr(user.noted, own) &&
		       strstr(user.noted, "in time slices") && !nr_done("start") &&
		       !nr_lines(in(top, "env"), "CUDA_MPS_"),
	       "refused: %s", user.noted);
	end(&user);
}

static void test_directories(void)
{
	char run[64], text[256];
	struct user user;

	refused("mkdir -m 700 x; ln -s x gpupart-mps", "is a symbolic link");
	refused("ln -s none gpupart-mps", "is a symbolic link");
	refused(": >gpupart-mps", "is not a directory");
	refused("mkdir -m 755 gpupart-mps", "is accessible to other users (mode 755)");
	refused("mkdir -m 700 gpupart-mps x; ln -s ../x gpupart-mps/log", "is a symbolic link");
	refused("mkdir -m 700 gpupart-mps; ln -s ../x gpupart-mps/gpupart.lock", "gpupart.lock");
	refused("mkdir -m 700 gpupart-mps; ln -s ../x gpupart-mps/gpupart.users", "gpupart.users");
	if (!geteuid())
		refused("mkdir -m 700 gpupart-mps; chown 65534 gpupart-mps",
			"belongs to user 65534");
	else
		tap_skip("not root: cannot create a directory of another user");

	clear();
	snprintf(run, sizeof(run), "%s", getenv("XDG_RUNTIME_DIR"));
	snprintf(text, sizeof(text), "%s/%072d", run, 0);
	mkdir(text, 0700);
	setenv("XDG_RUNTIME_DIR", text, 1);
	user = join();
	tap_ok(!user.joined && strstr(user.noted, "is too long for a socket") &&
		       strstr(user.noted, text) && !nr_done("start"),
	       "%s", user.noted);
	end(&user);
	for (const char *const *other = (const char *const[]){ "", "run", in(top, "none"), NULL };
	     *other; other++) {
		setenv("XDG_RUNTIME_DIR", *other, 1);
		own_directory(text, sizeof(text));
		tap_ok(!strncmp(text, "/tmp/gpupart-mps-", 17) &&
			       (unsigned int)atoi(text + 17) == geteuid(),
		       "XDG_RUNTIME_DIR=%s: %s", *other, text);
	}
	mkdir(in(top, "another"), 0700);
	if (geteuid() || chown(in(top, "another"), 65534, 65534)) {
		tap_skip("not root: cannot create a directory of another user");
	} else {
		setenv("XDG_RUNTIME_DIR", in(top, "another"), 1);
		own_directory(text, sizeof(text));
		tap_ok(!strcmp(text, "/tmp/gpupart-mps-0"),
		       "XDG_RUNTIME_DIR is another user's, as su(1) leaves it: %s", text);
	}
	setenv("XDG_RUNTIME_DIR", run, 1);
}

static void test_failures(void)
{
	char named[128];
	struct user user;
	long start;

	clear();
	put(in(fake, "fails"), "Start\nno GPU can be had\n\n");
	user = join();
	tap_ok(!user.joined && strstr(user.noted, "-d failed with status 3: no GPU can be had: ") &&
		       !nr_lines(in(top, "env"), "CUDA_MPS_") && !is_there(in(own, STARTED)) &&
		       !nr_keepers(NULL),
	       "it does not start: %s", user.noted);
	end(&user);
	put(in(fake, "fails"), "");
	user = join();
	tap_ok(strstr(user.noted, "-d failed with status 3: said, not logged: "),
	       "what an earlier one logged is not what went wrong: %s", user.noted);
	end(&user);
	tap_ok(nr_lines(in(fake, "marker"), "0 ") == 1, "it was noted before it was started");

	clear();
	snprintf(named, sizeof(named), "%s", in(top, "named"));
	start_foreign(named);
	put(in(fake, "hangs"), "");
	setenv(MPS_DAEMON_PIPES, named, 1);
	start = process_now_ms();
	user = join();
	start = process_now_ms() - start;
	tap_ok(!user.joined && nr_done("start") == 1 &&
		       strstr(user.noted, "-d started no daemon that answers within 10 s") &&
		       start < 25000 && !is_there(in(own, STARTED)) && !nr_keepers(NULL),
	       "neither the named one nor ours answers: %s (%ld ms)", user.noted, start);
	tap_ok(SOON(!daemon_of(own)) && daemon_of(named), "ours is ended, the other one not");
	end(&user);
}

/*
 * gpupart's own daemon is alive but does not answer. No second daemon may be started. Until the
 * first daemon answers, it must not be ended.
 */
static void test_deaf(void)
{
	struct user a, b;

	clear();
	a = join();
	put(in(fake, "hangs"), "");
	b = join();
	tap_ok(a.joined && !b.joined && strstr(b.noted, "does not answer") &&
		       nr_done("start") == 1,
	       "no second one: %s", b.noted);
	end(&b);
	end(&a);
	tap_ok(SOON(!nr_keepers(NULL)) && daemon_of(own) && is_there(in(own, STARTED)),
	       "its keeper does not wait for it for ever");
	unlink(in(fake, "hangs"));
	a = join();
	end(&a);
	tap_ok(SOON(!nr_keepers(NULL)) && !daemon_of(own) && nr_done("start") == 1 &&
		       nr_done("quit") == 1,
	       "once it answers, it is used and ended");
}

static void test_killed_keeper(void)
{
	struct user user;
	int keeper = 0;

	clear();
	user = join();
	(void)SOON(nr_keepers(&keeper) == 1);
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	end(&user);
	usleep(300000);
	tap_ok(user.joined && !nr_done("quit") && daemon_of(own) && is_there(in(own, STARTED)),
	       "a killed keeper leaves the daemon");
	user = join();
	tap_ok(user.joined && nr_done("start") == 1, "the next one joins it");
	end(&user);
	tap_ok(SOON(!nr_keepers(NULL)) && nr_done("quit") == 1 && !daemon_of(own), "and ends it");
}

/*
 * A program has ended, but its child still runs. The child is still a client, so the daemon waits
 * for the child.
 */
static void test_quitting(void)
{
	struct user user;
	int keeper = 0;
	long start;

	clear();
	user = join();
	put(in(fake, "clients"), "");
	end(&user);
	tap_ok(SOON(nr_done("quit") == 1), "the daemon gets a quit");
	start = process_now_ms();
	user = join();
	start = process_now_ms() - start;
	tap_ok(!user.joined &&
		       strstr(user.noted, "waits until processes of earlier runs have ended") &&
		       start < LOCK_SECONDS * 1000L,
	       "who comes now does not join it: %s (%ld ms)", user.noted, start);
	end(&user);
	(void)SOON(nr_keepers(&keeper) == 1);
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	user = join();
	tap_ok(!user.joined &&
		       strstr(user.noted, "waits until processes of earlier runs have ended") &&
		       nr_done("start") == 1,
	       "nor when its keeper was killed");
	end(&user);
	unlink(in(fake, "clients"));
	tap_ok(SOON(!daemon_of(own)), "its clients end, and so does it");
	user = join();
	tap_ok(user.joined && nr_done("start") == 2, "the next one has a new one: %s", user.noted);
	end(&user);
	tap_ok(SOON(!nr_keepers(NULL)) && nr_done("quit") == 2, "and ends that");
}

/* On kernels without pidfd_open, the process is polled. */
static void test_wait(void)
{
	struct process process;
	long start = process_now_ms();
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		usleep(500000);
		_exit(0);
	}
	process_find(pid, &process);
	wait_for_program(-1, &process);
	start = process_now_ms() - start;
	tap_ok(start >= 450 && start < 30000, "waiting without a pidfd: %ld ms", start);
	tap_ok(!process_lives(&process), "a process of which only the status is left has ended");
	waitpid(pid, NULL, 0);
	process_find(getpid(), &process);
	tap_ok(process_lives(&process), "this one has not");
	process.start++;
	tap_ok(!process_lives(&process), "one that started at another time is another");
}

/* Returns 0 if user 65534 finds the node's daemon, or -errno. */
static int find_as_user(void)
{
	struct mps_daemon daemon = { 0 };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(setresuid(65534, 65534, 65534) ? 255 : -mps_daemon_find_node(&daemon));
	waitpid(pid, &status, 0);
	return -WEXITSTATUS(status);
}

/* /run is private to this process. */
static void test_node(void)
{
	struct mps_daemon daemon = { 0 };
	struct user user;
	int fd;

	clear();
	tap_ok(mps_daemon_find_node(&daemon) == -ENOENT, "a node that is to have no daemon: %s",
	       daemon.why);
	user = join();
	tap_ok(user.joined && !*user.noted && env_has(in(top, "env"), MPS_DAEMON_PIPES, own),
	       "run has its own there, and says nothing: %s", user.noted);
	end(&user);
	(void)SOON(!nr_keepers(NULL));

	clear();
	mkdir("/run/gpupart", 0755);
	mkdir(MPS_DAEMON_NODE, 0755);
	start_foreign(MPS_DAEMON_NODE);
	user = join();
	tap_ok(user.joined && !*user.noted && !nr_done("start") &&
		       env_has(in(top, "env"), MPS_DAEMON_PIPES, MPS_DAEMON_NODE) &&
		       env_has(in(top, "env"), "CUDA_DEVICE_MAX_CONNECTIONS", "8") &&
		       !nr_lines(in(top, "env"), MPS_DAEMON_LOGS "="),
	       "the node's daemon is joined: %s", user.noted);
	tap_ok(!nr_keepers(NULL) && !is_there(own), "no keeper, no daemon of the user's own");
	end(&user);
	setenv(MPS_DAEMON_PIPES, in(top, "named"), 1);
	user = join();
	tap_ok(user.joined && strstr(user.noted, "no daemon answers in") &&
		       strstr(user.noted, "using " MPS_DAEMON_NODE) &&
		       env_has(in(top, "env"), MPS_DAEMON_PIPES, MPS_DAEMON_NODE),
	       "also where another one is named that is not there: %s", user.noted);
	end(&user);
	setenv(MPS_DAEMON_PIPES, MPS_DAEMON_NODE, 1);
	user = join();
	tap_ok(user.joined && !*user.noted, "and where it is named: %s", user.noted);
	end(&user);

	put(in(fake, "stumbles"), "");
	tap_ok(!mps_daemon_find_node(&daemon) && !is_there(in(fake, "stumbles")),
	       "one that fails once is asked again: %s", daemon.why);
	put(in(fake, "hangs"), "");
	tap_ok(mps_daemon_find_node(&daemon) == -ECONNREFUSED &&
		       strstr(daemon.why, "does not answer in " MPS_DAEMON_NODE),
	       "one that hangs is not joined: %s", daemon.why);
	unlink(in(fake, "hangs"));
	kill_daemon(MPS_DAEMON_NODE);
	user = join();
	tap_ok(user.joined && strstr(user.noted, "does not answer in " MPS_DAEMON_NODE) &&
		       strstr(user.noted, "using ") &&
		       env_has(in(top, "env"), MPS_DAEMON_PIPES, own),
	       "killed, its files left: said, and run has its own: %s", user.noted);
	end(&user);
	(void)SOON(!nr_keepers(NULL));

	fd = listen_at(MPS_DAEMON_NODE "/control");
	chmod(MPS_DAEMON_NODE "/control", 0777);
	tap_ok(!find_as_user(), "an ordinary user: one listens that all can connect to");
	chmod(MPS_DAEMON_NODE "/control", 0700);
	tap_ok(find_as_user() == -ECONNREFUSED, "one listens for root alone: not joined");
	chmod(MPS_DAEMON_NODE "/control", 0777);
	close(fd);
	tap_ok(find_as_user() == -ECONNREFUSED, "none listens at the socket: not joined");

	chmod(MPS_DAEMON_NODE, 0775);
	tap_ok(mps_daemon_find_node(&daemon) == -EPERM && strstr(daemon.why, "only root"), "%s",
	       daemon.why);
	chmod(MPS_DAEMON_NODE, 0755);
	if (chown(MPS_DAEMON_NODE, 65534, 0))
		printf("# not chowned\n");
	tap_ok(mps_daemon_find_node(&daemon) == -EPERM, "another user's directory is not used");
	if (rename(MPS_DAEMON_NODE, "/run/gpupart/x") || symlink("x", MPS_DAEMON_NODE))
		printf("# no link\n");
	tap_ok(mps_daemon_find_node(&daemon) == -EPERM, "nor a link");
	unlink(MPS_DAEMON_NODE);
}

static void test_turns(void)
{
	char pci[20], other[20], text[32], byte;
	struct gpupart *gp;
	int ready[2], fd;
	pid_t pid;

	clear();
	if (gpupart_open(&gp) || pipe(ready))
		return;
	/*
	 * The daemon is for a GPU that does not exist, because other tests may run on this
	 * machine.
	 */
	snprintf(pci, sizeof(pci), "f%03x:%02x:01.0", getpid() >> 8 & 0xfff, getpid() & 0xff);
	snprintf(other, sizeof(other), "f%03x:%02x:02.0", getpid() >> 8 & 0xfff, getpid() & 0xff);
	mps_note_turns(pci);
	tap_ok(!*noted, "no other program on the GPU: no message: %s", noted);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct gpupart_gpu_info info = { 0 };

		snprintf(info.pci, sizeof(info.pci), "%s", pci);
		byte = !state_page_publish("other", NULL) && state_add_gpu(&info, 0);
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1 || !byte) {
		tap_skip("no block of a process can be made below /dev/shm");
		goto out;
	}
	mps_note_turns(other);
	tap_ok(!*noted, "others on another GPU: no message: %s", noted);
	snprintf(text, sizeof(text), "process %d also uses", pid);
	mps_note_turns(pci);
	tap_ok(strstr(noted, text) && strstr(noted, "in time slices") && strstr(noted, "--mps"),
	       "%s", noted);
	*noted = 0;
	setenv(MPS_DAEMON_PIPES, in(top, "named"), 1);
	mps_note_turns(pci);
	tap_ok(strstr(noted, "in time slices"), "a named directory without a daemon: said");
	*noted = 0;
	fd = listen_at(in(top, "named/control"));
	put(in(fake, "hangs"), "");
	mps_note_turns(pci);
	tap_ok(!*noted, "one listens there: no message, and no wait: %s", noted);
	close(fd);
	mps_note_turns(pci);
	tap_ok(strstr(noted, "in time slices"), "its socket without it: said");
out:
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	gpupart_close(gp);
	clear();
}

/* Before a client is killed, the daemon gets requests about the client. Tests these requests. */
static void test_end_client(void)
{
	char wanted[64];

	clear();
	put(in(fake, "servers"), "501\n");
	snprintf(wanted, sizeof(wanted), "terminate_client 501 %d lives", getpid());
	mps_end_client(getpid());
	tap_ok(!nr_done(wanted), "no daemon: nothing is asked for");
	start_foreign(own);
	mps_end_client(getpid());
	tap_ok(nr_done(wanted) == 1, "the user's own daemon is asked to end a client's work");
	unlink(in(fake, "log"));
	setenv(MPS_DAEMON_PIPES, in(top, "named"), 1);
	start_foreign(in(top, "named"));
	mps_end_client(getpid());
	tap_ok(nr_done(wanted) == 2, "so is one that is named");
	unlink(in(fake, "log"));
	if (geteuid() || chown(in(top, "named"), 54321, -1)) {
		tap_skip("no directory of another user: not root");
	} else {
		mps_end_client(getpid());
		tap_ok(nr_done(wanted) == 1, "another user's is not");
	}
	unlink(in(fake, "servers"));
	kill_daemon(in(top, "named"));
	kill_daemon(own);
	clear();
}

int main(void)
{
	char *source = realpath("tests/other_mps.sh", NULL), path[4096], command[256];
	bool has_run;

	/* Keepers have left their parents and become children of this process. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		printf("1..0 # SKIP orphans cannot be adopted here (qemu-user)\n");
		return 77;
	}
	strcpy(top, "/tmp/mps.XXXXXX");
	if (!source || !mkdtemp(top))
		return 1;
	snprintf(own, sizeof(own), "%s/run/gpupart-mps", top);
	snprintf(fake, sizeof(fake), "%s/fake", top);
	snprintf(path, sizeof(path), "%s/bin:%s", top, getenv("PATH"));
	setenv("PATH", path, 1);
	setenv("FAKE_MPS", fake, 1);
	setenv("XDG_RUNTIME_DIR", in(top, "run"), 1);
	mkdir(in(top, "bin"), 0700);
	if (symlink(source, in(top, "bin/" CONTROL)))
		return 1;
	free(source);

	/* With a private mount namespace, no test uses the machine's own daemon. */
	has_run = !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		  !mount("none", "/run", "tmpfs", 0, "mode=755");
	if (has_run)
		test_node();
	else
		tap_skip("no /run of its own can be had here: not root");
	test_two_users();
	test_end_of_file();
	test_race();
	test_named();
	test_no_program();
	test_whose();
	test_dead();
	test_directories();
	test_failures();
	test_deaf();
	test_killed_keeper();
	test_quitting();
	test_wait();
	test_end_client();
	test_turns();
	clear();
	snprintf(command, sizeof(command), "rm -rf %s", top);
	if (system(command))
		printf("# %s is left\n", top);
	return tap_done();
}
