// SPDX-License-Identifier: MIT
/*
 * As exact.c, where states are priced at once and there is no table:
 * small GPUs would not come to that otherwise.
 */
#define PRICED_AT 0
#define FIRST_TURN 400
#define TABLE_AT (~0u)
#define TABLE_SHARE 1
#define ALL_AT (~0u)
#include "lib/plan/feasible.c"
#include "tests/unit/plan/exact.c"
