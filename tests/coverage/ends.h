/* SPDX-License-Identifier: MIT */
/* Who has counters to be written. For coverage builds alone. */
#ifndef COVERAGE_ENDS_H
#define COVERAGE_ENDS_H

/*
 * @dump writes a unit's counters, @reset has it count anew: gcov has a pair of its own in each.
 * Weak: a library does not bring ends.so with it.
 */
#define COVERAGE_CALL __attribute__((visibility("default"), weak))
COVERAGE_CALL void coverage_add(void (*dump)(void), void (*reset)(void));
COVERAGE_CALL void coverage_remove(void (*dump)(void));

#endif
