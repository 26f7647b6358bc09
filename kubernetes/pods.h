/* SPDX-License-Identifier: MIT */
/*
 * What containers hold of this node's GPUs: a grant each, of root, which Slurm and the other
 * planners of the node see. After a crash they are found again: all of their state is in files.
 */
#ifndef GPUPART_KUBERNETES_PODS_H
#define GPUPART_KUBERNETES_PODS_H

#include "kubernetes/node.h"

/* A container's, or what is left of it. */
struct pod {
	struct gpupart_grant grant;
	unsigned int gpu;
	struct gpupart_tpcset ids;	/* kubelet's, of that GPU; none: kubelet has them back */
	struct gpupart_tpcset own;	/* of them, those that it gave to no other since */
	uint64_t born;		/* nanoseconds of CLOCK_REALTIME, in the grant's id */
	bool is_young;		/* kubelet may not have noted it yet */
	bool lives;		/* one of its processes does, where that was looked at */
	bool gave_on;		/* TPCs of it are another's now */
};

struct pods {
	struct pod *list;
	unsigned int nr;
	struct gpupart_tpcset taken[NODE_GPUS_MAX];	/* by other grants and programs */
	uint64_t memory[NODE_GPUS_MAX];	/* bytes that other grants have */
};

/* All of them: 0, or -errno. The caller frees list. */
int pods_read(struct pods *pods);

/*
 * Gives a container TPCs of GPU @gpu for kubelet's @ids: 0, and @grant and its @folder, or
 * -ENOSPC, .. with a sentence in @why.
 */
#define PODS_FOLDER_LEN 96
int pods_give(unsigned int gpu, const struct gpupart_tpcset *ids,
	      struct gpupart_grant *grant, char folder[PODS_FOLDER_LEN], char *why, size_t len);

/* The TPCs of a GPU that are free, and a sentence of the most on one, which the caller frees. */
struct gpupart_tpcset pods_free(const struct pods *pods, unsigned int gpu);
char *pods_most(void);

/*
 * Takes back what containers had that have ended: they have no process, and kubelet does not list
 * them (@listed, ids by GPU). If it began anew and has not listed them yet, it has not noted them
 * in its own file either (@noted). @pods is without them afterwards.
 */
void pods_reap(struct pods *pods, const struct gpupart_tpcset *listed,
	       const struct gpupart_tpcset *noted);

/* Another kubelet runs now, which listed none of them yet. */
void pods_forget_lists(void);

/* Folders of grants follow grants that were changed, and those of no grant are removed. */
void pods_follow(const struct pods *pods);

#endif
