// SPDX-License-Identifier: MIT
/*
 * The folder in which a user's processes show themselves: where it is, making it for a
 * container, what is wrong with it. Must not know what they show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "blocks.h"

const char *blocks_path(uid_t uid, char *path)
{
	snprintf(path, BLOCKS_PATH_LEN, BLOCKS_ROOT "/gpupart-%u", uid);
	return path;
}

static int open_folder(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, st))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Whether the folder there is @uid's alone: 0, or -EPERM with a sentence. */
static int judge(const char *path, const struct stat *st, uid_t uid, char *why, size_t len)
{
	if (S_ISDIR(st->st_mode) && st->st_uid == uid && (st->st_mode & 0777) == 0700)
		return 0;
	snprintf(why, len, "%s is %s user %u's with mode 0%03o: wants a folder, user %u and 0700",
		 path, S_ISDIR(st->st_mode) ? "a folder," : "no folder,", st->st_uid,
		 st->st_mode & 0777, uid);
	return -EPERM;
}

int blocks_make(uid_t uid, char *why, size_t len)
{
	char path[BLOCKS_PATH_LEN];
	struct stat st;
	bool made;
	int fd, err;

	blocks_path(uid, path);
	if (!lstat(path, &st))
		return judge(path, &st, uid, why, len);
	if (uid != geteuid() && geteuid()) {
		snprintf(why, len, "%s is not there: only root makes it for another user", path);
		return -EPERM;
	}
	made = !mkdir(path, 0700);
	fd = made ? open_folder(path, &st) : -1;
	/* mkdir() obeyed the umask. */
	if (fd < 0 || fchmod(fd, 0700) || fchown(fd, uid, -1)) {
		err = -errno;
		snprintf(why, len, "%s: %s", path, strerror(-err));
		if (made)
			rmdir(path);
	} else {
		err = 0;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* The user that stands for all who are not of this user namespace. */
static uid_t overflow_uid(void)
{
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned int uid = 65534;

	if (file && fscanf(file, "%u", &uid) != 1)
		uid = 65534;
	if (file)
		fclose(file);
	return uid;
}

static bool is_full(const char *path)
{
	struct statvfs fs;

	/* A limit of nothing is no limit. */
	return !statvfs(path, &fs) && fs.f_blocks && !fs.f_bavail;
}

#define MOUNT_ADVICE "in a container mount it to be written: " \
	"the device that 'gpupart cdi' writes brings it, --ipc=host as well"

static bool can_be_made(const char *path, char *why, size_t len, const char **advice)
{
	struct stat st;

	if (stat(BLOCKS_ROOT, &st)) {
		*advice = "mount a tmpfs there; " MOUNT_ADVICE;
		snprintf(why, len, BLOCKS_ROOT ": %s", strerror(errno));
	} else if (access(BLOCKS_ROOT, W_OK | X_OK)) {
		*advice = errno == EROFS ? MOUNT_ADVICE : "let this user write there";
		snprintf(why, len, BLOCKS_ROOT ": %s", strerror(errno));
	} else if (is_full(BLOCKS_ROOT)) {
		*advice = "make room there, or more of it (docker, podman: --shm-size)";
		snprintf(why, len, BLOCKS_ROOT " is full");
	} else {
		snprintf(why, len, "%s can be made", path);
		return true;
	}
	return false;
}

bool blocks_usable(char *why, size_t len, const char **advice)
{
	uid_t self = geteuid();
	char path[BLOCKS_PATH_LEN];
	struct stat st;

	*advice = "";
	if (lstat(blocks_path(self, path), &st))
		return can_be_made(path, why, len, advice);
	if (!S_ISDIR(st.st_mode)) {
		*advice = "remove it";
		snprintf(why, len, "%s is no folder", path);
	} else if (st.st_uid != self && st.st_uid == overflow_uid()) {
		*advice =
			"give the container the folder of the user that it is outside: 'gpupart cdi --uid OUTSIDE:INSIDE'";
		snprintf(why, len, "%s is of a user outside this user namespace (seen as %u)",
			 path, st.st_uid);
	} else if (st.st_uid != self) {
		*advice =
			"have its owner or root remove it; for a container 'gpupart cdi --uid' names its user";
		snprintf(why, len, "%s is user %u's, and this is user %u", path, st.st_uid, self);
	} else if (st.st_mode & 077) {
		*advice = "make it 0700";
		snprintf(why, len, "%s has mode 0%03o, so others get at it", path,
			 st.st_mode & 0777);
	} else if (access(path, W_OK | X_OK)) {
		*advice = errno == EROFS ? MOUNT_ADVICE : "make it 0700";
		snprintf(why, len, "%s: %s", path, strerror(errno));
	} else if (is_full(path)) {
		*advice = "make room there, or more of it (docker, podman: --shm-size)";
		snprintf(why, len, "%s is on a file system that is full", path);
	} else {
		snprintf(why, len, "%s can be written", path);
		return true;
	}
	return false;
}
