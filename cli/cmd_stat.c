// SPDX-License-Identifier: MIT
/*
 * gpupart stat: starts a program as run does, with the injected library told to measure
 * it, and shows what was found; or shows what records say of a program that runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/start/run.h"
#include "cli/stat/running.h"
#include "cli/stat/stat.h"
#include "cli/target/args.h"
#include "cli/util/out.h"
#include "cli/util/process.h"

const char stat_help[] =
"Usage: gpupart stat [SET] [-i CAPTURE] [--gpu GPU] [--interval SECONDS] [--json]\n"
"                    [-o FILE] -- PROGRAM ARGS\n"
"       gpupart stat -p PID | NAME [-d SECONDS] [--interval SECONDS] [--json]\n"
"                    [-o FILE]\n"
"Runs an unmodified program, inside a set or on the whole GPU, and tells how many\n"
"kernels, graphs and copies it launched, how long the GPU waited for the CPU and the\n"
"CPU for the GPU, whether copies ran beside kernels, and so whether it is CPU-bound or\n"
"GPU-bound. The report is on stderr: stdout is the program's.\n"
"\n"
"SET as for run: -t, -g, -u, -n, --sms, --hex, --shape; see 'gpupart help run'.\n"
"\n"
"  -i, --input CAPTURE on the simulated GPU made of it (sample:h200 or a file)\n"
"      --gpu GPU       the set's: an index in PCI order, a PCI address or a UUID\n"
"      --interval SECONDS\n"
"                      a line on stderr each so many seconds, 0.1-3600, of that time;\n"
"                      with --json they are in \"intervals\"\n"
"      --json          as JSON, schema gpupart/1\n"
"  -o, --output FILE   write there and not to stderr; FILE.json: as --json\n"
"\n"
"GPU-bound: the GPU was busy 90 % of the time or more between the program's first and\n"
"last work. CPU-bound: half of that time or more it had nothing to do. Copy-bound:\n"
"copies alone ran 40 % of it or more, and longer than kernels. Else: neither.\n"
"gpupart(1), \"What bounds a program\", says how the time of work is taken.\n"
"\n"
"With -p or NAME: of what runs already under gpupart, a process or all processes of a\n"
"job, from the records that the GPU writes when a launch ends. The report, on stdout:\n"
"how busy the GPU was with it, launches, how many of them were outstanding, and the\n"
"ten kernels with the most time that ended in this time. A kernel's begin is not\n"
"recorded: its time is taken from its submission or the end of the launch before it\n"
"on its stream. \"31.0 to 44.2%\": the clocks of CPU and GPU leave open which. Graphs\n"
"have no records, and may be busy all the time.\n"
"\n"
"  -p, --pid PID       this process; your own, as root any\n"
"  -d, --delay SECONDS for so long, 0.1-3600 (1); Ctrl-C ends it before\n"
"\n"
"The program is started with GPUPART_STAT and CUDA_INJECTION64_PATH in its\n"
"environment; what it starts is measured, too, each process by itself. With\n"
"GPUPART_DISABLE=1 it is run untouched. Profilers that use CUPTI cannot be used at\n"
"the same time.\n"
"\n"
"Exit status: the program's, 128 and the signal's number where one ended it; 127 it is\n"
"not there, 126 it cannot be executed, 125 anything else that went wrong.\n"
"\n"
"Examples:\n"
"  gpupart stat -- python3 infer.py\n"
"  gpupart stat -n 16 --json -o stat.json -- ./serve\n"
"  gpupart stat train -d 10 --interval 1\n";

struct session {
	struct args *args;
	struct gpupart_stat *stat;
	struct out out;
	struct stat_result result;
	double interval;		/* 0: none */
	struct stat_result told;	/* sums at the last line, at told_ns */
	uint64_t start_ns, told_ns;
	json_t *intervals;
	struct sigaction pipe_before;	/* what the program is to get */
	sigset_t signals, before;
};

static double seconds_since(uint64_t start)
{
	return (process_now_ns() - start) / 1e9;
}

static void __attribute__((noreturn)) be_program(const struct session *session, int failed)
{
	int status;

	sigaction(SIGPIPE, &session->pipe_before, NULL);
	sigprocmask(SIG_SETMASK, &session->before, NULL);
	status = run_become(session->args);
	while (write(failed, &status, sizeof(status)) < 0 && errno == EINTR)
		;
	_exit(status);
}

