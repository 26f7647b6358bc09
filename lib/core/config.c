// SPDX-License-Identifier: MIT
/*
 * A node's settings: /etc/gpupart/config, lines of "key = value", '#' begins a comment. Root's
 * alone to write: a file that another user could have written is ignored.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/ctx.h"

#define CONFIG_PATH "/etc/gpupart/config"
#define MAX_BYTES 4096	/* the stack of a thread that begins to use CUDA may be small */
#define BLANKS " \t\r"

/* As which root and his files, /etc too, are seen where a user namespace does not map him. */
#define UNMAPPED_UID 65534

static bool is_unmapped_roots(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_uid == UNMAPPED_UID && !(st.st_mode & 022);
}

static bool is_roots_alone(const struct stat *st)
{
	if (st->st_mode & 022)
		return false;
	return !st->st_uid || (st->st_uid == UNMAPPED_UID && is_unmapped_roots("/etc") &&
			       is_unmapped_roots("/etc/gpupart"));
}

/*
 * The text of the file, with its end: its length, 0 where there is none, or a negative errno.
 * -EPERM: the file is ignored.
 */
static int read_config(struct gpupart *gp, char *text)
{
	int fd = open(CONFIG_PATH, O_RDONLY | O_NONBLOCK | O_CLOEXEC), err = 0;
	struct stat st;
	ssize_t len;

	/* A link that leads nowhere is no absence of a file. */
	if (fd < 0)
		return (errno == ENOENT || errno == ENOTDIR) && lstat(CONFIG_PATH, &st) ? 0 :
			ctx_fail(gp, errno == EPERM ? -EACCES : -errno, CONFIG_PATH ": %s",
				 strerror(errno));
	len = fstat(fd, &st) ? -1 : 0;
	if (!len && S_ISREG(st.st_mode) && !is_roots_alone(&st))
		err = ctx_fail(gp, -EPERM, CONFIG_PATH
			       " is ignored: it is not a file that root alone can write");
	else if (!len)
		len = read(fd, text, MAX_BYTES);
	if (len < 0)
		err = ctx_fail(gp, errno == EPERM ? -EACCES : -errno, CONFIG_PATH ": %s",
			       strerror(errno));
	else if (!err && !S_ISREG(st.st_mode))
		err = ctx_fail(gp, -EISDIR, CONFIG_PATH ": is no regular file");
	else if (!err && len == MAX_BYTES)
		err = ctx_fail(gp, -EFBIG, CONFIG_PATH ": has %d bytes or more", MAX_BYTES);
	else if (!err && memchr(text, 0, len))
		err = ctx_fail(gp, -EINVAL, CONFIG_PATH ": has a NUL byte");
	close(fd);
	text[err ? 0 : len] = 0;
	return err ? err : (int)len;
}

static char *trim(char *text)
{
	char *end;

	text += strspn(text, BLANKS);
	for (end = text + strlen(text); end > text && strchr(BLANKS, end[-1]); end--)
		;
	*end = 0;
	return text;
}

int gpupart_config_strict(struct gpupart *gp)
{
	char text[MAX_BYTES], *rest = text, *line, *value;
	int len = read_config(gp, text), strict = -1;
	unsigned int nr = 0;

	if (len <= 0)
		return len;
	/* Some editors begin a file with this mark. */
	if (!strncmp(rest, "\xef\xbb\xbf", 3))
		rest += 3;
	while ((line = strsep(&rest, "\n"))) {
		nr++;
		line[strcspn(line, "#")] = 0;
		value = line;
		line = trim(strsep(&value, "="));
		if (!value && !*line)
			continue;
		if (!value)
			return ctx_fail(gp, -EINVAL, CONFIG_PATH
					":%u: '%.40s' is not understood: wants KEY = VALUE", nr,
					line);
		/* A misspelt key must not leave a node without its setting, nor a second one. */
		if (strict >= 0 || strcasecmp(line, "strict"))
			return ctx_fail(gp, -EINVAL, CONFIG_PATH ":%u: '%.40s' is %s", nr, line,
					strcasecmp(line, "strict") ? "no key: wants strict" :
								     "given twice");
		value = trim(value);
		if (strcmp(value, "yes") && strcmp(value, "no"))
			return ctx_fail(gp, -EINVAL, CONFIG_PATH
					":%u: strict = %.40s: wants yes or no", nr, value);
		strict = !strcmp(value, "yes");
	}
	return strict > 0;
}
