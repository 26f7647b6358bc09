// SPDX-License-Identifier: MIT
/* Makes the value of GLIBC_TUNABLES; see tunables_value.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/tunables_value.h"

#define NAME "glibc.rtld.optional_static_tls="

/*
 * Reads the size from text of the form "name=value". If the text has another tunable or an invalid
 * number, returns 0.
 */
static size_t size_in(const char *one, size_t len)
{
	char *end;
	size_t bytes;

	if (len <= strlen(NAME) || strncmp(one, NAME, strlen(NAME)))
		return 0;
	bytes = strtoull(one + strlen(NAME), &end, 0);
	return end == one + len ? bytes : 0;
}

char *tunables_join(const char *old, size_t bytes)
{
	const char *at = old ? old : "";
	/* The buffer has space for the other tunables, a colon, this tunable and a zero byte. */
	char *joined = malloc(strlen(at) + sizeof(NAME) + 24), *to = joined;
	size_t len, now = 0;

	if (!joined)
		return NULL;
	/*
	 * The last value of a tunable applies. If there is an empty entry, glibc rejects all
	 * tunables. So omit empty entries.
	 */
	for (; *at; at += len + (at[len] == ':')) {
		len = strcspn(at, ":");
		if (!strncmp(at, NAME, strlen(NAME)))
			now = size_in(at, len);
		else if (len)
			to += sprintf(to, "%.*s:", (int)len, at);
	}
	sprintf(to, NAME "%zu", now > bytes ? now : bytes);
	return joined;
}
