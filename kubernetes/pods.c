// SPDX-License-Identifier: MIT
/* The grants of containers: see pods.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "cli/target/state_dir.h"
#include "cli/target/cgroup.h"
#include "cli/target/container_grant.h"
#include "cli/target/neighbours.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/process.h"
#include "kubernetes/pods.h"
#include "lib/private.h"
#include "slurm/node_lock.h"

#define FOLDERS "/run/gpupart/kubernetes"
#define PREFIX "0-0-"		/* begins ids of grants; Slurm's ids have one hyphen */
#define IDS "pod ids="
#define LOCK_SECONDS 3
#define RUN_LOCK_SECONDS 1
#define GRACE_NS 10000000000ull	/* kubelet lists an allocation within this time after Allocate */
#define LIST_NS 3000000000ull	/* same time, if kubelet offers the ids of a container as free */

/* What is known about the ids of each GPU since kubelet started. */
static struct {
	struct gpupart_tpcset listed;	/* ids in kubelet's most recent list */
	struct gpupart_tpcset seen;	/* ids that kubelet has listed since their last Allocate */
	struct gpupart_tpcset held;	/* ids that it has not offered as free since then */
} known[NODE_GPUS_MAX];
static uint64_t kubelet_since, listed_at;	/* @listed_at: 0: not yet */
struct pods pods;

