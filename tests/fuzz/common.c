// SPDX-License-Identifier: MIT
/*
 * Shared code of the fuzz targets. It keeps files in memory. It also intercepts the command's
 * messages, so that stderr stays empty.
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"

unsigned int fuzz_lines, fuzz_notes;
char fuzz_line[4096];
const char *fuzz_words = "";

/* The linker option --wrap replaces the functions of cli/util/message.c by these functions. */
__attribute__((constructor)) static void name_command(void)
{
	cmd_name = "fuzz";
	cmd_gp = alloc_gpupart();
}

__attribute__((format(printf, 3, 4)))
int __wrap_cmd_fail(const char *cmd, int status, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
void __wrap_cmd_note(const char *cmd, const char *fmt, ...);

int __wrap_cmd_fail(const char *cmd, int status, const char *fmt, ...)
{
	va_list ap;

	MUST(cmd && status > 0);
	va_start(ap, fmt);
	MUST(vsnprintf(fuzz_line, sizeof(fuzz_line), fmt, ap) > 0);
	va_end(ap);
	fuzz_lines++;
	return status;
}

void __wrap_cmd_note(const char *cmd, const char *fmt, ...)
{
	va_list ap;

	(void)cmd;
	va_start(ap, fmt);
	MUST(vsnprintf(fuzz_line, sizeof(fuzz_line), fmt, ap) > 0);
	va_end(ap);
	fuzz_notes++;
}

const char *fuzz_file(const void *data, size_t size)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		MUST(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	MUST(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	MUST(text);
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	return text;
}

bool fuzz_printable(const char *text, size_t room)
{
	size_t i;

	for (i = 0; i < room && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return i < room;
}

FILE *fuzz_nowhere(void)
{
	static FILE *nowhere;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	MUST(nowhere);
	return nowhere;
}
