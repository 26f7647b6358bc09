/* SPDX-License-Identifier: MIT */
/*
 * Memory without a name in any folder that one process creates and others open through its
 * descriptor: nothing is left behind, however either of them ends.
 */
#ifndef GPUPART_LIB_CORE_MEMFD_H
#define GPUPART_LIB_CORE_MEMFD_H

#include "lib/core/ctx.h"

#define MEMFD_ID_LEN 64

/* Stands at its beginning. Another layout has another magic. */
struct memfd_head {
	uint64_t magic, size;
};

/* One that this process created, open. */
struct memfd {
	struct memfd_head *head;
	size_t size;
	int fd;
	char id[MEMFD_ID_LEN];
};

/* Creates @size zeroed bytes with the head filled. *@id, valid until the close, is for others. */
int memfd_open(struct gpupart *gp, const char *name, uint64_t magic, size_t size,
	       struct memfd **opened, const char **id);
/* NULL: nothing is done. */
void memfd_close(struct memfd *memfd);

/*
 * Maps what memfd_open() created with the same arguments. -EPROTO: with the same name, by another
 * version; -EINVAL: @id names something else.
 */
GPUPART_PRIVATE
int memfd_map(struct gpupart *gp, const char *id, const char *name, uint64_t magic, size_t size,
	      struct memfd_head **at);

/* Makes @text, @len bytes that another process wrote there, a string of printable ASCII. */
void memfd_clean(char *text, size_t len);

#endif
