// SPDX-License-Identifier: MIT
/*
 * Starts, adopts and ends the programs of `gpupart qos run` and `calibrate`. Holds the lock of the
 * GPU and waits for events.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/qos/control.h"
#include "cli/qos/lend.h"
#include "cli/target/neighbours.h"
#include "cli/target/state_dir.h"
#include "cli/start/run.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/number.h"

#define END_TIMEOUT_NS	3000000000ull	/* time limit for the end of a program after SIGTERM */

/* ------------------------------------------------------------------------- set up */

static int take_lock(struct control *c)
{
	char folder[STATE_DIR_PATH_LEN], path[STATE_DIR_PATH_LEN + 40], why[160];

	if (state_dir_create(geteuid(), why, sizeof(why)))
		return failure("%s", why);
	snprintf(path, sizeof(path), "%s/qos-%s.lock", state_dir_path(geteuid(), folder),
		 c->live.pci);
	c->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		       0600);
	if (c->lock >= 0 && !flock(c->lock, LOCK_EX | LOCK_NB))
		return 0;
	return failure("%s: %s", path,
		       c->lock >= 0 && errno == EWOULDBLOCK ?
			       "another 'gpupart qos' or 'gpupart tune' runs on this GPU" :
			       strerror(errno));
}

static int read_number(struct control *c, const char *option, const char *text, unsigned int most)
{
	unsigned long value;

	if (!text)
		return 0;
	if (!number_whole(text, most, &value))
		return usage_error("%s '%s': must be a number from 1 to %u", option, text, most);
	c->number = value;
	return 0;
}

static int read_tenants(struct control *c, const struct args *args)
{
	const struct qos_options *options = c->options;
	struct yaml yaml;
	int status = options->tenants.nr ?
			     qos_options_open(&yaml, options, args->program) :
			     yaml_open(&yaml, "-f ", options->file, "a file of tenants");

	if (status)
		return status;
	if (!yaml_root(&yaml))
		status = usage_error("%s: the file is empty: it must have 'tenants:'", yaml.path);
	else if (!qos_setup_read(&c->setup, &yaml, yaml_root(&yaml), c->calibrating ?
				 QOS_FILE_CALIBRATE : QOS_FILE_PROGRAMS))
		status = EXIT_USAGE;
	else if (options->tenants.nr)
		qos_options_program(&c->setup, args->program);
	yaml_close(&yaml);
	return status;
}

/*
 * Reads the solo times of the kernels of tenant @i from a file. Without a file, prepares to learn
 * these times.
 */
static int open_kernels(struct control *c, unsigned int i)
{
	const struct qos_spec *spec = &c->setup.specs[i];
	struct live_tenant *t = &c->live.tenants[i];

	if (spec->signal != QOS_SIGNAL_KERNELS)
		return 0;
	t->alone = alloc_zeroed(1, sizeof(*t->alone));
	if (!*spec->durations || c->calibrating)
		t->to_learn = 8;
	else if (kernels_read(t->alone, spec->durations, t->name))
		return EXIT_USAGE;
	remark("%s: 'signal: kernels' is experimental: the measured speed may be wrong", t->name);
	return 0;
}

int control_open(struct control *c, const struct args *args, const struct qos_options *options)
{
	struct live *live = &c->live;
	int status;

	c->options = options;
	c->lock = c->signals = live->socket = -1;
	live->args = args;
	status = c->calibrating ? read_number(c, "--seconds", options->seconds, 3600) :
				  read_number(c, "--epochs", options->epochs, 100000000);
	status = status ?: read_tenants(c, args) ?: args_topology((struct args *)args, &live->topo);
	if (status)
		return status;
	snprintf(live->pci, sizeof(live->pci), "%s", !args->simulated ?
		 gpupart_topology_info(live->topo)->pci : args->gpu ? args->gpu : "0");
	for (live->nr = 0; live->nr < c->setup.nr; live->nr++) {
		struct live_tenant *t = &live->tenants[live->nr];

		t->name = c->setup.tenants[live->nr].name;
		t->goal_ns = c->setup.tenants[live->nr].latency_ns;
		t->members = alloc_zeroed(LIVE_MAX_MEMBERS, sizeof(*t->members));
		status = status ?: open_kernels(c, live->nr);
	}
	/* A dry run changes no set, so another controller may run at the same time. */
	return status ?: options->dry_run ? 0 : take_lock(c);
}

