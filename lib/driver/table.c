// SPDX-License-Identifier: MIT
/*
 * Finds the driver's table of callbacks. Drivers have tables of different sizes, so the library
 * recognises the table by the behaviour of its entries. Drivers 450 to 555 and 580.159.04 have
 * tables of 72 to 96 bytes. Slots that exist in all these tables behave in the same way.
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

#define SLOTS_NEEDED	(SLOT_ENABLE + 1)
#define MAX_TABLE_BYTES	1024	/* much larger than any known table */

/* if the subscriber does not declare this feature, the driver refuses green contexts */
#define FEATURE_GREEN	7

#define NR_LAUNCH_CBIDS	4	/* in every driver, DRIVER_DOMAIN_LAUNCH has callbacks 0 to 3 */

struct slots {
	void (*entry[NR_SLOTS])(void);	/* entries beyond the end of the table are NULL */
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
				"this driver's callback table has an unknown size of %llu bytes: must be a multiple of 8 from %zu to %d",
				(unsigned long long)size, SLOTS_NEEDED * sizeof(void *),
				MAX_TABLE_BYTES);
	*bytes = size;
	if (size > sizeof(*slots))
		size = sizeof(*slots);
	if (peek(found, slots, size) != size)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table at %p is shorter than the %zu bytes that it reports",
				found, *bytes);
	if (!slots->entry[SLOT_SUBSCRIBE] || !slots->entry[SLOT_UNSUBSCRIBE] ||
	    !slots->entry[SLOT_ENABLE])
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver's callback table lacks at least one of the entries %d, %d and %d",
				SLOT_SUBSCRIBE, SLOT_UNSUBSCRIBE, SLOT_ENABLE);
	return 0;
}

/*
 * Checks that launch callbacks 0 to 3 can be enabled and disabled, and that there is no launch
 * callback 4.
 */
static int recognise(struct gpupart *gp, const struct driver_table *table)
{
	for (int cbid = 0; cbid <= NR_LAUNCH_CBIDS; cbid++) {
		int wanted = cbid < NR_LAUNCH_CBIDS ? 0 : CUDA_ERROR_INVALID_VALUE;
		int on = table->enable(1, table->handle, DRIVER_DOMAIN_LAUNCH, cbid);
		int off = table->enable(0, table->handle, DRIVER_DOMAIN_LAUNCH, cbid);

		if (on != wanted || off != wanted)
			return ctx_fail(gp, -EOPNOTSUPP,
					"this driver's callback table of %zu bytes is unknown: enabling and disabling launch callback %d returned %d and %d instead of %d",
					table->bytes, cbid, on, off, wanted);
	}
	return 0;
}

/* Declares features of the library. Skips features that the table does not know. */
static void declare(const struct slots *slots, struct driver_table *table)
{
	int (*features)(uint32_t *, uint32_t, uint32_t);
	int (*feature)(uint32_t, uint32_t, uint32_t);
	uint32_t count = 0;

	memcpy(&features, &slots->entry[SLOT_FEATURES], sizeof(features));
	memcpy(&feature, &slots->entry[SLOT_FEATURE], sizeof(feature));
	table->nr_features = features && !features(&count, 0, table->handle) ? (int)count : -1;
	table->green = feature && table->nr_features > FEATURE_GREEN &&
		       !feature(1, table->handle, FEATURE_GREEN);
}

int driver_subscribe(struct gpupart *gp, const struct cuda_api *api, driver_callback_fn callback,
		     struct driver_table *table)
{
	int (*subscribe)(uint32_t *, driver_callback_fn, void *);
	const void *found = NULL;
	struct slots slots;
	int err, result;

	result = api->export_table(&found, table_uuid);
	if (result || !found)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver offers no launch callback: cuGetExportTable: %s",
				cuda_strerror(api, result));
	table->at = found;
	err = slots_read(gp, found, &slots, &table->bytes);
	if (err)
		return err;
	memcpy(&subscribe, &slots.entry[SLOT_SUBSCRIBE], sizeof(subscribe));
	memcpy(&table->unsubscribe, &slots.entry[SLOT_UNSUBSCRIBE], sizeof(table->unsubscribe));
	memcpy(&table->enable, &slots.entry[SLOT_ENABLE], sizeof(table->enable));
	result = subscribe(&table->handle, callback, NULL);
	if (result == CUDA_ERROR_ALREADY_ACQUIRED)
		return ctx_fail(gp, -EBUSY,
				"another tool is already attached to the CUDA driver, and the driver accepts only one; it is a profiler (CUPTI, ncu) or a second gpupart");
	if (result)
		return ctx_fail(gp, -EOPNOTSUPP, "this driver refused a launch callback: %s",
				cuda_strerror(api, result));
	err = recognise(gp, table);
	if (!err) {
		declare(&slots, table);
		return 0;
	}
	result = table->unsubscribe(table->handle);
	return result ? ctx_fail_because(gp, err,
			"the subscription stays until the process ends: entry %d of the driver's callback table returned %d",
			SLOT_UNSUBSCRIBE, result) : err;
}
