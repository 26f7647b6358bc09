/* SPDX-License-Identifier: MIT */
/* The node's GPUs and settings, and the CDI edits with which a container gets a GPU. */
#ifndef GPUPART_KUBERNETES_NODE_H
#define GPUPART_KUBERNETES_NODE_H

#include <jansson.h>
#include "cli/slurm/node_gpus.h"
#include "kubelet.pb-c.h"

#define NODE_CONFIG "/etc/gpupart/kubernetes"
#define NODE_KUBELET "/var/lib/kubelet"
#define NODE_RESOURCE "gpupart.dev/tpcs"

extern struct node {
	const char *kubelet;	/* kubelet's folder */
	const char *config;	/* the path of the file with the settings */
	uint64_t memory_per_tpc;	/* memory quota for each TPC in bytes; 0: no quota */
	bool mps;		/* the pods are clients of the node's MPS daemon */
	unsigned long uid;	/* the pods use the state directory of this user */
	/* the source of the driver's files for a container */
	enum { NODE_DRIVER_FILES, NODE_DRIVER_CDI, NODE_DRIVER_RUNTIME } driver;
	struct node_gpus boards;
	char names[NODE_GPUS_MAX][48];	/* the UUID of each GPU, or its address without a UUID */
	/* the edits that `gpupart cdi` writes for each GPU */
	json_t *env[NODE_GPUS_MAX], *nodes[NODE_GPUS_MAX], *mounts[NODE_GPUS_MAX];
} node;

/*
 * Reads the settings and the GPUs. The default file with the settings need not exist. If the GPUs
 * are not simulated, 'gpupart slurm-node' examines the GPUs. Returns 0 or an error.
 */
int node_open(void);

/* Returns kubelet's id for TPC @tpc of GPU @gpu. The caller must free the string. */
char *node_id(unsigned int gpu, unsigned int tpc);

/*
 * Adds the @nr ids in @list to @ids. @ids has a set for each GPU. If an id belongs to no TPC,
 * returns this id. Otherwise returns NULL.
 */
char *node_sort(char **list, size_t nr, struct gpupart_tpcset *ids);

/* Returns true if the device of GPU @gpu exists. */
bool node_is_healthy(unsigned int gpu);

/*
 * node_message() allocates a message of @type. node_add() does the same, and appends the message
 * to the list *@list of *@nr pointers. NODE_ADD() does this for the list @field of @message.
 */
void *node_message(const ProtobufCMessageDescriptor *type);
void *node_add(void *list, size_t *nr, const ProtobufCMessageDescriptor *type);
#define NODE_ADD(message, field, type) \
	node_add(&(message)->field, &(message)->n_##field, &kubelet__##type##__descriptor)

/*
 * Adds the edits for a container with @grant to @edits. @tpcs: the set of @grant as text. @folder:
 * the folder with the container's grant.
 */
void node_edits(unsigned int gpu, const struct gpupart_grant *grant, const char *tpcs,
		const char *folder, Kubelet__ContainerEdits *edits);

#endif
