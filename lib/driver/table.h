/* SPDX-License-Identifier: MIT */
/*
 * Finds the driver's table of callbacks and subscribes. Checks that the entries of the table
 * behave as in the measured tables.
 */
#ifndef GPUPART_LIB_DRIVER_TABLE_H
#define GPUPART_LIB_DRIVER_TABLE_H

#include <gpupart.h>
#include "lib/driver/cuda.h"

#define DRIVER_DOMAIN_RESOURCE	2
#define DRIVER_DOMAIN_API	6
#define DRIVER_DOMAIN_LAUNCH	0xb

/*
 * The slots that the library uses. A table may be so short that it lacks some of these slots.
 * Source: hardware.md, "Callback".
 */
enum slot {
	SLOT_BYTES = 0,
	SLOT_SUBSCRIBE = 3,		/* (uint32_t *handle, callback, void *user) */
	SLOT_UNSUBSCRIBE = 4,		/* (uint32_t handle) */
	SLOT_ENABLE = 6,		/* (uint32_t on, uint32_t handle, int domain, int cbid) */
	SLOT_ENABLE_DOMAIN = 7,		/* (uint32_t on, uint32_t handle, int domain) */
	SLOT_ENABLE_ALL = 8,		/* (uint32_t on, uint32_t handle) */
	SLOT_FEATURE = 9,		/* (1, uint32_t handle, uint32_t feature): declares that
					 * the tool supports the feature */
	SLOT_FEATURES = 10,		/* (uint32_t *count, 0, uint32_t handle) */
	SLOT_SUBSCRIBE_NAMED = 11,	/* the arguments of subscribe, followed by const char
					 * *name, char *other, size_t len */
	NR_SLOTS,
};

typedef void (*driver_callback_fn)(void *user, int domain, int cbid, const void *params);
typedef int (*driver_enable_fn)(uint32_t on, uint32_t handle, int domain, int cbid);

struct driver_table {
	const void *at;		/* the table in the driver, at a constant address */
	size_t bytes;		/* size of the table; slot 0 contains this size */
	int nr_features;	/* -1: this table has no slot for this number */
	/* green contexts can be created although the library is subscribed */
	bool green;
	uint32_t handle;	/* of the subscription */
	driver_enable_fn enable;
	int (*unsubscribe)(uint32_t handle);
};

/*
 * Subscribes to the driver. Works before cuInit. The function enables no callback. If it fails,
 * there is no subscription. -EOPNOTSUPP: the driver's table is not as expected. The error
 * sentence gives the difference. -EBUSY: another tool is subscribed, and the driver accepts only
 * one tool. The function takes no lock and must be called only one time.
 */
int driver_subscribe(struct gpupart *gp, const struct cuda_api *api, driver_callback_fn callback,
		     struct driver_table *table);

#endif
