/* SPDX-License-Identifier: MIT */
/*
 * Fills lists for programs that were compiled for another version of the library. In other
 * versions, the structs may have other sizes. See "Lists" in gpupart_manage.h.
 */
#ifndef GPUPART_LIB_CORE_ROWS_H
#define GPUPART_LIB_CORE_ROWS_H

#include "lib/core/ctx.h"

/*
 * Fills at most @max rows. Each row has the size of this library's struct. Returns the number of
 * rows that exist, or -errno.
 */
typedef int (*rows_fill_fn)(struct gpupart *gp, const void *arg, void *rows, unsigned int max);

/*
 * Calls @fill and copies the result into @list. The rows of @fill have @own bytes. The rows of
 * @list have @size bytes.
 */
GPUPART_PRIVATE
int rows_resized(struct gpupart *gp, void *list, unsigned int max, size_t size, size_t own,
		 rows_fill_fn fill, const void *arg);

#endif
