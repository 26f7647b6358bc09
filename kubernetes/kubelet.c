// SPDX-License-Identifier: MIT
/* See kubelet.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "kubernetes/grpc.h"
#include "kubernetes/kubelet.h"

#define REGISTER_MS 15000
#define LIST_MS 2000

int kubelet_register(const char *folder)
{
	Kubelet__Options options = KUBELET__OPTIONS__INIT;
	Kubelet__RegisterRequest request = KUBELET__REGISTER_REQUEST__INIT;
	char socket[PATH_MAX];
	struct grpc_reply reply;
	uint8_t data[512];
	int err;

	options.preferred_allocation = true;
	request.version = (char *)"v1beta1";
	request.endpoint = (char *)KUBELET_ENDPOINT;
	request.resource_name = (char *)NODE_RESOURCE;
	request.options = &options;
	snprintf(socket, sizeof(socket), "%s/kubelet.sock", folder);
	err = grpc_call(socket, "/v1beta1.Registration/Register", data,
			kubelet__register_request__pack(&request, data), REGISTER_MS, &reply);
	if (!err && reply.status)
		err = -EPROTO;
	if (err)
		remark("kubelet does not register the plugin: %s: %s", socket,
		       reply.status ? reply.message : strerror(-err));
	free(reply.data);
	return err;
}

static void add_ids(const struct node *node, char **list, size_t nr, struct gpupart_tpcset *ids)
{
	unsigned int gpu, tpc;

	for (size_t i = 0; i < nr; i++)
		if (node_find(node, list[i], &gpu, &tpc))
			gpupart_tpcset_add(&ids[gpu], tpc);
}

int kubelet_list(const char *socket, const struct node *node, struct gpupart_tpcset *ids,
		 char *why, size_t len)
{
	struct grpc_reply reply;
	Kubelet__PodList *list;
	int err = grpc_call(socket, "/v1.PodResourcesLister/List", NULL, 0, LIST_MS, &reply);

	list = err || reply.status ? NULL :
	       kubelet__pod_list__unpack(NULL, reply.len, reply.data);
	free(reply.data);
	if (!list) {
		snprintf(why, len, "%s: %s", socket, err ? strerror(-err) :
			 reply.status ? reply.message : "the reply is not understood");
		return err ?: -EPROTO;
	}
	for (size_t p = 0; p < list->n_pods; p++)
		for (size_t c = 0; c < list->pods[p]->n_containers; c++) {
			const Kubelet__PodContainer *container = list->pods[p]->containers[c];

			for (size_t d = 0; d < container->n_devices; d++)
				if (!strcmp(container->devices[d]->resource, NODE_RESOURCE))
					add_ids(node, container->devices[d]->ids,
						container->devices[d]->n_ids, ids);
		}
	kubelet__pod_list__free_unpacked(list, NULL);
	return 0;
}

/* A list of ids, or, from 1.20 on, a list for each NUMA node. */
static void add_json(const struct node *node, json_t *value, struct gpupart_tpcset *ids)
{
	char *text = (char *)json_string_value(value);
	const char *key;
	json_t *entry;
	size_t i;

	if (text)
		add_ids(node, &text, 1, ids);
	json_array_foreach(value, i, entry)
		add_json(node, entry, ids);
	json_object_foreach(value, key, entry)
		add_json(node, entry, ids);
}

void kubelet_noted(const char *folder, const struct node *node, struct gpupart_tpcset *ids)
{
	char *path = alloc_text("%s/kubelet_internal_checkpoint", folder);
	FILE *file = fopen(path, "re");
	json_t *root = file ? json_loadf(file, 0, NULL) : NULL, *data, *list, *entry;
	bool is_read = root || (!file && errno == ENOENT);
	const char *resource;
	size_t i;

	data = json_object_get(root, "Data");
	list = json_object_get(data, "PodDeviceEntries");
	json_array_foreach(list, i, entry) {
		resource = json_string_value(json_object_get(entry, "ResourceName"));
		if (resource && !strcmp(resource, NODE_RESOURCE))
			add_json(node, json_object_get(entry, "DeviceIDs"), ids);
	}
	/* Without any entry the list is null. */
	if (!is_read || (root && (!data || (!json_is_array(list) && !json_is_null(list)))))
		for (unsigned int g = 0; g < node->boards.nr; g++)
			ids[g] = gpupart_topology_all(node->boards.gpus[g].topo);
	json_decref(root);
	if (file)
		fclose(file);
	free(path);
}
