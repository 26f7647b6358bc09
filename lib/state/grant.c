// SPDX-License-Identifier: MIT
/*
 * Reads grants. With a grant, root gives TPCs and memory of one GPU of this machine to a user. Root
 * usually uses a scheduler for this. Each grant is a file below /run. After a boot, there are no
 * grants.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#define GRANT_PREFIX	"0-"
/*
 * A user namespace shows this uid for users that it does not map. The kernel calls it
 * DEFAULT_OVERFLOWUID.
 */
#define UNMAPPED_UID	65534
/*
 * This uid marks a grant that may belong to the caller. The owner of the grant's link is not
 * visible.
 */
#define HIDDEN_UID	((unsigned int)-2)

bool grant_is_id(const char *id)
{
	return id && !strncmp(id, GRANT_PREFIX, strlen(GRANT_PREFIX)) &&
	       strlen(id) > strlen(GRANT_PREFIX) && strlen(id) < GPUPART_JOB_STRLEN &&
	       strspn(id, "0123456789abcdef-") == strlen(id);
}

/*
 * Returns the uid of the machine's root in this user namespace. The result may be UNMAPPED_UID.
 * User 0 of a namespace can mount another file system on /proc. So the function also checks the
 * owner of the directory of grants.
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
 * Returns true if grants do not limit @uid. Grants do not limit the machine's root, which creates
 * and removes grants. But grants limit the root user of a container. This user cannot write to the
 * directory of grants, because the container has a read-only view of its grants.
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
 * Returns true if this user namespace maps no user, or if the map cannot be read. In such a
 * namespace all processes have the uid UNMAPPED_UID.
 */
static bool maps_no_user(void)
{
	STATE_CLOSED int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	char first;

	return fd < 0 || read(fd, &first, 1) <= 0;
}

/*
 * Sets the user of a grant to the uid in this user namespace. Each grant's file has a link beside
 * it. The grant's user owns the link, but cannot change it. So the owner of the link has the uid of
 * the grant's user in this namespace. If the namespace maps no user, this uid is not visible. In
 * this case, the function tries to set the link's times, because only the owner can set them.
 */
static void translate_user(int dir, unsigned int root, struct gpupart_grant *grant)
{
	struct timespec times[] = { { 0 }, { .tv_nsec = UTIME_OMIT } };
	char name[GRANT_LINK_LEN];
	struct stat st;

	/* This is the grant of the caller's container. It applies to all users in the container. */
	if (!strcmp(grant->id, GPUPART_GRANT_CONTAINER)) {
		grant->uid = geteuid();
		return;
	}
	grant_link_name(grant->id, name);
	if (!root || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	grant->uid = st.st_uid;
	if (root != UNMAPPED_UID)
		return;
	times[0] = st.st_atim;
	if (st.st_uid != UNMAPPED_UID || !utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW))
		grant->uid = geteuid();
	else
		grant->uid = maps_no_user() ? HIDDEN_UID : -1u;
}

