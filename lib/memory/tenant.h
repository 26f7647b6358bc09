/* SPDX-License-Identifier: MIT */
/* The tenant of this process. */
#ifndef GPUPART_LIB_MEMORY_TENANT_H
#define GPUPART_LIB_MEMORY_TENANT_H

#include <gpupart.h>
#include "lib/ledger/ledger.h"

/*
 * Returns the ledger of this process's tenant. If gpupart_memory_start() was not called, returns
 * NULL. The address of the ledger does not change while the process lives. In the child of a fork,
 * the first call of tenant_gpu() creates a new ledger for the child.
 */
struct ledger *tenant_ledger(void);

/* Does the same as gpupart_memory_start(), but does not start to count memory. */
int tenant_start(struct gpupart *gp, const char *name, uint64_t bytes);

/* Does the same as gpupart_memory_limit(), but the caller must have started the tenant. */
int tenant_limit(struct gpupart *gp, const char *pci, uint64_t bytes);

/*
 * Returns the ledger's index of the GPU at @pci. If the tenant has a quota for each GPU, the
 * function sets this quota for the new GPU. The child of a fork joins the ledger in this
 * function. Returns the errors of ledger_gpu(), or -ESRCH if this process belongs to no tenant.
 */
int tenant_gpu(const char *pci);

#endif
