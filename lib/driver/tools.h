/* SPDX-License-Identifier: MIT */
/*
 * Lets one tool that subscribes after us (a profiler by CUPTI) have its callbacks through our
 * subscription: the driver has one place for a subscriber. The only code that replaces entries of
 * the driver's table, in this process alone.
 */
#ifndef GPUPART_LIB_DRIVER_TOOLS_H
#define GPUPART_LIB_DRIVER_TOOLS_H

#include "lib/driver/table.h"

/*
 * What is to be subscribed in place of @ours, which is then called for what we enabled through the
 * table of tools_let_in(). A tool is called first where something begins and last where it ends. It
 * is not told of launches and API calls of which @own says that they are the library's.
 */
driver_callback_fn tools_callback(driver_callback_fn ours, bool (*own)(void));

/*
 * From now on a tool that subscribes is let in. Once a process, before anything is enabled: the
 * enable() of @table is replaced by one that knows what the tool enabled. -EACCES its memory cannot
 * be made writable: nothing is changed, and the driver refuses tools as ever.
 */
int tools_let_in(struct gpupart *gp, struct driver_table *table);

/* Nobody is let in any more. 0 also where nobody was; -EBUSY a tool is subscribed. */
int tools_shut_out(struct gpupart *gp);

#endif
