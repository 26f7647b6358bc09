/* SPDX-License-Identifier: MIT */
/* Prints the memory quota and the used memory of each tenant. Changes quotas. */
#ifndef GPUPART_CLI_TARGET_TENANTS_H
#define GPUPART_CLI_TARGET_TENANTS_H

#include "cli/target/args.h"
#include "cli/util/out.h"

struct tenants {
	struct gpupart_tenant *list;
	struct gpupart_tenant_process *processes;
	int nr, nr_processes;
};

/* Lists all tenants. Returns 0 or an error. Call tenants_drop() to free the lists. */
int tenants_take(struct tenants *tenants);
void tenants_drop(struct tenants *tenants);

/* Prints a row for each tenant and GPU. Prints nothing if there are no tenants. */
void tenants_print(struct out *out, const struct tenants *tenants);
json_t *tenants_json(const struct tenants *tenants);

/*
 * Formats a size. Examples are "20 GiB", "1.5 GiB" and "700 bytes". Rounds the size down. Returns
 * @text.
 */
#define TENANTS_SIZE_STRLEN 32
const char *tenants_size(char text[TENANTS_SIZE_STRLEN], uint64_t bytes);

/* If the tenant uses more than its quota, prints the consequences on stderr. */
void tenants_note_above(const struct gpupart_tenant *tenant);

/*
 * Checks a quota of @bytes bytes for the GPU at @pci. The GPU has @memory bytes. If its size is not
 * known, @memory is 0. If the quota is less than a CUDA context needs, prints a remark and returns
 * 0. Otherwise returns 0 or an error.
 */
int tenants_check_size(const char *pci, uint64_t memory, uint64_t bytes);

/*
 * Changes the quota of tenant @name. If @name is NULL, changes the quota of the tenant that
 * contains process @pid. Without --gpu, the change is for all GPUs of the tenant. Prints the old
 * quota and the new quota. Returns 0 or an error.
 */
int tenants_set(const struct args *args, const char *name, const char *pid, uint64_t bytes);

#endif
