// SPDX-License-Identifier: MIT
/*
 * Reads the header of a file that another process writes. The code uses only system calls. The
 * contents of the file cannot kill the reader, and cannot keep the reader in a long loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/shared_header.h"

#define MAX_WORDS 4096	/* maximum number of words to add up for a GPU */
#define TRIES 100

static bool read_at(int fd, void *into, size_t len, uint64_t at)
{
	return pread(fd, into, len, at) == (ssize_t)len;
}

void shared_init(struct shared_header *header, uint32_t layout, uint64_t size)
{
	header->layout = layout;
	header->header_size = header->gpus_at = sizeof(*header);
	header->gpu_size = sizeof(struct shared_gpu);
	header->size = size;
}

bool shared_is(const struct shared_header *header, enum shared_kind kind, uint32_t layout)
{
	return atomic_load_explicit(&header->magic, memory_order_acquire) == SHARED_MAGIC(kind) &&
	       header->layout == layout;
}

enum shared_version shared_version(int fd, enum shared_kind kind, uint32_t layout,
				   struct shared_header *header)
{
	char last;

	memset(header, 0, sizeof(*header));
	if (!read_at(fd, header, sizeof(*header), 0) || header->magic != SHARED_MAGIC(kind) ||
	    header->header_size < sizeof(*header) || header->gpu_size < sizeof(struct shared_gpu) ||
	    header->gpus_at < header->header_size || !header->size ||
	    !read_at(fd, &last, 1, header->size - 1))
		return SHARED_NONE;
	header->name[63] = header->id[63] = header->parent[63] = 0;
	return header->layout == layout ? SHARED_SAME : SHARED_OTHER;
}

/* If the set changes while this code reads it, use all TPCs of the GPU. */
static void resolve_set(int fd, struct shared_gpu *gpu)
{
	const struct shared_place *set = &gpu->set;
	uint64_t count, after;

	for (int i = 0; set->nr && i < TRIES; i++) {
		memset(&gpu->tpcs, 0, sizeof(gpu->tpcs));
		if (!read_at(fd, &count, sizeof(count), set->count_at) || !count ||
		    !read_at(fd, &gpu->tpcs, sizeof(gpu->tpcs),
			     set->at + count % set->nr * set->stride))
			return;
		if (read_at(fd, &after, sizeof(after), set->count_at) && after == count)
			return;
	}
	for (unsigned int i = 0; set->nr && i < gpu->nr_tpcs && i < GPUPART_MAX_TPCS; i++)
		gpu->tpcs.allowed[i / 64] |= 1ull << i % 64;
}

static void resolve(int fd, struct shared_gpu *gpu)
{
	uint64_t word, sum = 0;

	gpu->pci[sizeof(gpu->pci) - 1] = gpu->key[sizeof(gpu->key) - 1] = 0;
	resolve_set(fd, gpu);
	for (uint64_t i = 0; i < gpu->held.nr && i < MAX_WORDS; i++) {
		if (!read_at(fd, &word, sizeof(word), gpu->held.at + i * gpu->held.stride))
			break;
		sum = sum > UINT64_MAX - word ? UINT64_MAX : sum + word;
	}
	if (gpu->held.nr)
		gpu->memory = sum;
	gpu->set = gpu->held = (struct shared_place){ 0 };
}

enum shared_version shared_read(int fd, enum shared_kind kind, uint32_t layout,
				struct shared_seen *seen)
{
	enum shared_version version = shared_version(fd, kind, layout, &seen->header);
	const struct shared_header *header = &seen->header;
	uint32_t nr = atomic_load(&header->nr_gpus);

	seen->nr_gpus = 0;
	if (version == SHARED_NONE)
		return version;
	for (; seen->nr_gpus < nr && seen->nr_gpus < SHARED_MAX_GPUS; seen->nr_gpus++)
		if (!read_at(fd, &seen->gpus[seen->nr_gpus], sizeof(struct shared_gpu),
			     header->gpus_at + (uint64_t)seen->nr_gpus * header->gpu_size))
			break;
	for (unsigned int i = 0; i < seen->nr_gpus; i++)
		resolve(fd, &seen->gpus[i]);
	return version;
}

int shared_open(int dir, const char *file, uid_t uid, enum shared_kind kind, uint32_t layout,
		struct shared_seen *seen, enum shared_version *version)
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid) {
		close(fd);
		return -EPERM;
	}
	*version = shared_read(fd, kind, layout, seen);
	return fd;
}
