/* SPDX-License-Identifier: MIT */
/*
 * Observes the start and the end of driver functions, and calls the code that handles these
 * functions. Some functions show to which stream, graph or capture a launch belongs.
 */
#ifndef GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H

#include "lib/driver/cuda.h"

/*
 * Starts observing driver functions that create and launch graphs. If the process reports to a
 * run, this code also observes driver functions that wait. Sets *launched to the driver's result
 * for cuGraphLaunch. Returns 0 or an error of driver_observe().
 */
int api_watch(struct gpupart *gp, const struct cuda_api *api, int *launched);

/*
 * Starts observing launch functions. Call api_watch() before this function. The function may be
 * called several times.
 */
void api_watch_launches(void);

/*
 * Starts observing the driver functions that rules for kernel names need. If the driver does not
 * report launches or names, returns -EOPNOTSUPP.
 */
int api_watch_names(struct gpupart *gp);

/*
 * In an unknown driver, the number of a launch function may belong to another function. Then this
 * function returns the name of the launch function, and sets *cbid to the number. Otherwise it
 * returns NULL.
 */
const char *api_other_launch(int *cbid);

/*
 * Call this function after a cuLaunchKernel in the same thread. If the driver reported the start
 * and the end of that call, this function returns true.
 */
bool api_launch_reported(void);

/*
 * After this call, a call of api_left_limit() makes all later launches fail. If @refuse is true,
 * launches and functions that create contexts fail at once. Returns 0 or an error of
 * driver_observe(). If the driver does not report calls, returns -EOPNOTSUPP.
 */
int api_strict(struct gpupart *gp, const struct cuda_api *api, bool refuse);
/* Called in the launch callback if a launch is outside the limit. */
void api_left_limit(void);

/*
 * Starts to refuse modules whose kernels can launch other kernels. Call this function after
 * api_watch(). If a driver call loads such a module, the library unloads the module, and the
 * driver call fails. If a module cannot be unloaded, launches of its kernels fail. If the driver
 * does not report modules or calls, the function returns -EOPNOTSUPP.
 */
int api_refuse_parents(struct gpupart *gp);
/*
 * Called in the callback for a loaded module. The module has kernels that can launch other
 * kernels. One of these kernels is @name.
 */
void api_module_launches(const char *name);

#endif
