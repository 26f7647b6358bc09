/* SPDX-License-Identifier: MIT */
/* Tenants, their quotas of GPUs' memory and what they use of it. */
#ifndef GPUPART_CLI_TARGET_TENANTS_H
#define GPUPART_CLI_TARGET_TENANTS_H

#include "cli/target/args.h"
#include "cli/util/out.h"

struct tenants {
	struct gpupart_tenant *list;
	struct gpupart_tenant_process *processes;
	int nr, nr_processes;
};

/* All that the library shows: 0, or an error. The caller gives it back. */
int tenants_take(struct tenants *tenants);
void tenants_drop(struct tenants *tenants);

/* A row a tenant and GPU; nothing where there is no tenant. */
void tenants_print(struct out *out, const struct tenants *tenants);
json_t *tenants_json(const struct tenants *tenants);

/* "20 GiB", "1.5 GiB", "700 bytes": exact where that is short. Returns @text. */
#define TENANTS_SIZE_STRLEN 32
const char *tenants_size(char text[TENANTS_SIZE_STRLEN], uint64_t bytes);

/* The tenant uses more than it may: what that means, on stderr. Nothing where it does not. */
void tenants_note_above(const struct gpupart_tenant *tenant);

/*
 * Whether @bytes can be a quota of the GPU at @pci, which has @memory (0: not known): 0, or
 * an error. Less than a context takes is noted, and taken.
 */
int tenants_check_size(const char *pci, uint64_t memory, uint64_t bytes);

/*
 * Gives a tenant that is there another quota: the one called @name or, where that is NULL,
 * the one of the process whose number is @pid. On all its GPUs or the one of --gpu. Prints
 * old and new: 0, or an error.
 */
int tenants_set(const struct args *args, const char *name, const char *pid, uint64_t bytes);

#endif
