// SPDX-License-Identifier: MIT
/*
 * gpupart qos run and calibrate: starts programs or adopts running ones, and each epoch has
 * them measured, decided and set. Knows neither how progress is read nor how it is decided.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "blocks.h"
#include "cmd.h"
#include "qos_live.h"
#include "qos_results.h"
#include "run.h"
#include "shown.h"

#define SWAP_POLLS 8	/* looks an epoch, while something drains */
#define LOOK_SHARE 300	/* of the time: at most that part of it is spent on power and clocks */

struct control {
	const struct args *args;
	const struct qos_options *options;
	struct yaml yaml;
	struct gpupart *gp;
	struct gpupart_topology *topo;
	struct qos_setup setup;
	struct qos_session session;
	struct live live;
	struct out out;
	struct qos_results results;
	int lock, signals;
	sigset_t mask, before;
	uint64_t begin_ns, epoch_began_ns;
	unsigned int most_epochs;	/* 0: no end */
	uint64_t next_look_ns;		/* at the GPU's power and clocks */
	int ended_by;			/* a signal to us; 0 none */
	bool screen;
	bool calibrating;		/* what is started is ended by us */
};

/* --------------------------------------------------------------------- one of them */

/* A second controller of a GPU would undo what the first one does. */
static int take_lock(struct control *c)
{
	char folder[BLOCKS_PATH_LEN], path[BLOCKS_PATH_LEN + 40], why[160];

	if (blocks_make(geteuid(), why, sizeof(why)))
		return cmd_fail(c->args->cmd, EXIT_FAILED, "%s", why);
	snprintf(path, sizeof(path), "%s/qos-%s.lock", blocks_path(geteuid(), folder), c->live.pci);
	c->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		       0600);
	if (c->lock < 0)
		return cmd_fail(c->args->cmd, EXIT_FAILED, "%s: %s", path, strerror(errno));
	if (!flock(c->lock, LOCK_EX | LOCK_NB))
		return -1;
	return cmd_fail(c->args->cmd, EXIT_FAILED, "%s: %s", path, errno == EWOULDBLOCK ?
			"another gpupart qos runs on this GPU" : strerror(errno));
}

/*
 * Another user's controller does not see our programs, nor we theirs: it cannot be kept from
 * TPCs that it thinks are free. Sockets that are bound have their paths in /proc.
 */
static void note_other_users(const struct control *c)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512], end[64], ours[BLOCKS_PATH_LEN];
	const char *path;

	snprintf(end, sizeof(end), "/qos-%.19s.socket\n", c->live.pci);
	blocks_path(geteuid(), ours);
	while (file && fgets(line, sizeof(line), file)) {
		path = strstr(line, BLOCKS_ROOT "/gpupart-");
		if (!path || strlen(path) < strlen(end) ||
		    strcmp(path + strlen(path) - strlen(end), end) ||
		    (!strncmp(path, ours, strlen(ours)) && path[strlen(ours)] == '/'))
			continue;
		cmd_note(c->args->cmd,
			 "another user's 'gpupart qos' runs on this GPU (uid %lu): neither knows what the other one gives, and TPCs may be given twice",
			 strtoul(path + strlen(BLOCKS_ROOT "/gpupart-"), NULL, 10));
	}
	if (file)
		fclose(file);
}

/* -------------------------------------------------------------------------- adopt */

/* Whether one has processes that are the other's. */
static bool overlap(const struct live_tenant *a, const struct live_tenant *b,
		    const struct gpupart_job *jobs, int nr)
{
	if (a->pid && b->pid)
		return a->pid == b->pid;
	return (!b->pid && *b->within && live_is_inside(jobs, nr, a->within, b->within)) ||
	       (!a->pid && *a->within && live_is_inside(jobs, nr, b->within, a->within));
}

/* One program cannot have two sets. -1 to go on, or a status. */
static int check_adopted(const struct control *c, const struct gpupart_job *jobs, int nr)
{
	for (unsigned int i = 0; i < c->live.nr; i++)
		for (unsigned int j = 0; j < i; j++) {
			const struct live_tenant *a = &c->live.tenants[i], *b = &c->live.tenants[j];

			if (!a->adopted || !b->adopted || !overlap(a, b, jobs, nr))
				continue;
			return cmd_fail(c->args->cmd, EXIT_USAGE,
					"%s:%d: %s: is what %s has, or part of it: one program cannot be two tenants",
					c->yaml.path, c->setup.specs[i].line, a->name, b->name);
		}
	return -1;
}

