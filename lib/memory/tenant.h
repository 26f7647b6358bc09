/* SPDX-License-Identifier: MIT */
/* The tenant of this process. */
#ifndef GPUPART_LIB_MEMORY_TENANT_H
#define GPUPART_LIB_MEMORY_TENANT_H

#include <gpupart.h>
#include "lib/ledger/ledger.h"

/*
 * The ledger of this process's tenant; NULL: gpupart_memory_start() was not called. It never
 * moves while the process lives. In the child of a fork it is another one, from the first call
 * of tenant_gpu() on.
 */
struct ledger *tenant_ledger(void);

/* gpupart_memory_start() without the counting. */
int tenant_start(struct gpupart *gp, const char *name, uint64_t bytes);

/* gpupart_memory_limit() in a tenant that was started. */
int tenant_limit(struct gpupart *gp, const char *pci, uint64_t bytes);

/*
 * The index of the GPU at @pci in the ledger. The GPU gets its quota now if there is one for
 * each GPU. The child of a fork joins here. Returns like ledger_gpu(); -ESRCH: this process is
 * in no tenant.
 */
int tenant_gpu(const char *pci);

#endif
