/* SPDX-License-Identifier: MIT */
/* Registers units whose counters are written. For coverage builds only. */
#ifndef COVERAGE_ENDS_H
#define COVERAGE_ENDS_H

/*
 * @dump writes a unit's counters, and @reset sets them to zero. gcov has such a pair of functions
 * for each unit. The symbols are weak, so that a library does not depend on ends.so.
 */
#define COVERAGE_CALL __attribute__((visibility("default"), weak))
COVERAGE_CALL void coverage_add(void (*dump)(void), void (*reset)(void));
COVERAGE_CALL void coverage_remove(void (*dump)(void));

#endif
