// SPDX-License-Identifier: MIT
/* Creates memory that other processes map, and cleans what they wrote: see memfd.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/fsize.h"
#include "lib/core/memfd.h"

int memfd_make(struct gpupart *gp, const char *name, uint64_t magic, size_t size,
	       struct memfd_head **at, int *fd, char id[MEMFD_ID_LEN])
{
	struct fsize_guard guard;
	void *map = MAP_FAILED;
	int err = 0;

	fsize_guard_begin(&guard);
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* A program that shortens it would end all that have mapped it. */
	if (*fd >= 0 && !fchmod(*fd, 0600) && !ftruncate(*fd, size) &&
	    !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (map == MAP_FAILED)
		err = ctx_fail(gp, -errno, "no shared memory: %s", strerror(errno));
	fsize_guard_end(&guard);
	if (err) {
		if (*fd >= 0)
			close(*fd);
		return err;
	}
	*at = map;
	(*at)->magic = magic;
	(*at)->size = size;
	snprintf(id, MEMFD_ID_LEN, "/proc/%d/fd/%d", getpid(), *fd);
	return 0;
}

void memfd_clean(char *text, size_t len)
{
	text[len - 1] = 0;
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}
