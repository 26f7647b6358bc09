/* SPDX-License-Identifier: MIT */
/* For coverage builds. Registers units, so that their counters are written. */
#ifndef COVERAGE_ENDS_H
#define COVERAGE_ENDS_H

/*
 * @dump writes a unit's counters. @reset sets the counters to zero. gcov has these two functions
 * in each unit. The symbols are weak, so that a library does not depend on ends.so.
 */
#define COVERAGE_CALL __attribute__((visibility("default"), weak))
COVERAGE_CALL void coverage_add(void (*dump)(void), void (*reset)(void));
COVERAGE_CALL void coverage_remove(void (*dump)(void));

#endif
