/* SPDX-License-Identifier: MIT */
/*
 * A plan as JSON. The command 'gpupart plan' writes plans. The commands 'gpupart run' and 'gpupart
 * cdi' read plans.
 */
#ifndef GPUPART_CLI_PLAN_FILE_H
#define GPUPART_CLI_PLAN_FILE_H

#include "cli/util/options.h"
#include "cli/util/out.h"

/* The parts of a tenant that 'gpupart run' and 'gpupart cdi' need. */
struct plan_file_tenant {
	char name[64];
	char set[GPUPART_TPCSET_STRLEN];	/* the set in list form */
	struct gpupart_tpcset tpcs;	/* the same set */
	uint64_t mem;			/* bytes of memory of the GPU; 0: no quota */
	struct args_texts rules;	/* PATTERN=SET, valid until the process ends */
};

struct plan_file {
	uint64_t topology_hash;
	char pci[20];			/* "": not known */
	unsigned int nr;
	struct plan_file_tenant tenants[GPUPART_PLAN_MAX_TENANTS];
};

/*
 * @within is the set that was divided among the tenants. For each tenant, @mem has a quota, and
 * @rules has rules. If @mem is NULL or a quota is 0, there is no quota. If @rules is NULL, there
 * are no rules. The limit of the outer run is @limit, or NULL.
 */
json_t *plan_file_json(const struct gpupart_topology *topo, const struct gpupart_plan *plan,
		       const struct gpupart_tpcset *within, const struct gpupart_tpcset *limit,
		       const uint64_t *mem, const struct args_texts *rules, bool simulated);

/* Reads the whole plan at @path; "-" is standard input. Returns 0 or an exit status. */
int plan_file_read(const char *path, struct plan_file *file);

/*
 * @words is "FILE:NAME". Reads the plan in FILE, and stores the tenant NAME in *tenant. Returns 0
 * or an exit status.
 */
int plan_file_read_one(const char *words, struct plan_file *file,
		       const struct plan_file_tenant **tenant);

/*
 * Checks that the plan is for @topo, and that @topo has all TPCs of the plan's sets. The value of
 * --plan is @words. Returns 0 or an exit status.
 */
int plan_file_check(const char *words, const struct gpupart_topology *topo,
		    const struct plan_file *file);

#endif
