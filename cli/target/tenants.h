/* SPDX-License-Identifier: MIT */
/* Tenants: their memory quotas and their use of memory. */
#ifndef GPUPART_CLI_TARGET_TENANTS_H
#define GPUPART_CLI_TARGET_TENANTS_H

#include "cli/target/args.h"
#include "cli/util/out.h"

struct tenants {
	struct gpupart_tenant *list;
	struct gpupart_tenant_process *processes;
	int nr, nr_processes;
};

/* Lists all tenants. Returns 0 or an error. tenants_drop() frees the lists. */
int tenants_take(struct tenants *tenants);
void tenants_drop(struct tenants *tenants);

/* Prints a row for each tenant and GPU. Prints nothing if there are no tenants. */
void tenants_print(struct out *out, const struct tenants *tenants);
json_t *tenants_json(const struct tenants *tenants);

/*
 * Formats a size such as "20 GiB", "1.5 GiB" or "700 bytes". Rounds the size down. Returns @text.
 */
#define TENANTS_SIZE_STRLEN 32
const char *tenants_size(char text[TENANTS_SIZE_STRLEN], uint64_t bytes);

/* If the tenant uses more than its quota, prints the consequences on stderr. */
void tenants_note_above(const struct gpupart_tenant *tenant);

/*
 * Checks a quota of @bytes for the GPU at @pci, which has @memory bytes (0: not known). Returns 0
 * or an error. If the quota is less than the context overhead, only prints a remark.
 */
int tenants_check_size(const char *pci, uint64_t memory, uint64_t bytes);

/*
 * Changes the quota of tenant @name. If @name is NULL, changes the quota of the tenant of process
 * @pid. The change is for all GPUs of the tenant, or for the GPU of --gpu. Prints the old and the
 * new quota. Returns 0 or an error.
 */
int tenants_set(const struct args *args, const char *name, const char *pid, uint64_t bytes);

#endif
