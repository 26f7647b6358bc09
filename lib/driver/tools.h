/* SPDX-License-Identifier: MIT */
/*
 * Passes callbacks on to one tool that subscribes after the library, such as a profiler that
 * uses CUPTI. The driver accepts only one subscriber, so the tool gets its callbacks through the
 * library's subscription. No other code replaces entries of the driver's table. The entries are
 * replaced only in this process.
 */
#ifndef GPUPART_LIB_DRIVER_TOOLS_H
#define GPUPART_LIB_DRIVER_TOOLS_H

#include "lib/driver/table.h"

/*
 * Returns a callback, which the caller must subscribe instead of @ours. This callback calls
 * @ours for events that the library enabled through the table of tools_let_in(). At the start of
 * a function, the tool is called before @ours. At the end of the function, the tool is called
 * after @ours. @own returns true for launches and calls of the library, and the tool is not
 * called for them.
 */
driver_callback_fn tools_callback(driver_callback_fn ours, bool (*own)(void));

/*
 * Allows tools to subscribe from now on. Call this function one time per process, before any
 * callback is enabled. The function replaces the enable() of @table. The new enable() does not
 * disable callbacks that the tool enabled. -EACCES: the memory of the table cannot be made
 * writable. In this case nothing is changed, and the driver refuses tools as usual.
 */
int tools_let_in(struct gpupart *gp, struct driver_table *table);

/*
 * Tools can no longer subscribe after this call. Returns 0 even if tools could not subscribe
 * before. -EBUSY: a tool is subscribed.
 */
int tools_shut_out(struct gpupart *gp);

#endif
