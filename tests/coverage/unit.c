// SPDX-License-Identifier: MIT
/*
 * Each program and each library of a coverage build contains this file. It registers the counters
 * of the program or library in ends.c.
 */
#include "tests/coverage/ends.h"

void __gcov_dump(void);
void __gcov_reset(void);

static void __attribute__((constructor)) here(void)
{
	if (coverage_add)
		coverage_add(__gcov_dump, __gcov_reset);
}

static void __attribute__((destructor)) gone(void)
{
	if (coverage_remove)
		coverage_remove(__gcov_dump);
}
