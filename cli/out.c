// SPDX-License-Identifier: MIT
/*
 * Where results go and whether they arrived; the one line of a failure. Must not know
 * what is written.
 */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "args.h"
#include "cmd.h"
#include "out.h"

/* How many bytes at @c are one character of UTF-8 that steers no terminal; 0 none. */
static int printable(const unsigned char *c)
{
	static const struct { unsigned char mask, lead; uint32_t lowest; } forms[] = {
		{ 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 },
	};

	if (*c < 0x80)
		return *c >= ' ' && *c != 0x7f;
	for (int i = 0; i < 3; i++) {
		uint32_t code = *c & ~forms[i].mask;

		if ((*c & forms[i].mask) != forms[i].lead)
			continue;
		for (int j = 1; j <= i + 1; j++) {
			if ((c[j] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (c[j] & 0x3f);
		}
		/* Longer than need be, a half of a pair, no character at all, or a control. */
		if (code < forms[i].lowest || (code >= 0xd800 && code < 0xe000) ||
		    code > 0x10ffff || code < 0xa0)
			return 0;
		return i + 2;
	}
	return 0;
}

char *out_clean(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c;) {
		int len = printable(c);

		if (!len)
			*c = '?';
		c += len ? len : 1;
	}
	return text;
}

__attribute__((format(printf, 2, 0)))
static void say(const char *cmd, const char *fmt, va_list ap)
{
	/* A value comes first or in the middle, the reason at the end: both ends are kept. */
	enum { KEEP = 600 };
	char short_line[64], *line;
	int len = vasprintf(&line, fmt, ap);

	if (len < 0) {
		line = short_line;
		snprintf(short_line, sizeof(short_line), "no memory");
		len = strlen(line);
	}
	if (len > 2 * KEEP) {
		memmove(line + KEEP + 3, line + len - KEEP, KEEP + 1);
		memcpy(line + KEEP, "...", 3);
	}
	/* A value with a line feed in it stays one line, and no terminal is steered by it. */
	out_clean(line);
	if (cmd)
		fprintf(stderr, "gpupart %s: %s\n", cmd, line);
	else
		fprintf(stderr, "gpupart: %s\n", line);
	if (line != short_line)
		free(line);
}

int cmd_fail(const char *cmd, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(cmd, fmt, ap);
	va_end(ap);
	return status;
}

void cmd_note(const char *cmd, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(cmd, fmt, ap);
	va_end(ap);
}

void out_no_memory(void)
{
	exit(cmd_fail(NULL, EXIT_FAILED, "no memory for the result"));
}

static void *allocate_or_end(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		out_no_memory();
	return memory;
}

int cmd_status(int err)
{
	switch (err) {
	case -EINVAL:
	case -ENODEV:
	case -ENOENT:
	case -ENXIO:
	case -EOPNOTSUPP:
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}

int out_open(struct out *out, const struct args *args)
{
	FILE *file = stdout;

	if (args && args->output)
		file = fopen(args->output, "we");
	if (!file)
		return cmd_fail(args->cmd, EXIT_FAILED, "-o %s: %s", args->output,
				strerror(errno));
	out_use(out, args, file);
	return -1;
}

void out_use(struct out *out, const struct args *args, FILE *file)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool colour;

	/* A closed pipe is a write that failed, and said so. run does not come here. */
	signal(SIGPIPE, SIG_IGN);
	setlocale(LC_CTYPE, "");
	/* JSON for which there is no memory ends the command from here on. */
	if (args && args->json)
		json_set_alloc_funcs(allocate_or_end, free);
	out->file = file;
	out->path = args ? args->output : NULL;
	out->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	colour = isatty(fileno(out->file)) && !(no_color && *no_color) &&
		 !(term && !strcmp(term, "dumb"));
	out->bold = colour ? "\033[1m" : "";
	out->dim = colour ? "\033[2m" : "";
	out->red = colour ? "\033[1;31m" : "";
	out->plain = colour ? "\033[0m" : "";
}

int out_close(struct out *out, const char *cmd)
{
	bool bad = ferror(out->file);

	errno = 0;
	if (fflush(out->file))
		bad = true;
	if (out->path && fclose(out->file))
		bad = true;
	if (!bad)
		return EXIT_DONE;
	return cmd_fail(cmd, EXIT_FAILED, "writing to %s: %s", out->path ? out->path :
			"standard output", errno ? strerror(errno) : "failed");
}

bool out_is_svg(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	return len > 4 && !strcmp(path + len - 4, ".svg");
}
