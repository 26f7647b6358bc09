/* SPDX-License-Identifier: MIT */
/* The node's GPUs and settings, and the edits that give a container a GPU. */
#ifndef GPUPART_KUBERNETES_NODE_H
#define GPUPART_KUBERNETES_NODE_H

#include <jansson.h>
#include "cli/slurm/node_gpus.h"
#include "kubelet.pb-c.h"

#define NODE_CONFIG "/etc/gpupart/kubernetes"
#define NODE_RESOURCE "gpupart.dev/tpcs"

enum node_driver { NODE_DRIVER_FILES, NODE_DRIVER_CDI, NODE_DRIVER_RUNTIME };

struct node {
	const char *config;	/* the path of the settings */
	uint64_t memory_per_tpc;	/* bytes; 0: no quota */
	bool mps;		/* pods are clients of the node's MPS daemon */
	unsigned int uid;	/* the user whose folder of blocks pods have */
	enum node_driver driver;	/* where a container gets the driver's files from */
	struct node_gpus boards;
	char names[NODE_GPUS_MAX][48];	/* the UUID, or the address without one */
	json_t *edits[NODE_GPUS_MAX];	/* what `gpupart cdi` writes */
};

extern struct node node;

/*
 * Reads the settings in the file @config, which need not exist and whose name is kept, and the
 * GPUs, which 'gpupart slurm-node' looks at unless they are simulated. 0, or an error.
 */
int node_open(const char *config);

/* Kubelet's id of TPC @tpc of GPU @gpu, which the caller frees. */
char *node_id(unsigned int gpu, unsigned int tpc);

/* Adds the @nr ids in @list to the sets by GPU. Returns an id that names no TPC, or NULL. */
char *node_sort(char **list, size_t nr, struct gpupart_tpcset *ids);

/* Whether the device of GPU @gpu exists. */
bool node_is_healthy(unsigned int gpu);

/* Allocates a message of @type; node_grow() appends it to the list *@list of @nr pointers. */
void *node_message(const ProtobufCMessageDescriptor *type);
void *node_grow(void *list, size_t *nr, const ProtobufCMessageDescriptor *type);

/* Adds to @edits what a container with @grant gets; @folder has the container's grants. */
void node_edits(unsigned int gpu, const struct gpupart_grant *grant,
		const char *folder, Kubelet__ContainerEdits *edits);

#endif
