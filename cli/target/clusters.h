/* SPDX-License-Identifier: MIT */
/* Avoids and reports sets that have no room for a cluster of GPUPART_PORTABLE_CLUSTER blocks. */
#ifndef GPUPART_CLI_TARGET_CLUSTERS_H
#define GPUPART_CLI_TARGET_CLUSTERS_H

#include <gpupart_manage.h>

/*
 * Adds the TPCs of @part to @set. If @set has no room for such a cluster with @part, but has
 * room with the same number of other TPCs of @from, adds those TPCs instead.
 */
void clusters_add(const struct gpupart_topology *topo, const struct gpupart_tpcset *part,
		  const struct gpupart_tpcset *from, struct gpupart_tpcset *set);

/*
 * Returns whether @set has no room for such a cluster, although another set of the same size has
 * room.
 */
bool clusters_lacks(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/*
 * If clusters_lacks() is true, prints a message on stderr that begins with @whose ("" or "tenant a:
 * "). The message proposes a set of the same size that has room for such a cluster. The proposed
 * set consists of TPCs of @set and of @free, the TPCs that no other program uses.
 */
void clusters_note(const char *whose, const struct gpupart_topology *topo,
		   const struct gpupart_tpcset *set, const struct gpupart_tpcset *free);

/*
 * The user gave @set. If neither @set nor any other set of the same size has room for such a
 * cluster, prints a remark on stderr.
 */
void clusters_note_size(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

#endif
