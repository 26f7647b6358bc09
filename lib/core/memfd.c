// SPDX-License-Identifier: MIT
/* Maps memory that another process created. See memfd.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/memfd.h"

/* Returns true if the file at @path in /proc/self/fd is a memfd with the name @name. */
static bool is_ours(const char *path, const char *name)
{
	char link[MEMFD_ID_LEN], wanted[MEMFD_ID_LEN];
	ssize_t len = readlink(path, link, sizeof(link) - 1);

	link[len > 0 ? len : 0] = 0;
	snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", name);
	return !strcmp(link, wanted);
}

int memfd_map(struct gpupart *gp, const char *id, const char *name, uint64_t magic, size_t size,
	      struct memfd_head **at)
{
	/*
	 * The process that created the memory may have ended, and @id may now refer to another
	 * file. If this file is a device, a normal open() can have side effects. So first open the
	 * file with O_PATH, which has no side effects.
	 */
	int place = open(id, O_PATH | O_CLOEXEC), fd, err;
	void *map = MAP_FAILED;
	char path[32];
	struct stat st;
	bool ours;

	if (place < 0)
		return ctx_fail(gp, -errno, "%.80s: %s", id, strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	ours = is_ours(path, name);
	fd = ours ? open(path, O_RDWR | O_CLOEXEC) : -1;
	err = errno;
	close(place);
	if (ours && fd < 0)
		return ctx_fail(gp, -err, "%.80s: %s", id, strerror(err));
	/* If another process could shorten the memory, SIGBUS could kill this process. */
	if (fd >= 0 && !fstat(fd, &st) && (size_t)st.st_size == size &&
	    fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	*at = map;
	if (map != MAP_FAILED && (*at)->magic == magic && (*at)->size == size)
		return 0;
	if (map != MAP_FAILED)
		munmap(map, size);
	return ours ? ctx_fail(gp, -EPROTO, "%.80s is from another version of gpupart", id) :
		      ctx_fail(gp, -EINVAL, "%.80s was not created by gpupart", id);
}
