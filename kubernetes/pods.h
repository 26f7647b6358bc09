/* SPDX-License-Identifier: MIT */
/*
 * Manages the TPCs that belong to containers. Each container has a grant of root. Slurm and the
 * other planners of the node can read this grant. All state is in files and survives a crash.
 */
#ifndef GPUPART_KUBERNETES_PODS_H
#define GPUPART_KUBERNETES_PODS_H

#include "kubernetes/grpc.h"
#include "kubernetes/node.h"

/* The time in a struct timespec, in ns. */
#define PODS_NS(time) ((time).tv_sec * 1000000000ull + (time).tv_nsec)

/* The grant of a container. The container may have ended. */
struct pod {
	struct gpupart_grant grant;
	unsigned int gpu;
	/* ids of the grant's GPU, from kubelet; empty: kubelet has freed these ids */
	struct gpupart_tpcset ids;
	struct gpupart_tpcset own;	/* the ids in @ids that kubelet has not allocated again */
	uint64_t born;		/* CLOCK_REALTIME in ns; the grant's id contains this time */
	bool is_young;		/* the grant is so new that kubelet may not list it yet, and
				 * kubelet has not restarted since */
	bool lives;		/* a process of the container was found */
	char uid[37];		/* the UID of its pod in Kubernetes, or "" if it is not known */
	struct gpupart_tpcset gave;	/* TPCs that another grant gets from this grant now */
	bool is_copied;		/* pods_follow() has written the container's grant */
	struct gpupart_tpcset copied;	/* the set that it wrote last */
};

/* The grants at the last call of pods_read(). */
extern struct pods {
	struct pod *list;
	unsigned int nr;
	uint64_t read_at;	/* CLOCK_REALTIME in ns */
	/* TPCs that other grants and other programs have; memory of other grants in bytes */
	struct gpupart_tpcset taken[NODE_GPUS_MAX];
	uint64_t memory[NODE_GPUS_MAX];
	/* bytes of /proc/PID/mountinfo that may be read: of other processes, of containers */
	long mounts_left[2];
	unsigned int nr_looks;	/* calls of look_for_processes() */
} pods;

/* Reads all grants. Returns 0 or -errno; after an error, there are no pods. */
int pods_read(void);

/*
 * Reads all grants, and allocates TPCs of GPU @gpu for kubelet's @ids. Sets @grant and its @folder.
 * If it fails, sets @status.
 */
#define PODS_FOLDER_LEN 96
void pods_give(unsigned int gpu, const struct gpupart_tpcset *ids, struct gpupart_grant *grant,
	       char folder[PODS_FOLDER_LEN], struct grpc_status *status);

/*
 * pods_free() returns the free TPCs of a GPU. pods_most() reads all grants, and returns a sentence
 * about the GPU with the most free TPCs; this sentence is valid until the next call.
 */
struct gpupart_tpcset pods_free(unsigned int gpu);
const char *pods_most(void);

/*
 * If a container has ended, removes its grant, also from @pods. A container has ended if it has
 * no process and kubelet does not list it. @listed: the ids that kubelet lists, for each GPU.
 * After a restart of kubelet, there is a third condition: kubelet's checkpoint file does not
 * contain the container. The third condition applies until kubelet has listed the container one
 * time. @kubelet_made: the time in ns of CLOCK_REALTIME when
 * kubelet started.
 */
void pods_reap(const struct gpupart_tpcset *listed, uint64_t kubelet_made);

/*
 * Must be called after a restart of kubelet. @since: the time in ns of CLOCK_REALTIME, or 0 if
 * kubelet has not allocated anything yet.
 */
void pods_forget_lists(uint64_t since);

/*
 * kubelet has offered the @ids of GPU @gpu as free. Returns those of these ids that belong to no
 * grant.
 */
struct gpupart_tpcset pods_offer(unsigned int gpu, const struct gpupart_tpcset *ids);

/* Copies changed grants into the containers' folders, and removes folders without a grant. */
void pods_follow(void);

#endif
