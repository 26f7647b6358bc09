/* SPDX-License-Identifier: MIT */
/* A plan as JSON: written by plan, read by run and cdi. */
#ifndef GPUPART_CLI_PLAN_FILE_H
#define GPUPART_CLI_PLAN_FILE_H

#include "cli/util/options.h"
#include "cli/util/out.h"

/* What run and cdi take from it. */
struct plan_file_tenant {
	char name[64];
	char set[GPUPART_TPCSET_STRLEN];	/* list form */
	struct gpupart_tpcset tpcs;	/* the same */
	uint64_t mem;			/* bytes of its GPU; 0: no quota */
	struct args_texts rules;	/* PATTERN=SET, kept as long as this process lives */
};

struct plan_file {
	uint64_t topology_hash;
	char pci[20];			/* "" where the plan's source did not tell it */
	unsigned int nr;
	struct plan_file_tenant tenants[GPUPART_PLAN_MAX_TENANTS];
};

/*
 * @within: what was planned; @limit: of the run that this is in, or NULL; @mem: the quota
 * of each tenant, 0 for none; @rules: their rules by kernel name.
 */
json_t *plan_file_json(const struct gpupart_topology *topo, const struct gpupart_plan *plan,
		       const struct gpupart_tpcset *within, const struct gpupart_tpcset *limit,
		       const uint64_t *mem, const struct args_texts *rules, bool simulated);

/* All of the plan at @path, "-" for stdin: 0, or an error. */
int plan_file_read(const char *path, struct plan_file *file);

/* @words is "FILE:NAME", and @tenant in @file the one of that name: likewise. */
int plan_file_read_one(const char *words, struct plan_file *file,
		       const struct plan_file_tenant **tenant);

/* That it is of @topo, and no set beyond it; @words are --plan's: likewise. */
int plan_file_check(const char *words, const struct gpupart_topology *topo,
		    const struct plan_file *file);

#endif