/* 0 and *pid, or an error: it could not be started. */
static int start(struct session *session, pid_t *pid)
{
	int fds[2], status = 0;
	ssize_t len;

	if (pipe2(fds, O_CLOEXEC))
		return cmd_fail(session->args->cmd, EXIT_FAILED, "no pipe: %s",
				strerror(errno));
	sigemptyset(&session->signals);
	sigaddset(&session->signals, SIGCHLD);
	sigaddset(&session->signals, SIGTERM);
	sigaddset(&session->signals, SIGHUP);
	/* The terminal sends these to the program as well: it decides. */
	sigaddset(&session->signals, SIGINT);
	sigaddset(&session->signals, SIGQUIT);
	sigprocmask(SIG_BLOCK, &session->signals, &session->before);
	fflush(NULL);
	session->start_ns = session->told_ns = process_now_ns();
	*pid = fork();
	if (!*pid) {
		close(fds[0]);
		be_program(session, fds[1]);
	}
	close(fds[1]);
	if (*pid < 0) {
		close(fds[0]);
		return cmd_fail(session->args->cmd, EXIT_FAILED, "no process: %s",
				strerror(errno));
	}
	/* Nothing comes, and the end, where the program took the child's place. */
	do
		len = read(fds[0], &status, sizeof(status));
	while (len < 0 && errno == EINTR);
	close(fds[0]);
	if (len != sizeof(status))
		return 0;
	waitpid(*pid, NULL, 0);
	return status;
}

static void take_ended(struct stat_result *result, int wstatus)
{
	if (WIFSIGNALED(wstatus)) {
		result->signal = WTERMSIG(wstatus);
		result->status = 128 + result->signal;
	} else {
		result->status = WEXITSTATUS(wstatus);
	}
}

static void read_processes(struct session *session, struct stat_result *result)
{
	unsigned int nr = 0;

	do
		result->processes = alloc_resized(result->processes, nr + 1,
						  sizeof(*result->processes));
	while (!gpupart_stat_get(session->stat, nr, &result->processes[nr]) && ++nr);
	result->nr_processes = nr;
	result->nr_lost = gpupart_stat_lost(session->stat);
}

static void find_set(struct stat_result *result)
{
	const char *set = getenv("GPUPART_SET");

	result->set = set && *set ? set : NULL;
	if (result->set && gpupart_tpcset_parse_list(NULL, set, &result->tpcs))
		result->tpcs = (struct gpupart_tpcset){ { 0 } };
}

/* A wait that goes on counts up to now. */
static void add_waits(struct stat_result *result, uint64_t until)
{
	for (unsigned int i = 0; i < result->nr_processes; i++) {
		struct gpupart_stat_process *p = &result->processes[i];
		uint64_t since = p->waits_since_ns;

		if (kill(p->pid, 0) && errno == ESRCH)
			continue;
		if (since && since < until)
			p->wait_ns += until - since;
		if (p->first_ns && p->first_ns < until)
			p->last_ns = until;
	}
}

