/* SPDX-License-Identifier: MIT */
/*
 * Lets one tool that subscribes after us (a profiler that uses CUPTI) get its callbacks through
 * our subscription, because the driver accepts one subscriber. This is the only code that
 * replaces entries of the driver's table, in this process only.
 */
#ifndef GPUPART_LIB_DRIVER_TOOLS_H
#define GPUPART_LIB_DRIVER_TOOLS_H

#include "lib/driver/table.h"

/*
 * Returns the callback to subscribe instead of @ours, which it calls for events that we enabled
 * through the table of tools_let_in(). The tool is called first at a begin and last at an end.
 * Launches and calls for which @own returns true are the library's and are hidden from the
 * tool.
 */
driver_callback_fn tools_callback(driver_callback_fn ours, bool (*own)(void));

/*
 * Lets tools subscribe from now on. Call it once per process, before any callback is enabled:
 * it replaces the enable() of @table by one that respects what the tool enabled. -EACCES: its
 * memory cannot be made writable; nothing is changed, and the driver refuses tools as usual.
 */
int tools_let_in(struct gpupart *gp, struct driver_table *table);

/* Stops letting tools in. Returns 0 also if that was not on; -EBUSY: a tool is subscribed. */
int tools_shut_out(struct gpupart *gp);

#endif