/* For the guard: tenant @i has the process group @group. If @group is 0, the guard exits. */
struct order {
	unsigned int i;
	pid_t group;
};

/* After this call, the guard process does not restore the sets. */
static void guard_end(struct control *c)
{
	const struct order done = { .group = 0 };

	if (!c->guard)
		return;
	if (write(c->guard, &done, sizeof(done)) == sizeof(done))
		waitpid(c->guard_pid, NULL, 0);
	close(c->guard);
	c->guard = 0;
}

void control_close(struct control *c)
{
	guard_end(c);
	lend_close(c);
	live_close(&c->live);
	qos_setup_free(&c->setup);
	if (c->signals >= 0)
		close(c->signals);
	if (c->lock >= 0)
		close(c->lock);
	gpupart_topology_close(c->live.topo);
}

/* -------------------------------------------------------------------------- adopt */

/* Returns whether a process belongs to both tenants. */
static bool overlap(const struct live_tenant *a, const struct live_tenant *b,
		    const struct gpupart_job *jobs, int nr)
{
	if (a->pid && b->pid)
		return a->pid == b->pid;
	return (!b->pid && *b->within && shown_is_inside(jobs, nr, a->within, b->within)) ||
	       (!a->pid && *a->within && shown_is_inside(jobs, nr, b->within, a->within));
}

#define bad_tenant(c, i, fmt, ...)                                                \
	usage_error("%s:%d: %s: " fmt, (c)->setup.path, (c)->setup.specs[i].line, \
		    (c)->setup.tenants[i].name, __VA_ARGS__)

/*
 * Checks that no other tenant has the program of tenant @i. The two tenants could have different
 * sets.
 */
static int check_adopted(const struct control *c, const struct gpupart_job *jobs, int nr)
{
	const struct live_tenant *t = c->live.tenants;

	for (unsigned int i = 0; i < c->live.nr; i++)
		for (unsigned int j = 0; j < i; j++)
			if (t[i].adopted && t[j].adopted && overlap(&t[i], &t[j], jobs, nr))
				return bad_tenant(c, i,
						  "tenant %s already has this program or a part "
						  "of it: one program cannot be two tenants",
						  t[j].name);
	return 0;
}

/*
 * Checks that no outer run limits the program of a tenant. The policy could not give this program
 * TPCs outside the set of the outer run.
 */
static int check_outer(const struct control *c, const struct gpupart_job *jobs, int nr)
{
	struct gpupart_tpcset all = gpupart_topology_all(c->live.topo), set;
	const char *own = getenv("GPUPART_JOB") ?: "";

	for (unsigned int i = 0; i < c->live.nr; i++)
		for (int j = 0; j < nr; j++) {
			const struct gpupart_job *outer =
				strcmp(jobs[j].id, c->live.tenants[i].within) ? NULL :
				shown_job_on(jobs, nr, jobs[j].parent, c->live.pci);

			if (outer && !shown_is_inside(jobs, nr, own, outer->id) &&
			    !gpupart_tpcset_parse_list(NULL, outer->limit, &set) &&
			    !gpupart_tpcset_equal(&set, &all))
				return bad_tenant(c, i,
						  "the outer run '%s' limits this program to TPCs "
						  "%s: use the outer run as the job",
						  outer->name, outer->limit);
		}
	return 0;
}

/* Stores the job and the set of the adopted program. */
static void store_adopted(struct control *c, unsigned int i, const char *job, const char *limit)
{
	struct live_tenant *t = &c->live.tenants[i];

	t->adopted = true;
	t->borrowed = UINT64_MAX;	/* not known yet */
	snprintf(t->within, sizeof(t->within), "%s", job);
	if (*limit)
		gpupart_tpcset_parse_list(NULL, limit, &c->setup.tenants[i].adopted);
}

