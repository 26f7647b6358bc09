// SPDX-License-Identifier: MIT
/* Writes files atomically, and never through a symbolic link of another user. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/util/alloc.h"
#include "cli/util/atomic_file.h"
#include "cli/util/paths.h"

int atomic_file_put(int fd, const char *text)
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

int atomic_file_check_link(const char *path)
{
	struct stat link, root;

	if (lstat(path, &link) || !S_ISLNK(link.st_mode))
		return 0;
	/* In a user namespace, root may have a different user id. */
	return !link.st_uid || link.st_uid == geteuid() ||
	       (!stat("/", &root) && link.st_uid == root.st_uid) ? 1 : -ELOOP;
}

int atomic_file_open(const char *path, int flags)
{
	int link = atomic_file_check_link(path), fd;

	if (link < 0)
		return link;
	/*
	 * If a pipe has no reader, fail instead of waiting. But later writes may wait for a slow
	 * reader.
	 */
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | flags | (link ? 0 : O_NOFOLLOW), 0666);
	return fd < 0 || fcntl(fd, F_SETFL, 0) ? -errno : fd;
}

const char *atomic_file_strerror(int err)
{
	return err == -ELOOP ? "is a symbolic link of another user, or a loop" :
	       err == -ENXIO ? "is a pipe without a reader, or a dangling link" :
			       strerror(-err);
}

static int write_through(const char *path, const char *text)
{
	int fd = atomic_file_open(path, 0), err;

	if (fd < 0)
		return fd;
	err = atomic_file_put(fd, text);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/*
 * Creates a temporary file in the directory of @path. The name of the temporary file does not match
 * *.json.
 */
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

int atomic_file_write(const char *path, const char *text)
{
	return atomic_file_write_with(path, text, NULL, NULL);
}

int atomic_file_write_with(const char *path, const char *text, int (*then)(void *arg), void *arg)
{
	char real[PATH_MAX], beside[PATH_MAX];
	int is_link = atomic_file_check_link(path), fd, err;
	mode_t mode = 0644;
	struct stat st;

	if (is_link < 0)
		return is_link;
	if (!(is_link ? stat(path, &st) : lstat(path, &st))) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (!S_ISREG(st.st_mode))
			return write_through(path, text) ?: then ? then(arg) : 0;
		/* A file of another user may be writable for all. So do not copy its mode. */
		if (st.st_uid == geteuid())
			mode = st.st_mode & 0777;
	}
	/* If @path is a link, keep the link and replace its target. */
	if (is_link && !paths_full(path, real, sizeof(real)))
		path = real;
	fd = make_beside(path, beside, sizeof(beside));
	if (fd < 0)
		return fd;
	err = atomic_file_put(fd, text);
	if (!err && (fchmod(fd, mode) || fsync(fd)))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && then)
		err = then(arg);
	if (!err && rename(beside, path))
		err = -errno;
	if (err)
		unlink(beside);
	return err;
}

bool atomic_file_has(const char *path, const char *text)
{
	size_t len = strlen(text), n = 0;
	char *found = alloc_zeroed(len + 1, 1);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool same = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		    !(st.st_mode & 07022) && (size_t)st.st_size == len;

	while (same && n < len) {
		ssize_t more = read(fd, found + n, len - n);

		same = more > 0;
		n += same ? more : 0;
	}
	same = same && !memcmp(found, text, len);
	if (fd >= 0)
		close(fd);
	free(found);
	return same;
}
