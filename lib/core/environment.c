// SPDX-License-Identifier: MIT
/* See environment.h. Any thread, while none changes the environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/environment.h"

static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

struct environment environment_read(void)
{
	const char *off = value_of(ENVIRONMENT_OFF);

	return (struct environment){
		.untouched = off && !strcmp(off, "1"),
		.set = value_of(ENVIRONMENT_SET),
		.gpu = value_of(ENVIRONMENT_GPU),
		.job = value_of(ENVIRONMENT_JOB),
		.tenant = value_of(ENVIRONMENT_TENANT),
		.mem = value_of(ENVIRONMENT_MEM),
	};
}

uint64_t environment_mem(const struct environment *environment)
{
	const char *text = environment->mem;
	uint64_t bytes;
	char *end;

	/* strtoull() takes blanks and signs, too. */
	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	bytes = strtoull(text, &end, 10);
	return *end || errno ? 0 : bytes;
}
