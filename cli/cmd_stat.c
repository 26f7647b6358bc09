// SPDX-License-Identifier: MIT
/*
 * gpupart stat: starts a program in the same way as 'gpupart run', or finds running programs. Reads
 * the completion records of these programs and prints a report.
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
#include "cli/stat/stat.h"
#include "cli/target/args.h"
#include "cli/util/alloc.h"
#include "cli/util/out.h"
#include "cli/util/process.h"

#define JOIN_NS	5000000		/* interval of the search for new processes */

const char stat_help[] =
"Usage: gpupart stat [SET] [-i CAPTURE] [--gpu GPU] [--interval SECONDS] [--json]\n"
"                    [-o FILE] -- PROGRAM ARGS\n"
"       gpupart stat -p PID | NAME [-d SECONDS] [--interval SECONDS] [--json]\n"
"                    [-o FILE]\n"
"Runs an unmodified program, in a set or on the whole GPU, and reports how busy it\n"
"kept the GPU, how many launches were outstanding, the ten kernels that took the most\n"
"time, and whether the program is CPU-bound or GPU-bound. The figures come from the\n"
"completion records that the GPU writes when a launch ends. The report is written to\n"
"stderr, since stdout belongs to the program.\n"
"\n"
"SET is given as for run: -t, -g, -u, -n, --sms, --hex, --shape; see 'gpupart help\n"
"run'.\n"
"\n"
"  -i, --input CAPTURE run on the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       the GPU of SET: an index in PCI order, a PCI address or a UUID\n"
"      --interval SECONDS\n"
"                      also report each interval of this length, 0.1-3600, in a line\n"
"                      on stderr; with --json in \"intervals\"\n"
"      --json          write JSON, schema gpupart/1\n"
"  -o, --output FILE   write the report to FILE; FILE.json: as with --json\n"
"\n"
"A program is GPU-bound if launches were outstanding for 90% or more of the time from\n"
"its first launch to its end, and CPU-bound if they were outstanding for 50% or less\n"
"of this time. Copies are counted with their bytes but not timed. When no launch is\n"
"outstanding, the GPU may be copying or may be idle: gpupart(1), \"What bounds a\n"
"program\".\n"
"\n"
"With -p or NAME the report covers a process, or all processes of a job, that already\n"
"run under gpupart, for the time from now on; it is written to stdout. The start of a\n"
"kernel is not recorded: stat uses its submission or the end of the previous launch on\n"
"its stream. \"31.0 to 44.2%\" is a range, because the clocks of CPU and GPU agree only\n"
"within a bound. Some graphs have no completion records: they count as busy.\n"
"\n"
"  -p, --pid PID       this process of yours; as root any process\n"
"  -d, --delay SECONDS measure for this time, 0.1-3600 (1); Ctrl-C ends it earlier\n"
"\n"
"The program is started as by run, with GPUPART_STAT and GPUPART_RECORDS=1 in its\n"
"environment. Each descendant is measured separately. With GPUPART_RECORDS=0 in the\n"
"environment stat refuses to start; with GPUPART_DISABLE=1 it measures nothing.\n"
"Profilers that use CUPTI cannot be used at the same time.\n"
"\n"
"Exit status: the status of the program, or 128 plus the number of the signal that\n"
"ended it; 127 not found, 126 not executable, 125 any other failure.\n"
"\n"
"Examples:\n"
"  gpupart stat -- python3 infer.py\n"
"  gpupart stat -n 16 --json -o stat.json -- ./serve\n"
"  gpupart stat train -d 10 --interval 1\n";

