/* SPDX-License-Identifier: MIT */
/*
 * Reads how much a process may borrow under `gpupart run --lend`, `gpupart run --depth` or `gpupart
 * qos run`. Call these functions from one thread.
 */
#ifndef GPUPART_CLI_TARGET_LENDING_H
#define GPUPART_CLI_TARGET_LENDING_H

#include "cli/util/out.h"
#include "lib/private.h"

#define LENDING_STRLEN (OUT_SET_STRLEN + 256)

/*
 * Reads the lending state of process @p. The counts are sums over all processes of the same run. If
 * no bound applies to the launches of the process, returns false. If the state is not known, also
 * returns false.
 */
bool lending_of(const struct gpupart_process *p, struct gpupart_lending *lending);

/* Describes @lending in a sentence without a full stop. Returns @text. */
const char *lending_text(char text[LENDING_STRLEN], const struct gpupart_topology *topo,
			 const struct gpupart_lending *lending);

/* Returns @lending as JSON. If @lending is NULL, returns null. */
json_t *lending_json(const struct gpupart_lending *lending);

#endif
