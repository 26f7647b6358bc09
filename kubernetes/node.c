// SPDX-License-Identifier: MIT
/*
 * Finds the GPUs and the files of a node; see node.h. A container gets the files of the driver, and
 * the CDI edits that `gpupart cdi` writes for its GPU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/mps/mps_daemon.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/paths.h"
#include "kubernetes/node.h"
#include "lib/private.h"
#include "slurm/node_file.h"

struct node node = { .kubelet = NODE_KUBELET, .config = NODE_CONFIG };

#define DRIVER_INSIDE "/usr/lib/gpupart-host/driver"

static bool take(const char *key, const char *value)
{
	char *end;

	if (!strcmp(key, "memory-per-tpc"))
		return !gpupart_memory_parse(NULL, value, &node.memory_per_tpc);
	if (!strcmp(key, "mps")) {
		node.mps = !strcmp(value, "yes");
		return node.mps || !strcmp(value, "no");
	}
	if (!strcmp(key, "uid")) {
		node.uid = strtoul(value, &end, 10);
		return *value >= '0' && *value <= '9' && !*end && node.uid < (uid_t)-1;
	}
	if (!strcmp(key, "driver")) {
		node.driver = !strcmp(value, "cdi") ? NODE_DRIVER_CDI :
			      !strcmp(value, "runtime") ? NODE_DRIVER_RUNTIME : NODE_DRIVER_FILES;
		return node.driver != NODE_DRIVER_FILES || !strcmp(value, "files");
	}
	return false;
}

static int read_config(void)
{
	struct gpupart_config config;
	int found;

	gpupart_config_open(&config, node.config, false);
	while ((found = gpupart_config_next(cmd_gp, &config)) > 0)
		if (!take(config.key, config.value))
			return failure(
				"%s:%u: '%s = %s' is not valid: a line must be memory-per-tpc = SIZE, mps = yes or no, uid = N, or driver = files, cdi or runtime",
				node.config, config.line, config.key, config.value);
	if (found == -EPERM)
		return failure("%s is not a file that only root can write", node.config);
	return found ? failure("%s", gpupart_error(cmd_gp)) : 0;
}

/* Reads the node's GPUs again. Simulated GPUs do not change. */
static int look(const char *command)
{
	char *captures = boards_simulated(), line[4200], sim[4096];

	if (!node_gpus_simulated()) {
		snprintf(line, sizeof(line), "'%s' slurm-node", command);
		return system(line) ? failure("%s failed: the node's GPUs are not known", line) : 0;
	}
	if (captures && !paths_package(PATHS_SIM, sim, sizeof(sim))) {
		setenv("GPUPART_SIM", captures, 1);
		setenv("LD_LIBRARY_PATH", sim, 1);
	}
	free(captures);
	return 0;
}

/*
 * With --mem, the edits contain all settings of a quota. For each pod, the size and the set in
 * these edits are replaced. A container without one of the mounts
 * would not be confined. So the plugin does not start if an edit is not complete.
 */
static int read_edits(unsigned int gpu, const char *command)
{
	json_t *all, *entry, *own = NULL;
	char line[4200];
	FILE *pipe;
	size_t i;
	bool bad;

	snprintf(line, sizeof(line), "'%s' cdi --gpu %s --uid %lu --device pod%s", command,
		 node.boards.gpus[gpu].pci, node.uid,
		 node.memory_per_tpc ? " --name pod --mem 1G" : "");
	pipe = popen(line, "re");
	all = pipe ? json_loadf(pipe, 0, NULL) : NULL;
	bad = !pipe || pclose(pipe) ||
	      json_unpack(all, "{s:{s:o, s?o, s:o}, s:[{s:{s?o}}]}", "containerEdits",
			  "env", &node.env[gpu], "deviceNodes", &node.nodes[gpu],
			  "mounts", &node.mounts[gpu], "devices", "containerEdits",
			  "env", &own);
	json_array_extend(node.env[gpu], own);
	json_array_foreach(node.mounts[gpu], i, entry)
		bad |= json_unpack_ex(entry, NULL, JSON_VALIDATE_ONLY, "{s:s, s:s, s:[s]}",
				      "hostPath", "containerPath", "options");
	return bad ? failure("%s failed, or its output is not complete", line) : 0;
}

