/* SPDX-License-Identifier: MIT */
/* Leaves a tenant's ledger while the process continues, which no program does. */
#ifndef TESTS_LEDGER_LEAVE_H
#define TESTS_LEDGER_LEAVE_H

#include <stdio.h>
#include <sys/mman.h>
#include "lib/ledger/file.h"

/*
 * Frees the slot with its charges, and @ledger. @remove: also removes the file if no process is
 * left in it; a tenant that outlives its processes keeps its quotas there.
 */
static inline void ledger_leave(struct ledger *ledger, bool remove)
{
	char tenant[LEDGER_NAME_LEN];

	if (!ledger)
		return;
	snprintf(tenant, sizeof(tenant), "%s", ledger->tenant);
	if (ledger->block) {
		for (int gpu = 0; gpu < LEDGER_MAX_GPUS; gpu++)
			atomic_store(&ledger->slot->gpus[gpu].used, 0);
		/* Unmapping releases the lock: from here on the slot belongs to another process. */
		munmap(ledger->block, sizeof(*ledger->block));
	}
	munmap(ledger, sizeof(*ledger));
	if (remove && tenant[0])
		ledger_sweep(tenant);
}

#endif