struct session {
	struct args *args;
	struct gpupart_stat *stat;
	struct out out;
	struct stat_report report;
	struct stat_program program;
	bool joined[GPUPART_STAT_MAX_PROCESSES];
	uint64_t start_ns;
	struct sigaction pipe_before;	/* action for SIGPIPE, restored in the program */
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

/* Starts the program. Returns 0 and *pid, or an error. */
static int start(struct session *session, pid_t *pid)
{
	int fds[2], status = 0;
	ssize_t len;

	if (pipe2(fds, O_CLOEXEC))
		return cmd_fail(session->args->cmd, EXIT_FAILED, "cannot create a pipe: %s",
				strerror(errno));
	sigemptyset(&session->signals);
	sigaddset(&session->signals, SIGCHLD);
	sigaddset(&session->signals, SIGTERM);
	sigaddset(&session->signals, SIGHUP);
	/*
	 * The terminal also sends these signals to the program. The program decides how to react.
	 */
	sigaddset(&session->signals, SIGINT);
	sigaddset(&session->signals, SIGQUIT);
	sigprocmask(SIG_BLOCK, &session->signals, &session->before);
	fflush(NULL);
	session->start_ns = process_now_ns();
	*pid = fork();
	if (!*pid) {
		close(fds[0]);
		be_program(session, fds[1]);
	}
	close(fds[1]);
	if (*pid < 0) {
		close(fds[0]);
		return cmd_fail(session->args->cmd, EXIT_FAILED, "cannot create a process: %s",
				strerror(errno));
	}
	/* If read() returns no data, the child has executed the program. */
	do
		len = read(fds[0], &status, sizeof(status));
	while (len < 0 && errno == EINTR);
	close(fds[0]);
	if (len != sizeof(status))
		return 0;
	waitpid(*pid, NULL, 0);
	return status;
}

static void take_ended(struct stat_program *program, int wstatus)
{
	if (WIFSIGNALED(wstatus)) {
		program->signal = WTERMSIG(wstatus);
		program->status = 128 + program->signal;
	} else {
		program->status = WEXITSTATUS(wstatus);
	}
}

/*
 * Adds rows for processes that start to use CUDA. Such a process waits until this command has
 * opened its records.
 */
static void join(struct session *session)
{
	struct gpupart_stat_process p;
	struct gpupart_process row;
	uint64_t due_ns;
	unsigned int left;
	int err;

	for (unsigned int n = 0; (err = gpupart_stat_get(session->stat, n, &p)) != -ENOENT; n++) {
		if (err || session->joined[n])
			continue;
		session->joined[n] = true;
		row = (struct gpupart_process){ .pid = p.pid };
		row.simulated = session->args->simulated;
		snprintf(row.name, sizeof(row.name), "%s", p.name);
		for (unsigned int g = 0; g < p.nr_gpus; g++) {
			snprintf(row.pci, sizeof(row.pci), "%s", p.pci[g]);
			stat_add(&session->report, &row);
		}
		stat_sample_due(&session->report, false, &left, &due_ns);
		gpupart_stat_seen(session->stat, n);
	}
}

static void wait_for(struct session *session, pid_t pid)
{
	struct stat_report *report = &session->report;
	uint64_t due_ns, now;
	struct timespec timeout = { 0 };
	unsigned int left;
	int wstatus, signal;

	for (;;) {
		join(session);
		stat_sample_due(report, false, &left, &due_ns);
		stat_print_intervals(report, seconds_since(session->start_ns));
		now = process_now_ns();
		timeout.tv_nsec = due_ns <= now ? 0 : due_ns - now < JOIN_NS ? due_ns - now :
				  JOIN_NS;
		signal = sigtimedwait(&session->signals, NULL, &timeout);
		if (signal == SIGTERM || signal == SIGHUP)
			kill(pid, signal);
		if (waitpid(pid, &wstatus, WNOHANG) == pid)
			break;
	}
	session->program.seconds = seconds_since(session->start_ns);
	take_ended(&session->program, wstatus);
	stat_sample_due(report, true, &left, &due_ns);
	stat_finish(report);
}

/* Returns whether process @pid has a row. */
static bool has_row(const struct stat_report *report, int pid)
{
	for (unsigned int i = 0; i < report->nr_rows; i++)
		if (report->rows[i].process.pid == pid)
			return true;
	return false;
}

/* Adds up the counters of all processes. Counts the processes that could not be measured. */
static void add_up(struct session *session)
{
	struct stat_program *program = &session->program;
	struct gpupart_stat_process p;
	int err;

	program->nr_lost = gpupart_stat_lost(session->stat);
	program->nr_processes = program->nr_lost;
	for (unsigned int n = 0; (err = gpupart_stat_get(session->stat, n, &p)) != -ENOENT; n++) {
		program->nr_processes++;
		program->nr_lost += err || !has_row(&session->report, p.pid);
		for (int i = 0; !err && i < GPUPART_STAT_NR_DIRECTIONS; i++) {
			program->sum.copies[i] += p.copies[i];
			program->sum.bytes[i] += p.bytes[i];
		}
		program->sum.waits += err ? 0 : p.waits;
		program->sum.wait_ns += err ? 0 : p.wait_ns;
	}
}

static int measure(struct session *session)
{
	struct stat_report *report = &session->report;
	int status;
	pid_t pid = -1;

	report->next = report->interval;
	if (report->interval && session->args->json)
		report->intervals = json_array();
	status = start(session, &pid);
	if (status)
		return status;
	wait_for(session, pid);
	add_up(session);
	return stat_show(&session->out, report) ?: CMD_ENDED | session->program.status;
}

static int with_report(struct session *session)
{
	const char *id;
	int status = 0;

	if (gpupart_stat_open(cmd_gp, &session->stat, &id))
		return failure("%s", gpupart_error(cmd_gp));
	setenv("GPUPART_STAT", id, 1);
	sigaction(SIGPIPE, NULL, &session->pipe_before);
	if (session->args->output)
		status = out_open(&session->out, session->args);
	else
		out_use(&session->out, session->args, stderr);
	status = status ?: measure(session);
	stat_drop(&session->report);
	gpupart_stat_close(session->stat);
	return status;
}

/*
 * If this process runs inside another `gpupart stat`, returns an error. A process can report to
 * only one `gpupart stat`.
 */
static int check_alone(const struct args *args)
{
	static const char memory[] = "/memfd:gpupart-stat";
	const char *id = getenv("GPUPART_STAT");
	char is[64];
	ssize_t len = id && *id ? readlink(id, is, sizeof(is)) : -1;

	/* The variable may refer to a `gpupart stat` that has ended. */
	if (len < (ssize_t)strlen(memory) || strncmp(is, memory, strlen(memory)))
		return 0;
	return cmd_fail(args->cmd, EXIT_FAILED,
			"GPUPART_STAT=%.80s: another gpupart stat already measures this process",
			id);
}

/* Enables completion records for the program. Returns 0 or an error. */
static int want_records(void)
{
	const char *records = getenv("GPUPART_RECORDS");

	if (records && !strcmp(records, "0"))
		return failure(
			"GPUPART_RECORDS=0: stat needs completion records: unset this variable");
	setenv("GPUPART_RECORDS", "1", 1);
	return 0;
}

/*
 * Confines the program in the same way as 'gpupart run'. If SET is absent, the set contains all
 * allowed TPCs. If the GPU writes no completion records, returns an error.
 */
static int confine(struct session *session, struct run_wishes *wishes)
{
	const char *around = getenv("GPUPART_SET"), *set;
	bool whole = !session->args->nr_terms && !(around && *around);
	struct stat_program *program = &session->program;
	bool recorded = true;
	char *key;
	int status = run_confine(session->args, wishes);

	if (status)
		return status;
	for (unsigned int n = 0; (key = alloc_part(getenv("GPUPART_CHECKED"), ',', n)); n++) {
		recorded &= strlen(key) > GPUPART_KEY_LEN;
		free(key);
	}
	if (!recorded)
		return failure(
			"this GPU writes no completion records: see the row 'records' of 'gpupart doctor' for the reason");
	set = getenv("GPUPART_SET");
	program->set = whole ? NULL : set;
	if (program->set && gpupart_tpcset_parse_list(NULL, set, &program->tpcs))
		program->tpcs = (struct gpupart_tpcset){ { 0 } };
	return 0;
}

/* Option values of stat. */
struct wishes {
	const char *interval, *pid, *delay;
};

/*
 * Returns true if the command must measure a running program. This is so if the user gave -p. It is
 * also so if the first argument is not a path and does not follow "--".
 */
static bool is_running(const struct args *args, const struct wishes *wishes)
{
	return wishes->pid || (*args->program && !strchr(*args->program, '/') &&
			       strcmp(args->program[-1], "--"));
}

/*
 * Parses the arguments again. Now options may follow NAME. Rejects options for starting a program.
 */
static int show_running(struct wishes *wishes, const struct args_option *own, int argc,
			char **argv)
{
	struct args args = { 0 };
	struct stat_report report = { .args = &args, .seconds = 1 };
	struct out out;
	int status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT | ARGS_NAMES, own, stat_help, argc,
				argv);

