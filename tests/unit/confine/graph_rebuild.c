// SPDX-License-Identifier: MIT
/*
 * Tests internal functions of graph_rebuild.c with nodes that refuse one change or all changes. A
 * few functions of this test replace the driver. They have a graph of kernels, and the values
 * that each kernel accepts.
 */
#include <string.h>
#include "lib/confine/graph_rebuild.c"
#include "tests/tap.h"

#define NR 4

static struct kernel {
	unsigned int shared, most;	/* dynamic shared memory: present value and maximum */
	int priority;
	bool stubborn;			/* the node also keeps its priority */
	/* number of updates of this node; each update rebuilds its TMD */
	unsigned int nr_changes;
	unsigned int old_shared;
	int old_priority;
} kernels[NR];

static const struct kernel as_made[NR] = {
	{ .shared = 0, .most = 1024 }, { .shared = 1024, .most = 1024 },
	{ .shared = 0, .most = 0, .priority = -2 }, { .shared = 65536, .most = 200000 },
};

static bool update_refuses_more;
static unsigned int nr_updates;

static cuda_result graph_nodes(void *graph, void **nodes, size_t *nr)
{
	(void)graph;
	for (int n = 0; nodes && n < NR; n++)
		nodes[n] = &kernels[n];
	*nr = NR;
	return 0;
}

static cuda_result node_type(void *node, int *type)
{
	(void)node;
	*type = CUDA_NODE_KERNEL;
	return 0;
}

static cuda_result kernel_get(void *node, struct cuda_kernel_node *params)
{
	*params = (struct cuda_kernel_node){ .shared = ((struct kernel *)node)->shared };
	return 0;
}

static cuda_result kernel_set(void *node, const struct cuda_kernel_node *params)
{
	struct kernel *k = node;

	if (params->shared > k->most || (k->stubborn && params->shared != k->shared))
		return 1;
	k->shared = params->shared;
	return 0;
}

static cuda_result attr_get(void *node, int id, union cuda_attr_value *value)
{
	value->priority = ((struct kernel *)node)->priority;
	return id != CUDA_LAUNCH_ATTR_PRIORITY;
}

static cuda_result attr_set(void *node, int id, const union cuda_attr_value *value)
{
	struct kernel *k = node;

	if (id != CUDA_LAUNCH_ATTR_PRIORITY || k->stubborn)
		return 1;
	k->priority = value->priority;
	return 0;
}

/* Like the driver's function, changes either all nodes or no node. */
static cuda_result graph_update(void *exec, void *graph, struct cuda_graph_update *info)
{
	(void)exec;
	(void)graph;
	(void)info;
	for (int n = 0; n < NR; n++)
		if (update_refuses_more && kernels[n].shared > as_made[n].shared)
			return 910;
	for (struct kernel *k = kernels; k < kernels + NR; k++) {
		k->nr_changes += k->shared != k->old_shared || k->priority != k->old_priority;
		k->old_shared = k->shared;
		k->old_priority = k->priority;
	}
	nr_updates++;
	return 0;
}

static struct cuda_api api = {
	.graph_nodes = graph_nodes, .node_type = node_type, .graph_update = graph_update,
	.kernel_get = kernel_get, .kernel_set = kernel_set,
	.kernel_attr_get = attr_get, .kernel_attr_set = attr_set,
};

static void begin(void)
{
	memcpy(kernels, as_made, sizeof(kernels));
	for (int n = 0; n < NR; n++) {
		kernels[n].old_shared = kernels[n].shared;
		kernels[n].old_priority = kernels[n].priority;
	}
	nr_updates = 0;
}

/*
 * Checks that each node was changed, was changed back, and has its old values again. Does not
 * check node @but. If @but is -1, checks all nodes.
 */
static bool built_again(int but)
{
	bool good = nr_updates == 2;

	for (int n = 0; n < NR; n++)
		good &= kernels[n].shared == as_made[n].shared &&
			kernels[n].priority == as_made[n].priority &&
			kernels[n].nr_changes == (n == but ? 0 : 2);
	return good;
}

int main(void)
{
	bool some;

	begin();
	tap_ok(graph_rebuild(&api, NULL, NULL, &some) && !some && built_again(-1),
	       "kernels with room, with none, without any: each is built again, and as it was");
	begin();
	kernels[1].stubborn = true;
	tap_ok(graph_rebuild(&api, NULL, NULL, &some) && some && built_again(1),
	       "a node that refuses the change leaves the others to be rebuilt, which is reported");
	begin();
	update_refuses_more = true;
	tap_ok(graph_rebuild(&api, NULL, NULL, &some) && !some && built_again(-1),
	       "where more shared memory is refused only by the update, less is tried");
	return tap_done();
}
