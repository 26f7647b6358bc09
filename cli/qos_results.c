// SPDX-License-Identifier: MIT
/*
 * A controller's log, lines, table and picture: nothing is lost before it has something to
 * write, and nobody who reads slowly holds it up. Must not know what is decided.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd.h"
#include "qos_results.h"

static int open_one(const char *cmd, struct qos_result *result)
{
	int fd;

	if (!result->path)
		return -1;
	fd = open(result->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	result->made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(result->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	/* A dry run may be beside a controller, not in its log. */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return cmd_fail(cmd, EXIT_FAILED, "%s %s: another gpupart qos writes it",
				result->option, result->path);
	}
	result->file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (result->file)
		return -1;
	return cmd_fail(cmd, EXIT_FAILED, "%s %s: %s", result->option, result->path,
			strerror(errno));
}

static bool is_regular(const struct qos_result *result, struct stat *st)
{
	return result->file && !fstat(fileno(result->file), st) && S_ISREG(st->st_mode);
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int check_distinct(const struct qos_results *r)
{
	const struct qos_result *both[] = { &r->log, &r->output };
	struct stat st[2], of;

	for (unsigned int i = 0; i < 2; i++) {
		if (!is_regular(both[i], &st[i]))
			continue;
		if (!fstat(1, &of) && same(&st[i], &of))
			return cmd_fail(r->args->cmd, EXIT_USAGE, "%s %s: is standard output",
					both[i]->option, both[i]->path);
	}
	return -1;
}

int qos_results_open(struct qos_results *r, const struct args *args,
		     const struct qos_options *options, struct qos_session *session)
{
	int status;

	r->args = args;
	r->session = session;
	r->log = (struct qos_result){ .option = "--log", .path = options->log };
	r->output = (struct qos_result){ .option = "-o", .path = args->output };
	status = open_one(args->cmd, &r->log);
	if (status < 0)
		status = open_one(args->cmd, &r->output);
	if (status < 0)
		status = check_distinct(r);
	if (status < 0 && (args->json || args->output || options->of))
		out_use(&r->out, args, r->output.file ? r->output.file : stdout);
	return status;
}

/* What cannot be emptied is none of a disk. */
static void empty(struct qos_result *result)
{
	struct stat st;

	if (is_regular(result, &st) && ftruncate(fileno(result->file), 0))
		clearerr(result->file);
	result->made = false;
}

static int begin_pump(const struct qos_results *r, FILE *to, struct pump **pump)
{
	*pump = pump_open(fileno(to));
	return *pump ? -1 : cmd_fail(r->args->cmd, EXIT_FAILED, "no thread that writes: %s",
				     strerror(errno));
}

int qos_results_begin(struct qos_results *r)
{
	int status = -1;

	/* A closed pipe is a write that failed, and said so. */
	signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	empty(&r->log);
	r->output.made = false;
	if (r->args->json)
		empty(&r->output);
	if (r->log.file)
		status = begin_pump(r, r->log.file, &r->log_pump);
	if (status < 0 && r->args->json)
		status = begin_pump(r, r->out.file, &r->lines_pump);
	else if (status < 0)
		status = begin_pump(r, stdout, &r->shown_pump);
	if (status >= 0)
		return status;
	if (r->log_pump)
		r->session->log = pump_file(r->log_pump);
	if (r->lines_pump)
		r->session->lines = pump_file(r->lines_pump);
	r->session->log_may_end = true;
	return qos_session_log_begin(r->session, r->args->cmd);
}

FILE *qos_results_shown(struct qos_results *r, bool whole)
{
	if (!r->shown_pump || (whole && pump_waits(r->shown_pump)))
		return NULL;
	return pump_file(r->shown_pump);
}

static int end_pump(const struct qos_results *r, struct pump **pump, const char *what)
{
	int err = *pump ? pump_close(*pump) : 0;

	*pump = NULL;
	if (!err)
		return -1;
	return cmd_fail(r->args->cmd, EXIT_FAILED, "writing to %s: %s", what,
			err == -EAGAIN ? "nobody reads it" : strerror(-err));
}

static int write_result(struct qos_results *r)
{
	int status, err = 0;

	if (!r->args->json)
		empty(&r->output);
	if (!r->out.file)
		out_use(&r->out, NULL, stdout);
	else if (r->session->picture)
		err = qos_svg(&r->out, r->session);
	else if (!r->args->json)
		qos_text(&r->out, r->session);
	status = out_close(&r->out, r->args->cmd);
	r->output.file = NULL;
	if (err)
		status = cmd_fail(r->args->cmd, EXIT_FAILED, "no memory");
	return status ? status : -1;
}

int qos_results_end(struct qos_results *r)
{
	int status, shown;

	/* One that ended before was said. No log is a reason for another status. */
	if (r->session->log)
		end_pump(r, &r->log_pump, r->log.path);
	r->session->log = r->session->lines = NULL;
	status = end_pump(r, &r->lines_pump, r->output.path ? r->output.path : "standard output");
	shown = end_pump(r, &r->shown_pump, "standard output");
	/* What -o names has nothing to do with who does not read the rest. */
	if (status < 0 && (shown < 0 || r->output.file))
		status = write_result(r);
	return status < 0 ? shown : status;
}

static void close_one(struct qos_result *result)
{
	if (result->file)
		fclose(result->file);
	if (result->made)
		unlink(result->path);
	*result = (struct qos_result){ 0 };
}

void qos_results_close(struct qos_results *r)
{
	struct pump **pumps[] = { &r->log_pump, &r->lines_pump, &r->shown_pump };

	for (unsigned int i = 0; i < 3; i++)
		if (*pumps[i])
			pump_close(*pumps[i]);
	close_one(&r->log);
	close_one(&r->output);
}
