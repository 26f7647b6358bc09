/* SPDX-License-Identifier: MIT */
/*
 * Avoids and reports sets without room for a large cluster. A large cluster has
 * GPUPART_PORTABLE_CLUSTER blocks.
 */
#ifndef GPUPART_CLI_TARGET_CLUSTERS_H
#define GPUPART_CLI_TARGET_CLUSTERS_H

#include <gpupart_manage.h>

/*
 * Adds the TPCs of @part to @set. The result may have no room for a large cluster. If an equal
 * number of other TPCs of @from gives room, adds the other TPCs instead.
 */
void clusters_add(const struct gpupart_topology *topo, const struct gpupart_tpcset *part,
		  const struct gpupart_tpcset *from, struct gpupart_tpcset *set);

/*
 * Returns true if @set has no room for a large cluster, but a different set of the same size has
 * room.
 */
bool clusters_lacks(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

/*
 * If clusters_lacks() returns true, prints a message on stderr. The message proposes a set of the
 * same size with room for a large cluster. The proposed set has TPCs of @set and @free. No other
 * program uses the TPCs of @free. The message begins with @whose, such as "tenant a: " or "".
 */
void clusters_note(const char *whose, const struct gpupart_topology *topo,
		   const struct gpupart_tpcset *set, const struct gpupart_tpcset *free);

/*
 * Checks a set that the user gave. If no set of this size has room for a large cluster, prints a
 * remark on stderr.
 */
void clusters_note_size(const struct gpupart_topology *topo, const struct gpupart_tpcset *set);

#endif
