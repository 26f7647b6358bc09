// SPDX-License-Identifier: MIT
/* Formats sets of allowed TPCs. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "lib/topo/topology.h"

void topo_append(char *text, size_t len, size_t *at, const char *fmt, ...)
{
	va_list ap;
	int nr;

	va_start(ap, fmt);
	nr = vsnprintf(*at < len ? text + *at : NULL, *at < len ? len - *at : 0, fmt, ap);
	va_end(ap);
	*at += nr;
}

int gpupart_tpcset_format_list(const struct gpupart_tpcset *set, char *text, size_t len)
{
	int first, last;
	size_t at = 0;

	topo_append(text, len, &at, "%s", "");
	for (first = gpupart_tpcset_next(set, 0); first >= 0;
	     first = gpupart_tpcset_next(set, last + 1)) {
		for (last = first; gpupart_tpcset_has(set, last + 1); last++)
			;
		topo_append(text, len, &at, "%s%d", at ? "," : "", first);
		if (last > first)
			topo_append(text, len, &at, "-%d", last);
	}
	return at < len ? (int)at : -ENOSPC;
}

int gpupart_tpcset_format_hex(const struct gpupart_tpcset *set, char *text, size_t len)
{
	int word = GPUPART_TPCSET_WORDS - 1;
	size_t at = 0;

	while (word > 0 && !set->allowed[word])
		word--;
	topo_append(text, len, &at, "0x%llx", (unsigned long long)set->allowed[word]);
	while (word-- > 0)
		topo_append(text, len, &at, "%016llx", (unsigned long long)set->allowed[word]);
	return at < len ? (int)at : -ENOSPC;
}