static void adopt_job(struct live_tenant *t, struct qos_tenant *tenant,
		      const struct gpupart_job *job)
{
	t->adopted = true;
	snprintf(t->job, sizeof(t->job), "%s", job->id);
	snprintf(t->within, sizeof(t->within), "%s", job->id);
	gpupart_tpcset_parse_list(NULL, job->limit, &tenant->adopted);
}

static int adopt_pid(struct control *c, unsigned int i)
{
	struct live_tenant *t = &c->live.tenants[i];
	struct gpupart_process *list;
	int nr = shown_processes(c->gp, &list);
	bool found = false, others = false;

	for (int p = 0; p < nr; p++)
		if (list[p].pid == c->setup.specs[i].pid && !strcmp(list[p].pci, c->live.pci)) {
			found = true;
			others = list[p].uid != geteuid();
			snprintf(t->within, sizeof(t->within), "%s", list[p].job);
			if (*list[p].limit)
				gpupart_tpcset_parse_list(NULL, list[p].limit,
							  &c->setup.tenants[i].adopted);
		}
	free(list);
	t->pid = c->setup.specs[i].pid;
	t->adopted = true;
	if (others)
		return cmd_fail(c->args->cmd, EXIT_USAGE,
				"%s:%d: %s: process %d is another user's: their own 'gpupart qos' can have it",
				c->yaml.path, c->setup.specs[i].line, t->name, t->pid);
	if (found)
		return -1;
	return cmd_fail(c->args->cmd, EXIT_USAGE,
			"%s:%d: %s: process %d does not confine launches on %s: see 'gpupart ps'",
			c->yaml.path, c->setup.specs[i].line, t->name, t->pid, c->live.pci);
}

/*
 * What runs already: what the file names, and what an earlier controller started under the
 * tenant's name. -1 to go on, or a status.
 */
static int adopt(struct control *c)
{
	struct gpupart_job *jobs;
	int nr = shown_jobs(c->gp, &jobs), status = -1;

	for (unsigned int i = 0; i < c->setup.nr && status < 0; i++) {
		const struct qos_spec *spec = &c->setup.specs[i];
		struct live_tenant *t = &c->live.tenants[i];
		const char *name = *spec->job ? spec->job : t->name;

		for (int j = 0; j < nr && !spec->pid; j++) {
			if (strcmp(jobs[j].name, name) || strcmp(jobs[j].pci, c->live.pci))
				continue;
			if (t->adopted)
				cmd_note(c->args->cmd,
					 "%s: several jobs are named '%s': the first one is taken",
					 t->name, name);
			if (t->adopted)
				break;
			adopt_job(t, &c->setup.tenants[i], &jobs[j]);
		}
		if (spec->pid)
			status = adopt_pid(c, i);
		else if (*spec->job && !t->adopted)
			status = cmd_fail(c->args->cmd, EXIT_USAGE,
					  "%s:%d: %s: no job '%s' runs on %s: see 'gpupart ps'",
					  c->yaml.path, spec->line, t->name, spec->job,
					  c->live.pci);
		if (status < 0 && t->adopted && spec->program)
			cmd_note(c->args->cmd, "%s: runs already, and is taken over", t->name);
	}
	if (status < 0)
		status = check_adopted(c, jobs, nr);
	free(jobs);
	return status;
}

/* -------------------------------------------------------------------------- start */

/* From a child to us: the job that it is, while @status is -1; else it was not started. */
struct word {
	int status;
	char job[GPUPART_JOB_STRLEN];
};

static void tell_parent(int fd, int status)
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
	struct args args = *c->args;
	int status;

	sigprocmask(SIG_SETMASK, &c->before, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (c->calibrating)
		setpgid(0, 0);
	args.program = c->setup.specs[i].program;
	args.usage_status = EXIT_RUN_FAILED;
	args.nr_terms = 1;
	args.terms[0].option = "-t";
	args.terms[0].text = list;
	status = run_confine(&args, &wishes);
	if (status < 0) {
		tell_parent(fd, -1);
		status = run_become(&args);
	}
	tell_parent(fd, status);
	_exit(status);
}

