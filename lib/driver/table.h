/* SPDX-License-Identifier: MIT */
/*
 * The driver's table of callbacks: finds it, subscribes, and proves by what it accepts that
 * it is the table that was measured. Knows no driver version and no parameters.
 */
#ifndef GPUPART_LIB_DRIVER_TABLE_H
#define GPUPART_LIB_DRIVER_TABLE_H

#include <gpupart.h>
#include "lib/driver/cuda.h"

#define DRIVER_DOMAIN_LAUNCH	0xb

typedef void (*driver_callback_fn)(void *user, int domain, int cbid, const void *params);
typedef int (*driver_enable_fn)(uint32_t on, uint32_t handle, int domain, int cbid);

struct driver_table {
	size_t bytes;		/* of the table, as its slot 0 says */
	int nr_features;	/* -1: this table has no slot that tells */
	uint32_t handle;	/* of the subscription */
	driver_enable_fn enable;
	int (*unsubscribe)(uint32_t handle);
};

/*
 * Subscribes; works before cuInit. Nothing is enabled afterwards, and nothing is subscribed
 * after a failure: -EOPNOTSUPP with what was found instead, -EBUSY where another tool has the
 * driver's one place. No lock; the caller calls it once.
 */
int driver_subscribe(struct gpupart *gp, const struct cuda_api *api, driver_callback_fn callback,
		     struct driver_table *table);

#endif
