/* SPDX-License-Identifier: MIT */
/*
 * Leaves a tenant's ledger while the process continues. Real programs leave a ledger at their
 * end.
 */
#ifndef TESTS_LEDGER_LEAVE_H
#define TESTS_LEDGER_LEAVE_H

#include <stdio.h>
#include <sys/mman.h>
#include "lib/ledger/file.h"

/*
 * Frees the slot with its charges, and frees @ledger. If @remove is true and no process is left
 * in the file, also removes the file. A tenant may outlive its processes. Then the file keeps the
 * tenant's quotas.
 */
static inline void ledger_leave(struct ledger *ledger, bool remove)
{
	char tenant[LEDGER_NAME_LEN];

	if (!ledger)
		return;
	snprintf(tenant, sizeof(tenant), "%s", ledger->tenant);
	if (ledger->memory) {
		for (int gpu = 0; gpu < LEDGER_MAX_GPUS; gpu++)
			atomic_store(&ledger->slot->gpus[gpu].used, 0);
		/* The unmap releases the lock. Then another process can own the slot. */
		munmap(ledger->memory, sizeof(*ledger->memory));
	}
	munmap(ledger, sizeof(*ledger));
	if (remove && tenant[0])
		ledger_sweep(tenant);
}

#endif
