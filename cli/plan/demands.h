/* SPDX-License-Identifier: MIT */
/* What tenants ask for, as words or from a YAML file. */
#ifndef GPUPART_CLI_PLAN_DEMANDS_H
#define GPUPART_CLI_PLAN_DEMANDS_H

#include <gpupart_manage.h>
#include "cli/util/options.h"

#define DEMANDS_TEXT 1088	/* 16 names of 63 letters, joined */

struct demands {
	unsigned int nr;
	struct gpupart_demand list[GPUPART_PLAN_MAX_TENANTS];
	struct {
		char name[64], same[DEMANDS_TEXT], apart[DEMANDS_TEXT];
	} texts[GPUPART_PLAN_MAX_TENANTS];
	uint64_t mem[GPUPART_PLAN_MAX_TENANTS];	/* bytes of each GPU; 0: no quota */
	struct args_texts rules[GPUPART_PLAN_MAX_TENANTS];	/* PATTERN=SET; copies */
};

/* Adds "NAME:KEY=VALUE,KEY,.." (--tenant): 0, or an error. */
int demands_add(struct demands *demands, const char *text);

/* Adds those of a file; likewise. What is wrong is told with its line and key. */
int demands_read(struct demands *demands, const char *path);

#endif