/* Tenant @i's program in its set: -1, or the status of what could not be started. */
static int start(struct control *c, unsigned int i, const struct gpupart_tpcset *set)
{
	struct live_tenant *t = &c->live.tenants[i];
	char list[GPUPART_TPCSET_STRLEN];
	struct word word;
	int fds[2], status = -1;
	ssize_t len;

	gpupart_tpcset_format_list(set, list, sizeof(list));
	if (pipe2(fds, O_CLOEXEC))
		return cmd_fail(c->args->cmd, EXIT_RUN_FAILED, "no pipe: %s", strerror(errno));
	fflush(NULL);
	t->child = fork();
	if (!t->child) {
		close(fds[0]);
		be_program(c, i, list, fds[1]);
	}
	close(fds[1]);
	if (t->child < 0) {
		t->child = 0;
		close(fds[0]);
		return cmd_fail(c->args->cmd, EXIT_RUN_FAILED, "no process: %s", strerror(errno));
	}
	/*
	 * The end comes when the program took the child's place. Its job is learnt here: the
	 * program may end at once, and what it started go on.
	 */
	while ((len = read(fds[0], &word, sizeof(word))) == sizeof(word) ||
	       (len < 0 && errno == EINTR)) {
		if (len < 0)
			continue;
		status = word.status;
		memcpy(t->job, word.job, sizeof(t->job));
	}
	close(fds[0]);
	if (status < 0)
		return -1;
	waitpid(t->child, NULL, 0);
	t->child = 0;
	return status;
}

/*
 * Where all of its TPCs are still in use it begins on those that come to it, and shares them
 * until who has them gave them up.
 */
static const struct gpupart_tpcset *first_set(const struct qos_verdict *verdict)
{
	return gpupart_tpcset_empty(&verdict->set) ? &verdict->coming : &verdict->set;
}

static int start_all(struct control *c)
{
	int status = -1;

	for (unsigned int i = 0; i < c->setup.nr && status < 0; i++)
		if (c->setup.specs[i].program && !c->live.tenants[i].adopted)
			status = start(c, i, first_set(&c->session.now.tenants[i]));
	/* What was started goes on for nobody. */
	for (unsigned int i = 0; i < c->setup.nr && status >= 0; i++)
		if (c->live.tenants[i].child)
			kill(c->live.tenants[i].child, SIGTERM);
	return status;
}

/* ---------------------------------------------------------------------------- end */

