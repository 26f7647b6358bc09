/* SPDX-License-Identifier: MIT */
/* Avoids and reports sets without room for a cluster of GPUPART_PORTABLE_CLUSTER blocks. */
#ifndef GPUPART_CLI_TARGET_CLUSTERS_H
#define GPUPART_CLI_TARGET_CLUSTERS_H

#include <gpupart_manage.h>

/*
 * Adds to @set the TPCs of @part, or the same number of TPCs of @from if only these give it room
 * for such a cluster.
 */
void clusters_add(const struct gpupart_topology *topo, const struct gpupart_tpcset *part,
		  const struct gpupart_tpcset *from, struct gpupart_tpcset *set);

/* Whether @set has no room for such a cluster but another set of its size has. */
bool clusters_lacks(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/*
 * If clusters_lacks() is true, prints a message on stderr that begins with @whose ("" or
 * "tenant a: "). The message proposes a set of the same size that has room. The proposed set
 * consists of TPCs of @set and of @free, the TPCs that no other program uses.
 */
void clusters_note(const char *whose, const struct gpupart_topology *topo,
		   const struct gpupart_tpcset *set, const struct gpupart_tpcset *free);

/* Prints on stderr if neither @set, given by the user, nor any set of its size has room. */
void clusters_note_size(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

#endif
