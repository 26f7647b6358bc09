// SPDX-License-Identifier: MIT
/*
 * Makes the driver build the nodes of an executable graph again. See graph_rebuild.h. If a
 * parameter in a node's TMD changes and then changes back, the driver builds the node again. The
 * measurements are in Documentation/internals/hardware.md, "Graphs".
 */
#include <stdlib.h>
#include "lib/confine/graph_rebuild.h"

bool graph_can_rebuild(const struct cuda_api *cuda)
{
	return cuda->graph_clone && cuda->graph_destroy && cuda->graph_nodes && cuda->node_type &&
	       cuda->graph_child && cuda->graph_update && cuda->kernel_get && cuda->kernel_set &&
	       cuda->memset_get && cuda->memset_set && cuda->memcpy_get && cuda->memcpy_set;
}

/* Every kernel may use this number of bytes of additional dynamic shared memory. */
#define SHARED_PLENTY	32768

static bool between_devices(const struct cuda_memcpy_node *copy)
{
	return (copy->src.type == CUDA_MEMORY_DEVICE || copy->src.type == CUDA_MEMORY_UNIFIED) &&
	       (copy->dst.type == CUDA_MEMORY_DEVICE || copy->dst.type == CUDA_MEMORY_UNIFIED);
}

/* The state of a node before the change. With this state, the node can be restored exactly. */
struct before {
	void *node;
	int type;
	bool is_priority;	/* the change is in the priority and not in the shared memory */
	union {
		unsigned int shared;
		union cuda_attr_value priority;
		struct cuda_memset_node fill;
		struct cuda_memcpy_node copy;
	};
};

struct list {
	struct before *node;
	size_t nr, room;
};

static struct before *list_add(struct list *list)
{
	if (list->nr == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct before *more = realloc(list->node, room * sizeof(*more));

		if (!more)
			return NULL;
		list->node = more;
		list->room = room;
	}
	return &list->node[list->nr++];
}

struct changes {
	bool less;		/* if true, request less shared memory; otherwise more */
	bool some;		/* some nodes could not be changed */
	struct list list;
};

/*
 * Changes the priority of a kernel whose shared memory cannot be changed. The priority of every
 * kernel can be changed.
 */
static int change_priority(const struct cuda_api *cuda, void *node, struct before *before)
{
	union cuda_attr_value other = { 0 };
	int result;

	if (!cuda->kernel_attr_get || !cuda->kernel_attr_set)
		return CUDA_ERROR_NOT_FOUND;
	before->is_priority = true;
	result = cuda->kernel_attr_get(node, CUDA_LAUNCH_ATTR_PRIORITY, &before->priority);
	if (result)
		return result;
	other.priority = before->priority.priority ? 0 : -1;
	return cuda->kernel_attr_set(node, CUDA_LAUNCH_ATTR_PRIORITY, &other);
}

/*
 * Requests slightly more shared memory for a kernel. The kernel would still run correctly. If
 * @less is set, or if more shared memory is impossible, the function requests slightly less. If
 * the kernel has no shared memory, the function changes its priority.
 */
static int change_kernel(const struct cuda_api *cuda, void *node, struct before *before, bool less)
{
	struct cuda_kernel_node kernel;
	int result = cuda->kernel_get(node, &kernel);
	unsigned int shared;

	if (result)
		return result;
	shared = kernel.shared;
	before->is_priority = false;
	before->shared = shared;
	kernel.shared = shared + 16;
	if (!less && shared < SHARED_PLENTY && !cuda->kernel_set(node, &kernel))
		return 0;
	kernel.shared = shared - 16;
	if (shared >= 16 && !cuda->kernel_set(node, &kernel))
		return 0;
	return change_priority(cuda, node, before);
}

/* Changes a value that is part of a node's TMD. */
static int change_node(const struct cuda_api *cuda, void *node, int type, bool less,
		       struct list *list)
{
	/* Reserve the entry first, because a change without an entry could not be undone. */
	struct before *before = list_add(list);
	bool changed = true;
	int result;

	if (!before)
		return CUDA_ERROR_OUT_OF_MEMORY;
	before->node = node;
	before->type = type;
	if (type == CUDA_NODE_KERNEL) {
		result = change_kernel(cuda, node, before, less);
	} else if (type == CUDA_NODE_MEMSET) {
		struct cuda_memset_node fill;

		result = cuda->memset_get(node, &fill);
		changed = !result && (fill.width > 1 || fill.height > 1);
		if (changed) {
			before->fill = fill;
			fill.width = 1;
			fill.height = 1;
			result = cuda->memset_set(node, &fill);
		}
	} else {
		struct cuda_memcpy_node copy;

		result = cuda->memcpy_get(node, &copy);
		/* Copies to or from the host do not use a kernel. */
		changed = !result && between_devices(&copy) && copy.width > 16;
		if (changed) {
			before->copy = copy;
			copy.width = 16;
			result = cuda->memcpy_set(node, &copy);
		}
	}
	if (result || !changed)
		list->nr--;
	return result;
}

/*
 * Changes one node. If the driver refuses the change, the node stays unchanged, and the function
 * sets @some.
 */
static int see_node(const struct cuda_api *cuda, void *node, int type, void *arg)
{
	struct changes *changes = arg;

	if (type == CUDA_NODE_KERNEL || type == CUDA_NODE_MEMSET || type == CUDA_NODE_MEMCPY)
		changes->some |= change_node(cuda, node, type, changes->less, &changes->list) != 0;
	return 0;
}

static int change_back(const struct cuda_api *cuda, const struct list *list)
{
	int first = 0;

	for (size_t n = 0; n < list->nr; n++) {
		const struct before *before = &list->node[n];
		int result;

		if (before->type == CUDA_NODE_KERNEL && before->is_priority) {
			result = cuda->kernel_attr_set(before->node, CUDA_LAUNCH_ATTR_PRIORITY,
						       &before->priority);
		} else if (before->type == CUDA_NODE_KERNEL) {
			struct cuda_kernel_node kernel;

			result = cuda->kernel_get(before->node, &kernel);
			kernel.shared = before->shared;
			if (!result)
				result = cuda->kernel_set(before->node, &kernel);
		} else if (before->type == CUDA_NODE_MEMSET) {
			result = cuda->memset_set(before->node, &before->fill);
		} else {
			result = cuda->memcpy_set(before->node, &before->copy);
		}
		if (result && !first)
			first = result;
	}
	return first;
}

bool graph_rebuild(const struct cuda_api *cuda, void *exec, void *clone, bool *some)
{
	struct cuda_graph_update info = { 0 };
	struct changes changes = { 0 };
	bool changed = false, back = true;

	for (int less = 0; less < 2 && !changed && back; less++) {
		changes.list.nr = 0;
		changes.less = less;
		changes.some = false;
		changed = !cuda_graph_walk(cuda, clone, see_node, &changes) &&
			  !cuda->graph_update(exec, clone, &info);
		back = !change_back(cuda, &changes.list);
	}
	if (changed)
		back = back && (!cuda->graph_update(exec, clone, &info) ||
				!cuda->graph_update(exec, clone, &info));
	*some = changes.some;
	free(changes.list.node);
	return changed && back;
}