	if (!status && wishes->pid && *args.program)
		status = usage_error("-p %s and '%s': use only one of them", wishes->pid,
				     *args.program);
	if (!status && *args.program && args.program[1])
		status = usage_error(
			"unexpected argument '%s': only one NAME is allowed; put a program after --",
			args.program[1]);
	status = status ?: args_seconds("-d", wishes->delay, 0.1, &report.seconds) ?:
		 args_seconds("--interval", wishes->interval, 0.1, &report.interval);
	report.next = report.interval;
	if (report.interval && args.json)
		report.intervals = json_array();
	if (!status)
		status = running_find(&report, wishes->pid, *args.program) ?:
			 running_watch(&report) ?: out_open(&out, &args) ?:
			 stat_show(&out, &report);
	stat_drop(&report);
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
	struct run_wishes wishes = { .quiet = true };
	struct args args = { 0 };
	static struct session session;
	int status;

	status = args_parse(&args, ARGS_SET | ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT |
			    ARGS_PROGRAM, own, stat_help, argc, argv);
	if (!status && is_running(&args, &given))
		return show_running(&given, own, argc, argv);
	if (!status && given.delay)
		status = usage_error("-d %s: needs -p or NAME", given.delay);
	status = status ?: run_check_program(&args) ?:
		 args_seconds("--interval", given.interval, 0.1, &session.report.interval);
	if (status)
		return status;
	run_take_gpus(&args, &wishes);
	if (!args.nr_terms && !args.gpu && !wishes.gpus)
		wishes.gpus = "all";
	status = args_simulate(&args);
	if (status)
		return status;
	if (disable && !strcmp(disable, "1")) {
		cmd_note(args.cmd, "GPUPART_DISABLE=1: %s is not measured", args.program[0]);
		return run_become(&args);
	}
	session.args = &args;
	session.report.args = &args;
	session.report.program = &session.program;
	session.report.simulated = args.simulated;
	session.program.argv = args.program;
	status = check_alone(&args) ?: want_records() ?: confine(&session, &wishes);
	return status ?: with_report(&session);
}
