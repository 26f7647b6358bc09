// SPDX-License-Identifier: MIT
/*
 * The driver's table of callbacks. It is recognised by what its entries do, not by its size:
 * drivers 450 to 615 have tables of 72 to 96 bytes whose common slots do the same.
 */
#include <errno.h>
#include <string.h>
#include "lib/core/peek.h"
#include "lib/driver/table.h"

/* Measured: Documentation/internals/hardware.md, "Callback"; Documentation/results/drivers.md. */
static const unsigned char table_uuid[16] = {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
};

enum slot {
	SLOT_BYTES = 0,
	SLOT_SUBSCRIBE = 3,	/* (uint32_t *handle, callback, void *user) */
	SLOT_UNSUBSCRIBE = 4,	/* (uint32_t handle) */
	SLOT_ENABLE = 6,
	SLOT_FEATURES = 10,	/* (uint32_t *count, 0, uint32_t handle) */
	NR_SLOTS,		/* those that are used here */
};

#define SLOTS_NEEDED	(SLOT_ENABLE + 1)
#define MAX_TABLE_BYTES	1024	/* far beyond any that was seen: another thing, not a table */

#define NR_LAUNCH_CBIDS	4	/* of DRIVER_DOMAIN_LAUNCH: 0 to 3, in every driver */

struct slots {
	void (*entry[NR_SLOTS])(void);	/* NULL beyond the table's own size */
};

static int slots_read(struct gpupart *gp, const void *found, struct slots *slots, size_t *bytes)
{
	uint64_t size = 0;

	memset(slots, 0, sizeof(*slots));
	if (peek(found, &size, sizeof(size)) != sizeof(size))
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table at %p cannot be read", found);
	if (size % sizeof(void *) || size < SLOTS_NEEDED * sizeof(void *) ||
	    size > MAX_TABLE_BYTES)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table is not one that we know: its size is %llu, not a multiple of 8 from %zu to %d",
				(unsigned long long)size, SLOTS_NEEDED * sizeof(void *),
				MAX_TABLE_BYTES);
	*bytes = size;
	if (size > sizeof(*slots))
		size = sizeof(*slots);
	if (peek(found, slots, size) != size)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table at %p ends before its %zu bytes",
				found, *bytes);
	if (!slots->entry[SLOT_SUBSCRIBE] || !slots->entry[SLOT_UNSUBSCRIBE] ||
	    !slots->entry[SLOT_ENABLE])
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table has no entry %d, %d or %d",
				SLOT_SUBSCRIBE, SLOT_UNSUBSCRIBE, SLOT_ENABLE);
	return 0;
}

/* Callbacks 0 to 3 of a launch can be enabled and disabled; there is no callback 4. */
static int recognise(struct gpupart *gp, const struct driver_table *table)
{
	for (int cbid = 0; cbid <= NR_LAUNCH_CBIDS; cbid++) {
		int wanted = cbid < NR_LAUNCH_CBIDS ? 0 : CUDA_ERROR_INVALID_VALUE;
		int on = table->enable(1, table->handle, DRIVER_DOMAIN_LAUNCH, cbid);
		int off = table->enable(0, table->handle, DRIVER_DOMAIN_LAUNCH, cbid);

		if (on != wanted || off != wanted)
			return ctx_fail(gp, -EOPNOTSUPP,
					"this driver's callback table of %zu bytes is not one that we know: launch callback %d gave %d and %d when enabled and disabled, in place of %d",
					table->bytes, cbid, on, off, wanted);
	}
	return 0;
}

int driver_subscribe(struct gpupart *gp, const struct cuda_api *api, driver_callback_fn callback,
		     struct driver_table *table)
{
	int (*subscribe)(uint32_t *, driver_callback_fn, void *);
	int (*features)(uint32_t *, uint32_t, uint32_t);
	const void *found = NULL;
	uint32_t count = 0;
	struct slots slots;
	int err, result;

	result = api->export_table(&found, table_uuid);
	if (result || !found)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver offers no launch callback: cuGetExportTable: %s",
				cuda_words(api, result));
	err = slots_read(gp, found, &slots, &table->bytes);
	if (err)
		return err;
	memcpy(&subscribe, &slots.entry[SLOT_SUBSCRIBE], sizeof(subscribe));
	memcpy(&table->unsubscribe, &slots.entry[SLOT_UNSUBSCRIBE], sizeof(table->unsubscribe));
	memcpy(&table->enable, &slots.entry[SLOT_ENABLE], sizeof(table->enable));
	memcpy(&features, &slots.entry[SLOT_FEATURES], sizeof(features));
	result = subscribe(&table->handle, callback, NULL);
	if (result == CUDA_ERROR_ALREADY_ACQUIRED)
		return ctx_fail(gp, -EBUSY,
				"another tool has the driver's one place for such: a profiler (CUPTI, ncu), or a second copy of gpupart");
	if (result)
		return ctx_fail(gp, -EOPNOTSUPP, "this driver refused a launch callback: %s",
				cuda_words(api, result));
	err = recognise(gp, table);
	if (!err) {
		table->nr_features =
			features && !features(&count, 0, table->handle) ? (int)count : -1;
		return 0;
	}
	result = table->unsubscribe(table->handle);
	return result ? ctx_fail_because(gp, err,
			"the subscription stays until the process ends, entry %d gave %d",
			SLOT_UNSUBSCRIBE, result) : err;
}
