// SPDX-License-Identifier: MIT
/* Opens libcuda.so.1 and finds its entry points. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/fork.h"
#include "lib/driver/cuda.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(open_lock);
static struct cuda_api opened;
static atomic_bool is_open;

/* The names have the same order as the members of struct cuda_api. All members are pointers. */
#define CUDA_NAME(member, symbol, args) symbol "\0"
static const char names[] = CUDA_NEEDED(CUDA_NAME) CUDA_OPTIONAL(CUDA_NAME)
	"gpupart_sim_capture\0gpupart_sim_topology\0gpupart_sim_memory\0gpupart_sim_processes\0";

static int api_fill(struct gpupart *gp, void *lib, struct cuda_api *api)
{
	const char *name = names;
	void *found;

	for (size_t at = 0; *name; at += sizeof(found), name += strlen(name) + 1) {
		found = dlsym(lib, name);
		if (!found && at < offsetof(struct cuda_api, error_name))
			return ctx_fail(gp, -EOPNOTSUPP,
					"this driver is too old: its libcuda.so.1 has no %s", name);
		memcpy((char *)api + at, &found, sizeof(found));
	}
	return 0;
}

static int open_with(struct gpupart *gp, int flags, const struct cuda_api **api)
{
	int err;
	void *lib;

	*api = &opened;
	if (atomic_load_explicit(&is_open, memory_order_acquire))
		return 0;
	FORK_HOLD(&open_lock);
	if (is_open)
		return 0;
	/* Never close libcuda, because threads of the driver may still run. */
	lib = dlopen("libcuda.so.1", RTLD_NOW | flags);
	if (!lib)
		return ctx_fail(gp, -ENOENT, "NVIDIA's driver library cannot be opened: %s",
				dlerror());
	err = api_fill(gp, lib, &opened);
	is_open = !err;
	return err;
}

int cuda_open(struct gpupart *gp, const struct cuda_api **api)
{
	return open_with(gp, 0, api);
}

const struct cuda_api *cuda_loaded(void)
{
	const struct cuda_api *api;

	return open_with(NULL, RTLD_NOLOAD, &api) ? NULL : api;
}

const char *cuda_strerror(const struct cuda_api *api, cuda_result result)
{
	static _Thread_local char words[80];
	const char *name = NULL;

	if (!api->error_name || api->error_name(result, &name) || !name)
		name = "CUDA error";
	snprintf(words, sizeof(words), "%s (%d)", name, result);
	return words;
}

int cuda_graph_walk(const struct cuda_api *api, void *graph,
		    int (*see)(const struct cuda_api *api, void *node, int type, void *arg),
		    void *arg)
{
	void **nodes, *child;
	size_t nr = 0;
	int type, result;

	/* CUDA 10.0 introduced cuGraphGetNodes and the other functions of this loop. */
	if (!api->graph_nodes)
		return CUDA_ERROR_NOT_FOUND;
	if (api->graph_nodes(graph, NULL, &nr) || !nr)
		return 0;
	nodes = calloc(nr, sizeof(*nodes));
	result = nodes ? api->graph_nodes(graph, nodes, &nr) : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t n = 0; !result && n < nr; n++) {
		result = api->node_type(nodes[n], &type);
		if (!result && type != CUDA_NODE_GRAPH)
			result = see(api, nodes[n], type, arg);
		else if (!result)
			result = api->graph_child(nodes[n], &child) ?:
				 cuda_graph_walk(api, child, see, arg);
	}
	free(nodes);
	return result;
}