/* A wait that goes on may have been told of before by another one, of another thread. */
static uint64_t less(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* What came since the last line, at @since: sums less the sums then. */
static void subtract(struct stat_result *now, const struct stat_result *before, uint64_t since)
{
	for (unsigned int i = 0; i < before->nr_processes && i < now->nr_processes; i++) {
		struct gpupart_stat_process *p = &now->processes[i];
		const struct gpupart_stat_process *q = &before->processes[i];

		p->kernels -= q->kernels;
		p->graphs -= q->graphs;
		p->wait_ns = less(p->wait_ns, q->wait_ns);
		if (p->first_ns && p->first_ns < since)
			p->first_ns = since;
		for (unsigned int g = 0; g < q->nr_gpus; g++) {
			p->gpus[g].stretches_ns -= q->gpus[g].stretches_ns;
			p->gpus[g].own_ns -= q->gpus[g].own_ns;
			p->gpus[g].busy_ns -= q->gpus[g].busy_ns;
			p->gpus[g].kernels_ns -= q->gpus[g].kernels_ns;
			p->gpus[g].copies_ns -= q->gpus[g].copies_ns;
			p->gpus[g].starved_ns -= q->gpus[g].starved_ns;
			p->gpus[g].held_ns -= q->gpus[g].held_ns;
		}
	}
}

/* Whether some work is not known to be over: what the GPU did meanwhile is told later. */
static bool is_unknown(const struct stat_result *all, const struct stat_result *now)
{
	uint64_t given = 0, over = 0;

	if (now->shares[STAT_BUSY] + now->shares[STAT_STARVED] + now->shares[STAT_HELD] > 0)
		return false;
	for (unsigned int i = 0; i < all->nr_processes; i++) {
		const struct gpupart_stat_process *p = &all->processes[i];

		given += p->kernels + p->graphs + p->fills;
		for (int d = 0; d < GPUPART_STAT_NR_DIRECTIONS; d++)
			given += p->copies[d];
		for (unsigned int g = 0; g < p->nr_gpus; g++)
			over += p->gpus[g].timed + p->gpus[g].untimed_over;
	}
	return given > over;
}

static void show_interval(struct session *session, const struct stat_result *now, bool unknown)
{
	uint64_t launches = now->sum.kernels + now->sum.graphs;
	double seconds = seconds_since(session->start_ns), waits = now->sum.wait_ns / 1e9;
	char busy[40];

	if (session->intervals) {
		json_array_append_new(session->intervals, json_pack(
			"{s:f, s:I, s:o, s:o, s:f}", "seconds", seconds,
			"launches", (json_int_t)launches,
			"busy", unknown ? json_null() : json_real(now->shares[STAT_BUSY]),
			"copies", unknown ? json_null() : json_real(now->shares[STAT_COPIES]),
			"wait_seconds", waits));
		return;
	}
	snprintf(busy, sizeof(busy), unknown ? "not known yet" : "%.1f%%",
		 100 * now->shares[STAT_BUSY]);
	cmd_note(session->args->cmd, "%.1f s: %.0f launches/s, GPU busy %s, CPU waits %.2f s",
		 seconds, launches / session->interval, busy, waits);
}

static void tell_interval(struct session *session)
{
	struct stat_result all = { 0 }, now;
	uint64_t until = process_now_ns();

	read_processes(session, &all);
	add_waits(&all, until);
	now = all;
	now.processes = alloc_zeroed(all.nr_processes + 1, sizeof(*now.processes));
	memcpy(now.processes, all.processes, all.nr_processes * sizeof(*now.processes));
	subtract(&now, &session->told, session->told_ns);
	now.window = (until - session->told_ns) / 1e9;
	stat_add_up(&now);
	show_interval(session, &now, is_unknown(&all, &now));
	free(now.processes);
	/* The sums themselves, for the next. */
	free(session->told.processes);
	session->told = all;
	session->told_ns = until;
}

static void wait_for(struct session *session, pid_t pid)
{
	struct stat_result *result = &session->result;
	double next = session->interval, left;
	struct timespec timeout;
	int wstatus, signal;

	for (;;) {
		left = session->interval ? next - seconds_since(session->start_ns) : 3600;
		if (left < 0)
			left = 0;
		timeout.tv_sec = left;
		timeout.tv_nsec = (left - timeout.tv_sec) * 1e9;
		signal = sigtimedwait(&session->signals, NULL, &timeout);
		if (signal == SIGTERM || signal == SIGHUP)
			kill(pid, signal);
		if (waitpid(pid, &wstatus, WNOHANG) == pid)
			break;
		if (session->interval && seconds_since(session->start_ns) >= next) {
			tell_interval(session);
			next += session->interval;
		}
	}
	result->seconds = seconds_since(session->start_ns);
	take_ended(result, wstatus);
}

static int show(struct session *session)
{
	struct stat_result *result = &session->result;
	json_t *root;

	if (session->args->json) {
		root = out_json_new("stat", result->simulated);
		stat_json(root, result);
		if (session->intervals)
			json_object_set(root, "intervals", session->intervals);
		out_json_write(&session->out, root);
	} else {
		stat_text(&session->out, result);
	}
	return out_close(&session->out);
}

static int measure(struct session *session)
{
	struct stat_result *result = &session->result;
	int status;
	pid_t pid = -1;

	if (session->interval && session->args->json)
		session->intervals = json_array();
	status = start(session, &pid);
	if (status)
		return status;
	wait_for(session, pid);
	read_processes(session, result);
	result->program = session->args->program;
	result->simulated = session->args->simulated;
	find_set(result);
	stat_judge(result);
	return show(session) ?: CMD_ENDED | result->status;
}

static int with_block(struct session *session, struct gpupart *gp)
{
	const char *id;
	int status = 0;

	if (gpupart_stat_open(gp, &session->stat, &id))
		return cmd_fail(session->args->cmd, EXIT_FAILED, "%s", gpupart_error(gp));
	setenv("GPUPART_STAT", id, 1);
	sigaction(SIGPIPE, NULL, &session->pipe_before);
	if (session->args->output)
		status = out_open(&session->out, session->args);
	else
		out_use(&session->out, session->args, stderr);
	status = status ?: measure(session);
	free(session->result.processes);
	free(session->told.processes);
	json_decref(session->intervals);
	gpupart_stat_close(session->stat);
	return status;
}

/* A driver has one place for who measures: the stat around this one would see nothing. */
static int check_alone(const struct args *args)
{
	static const char memory[] = "/memfd:gpupart-stat";
	const char *id = getenv("GPUPART_STAT");
	char is[64];
	ssize_t len = id && *id ? readlink(id, is, sizeof(is)) : -1;

	/* Of one that has ended the variable may still be there. */
	if (len < (ssize_t)strlen(memory) || strncmp(is, memory, strlen(memory)))
		return 0;
	return cmd_fail(args->cmd, EXIT_FAILED,
			"GPUPART_STAT=%.80s: what runs here is measured by another gpupart stat already",
			id);
}

/* The command's own options, as they were given. */
struct wishes {
	const char *interval, *pid, *delay;
};

/* A word that is no path and does not follow "--" is the name of what runs. */
static bool is_running(const struct args *args, const struct wishes *wishes)
{
	return wishes->pid || (*args->program && !strchr(*args->program, '/') &&
			       strcmp(args->program[-1], "--"));
}

/* Once more: options may follow NAME, and those of a program are refused. */
static int show_running(struct wishes *wishes, const struct args_option *own, int argc,
			char **argv)
{
	struct args args = { 0 };
	struct running running = { .args = &args, .seconds = 1 };
	int status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT | ARGS_NAMES, own, stat_help, argc,
				argv);

	if (!status && wishes->pid && *args.program)
		status = usage_error("-p %s and '%s': one of them", wishes->pid, *args.program);
	if (!status && *args.program && args.program[1])
		status = usage_error("'%s': one NAME is possible; a program follows after --",
				     args.program[1]);
	if (!status && wishes->delay)
		status = args_seconds("-d", wishes->delay, 0.1, &running.seconds);
	if (!status && wishes->interval)
		status = args_seconds("--interval", wishes->interval, 0.1, &running.interval);
	if (!status)
		status = running_find(&running, wishes->pid, *args.program) ?:
			 running_measure(&running);
	running_drop(&running);
	return status;
}

