// SPDX-License-Identifier: MIT
/* See kubelet.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "kubernetes/kubelet.h"

#define REGISTER_MS 15000
#define LIST_MS 2000

bool kubelet_register(struct grpc_server *server, const char *folder)
{
	Kubelet__Options options = KUBELET__OPTIONS__INIT;
	Kubelet__RegisterRequest request = KUBELET__REGISTER_REQUEST__INIT;
	char socket[PATH_MAX];
	struct grpc_status status;
	Kubelet__Empty *reply;

	options.preferred_allocation = true;
	request.version = (char *)"v1beta1";
	request.endpoint = (char *)KUBELET_ENDPOINT;
	request.resource_name = (char *)NODE_RESOURCE;
	request.options = &options;
	snprintf(socket, sizeof(socket), "%s/kubelet.sock", folder);
	reply = grpc_call(server, socket, "/v1beta1.Registration/Register", &request,
			  &kubelet__empty__descriptor, REGISTER_MS, &status);
	if (!reply) {
		remark("kubelet does not register the plugin: %s: %s", socket, status.why);
		return false;
	}
	kubelet__empty__free_unpacked(reply, NULL);
	return true;
}

bool kubelet_list(const char *socket, const struct node *node, struct gpupart_tpcset *ids,
		  struct grpc_status *status)
{
	static struct grpc_server *nobody;	/* the caller may be in a request of kubelet's */
	Kubelet__Empty request = KUBELET__EMPTY__INIT;
	Kubelet__PodList *list;

	nobody = nobody ?: grpc_open(NULL);
	list = grpc_call(nobody, socket, "/v1.PodResourcesLister/List", &request,
			 &kubelet__pod_list__descriptor, LIST_MS, status);
	for (size_t p = 0; list && p < list->n_pods; p++)
		for (size_t c = 0; c < list->pods[p]->n_containers; c++) {
			const Kubelet__PodContainer *container = list->pods[p]->containers[c];

			for (size_t d = 0; d < container->n_devices; d++)
				if (!strcmp(container->devices[d]->resource, NODE_RESOURCE))
					node_sort(node, container->devices[d]->ids,
						  container->devices[d]->n_ids, ids);
		}
	kubelet__pod_list__free_unpacked(list, NULL);
	return list;
}

/* A list of ids, or, from 1.20 on, a list for each NUMA node. */
static void add_json(const struct node *node, json_t *value, struct gpupart_tpcset *ids)
{
	char *text = (char *)json_string_value(value);
	const char *key;
	json_t *entry;
	size_t i;

	node_sort(node, &text, text != NULL, ids);
	json_array_foreach(value, i, entry)
		add_json(node, entry, ids);
	json_object_foreach(value, key, entry)
		add_json(node, entry, ids);
}

void kubelet_noted(const char *folder, const struct node *node, struct gpupart_tpcset *ids)
{
	char *path = alloc_text("%s/kubelet_internal_checkpoint", folder);
	FILE *file = fopen(path, "re");
	bool is_none = !file && errno == ENOENT;
	json_t *root = file ? json_loadf(file, 0, NULL) : NULL, *list = NULL, *entry;
	const char *resource;
	size_t i;

	json_unpack(root, "{s:{s:o}}", "Data", "PodDeviceEntries", &list);
	json_array_foreach(list, i, entry) {
		resource = json_string_value(json_object_get(entry, "ResourceName"));
		if (resource && !strcmp(resource, NODE_RESOURCE))
			add_json(node, json_object_get(entry, "DeviceIDs"), ids);
	}
	/* Without any entry the list is null. */
	if (!is_none && !json_is_array(list) && !json_is_null(list))
		for (unsigned int g = 0; g < node->boards.nr; g++)
			ids[g] = gpupart_topology_all(node->boards.gpus[g].topo);
	json_decref(root);
	if (file)
		fclose(file);
	free(path);
}
