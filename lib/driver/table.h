/* SPDX-License-Identifier: MIT */
/*
 * Finds the driver's table of callbacks and subscribes. Checks that the entries of the table
 * behave like the entries of measured tables.
 */
#ifndef GPUPART_LIB_DRIVER_TABLE_H
#define GPUPART_LIB_DRIVER_TABLE_H

#include <gpupart.h>
#include "lib/driver/cuda.h"

#define DRIVER_DOMAIN_RESOURCE	2
#define DRIVER_DOMAIN_API	6
#define DRIVER_DOMAIN_LAUNCH	0xb

/*
 * The slots that the library uses. Short tables lack some of these slots. Source: hardware.md,
 * "Callback".
 */
enum slot {
	SLOT_BYTES = 0,
	SLOT_SUBSCRIBE = 3,		/* (uint32_t *handle, callback, void *user) */
	SLOT_UNSUBSCRIBE = 4,		/* (uint32_t handle) */
	SLOT_ENABLE = 6,		/* (uint32_t on, uint32_t handle, int domain, int cbid) */
	SLOT_ENABLE_DOMAIN = 7,		/* (uint32_t on, uint32_t handle, int domain) */
	SLOT_ENABLE_ALL = 8,		/* (uint32_t on, uint32_t handle) */
	SLOT_FEATURE = 9,		/* (1, uint32_t handle, uint32_t feature): declares a
					 * feature that the subscriber supports */
	SLOT_FEATURES = 10,		/* (uint32_t *count, 0, uint32_t handle) */
	SLOT_SUBSCRIBE_NAMED = 11,	/* the arguments of SLOT_SUBSCRIBE, then const char
					 * *name, char *other, size_t len */
	NR_SLOTS,
};

typedef void (*driver_callback_fn)(void *user, int domain, int cbid, const void *params);
typedef int (*driver_enable_fn)(uint32_t on, uint32_t handle, int domain, int cbid);

struct driver_table {
	const void *at;		/* the table in the driver, at a constant address */
	size_t bytes;		/* size of the table; slot 0 contains this size */
	int nr_features;	/* number of features; -1: the table has no slot for this number */
	/* while the library is subscribed, programs can create green contexts */
	bool green;
	uint32_t handle;	/* the handle of the subscription */
	driver_enable_fn enable;
	int (*unsubscribe)(uint32_t handle);
};

/*
 * Subscribes to the driver. The function can be called before cuInit, and must not be called
 * twice. The function takes no lock and enables no callback. If the function fails, there is no
 * subscription. If the driver's table is unknown, the function returns -EOPNOTSUPP, and the error
 * sentence describes the difference. The driver accepts one tool. If another tool is subscribed,
 * the function returns -EBUSY.
 */
int driver_subscribe(struct gpupart *gp, const struct cuda_api *api, driver_callback_fn callback,
		     struct driver_table *table);

#endif
