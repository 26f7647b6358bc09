// SPDX-License-Identifier: MIT
/* Parses numbers of the command line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/number.h"

bool number_whole(const char *text, unsigned long most, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *value && *value <= most;
}

bool number_decimal(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	/* Reject 0x10, inf and nan, which strtod() accepts. */
	return end != text && !*end && strspn(text, "0123456789.eE+-") == strlen(text);
}
