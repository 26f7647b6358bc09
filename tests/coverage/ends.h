/* SPDX-License-Identifier: MIT */
/* Registers units whose counters are written. For coverage builds only. */
#ifndef COVERAGE_ENDS_H
#define COVERAGE_ENDS_H

/*
 * @dump writes a unit's counters, @reset sets them to zero: gcov has a pair for each unit. Weak:
 * a library does not depend on ends.so.
 */
#define COVERAGE_CALL __attribute__((visibility("default"), weak))
COVERAGE_CALL void coverage_add(void (*dump)(void), void (*reset)(void));
COVERAGE_CALL void coverage_remove(void (*dump)(void));

#endif
