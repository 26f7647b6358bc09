// SPDX-License-Identifier: MIT
/*
 * A node's jobs: what a scheduler, as root, gave users of this node's GPUs. A file each below
 * /run, which is empty after a boot. Must not know what a process does with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/ctx.h"
#include "lib/core/rows.h"
#include "lib/core/shared_header.h"
#include "lib/core/state_dir.h"
#include "lib/state/grant.h"
#include "lib/topo/topology.h"

#define NODE_LAYOUT	2	/* counted up with every change behind the header */
#define NODE_PREFIX	"0-"
#define FILE_LEN	(GPUPART_JOB_STRLEN + 24)

struct node_file {
	struct shared_header header;	/* what other versions see of the grant */
	struct shared_gpu gpu;
	struct gpupart_grant grant;
};

bool node_is_id(const char *id)
{
	return id && !strncmp(id, NODE_PREFIX, strlen(NODE_PREFIX)) &&
	       strlen(id) > strlen(NODE_PREFIX) && strlen(id) < GPUPART_JOB_STRLEN &&
	       strspn(id, "0123456789abcdef-") == strlen(id);
}

int node_open_dir(bool make)
{
	struct stat st;
	int fd;

	if (make && ((mkdir("/run/gpupart", 0755) && errno != EEXIST) ||
		     (mkdir(GPUPART_GRANT_ROOT, 0755) && errno != EEXIST)))
		return -errno;
	fd = open(GPUPART_GRANT_ROOT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EPERM : -errno;
	/* Not one that somebody else could have filled. */
	if (fstat(fd, &st) || st.st_uid || (st.st_mode & 022)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static bool ends(const char *text, size_t room)
{
	return strnlen(text, room) < room;
}

static bool is_whole(const struct gpupart_grant *grant)
{
	return ends(grant->id, sizeof(grant->id)) && ends(grant->name, sizeof(grant->name)) &&
	       ends(grant->pci, sizeof(grant->pci)) &&
	       ends(grant->source, sizeof(grant->source)) &&
	       ends(grant->key, sizeof(grant->key)) &&
	       ends(grant->asked, sizeof(grant->asked)) && ends(grant->why, sizeof(grant->why));
}

/* As check_gpu() names a map. */
static bool key_good(const char *key)
{
	return strspn(key, "0123456789abcdef") == strlen(key);
}

/* Of whole texts: none that was given has a set of no GPU, or one that its GPU has not. */
static bool set_good(const struct gpupart_grant *grant)
{
	char address[20];

	if (*grant->pci && !topo_address_read(grant->pci, address))
		return false;
	return grant->nr_tpcs <= GPUPART_MAX_TPCS &&
	       gpupart_tpcset_next(&grant->set, grant->nr_tpcs) < 0 &&
	       (*grant->pci || gpupart_tpcset_empty(&grant->set));
}

static void fill_other(const struct shared_seen *seen, struct gpupart_grant *grant)
{
	const struct shared_gpu *gpu = &seen->gpus[0];

	memset(grant, 0, sizeof(*grant));
	strcpy(grant->id, seen->header.id);
	strcpy(grant->name, seen->header.name);
	strcpy(grant->pci, gpu->pci);
	strcpy(grant->source, gpu->simulated ? "" : "rm");
	grant->uid = seen->header.uid;
	grant->nr_tpcs = gpu->nr_tpcs;
	grant->set = gpu->tpcs;
	grant->memory = gpu->memory;
	grant->other_version = true;
	if (gpupart_tpcset_empty(&grant->set))
		strcpy(grant->why, "another version of gpupart gave it nothing");
}

/* A byte that is neither 0 nor 1 is no bool. */
static void read_bools(struct gpupart_grant *grant)
{
	unsigned char strict;

	memcpy(&strict, &grant->strict, sizeof(strict));
	grant->strict = strict != 0;
	grant->other_version = false;
}

static bool read_file(int dir, const char *id, struct gpupart_grant *grant)
{
	int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	enum shared_version version = SHARED_NONE;
	struct shared_seen seen;
	struct node_file file;
	struct stat st;
	bool good;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid)
		version = shared_read(fd, SHARED_GRANT, NODE_LAYOUT, &seen);
	if (version == SHARED_OTHER && seen.nr_gpus)
		fill_other(&seen, &file.grant);
	else if (version != SHARED_SAME || pread(fd, &file, sizeof(file), 0) != sizeof(file))
		version = SHARED_NONE;
	else
		read_bools(&file.grant);
	good = version != SHARED_NONE && is_whole(&file.grant) && !strcmp(file.grant.id, id) &&
	       control_name_good(file.grant.name) && key_good(file.grant.key) &&
	       set_good(&file.grant);
	close(fd);
	if (good)
		*grant = file.grant;
	return good;
}

bool node_get(const char *id, struct gpupart_grant *grant)
{
	int dir = node_is_id(id) ? node_open_dir(false) : -ENOENT;
	bool found;

	if (dir < 0)
		return false;
	found = read_file(dir, id, grant) && !gpupart_tpcset_empty(&grant->set);
	close(dir);
	return found;
}

static int by_id(const void *a, const void *b)
{
	const struct gpupart_grant *x = a, *y = b;
	size_t nx = strlen(x->id), ny = strlen(y->id);

	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x->id, y->id);
}

/* Calls @see with each; a negative errno where the folder is there and cannot be read. */
static int walk(void (*see)(const struct gpupart_grant *grant, void *arg), void *arg)
{
	int err, fd = node_open_dir(false);
	struct gpupart_grant grant;
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	dir = fdopendir(fd);
	if (!dir) {
		err = -errno;
		close(fd);
		return err;
	}
	while ((entry = readdir(dir)))
		if (node_is_id(entry->d_name) && read_file(fd, entry->d_name, &grant))
			see(&grant, arg);
	closedir(dir);
	return 0;
}

struct listing {
	struct gpupart_grant *list;
	unsigned int max, nr;
};

static void see_listed(const struct gpupart_grant *grant, void *arg)
{
	struct listing *listing = arg;

	if (listing->nr < listing->max)
		listing->list[listing->nr] = *grant;
	listing->nr++;
}

static int grant_list_fill(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	(void)arg;
	return gpupart_grant_list(gp, rows, max, sizeof(struct gpupart_grant));
}

int gpupart_grant_list(struct gpupart *gp, struct gpupart_grant *list, unsigned int max,
		       size_t size)
{
	struct listing listing = { .list = list, .max = max };
	int err = walk(see_listed, &listing);

	if (size != sizeof(*list))
		return rows_resized(gp, list, max, size, sizeof(*list), grant_list_fill, NULL);
	if (err)
		return ctx_fail(gp, err, GPUPART_GRANT_ROOT ": %s", err == -EPERM ?
				"is no folder of root's alone: what it says of jobs does not count"
				: strerror(-err));
	if (list && listing.nr)
		qsort(list, listing.nr < max ? listing.nr : max, sizeof(*list), by_id);
	return listing.nr;
}

struct sum {
	unsigned int uid;
	const char *pci, *tenant;	/* @pci NULL: any */
	bool found;
	struct gpupart_tpcset set;
	uint64_t memory, named;
};

static void see_given(const struct gpupart_grant *grant, void *arg)
{
	struct sum *sum = arg;

	if (grant->uid != sum->uid || (sum->pci && strcmp(grant->pci, sum->pci)) ||
	    gpupart_tpcset_empty(&grant->set))
		return;
	sum->found = true;
	sum->set = gpupart_tpcset_or(&sum->set, &grant->set);
	sum->memory += grant->memory;
	if (sum->tenant && !strcmp(grant->name, sum->tenant))
		sum->named = grant->memory;
}

bool node_gives(unsigned int uid)
{
	struct sum sum = { .uid = uid };

	if (uid)
		walk(see_given, &sum);
	return sum.found;
}

bool node_tpcs(unsigned int uid, const char *pci, struct gpupart_tpcset *set)
{
	struct sum sum = { .uid = uid, .pci = pci };

	if (!uid)
		return false;
	walk(see_given, &sum);
	*set = sum.set;
	return sum.found;
}

uint64_t node_memory(unsigned int uid, const char *pci, const char *tenant)
{
	struct sum sum = { .uid = uid, .pci = pci, .tenant = tenant };

	if (!uid)
		return 0;
	walk(see_given, &sum);
	return sum.named ? sum.named : sum.memory;
}

static int write_file(const struct gpupart_grant *grant)
{
	struct node_file file;
	char new_file[FILE_LEN];
	int fd, err = 0, dir = node_open_dir(true);
	ssize_t n;

	if (dir < 0)
		return dir;
	/* One that was given nothing holds nothing: its job may be given something now. */
	if (read_file(dir, grant->id, &file.grant) && file.grant.other_version &&
	    !gpupart_tpcset_empty(&file.grant.set)) {
		err = -EPROTO;
		goto close_dir;
	}
	memset(&file, 0, sizeof(file));
	shared_init(&file.header, NODE_LAYOUT, sizeof(file));
	strcpy(file.header.id, grant->id);
	strcpy(file.header.name, grant->name);
	strcpy(file.gpu.pci, grant->pci);
	file.header.uid = grant->uid;
	file.gpu.nr_tpcs = grant->nr_tpcs;
	file.gpu.simulated = strcmp(grant->source, "rm") && strcmp(grant->source, "kernel");
	file.gpu.tpcs = grant->set;
	file.gpu.memory = grant->memory;
	atomic_init(&file.header.nr_gpus, 1);
	atomic_init(&file.header.magic, SHARED_MAGIC(SHARED_GRANT));
	file.grant = *grant;
	snprintf(new_file, sizeof(new_file), ".%s.%d", grant->id, getpid());
	fd = openat(dir, new_file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = -errno;
		goto close_dir;
	}
	n = write(fd, &file, sizeof(file));
	if (n != sizeof(file))
		err = n < 0 ? -errno : -ENOSPC;
	/* Whatever the mask of who calls: everybody is to read it. */
	if (!err && fchmod(fd, 0644))
		err = -errno;
	close(fd);
	/* Whole or not at all, whenever we die. */
	if (!err && renameat(dir, new_file, dir, grant->id))
		err = -errno;
	if (err)
		unlinkat(dir, new_file, 0);
close_dir:
	close(dir);
	return err;
}

int gpupart_grant_put(struct gpupart *gp, const struct gpupart_grant *grant)
{
	char list[GPUPART_TPCSET_STRLEN];
	int err;

	if (!is_whole(grant) || !node_is_id(grant->id) || !control_name_good(grant->name) ||
	    !key_good(grant->key))
		return ctx_fail(gp, -EINVAL, "'%.63s' (%.63s) cannot be a job of this node",
				grant->name, grant->id);
	gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
	if (!set_good(grant))
		return ctx_fail(gp, -EINVAL,
				"job %s: TPCs %s of the %u of GPU \"%s\" cannot be given",
				grant->name, *list ? list : "-", grant->nr_tpcs, grant->pci);
	err = write_file(grant);
	if (err == -EPROTO)
		return ctx_fail(gp, err,
				"job %s was noted by another version of gpupart: only that version changes it",
				grant->name);
	return err ? ctx_fail(gp, err, "job %s cannot be noted below " GPUPART_GRANT_ROOT ": %s",
			      grant->name, strerror(-err))
		   : 0;
}

int gpupart_grant_drop(struct gpupart *gp, const char *id)
{
	int dir = node_is_id(id) ? node_open_dir(false) : -EINVAL, err = 0;

	if (dir == -ENOENT)
		return 0;
	if (dir >= 0 && unlinkat(dir, id, 0) && errno != ENOENT)
		err = -errno;
	if (dir >= 0)
		close(dir);
	else
		err = dir;
	return err ? ctx_fail(gp, err, "job %.63s cannot be taken from below " GPUPART_GRANT_ROOT
			      ": %s", id ? id : "''", strerror(-err))
		   : 0;
}
