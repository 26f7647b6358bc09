// SPDX-License-Identifier: MIT
/*
 * Reads the environment. See environment.h. Any thread may call these functions while no thread
 * changes the environment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/environment.h"
#include "lib/private.h"

static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/*
 * If the value of the variable @name is one digit from 1 to @most, returns this number. Otherwise
 * returns @most.
 */
static unsigned int number_of(const char *name, unsigned int most)
{
	const char *value = value_of(name);
	unsigned int number = value && !value[1] ? *value - '0' : 0;

	return number && number <= most ? number : most;
}

static bool is_one(const char *name)
{
	const char *value = getenv(name);

	return value && !strcmp(value, "1");
}

struct environment environment_read(void)
{
	const char *strict = value_of(ENVIRONMENT_STRICT), *records = value_of(ENVIRONMENT_RECORDS);

	return (struct environment){
		.untouched = is_one(ENVIRONMENT_OFF),
		.profile = is_one(ENVIRONMENT_PROFILE),
		.no_device_launch = is_one(ENVIRONMENT_NO_DEVICE_LAUNCH),
		.no_records = records && !strcmp(records, "0"),
		.graph_sets = number_of(ENVIRONMENT_GRAPH_SETS, ENVIRONMENT_MOST_GRAPH_SETS),
		.set = value_of(ENVIRONMENT_SET),
		.gpu = value_of(ENVIRONMENT_GPU),
		.rules = value_of(ENVIRONMENT_RULES),
		.job = value_of(ENVIRONMENT_JOB),
		.tenant = value_of(ENVIRONMENT_TENANT),
		.mem = value_of(ENVIRONMENT_MEM),
		.maps = value_of(ENVIRONMENT_MAPS),
		.has_set = getenv(ENVIRONMENT_SET),
		.has_tenant = getenv(ENVIRONMENT_TENANT),
		.has_strict = strict,
		.strict = strict && strcmp(strict, "0"),
		.sm_count = is_one(ENVIRONMENT_SM_COUNT),
		.stat = value_of(ENVIRONMENT_STAT),
		.report = value_of(ENVIRONMENT_REPORT),
		.name = value_of(ENVIRONMENT_NAME),
		.key = value_of(ENVIRONMENT_CHECKED),
		.log = value_of(ENVIRONMENT_LOG),
		.next = value_of(ENVIRONMENT_NEXT),
	};
}

int environment_part(const char *list, char separator, unsigned int n, char *part, size_t len)
{
	size_t found;

	list = gpupart_list_part(list, separator, n, &found);
	return list ? snprintf(part, len, "%.*s", (int)found, list) : -1;
}

uint64_t environment_mem(const struct environment *environment)
{
	const char *text = environment->mem;
	uint64_t bytes;
	char *end;

	/* Check the first character, because strtoull() also accepts blanks and signs. */
	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	bytes = strtoull(text, &end, 10);
	return *end || errno ? 0 : bytes;
}
