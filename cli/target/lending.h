/* SPDX-License-Identifier: MIT */
/*
 * Reads how much a process may borrow under `run --lend`, `run --depth` or `qos run`. One
 * thread.
 */
#ifndef GPUPART_CLI_TARGET_LENDING_H
#define GPUPART_CLI_TARGET_LENDING_H

#include "cli/util/out.h"
#include "lib/private.h"

#define LENDING_STRLEN (OUT_SET_STRLEN + 256)

/*
 * Reads the state of lending of process @p. If no bound applies to the launches of the process,
 * or if the state is not known, returns false. The counts are the sums over all processes of the
 * same run.
 */
bool lending_of(const struct gpupart_process *p, struct gpupart_lending *lending);

/* Describes @lending in a sentence without a full stop. Returns @text. */
const char *lending_text(char text[LENDING_STRLEN], const struct gpupart_topology *topo,
			 const struct gpupart_lending *lending);

/* Returns @lending as JSON, or null if @lending is NULL. */
json_t *lending_json(const struct gpupart_lending *lending);

#endif
