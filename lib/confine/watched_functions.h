/* SPDX-License-Identifier: MIT */
/*
 * The begin and the end of those driver functions that decide what a launch belongs to
 * (launches, graphs, captures) or that tell of SMs. Routes them; knows nothing of sets.
 */
#ifndef GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H
#define GPUPART_LIB_CONFINE_WATCHED_FUNCTIONS_H

#include "lib/driver/cuda.h"

/*
 * The begin and the end of functions that make and launch graphs are seen from now on, and of those
 * that wait where the process reports. *@launched: the driver's result for cuGraphLaunch. As
 * driver_observe().
 */
int api_watch(struct gpupart *gp, const struct cuda_api *api, int *launched);

/* From now on those of launch functions are seen; any number of times, after api_watch(). */
void api_watch_launches(void);

/* The same for rules by kernel name. -EOPNOTSUPP: this driver tells of no launches or no names. */
int api_watch_names(struct gpupart *gp);

/*
 * The launch function that was expected where the driver was seen to have another, and its
 * number; NULL: none yet.
 */
const char *api_other_launch(int *cbid);

/* After a cuLaunchKernel of the calling thread's: whether its begin and end were told of. */
bool api_launch_told(void);

/*
 * From now on launch functions fail once api_left_limit() was called; @refuse: they and what makes
 * contexts fail from now on. As driver_observe(); -EOPNOTSUPP where the driver tells of none.
 */
int api_strict(struct gpupart *gp, const struct cuda_api *api, bool refuse);
/* For the launch callback: a launch left its limit. */
void api_left_limit(void);

/*
 * After api_watch(): from now on a module whose kernels can launch others is unloaded before the
 * call that loaded it ends, which fails; so do launches of what cannot be unloaded. -EOPNOTSUPP
 * where the driver does not tell of modules or functions.
 */
int api_refuse_parents(struct gpupart *gp);
/* In the callback for a loaded module: it is such a one, and has the kernel @name. */
void api_module_launches(const char *name);

#endif
