// SPDX-License-Identifier: MIT
/*
 * gpupart qos replay: runs the policy again on a log, and reports the first decision that differs
 * from the log.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "cli/util/input.h"
#include "cli/util/message.h"

#define MOST_LINE	(1 << 20)

static char text_of_line[MOST_LINE + 1];

struct replay {
	const char *path;
	FILE *file;
	json_t *logged;			/* a line; NULL: end of the log */
	unsigned int line;		/* line number in the file */
	struct qos_setup setup;
	struct qos_session session;
};

#define bad_line(r, status, fmt, ...) \
	cmd_fail(cmd_name, status, "%s:%u: " fmt, (r)->path, (r)->line, ##__VA_ARGS__)

/* Reads the next line. Returns 0 or an exit status. */
static int next_line(struct replay *r)
{
	json_error_t error;
	size_t len = 0;
	int c;

	json_decref(r->logged);
	r->logged = NULL;
	while ((c = getc(r->file)) != EOF && c != '\n' && len < MOST_LINE)
		text_of_line[len++] = c;
	if (ferror(r->file))
		return failure("%s: %s", r->path, strerror(errno));
	if (c == EOF && !len)
		return 0;
	r->line++;
	/*
	 * The last line of a killed controller may be incomplete. Only the complete lines count.
	 */
	if (c == EOF) {
		remark("%s:%u: ignoring an incomplete last line", r->path, r->line);
		return 0;
	}
	if (c != '\n')
		return bad_line(r, EXIT_USAGE, "is longer than %d bytes", MOST_LINE);
	if (memchr(text_of_line, 0, len))
		return bad_line(r, EXIT_USAGE, "contains a zero byte");
	text_of_line[len] = 0;
	r->logged = json_loads(text_of_line, JSON_REJECT_DUPLICATES, &error);
	return r->logged ? 0 : bad_line(r, EXIT_USAGE, "is not JSON: %s", error.text);
}

static int measure(struct qos_session *s, struct qos_measured *measured)
{
	struct replay *r = s->user;
	char why[QOS_MESSAGE_SIZE] = "";
	int status = next_line(r);

	s->over = !r->logged;
	if (status || s->over || qos_log_read_step(r->logged, s, measured, why))
		return status;
	return bad_line(r, EXIT_USAGE, "%s", why);
}

static int compare(struct qos_session *s, json_t *now)
{
	char *text = json_dumps(now, JSON_COMPACT | JSON_PRESERVE_ORDER), difference[1024];
	struct replay *r = s->user;
	bool same = text && !strcmp(text, text_of_line);

	free(text);
	s->nr_replayed++;
	if (same || !text)
		return same ? 0 : failure("no memory");
	qos_log_difference(r->logged, now, difference, sizeof(difference));
	return bad_line(r, EXIT_FAILED, "the decision differs: %s",
			*difference ? difference : "the same values, formatted differently");
}

static int replay(struct replay *r)
{
	char why[QOS_MESSAGE_SIZE] = "";
	int status = next_line(r);

	if (status)
		return status;
	if (!r->logged)
		return usage_error("%s: the file is empty", r->path);
	if (!qos_log_read_begin(r->logged, &r->setup, &r->session, why))
		return bad_line(r, EXIT_USAGE, "is not the first line of a log of 'gpupart qos': "
				"%s", why);
	return qos_session_run(&r->session);
}

int qos_replay(const struct args *args, const struct qos_options *options)
{
	static const struct qos_driver driver = {
		.command = "qos replay", .measure = measure, .decided = compare,
	};
	static struct replay r;
	const char *why;
	int status;

	r = (struct replay){
		.path = args->program[0], .setup.path = args->program[0],
		.session = { .args = args, .options = options, .driver = &driver, .user = &r,
			     .setup = &r.setup },
	};
	r.file = input_open(r.path, &why);
	if (!r.file)
		return usage_error("%s: %s", r.path, why);
	status = replay(&r);
	json_decref(r.logged);
	fclose(r.file);
	return status;
}
