/* SPDX-License-Identifier: MIT */
/* Keeps the locks of scopes, graphs, modules and probes usable in the child of a fork. */
#ifndef GPUPART_LIB_CONFINE_HOLD_H
#define GPUPART_LIB_CONFINE_HOLD_H

/* From now on; any number of times, from any thread. Before any of those locks is taken. */
void hold_guard(void);

#endif
