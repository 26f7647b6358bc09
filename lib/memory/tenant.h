/* SPDX-License-Identifier: MIT */
/* The tenant that this process is in. */
#ifndef GPUPART_LIB_MEMORY_TENANT_H
#define GPUPART_LIB_MEMORY_TENANT_H

#include <gpupart.h>
#include "lib/ledger/ledger.h"

/*
 * Where this process's use is told; NULL: gpupart_memory_start() was not called. It stays
 * where it is as long as the process lives; in the child of a fork it is another, from the
 * first call of tenant_gpu() on.
 */
struct ledger *tenant_ledger(void);

/* gpupart_memory_start() but for the counting. */
int tenant_start(struct gpupart *gp, const char *name, uint64_t bytes);

/* gpupart_memory_limit() in a tenant that was started. */
int tenant_limit(struct gpupart *gp, const char *pci, uint64_t bytes);

/*
 * The number of the GPU at @pci in it, which has a quota from now on where one is given for
 * each GPU. A child of a fork joins here. As ledger_gpu(); -ESRCH: we are in no tenant.
 */
int tenant_gpu(const char *pci);

#endif
