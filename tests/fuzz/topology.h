/* SPDX-License-Identifier: MIT */
/*
 * Checks the invariants of a topology. Targets call this code for each topology that a reader
 * created from the input.
 */
#ifndef GPUPART_TESTS_FUZZ_TOPOLOGY_H
#define GPUPART_TESTS_FUZZ_TOPOLOGY_H

#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

/* All TPCs form a set. A capture of the topology must give the same topology. */
static inline void fuzz_check_topology(struct gpupart *gp, struct gpupart_topology *topo)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo);
	struct gpupart_topology *again;
	char *text;

	MUST(!gpupart_set_check(gp, topo, &all));
	MUST(!gpupart_topology_capture(gp, topo, NULL, &text));
	MUST(!topo_file_parse(gp, "it", text, strlen(text), &again));
	MUST(gpupart_topology_hash(topo) == gpupart_topology_hash(again));
	free(text);
	gpupart_topology_close(again);
}

#endif
