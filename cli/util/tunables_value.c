// SPDX-License-Identifier: MIT
/* See tunables_value.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/tunables_value.h"

#define NAME "glibc.rtld.optional_static_tls="

/* The size that one "name=value" gives, 0 where it is another tunable's or no number. */
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
	/* The rest of the old ones, a colon, ours, and the end. */
	char *joined = malloc(strlen(at) + sizeof(NAME) + 24), *to = joined;
	size_t len, now = 0;

	if (!joined)
		return NULL;
	/* Of a tunable that stands twice the last one holds; empty ones make glibc reject all. */
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