int cmd_stat(int argc, char **argv)
{
	const char *disable = getenv("GPUPART_DISABLE");
	struct wishes given = { 0 };
	const struct args_option own[] = { { .name = "interval", .value = &given.interval },
					   { .name = "pid", .letter = 'p', .value = &given.pid },
					   { .name = "delay", .letter = 'd',
					     .value = &given.delay }, { 0 } };
	const struct run_wishes wishes = { 0 };
	struct args args = { 0 };
	struct session session = { .args = &args };
	struct gpupart *gp;
	int status;

	status = args_parse(&args, ARGS_SET | ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT |
			    ARGS_PROGRAM, own, stat_help, argc, argv);
	if (!status && is_running(&args, &given))
		return show_running(&given, own, argc, argv);
	if (!status && given.delay)
		status = usage_error("-d %s is for -p and NAME", given.delay);
	status = status ?: run_check_program(&args);
	if (!status && given.interval)
		status = args_seconds("--interval", given.interval, 0.1, &session.interval);
	if (status)
		return status;
	run_inherit_gpu(&args);
	status = args_simulate(&args);
	if (status)
		return status;
	if (disable && !strcmp(disable, "1")) {
		cmd_note(args.cmd, "GPUPART_DISABLE=1: %s is not measured", args.program[0]);
		return run_become(&args);
	}
	status = check_alone(&args) ?:
		 args.nr_terms ? run_confine(&args, &wishes) : run_inject(false);
	if (status)
		return status;
	gp = alloc_gpupart();
	status = with_block(&session, gp);
	gpupart_close(gp);
	return status;
}
