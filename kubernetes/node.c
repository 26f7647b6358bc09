// SPDX-License-Identifier: MIT
/* See node.h. What a container needs is what `gpupart cdi` writes of the GPU, and the driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/mps/mps_daemon.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/paths.h"
#include "kubernetes/node.h"
#include "lib/private.h"
#include "slurm/node_file.h"

#define DRIVER_INSIDE "/usr/lib/gpupart-host/driver"

/* ------------------------------------------------------------------ settings */

static bool take(struct node *node, const char *key, const char *value)
{
	static const char *const drivers[] = { "files", "cdi", "runtime" };
	char *end;

	if (!strcmp(key, "memory-per-tpc"))
		return !gpupart_memory_parse(NULL, value, &node->memory_per_tpc);
	if (!strcmp(key, "mps")) {
		node->mps = !strcmp(value, "yes");
		return node->mps || !strcmp(value, "no");
	}
	if (!strcmp(key, "uid")) {
		node->uid = strtoul(value, &end, 10);
		return *value >= '0' && *value <= '9' && !*end;
	}
	for (int i = 0; !strcmp(key, "driver") && i < 3; i++)
		if (!strcmp(value, drivers[i])) {
			node->driver = i;
			return true;
		}
	return false;
}

static int read_config(struct node *node, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256], key[64], value[128], more;
	struct stat st;
	int status = 0, nr;

	if (!file)
		return errno == ENOENT ? 0 : failure("%s: %s", path, strerror(errno));
	if (fstat(fileno(file), &st) || st.st_uid || st.st_mode & 022)
		status = failure("%s is not a file that only root can write", path);
	for (int row = 1; !status && fgets(line, sizeof(line), file); row++) {
		line[strcspn(line, "#\n")] = 0;
		nr = sscanf(line, " %63[^= \t] = %127s %c", key, value, &more);
		if (nr > 0 && (nr != 2 || !take(node, key, value)))
			status = failure(
				"%s, line %d: '%s': wants memory-per-tpc = SIZE, mps = yes or no, uid = N, driver = files, cdi or runtime",
				path, row, line);
	}
	fclose(file);
	return status;
}

/* ---------------------------------------------------------------------- GPUs */

/* The command beside this program. */
static int command_path(char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (!slash || slash - path + sizeof("/gpupart") > len)
		return failure("this program's own path is not known");
	strcpy(slash, "/gpupart");
	return 0;
}

/* Simulated GPUs stay what they were said to be. */
static int look(const char *command)
{
	char *captures = boards_simulated(), line[4200], sim[4096];
	struct node_gpu first = { 0 };
	FILE *file = fopen(NODE_GPU_FILE, "re");
	bool simulated = file && fgets(line, sizeof(line), file) && node_gpu_read(line, &first) &&
			 first.simulated;

	if (file)
		fclose(file);
	if (simulated && captures && !paths_package(PATHS_SIM, sim, sizeof(sim))) {
		setenv("GPUPART_SIM", captures, 1);
		setenv("LD_LIBRARY_PATH", sim, 1);
	}
	free(captures);
	if (simulated)
		return 0;
	snprintf(line, sizeof(line), "'%s' slurm-node", command);
	return system(line) ? failure("the node's GPUs cannot be looked at") : 0;
}

/* A quota of any size brings what makes quotas hold; its size and the set are each pod's own. */
static int read_edits(struct node *node, unsigned int gpu, const char *command)
{
	char line[4200];
	json_error_t error;
	FILE *pipe;

	snprintf(line, sizeof(line), "'%s' cdi --gpu %s --uid %u --device pod %s", command,
		 node->boards.gpus[gpu].pci, node->uid,
		 node->memory_per_tpc ? "--name pod --mem 1G" : "");
	pipe = popen(line, "re");
	node->edits[gpu] = pipe ? json_loadf(pipe, 0, &error) : NULL;
	if (!pipe || pclose(pipe) || !node->edits[gpu])
		return failure("%s failed", line);
	return 0;
}

