// SPDX-License-Identifier: MIT
/*
 * Stores the results of the self-check in the user's cache directory. Each map has its own file.
 * See check_cache.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/confine/check_cache.h"
#include "lib/core/state_dir.h"

/*
 * Returns the path of the directory, with a slash at the end. If @make is set, the function
 * creates the directory. The directory is in @in. If @in is NULL, the directory is in the user's
 * own cache. If the user has no home directory, the function fails. Root must not write into
 * another user's directory, because that user could not replace root's files. So in this case the
 * function also fails.
 */
static int cache_dir(struct gpupart *gp, char *path, size_t len, const char *in, bool make)
{
	const char *base = in ? in : getenv("XDG_CACHE_HOME"), *below = "";
	bool root = !geteuid();
	struct stat st;
	char *slash;

	if (!base || base[0] != '/') {
		base = getenv("HOME");
		below = "/.cache";
		/* If the home directory does not exist ("/nonexistent"), do not create it. */
		if (!base || base[0] != '/' || stat(base, &st))
			return ctx_fail(gp, -ENOENT,
					"XDG_CACHE_HOME is not set, and HOME=%s is not a directory",
					base ? base : "");
	}
	if ((size_t)snprintf(path, len, "%s%s/gpupart/checked/", base, below) >= len)
		return ctx_fail(gp, -ENAMETOOLONG, "%s: %s", base, strerror(ENAMETOOLONG));
	st.st_uid = 0;
	for (slash = strchr(path + 1, '/'); make && slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		/* If the directory does not exist, @st describes the parent directory. */
		if (stat(path, &st) && !(root && st.st_uid) && mkdir(path, 0700) &&
		    errno != EEXIST)
			return ctx_fail(gp, -errno, "%s: %s", path, strerror(errno));
		*slash = '/';
	}
	if (root && st.st_uid)
		return ctx_fail(gp, -EPERM,
				"%s belongs to user %u: root does not write into this directory",
				path, st.st_uid);
	return 0;
}

/* @st describes a file. Returns true if only this user and root can have written this file. */
static bool is_trusted(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (!st->st_uid || st->st_uid == geteuid()) &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH));
}

ssize_t cache_read(const char *in, const char *name, void *data, size_t size)
{
	char path[4096 + 64];
	STATE_CLOSED int fd = -1;
	struct stat st;

	if (cache_dir(NULL, path, 4096, in, false))
		return -1;
	strcat(path, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	return fstat(fd, &st) || !is_trusted(&st) ? -1 : read(fd, data, size);
}

bool cache_has(const char *key)
{
	char text[32];

	return cache_read(NULL, key, text, sizeof(text)) == 17 && !memcmp(text, key, 16) &&
	       text[16] == '\n';
}

int cache_write(struct gpupart *gp, const char *name, const void *data, size_t len)
{
	char path[4096 + 64];
	int err = cache_dir(gp, path, 4096, NULL, true);
	STATE_CLOSED int dir = -1;

	if (err)
		return err;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = dir < 0 ? -errno : state_dir_write_file(dir, name, data, len, 0600);
	strcat(path, name);
	return err ? ctx_fail(gp, err, "%s: %s", path, strerror(-err)) : 0;
}
