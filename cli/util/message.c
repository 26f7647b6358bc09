// SPDX-License-Identifier: MIT
/* Prints messages and converts results to exit statuses; see message.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/message.h"

const char *cmd_program = "gpupart", *cmd_name;

/*
 * Returns the length, in bytes, of the UTF-8 character at @c. If the character is invalid or a
 * control character, returns 0.
 */
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
		/* The character is overlong, a surrogate, out of range, or a control character. */
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
	/*
	 * Shorten a long message in the middle. The values are at the beginning, and the reason is
	 * at the end.
	 */
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
	/* A message must be one line without escape sequences. So replace control characters. */
	out_clean(line);
	if (cmd)
		fprintf(stderr, "%s %s: %s\n", cmd_program, cmd, line);
	else
		fprintf(stderr, "%s: %s\n", cmd_program, line);
	if (line != short_line)
		free(line);
}

int cmd_fail(const char *cmd, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(cmd, fmt, ap);
	va_end(ap);
	return error;
}

void cmd_note(const char *cmd, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(cmd, fmt, ap);
	va_end(ap);
}

int cmd_exit_status(int result, bool starts)
{
	if (result & CMD_ENDED)
		return result & 0xff;
	return starts && (result == EXIT_FAILED || result == EXIT_USAGE) ? EXIT_RUN_FAILED : result;
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
