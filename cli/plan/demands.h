/* SPDX-License-Identifier: MIT */
/* The demands of tenants, from options or from a YAML file. */
#ifndef GPUPART_CLI_PLAN_DEMANDS_H
#define GPUPART_CLI_PLAN_DEMANDS_H

#include <gpupart_manage.h>
#include "cli/util/options.h"

#define DEMANDS_MAX_RULES 32	/* the limit of gpupart_rule_set() */
#define DEMANDS_TEXT 1088	/* enough for 16 joined names of 63 characters each */

struct demands {
	unsigned int nr;
	struct gpupart_demand list[GPUPART_PLAN_MAX_TENANTS];
	struct {
		char name[64], same[DEMANDS_TEXT], apart[DEMANDS_TEXT];
	} texts[GPUPART_PLAN_MAX_TENANTS];
	uint64_t mem[GPUPART_PLAN_MAX_TENANTS];	/* bytes on each GPU; 0: no quota */
	struct args_texts rules[GPUPART_PLAN_MAX_TENANTS];	/* copies of PATTERN=SET */
};

/*
 * Adds the demands of @text, the value of --tenant: "NAME:KEY=VALUE,KEY,..". Returns 0 or an exit
 * status.
 */
int demands_add(struct demands *demands, const char *text);

/*
 * Adds the demands of a file. Error messages name the line and the key. Returns 0 or an exit
 * status.
 */
int demands_read(struct demands *demands, const char *path);

/* Returns what is wrong with the syntax of @rule, which must be PATTERN=SET, or NULL. */
const char *demands_rule_fault(const char *rule);

#endif
