// SPDX-License-Identifier: MIT
/*
 * Reads configuration files. Each line has the form "KEY = VALUE", and '#' begins a comment. Files
 * that another user could have written are ignored.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/ctx.h"
#include "lib/private.h"

#define BLANKS " \t\r"

/*
 * If a user namespace does not map root, root's processes and files, including /etc, have this
 * uid in the namespace.
 */
#define UNMAPPED_UID 65534

static bool is_unmapped_roots(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_uid == UNMAPPED_UID && !(st.st_mode & 022);
}

static bool is_trusted(const struct stat *st, bool own)
{
	if (st->st_mode & 022)
		return false;
	return !st->st_uid || (own && st->st_uid == geteuid()) ||
	       (st->st_uid == UNMAPPED_UID && is_unmapped_roots("/etc") &&
		is_unmapped_roots("/etc/gpupart"));
}

/*
 * Reads the text of the file and terminates it. Returns the length of the text, or a negative
 * errno. If there is no file, returns 0.
 */
static int read_config(struct gpupart *gp, struct gpupart_config *config)
{
	int fd = open(config->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), err = 0;
	const char *why;
	struct stat st;
	ssize_t len;

	/* A dangling link is an error, not a missing file. */
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && lstat(config->path, &st))
		return 0;
	len = fd < 0 || fstat(fd, &st) ? -1 : 0;
	if (!len && S_ISREG(st.st_mode) && !is_trusted(&st, config->own))
		err = -EPERM, why = "ignored: other users can write it";
	else if (!len)
		len = read(fd, config->text, sizeof(config->text));
	if (len < 0)
		err = errno == EPERM ? -EACCES : -errno, why = strerror(errno);
	else if (!err && !S_ISREG(st.st_mode))
		err = -EISDIR, why = "is not a regular file";
	else if (len == sizeof(config->text))
		err = -EFBIG, why = "has 4096 bytes or more";
	else if (memchr(config->text, 0, len))
		err = -EINVAL, why = "has a NUL byte";
	close(fd);
	if (err)
		return ctx_fail(gp, err, "%s%s %s", config->path, err == -EPERM ? " is" : ":", why);
	config->text[len] = 0;
	return len;
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

/*
 * Returns true if an earlier line of the file has the same key. The function stores the keys of the
 * earlier lines at the start of the text. There they overwrite lines that were already read.
 */
static bool is_repeated(struct gpupart_config *config)
{
	size_t len = strlen(config->key) + 1;
	char *at = config->text;

	for (; at < config->text + config->keys_len; at += strlen(at) + 1)
		if (!strcmp(at, config->key))
			return true;
	config->key = memmove(at, config->key, len);
	config->keys_len += len;
	return false;
}

int gpupart_config_next(struct gpupart *gp, struct gpupart_config *config)
{
	char *line;
	int len;

	if (!config->line) {
		len = read_config(gp, config);
		if (len <= 0)
			return len;
		/* Some editors write a byte order mark at the start of a file. */
		config->rest = config->text + 3 * !strncmp(config->text, "\xef\xbb\xbf", 3);
	}
	while ((line = strsep(&config->rest, "\n"))) {
		config->line++;
		line[strcspn(line, "#")] = 0;
		config->value = line;
		config->key = trim(strsep(&config->value, "="));
		if (config->value && is_repeated(config))
			return ctx_fail(gp, -EINVAL, "%s:%u: '%.40s' is given twice", config->path,
					config->line, config->key);
		if (config->value) {
			config->value = trim(config->value);
			return 1;
		}
		if (*config->key)
			return ctx_fail(gp, -EINVAL,
					"%s:%u: '%.40s' is not valid: must be KEY = VALUE",
					config->path, config->line, config->key);
	}
	return 0;
}

int gpupart_config_strict(struct gpupart *gp)
{
	struct gpupart_config config;
	int err, strict = -1;

	gpupart_config_open(&config, GPUPART_CONFIG, false);
	while ((err = gpupart_config_next(gp, &config)) > 0) {
		bool is_strict = !strcasecmp(config.key, "strict");

		/*
		 * Ignore keys such as set.NAME, because only the program gpupart reads these
		 * keys.
		 */
		if (strchr(config.key, '.'))
			continue;
		/*
		 * Report each misspelt or repeated key, such as "Strict". If such a key were
		 * ignored, the machine would silently lose its setting.
		 */
		if (strict >= 0 || !is_strict)
			return ctx_fail(gp, -EINVAL, "%s:%u: '%.40s' is %s", config.path,
					config.line, config.key,
					is_strict ? "given twice"
						  : "not a key: the only key is 'strict'");
		strict = !strcmp(config.value, "yes");
		if (!strict && strcmp(config.value, "no"))
			return ctx_fail(gp, -EINVAL, "%s:%u: strict = %.40s: must be yes or no",
					config.path, config.line, config.value);
	}
	return err ? err : strict > 0;
}
