// SPDX-License-Identifier: MIT
/* Avoids and reports sets without room for a cluster of the portable size; see clusters.h. */
#include <stdio.h>
#include "cli/target/clusters.h"
#include "cli/util/message.h"

static const struct gpupart_tpcset none;

void clusters_add(const struct gpupart_topology *topo, const struct gpupart_tpcset *part,
		  const struct gpupart_tpcset *from, struct gpupart_tpcset *set)
{
	struct gpupart_tpcset all = gpupart_tpcset_or(set, part);

	if (gpupart_set_cluster(topo, &all) >= GPUPART_PORTABLE_CLUSTER ||
	    gpupart_set_pick(topo, GPUPART_PORTABLE_CLUSTER, set, part, from,
			     gpupart_tpcset_count(&all), set))
		*set = all;
}

/* Without virtual GPCs, a GPU may not support clusters. In this case, returns false. */
static bool holds_none(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	return gpupart_topology_end_vgpc(topo) &&
	       gpupart_set_cluster(topo, set) < GPUPART_PORTABLE_CLUSTER;
}

bool clusters_lacks(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo), other;

	return holds_none(topo, set) &&
	       !gpupart_set_pick(topo, GPUPART_PORTABLE_CLUSTER, &none, set, &all,
				 gpupart_tpcset_count(set), &other);
}

static void say(const char *whose, const struct gpupart_topology *topo,
		const struct gpupart_tpcset *set, const char *would)
{
	char has[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(set, has, sizeof(has));
	remark(
		"%sTPCs %s have room for clusters of at most %u blocks: a kernel with larger clusters gets more TPCs; %s room for clusters of %d",
		whose, has, gpupart_set_cluster(topo, set), would, GPUPART_PORTABLE_CLUSTER);
}

void clusters_note(const char *whose, const struct gpupart_topology *topo,
		   const struct gpupart_tpcset *set, const struct gpupart_tpcset *free)
{
	struct gpupart_tpcset from = gpupart_tpcset_or(set, free), other;
	unsigned int nr = gpupart_tpcset_count(set);
	char list[GPUPART_TPCSET_STRLEN], would[GPUPART_TPCSET_STRLEN + 16];

	if (!clusters_lacks(topo, set))
		return;
	if (gpupart_set_pick(topo, GPUPART_PORTABLE_CLUSTER, &none, set, &from, nr, &other)) {
		snprintf(would, sizeof(would), "no %u free TPCs have", nr);
	} else {
		gpupart_tpcset_format_list(&other, list, sizeof(list));
		snprintf(would, sizeof(would), "TPCs %s have", list);
	}
	say(whose, topo, set, would);
}

void clusters_note_size(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	unsigned int nr = gpupart_tpcset_count(set);
	char would[32];

	if (!holds_none(topo, set) || clusters_lacks(topo, set))
		return;
	snprintf(would, sizeof(would), "no set of %u TPC%s has", nr, nr == 1 ? "" : "s");
	say("", topo, set, would);
}
