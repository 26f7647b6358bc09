/* SPDX-License-Identifier: MIT */
/* Lists for callers whose structs are of another size: gpupart_manage.h, "Lists". */
#ifndef GPUPART_LIB_CORE_ROWS_H
#define GPUPART_LIB_CORE_ROWS_H

#include "lib/core/ctx.h"

/* Fills up to @max rows of this library's own size. Returns how many there are, or -errno. */
typedef int (*rows_fill_fn)(struct gpupart *gp, const void *arg, void *rows, unsigned int max);

/* The same into @list, with rows of @size bytes; a row of @fill has @own, which may be as many. */
GPUPART_PRIVATE
int rows_resized(struct gpupart *gp, void *list, unsigned int max, size_t size, size_t own,
		 rows_fill_fn fill, const void *arg);

#endif
