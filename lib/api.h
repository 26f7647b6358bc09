/* SPDX-License-Identifier: MIT */
/*
 * The begin and the end of those driver functions that decide what a launch belongs to
 * (launches, graphs, captures) or that tell of SMs. Routes them; knows nothing of sets.
 */
#ifndef GPUPART_LIB_API_H
#define GPUPART_LIB_API_H

#include "cuda.h"

/* The @n'th callback to enable in the driver's domain of functions, or -1 after the last. */
#define API_DOMAIN 6
#define API_CBID_GRAPH_LAUNCH 514
int api_cbid_graphs(unsigned int n);
int api_cbid_launches(unsigned int n);
int api_cbid_questions(unsigned int n);

/* Whether api_callback() wants to know of @cbid; @launches: of those too. */
bool api_wanted(int cbid, bool launches);
/*
 * The launch function that was expected where the driver was seen to have another, and its
 * number; NULL: none yet.
 */
const char *api_other_launch(int *cbid);

/* After a cuLaunchKernel of the calling thread's: whether its begin and end were told of. */
bool api_launch_told(void);

/* What the driver calls at the begin and at the end of such a function. */
void api_callback(const struct cuda_api *cuda, int cbid, const void *params);

/*
 * Whether the driver's functions that the calling thread calls from now on are our own,
 * to be let alone. Returns what was so before.
 */
bool api_own(bool own);

#endif
