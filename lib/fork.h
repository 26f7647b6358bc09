/* SPDX-License-Identifier: MIT */
/*
 * A fork while another thread sets something leaves the child its locks held, for ever.
 * Knows the locks and nothing of what they guard.
 */
#ifndef GPUPART_LIB_FORK_H
#define GPUPART_LIB_FORK_H

#include <pthread.h>

/*
 * From now on forks wait for those locks; the child's @attaching is a new one. Any number
 * of times, one thread at a time.
 */
void fork_guard(pthread_mutex_t *attaching);

#endif
