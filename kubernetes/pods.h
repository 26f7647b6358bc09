/* SPDX-License-Identifier: MIT */
/*
 * TPCs of this node's GPUs that containers have: a grant of root for each container, which Slurm
 * and the other planners of the node see. All state is in files and survives a crash.
 */
#ifndef GPUPART_KUBERNETES_PODS_H
#define GPUPART_KUBERNETES_PODS_H

#include "kubernetes/node.h"

/* The grant of a container, which may have ended. */
struct pod {
	struct gpupart_grant grant;
	unsigned int gpu;
	struct gpupart_tpcset ids;	/* kubelet's ids of that GPU; empty: kubelet freed them */
	struct gpupart_tpcset own;	/* the ids that kubelet has not allocated again since */
	uint64_t born;		/* nanoseconds of CLOCK_REALTIME, in the grant's id */
	bool is_young;		/* kubelet may not list it yet */
	bool lives;		/* it has a process; set by pods_reap() */
	bool gave_on;		/* another grant has some of its TPCs now */
};

struct pods {
	struct pod *list;
	unsigned int nr;
	struct gpupart_tpcset taken[NODE_GPUS_MAX];	/* TPCs of other grants and programs */
	uint64_t memory[NODE_GPUS_MAX];	/* bytes of other grants */
};

/* Reads all grants: 0, or -errno. The caller frees list. */
int pods_read(struct pods *pods);

/*
 * Allocates TPCs of GPU @gpu for kubelet's @ids: 0, with @grant and its @folder, or -ENOSPC or
 * another error with a sentence in @why.
 */
#define PODS_FOLDER_LEN 96
int pods_give(unsigned int gpu, const struct gpupart_tpcset *ids,
	      struct gpupart_grant *grant, char folder[PODS_FOLDER_LEN], char *why, size_t len);

/* The free TPCs of a GPU; a sentence about the GPU with the most, which the caller frees. */
struct gpupart_tpcset pods_free(const struct pods *pods, unsigned int gpu);
char *pods_most(void);

/*
 * Removes the grants of containers that have ended, from @pods too: they have no process, and
 * kubelet does not list them (@listed, ids by GPU). After a restart of kubelet, until it has listed
 * them once, they must not be in its checkpoint file either (@noted).
 */
void pods_reap(struct pods *pods, const struct gpupart_tpcset *listed,
	       const struct gpupart_tpcset *noted);

/* Call this after a restart of kubelet. */
void pods_forget_lists(void);

/* Copies changed grants into the containers' folders, and removes folders without a grant. */
void pods_follow(const struct pods *pods);

#endif
