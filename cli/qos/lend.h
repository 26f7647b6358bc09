/* SPDX-License-Identifier: MIT */
/*
 * Lending between the programs of `gpupart qos run`: reports of the programs, and a watcher process
 * for each borrower. Call all functions from one thread.
 */
#ifndef GPUPART_CLI_QOS_LEND_H
#define GPUPART_CLI_QOS_LEND_H

#include "cli/qos/control.h"

/*
 * If tenant @i lends or borrows, creates a report. Then the environment variable GPUPART_REPORT of
 * the tenant's program must contain the report's id. Call this function before the program starts.
 */
void lend_open(struct control *c, unsigned int i);
/*
 * Starts a watcher for each borrower that this command started. `gpupart run --lend` has already
 * started a watcher for an adopted borrower. If an adopted borrower has no watcher, prints a
 * message.
 */
void lend_begin(struct control *c);
/*
 * Returns whether the running program @t borrows TPCs, and reads how. All processes of one run have
 * the same report, but a run inside a job has its own report.
 */
bool lend_borrows(const struct live_tenant *t, struct gpupart_lending *lending);
/* Carries out the decision about lending. */
void lend_order(struct control *c, const struct qos_decision *decision);
/*
 * Stores in *measured how many launches tenant @i made on lent TPCs since the last call. Then
 * stores whether programs can borrow the tenant's TPCs now, or could at the previous call.
 */
void lend_take(struct control *c, unsigned int i, struct qos_measured *measured);
/* Ends the watchers. */
void lend_close(struct control *c);

#endif
