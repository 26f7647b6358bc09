/* SPDX-License-Identifier: MIT */
/* What the plugin asks kubelet. */
#ifndef GPUPART_KUBERNETES_KUBELET_H
#define GPUPART_KUBERNETES_KUBELET_H

#include "kubernetes/node.h"

#define KUBELET_ENDPOINT "gpupart.sock"

/* Registers the plugin that listens at @folder/KUBELET_ENDPOINT: 0, or -errno and a remark. */
int kubelet_register(const char *folder);

/* The ids that kubelet lists as given, by GPU; 0 or -errno with a sentence in @why. */
int kubelet_list(const char *socket, const struct node *node, struct gpupart_tpcset *ids,
		 char *why, size_t len);

/*
 * Adds the ids in the file in which kubelet notes what it gave, in @folder. All of them where that
 * file is not understood; none where there is none.
 */
void kubelet_noted(const char *folder, const struct node *node, struct gpupart_tpcset *ids);

#endif
