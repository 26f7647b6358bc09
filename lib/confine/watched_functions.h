/* SPDX-License-Identifier: MIT */
/*
 * Observes the start and end of two kinds of driver functions, and calls the code that handles
 * them. The library uses functions of the first kind to find out to which stream, graph or
 * capture a launch belongs. Functions of the second kind report SMs.
 */
#ifndef GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H

#include "lib/driver/cuda.h"

/*
 * Starts observing functions that create and launch graphs. If the process reports to a run, the
 * function also observes driver functions that wait. *@launched is the driver's result for
 * cuGraphLaunch. Returns 0 or an error as driver_observe() does.
 */
int api_watch(struct gpupart *gp, const struct cuda_api *api, int *launched);

/*
 * Starts observing launch functions. After api_watch(), this function may be called any number
 * of times.
 */
void api_watch_launches(void);

/*
 * Starts observing the functions that rules by kernel name need. -EOPNOTSUPP: this driver does
 * not report launches or names.
 */
int api_watch_names(struct gpupart *gp);

/*
 * The driver may report another function with the number of a launch function. In this case,
 * returns the name of the launch function, and its number in *@cbid. Otherwise returns NULL.
 */
const char *api_other_launch(int *cbid);

/*
 * Called after the calling thread has called cuLaunchKernel. Returns true if the driver reported
 * the start and the end of that call.
 */
bool api_launch_told(void);

/*
 * Makes launch functions fail after a call of api_left_limit(). If @refuse is true, launch
 * functions and functions that create contexts fail from now on. Returns 0 or an error as
 * driver_observe() does. -EOPNOTSUPP: the driver does not report calls.
 */
int api_strict(struct gpupart *gp, const struct cuda_api *api, bool refuse);
/* Called in the launch callback if a launch is outside its limit. */
void api_left_limit(void);

/*
 * Starts to refuse modules whose kernels can launch other kernels. Call this function after
 * api_watch(). If a call loads such a module, the library unloads the module before this call
 * ends, and the call fails. If a module cannot be unloaded, launches of its kernels fail.
 * -EOPNOTSUPP: the driver does not report modules or calls.
 */
int api_refuse_parents(struct gpupart *gp);
/*
 * Called in the callback for a loaded module if the module's kernels can launch other kernels.
 * @name is the name of one of these kernels.
 */
void api_module_launches(const char *name);

#endif