void pods_forget_lists(uint64_t since)
{
	memset(known, 0, sizeof(known));
	listed_at = 0;
	kubelet_since = since ?: kubelet_since;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static ino_t namespace_of(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/*
 * Returns whether process @pid has mounted the folder of a grant. If so, marks the pod of this
 * grant as alive. A container can give its own folders any name. But it cannot put its folders on
 * the device of FOLDERS.
 */
static bool look_at_mounts(int pid)
{
	char path[32], root[4096], *id;
	unsigned int major, minor;
	struct stat folders;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	file = stat(FOLDERS, &folders) ? NULL : fopen(path, "re");
	while (file && fscanf(file, "%*d %*d %u:%u %4095s%*[^\n]", &major, &minor, root) == 3) {
		id = strstr(root, "/" PREFIX);
		if (!id || makedev(major, minor) != folders.st_dev)
			continue;
		found = true;
		for (unsigned int i = 0; i < pods.nr; i++)
			pods.list[i].lives |= !strcmp(id + 1, pods.list[i].grant.id);
	}
	if (file)
		fclose(file);
	return found;
}

static void look_for_processes(void)
{
	ino_t own = namespace_of(getpid()), last = own, at;
	DIR *proc = opendir("/proc");
	int pid;

	/* The processes of one container mostly have consecutive pids. */
	while (proc && (pid = process_next(proc))) {
		at = namespace_of(pid);
		if (at && at != own && at != last)
			look_at_mounts(pid);
		last = at;
	}
	if (proc)
		closedir(proc);
}

/* A process of a pod can claim any set. So use the grant of the pod instead. */
static bool is_in_pod(int pid)
{
	struct cgroup_ids ids;

	cgroup_read(pid, &ids);
	return *ids.pod || (namespace_of(pid) != namespace_of(getpid()) && look_at_mounts(pid));
}

int pods_read(void)
{
	static const struct args args[] = { { .simulated = false }, { .simulated = true } };
	struct neighbours beside[NODE_GPUS_MAX] = { 0 };
	struct gpupart_grant *list;
	int nr = shown_grants(cmd_gp, &list);

	free(pods.list);
	pods = (struct pods){ .read_at = now_ns() };
	if (nr < 0) {
		remark("%s", gpupart_error(cmd_gp));
		return nr;
	}
	pods.list = alloc_zeroed(nr + 1, sizeof(*pods.list));
	for (int i = 0; i < nr; i++) {
		struct pod pod = { .grant = list[i] };

		while (pod.gpu < node.boards.nr &&
		       strcmp(node.boards.gpus[pod.gpu].pci, list[i].pci))
			pod.gpu++;
		if (pod.gpu == node.boards.nr)
			continue;
		if (strncmp(list[i].id, PREFIX, strlen(PREFIX)) ||
		    strncmp(list[i].asked, IDS, strlen(IDS))) {
			pods.taken[pod.gpu] = gpupart_tpcset_or(&pods.taken[pod.gpu], &list[i].set);
			pods.memory[pod.gpu] += list[i].memory;
			continue;
		}
		gpupart_tpcset_parse_hex(NULL, list[i].asked + strlen(IDS), &pod.ids);
		pod.born = strtoull(list[i].id + strlen(PREFIX), NULL, 16);
		pod.is_young = now_ns() < pod.born + GRACE_NS && pod.born > kubelet_since;
		pods.list[pods.nr++] = pod;
	}
	free(list);
	/* If kubelet has allocated ids a second time, these ids belong to the later grant. */
	for (struct pod *a = pods.list, *end = a + pods.nr; a < end; a++) {
		a->own = a->ids;
		for (struct pod *b = pods.list; b < end; b++)
			if (a->gpu == b->gpu && b->born > a->born)
				a->own = gpupart_tpcset_andnot(&a->own, &b->ids);
	}
	for (unsigned int g = 0; g < node.boards.nr; g++) {
		const struct node_gpu *board = &node.boards.gpus[g];

		beside[g] = (struct neighbours){
			.args = &args[board->simulated], .topo = board->topo, .pci = board->pci,
			.is_left_out = is_in_pod,
		};
	}
	neighbours_add(beside, node.boards.nr, pods.taken);
	return 0;
}

/* Writes the folder that a container sees as GPUPART_GRANT_ROOT to @folder. Returns @folder. */
static const char *folder_of(const char *id, char folder[PODS_FOLDER_LEN])
{
	snprintf(folder, PODS_FOLDER_LEN, FOLDERS "/%.60s", id);
	return folder;
}

void pods_follow(void)
{
	char folder[PODS_FOLDER_LEN], from[PODS_FOLDER_LEN], to[PODS_FOLDER_LEN + 8];
	struct stat grant, copy;
	struct dirent *entry;
	DIR *dir = opendir(FOLDERS);
	unsigned int i;

	for (i = 0; i < pods.nr; i++) {
		const struct pod *pod = &pods.list[i];

		snprintf(from, sizeof(from), GPUPART_GRANT_ROOT "/%s", pod->grant.id);
		snprintf(to, sizeof(to), "%s/" GPUPART_GRANT_CONTAINER,
			 folder_of(pod->grant.id, folder));
		/* An init container may still run on TPCs of other containers of its pod. */
		if (gpupart_tpcset_equal(&pod->own, &pod->ids) && !stat(from, &grant) &&
		    (stat(to, &copy) || copy.st_mtim.tv_sec < grant.st_mtim.tv_sec ||
		     (copy.st_mtim.tv_sec == grant.st_mtim.tv_sec &&
		      copy.st_mtim.tv_nsec < grant.st_mtim.tv_nsec)))
			hold_container(folder, &pod->grant);
	}
	while (dir && (entry = readdir(dir))) {
		for (i = 0; i < pods.nr && strcmp(pods.list[i].grant.id, entry->d_name); i++)
			;
		if (i == pods.nr && !strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			hold_remove(folder_of(entry->d_name, folder));
	}
	if (dir)
		closedir(dir);
}

static int drop(const struct pod *pod)
{
	char folder[PODS_FOLDER_LEN];
	int err = gpupart_grant_drop(cmd_gp, pod->grant.id);

	if (err)
		remark("%s", gpupart_error(cmd_gp));
	else
		hold_remove(folder_of(pod->grant.id, folder));
	return err;
}

struct gpupart_tpcset pods_offer(unsigned int gpu, const struct gpupart_tpcset *ids)
{
	struct gpupart_tpcset left = *ids;

	known[gpu].held = gpupart_tpcset_andnot(&known[gpu].held, ids);
	for (unsigned int i = 0; i < pods.nr; i++)
		if (pods.list[i].gpu == gpu)
			left = gpupart_tpcset_andnot(&left, &pods.list[i].own);
	return left;
}

struct gpupart_tpcset pods_free(unsigned int gpu)
{
	struct gpupart_tpcset left = gpupart_topology_all(node.boards.gpus[gpu].topo);

	left = gpupart_tpcset_andnot(&left, &pods.taken[gpu]);
	for (unsigned int i = 0; i < pods.nr; i++)
		if (pods.list[i].gpu == gpu)
			left = gpupart_tpcset_andnot(&left, &pods.list[i].grant.set);
	return left;
}

const char *pods_most(void)
{
	static char text[128];
	unsigned int most = 0, best = 0;

	pods_read();
	for (unsigned int g = 0; g < node.boards.nr; g++) {
		struct gpupart_tpcset left = pods_free(g);

		if (gpupart_tpcset_count(&left) > most) {
			most = gpupart_tpcset_count(&left);
			best = g;
		}
	}
	snprintf(text, sizeof(text), "the most that one GPU of this node has free is %u, on GPU %s",
		 most, node.boards.gpus[best].pci);
	return text;
}

void pods_reap(const struct gpupart_tpcset *listed, const struct gpupart_tpcset *noted)
{
	look_for_processes();
	listed_at = pods.read_at;
	for (unsigned int g = 0; g < NODE_GPUS_MAX; g++) {
		known[g].listed = listed[g];
		known[g].seen = gpupart_tpcset_or(&known[g].seen, &listed[g]);
	}
	for (unsigned int i = 0; i < pods.nr; i++) {
		struct pod *pod = &pods.list[i];
		bool is_back = gpupart_tpcset_empty(&pod->own);
		/* Keep the grant of an init container as long as other grants have the same ids. */
		const struct gpupart_tpcset *ids = is_back ? &pod->ids : &pod->own;

		/* After a restart, kubelet lists pods late, but its checkpoint has all of them. */
		if (pod->lives || gpupart_tpcset_intersects(ids, &listed[pod->gpu]) ||
		    (!gpupart_tpcset_empty(ids) &&
		     !gpupart_tpcset_intersects(ids, &known[pod->gpu].seen) &&
		     (pod->is_young || gpupart_tpcset_intersects(ids, &noted[pod->gpu]))))
			continue;
		if (!drop(pod))
			pods.list[i--] = pods.list[--pods.nr];
	}
}

/* Chooses @nr TPCs of @from. The set @from must have at least @nr TPCs. */
static struct gpupart_tpcset packed(unsigned int gpu,
				    const struct gpupart_tpcset *from, unsigned int nr)
{
	struct gpupart_tpcset set = { 0 };

	if (nr)
		gpupart_set_shape(cmd_gp, node.boards.gpus[gpu].topo, GPUPART_SHAPE_PACKED, from,
				  nr, &set);
	return set;
}

/*
 * Returns whether kubelet may allocate @ids of @pod again. This is so if the container has ended,
 * or if it is an init container of the same pod. The ids of an ended container are first offered as
 * free. The ids of an init container are never offered as free. If kubelet's list is read while
 * kubelet waits for Allocate, kubelet can also forget ids. Then the ids of a container that may
 * start at any time are offered.
 */
static bool is_reuse(const struct pod *pod, const struct gpupart_tpcset *ids)
{
	return gpupart_tpcset_subset(ids, &known[pod->gpu].held) ||
	       (listed_at && !gpupart_tpcset_intersects(ids, &known[pod->gpu].listed) &&
		(!pod->is_young || listed_at > pod->born + LIST_NS ||
		 gpupart_tpcset_subset(ids, &known[pod->gpu].seen)));
}

/*
 * Handles ids that kubelet allocates again. For each such id, a young grant passes one TPC to
 * *shared. The young grant keeps its other TPCs. If a container still runs, it keeps its TPCs. If
 * kubelet must not allocate the ids again, returns -EEXIST.
 */
static int take_ids_back(unsigned int gpu, const struct gpupart_tpcset *ids,
			 struct gpupart_tpcset *shared)
{
	bool looked = false;
	int err = 0;

	for (unsigned int i = 0; !err && i < pods.nr; i++) {
		struct pod *pod = &pods.list[i];
		struct gpupart_tpcset both = gpupart_tpcset_and(&pod->own, ids);
		unsigned int nr = gpupart_tpcset_count(&both);

		if (pod->gpu != gpu || !nr)
			continue;
		if (!looked)
			look_for_processes();
		looked = true;
		if (!is_reuse(pod, &both)) {
			err = -EEXIST;
		} else if (pod->lives) {
			strcpy(pod->grant.asked, IDS "0");
			err = gpupart_grant_put(cmd_gp, &pod->grant);
		} else if (pod->is_young && gpupart_tpcset_count(&pod->grant.set) >= nr) {
			both = packed(gpu, &pod->grant.set, nr);
			*shared = gpupart_tpcset_or(shared, &both);
			pod->grant.set = gpupart_tpcset_andnot(&pod->grant.set, &both);
			pod->gave_on = true;
		} else {
			err = drop(pod);
			memset(&pod->grant.set, 0, sizeof(pod->grant.set));
		}
	}
	return err;
}

/* The caller holds the locks. */
static void place(unsigned int gpu, const struct gpupart_tpcset *ids,
		  struct gpupart_grant *grant, struct grpc_status *status)
{
	struct gpupart_tpcset shared = { 0 }, left, rest;
	unsigned int nr = gpupart_tpcset_count(ids), room;
	int err = take_ids_back(gpu, ids, &shared);

	left = pods_free(gpu);
	left = gpupart_tpcset_andnot(&left, &shared);
	shared = gpupart_tpcset_andnot(&shared, &pods.taken[gpu]);
	room = gpupart_tpcset_count(&shared) + gpupart_tpcset_count(&left);
	if (!err && nr <= room) {
		rest = packed(gpu, &left, nr - gpupart_tpcset_count(&shared));
		grant->set = gpupart_tpcset_or(&shared, &rest);
		err = gpupart_grant_put(cmd_gp, grant);
		for (unsigned int i = 0; !err && i < pods.nr; i++)
			if (pods.list[i].gave_on)
				err = gpupart_grant_put(cmd_gp, &pods.list[i].grant);
	}
	if (err == -EEXIST)
		grpc_fail(status, GRPC_RESOURCE_EXHAUSTED,
			  "kubelet has given an id of GPU %s to two containers", grant->pci);
	else if (err)
		grpc_fail(status, err == -ENOSPC ? GRPC_RESOURCE_EXHAUSTED : GRPC_UNAVAILABLE, "%s",
			  gpupart_error(cmd_gp));
	else if (nr > room)
		grpc_fail(status, GRPC_RESOURCE_EXHAUSTED,
			  "no %u TPCs are free on GPU %s, whose ids kubelet chose: %u are; %s",
			  nr, grant->pci, room, pods_most());
}

/*
 * Acquires the lock of root's `gpupart run -n`, and then the lock of the node's schedulers. If a
 * container can open the folder of the first lock, the container can keep this lock. In this case,
 * a run that begins now may get the same TPCs. If fds[1] is below 0, @why has the reason.
 */
static void lock(int fds[2], char *why, size_t len)
{
	char folder[STATE_DIR_PATH_LEN], path[STATE_DIR_PATH_LEN + 8];

	snprintf(path, sizeof(path), "%s/lock", state_dir_path(0, folder));
	fds[0] = state_dir_create(0, why, len) ?: node_lock(path, RUN_LOCK_SECONDS, why, len);
	if (fds[0] < 0)
		remark(
			"'gpupart run -n' may choose the same TPCs, because the lock cannot be acquired: %s",
		       why);
	fds[1] = node_lock(NODE_LOCK, LOCK_SECONDS, why, len);
}

void pods_give(unsigned int gpu, const struct gpupart_tpcset *ids, struct gpupart_grant *grant,
	       char folder[PODS_FOLDER_LEN], struct grpc_status *status)
{
	const struct node_gpu *board = &node.boards.gpus[gpu];
	char why[sizeof(status->why)];
	int fds[2];

	lock(fds, why, sizeof(why));
	*grant = (struct gpupart_grant){
		.nr_tpcs = gpupart_topology_nr_tpcs(board->topo),
		.memory = gpupart_tpcset_count(ids) * node.memory_per_tpc,
		.strict = config_is_strict(gpupart_config_strict(cmd_gp)),
		.asked = IDS,
	};
	snprintf(grant->id, sizeof(grant->id), PREFIX "%016llx", (unsigned long long)now_ns());
	snprintf(grant->name, sizeof(grant->name), "pod-%s", grant->id + strlen(PREFIX));
	strcpy(grant->pci, board->pci);
	strcpy(grant->source, board->source);
	strcpy(grant->key, board->key);
	gpupart_tpcset_format_hex(ids, grant->asked + strlen(IDS),
				  sizeof(grant->asked) - strlen(IDS));
	if (fds[1] < 0)
		grpc_fail(status, GRPC_UNAVAILABLE, "%s", why);
	else if (pods_read())
		grpc_fail(status, GRPC_UNAVAILABLE, "%s", gpupart_error(cmd_gp));
	else if (grant->memory && pods.memory[gpu] + grant->memory > board->memory)
		grpc_fail(status, GRPC_RESOURCE_EXHAUSTED,
			  "no %llu MiB are free on GPU %s: other jobs have %llu MiB of it",
			  (unsigned long long)(grant->memory >> 20), grant->pci,
			  (unsigned long long)(pods.memory[gpu] >> 20));
	else
		place(gpu, ids, grant, status);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (status->code)
		return;
	known[gpu].seen = gpupart_tpcset_andnot(&known[gpu].seen, ids);
	known[gpu].held = gpupart_tpcset_or(&known[gpu].held, ids);
	if (hold_container(folder_of(grant->id, folder), grant)) {
		grpc_fail(status, GRPC_UNAVAILABLE, "%s cannot be written", folder);
		gpupart_grant_drop(cmd_gp, grant->id);
	}
}
