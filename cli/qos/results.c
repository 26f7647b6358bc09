// SPDX-License-Identifier: MIT
/*
 * Writes the log, the JSON lines, the table and the picture of a run. Until there is a result, a
 * file keeps its old contents. A slow reader does not delay a live run.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/qos/async_writer.h"
#include "cli/qos/qos.h"
#include "cli/util/atomic_file.h"
#include "cli/util/message.h"

static bool is_regular(int fd, struct stat *st)
{
	return !fstat(fd, st) && S_ISREG(st->st_mode);
}

static int open_sink(const struct qos_session *s, struct qos_sink *to)
{
	struct stat st, out;
	int fd;

	if (!to->path)
		return 0;
	fd = open(to->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	to->made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = atomic_file_open(to->path, O_CREAT);
	else if (fd < 0)
		fd = -errno;
	to->file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!to->file)
		return failure("%s %s: %s", to->option, to->path,
			       atomic_file_strerror(fd < 0 ? fd : -errno));
	if (!is_regular(fd, &st))
		return 0;
	/*
	 * A dry run may run at the same time as a controller, but must not write to the
	 * controller's log.
	 */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return failure("%s %s: another 'gpupart qos' is writing to it",
			       to->option, to->path);
	if (s->driver->live && !fstat(1, &out) && st.st_dev == out.st_dev &&
	    st.st_ino == out.st_ino)
		return usage_error("%s %s: this is the same file as standard output",
				   to->option, to->path);
	return 0;
}

int qos_results_open(struct qos_session *s)
{
	const struct args *args = s->args;
	int status;

	s->log_to = (struct qos_sink){ .option = "--log", .path = s->options->log };
	s->result_to = (struct qos_sink){ .option = "-o", .path = args->output };
	s->shown_to = (struct qos_sink){ .file = stdout };
	status = open_sink(s, &s->log_to) ?: open_sink(s, &s->result_to);
	if (!status && (!s->driver->live || args->json || args->output || s->options->of))
		out_use(&s->out, args, s->result_to.file ? s->result_to.file : stdout);
	return status;
}

/* If a file cannot be truncated, it is a pipe or a device. */
static void empty(struct qos_sink *to)
{
	struct stat st;

	if (to->file && is_regular(fileno(to->file), &st) && ftruncate(fileno(to->file), 0))
		clearerr(to->file);
	to->made = false;
}

static int begin_pump(struct qos_sink *to, FILE **file)
{
	to->pump = async_writer_open(fileno(to->file));
	if (!to->pump)
		return failure("cannot create a thread for output: %s", strerror(errno));
	*file = async_writer_file(to->pump);
	return 0;
}

int qos_results_begin(struct qos_session *s)
{
	bool json = s->args->json;
	FILE *shown;
	int status = 0;

	/* If SIGPIPE is ignored, a write to a closed pipe fails with a message. */
	signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	empty(&s->log_to);
	s->log = s->log_to.file;
	if (!s->driver->live)
		return 0;
	s->result_to.made = false;
	if (json)
		empty(&s->result_to);
	if (s->log)
		status = begin_pump(&s->log_to, &s->log);
	if (!status)
		status = begin_pump(json && s->result_to.file ? &s->result_to : &s->shown_to,
				    json ? &s->lines : &shown);
	return status;
}

FILE *qos_results_shown(struct qos_session *s, bool whole)
{
	struct pump *pump = s->args->json ? NULL : s->shown_to.pump;

	return pump && !(whole && async_writer_pending(pump)) ? async_writer_file(pump) : NULL;
}

static int end_pump(struct qos_sink *to)
{
	int err = to->pump ? async_writer_close(to->pump) : 0;

	to->pump = NULL;
	if (!err)
		return 0;
	return failure("writing to %s: %s", to->path ? to->path : "standard output",
		       err == -EAGAIN ? "the reader is too slow or has stopped" : strerror(-err));
}

static int write_result(struct qos_session *s)
{
	bool json = s->args->json;
	int status;

	if (!s->out.file)
		return 0;
	if (!json || !s->driver->live)
		empty(&s->result_to);
	if (s->picture)
		qos_svg(&s->out, s);
	else if (!json)
		qos_text(&s->out, s);
	else if (!s->driver->live)
		out_json_write(&s->out, qos_json(s));
	status = out_close(&s->out);
	s->result_to.file = NULL;
	return status;
}

int qos_results_end(struct qos_session *s)
{
	int status = 0, shown;

	/*
	 * If the log of a live run failed, a message was printed at once. The exit status does not
	 * change.
	 */
	if (s->log && s->driver->live)
		end_pump(&s->log_to);
	s->log = s->lines = NULL;
	status = end_pump(&s->result_to);
	shown = end_pump(&s->shown_to);
	/* Write the result of -o even if standard output has no reader. */
	if (!status && (!shown || s->result_to.file))
		status = write_result(s);
	if (s->driver->live || !s->log_to.file)
		return status ?: shown;
	if (fclose(s->log_to.file))
		status = failure("--log %s: %s", s->log_to.path, strerror(errno));
	s->log_to.file = NULL;
	return status;
}

void qos_results_close(struct qos_session *s)
{
	struct qos_sink *all[] = { &s->log_to, &s->result_to, &s->shown_to };

	for (unsigned int i = 0; i < 3; i++) {
		if (all[i]->pump)
			async_writer_close(all[i]->pump);
		if (all[i]->path && all[i]->file)
			fclose(all[i]->file);
		if (all[i]->made)
			unlink(all[i]->path);
	}
}
