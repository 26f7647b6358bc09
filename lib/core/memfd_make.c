// SPDX-License-Identifier: MIT
/*
 * Creates memory that other processes map, and cleans strings that these processes wrote. See
 * memfd.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/fsize.h"
#include "lib/core/memfd.h"

int memfd_open(struct gpupart *gp, const char *name, uint64_t magic, size_t size,
	       struct memfd **opened, const char **id)
{
	struct memfd *new = calloc(1, sizeof(*new));
	struct fsize_guard guard;
	void *map = MAP_FAILED;
	int err = 0;

	if (!new)
		return ctx_fail(gp, -ENOMEM, "out of memory");
	fsize_guard_begin(&guard);
	new->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* A program that shortens the memory would kill all processes that have mapped it. */
	if (new->fd >= 0 && !fchmod(new->fd, 0600) && !ftruncate(new->fd, size) &&
	    !fcntl(new->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, new->fd, 0);
	if (map == MAP_FAILED)
		err = ctx_fail(gp, -errno, "shared memory cannot be created: %s", strerror(errno));
	fsize_guard_end(&guard);
	if (err) {
		if (new->fd >= 0)
			close(new->fd);
		free(new);
		return err;
	}
	new->head = map;
	new->size = size;
	*new->head = (struct memfd_head){ magic, size };
	snprintf(new->id, sizeof(new->id), "/proc/%d/fd/%d", getpid(), new->fd);
	*opened = new;
	*id = new->id;
	return 0;
}

void memfd_close(struct memfd *memfd)
{
	if (!memfd)
		return;
	munmap(memfd->head, memfd->size);
	close(memfd->fd);
	free(memfd);
}

void memfd_clean(char *text, size_t len)
{
	text[len - 1] = 0;
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}
