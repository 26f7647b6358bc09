// SPDX-License-Identifier: MIT
/*
 * Fuzz target: grant files of a node's GPUs, with any content. Listed grants must be valid. Each
 * grant has valid strings and a set that exists on the GPU. A second write of the grant gives the
 * same file. The total for a user must not exceed the user's own grants.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/state/grant.h"
#include "lib/core/shared_header.h"
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

#define UID	4711
#define PCI	"0000:01:00.0"
#define LAYOUT	2

/* The format of lib/state/grant.c. */
struct file {
	struct shared_header header;
	struct shared_gpu gpu;
	struct gpupart_grant grant;
};

static char folder[] = "/dev/shm/fuzz-grant.XXXXXX";
static const char *const ids[2] = { "0-5", "0-a7" };

/* The linker option --wrap replaces /run/gpupart by a private folder. Root owns this folder. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_open(const char *path, int flags, ...)
{
	return __real_open(strcmp(path, GPUPART_GRANT_ROOT) ? path : folder, flags, 0600);
}

int __wrap_fstat(int fd, struct stat *st)
{
	int err = __real_fstat(fd, st);

	st->st_uid = 0;
	return err;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	MUST(!strncmp(path, "/run/gpupart", 12) && mode == 0755);
	errno = EEXIST;
	return -1;
}

static void path_of(char path[96], const char *id)
{
	snprintf(path, 96, "%s/%s", folder, id);
}

static void clean_up(void)
{
	char path[96];

	for (int i = 0; i < 2; i++) {
		path_of(path, ids[i]);
		unlink(path);
	}
	rmdir(folder);
}

static void make_grant(const char *id, struct gpupart_grant *grant)
{
	memset(grant, 0, sizeof(*grant));
	strcpy(grant->id, id);
	strcpy(grant->name, id + 2);
	strcpy(grant->pci, PCI);
	strcpy(grant->source, "rm");
	strcpy(grant->key, "0123456789abcdef");
	strcpy(grant->asked, "tpcs=4,mem=1G");
	grant->uid = UID;
	grant->nr_tpcs = 10;
	grant->set.allowed[0] = 0xf;
	grant->memory = 1 << 30;
}

/*
 * Writes two files with valid content. The input overwrites parts of this content, and may
 * truncate it.
 */
static void write_files(struct input *in)
{
	for (int i = 0; i < 2; i++) {
		struct input part = { in->at, in->left / (2 - i) };
		unsigned int how = input_u8(&part);
		size_t len = sizeof(struct file);
		struct file file;
		char path[96];
		int fd;

		in->at += in->left / (2 - i);
		in->left -= in->left / (2 - i);
		memset(&file, 0, sizeof(file));
		shared_init(&file.header, LAYOUT, sizeof(file));
		atomic_init(&file.header.magic, SHARED_MAGIC(SHARED_GRANT));
		atomic_init(&file.header.nr_gpus, 1);
		/* The following fields exist in all versions of the format. */
		strcpy(file.header.id, ids[i]);
		strcpy(file.header.name, ids[i] + 2);
		file.header.uid = UID;
		strcpy(file.gpu.pci, PCI);
		strcpy(file.gpu.key, "0123456789abcdef");
		file.gpu.nr_tpcs = 10;
		file.gpu.tpcs.allowed[0] = 0xf;
		make_grant(ids[i], &file.grant);
		/* A random offset would rarely be the offset of an important field. */
		if (how & 1)
			input_patch(&part, &file, offsetof(struct file, grant.source));
		else if (how & 2)
			input_patch(&part, &file.grant.nr_tpcs,
				    sizeof(file) - offsetof(struct file, grant.nr_tpcs));
		else
			input_patch(&part, &file, sizeof(file));
		if (how >> 2 == 63)
			len = input_u16(&part) % len;
		path_of(path, ids[i]);
		fd = __real_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		MUST(fd >= 0 && write(fd, &file, len) == (ssize_t)len);
		close(fd);
	}
}

static bool ends(const char *text, size_t room)
{
	return strnlen(text, room) < room;
}