int node_open(void)
{
	char command[4096] = "";
	int status = read_config();

	/* The command is in the same directory as this program. */
	if (readlink("/proc/self/exe", command, sizeof(command) - sizeof("gpupart")) < 0)
		return failure("/proc/self/exe does not name this program's path");
	strcpy(strrchr(command, '/'), "/gpupart");
	status = status ?: look(command) ?: node_gpus_read(&node.boards);
	for (unsigned int i = 0; !status && i < node.boards.nr; i++) {
		const struct node_gpu *board = &node.boards.gpus[i];
		const char *uuid = gpupart_topology_info(board->topo)->uuid;
		unsigned int nr = gpupart_topology_nr_tpcs(board->topo);

		snprintf(node.names[i], sizeof(node.names[i]), "%s", *uuid ? uuid : board->pci);
		if (board->memory && nr * node.memory_per_tpc > board->memory)
			status = failure(
				"%s: memory-per-tpc: all %u TPCs of GPU %s would need %llu MiB, but the GPU has %llu MiB",
				node.config, nr, board->pci,
				(unsigned long long)(nr * node.memory_per_tpc >> 20),
				(unsigned long long)(board->memory >> 20));
		status = status ?: read_edits(i, command);
	}
	return status;
}

char *node_id(unsigned int gpu, unsigned int tpc)
{
	return alloc_text("%s/%u", node.names[gpu], tpc);
}

char *node_sort(char **list, size_t nr, struct gpupart_tpcset *ids)
{
	char *unknown = NULL;

	for (size_t i = 0; i < nr; i++) {
		const char *slash = strrchr(list[i], '/');
		unsigned int tpc = slash ? strtoul(slash + 1, NULL, 10) : 0, g = 0;

		for (; g < node.boards.nr; g++) {
			char *id = node_id(g, tpc);
			bool same = !strcmp(list[i], id);

			free(id);
			if (same && tpc < gpupart_topology_nr_tpcs(node.boards.gpus[g].topo))
				break;
		}
		if (g < node.boards.nr)
			gpupart_tpcset_add(&ids[g], tpc);
		else
			unknown = list[i];
	}
	return unknown;
}

bool node_is_healthy(unsigned int gpu)
{
	const struct node_gpu *board = &node.boards.gpus[gpu];
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvidia%u", board->number);
	return !access(board->simulated ? board->source : path, F_OK);
}

void *node_message(const ProtobufCMessageDescriptor *type)
{
	void *message = alloc_zeroed(1, type->sizeof_message);

	type->message_init(message);
	return message;
}

void *node_add(void *list, size_t *nr, const ProtobufCMessageDescriptor *type)
{
	void ***at = list, *message = node_message(type);

	*at = alloc_resized(*nr ? *at : NULL, *nr + 1, sizeof(**at));
	(*at)[(*nr)++] = message;
	return message;
}

/*
 * Adds @text, which is "NAME=VALUE", and owns it. If a name occurs twice, the second value applies.
 */
static void add_env(Kubelet__ContainerEdits *edits, char *text)
{
	Kubelet__Variable *variable = NODE_ADD(edits, variables, variable);

	variable->name = strsep(&text, "=");
	variable->value = alloc_text("%s", text ?: "");
}

static void add_mount(Kubelet__ContainerEdits *edits, const char *outside, const char *inside,
		      bool read_only)
{
	Kubelet__Mount *mount = NODE_ADD(edits, mounts, mount);

	mount->inside = alloc_text("%s", inside);
	mount->outside = alloc_text("%s", outside);
	mount->read_only = read_only;
}