int node_open(struct node *node, const char *config)
{
	char command[4096];
	int status;

	memset(node, 0, sizeof(*node));
	status = read_config(node, config) ?: command_path(command, sizeof(command)) ?:
		 look(command) ?: node_gpus_read(&node->boards);
	for (unsigned int i = 0; !status && i < node->boards.nr; i++) {
		const struct node_gpu *board = &node->boards.gpus[i];
		const char *uuid = gpupart_topology_info(board->topo)->uuid;
		unsigned int nr = gpupart_topology_nr_tpcs(board->topo);

		snprintf(node->names[i], sizeof(node->names[i]), "%s", *uuid ? uuid : board->pci);
		if (board->memory && nr * node->memory_per_tpc > board->memory)
			status = failure(
				"%s: memory-per-tpc: %u TPCs of GPU %s would have %llu MiB of its %llu MiB",
				config, nr, board->pci,
				(unsigned long long)(nr * node->memory_per_tpc >> 20),
				(unsigned long long)(board->memory >> 20));
		status = status ?: read_edits(node, i, command);
	}
	return status;
}

void node_id(const struct node *node, unsigned int gpu, unsigned int tpc, char id[NODE_ID_LEN])
{
	snprintf(id, NODE_ID_LEN, "%s/%u", node->names[gpu], tpc);
}

bool node_find(const struct node *node, const char *id, unsigned int *gpu, unsigned int *tpc)
{
	const char *slash = strrchr(id, '/');
	char again[NODE_ID_LEN];

	if (!slash || strlen(slash) > 4)
		return false;
	*tpc = strtoul(slash + 1, NULL, 10);
	for (*gpu = 0; *gpu < node->boards.nr; ++*gpu) {
		node_id(node, *gpu, *tpc, again);
		if (!strcmp(id, again))
			return *tpc < gpupart_topology_nr_tpcs(node->boards.gpus[*gpu].topo);
	}
	return false;
}

bool node_is_healthy(const struct node *node, unsigned int gpu)
{
	const struct node_gpu *board = &node->boards.gpus[gpu];
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvidia%u", board->number);
	return !access(board->simulated ? board->source : path, F_OK);
}

/* --------------------------------------------------------------------- edits */

/* One more place in the list *@list of @nr pointers, for an object of @size bytes. */
static void *grow(void *list, size_t *nr, size_t size)
{
	void ***at = list, *object = alloc_zeroed(1, size);

	*at = alloc_resized(*at, *nr + 1, sizeof(**at));
	(*at)[(*nr)++] = object;
	return object;
}

static void add_variable(Kubelet__ContainerEdits *edits, const char *name, const char *value)
{
	Kubelet__Variable *variable = grow(&edits->variables, &edits->n_variables,
					   sizeof(*variable));

	kubelet__variable__init(variable);
	variable->name = alloc_text("%s", name);
	variable->value = alloc_text("%s", value);
}

static void add_mount(Kubelet__ContainerEdits *edits, const char *outside, const char *inside,
		      bool read_only)
{
	Kubelet__Mount *mount = grow(&edits->mounts, &edits->n_mounts, sizeof(*mount));

	kubelet__mount__init(mount);
	mount->inside = alloc_text("%s", inside);
	mount->outside = alloc_text("%s", outside);
	mount->read_only = read_only;
}

static void add_node(Kubelet__ContainerEdits *edits, const char *path)
{
	Kubelet__Node *device = grow(&edits->nodes, &edits->n_nodes, sizeof(*device));

	kubelet__node__init(device);
	device->inside = alloc_text("%s", path);
	device->outside = alloc_text("%s", path);
	device->permissions = alloc_text("rw");
}

/* Variables of a CDI list, but for those that each pod has its own of. */
static void add_list(Kubelet__ContainerEdits *edits, const json_t *list)
{
	static const char *const own[] = { "GPUPART_SET", "GPUPART_NAME", "GPUPART_TENANT",
					   "GPUPART_MEM" };
	json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry) {
		char *name = alloc_text("%s", json_string_value(entry)), *value = name;
		bool is_own = false;

		strsep(&value, "=");
		for (size_t j = 0; j < sizeof(own) / sizeof(own[0]); j++)
			is_own |= !strcmp(name, own[j]);
		if (!is_own)
			add_variable(edits, name, value ? value : "");
		free(name);
	}
}

