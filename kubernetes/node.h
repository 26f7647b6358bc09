/* SPDX-License-Identifier: MIT */
/* This node's GPUs and settings, and what a container needs of a GPU. */
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
	unsigned int uid;	/* whose folder of blocks pods have */
	enum node_driver driver;	/* who brings the driver's files into a container */
	struct node_gpus boards;
	char names[NODE_GPUS_MAX][48];	/* UUIDs; where there is none the address */
	json_t *edits[NODE_GPUS_MAX];	/* what `gpupart cdi` writes */
};

extern struct node node;

/*
 * Reads the settings in the file @config, which need not exist and whose name is kept, and the
 * GPUs, which 'gpupart slurm-node' looks at unless they are simulated. 0, or an error.
 */
int node_open(const char *config);

/* The id of @tpc of GPU @gpu, as kubelet counts them, which the caller frees. */
char *node_id(unsigned int gpu, unsigned int tpc);

/* Adds the @nr ids in @list to the sets by GPU. Returns one that is no TPC's, or NULL. */
char *node_sort(char **list, size_t nr, struct gpupart_tpcset *ids);

/* Whether GPU @gpu is there. */
bool node_is_healthy(unsigned int gpu);

/* A message of @type, and one more in the list *@list of @nr pointers. */
void *node_message(const ProtobufCMessageDescriptor *type);
void *node_grow(void *list, size_t *nr, const ProtobufCMessageDescriptor *type);

/* Adds to @edits what a container with @grant, whose grants lie in @folder, is to have. */
void node_edits(unsigned int gpu, const struct gpupart_grant *grant,
		const char *folder, Kubelet__ContainerEdits *edits);

#endif
