/* SPDX-License-Identifier: MIT */
/*
 * Handlers of calls whose amount of memory is only known by measuring: what the driver takes for
 * itself with contexts and modules, graphs' memory, and memory that another process is charged for.
 */
#ifndef GPUPART_LIB_MEMORY_OVERHEAD_H
#define GPUPART_LIB_MEMORY_OVERHEAD_H

#include "lib/memory/call_state.h"

void memory_own_ctx_begins(struct memory_now *now);
void memory_own_module_begins(struct memory_now *now);
void memory_own_ends(struct memory_now *now);
void memory_own_ctx_destroyed(struct memory_now *now);
void memory_own_primary_released(struct memory_now *now);
void memory_own_primary_reset(struct memory_now *now);
void memory_own_module_unloaded(struct memory_now *now);
void memory_own_limit_set(struct memory_now *now);

/* Graphs with nodes that get memory. */
void memory_own_graph_made(struct memory_now *now);
void memory_own_graph_begins(struct memory_now *now);
void memory_own_graph_ends(struct memory_now *now);
void memory_own_graph_destroyed(struct memory_now *now);
void memory_own_graph_trimmed(struct memory_now *now);

void memory_own_foreign_begins(struct memory_now *now);
void memory_own_foreign_ends(struct memory_now *now);

#endif
