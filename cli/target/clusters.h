/* SPDX-License-Identifier: MIT */
/* Sets that hold no cluster of GPUPART_PORTABLE_CLUSTER blocks: avoided, and reported. */
#ifndef GPUPART_CLI_TARGET_CLUSTERS_H
#define GPUPART_CLI_TARGET_CLUSTERS_H

#include <gpupart_manage.h>

/*
 * Adds to @set the TPCs of @part, or as many others of @from where these make it hold such a
 * cluster and @part does not.
 */
void clusters_add(const struct gpupart_topology *topo, const struct gpupart_tpcset *part,
		  const struct gpupart_tpcset *from, struct gpupart_tpcset *set);

/* Whether @set holds no such cluster and another set of its size does. */
bool clusters_lacks(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/*
 * If so, says it on stderr, with @whose before it ("" or "tenant a: "), and names a set of the
 * same size that does, of @set and @free: TPCs that no other has.
 */
void clusters_note(const char *whose, const struct gpupart_topology *topo,
		   const struct gpupart_tpcset *set, const struct gpupart_tpcset *free);

/* Says on stderr that @set, which the user wrote out, holds none since no set of its size does. */
void clusters_note_size(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

#endif