int grant_open_folder(const char *folder)
{
	struct stat st;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -EPERM : -errno;
	/* Refuse the directory if users other than root could have written to it. */
	if (fstat(fd, &st) || !is_roots(&st) || (st.st_mode & 022)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

int grant_open_dir(bool make)
{
	if (make && ((mkdir("/run/gpupart", 0755) && errno != EEXIST) ||
		     (mkdir(GPUPART_GRANT_ROOT, 0755) && errno != EEXIST)))
		return -errno;
	return grant_open_folder(GPUPART_GRANT_ROOT);
}

/*
 * Returns true if all strings are terminated and the id and the name are valid. The key must have
 * the form of the keys from check_gpu().
 */
bool grant_is_valid(const struct gpupart_grant *grant)
{
#define ENDS(text) (strnlen(grant->text, sizeof(grant->text)) < sizeof(grant->text))
	return ENDS(id) && ENDS(name) && ENDS(pci) && ENDS(source) && ENDS(key) && ENDS(asked) &&
	       ENDS(why) && grant_is_id(grant->id) && state_dir_name_valid(grant->name) &&
	       strspn(grant->key, "0123456789abcdef") == strlen(grant->key);
#undef ENDS
}

/*
 * Returns true if the set of a grant is valid. The caller has checked the strings of the grant. If
 * the grant contains no GPU, the set must be empty. Otherwise all TPCs of the set must be in that
 * GPU.
 */
bool grant_set_is_valid(const struct gpupart_grant *grant)
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
		strcpy(grant->why, "another version of gpupart granted no TPCs");
}

/* Converts bytes of the file to valid bools. The byte of a valid bool is 0 or 1. */
static void read_bools(struct gpupart_grant *grant)
{
	unsigned char strict;

	memcpy(&strict, &grant->strict, sizeof(strict));
	grant->strict = strict != 0;
	grant->other_version = false;
}

/* Reads the grant @id. The argument @root is the result of machine_root(). */
static bool read_file(int dir, unsigned int root, const char *id, struct gpupart_grant *grant)
{
	enum shared_version version;
	struct shared_seen seen;
	struct grant_file file;
	STATE_CLOSED int fd = shared_open(dir, id, root, SHARED_GRANT, GRANT_LAYOUT, &seen,
					    &version);

	if (fd < 0)
		return false;
	if (version == SHARED_OTHER && seen.nr_gpus)
		fill_other(&seen, &file.grant);
	else if (version != SHARED_SAME || pread(fd, &file, sizeof(file), 0) != sizeof(file))
		return false;
	else
		read_bools(&file.grant);
	if (!grant_is_valid(&file.grant) || strcmp(file.grant.id, id) ||
	    !grant_set_is_valid(&file.grant))
		return false;
	*grant = file.grant;
	translate_user(dir, root, grant);
	return true;
}

bool grant_read(int dir, const char *id, struct gpupart_grant *grant)
{
	return read_file(dir, machine_root(), id, grant);
}

bool grant_get(const char *id, struct gpupart_grant *grant)
{
	STATE_CLOSED int dir = grant_is_id(id) ? grant_open_dir(false) : -ENOENT;

	return dir >= 0 && read_file(dir, machine_root(), id, grant) &&
	       !gpupart_tpcset_empty(&grant->set);
}

static int by_id(const void *a, const void *b)
{
	const struct gpupart_grant *x = a, *y = b;
	size_t nx = strlen(x->id), ny = strlen(y->id);

	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x->id, y->id);
}

/*
 * The grants that may belong to the caller. The code uses these grants if no grant is known to
 * belong to the caller.
 */
struct hidden {
	bool own, any;
	struct gpupart_grant common;	/* the intersection of these grants */
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
 * Calls @see with each grant. If no grant is known to belong to the caller, calls @see with the
 * intersection of all grants that may belong to the caller. If the intersection contains no TPC,
 * returns -EUSERS. If the directory exists but cannot be read, returns a negative errno.
 */
static int walk(unsigned int root, void (*see)(const struct gpupart_grant *grant, void *arg),
		void *arg)
{
	int fd = grant_open_dir(false);
	DIR *dir = state_dir_read(fd);
	struct hidden hidden = { 0 };
	struct gpupart_grant grant;
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return fd == -ENOENT ? 0 : fd < 0 ? fd : -errno;
	while (root == UNMAPPED_UID && (entry = readdir(dir)))
		if (grant_is_id(entry->d_name) && read_file(fd, root, entry->d_name, &grant))
			see_hidden(&grant, &hidden);
	rewinddir(dir);
	while ((entry = readdir(dir)))
		if (grant_is_id(entry->d_name) && read_file(fd, root, entry->d_name, &grant) &&
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
				"users other than root can write to this directory, so its grants are ignored"
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
	const char *pci, *tenant;	/* if @pci is NULL, the GPU does not matter */
	bool found, named;
	struct grant_limit limit;
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

bool grant_limit(unsigned int uid, const char *pci, const char *tenant, struct grant_limit *limit)
{
	struct sum sum = { .uid = uid, .pci = pci, .tenant = tenant };
	unsigned int root = machine_root();

	if (!exempts(uid, root) && walk(root, see_given, &sum) == -EUSERS)
		sum.found = true;
	*limit = sum.limit;
	return sum.found;
}
