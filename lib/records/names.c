// SPDX-License-Identifier: MIT
/*
 * Asks the driver for the names of the functions in the totals. This code runs outside the launch
 * callback. It skips each function whose module was unloaded, because another function may now have
 * the same address.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "lib/records/records.h"

#define PATIENCE	100000	/* maximum number of attempts to acquire the lock, which each
				 * thread holds for a very short time */
#define GONE		1	/* if this bit of a key is set, the key's function may
				 * be unloaded */

atomic_bool records_unnamed;
/* Number of threads that are asking the driver for a name. */
static atomic_uint nr_naming;

bool records_totals_lock(struct records *records)
{
	for (int i = 0; i < PATIENCE; i++) {
		if (records_totals_try(records))
			return true;
		sched_yield();
	}
	return false;
}

static void name_one(struct state_function *f, struct records *records,
		     const struct cuda_api *cuda)
{
	const char *name;
	uint64_t key;

	if (records && !records_totals_lock(records))
		return;
	key = f->name[0] ? 0 : f->key;
	if (records)
		records_totals_unlock(records, records->shown);
	if (!key || key & GONE ||
	    cuda->func_name(&name, (void *)(uintptr_t)key) || !name ||
	    (records && !records_totals_lock(records)))
		return;
	if (f->key == key)
		snprintf(f->name, sizeof(f->name), "%s", name);
	if (records)
		records_totals_unlock(records, records->shown);
}

void records_names(struct state_function *functions, struct records *records,
		   const struct cuda_api *cuda)
{
	bool was;

	if (!cuda || !cuda->func_name)
		return;
	was = driver_own(true);
	/*
	 * Count this thread before it reads the keys. Then any thread that removes a key waits for
	 * this thread.
	 */
	atomic_fetch_add(&nr_naming, 1);
	for (unsigned int i = 0; i < STATE_NR_FUNCTIONS; i++)
		name_one(&functions[i], records, cuda);
	atomic_fetch_sub(&nr_naming, 1);
	driver_own(was);
}

/* Skips the launches that are not in the totals yet. */
static void forget_rings(struct records *records)
{
	for (unsigned int n = 0; records->section && n < STATE_NR_RINGS; n++) {
		struct records_ring *ring = &records->rings[n];
		uint64_t seq = atomic_load(&ring->issued), left = ring->mask + 1;

		for (; left && seq != records_folded(ring); left--, seq--)
			atomic_fetch_or(&ring->notes[seq & ring->mask].function, GONE);
	}
}

void records_module_gone(struct records *records)
{
	forget_rings(records);
	if (records_totals_lock(records)) {
		for (unsigned int i = 0; i < STATE_NR_FUNCTIONS; i++)
			if (records->shown->functions[i].key)
				records->shown->functions[i].key |= GONE;
		records_totals_unlock(records, records->shown);
	}
	/*
	 * Do not wait long. Another thread may be asking for a name, and its call may wait until
	 * this unload ends.
	 */
	for (int i = 0; i < PATIENCE && atomic_load(&nr_naming); i++)
		sched_yield();
}