static int adopt_pid(struct control *c, unsigned int i)
{
	struct live_tenant *t = &c->live.tenants[i];
	struct gpupart_process *list;
	int nr = shown_processes(cmd_gp, &list);
	bool others = false;

	t->pid = c->setup.specs[i].pid;
	for (int p = 0; p < nr; p++)
		if (list[p].pid == t->pid && !strcmp(list[p].pci, c->live.pci)) {
			others = list[p].uid != geteuid();
			store_adopted(c, i, list[p].job, list[p].limit);
		}
	free(list);
	if (others)
		return bad_tenant(c, i,
				  "process %d belongs to another user: only that user's 'gpupart "
				  "qos' can adopt it",
				  t->pid);
	return t->adopted ? 0 :
	       bad_tenant(c, i, "process %d does not confine launches on %s: see 'gpupart ps'",
			  t->pid, c->live.pci);
}

static int adopt_job(struct control *c, unsigned int i, const struct gpupart_job *jobs, int nr)
{
	const char *wanted = c->setup.specs[i].job;
	const struct neighbours here = {
		.args = c->live.args, .topo = c->live.topo, .pci = c->live.pci,
	};
	struct live_tenant *t = &c->live.tenants[i];
	const struct gpupart_job *elsewhere = NULL;
	unsigned int nr_named = 0;

	for (int j = 0; j < nr; j++) {
		if (strcmp(jobs[j].name, *wanted ? wanted : t->name))
			continue;
		t->several = ++nr_named > 1;
		if (!neighbours_is_here(&here, jobs[j].pci, jobs[j].source, jobs[j].simulated)) {
			elsewhere = &jobs[j];
			continue;
		}
		if (t->adopted) {
			remark("%s: several jobs are named '%s': using the first one, with the id "
			       "%s", t->name, jobs[j].name, t->job);
			break;
		}
		snprintf(t->job, sizeof(t->job), "%s", jobs[j].id);
		store_adopted(c, i, jobs[j].id, jobs[j].limit);
	}
	if (!t->adopted && *wanted && elsewhere)
		return bad_tenant(c, i, "job '%s' runs on GPU %s of %s, not on GPU %s of %s",
				  wanted, elsewhere->pci, elsewhere->source, c->live.pci,
				  gpupart_topology_info(c->live.topo)->source);
	return t->adopted || !*wanted ? 0 :
	       bad_tenant(c, i, "no job '%s' runs on %s: see 'gpupart ps'", wanted, c->live.pci);
}

int control_adopt(struct control *c)
{
	struct gpupart_job *jobs;
	int nr = shown_jobs(cmd_gp, &jobs), status = 0;

	for (unsigned int i = 0; i < c->setup.nr && !status; i++) {
		status = c->setup.specs[i].pid ? adopt_pid(c, i) : adopt_job(c, i, jobs, nr);
		if (!status && c->live.tenants[i].adopted && c->setup.specs[i].program)
			remark("%s already runs and was adopted", c->setup.tenants[i].name);
	}
	if (!status)
		status = check_adopted(c, jobs, nr) ?:
			 c->calibrating ? 0 : check_outer(c, jobs, nr);
	free(jobs);
	return status;
}

/* -------------------------------------------------------------------------- start */

/*
 * The child sends this message to its parent. If @status is 0, the message contains the child's
 * job. Otherwise the child failed to start.
 */
struct word {
	int status;
	char job[GPUPART_JOB_STRLEN];
};

static void report_to_parent(int fd, int status)
{
	struct word word = { .status = status };
	const char *job = getenv("GPUPART_JOB");

	snprintf(word.job, sizeof(word.job), "%s", job ? job : "");
	while (write(fd, &word, sizeof(word)) < 0 && errno == EINTR)
		;
}

