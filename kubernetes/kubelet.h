/* SPDX-License-Identifier: MIT */
/* What the plugin asks kubelet. */
#ifndef GPUPART_KUBERNETES_KUBELET_H
#define GPUPART_KUBERNETES_KUBELET_H

#include "kubernetes/grpc.h"
#include "kubernetes/node.h"

#define KUBELET_ENDPOINT "gpupart.sock"

/*
 * Registers the plugin that listens at @folder/KUBELET_ENDPOINT as @server, which serves meanwhile:
 * false and a remark if kubelet refuses it.
 */
bool kubelet_register(struct grpc_server *server, const char *folder);

/* Adds the ids that kubelet lists as given, by GPU; false: @status. */
bool kubelet_list(const char *socket, const struct node *node, struct gpupart_tpcset *ids,
		  struct grpc_status *status);

/*
 * Adds the ids in the file in which kubelet notes what it gave, in @folder. All of them where that
 * file is not understood; none where there is none.
 */
void kubelet_noted(const char *folder, const struct node *node, struct gpupart_tpcset *ids);

#endif