static void check_grant(const struct gpupart_grant *grant)
{
	char address[20];

	MUST(!strcmp(grant->id, ids[0]) || !strcmp(grant->id, ids[1]));
	MUST(fuzz_printable(grant->name, sizeof(grant->name)) && *grant->name);
	MUST(!strchr(grant->name, '/') && *grant->name != '-');
	MUST(fuzz_printable(grant->pci, sizeof(grant->pci)));
	MUST(fuzz_printable(grant->key, sizeof(grant->key)));
	MUST(ends(grant->source, sizeof(grant->source)) &&
	     ends(grant->asked, sizeof(grant->asked)) && ends(grant->why, sizeof(grant->why)));
	MUST(!*grant->pci || topo_address_read(grant->pci, address));
	MUST(grant->nr_tpcs <= GPUPART_MAX_TPCS);
	MUST(gpupart_tpcset_next(&grant->set, grant->nr_tpcs) < 0);
	MUST(gpupart_tpcset_empty(&grant->set) || *grant->pci);
}

static bool same(const struct gpupart_grant *a, const struct gpupart_grant *b)
{
	return !strcmp(a->id, b->id) && !strcmp(a->name, b->name) && a->uid == b->uid &&
	       !strcmp(a->pci, b->pci) && !strcmp(a->source, b->source) &&
	       !strcmp(a->key, b->key) && a->nr_tpcs == b->nr_tpcs &&
	       gpupart_tpcset_equal(&a->set, &b->set) && a->memory == b->memory &&
	       !strcmp(a->asked, b->asked) && !strcmp(a->why, b->why) && a->strict == b->strict;
}

/* Checks the users and resources of the two listed grants. */
static void check_sums(const struct gpupart_grant *list, int nr)
{
	struct gpupart_tpcset expected = { { 0 } };
	struct grant_limit limit;
	bool any = false, here = false;
	uint64_t memory = 0;

	for (int i = 0; i < nr; i++) {
		if (list[i].uid != UID || gpupart_tpcset_empty(&list[i].set))
			continue;
		any = true;
		if (strcmp(list[i].pci, PCI))
			continue;
		here = true;
		expected = gpupart_tpcset_or(&expected, &list[i].set);
		memory += list[i].memory;
	}
	MUST(grant_limit(UID, NULL, NULL, &limit) == any && !grant_limit(0, NULL, NULL, &limit));
	MUST(!grant_limit(0, PCI, NULL, &limit) && !limit.memory);
	MUST(grant_limit(UID, PCI, NULL, &limit) == here && limit.memory == memory);
	MUST(gpupart_tpcset_equal(&limit.tpcs, &expected));
}

static void put(struct gpupart *gp, const struct gpupart_grant *grant)
{
	struct gpupart_grant list[2];
	int nr, err, found = 0;

	gp->error[0] = 0;
	err = gpupart_grant_put(gp, grant);
	if (err) {
		MUST((err == -EINVAL || err == -EPROTO) && gp->error[0]);
		return;
	}
	nr = gpupart_grant_list(gp, list, 2, sizeof(struct gpupart_grant));
	MUST(nr > 0 && nr <= 2);
	for (int i = 0; i < nr; i++)
		found += same(&list[i], grant);
	MUST(found == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpupart *gp;
	struct input in = { data, size };
	struct gpupart_grant list[2], one;
	int nr;

	if (!gp) {
		MUST(!gpupart_open(&gp) && mkdtemp(folder));
		atexit(clean_up);
	}
	fuzz_words = gp->error;
	write_files(&in);
	nr = gpupart_grant_list(gp, list, 2, sizeof(struct gpupart_grant));
	MUST(nr >= 0 && nr <= 2);
	for (int i = 0; i < nr; i++) {
		check_grant(&list[i]);
		MUST(grant_get(list[i].id, &one) == !gpupart_tpcset_empty(&list[i].set));
		MUST(!i || strcmp(list[0].id, list[1].id));
	}
	check_sums(list, nr);
	/*
	 * A grant of the library's version can be written again. A grant with made-up values must
	 * be equal after a write and a read.
	 */
	for (int i = 0; i < nr; i++) {
		put(gp, &list[i]);
		MUST(!gp->error[0] == (!list[i].other_version ||
				       gpupart_tpcset_empty(&list[i].set)));
	}
	in = (struct input){ data, size };
	make_grant(ids[0], &one);
	input_patch(&in, &one, sizeof(one));
	/* The caller must pass a valid bool. */
	memset(&one.strict, !!*(unsigned char *)&one.strict, 1);
	if (!strcmp(one.id, ids[0]) || !strcmp(one.id, ids[1]))
		put(gp, &one);
	for (int i = 0; i < 2; i++)
		MUST(!gpupart_grant_drop(gp, ids[i]));
	MUST(!gpupart_grant_list(gp, list, 2, sizeof(struct gpupart_grant)));
	return 0;
}
