// SPDX-License-Identifier: MIT
/* See lend.h. The watcher is a separate process. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/mps/mps_daemon.h"
#include "cli/start/run.h"
#include "cli/target/check.h"
#include "cli/target/process_list.h"
#include "cli/target/scores.h"
#include "cli/util/message.h"
#include "cli/util/number.h"
#include "cli/util/process.h"
#include "cli/util/yaml.h"

#define LEAST_NS	1000		/* range of --lend-limit and --depth */
#define MOST_NS		1000000000
#define FIND_US		50000		/* interval of the search for the lender */
#define BUSY_US		100		/* intervals between checks of a busy lender and of an
					 * idle lender */
#define IDLE_US		500
#define ORDER_US	5000		/* while nothing is lent: time between two reads of an
					 * order */
#define SLACK_NS	200000000	/* time between two reads of the slack of the lender's
					 * goal */
#define SETS_NS		200000000	/* time between two reads of the sets of all programs */

/* ------------------------------------------------------------------- options */

/* Reads @text, the value of @option, into *@ns. Returns 0 or an error. */
static int take_time(const char *option, const char *text, uint64_t *ns)
{
	if (yaml_read_time(text, ns) && *ns >= LEAST_NS && *ns <= MOST_NS)
		return 0;
	return failure("%s %s: must be a time from 1us to 1s, such as 300us or 0.5ms", option,
		       *text ? text : "''");
}

/*
 * Returns twice the limit. A second kernel runs while the host detects the end of the first kernel.
 */
static uint64_t depth_of(uint64_t limit_ns)
{
	return 2 * limit_ns;
}

int lend_check(struct lend_wishes *wishes, const char *name, bool exec)
{
	const char *records = getenv("GPUPART_RECORDS");
	const char *option = wishes->job ? "--lend" : wishes->limit ? "--lend-limit" :
			     wishes->weight ? "--lend-weight" : "--depth";
	unsigned long weight = 1;
	int status = 0;

	if (!wishes->job && !wishes->limit && !wishes->weight && !wishes->depth)
		return 0;
	if (!wishes->job && (wishes->limit || wishes->weight))
		return failure("%s: needs --lend JOB", option);
	if (exec)
		return failure(
			"%s cannot be used with --exec: the process of 'gpupart run' must remain as the program's parent",
			option);
	if (records && !strcmp(records, "0"))
		return failure("GPUPART_RECORDS=0: %s needs completion records", option);
	if (wishes->job)
		status = check_name("--lend", wishes->job);
	if (!status && name && wishes->job && !strcmp(wishes->job, name))
		status = failure("--lend %s: a run cannot borrow from itself", name);
	if (!status && wishes->limit)
		status = take_time("--lend-limit", wishes->limit, &wishes->limit_ns);
	if (!status && wishes->weight && !number_whole(wishes->weight, 1000, &weight))
		status = failure("--lend-weight %s: must be a number from 1 to 1000",
				 *wishes->weight ? wishes->weight : "''");
	wishes->nr_weight = weight;
	/* If the limit comes from a goal, the watcher sets the depth together with the limit. */
	wishes->depth_ns = !wishes->job ? 0 : wishes->limit_ns ? depth_of(wishes->limit_ns) :
								 MOST_NS;
	if (!status && wishes->depth)
		status = take_time("--depth", wishes->depth, &wishes->depth_ns);
	return status;
}

void lend_prepare(const struct lend_wishes *wishes, struct gpupart_report *report)
{
	if (!lend_is_asked(wishes))
		return;
	gpupart_lend_bound(report, wishes->depth_ns, wishes->limit_ns);
	if (wishes->job)
		gpupart_lend_name(report, wishes->job, wishes->nr_weight);
}

/* ------------------------------------------------------------------- finding the lender */

struct found {
	int pids[GPUPART_LENDER_MAX];
	unsigned int nr;
	char id[64];		/* GPUPART_REPORT of these processes */
	/* These processes may belong to a tenant of `qos run`. */
	bool is_tenant;
	char score_job[GPUPART_JOB_STRLEN];	/* its job, or "" */
	int score_pid;				/* its process, or 0 */
};

