/* SPDX-License-Identifier: MIT */
/*
 * Observes the begin and end of the driver functions that determine what a launch belongs to
 * (launches, graphs, captures) or that report SMs, and passes them on.
 */
#ifndef GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H

#include "lib/driver/cuda.h"

/*
 * Starts observing functions that create and launch graphs and, if the process reports to a
 * run, those that wait. *@launched is the driver's result for cuGraphLaunch. Returns like
 * driver_observe().
 */
int api_watch(struct gpupart *gp, const struct cuda_api *api, int *launched);

/* Starts observing launch functions. May be called any number of times, after api_watch(). */
void api_watch_launches(void);

/*
 * The same for rules by kernel name. -EOPNOTSUPP: this driver does not report launches or
 * names.
 */
int api_watch_names(struct gpupart *gp);

/*
 * The launch function that was expected where the driver has another one, and its number; NULL:
 * none yet.
 */
const char *api_other_launch(int *cbid);

/*
 * Called after a cuLaunchKernel of the calling thread: whether its begin and end were reported.
 */
bool api_launch_told(void);

/*
 * From now on launch functions fail once api_left_limit() was called. @refuse: they, and
 * functions that create contexts, fail at once. Returns like driver_observe(); -EOPNOTSUPP if
 * the driver does not report calls.
 */
int api_strict(struct gpupart *gp, const struct cuda_api *api, bool refuse);
/* For the launch callback: a launch left its limit. */
void api_left_limit(void);

/*
 * Call it after api_watch(). From now on a module whose kernels can launch others is unloaded
 * before the call that loaded it ends, and the call fails; launches of modules that cannot be
 * unloaded fail too. -EOPNOTSUPP: the driver does not report modules or calls.
 */
int api_refuse_parents(struct gpupart *gp);
/* In the callback for a loaded module: its kernels can launch others; one of them is @name. */
void api_module_launches(const char *name);

#endif
