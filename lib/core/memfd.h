/* SPDX-License-Identifier: MIT */
/*
 * Shared memory that one process creates. Other processes open the memory through the descriptor
 * of the process that created it. The memory has no name in any directory, so nothing remains
 * after all its users have ended.
 */
#ifndef GPUPART_LIB_CORE_MEMFD_H
#define GPUPART_LIB_CORE_MEMFD_H

#include "lib/core/ctx.h"

#define MEMFD_ID_LEN 64

/* The first bytes of the memory. Each layout has its own magic. */
struct memfd_head {
	uint64_t magic, size;
};

/* Memory that this process created. */
struct memfd {
	struct memfd_head *head;
	size_t size;
	int fd;
	char id[MEMFD_ID_LEN];
};

/*
 * Creates memory of @size bytes. The function fills in the head. All other bytes are 0. Other
 * processes use *@id to open the memory. The id is valid until memfd_close().
 */
int memfd_open(struct gpupart *gp, const char *name, uint64_t magic, size_t size,
	       struct memfd **opened, const char **id);
/* Closes the memory. If @memfd is NULL, does nothing. */
void memfd_close(struct memfd *memfd);

/*
 * Maps memory that memfd_open() created with the same arguments. If the memory has this name but
 * belongs to another version, the error is -EPROTO. If @id is not the id of such memory, the error
 * is -EINVAL.
 */
GPUPART_PRIVATE
int memfd_map(struct gpupart *gp, const char *id, const char *name, uint64_t magic, size_t size,
	      struct memfd_head **at);

/*
 * Terminates the string in the @len bytes at @text. Another process wrote this string. Replaces all
 * characters that are not printable ASCII.
 */
void memfd_clean(char *text, size_t len);

#endif