static void add_node(Kubelet__ContainerEdits *edits, const char *path)
{
	if (!access(path, F_OK)) {
		Kubelet__Node *device = NODE_ADD(edits, nodes, node);

		device->inside = alloc_text("%s", path);
		device->outside = alloc_text("%s", path);
		device->permissions = alloc_text("rw");
	}
}

/* Adds the same files as NVIDIA's container tools. Finds these files in the loader's list. */
static void add_driver(Kubelet__ContainerEdits *edits)
{
	static const char *const names[] = { "libcuda.so.1", "libnvidia-ml.so.1",
					     "libnvidia-ptxjitcompiler.so.1" };
	FILE *list = popen("/sbin/ldconfig -p", "re");
	char line[1024], name[128], path[512], inside[192];

	add_node(edits, "/dev/nvidia-uvm");
	add_node(edits, "/dev/nvidia-uvm-tools");
	while (list && fgets(line, sizeof(line), list)) {
		if (!strstr(line, "64)") ||
		    sscanf(line, " %127s (%*[^)]) => %511[^\n]", name, path) != 2)
			continue;
		snprintf(inside, sizeof(inside), DRIVER_INSIDE "/%s", name);
		for (int i = 0; i < 3; i++)
			if (!strcmp(name, names[i]))
				add_mount(edits, path, inside, true);
	}
	if (list)
		pclose(list);
	add_env(edits, alloc_text("LD_LIBRARY_PATH=" DRIVER_INSIDE));
}

void node_edits(unsigned int gpu, const struct gpupart_grant *grant, const char *tpcs,
		const char *folder, Kubelet__ContainerEdits *edits)
{
	const char *outside, *inside, *option;
	json_t *entry;
	size_t i;

	json_array_foreach(node.env[gpu], i, entry)
		add_env(edits, alloc_text("%s", json_string_value(entry)));
	json_array_foreach(node.nodes[gpu], i, entry)
		add_node(edits, json_string_value(json_object_get(entry, "path")));
	json_array_foreach(node.mounts[gpu], i, entry)
		if (!json_unpack(entry, "{s:s, s:s, s:[s]}", "hostPath", &outside,
				 "containerPath", &inside, "options", &option))
			add_mount(edits, outside, inside, !strcmp(option, "ro"));
	add_env(edits, alloc_text("GPUPART_SET=%s", tpcs));
	add_env(edits, alloc_text("GPUPART_NAME=%s", grant->name));
	add_env(edits, alloc_text("GPUPART_JOB=%s", grant->id));
	if (grant->memory) {
		add_env(edits, alloc_text("GPUPART_TENANT=%s", grant->name));
		add_env(edits, alloc_text("GPUPART_MEM=%llu", (unsigned long long)grant->memory));
	}
	add_mount(edits, folder, GPUPART_GRANT_ROOT, true);
	/* A client of MPS shares memory with its server through files below /dev/shm. */
	if (node.mps) {
		add_mount(edits, "/dev/shm", "/dev/shm", false);
		add_mount(edits, MPS_DAEMON_NODE, MPS_DAEMON_NODE, false);
		add_env(edits, alloc_text(MPS_DAEMON_PIPES "=" MPS_DAEMON_NODE));
	}
	/* The node may use NVIDIA's container runtime. This runtime must not add another GPU. */
	add_env(edits, alloc_text("NVIDIA_VISIBLE_DEVICES=%s",
				  node.driver == NODE_DRIVER_RUNTIME ? node.names[gpu] : "void"));
	/* If the GPU is real, the container gets the device node of this GPU and of no other. */
	if (node.boards.gpus[gpu].simulated) {
		add_env(edits, alloc_text("CUDA_VISIBLE_DEVICES=%u", gpu));
	} else if (node.driver == NODE_DRIVER_FILES) {
		add_driver(edits);
	} else if (node.driver == NODE_DRIVER_CDI) {
		Kubelet__CdiDevice *device = NODE_ADD(edits, cdi_devices, cdi_device);

		device->name = alloc_text("nvidia.com/gpu=%s", node.names[gpu]);
	}
}
