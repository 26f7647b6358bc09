/* SPDX-License-Identifier: MIT */
/*
 * Passes callbacks on to one tool that subscribes after the library, such as a profiler that
 * uses CUPTI. The driver accepts only one subscriber, so the tool gets its callbacks through the
 * library's subscription. Only this code replaces entries of the driver's table, and it does so
 * in this process only.
 */
#ifndef GPUPART_LIB_DRIVER_TOOLS_H
#define GPUPART_LIB_DRIVER_TOOLS_H

#include "lib/driver/table.h"

/*
 * Returns a callback, which the caller must subscribe instead of @ours. This callback calls
 * @ours for events that the library enabled through the table of tools_let_in(). The tool is
 * called before @ours at the begin of a function, and after @ours at its end. If @own returns
 * true for a launch or call, it is a launch or call of the library, and the tool is not called.
 */
driver_callback_fn tools_callback(driver_callback_fn ours, bool (*own)(void));

/*
 * Lets tools subscribe from now on. Call it one time per process, before any callback is
 * enabled. It replaces the enable() of @table by a function that keeps the callbacks enabled
 * that the tool enabled. -EACCES: the memory of the table cannot be made writable; nothing is
 * changed, and the driver refuses tools as usual.
 */
int tools_let_in(struct gpupart *gp, struct driver_table *table);

/*
 * Stops letting tools subscribe. Returns 0 even if tools could not subscribe before. -EBUSY: a
 * tool is subscribed.
 */
int tools_shut_out(struct gpupart *gp);

#endif
