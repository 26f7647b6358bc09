// SPDX-License-Identifier: MIT
/* Part of each program and library of a coverage build: registers its counters in ends.c. */
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
