// SPDX-License-Identifier: MIT
/*
 * As exact.c, where every question that is not answered at once is put to a table:
 * small GPUs would not come to that otherwise.
 */
#define PRICED_AT 3000
#define FIRST_TURN 1
#define TABLE_AT 1
#define TABLE_SHARE (~0u)
#define ALL_AT 0
#include "lib/plan/feasible.c"
#include "tests/unit/plan/exact.c"
