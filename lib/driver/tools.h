/* SPDX-License-Identifier: MIT */
/*
 * Passes callbacks to one tool that subscribes after the library, for example a profiler that
 * uses CUPTI. The driver accepts one subscriber, so the tool shares the library's subscription.
 * No other code replaces entries of the driver's table. Other processes keep their original
 * entries.
 */
#ifndef GPUPART_LIB_DRIVER_TOOLS_H
#define GPUPART_LIB_DRIVER_TOOLS_H

#include "lib/driver/table.h"

/*
 * Returns a callback. The caller must subscribe this callback instead of @ours. It calls @ours
 * for events that the library enabled through the table of tools_let_in(). At the start of a
 * driver function, the tool is called before @ours. At the end of the function, the tool is
 * called after @ours. For launches and calls of the library, the function @own returns true, and
 * the tool is not called.
 */
driver_callback_fn tools_callback(driver_callback_fn ours, bool (*own)(void));

/*
 * Allows tools to subscribe after this call. Call this function one time per process, and before
 * any callback is enabled. It replaces the enable() of @table. The new enable() does not disable
 * callbacks that the tool enabled. If the memory of the table cannot be made writable, the
 * function changes nothing and returns -EACCES. The driver then refuses tools as usual.
 */
int tools_let_in(struct gpupart *gp, struct driver_table *table);

/*
 * After this call, tools can no longer subscribe. If a tool is subscribed, the function changes
 * nothing and returns -EBUSY. If tools could not subscribe before, the function returns 0.
 */
int tools_shut_out(struct gpupart *gp);

#endif