/* What NVIDIA's container tools would bring, found by the loader's list. */
static void add_driver(Kubelet__ContainerEdits *edits)
{
	static const char *const nodes[] = { "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools" };
	static const char *const names[] = { "libcuda.so.1", "libnvidia-ml.so.1",
					     "libnvidia-ptxjitcompiler.so.1" };
	FILE *list = popen("/sbin/ldconfig -p", "re");
	char line[1024], name[128], path[512], *inside;

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		if (!access(nodes[i], F_OK))
			add_node(edits, nodes[i]);
	while (list && fgets(line, sizeof(line), list))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (!strstr(line, "64)") ||
			    sscanf(line, " %127s (%*[^)]) => %511[^\n]", name, path) != 2 ||
			    strcmp(name, names[i]))
				continue;
			inside = alloc_text(DRIVER_INSIDE "/%s", name);
			add_mount(edits, path, inside, true);
			free(inside);
		}
	if (list)
		pclose(list);
	add_variable(edits, "LD_LIBRARY_PATH", DRIVER_INSIDE);
}

static void add_cdi_device(Kubelet__ContainerEdits *edits, const char *name)
{
	Kubelet__CdiDevice *device = grow(&edits->cdi_devices, &edits->n_cdi_devices,
					  sizeof(*device));

	kubelet__cdi_device__init(device);
	device->name = alloc_text("nvidia.com/gpu=%s", name);
}

void node_edits(const struct node *node, unsigned int gpu, const struct gpupart_grant *grant,
		const char *folder, Kubelet__ContainerEdits *edits)
{
	json_t *all = json_object_get(node->edits[gpu], "containerEdits"), *entry, *own;
	char list[GPUPART_TPCSET_STRLEN], number[24];
	const char *inside, *option;
	size_t i;

	own = json_array_get(json_object_get(node->edits[gpu], "devices"), 0);
	add_list(edits, json_object_get(all, "env"));
	add_list(edits, json_object_get(json_object_get(own, "containerEdits"), "env"));
	json_array_foreach(json_object_get(all, "deviceNodes"), i, entry)
		add_node(edits, json_string_value(json_object_get(entry, "path")));
	json_array_foreach(json_object_get(all, "mounts"), i, entry) {
		inside = json_string_value(json_object_get(entry, "containerPath"));
		option = json_string_value(json_array_get(json_object_get(entry, "options"), 0));
		/* A client of MPS shares memory with its server: it has all of /dev/shm. */
		if (!node->mps || strncmp(inside, "/dev/shm/", 9))
			add_mount(edits, json_string_value(json_object_get(entry, "hostPath")),
				  inside, !strcmp(option, "ro"));
	}
	gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
	add_variable(edits, "GPUPART_SET", list);
	add_variable(edits, "GPUPART_NAME", grant->name);
	add_variable(edits, "GPUPART_JOB", grant->id);
	if (grant->memory) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)grant->memory);
		add_variable(edits, "GPUPART_TENANT", grant->name);
		add_variable(edits, "GPUPART_MEM", number);
	}
	add_mount(edits, folder, GPUPART_GRANT_ROOT, true);
	if (node->mps) {
		add_mount(edits, "/dev/shm", "/dev/shm", false);
		add_mount(edits, MPS_DAEMON_NODE, MPS_DAEMON_NODE, false);
		add_variable(edits, MPS_DAEMON_PIPES, MPS_DAEMON_NODE);
	}
	/* NVIDIA's container runtime, where it is the node's, gives no other GPU than this. */
	add_variable(edits, "NVIDIA_VISIBLE_DEVICES",
		     node->driver == NODE_DRIVER_RUNTIME ? node->names[gpu] : "void");
	/* Of a real GPU the container has no other's device node. */
	if (node->boards.gpus[gpu].simulated) {
		snprintf(number, sizeof(number), "%u", gpu);
		add_variable(edits, "CUDA_VISIBLE_DEVICES", number);
		return;
	}
	if (node->driver == NODE_DRIVER_FILES)
		add_driver(edits);
	else if (node->driver == NODE_DRIVER_CDI)
		add_cdi_device(edits, node->names[gpu]);
}
