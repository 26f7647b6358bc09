/* SPDX-License-Identifier: MIT */
/*
 * Lending between the programs of `gpupart qos run`: reports of the programs, and a watcher process
 * for each borrower. Call all functions from one thread.
 */
#ifndef GPUPART_CLI_QOS_LEND_H
#define GPUPART_CLI_QOS_LEND_H

#include "cli/qos/control.h"

/*
 * Creates the report of tenant @i if it lends or borrows. If there is a report, the tenant's
 * program must get the report's id in GPUPART_REPORT. Call this function before the program
 * starts.
 */
void lend_open(struct control *c, unsigned int i);
/*
 * Starts the watchers of all borrowers that this command started. An adopted borrower has the
 * watcher of its own `gpupart run --lend`; if it has none, prints a message.
 */
void lend_begin(struct control *c);
/* Carries out the decision about lending. */
void lend_order(struct control *c, const struct qos_decision *decision);
/*
 * Stores in *measured the number of launches of tenant @i on lent TPCs since the last call, and
 * whether programs can borrow its TPCs now or could borrow them at the last call.
 */
void lend_take(struct control *c, unsigned int i, struct qos_measured *measured);
/* Ends the watchers. */
void lend_close(struct control *c);

#endif
