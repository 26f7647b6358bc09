// SPDX-License-Identifier: MIT
/*
 * gpupart qos replay: what was measured, from a log, once more through the policy: the same
 * decisions, or where they differ. Must not know how anything was measured.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "qos.h"

#define MOST_LINE	(1 << 20)

struct replay {
	const struct args *args;
	const char *path;
	FILE *file;
	char *text;			/* of a line */
	unsigned int line, nr;		/* of the file; of those the whole ones */
	struct qos_setup setup;
	struct qos_session session;
};

__attribute__((format(printf, 3, 4)))
static int bad_line(const struct replay *r, int status, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return cmd_fail(r->args->cmd, status, "%s:%u: %s", r->path, r->line, text);
}

/* The next line as JSON, and in r->text. -1 and *line (NULL: the end), or a status. */
static int next_line(struct replay *r, json_t **line)
{
	json_error_t error;
	size_t len = 0;
	int c;

	*line = NULL;
	while ((c = getc(r->file)) != EOF && c != '\n' && len < MOST_LINE)
		r->text[len++] = c;
	if (ferror(r->file))
		return cmd_fail(r->args->cmd, EXIT_FAILED, "%s: %s", r->path, strerror(errno));
	if (c == EOF && !len)
		return -1;
	r->line++;
	/* The last one of a controller that was killed may be cut: what is whole counts. */
	if (c == EOF) {
		cmd_note(r->args->cmd, "%s:%u: is cut, and passed over", r->path, r->line);
		return -1;
	}
	if (c != '\n')
		return bad_line(r, EXIT_USAGE, "is longer than %d bytes", MOST_LINE);
	if (memchr(r->text, 0, len))
		return bad_line(r, EXIT_USAGE, "has a zero byte in it");
	r->nr++;
	r->text[len] = 0;
	*line = json_loads(r->text, JSON_REJECT_DUPLICATES, &error);
	if (!*line)
		return bad_line(r, EXIT_USAGE, "is no JSON: %s", error.text);
	return -1;
}

/* Whether @now, written, is the line: -1, or a status with the difference said. */
static int compare(struct replay *r, const json_t *logged, json_t *now)
{
	char *text = json_dumps(now, JSON_COMPACT | JSON_PRESERVE_ORDER);
	char difference[1024];
	int status = -1;

	if (!text) {
		status = cmd_fail(r->args->cmd, EXIT_FAILED, "no memory");
	} else if (strcmp(text, r->text)) {
		qos_log_difference(logged, now, difference, sizeof(difference));
		status = bad_line(r, EXIT_FAILED, "another decision: %s",
				  *difference ? difference : "the same values, written otherwise");
	}
	free(text);
	json_decref(now);
	return status;
}

static int replay_begin(struct replay *r)
{
	char why[QOS_WORDS] = "";
	json_t *line;
	int status = next_line(r, &line);

	if (status < 0 && !line)
		return cmd_fail(r->args->cmd, EXIT_USAGE, "%s: nothing is in it", r->path);
	if (status >= 0)
		return status;
	r->setup.path = r->path;
	r->session.setup = &r->setup;
	if (!qos_log_read_begin(line, &r->setup, &r->session, why))
		status = bad_line(r, EXIT_USAGE, "is no begin of a log of gpupart qos: %s", why);
	if (status < 0)
		status = qos_session_begin(&r->session, r->args->cmd);
	if (status < 0)
		status = compare(r, line, qos_log_begin(&r->session));
	json_decref(line);
	return status;
}

static int replay_step(struct replay *r, const json_t *line)
{
	struct qos_measured measured[QOS_MAX_TENANTS];
	bool swap = r->session.now.swapping;
	char why[QOS_WORDS] = "";
	uint64_t time_ns;
	int status;

	if (!qos_log_read_step(line, &r->session, &time_ns, measured, why))
		return bad_line(r, EXIT_USAGE, "%s", why);
	if (r->session.others_changed)
		qos_session_hold(&r->session);
	status = qos_session_step(&r->session, r->args->cmd, time_ns, measured);
	if (status < 0)
		status = compare(r, line, qos_log_step(&r->session, time_ns, swap, measured));
	return status;
}

static int replay_all(struct replay *r)
{
	json_t *line;
	int status = replay_begin(r);

	while (status < 0) {
		status = next_line(r, &line);
		if (status >= 0 || !line)
			break;
		status = replay_step(r, line);
		json_decref(line);
	}
	return status;
}

static int show(struct replay *r)
{
	struct out out;
	json_t *root;
	int err = 0, status = out_open(&out, r->args);

	if (status >= 0)
		return status;
	if (r->args->json) {
		root = qos_json(&r->session, "qos replay");
		json_object_set_new(root, "decisions", json_integer(r->nr));
		json_object_set_new(root, "same", json_true());
		out_json_write(&out, root);
	} else if (r->session.picture) {
		err = qos_svg(&out, &r->session);
	} else {
		qos_text(&out, &r->session);
		fprintf(out.file, "replayed: %u decisions, all of them the same\n", r->nr);
	}
	status = out_close(&out, r->args->cmd);
	return err ? cmd_fail(r->args->cmd, EXIT_FAILED, "no memory") : status;
}

int qos_replay(const struct args *args, const struct qos_options *options)
{
	struct replay r = { .args = args, .path = args->program[0] };
	int status;

	r.file = fopen(r.path, "re");
	if (!r.file)
		return cmd_fail(args->cmd, EXIT_USAGE, "%s: %s", r.path, strerror(errno));
	r.text = malloc(MOST_LINE + 1);
	r.session.picture = qos_wants_svg(args, options);
	status = r.text ? replay_all(&r) : cmd_fail(args->cmd, EXIT_FAILED, "no memory");
	if (status < 0)
		status = show(&r);
	qos_session_end(&r.session);
	free(r.text);
	fclose(r.file);
	return status;
}
