// SPDX-License-Identifier: MIT
/*
 * Reads a node's jobs: what a scheduler, as root, gave users of this node's GPUs. A file each below
 * /run, which is empty after a boot.
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

#define NODE_PREFIX	"0-"
/* Of users that a user namespace does not map: the kernel's DEFAULT_OVERFLOWUID. */
#define UNMAPPED_UID	65534
/* Of a grant that may be the caller's: its link's owner cannot be seen. */
#define HIDDEN_UID	((unsigned int)-2)

bool node_is_id(const char *id)
{
	return id && !strncmp(id, NODE_PREFIX, strlen(NODE_PREFIX)) &&
	       strlen(id) > strlen(NODE_PREFIX) && strlen(id) < GPUPART_JOB_STRLEN &&
	       strspn(id, "0123456789abcdef-") == strlen(id);
}

/*
 * The machine's root as this user namespace sees him: 0, another number, or UNMAPPED_UID. User 0 of
 * a namespace can mount a file system of his own on /proc, so the grants' folder must agree.
 */
static unsigned int machine_root(void)
{
	struct stat st;

	if (!stat(GPUPART_GRANT_ROOT, &st) && st.st_uid == UNMAPPED_UID)
		return UNMAPPED_UID;
	return stat("/proc", &st) ? 0 : st.st_uid;
}

static bool is_roots(const struct stat *st)
{
	return !st->st_uid || st->st_uid == machine_root();
}

/*
 * Root of the machine gives and drops grants. One who cannot write to their folder is root of a
 * container, which has it read only with the grants that hold there.
 */
static bool exempts(unsigned int uid, unsigned int root)
{
	return uid == root && uid != UNMAPPED_UID &&
	       (!access(GPUPART_GRANT_ROOT, W_OK) || errno == ENOENT);
}

bool gpupart_grant_exempts(unsigned int uid)
{
	return exempts(uid, machine_root());
}

/*
 * A namespace that maps no user at all: its processes are seen as UNMAPPED_UID, too. One without a
 * map that can be read counts as such.
 */
static bool maps_nobody(void)
{
	CONTROL_CLOSED int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	char first;

	return fd < 0 || read(fd, &first, 1) <= 0;
}

/*
 * Beside each grant lies a link that root gave to its user, who cannot change it: its owner is the
 * user as this user namespace sees him. In a namespace that maps him and not the machine's root, as
 * rootless containers are, the grant holds for every user. In one that maps nobody, the kernel lets
 * only the owner set the link's times.
 */
static void translate_user(int dir, unsigned int root, struct gpupart_grant *grant)
{
	struct timespec times[] = { { 0 }, { .tv_nsec = UTIME_OMIT } };
	char name[NODE_LINK_LEN];
	struct stat st;

	/* Of the container that this is in: its users are all held. */
	if (!strcmp(grant->id, GPUPART_GRANT_CONTAINER)) {
		grant->uid = geteuid();
		return;
	}
	node_link_name(grant->id, name);
	if (!root || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	grant->uid = st.st_uid;
	if (root != UNMAPPED_UID)
		return;
	times[0] = st.st_atim;
	if (st.st_uid != UNMAPPED_UID || !utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW))
		grant->uid = geteuid();
	else
		grant->uid = maps_nobody() ? HIDDEN_UID : -1u;
}

