// SPDX-License-Identifier: MIT
/*
 * Tests the owner of the folder with a node's grants, and invalid ids. tests/fuzz/fuzz_grant.c
 * tests the contents of the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/private.h"
#include "lib/state/grant.h"
#include "tests/tap.h"

static char root[] = "/dev/shm/test-node.XXXXXX";
static char folder[64];
static unsigned int folder_uid;
static int open_errno;
static struct gpupart *gp;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);

int __wrap_open(const char *path, int flags, ...)
{
	if (strcmp(path, GPUPART_GRANT_ROOT))
		return __real_open(path, flags, 0600);
	if (!open_errno)
		return __real_open(folder, flags);
	errno = open_errno;
	return -1;
}

int __wrap_fstat(int fd, struct stat *st)
{
	int err = __real_fstat(fd, st);

	st->st_uid = S_ISDIR(st->st_mode) ? folder_uid : 0;
	return err;
}

/*
 * An ordinary user cannot create the node's real folder, so the test does not create this folder.
 */
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_mkdir(const char *path, mode_t mode)
{
	return strncmp(path, "/run/", 5) ? __real_mkdir(path, mode) : 0;
}

static bool says(const char *words)
{
	return strstr(gpupart_error(gp), words);
}

#define GRANT sizeof(struct gpupart_grant)

static int grants(struct gpupart_grant *list, unsigned int max)
{
	return gpupart_grant_list(gp, list, max, GRANT);
}

static bool refused(void)
{
	struct gpupart_grant list[2];

	return grants(list, 2) == -EPERM && says(GPUPART_GRANT_ROOT ": ") &&
	       says("users other than root can write to this") &&
	       gpupart_grant_list(NULL, NULL, 0, GRANT) == -EPERM;
}

static bool node_gives(unsigned int uid)
{
	struct grant_limit limit;

	return grant_limit(uid, NULL, NULL, &limit);
}

static int note(const char *id)
{
	struct gpupart_grant grant = {
		.uid = 4711, .pci = "0000:01:00.0", .source = "rm", .nr_tpcs = 66,
		.set = gpupart_tpcset_first(4),
	};

	strcpy(grant.id, id);
	strcpy(grant.name, id + 2);
	return gpupart_grant_put(gp, &grant);
}

static void test_folder(void)
{
	struct gpupart_grant list[2];
	struct gpupart_job job;

	tap_ok(grants(NULL, 0) == 0, "no folder holds no jobs");
	tap_ok(!mkdir(folder, 0755) && grants(list, 2) == 0, "an empty one too");
	tap_ok(!note("0-a") && !note("0-5") && grants(list, 2) == 2 &&
	       !strcmp(list[0].id, "0-5") && grants(list, 1) == 2,
	       "two are listed, by id");
	tap_ok(node_gives(4711) && !node_gives(4712), "one user has a grant, another one has none");
	folder_uid = 4711;
	tap_ok(refused(), "a folder of another user");
	tap_ok(!node_gives(4711) && gpupart_job_list(gp, &job, 1,
						     sizeof(struct gpupart_job)) >= 0,
	       "it gives no grant");
	folder_uid = 0;
	tap_ok(!chmod(folder, 0775) && refused(), "one that a group may write");
	tap_ok(!chmod(folder, 0757) && refused(), "one that everybody may write");
	chmod(folder, 0755);
	open_errno = EMFILE;
	tap_ok(grants(list, 2) == -EMFILE && says(strerror(EMFILE)),
	       "one that cannot be opened is not an empty one");
	open_errno = 0;
}

static void test_no_folder(void)
{
	char other[80];
	int fd;

	snprintf(other, sizeof(other), "%s.other", folder);
	tap_ok(!rename(folder, other) && !symlink(other, folder) && refused(), "a symbolic link");
	unlink(folder);
	fd = open(folder, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	tap_ok(fd >= 0 && refused(), "a file");
	close(fd);
	unlink(folder);
	tap_ok(!rename(other, folder) && grants(NULL, 0) == 2, "and as it was");
}

static void test_ids(void)
{
	struct gpupart_grant grant;

	tap_ok(!grant_is_id(NULL) && !grant_get(NULL, &grant), "no id is none");
	tap_ok(gpupart_grant_drop(gp, NULL) == -EINVAL && says("grant ''"), "none is dropped");
	tap_ok(gpupart_grant_drop(gp, "5") == -EINVAL && says("grant 5 "), "nor a user's");
	tap_ok(!gpupart_grant_drop(gp, "0-77"), "one that is not there is no error");
	tap_ok(!gpupart_grant_drop(gp, "0-5") && !gpupart_grant_drop(gp, "0-a") &&
	       grants(NULL, 0) == 0, "the others are dropped");
}

int main(void)
{
	if (gpupart_open(&gp) || !mkdtemp(root))
		return 1;
	snprintf(folder, sizeof(folder), "%s/jobs", root);
	test_folder();
	test_no_folder();
	test_ids();
	rmdir(folder);
	rmdir(root);
	gpupart_close(gp);
	return tap_done();
}