struct watch {
	struct args *args;
	const struct lend_wishes *wishes;
	struct gpupart_report *report;
	const char *id;
	bool simulated;
	char pipes[256];	/* directory of the program's MPS daemon */
	char pci[20];
	/* the limit of the outer run when this run started; the TPCs that the lender may lend */
	struct gpupart_tpcset within, lendable;
	unsigned int nr_own;	/* number of processes of this run that use the GPU */
	uint64_t sets_read_ns;	/* when @lendable and @nr_own were read last */
	char what[80];		/* the option or command that asked for lending, for messages
				 * about the lender */
	char reason[512];	/* the last reason that was printed */
	struct found found;	/* the processes of @lender */
	uint64_t slack_ns, slack_read_ns;	/* the slack, and when it was read last */
	struct gpupart_lender *lender;
};

static struct watch watch;

/*
 * Prints the reason why nothing is lent. If the last printed reason is the same, prints nothing.
 * Returns -EAGAIN.
 */
__attribute__((format(printf, 1, 2)))
static int say(const char *fmt, ...)
{
	char text[sizeof(watch.reason)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (strcmp(text, watch.reason))
		remark("%s %s: nothing is lent%s: %s", watch.what, watch.wishes->job,
		       watch.simulated ? " (simulated)" : "", text);
	strcpy(watch.reason, text);
	return -EAGAIN;
}

/* Adds process @p of the job. Returns 0, or -EAGAIN after a message. */
static int add(struct found *found, const struct gpupart_process *p)
{
	char id[sizeof(found->id)], pipes[sizeof(watch.pipes)];

	if (p->uid != geteuid())
		return say("process %d belongs to another user", p->pid);
	if (p->other_version || !p->pid)
		return say(
			"process %d runs under another version of gpupart or in another pid namespace",
			p->pid);
	if (found->nr == GPUPART_LENDER_MAX)
		return say("the lender has more than %d processes", GPUPART_LENDER_MAX);
	process_variable(p->pid, "GPUPART_REPORT", id, sizeof(id));
	if (!strcmp(id, watch.id))
		return say("a run cannot borrow from itself");
	if (!*id)
		return say(
			"process %d was not started by 'gpupart run', or was started with --exec",
			p->pid);
	if (found->nr && strcmp(id, found->id))
		return say("several runs have this name");
	process_variable(p->pid, MPS_DAEMON_PIPES, pipes, sizeof(pipes));
	if (!watch.simulated && (!*pipes || strcmp(pipes, watch.pipes)))
		return say(
			"the runs do not use the same MPS daemon, so they run in time slices: use run --mps");
	strcpy(found->id, id);
	found->pids[found->nr++] = p->pid;
	return 0;
}

static bool is_same_tenant(const struct found *found, const struct score *score)
{
	return found->is_tenant && !strcmp(found->score_job, score->job) &&
	       found->score_pid == score->pid;
}

/* Process @p of the lender may belong to a tenant. Finds this tenant. */
static void find_tenant(struct found *found, const struct gpupart_process *p,
			const struct gpupart_job *jobs, int nr_jobs)
{
	struct score scores[SCORES_MAX];
	unsigned int nr = scores_read(geteuid(), watch.pci, scores);

	for (unsigned int n = 0; n < nr; n++) {
		if (*scores[n].job ? !shown_is_inside(jobs, nr_jobs, p->job, scores[n].job) :
				     scores[n].pid != p->pid)
			continue;
		found->is_tenant = true;
		strcpy(found->score_job, scores[n].job);
		found->score_pid = scores[n].pid;
		return;
	}
}

/*
 * Returns the limit that the controller gives for the tenant of @found: the tenant's key lend, or
 * the slack of its goal. If the controller gives no limit, prints a message and returns 0.
 */
static uint64_t read_slack(const struct found *found)
{
	struct score scores[SCORES_MAX];
	unsigned int nr = scores_read(geteuid(), watch.pci, scores);

	for (unsigned int n = 0; n < nr; n++)
		if (is_same_tenant(found, &scores[n]) && scores[n].has_limit)
			return scores[n].lend_ns;
	say(
		"no running 'gpupart qos run' has a latency goal or the key lend for it: use --lend-limit");
	return 0;
}

/*
 * Returns true if the limit comes from the slack. Otherwise a controller or an option sets the
 * limit.
 */
static bool uses_slack(void)
{
	return !watch.wishes->orders && !watch.wishes->limit_ns;
}

/* Returns the limit of the controller. If it has expired, prints a message and returns 0. */
static uint64_t read_order(const struct lend_orders *orders)
{
	uint64_t limit_ns = atomic_load(&orders->limit_ns);

	if (!limit_ns || process_now_ns() < atomic_load(&orders->until_ns))
		return limit_ns;
	say("'gpupart qos run' no longer renews the limit: is it stopped?");
	return 0;
}

/* Returns the present limit; 0: nothing may be lent. */
static uint64_t limit_now(const struct found *found)
{
	if (watch.wishes->orders)
		return read_order(watch.wishes->orders);
	if (watch.wishes->limit_ns)
		return watch.wishes->limit_ns;
	if (process_now_ns() - watch.slack_read_ns >= SLACK_NS) {
		watch.slack_read_ns = process_now_ns();
		watch.slack_ns = read_slack(found);
	}
	return watch.slack_ns;
}

/* The processes of the run share the limit. The limit of --depth applies to each of them. */
static void set_limit(uint64_t limit_ns)
{
	const struct lend_wishes *wishes = watch.wishes;
	uint64_t depth_ns = wishes->depth || !limit_ns ? wishes->depth_ns : depth_of(limit_ns);

	gpupart_lend_bound(watch.report, depth_ns, limit_ns / (watch.nr_own ?: 1));
}

/* Finds the lender's processes. Returns 0, or -EAGAIN after a message. */
static int find(struct found *found)
{
	struct gpupart_process *processes;
	struct gpupart_job *jobs;
	int nr = shown_processes(cmd_gp, &processes), nr_jobs = shown_jobs(cmd_gp, &jobs), err = 0;

	memset(found, 0, sizeof(*found));
	for (int i = 0; !err && i < nr; i++)
		if (shown_is_named(jobs, nr_jobs, &processes[i], watch.wishes->job)) {
			err = add(found, &processes[i]);
			if (uses_slack() && !found->is_tenant)
				find_tenant(found, &processes[i], jobs, nr_jobs);
		}
	free(processes);
	free(jobs);
	if (!err && !found->nr)
		err = say("no process with this name uses the GPU");
	return err;
}

/* Stores the set of @p on the GPU of the run. If @p does not use this GPU, returns false. */
static bool read_set(const struct gpupart_process *p, struct gpupart_tpcset *set)
{
	struct gpupart_process *rows;
	int nr = shown_rows(cmd_gp, p, 1, &rows), row = 0;

	while (row < nr && strcmp(rows[row].pci, watch.pci))
		row++;
	if (row < nr && (!*rows[row].limit ||
			 gpupart_tpcset_parse_list(NULL, rows[row].limit, set)))
		memset(set, 0xff, sizeof(*set));
	free(rows);
	return row < nr;
}

/* If the job of process @pid has a limit, stores the present limit in *@set. */
static void read_job_limit(const struct gpupart_job *jobs, int nr, int pid,
			   struct gpupart_tpcset *set)
{
	const struct gpupart_job *job;
	struct gpupart_tpcset limit;
	char id[GPUPART_JOB_STRLEN];

	process_variable(pid, "GPUPART_JOB", id, sizeof(id));
	job = shown_job_on(jobs, nr, id, watch.pci);
	if (job && !gpupart_tpcset_parse_list(NULL, job->limit, &limit))
		*set = limit;
}

/*
 * Finds the TPCs that @found may lend: those in the limits of its jobs, without the TPCs of other
 * programs. The lender's program cannot change these limits by mistake, but it could change its
 * state page. If there is no such TPC, or if each process of this run may use all of them anyway,
 * prints a message and returns -EAGAIN. Otherwise returns 0.
 */
static int check_sets(const struct found *found)
{
	struct gpupart_tpcset lent = { { 0 } }, others = lent, outer = watch.within, own, job, set;
	char id[sizeof(found->id)], name[64] = "", lists[2][GPUPART_TPCSET_STRLEN];
	struct gpupart_process *processes;
	struct gpupart_job *jobs;
	int nr = shown_processes(cmd_gp, &processes), nr_jobs = shown_jobs(cmd_gp, &jobs);

	watch.nr_own = 0;
	watch.sets_read_ns = process_now_ns();
	read_job_limit(jobs, nr_jobs, getpid(), &outer);
	own = outer;
	for (int i = 0; i < nr; i++) {
		process_variable(processes[i].pid, "GPUPART_REPORT", id, sizeof(id));
		if (!read_set(&processes[i], &set))
			continue;
		if (!strcmp(id, found->id)) {
			job = set;
			read_job_limit(jobs, nr_jobs, processes[i].pid, &job);
			set = gpupart_tpcset_and(&set, &job);
			lent = gpupart_tpcset_or(&lent, &set);
		} else if (!strcmp(id, watch.id)) {
			own = gpupart_tpcset_and(&own, &set);
			strcpy(name, processes[i].name);
			watch.nr_own++;
		} else if (!gpupart_tpcset_has(&set, GPUPART_MAX_TPCS - 1)) {
			/* The program has a limit. */
			others = gpupart_tpcset_or(&others, &set);
		}
	}
	free(processes);
	free(jobs);
	watch.lendable = gpupart_tpcset_andnot(&lent, &others);
	gpupart_tpcset_format_list(&lent, lists[0], sizeof(lists[0]));
	if (gpupart_tpcset_empty(&watch.lendable) && !gpupart_tpcset_empty(&lent))
		return say("its TPCs (%s) are also in the sets of other programs", lists[0]);
	lent = watch.lendable = gpupart_tpcset_and(&watch.lendable, &outer);
	if (!watch.nr_own || gpupart_tpcset_empty(&lent) || !gpupart_tpcset_subset(&lent, &own))
		return 0;
	gpupart_tpcset_format_list(&lent, lists[0], sizeof(lists[0]));
	gpupart_tpcset_format_list(&own, lists[1], sizeof(lists[1]));
	return say("its TPCs (%s) are already in the set of %s%s%s (%s)", lists[0],
		   *name ? "'" : "", *name ? name : "the borrower", *name ? "'" : "", lists[1]);
}

/* Reads the limit of the outer run from the environment. Returns 0 or an error. */
static int find_within(void)
{
	const struct gpupart_tpcset *outer;
	struct gpupart_topology *topo;
	int err = args_topology(watch.args, &topo);

	if (err)
		return err;
	err = run_outer_limit(watch.args, topo, watch.pci, &watch.within, &outer);
	if (!outer)
		watch.within = gpupart_topology_all(topo);
	gpupart_topology_close(topo);
	return err;
}

/* Finds the GPU that the program uses. If the program has not used a GPU yet, returns false. */
static bool find_own(void)
{
	struct gpupart_report_process p;

	for (unsigned int n = 0; !*watch.pci && !gpupart_report_get(watch.report, n, &p); n++)
		if (p.state == GPUPART_REPORT_CONFINED) {
			strcpy(watch.pci, p.pci);
			process_variable(p.pid, MPS_DAEMON_PIPES, watch.pipes, sizeof(watch.pipes));
			if (find_within())
				_exit(EXIT_FAILED);
		}
	return *watch.pci;
}

static void close_lender(void)
{
	gpupart_lender_close(watch.lender);
	watch.lender = NULL;
}

static int open_lender(void)
{
	struct found first, again;
	uint64_t limit;
	int err = find(&first);

	if (err)
		return err;
	limit = limit_now(&first);
	set_limit(limit);
	if (!limit)
		return -EAGAIN;
	err = check_sets(&first);
	if (err)
		return err;
	if (gpupart_lender_open(cmd_gp, watch.report, first.id, watch.pci, first.pids, first.nr,
				&watch.lendable, &watch.lender))
		return say("%s", gpupart_error(cmd_gp));
	/*
	 * From this point on, the library reports processes that join the lender. Check that no
	 * process has joined the lender before.
	 */
	err = find(&again);
	watch.found = first;
	if (!err && memcmp(&first, &again, sizeof(first)))
		err = -EAGAIN;
	if (!err)
		return 0;
	close_lender();
	return err;
}

/* ------------------------------------------------------------------- watching */

/* At most every SETS_NS, reads the sets again. Returns true if the lender must be opened again. */
static bool sets_changed(void)
{
	const struct gpupart_tpcset before = watch.lendable;

	return process_now_ns() - watch.sets_read_ns >= SETS_NS &&
	       (check_sets(&watch.found) || !gpupart_tpcset_equal(&before, &watch.lendable));
}

/* Checks the lender. Returns the microseconds until the next check. */
static unsigned int look(void)
{
	uint64_t limit;
	int found;

	if (!watch.lender && watch.wishes->orders && !limit_now(NULL))
		return ORDER_US;
	if (!watch.lender && (!find_own() || open_lender()))
		return FIND_US;
	limit = limit_now(&watch.found);
	if (!limit) {
		close_lender();
		set_limit(0);
		return ORDER_US;
	}
	set_limit(limit);
	/* This must be first: only this function can tell why the lender lends no longer. */
	found = gpupart_lender_update(cmd_gp, watch.lender);
	if (found >= 0 && !sets_changed()) {
		*watch.reason = 0;
		return found ? IDLE_US : BUSY_US;
	}
	if (found < 0 && found != -EAGAIN)
		say("%s", gpupart_error(cmd_gp));
	close_lender();
	return FIND_US;
}

static void __attribute__((noreturn)) be_watcher(pid_t parent)
{
	struct timespec pause;
	sigset_t one;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	/*
	 * If another process truncates a file of the lender, an error follows: see
	 * gpupart_remote_open().
	 */
	sigemptyset(&one);
	sigaddset(&one, SIGBUS);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	for (;;) {
		pause = (struct timespec){ .tv_nsec = look() * 1000l };
		nanosleep(&pause, NULL);
	}
}

pid_t lend_watch(struct args *args, const struct lend_wishes *wishes,
		struct gpupart_report *report, const char *id)
{
	pid_t parent = getpid(), pid;

	if (!wishes->job)
		return 0;
	watch = (struct watch){
		.args = args, .wishes = wishes, .report = report, .id = id,
		.simulated = args->simulated,
	};
	if (wishes->borrower)
		snprintf(watch.what, sizeof(watch.what), "%s: borrows from", wishes->borrower);
	else
		strcpy(watch.what, "--lend");
	pid = fork();
	if (!pid)
		be_watcher(parent);
	if (pid < 0)
		say("cannot create a process that watches the lender: %s", strerror(errno));
	return pid < 0 ? 0 : pid;
}

void lend_say(const struct lend_wishes *wishes, const char *id, bool simulated)
{
	struct gpupart_lending lending;
	const struct gpupart_lend_counts *counts = &lending.counts;

	if (!lend_is_asked(wishes) || gpupart_lending_get(NULL, id, &lending))
		return;
	if (wishes->job)
		remark(
			"%llu launches could also use idle TPCs of '%s'%s; %llu kernels used these TPCs for too long",
			(unsigned long long)counts->lent, wishes->job,
			simulated ? " (simulated)" : "", (unsigned long long)counts->revoked);
	if (counts->unbounded)
		remark(
			"%llu launches had no completion record, so their time was not bounded%s: see 'gpupart doctor'",
			(unsigned long long)counts->unbounded, simulated ? " (simulated)" : "");
	if (counts->expired)
		remark("%llu launches stopped waiting before earlier launches had ended%s",
		       (unsigned long long)counts->expired, simulated ? " (simulated)" : "");
}
