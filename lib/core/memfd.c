// SPDX-License-Identifier: MIT
/* Maps memory that another process created: see memfd.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/memfd.h"

/* The process that created it may have ended, and its pid and descriptor may be reused. */
static bool is_ours(const char *id, const char *name)
{
	char link[MEMFD_ID_LEN], wanted[MEMFD_ID_LEN];
	ssize_t len = readlink(id, link, sizeof(link) - 1);

	link[len > 0 ? len : 0] = 0;
	snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", name);
	return !strcmp(link, wanted);
}

int memfd_map(struct gpupart *gp, const char *id, const char *name, uint64_t magic, size_t size,
	      struct memfd_head **at)
{
	int fd = open(id, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	void *map = MAP_FAILED;
	struct stat st;
	bool ours;

	if (fd < 0)
		return ctx_fail(gp, -errno, "%.80s: %s", id, strerror(errno));
	ours = is_ours(id, name);
	/* Memory that can be shortened could kill this process with a bus error. */
	if (ours && !fstat(fd, &st) && (size_t)st.st_size == size &&
	    fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	*at = map;
	if (map != MAP_FAILED && (*at)->magic == magic && (*at)->size == size)
		return 0;
	if (map != MAP_FAILED)
		munmap(map, size);
	return ours ? ctx_fail(gp, -EPROTO, "%.80s is from another version of gpupart", id) :
		      ctx_fail(gp, -EINVAL, "%.80s was not created by gpupart", id);
}
