// SPDX-License-Identifier: MIT
/* Finds the path of a user's state directory. Creates and checks this directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "cli/target/state_dir.h"

const char *state_dir_path(uid_t uid, char *path)
{
	snprintf(path, STATE_DIR_PATH_LEN, STATE_DIR_PARENT "/gpupart-%u", uid);
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

/*
 * Checks that @path is a directory of user @uid with mode 0700. Returns 0, or returns -EPERM and
 * writes a reason to @why.
 */
static int judge(const char *path, const struct stat *st, uid_t uid, char *why, size_t len)
{
	if (S_ISDIR(st->st_mode) && st->st_uid == uid && (st->st_mode & 0777) == 0700)
		return 0;
	snprintf(
		why, len,
		"%s is %s of user %u with mode 0%03o: must be a directory of user %u with mode 0700",
		path, S_ISDIR(st->st_mode) ? "a directory" : "a file", st->st_uid,
		st->st_mode & 0777, uid);
	return -EPERM;
}

int state_dir_create(uid_t uid, char *why, size_t len)
{
	char path[STATE_DIR_PATH_LEN];
	struct stat st;
	bool made;
	int fd, err;

	state_dir_path(uid, path);
	if (!lstat(path, &st))
		return judge(path, &st, uid, why, len);
	if (uid != geteuid() && geteuid()) {
		snprintf(why, len, "%s does not exist: only root can create it for another user",
			 path);
		return -EPERM;
	}
	made = !mkdir(path, 0700);
	fd = made ? open_folder(path, &st) : -1;
	/* mkdir() applied the umask, so set the mode. */
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

/* Returns a user id. This id stands for all users outside this user namespace. */
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

#define MOUNT_ADVICE "in a container mount it writable: " \
	"a device of 'gpupart cdi' or --ipc=host does so"

/*
 * Checks the user's directory. The directory must exist. If there is a problem, returns advice and
 * writes a reason to @why. Otherwise returns NULL.
 */
static const char *judge_own(const char *path, const struct stat *st, char *why, size_t len)
{
	uid_t self = geteuid();

	if (!S_ISDIR(st->st_mode)) {
		snprintf(why, len, "%s is not a directory", path);
		return "remove it";
	}
	if (st->st_uid != self && st->st_uid == overflow_uid()) {
		snprintf(why, len, "%s belongs to a user outside this user namespace (shown as %u)",
			 path, st->st_uid);
		return
			"mount the directory of the container's user on the host: 'gpupart cdi --uid OUTSIDE:INSIDE'";
	}
	if (st->st_uid != self) {
		snprintf(why, len, "%s belongs to user %u, and this is user %u", path, st->st_uid,
			 self);
		return
			"ask its owner or root to remove it; for a container use 'gpupart cdi --uid'";
	}
	if (!(st->st_mode & 077))
		return NULL;
	snprintf(why, len, "%s has mode 0%03o: other users can access it", path,
		 st->st_mode & 0777);
	return "change its mode to 0700";
}

const char *state_dir_advice(char *why, size_t len)
{
	char path[STATE_DIR_PATH_LEN];
	const char *folder = state_dir_path(geteuid(), path), *advice;
	struct statvfs fs;
	struct stat st;
	int err;

	if (lstat(path, &st))
		folder = STATE_DIR_PARENT;
	advice = folder == path ? judge_own(path, &st, why, len) : NULL;
	if (advice)
		return advice;
	if (access(folder, W_OK | X_OK)) {
		err = errno;
		snprintf(why, len, "%s: %s", folder, strerror(err));
		if (err == ENOENT)
			return "mount a tmpfs there; " MOUNT_ADVICE;
		return err == EROFS	? MOUNT_ADVICE
		       : folder == path ? "change its mode to 0700"
					: "make it writable for this user";
	}
	/* If the size of the file system is 0, there is no limit. */
	if (!statvfs(folder, &fs) &&
	    ((fs.f_blocks && !fs.f_bavail) || (fs.f_files && !fs.f_favail))) {
		snprintf(why, len, "%s is full", folder);
		return "free space there, or enlarge it (docker, podman: --shm-size)";
	}
	snprintf(why, len, "%s can be %s", path, folder == path ? "written" : "created");
	return NULL;
}
