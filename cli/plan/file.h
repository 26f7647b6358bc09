/* SPDX-License-Identifier: MIT */
/* A plan as JSON: written by plan, read by run and cdi. */
#ifndef GPUPART_CLI_PLAN_FILE_H
#define GPUPART_CLI_PLAN_FILE_H

#include "cli/util/options.h"
#include "cli/util/out.h"

/* The parts of a tenant that run and cdi need. */
struct plan_file_tenant {
	char name[64];
	char set[GPUPART_TPCSET_STRLEN];	/* list form */
	struct gpupart_tpcset tpcs;	/* the same TPCs */
	uint64_t mem;			/* bytes of its GPU; 0: no quota */
	struct args_texts rules;	/* PATTERN=SET, valid until the process ends */
};

struct plan_file {
	uint64_t topology_hash;
	char pci[20];			/* "": the source of the plan did not report it */
	unsigned int nr;
	struct plan_file_tenant tenants[GPUPART_PLAN_MAX_TENANTS];
};

/*
 * @within: the TPCs that were planned; @limit: the limit of the surrounding run, or NULL; @mem:
 * the quota of each tenant, 0: none; @rules: their rules by kernel name.
 */
json_t *plan_file_json(const struct gpupart_topology *topo, const struct gpupart_plan *plan,
		       const struct gpupart_tpcset *within, const struct gpupart_tpcset *limit,
		       const uint64_t *mem, const struct args_texts *rules, bool simulated);

/* Reads the whole plan at @path; "-" is standard input. Returns 0 or an exit status. */
int plan_file_read(const char *path, struct plan_file *file);

/*
 * @words is "FILE:NAME". Reads the plan; *tenant is the tenant of that name. Returns 0 or an
 * exit status.
 */
int plan_file_read_one(const char *words, struct plan_file *file,
		       const struct plan_file_tenant **tenant);

/*
 * Checks that the plan belongs to @topo and that no set exceeds it. @words is the value of
 * --plan. Returns 0 or an exit status.
 */
int plan_file_check(const char *words, const struct gpupart_topology *topo,
		    const struct plan_file *file);

#endif
