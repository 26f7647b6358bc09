// SPDX-License-Identifier: MIT
/* A file that is there whole or as it was. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/util/atomic_file.h"
#include "cli/util/paths.h"

int whole_put(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		left -= n;
	}
	return 0;
}

static int write_through(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	int err;

	if (fd < 0)
		return -errno;
	err = whole_put(fd, text);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* Beside @path, by a name that no reader of *.json in that folder takes up. */
static int make_beside(const char *path, char *beside, size_t len)
{
	const char *slash = strrchr(path, '/');
	int fd;

	if (snprintf(beside, len, "%.*s.gpupart-XXXXXX", slash ? (int)(slash - path + 1) : 0,
		     path) >= (int)len)
		return -ENAMETOOLONG;
	fd = mkostemp(beside, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int whole_write(const char *path, const char *text)
{
	char real[PATH_MAX], beside[PATH_MAX];
	struct stat st, link;
	mode_t mode = 0644;
	bool is_link;
	int fd, err;

	/* Another user's link could lead to any file of this user's. */
	is_link = !lstat(path, &link) && S_ISLNK(link.st_mode);
	if (is_link && link.st_uid && link.st_uid != geteuid())
		return -ELOOP;
	if (!(is_link ? stat(path, &st) : lstat(path, &st))) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (!S_ISREG(st.st_mode))
			return write_through(path, is_link ? 0 : O_NOFOLLOW, text);
		/* Another user's mode could let that user write to what this user trusts. */
		if (st.st_uid == geteuid())
			mode = st.st_mode & 0777;
	}
	/* Where a link leads is replaced, the link stays. */
	if (is_link && !paths_full(path, real, sizeof(real)))
		path = real;
	fd = make_beside(path, beside, sizeof(beside));
	if (fd < 0)
		return fd;
	err = whole_put(fd, text);
	if (!err && (fchmod(fd, mode) || fsync(fd)))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(beside, path))
		err = -errno;
	if (err)
		unlink(beside);
	return err;
}
