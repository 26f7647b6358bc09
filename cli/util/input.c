// SPDX-License-Identifier: MIT
/* See input.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/util/input.h"

/*
 * Returns whether the pipe @file has data or a writer. The pipe must be in non-blocking mode. Reads
 * the first byte, and then puts this byte back.
 */
static bool has_writer(FILE *file)
{
	int first = fgetc(file);

	if (first == EOF)
		return ferror(file) && errno == EAGAIN;
	ungetc(first, file);
	return true;
}

FILE *input_open(const char *path, const char **why)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat st;

	if (!file) {
		*why = strerror(errno);
		return NULL;
	}
	if (!fstat(fd, &st) && S_ISFIFO(st.st_mode) && !has_writer(file)) {
		fclose(file);
		errno = ENXIO;
		*why = "is a pipe without a writer";
		return NULL;
	}
	clearerr(file);
	fcntl(fd, F_SETFL, 0);
	return file;
}
