/* SPDX-License-Identifier: MIT */
/* A plan as JSON: written by plan, read by run. Knows not how it is made. */
#ifndef GPUPART_CLI_PLAN_FILE_H
#define GPUPART_CLI_PLAN_FILE_H

#include "out.h"

/* What run takes from it. */
struct plan_file {
	uint64_t topology_hash;
	char pci[20];			/* "" where the plan's source did not tell it */
	char name[64];			/* the tenant */
	char set[GPUPART_TPCSET_STRLEN];	/* list form */
	struct gpupart_tpcset tpcs;	/* the same */
};

/* @within: what was planned; @limit: of the run that this is in, or NULL. */
json_t *plan_file_json(const struct gpupart_topology *topo, const struct gpupart_plan *plan,
		       const struct gpupart_tpcset *within, const struct gpupart_tpcset *limit,
		       bool simulated);

/* @words is "FILE:NAME": -1 to go on, or a status with the line written. */
int plan_file_read(const struct args *args, const char *words, struct plan_file *file);

#endif
