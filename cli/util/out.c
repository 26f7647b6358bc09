// SPDX-License-Identifier: MIT
/* Opens and closes the output, which is stdout or the file of -o. Reports write errors. */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/util/atomic_file.h"
#include "cli/util/message.h"
#include "cli/util/options.h"
#include "cli/util/out.h"

/*
 * If @path ends with the name of an unsupported picture format, returns this ending. Otherwise
 * returns NULL.
 */
static const char *foreign_picture(const char *path)
{
	static const char *const endings[] = {
		".png", ".pdf", ".ps", ".eps", ".jpg", ".jpeg", ".gif",
	};
	const char *ending = strrchr(path, '.');

	for (size_t i = 0; ending && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (!strcasecmp(ending, endings[i]))
			return ending;
	return NULL;
}

static int check_ending(const char *path)
{
	const char *ending = foreign_picture(path);

	return !ending ? 0 : usage_error(
		"-o %s: a picture can only be .svg, not %s: convert the SVG file, for example with rsvg-convert",
		path, ending);
}

int out_open(struct out *out, const struct args *args)
{
	FILE *file = stdout;
	int fd;

	if (args && args->output) {
		if (check_ending(args->output))
			return EXIT_USAGE;
		fd = atomic_file_open(args->output, O_CREAT | O_TRUNC);
		file = fd < 0 ? NULL : fdopen(fd, "w");
		if (!file)
			return failure("-o %s: %s", args->output,
				       atomic_file_strerror(fd < 0 ? fd : -errno));
	}
	out_use(out, args, file);
	return 0;
}

int out_check(const char *path)
{
	struct stat st;
	bool found = !stat(path, &st);
	int fd;

	if (check_ending(path))
		return EXIT_USAGE;
	/* The reader of a pipe would see the end of the file if the pipe was opened and closed. */
	if (found && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	fd = atomic_file_open(path, found ? 0 : O_CREAT | O_EXCL);
	if (fd < 0)
		return failure("-o %s: %s", *path ? path : "''", atomic_file_strerror(fd));
	close(fd);
	if (!found)
		unlink(path);
	return 0;
}

void out_use(struct out *out, const struct args *args, FILE *file)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool colour;

	/*
	 * A write to a closed pipe must return an error. 'gpupart run' does not call this function.
	 */
	signal(SIGPIPE, SIG_IGN);
	setlocale(LC_CTYPE, "");
	if (args && args->json)
		out_json_alloc();
	out->file = file;
	out->path = args ? args->output : NULL;
	out->err = 0;
	out->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	colour = isatty(fileno(out->file)) && !(no_color && *no_color) &&
		 !(term && !strcmp(term, "dumb"));
	out->bold = colour ? "\033[1m" : "";
	out->dim = colour ? "\033[2m" : "";
	out->red = colour ? "\033[1;31m" : "";
	out->plain = colour ? "\033[0m" : "";
}

/*
 * Returns whether stdout is a pipe whose reader has closed it. An example of such a reader is
 * head(1).
 */
static bool is_closed_by_reader(const struct out *out)
{
	struct pollfd at = { .fd = fileno(out->file) };

	return !out->path && poll(&at, 1, 0) == 1 && (at.revents & POLLERR);
}

/* If a flush fails, the next one can succeed, because the C library drops the data. */
void out_flush(struct out *out)
{
	if (fflush(out->file) && !out->err)
		out->err = errno;
}

int out_close(struct out *out)
{
	bool bad;

	out_flush(out);
	bad = ferror(out->file);
	if (out->path && fclose(out->file)) {
		bad = true;
		out->err = out->err ?: errno;
	}
	if (!bad)
		return 0;
	if (is_closed_by_reader(out))
		return EXIT_FAILED;
	return failure("cannot write to %s: %s", out->path ? out->path : "standard output",
		       out->err ? strerror(out->err) : "unknown error");
}

bool out_is_svg(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	return len > 4 && !strcasecmp(path + len - 4, ".svg");
}