static void take_ended(struct control *c)
{
	int wstatus;
	pid_t pid;

	while ((pid = waitpid(-1, &wstatus, WNOHANG)) > 0)
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

static bool all_gone(const struct control *c)
{
	for (unsigned int i = 0; i < c->live.nr; i++)
		if (!c->live.tenants[i].gone)
			return false;
	return true;
}

static int first_status(const struct control *c)
{
	for (unsigned int i = 0; i < c->live.nr; i++)
		if (c->live.tenants[i].status)
			return c->live.tenants[i].status;
	return EXIT_DONE;
}

/* ------------------------------------------------------------------------- a round */

/* Sleeps until @until_ns; signals and lines that come are taken. */
static void wait_until(struct control *c, uint64_t until_ns)
{
	struct pollfd fds[2] = {
		{ .fd = c->signals, .events = POLLIN }, { .fd = c->live.socket, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	struct timespec left;
	uint64_t now;

	while (!c->ended_by && (now = live_now_ns()) < until_ns) {
		left.tv_sec = (until_ns - now) / 1000000000;
		left.tv_nsec = (until_ns - now) % 1000000000;
		if (ppoll(fds, c->live.socket >= 0 ? 2 : 1, &left, NULL) <= 0)
			continue;
		/* At once: who writes would wait, as few lines fit in. */
		if (fds[1].revents)
			live_listen(&c->live);
		while (read(c->signals, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				c->ended_by = info.ssi_signo;
		take_ended(c);
		live_find(&c->live, false);
		if (all_gone(c))
			return;
	}
}

/* Carries the decision out: who gives first. */
static void carry_out(struct control *c)
{
	const struct qos_decision *now = &c->session.now;

	for (unsigned int i = 0; i < c->setup.nr && !c->options->dry_run; i++)
		if ((now->tenants[i].changed || c->live.tenants[i].changed) &&
		    live_set(&c->live, i, &now->tenants[i].set))
			cmd_note(c->args->cmd, "%s: %s", c->setup.tenants[i].name,
				 gpupart_error(c->gp));
}

static void show(struct control *c)
{
	if (c->args->json)
		return;
	if (!c->screen && !c->session.now.changed && !*c->session.now.words)
		return;
	c->out.file = qos_results_shown(&c->results, c->screen);
	if (!c->out.file)
		return;
	if (c->screen)
		fputs("\033[H\033[J", c->out.file);
	if (c->screen)
		qos_text(&c->out, &c->session);
	else
		qos_text_changes(&c->out, &c->session);
	fflush(c->out.file);
}

static int step(struct control *c, const struct qos_measured *measured)
{
	int status = qos_session_step(&c->session, c->args->cmd, live_now_ns() - c->begin_ns,
				      measured);

	c->session.state = (struct nvml_state){ -1, -1, -1 };
	c->session.others_changed = false;
	carry_out(c);
	show(c);
	return status;
}

/* Until all that others had is theirs no more; then an epoch begins. */
static int swap(struct control *c)
{
	uint64_t epoch_ns = c->setup.epoch_ns;
	int status = -1;

	while (status < 0 && c->session.now.swapping && !c->ended_by) {
		struct qos_measured measured[QOS_MAX_TENANTS] = { 0 };
		bool any = false;

		wait_until(c, live_now_ns() + epoch_ns / SWAP_POLLS);
		live_listen(&c->live);
		live_read(&c->live);
		for (unsigned int i = 0; i < c->setup.nr; i++) {
			measured[i].gone = c->live.tenants[i].gone;
			measured[i].drained = live_drained(&c->live, i, epoch_ns);
			any |= measured[i].drained;
		}
		if (any)
			status = step(c, measured);
	}
	live_forget(&c->live);
	c->epoch_began_ns = c->live.read_ns;
	return status;
}

/* Power and clocks: an epoch's, and less often where asking for them takes long. */
static void look_at_gpu(struct control *c, uint64_t now)
{
	c->session.state = (struct nvml_state){ -1, -1, -1 };
	if (now < c->next_look_ns)
		return;
	if (nvml_state(c->live.pci, &c->session.state))
		c->next_look_ns = now + LOOK_SHARE * (live_now_ns() - now);
	else
		c->next_look_ns = UINT64_MAX;
}

/* Programs that are no tenants came, went, or have other TPCs. */
static void take_others(struct control *c)
{
	if (!c->live.others_changed)
		return;
	c->live.others_changed = false;
	c->session.others = c->live.others;
	c->session.others_changed = true;
	qos_session_hold(&c->session);
	live_tell_others(&c->live, "TPCs of programs that are no tenants, and left out, are now:");
}

static int epoch(struct control *c)
{
	struct qos_measured measured[QOS_MAX_TENANTS];
	uint64_t now;

	wait_until(c, c->epoch_began_ns + c->setup.epoch_ns);
	if (c->ended_by)
		return -1;
	live_listen(&c->live);
	live_read(&c->live);
	/* What is looked for after it takes time in which they go on. */
	now = c->live.read_ns;
	live_find(&c->live, false);
	for (unsigned int i = 0; i < c->setup.nr; i++) {
		live_take(&c->live, i, &c->setup.tenants[i], &c->setup.specs[i],
			  now - c->epoch_began_ns, &measured[i]);
		measured[i].disturbed = !c->options->dry_run && live_is_changed(&c->live, i);
	}
	take_others(c);
	c->epoch_began_ns = now;
	look_at_gpu(c, now);
	return step(c, measured);
}

static int loop(struct control *c)
{
	struct nvml_state unused;
	int status;

	/* The library is loaded before an epoch begins. */
	nvml_state(c->live.pci, &unused);
	c->begin_ns = live_now_ns();
	live_find(&c->live, true);
	carry_out(c);
	status = swap(c);
	while (status < 0 && !c->ended_by && !all_gone(c) &&
	       (!c->most_epochs || c->session.nr_epochs < c->most_epochs)) {
		status = epoch(c);
		if (status < 0 && c->session.now.swapping)
			status = swap(c);
	}
	return status;
}

/* ------------------------------------------------------------------------- set up */

static void find_gpu(struct control *c)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(c->topo);

	snprintf(c->live.pci, sizeof(c->live.pci), "%s",
		 !c->args->simulated ? info->pci : c->args->gpu ? c->args->gpu : "0");
	qos_board_of(c->topo, &c->session.board);
	c->session.simulated = c->args->simulated;
	snprintf(c->session.gpu, sizeof(c->session.gpu), "%.30s, %.19s%s", info->name, c->live.pci,
		 c->args->simulated ? " (simulated)" : "");
}

static int prepare_tenants(struct control *c)
{
	c->live.gp = c->gp;
	c->live.cmd = c->args->cmd;
	c->live.args = c->args;
	c->live.topo = c->topo;
	c->live.nr = c->setup.nr;
	c->live.socket = -1;
	for (unsigned int i = 0; i < c->setup.nr; i++) {
		c->live.tenants[i].name = c->setup.tenants[i].name;
		c->live.tenants[i].members = calloc(LIVE_MAX_MEMBERS,
						    sizeof(*c->live.tenants[i].members));
		if (!c->live.tenants[i].members)
			return cmd_fail(c->args->cmd, EXIT_FAILED, "no memory");
	}
	return -1;
}

/* Signals come by a descriptor; the terminal's go to the programs as well. */
static int take_signals(struct control *c)
{
	sigemptyset(&c->mask);
	sigaddset(&c->mask, SIGCHLD);
	sigaddset(&c->mask, SIGINT);
	sigaddset(&c->mask, SIGTERM);
	sigaddset(&c->mask, SIGHUP);
	/* Ignored, as we may have been started, it leaves nothing of who ended. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &c->mask, &c->before);
	c->signals = signalfd(-1, &c->mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return c->signals >= 0 ? -1 : cmd_fail(c->args->cmd, EXIT_FAILED, "no signalfd: %s",
					       strerror(errno));
}

static int take_number(const struct args *args, const char *option, const char *text,
		       unsigned int most, unsigned int *nr)
{
	char *end;
	unsigned long value;

	if (!text)
		return -1;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !value || value > most)
		return cmd_fail(args->cmd, EXIT_USAGE, "%s '%s': wants a number from 1 to %u",
				option, text, most);
	*nr = value;
	return -1;
}

static int control_open(struct control *c, enum qos_file kind)
{
	int status;

	c->lock = c->signals = -1;
	c->live.socket = -1;
	status = take_number(c->args, "--epochs", c->options->epochs, 100000000, &c->most_epochs);
	if (status >= 0)
		return status;
	if (gpupart_open(&c->gp))
		return cmd_fail(c->args->cmd, EXIT_FAILED, "no memory");
	status = c->options->tenants.nr ?
		 qos_words_open(&c->yaml, c->args->cmd, c->options, c->args->program) :
		 yaml_open(&c->yaml, c->args->cmd, "-f ", c->options->file, "a file of tenants");
	if (status >= 0)
		return status;
	if (!yaml_root(&c->yaml))
		status = cmd_fail(c->args->cmd, EXIT_USAGE, "%s: nothing in it: wants tenants:",
				  c->yaml.path);
	else if (!qos_setup_read(&c->setup, &c->yaml, yaml_root(&c->yaml), kind))
		status = EXIT_USAGE;
	else if (c->options->tenants.nr && !qos_words_program(&c->setup, c->args->program))
		status = cmd_fail(c->args->cmd, EXIT_FAILED, "no memory");
	yaml_close(&c->yaml);
	if (status < 0)
		status = args_topology((struct args *)c->args, c->gp, &c->topo);
	if (status >= 0)
		return status;
	find_gpu(c);
	return prepare_tenants(c);
}

static void control_close(struct control *c)
{
	live_close(&c->live);
	qos_session_end(&c->session);
	qos_setup_free(&c->setup);
	qos_results_close(&c->results);
	if (c->signals >= 0)
		close(c->signals);
	if (c->lock >= 0)
		close(c->lock);
	gpupart_topology_close(c->topo);
	gpupart_close(c->gp);
}

/* ---------------------------------------------------------------------------- run */

static bool any_adopted(const struct control *c)
{
	bool any = false;

	for (unsigned int i = 0; i < c->live.nr; i++)
		any |= c->live.tenants[i].adopted;
	return any;
}

static int run_tenants(struct control *c)
{
	int status = -1;

	c->session.setup = &c->setup;
	c->session.picture = qos_wants_svg(c->args, c->options);
	c->out.bold = c->out.plain = c->out.dim = c->out.red = "";
	c->screen = isatty(1) && !c->options->dry_run;
	status = qos_session_begin(&c->session, c->args->cmd);
	if (status < 0)
		status = qos_results_open(&c->results, c->args, c->options, &c->session);
	/* Until here whoever waits for a pipe's reader can be ended by what ends anybody. */
	if (status < 0)
		status = take_signals(c);
	if (status < 0 && !c->options->dry_run)
		status = start_all(c);
	if (status >= 0)
		return status;
	*c->options->started = !c->options->dry_run || any_adopted(c);
	status = qos_results_begin(&c->results);
	if (status >= 0)
		return status;
	show(c);
	if (!c->options->dry_run || any_adopted(c))
		status = loop(c);
	/* Who does not read the summary is no reason to stay. */
	sigprocmask(SIG_SETMASK, &c->before, NULL);
	if (status < 0)
		status = qos_results_end(&c->results);
	if (status >= 0)
		return status;
	return c->ended_by ? 128 + c->ended_by : c->options->dry_run ? EXIT_DONE : first_status(c);
}

/* What others have is left out from the begin. */
static void look_around(struct control *c)
{
	live_look_around(&c->live);
	take_others(c);
	/* The first line of the log has them all. */
	c->session.others_changed = false;
}

int qos_run(const struct args *args, const struct qos_options *options)
{
	struct control *c = calloc(1, sizeof(*c));
	int status;

	if (!c)
		return cmd_fail(args->cmd, EXIT_FAILED, "no memory");
	c->args = args;
	c->options = options;
	status = control_open(c, QOS_FILE_PROGRAMS);
	/* A dry run changes nobody's set: it may be while another runs. */
	if (status < 0 && !options->dry_run)
		status = take_lock(c);
	if (status < 0)
		status = adopt(c);
	if (status < 0) {
		if (!options->dry_run) {
			note_other_users(c);
			live_open_socket(&c->live);
		}
		look_around(c);
		status = run_tenants(c);
	}
	control_close(c);
	free(c);
	return status;
}

/* ---------------------------------------------------------------------- calibrate */

struct alone {
	bool measured;
	uint64_t milli;			/* units a second */
	uint64_t latency_ns, requests;
	bool ended;
	int status;			/* of one that ended by itself */
};

#define LOOKS	4	/* in each half of the time */
#define PATIENCE_NS	3000000000ull	/* for who is asked to end */

/* @group: what it has started as well, which may go on when it ended. */
static void signal_tenant(const struct live_tenant *t, pid_t group, int number)
{
	kill(-group, number);
	for (unsigned int m = 0; m < t->nr_members; m++)
		kill(t->members[m].pid, number);
}

/* Nothing of it may go on beside the next one that is measured. */
static void end_tenant(struct control *c, struct live_tenant *t, pid_t group)
{
	uint64_t until = live_now_ns() + PATIENCE_NS;

	signal_tenant(t, group, SIGTERM);
	while (t->child && live_now_ns() < until) {
		poll(NULL, 0, 10);
		take_ended(c);
	}
	signal_tenant(t, group, SIGKILL);
	if (t->child)
		waitpid(t->child, NULL, 0);
	t->child = 0;
}

/* One program on all TPCs: the second half of the time counts. */
static int calibrate_one(struct control *c, unsigned int i, unsigned int seconds,
			 struct alone *alone)
{
	struct gpupart_tpcset all = gpupart_topology_all(c->topo);
	struct live_tenant *t = &c->live.tenants[i];
	struct qos_measured m;
	uint64_t from = 0;
	int status = start(c, i, &all);
	pid_t group = t->child;
	bool ended;

	if (status >= 0)
		return status;
	for (unsigned int half = 0; half < 2 && !c->ended_by; half++) {
		from = half ? c->live.read_ns : live_now_ns();
		/* Now and then, so that the pace is known when the first half ends. */
		for (unsigned int look = 1; look <= LOOKS && !c->ended_by; look++) {
			wait_until(c, from + seconds * 500000000ull / LOOKS * look);
			live_find(&c->live, true);
			live_listen(&c->live);
			live_read(&c->live);
		}
		live_take(&c->live, i, &c->setup.tenants[i], &c->setup.specs[i],
			  c->live.read_ns - from, &m);
	}
	ended = t->gone;
	status = t->status;
	end_tenant(c, t, group);
	if (c->ended_by)
		return 128 + c->ended_by;
	if (m.work == INT64_MAX)
		cmd_note(c->args->cmd,
			 "%s: tells of more units than can be counted: it is faster than this",
			 t->name);
	/* Tokens or bytes may be many: 64 bits hold them, not a product of them. */
	*alone = (struct alone){
		.measured = m.work && !ended,
		.milli = (unsigned __int128)m.work * 1000000000 / (m.ns ? m.ns : 1),
		.latency_ns = m.latency_ns, .requests = m.nr, .ended = ended, .status = status,
	};
	return -1;
}

static int tell_alone(struct control *c, const struct alone *alone)
{
	json_t *root = out_json_new("qos calibrate", c->args->simulated), *list = json_array();
	int status = out_open(&c->out, c->args);
	bool unmeasured = false;
	char text[48];

	for (unsigned int i = 0; i < c->setup.nr && status < 0; i++) {
		const char *name = c->setup.tenants[i].name;

		if (!c->setup.specs[i].program)
			continue;
		json_array_append_new(list, json_pack(
			"{s:s, s:o, s:I, s:o}", "name", name, "alone_milli",
			alone[i].measured ? json_integer(alone[i].milli) : json_null(),
			"requests", (json_int_t)alone[i].requests, "ended_with",
			alone[i].ended ? json_integer(alone[i].status) : json_null()));
		unmeasured |= !alone[i].measured;
		if (c->args->json)
			continue;
		if (alone[i].ended)
			fprintf(c->out.file, "%-12s ended with status %d before it was measured\n",
				name, alone[i].status);
		else if (!alone[i].measured)
			fprintf(c->out.file, "%-12s reported nothing\n", name);
		else
			fprintf(c->out.file, "%-12s alone: %s%s\n", name,
				qos_number(alone[i].milli, text, sizeof(text)),
				c->args->simulated ? "  # simulated" : "");
	}
	json_object_set_new(root, "tenants", list);
	if (status < 0 && c->args->json)
		out_json_write(&c->out, json_incref(root));
	json_decref(root);
	if (status < 0)
		status = out_close(&c->out, c->args->cmd);
	return status ? status : unmeasured ? EXIT_FAILED : EXIT_DONE;
}

static int calibrate_all(struct control *c, unsigned int seconds)
{
	struct alone alone[QOS_MAX_TENANTS] = { 0 };
	unsigned int nr = 0;
	int status = -1;

	for (unsigned int i = 0; i < c->setup.nr && status < 0; i++)
		if (c->setup.specs[i].program) {
			status = calibrate_one(c, i, seconds, &alone[i]);
			nr++;
		}
	if (status < 0 && !nr)
		return cmd_fail(c->args->cmd, EXIT_USAGE,
				"%s: none of its tenants has a program", c->setup.path);
	return status < 0 ? tell_alone(c, alone) : status;
}

int qos_calibrate(const struct args *args, const struct qos_options *options)
{
	struct control *c = calloc(1, sizeof(*c));
	unsigned int seconds = 10;
	int status;

	if (!c)
		return cmd_fail(args->cmd, EXIT_FAILED, "no memory");
	c->args = args;
	c->options = options;
	c->calibrating = true;
	status = take_number(args, "--seconds", options->seconds, 3600, &seconds);
	if (status < 0)
		status = control_open(c, QOS_FILE_CALIBRATE);
	if (status < 0)
		status = take_lock(c);
	if (status < 0)
		status = take_signals(c);
	if (status < 0) {
		live_open_socket(&c->live);
		live_look_around(&c->live);
		if (c->live.others.nr)
			live_tell_others(&c->live,
					 "speeds alone are measured beside programs that have TPCs:");
		status = calibrate_all(c, seconds);
	}
	control_close(c);
	free(c);
	return status;
}