static void __attribute__((noreturn)) be_program(const struct control *c, unsigned int i,
						 const char *list, int fd)
{
	const struct run_wishes wishes = {
		.name = c->setup.tenants[i].name, .mps = c->options->mps,
	};
	const struct order order = { i, getpid() };
	struct args args = *c->live.args;
	int status;

	if (c->calibrating)
		setpgid(0, 0);
	/*
	 * Tell the guard now, because the parent may be killed at any time. If the guard was
	 * killed, the parent starts another one, which knows the group.
	 */
	if (c->guard && write(c->guard, &order, sizeof(order)) == sizeof(order))
		close(c->guard);
	sigprocmask(SIG_SETMASK, &c->before, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* The program's output must not appear between lines of JSON or in the table of tune. */
	if ((args.json || c->options->goal) && !args.output)
		dup2(2, 1);
	if (c->live.tenants[i].report)
		setenv("GPUPART_REPORT", c->live.tenants[i].report_id, 1);
	args.program = c->setup.specs[i].program;
	args.nr_terms = 1;
	args.terms[0].option = "-t";
	args.terms[0].text = list;
	status = run_confine(&args, &wishes);
	if (!status) {
		report_to_parent(fd, 0);
		status = run_become(&args);
	}
	status = cmd_exit_status(status, true);
	report_to_parent(fd, status);
	_exit(status);
}

int control_start(struct control *c, unsigned int i, const struct gpupart_tpcset *set)
{
	struct live_tenant *t = &c->live.tenants[i];
	struct word word = { 0 };
	char list[GPUPART_TPCSET_STRLEN];
	int fds[2];
	ssize_t len;

	gpupart_tpcset_format_list(set, list, sizeof(list));
	if (pipe2(fds, O_CLOEXEC))
		return cmd_fail(cmd_name, EXIT_RUN_FAILED, "cannot create a pipe: %s",
				strerror(errno));
	lend_open(c, i);
	fflush(NULL);
	t->gone = false;
	t->child = t->group = fork();
	if (!t->child)
		be_program(c, i, list, fds[1]);
	close(fds[1]);
	if (t->child < 0)
		word.status =
			cmd_fail(cmd_name, EXIT_RUN_FAILED, "cannot create a process: %s",
				 strerror(errno));
	/*
	 * The kernel closes the pipe when the child executes the program. Read the job now, because
	 * the program may end at once while its children continue.
	 */
	do
		len = read(fds[0], &word, sizeof(word));
	while (len > 0 || (len < 0 && errno == EINTR));
	close(fds[0]);
	if (!word.status) {
		memcpy(t->job, word.job, sizeof(t->job));
		return 0;
	}
	if (t->child > 0)
		waitpid(t->child, NULL, 0);
	t->child = t->group = 0;
	return word.status;
}

/* ---------------------------------------------------------------------------- sets */

void control_give(struct control *c, const struct gpupart_tpcset *sets)
{
	char list[GPUPART_TPCSET_STRLEN];

	for (unsigned int i = 0; i < c->live.nr; i++) {
		if (!live_set(&c->live, i, &sets[i]))
			continue;
		gpupart_tpcset_format_list(&sets[i], list, sizeof(list));
		remark("%s: %s; to give it TPCs %s, run 'gpupart set %s -t %s'",
		       c->live.tenants[i].name, gpupart_error(cmd_gp), list,
		       live_job_name(&c->live.tenants[i]), list);
	}
}

/*
 * Signals to the process group of this command do not reach the guard, because the guard has its
 * own session.
 */
static void __attribute__((noreturn)) be_guard(struct control *c, int fd)
{
	struct order order;
	sigset_t all;
	ssize_t len;
	bool runs = true;
	uint64_t until = 0;

	setsid();
	sigfillset(&all);
	/*
	 * A truncated state page is an error for one tenant, not for the guard: see
	 * gpupart_remote_open().
	 */
	sigdelset(&all, SIGBUS);
	sigprocmask(SIG_SETMASK, &all, NULL);
	while ((len = read(fd, &order, sizeof(order))) > 0 || (len < 0 && errno == EINTR)) {
		if (len > 0 && !order.group)
			_exit(0);
		if (len > 0)
			c->live.tenants[order.i].group = order.group;
	}
	control_give(c, c->old);
	/* At the end of the time limit, SIGKILL. Until then, looks whether a program still runs. */
	while (runs) {
		const uint64_t now = process_now_ns();
		const int number = !until ? SIGTERM : now < until ? 0 : SIGKILL;

		runs = false;
		until = until ?: now + END_TIMEOUT_NS;
		for (unsigned int i = 0; i < c->live.nr; i++)
			if (c->live.tenants[i].group && !kill(-c->live.tenants[i].group, number))
				runs = number != SIGKILL;
		poll(NULL, 0, runs ? 50 : 0);
	}
	_exit(0);
}

int control_guard(struct control *c)
{
	int fds[2];

	if (c->guard)
		return 0;
	if (pipe2(fds, O_CLOEXEC))
		return failure("cannot create a pipe: %s", strerror(errno));
	/* If the guard was killed, a write to the pipe must return an error. */
	signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	c->guard_pid = fork();
	if (!c->guard_pid) {
		close(fds[1]);
		be_guard(c, fds[0]);
	}
	close(fds[0]);
	c->guard = fds[1];
	return c->guard_pid > 0 ? 0 : failure("cannot create a process: %s", strerror(errno));
}

/* ------------------------------------------------------------------------ signals */

int control_take_signals(struct control *c)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	/* The terminal sends SIGINT to the programs, too. */
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	/* If SIGCHLD were ignored, the kernel would keep no exit statuses. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &mask, &c->before);
	c->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return c->signals >= 0 ? 0 : failure("cannot create a signalfd: %s", strerror(errno));
}

int control_begin(struct control *c, const char *others)
{
	int status = control_take_signals(c);

	if (status)
		return status;
	live_open_socket(&c->live);
	live_find(&c->live, true);
	live_print_new_others(&c->live, others);
	return 0;
}

void control_reap(struct control *c)
{
	int wstatus;
	pid_t pid;

	while ((pid = waitpid(-1, &wstatus, WNOHANG)) > 0) {
		if (c->guard && pid == c->guard_pid) {
			close(c->guard);
			c->guard = 0;
			control_guard(c);
		}
		for (unsigned int i = 0; i < c->live.nr; i++) {
			struct live_tenant *t = &c->live.tenants[i];

			if (t->child != pid)
				continue;
			c->live.look = true;
			t->child = 0;
			t->status = WIFSIGNALED(wstatus) ? 128 + WTERMSIG(wstatus)
							 : WEXITSTATUS(wstatus);
		}
	}
}

/*
 * Sends signal @number to the program and to its process group. The group may outlive the program.
 */
static void signal_tenant(const struct live_tenant *t, int number)
{
	kill(-t->group, number);
	for (unsigned int m = 0; m < t->nr_members; m++) {
		const struct gpupart_process member = {
			.pid = t->members[m].pid, .uid = geteuid(),
		};

		if (gpupart_process_signal(cmd_gp, &member, number, NULL, NULL) == -ENOSYS)
			remark("%s: %s", t->name, gpupart_error(cmd_gp));
	}
}

void control_end(struct control *c, unsigned int i)
{
	struct live_tenant *t = &c->live.tenants[i];
	uint64_t until = process_now_ns() + END_TIMEOUT_NS;

	if (!t->group)
		return;
	signal_tenant(t, SIGTERM);
	while (t->child && process_now_ns() < until) {
		poll(NULL, 0, 10);
		control_reap(c);
	}
	signal_tenant(t, SIGKILL);
	if (t->child)
		waitpid(t->child, NULL, 0);
	t->child = t->group = 0;
}

bool control_all_gone(const struct control *c)
{
	for (unsigned int i = 0; i < c->live.nr; i++)
		if (!c->live.tenants[i].gone)
			return false;
	return true;
}

void control_wait(struct control *c, uint64_t until_ns)
{
	struct pollfd fds[2] = {
		{ .fd = c->signals, .events = POLLIN }, { .fd = c->live.socket, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	struct timespec left;
	uint64_t now;

	while (!c->ended_by && (now = process_now_ns()) < until_ns) {
		left.tv_sec = (until_ns - now) / 1000000000;
		left.tv_nsec = (until_ns - now) % 1000000000;
		/* ppoll ignores a descriptor of -1. */
		if (ppoll(fds, 2, &left, NULL) <= 0)
			continue;
		/*
		 * Read the socket at once. It has room for a few lines, and a full socket blocks
		 * its writers.
		 */
		if (fds[1].revents)
			live_listen(&c->live);
		while (read(c->signals, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				c->ended_by = info.ssi_signo;
		control_reap(c);
		live_find(&c->live, false);
		if (control_all_gone(c))
			return;
	}
}
