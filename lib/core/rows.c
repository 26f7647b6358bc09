// SPDX-License-Identifier: MIT
/* Converts the rows of a list to the size that the caller uses. See rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/rows.h"

#define MAX_SIZE (64 << 10)

int rows_resized(struct gpupart *gp, void *list, unsigned int max, size_t size, size_t own,
		 rows_fill_fn fill, const void *arg)
{
	size_t both = size < own ? size : own;
	char *rows = NULL;
	int nr;

	if (size == own)
		return fill(gp, arg, list, max);
	if (!size || size > MAX_SIZE)
		return ctx_fail(gp, -EINVAL, "the row has %zu bytes but must have 1 to %d", size,
				MAX_SIZE);
	if (max) {
		rows = calloc(max, own);
		if (!rows)
			return ctx_fail(gp, -ENOMEM,
					"out of memory for %u rows of %zu bytes", max, own);
	}
	nr = fill(gp, arg, rows, max);
	for (int i = 0; i < nr && (unsigned int)i < max; i++) {
		char *row = (char *)list + i * size;

		memcpy(row, rows + i * own, both);
		memset(row + both, 0, size - both);
	}
	free(rows);
	return nr;
}