int node_open_folder(const char *folder)
{
	struct stat st;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EPERM : -errno;
	/* Not one that somebody else could have filled. */
	if (fstat(fd, &st) || !is_roots(&st) || (st.st_mode & 022)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

int node_open_dir(bool make)
{
	if (make && ((mkdir("/run/gpupart", 0755) && errno != EEXIST) ||
		     (mkdir(GPUPART_GRANT_ROOT, 0755) && errno != EEXIST)))
		return -errno;
	return node_open_folder(GPUPART_GRANT_ROOT);
}

/* Whether all texts end, it has a job's id and name, and check_gpu() would name a map like that. */
bool node_good(const struct gpupart_grant *grant)
{
#define ENDS(text) (strnlen(grant->text, sizeof(grant->text)) < sizeof(grant->text))
	return ENDS(id) && ENDS(name) && ENDS(pci) && ENDS(source) && ENDS(key) && ENDS(asked) &&
	       ENDS(why) && node_is_id(grant->id) && control_name_good(grant->name) &&
	       strspn(grant->key, "0123456789abcdef") == strlen(grant->key);
#undef ENDS
}

/* Of whole texts: none that was given has a set of no GPU, or one that its GPU has not. */
bool node_set_good(const struct gpupart_grant *grant)
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
	strcpy(grant->key, gpu->key);
	strcpy(grant->source, gpu->simulated ? "" : "rm");
	grant->uid = seen->header.uid;
	grant->nr_tpcs = gpu->nr_tpcs;
	grant->set = gpu->tpcs;
	grant->memory = gpu->memory;
	grant->strict = gpu->strict;
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

/* @root: as machine_root() says. */
static bool read_file(int dir, unsigned int root, const char *id, struct gpupart_grant *grant)
{
	enum shared_version version;
	struct shared_seen seen;
	struct node_file file;
	CONTROL_CLOSED int fd = shared_open(dir, id, root, SHARED_GRANT, NODE_LAYOUT, &seen,
					    &version);

	if (fd < 0)
		return false;
	if (version == SHARED_OTHER && seen.nr_gpus)
		fill_other(&seen, &file.grant);
	else if (version != SHARED_SAME || pread(fd, &file, sizeof(file), 0) != sizeof(file))
		return false;
	else
		read_bools(&file.grant);
	if (!node_good(&file.grant) || strcmp(file.grant.id, id) || !node_set_good(&file.grant))
		return false;
	*grant = file.grant;
	translate_user(dir, root, grant);
	return true;
}

bool node_read(int dir, const char *id, struct gpupart_grant *grant)
{
	return read_file(dir, machine_root(), id, grant);
}

bool node_get(const char *id, struct gpupart_grant *grant)
{
	CONTROL_CLOSED int dir = node_is_id(id) ? node_open_dir(false) : -ENOENT;

	return dir >= 0 && read_file(dir, machine_root(), id, grant) &&
	       !gpupart_tpcset_empty(&grant->set);
}

static int by_id(const void *a, const void *b)
{
	const struct gpupart_grant *x = a, *y = b;
	size_t nx = strlen(x->id), ny = strlen(y->id);

	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x->id, y->id);
}

/* The grants that may be the caller's, while none surely is. */
struct hidden {
	bool own, any;
	struct gpupart_grant common;	/* what all of them allow */
};

static void see_hidden(const struct gpupart_grant *grant, struct hidden *hidden)
{
	struct gpupart_grant *common = &hidden->common;

	hidden->own |= grant->uid == geteuid();
	if (grant->uid != HIDDEN_UID || gpupart_tpcset_empty(&grant->set))
		return;
	if (!hidden->any)
		*common = *grant;
	hidden->any = true;
	common->uid = geteuid();
	common->strict |= grant->strict;
	if (grant->memory && (!common->memory || grant->memory < common->memory))
		common->memory = grant->memory;
	if (strcmp(common->pci, grant->pci))
		memset(&common->set, 0, sizeof(common->set));
	common->set = gpupart_tpcset_and(&common->set, &grant->set);
}

/*
 * Calls @see with each, or with the common part of those that may be the caller's. A negative errno
 * where the folder is there and cannot be read; -EUSERS where there is no common part.
 */
static int walk(unsigned int root, void (*see)(const struct gpupart_grant *grant, void *arg),
		void *arg)
{
	int fd = node_open_dir(false);
	DIR *dir = control_read_dir(fd);
	struct hidden hidden = { 0 };
	struct gpupart_grant grant;
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return fd == -ENOENT ? 0 : fd < 0 ? fd : -errno;
	while (root == UNMAPPED_UID && (entry = readdir(dir)))
		if (node_is_id(entry->d_name) && read_file(fd, root, entry->d_name, &grant))
			see_hidden(&grant, &hidden);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		if (node_is_id(entry->d_name) && read_file(fd, root, entry->d_name, &grant) &&
		    (grant.uid != HIDDEN_UID || hidden.own))
			see(&grant, arg);
	closedir(dir);
	if (!hidden.own && hidden.any) {
		if (gpupart_tpcset_empty(&hidden.common.set))
			err = -EUSERS;
		else
			see(&hidden.common, arg);
	}
	return err;
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

static int list_grants(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	struct listing listing = { .list = rows, .max = max };
	int err = walk(machine_root(), see_listed, &listing);

	(void)arg;
	if (err)
		return ctx_fail(gp, err, GPUPART_GRANT_ROOT ": %s", err == -EPERM ?
				"is no folder of root's alone: what it says of jobs does not count"
				: err == -EUSERS ? GRANT_HIDDEN : strerror(-err));
	if (rows && listing.nr)
		qsort(rows, listing.nr < max ? listing.nr : max, sizeof(*listing.list), by_id);
	return listing.nr;
}

int gpupart_grant_list(struct gpupart *gp, struct gpupart_grant *list, unsigned int max,
		       size_t size)
{
	return rows_resized(gp, list, max, size, sizeof(*list), list_grants, NULL);
}

struct sum {
	unsigned int uid;
	const char *pci, *tenant;	/* @pci NULL: any */
	bool found, named;
	struct node_limit limit;
};

static void see_given(const struct gpupart_grant *grant, void *arg)
{
	struct sum *sum = arg;

	if (grant->uid != sum->uid || (sum->pci && strcmp(grant->pci, sum->pci)) ||
	    gpupart_tpcset_empty(&grant->set))
		return;
	sum->found = true;
	sum->limit.tpcs = gpupart_tpcset_or(&sum->limit.tpcs, &grant->set);
	if (sum->tenant && !strcmp(grant->name, sum->tenant) && grant->memory) {
		sum->named = true;
		sum->limit.memory = grant->memory;
	}
	if (!sum->named)
		sum->limit.memory += grant->memory;
}

bool node_limit(unsigned int uid, const char *pci, const char *tenant, struct node_limit *limit)
{
	struct sum sum = { .uid = uid, .pci = pci, .tenant = tenant };
	unsigned int root = machine_root();

	if (!exempts(uid, root) && walk(root, see_given, &sum) == -EUSERS)
		sum.found = true;
	*limit = sum.limit;
	return sum.found;
}
