// SPDX-License-Identifier: MIT
/* The grants of containers: see pods.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/target/state_dir.h"
#include "cli/target/cgroup.h"
#include "cli/target/container_grant.h"
#include "cli/target/neighbours.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/mounts.h"
#include "cli/util/process.h"
#include "kubernetes/pods.h"
#include "lib/private.h"
#include "slurm/node_lock.h"

#define FOLDERS "/run/gpupart/kubernetes"
#define PREFIX "0-0-"		/* begins ids of grants; Slurm's ids have one hyphen */
#define IDS "pod ids="
/* limits for reading /proc/PID/mountinfo, in bytes: of one process, and in one round */
#define MOUNTS_ONE (1 << 20)
#define MOUNTS_MAX (4 << 20)
#define LOCK_SECONDS 3
#define RUN_LOCK_SECONDS 1
#define START_NS 60000000000ull	/* after its start, kubelet knows its pods within this time */
#define GRACE_NS 10000000000ull	/* kubelet lists an allocation within this time after Allocate */
#define LIST_NS 3000000000ull	/* same time, if kubelet offers the ids of a container as free */

/* What is known about the ids of each GPU since kubelet started. */
static struct {
	struct gpupart_tpcset listed;	/* ids in kubelet's most recent list */
	struct gpupart_tpcset seen;	/* ids that kubelet has listed since their last Allocate */
	struct gpupart_tpcset held;	/* ids that it has not offered as free since then */
} known[NODE_GPUS_MAX];
static uint64_t kubelet_since, listed_at;	/* @listed_at: 0: not yet */
static struct gpupart_tpcset noted[NODE_GPUS_MAX];	/* ids in kubelet's checkpoint file */
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
	return PODS_NS(now);
}

static ino_t namespace_of(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Adds a list of ids. Since Kubernetes 1.20 there is a list for each NUMA node. */
static void add_json(json_t *value, struct gpupart_tpcset *ids)
{
	char *text = (char *)json_string_value(value);
	const char *key;
	json_t *entry;
	size_t i;

	node_sort(&text, text != NULL, ids);
	json_array_foreach(value, i, entry)
		add_json(entry, ids);
	json_object_foreach(value, key, entry)
		add_json(entry, ids);
}

/*
 * Reads the ids in kubelet's checkpoint file to @noted, and the UIDs of the pods to @pods. If the
 * file cannot be parsed, @noted contains all ids. Allocation is the only time when kubelet writes
 * this file. So the file can contain ids of a removed pod. If the directory of a pod does not
 * exist, ignores its ids. But kubelet may have been killed before it made the directory. So these
 * ids still count for some time after a start of kubelet.
 */
static void read_notes(uint64_t kubelet_made)
{
	char path[PATH_MAX];
	const char *uid, *resource;
	json_t *root, *list = NULL, *entry;
	size_t i;

	memset(noted, 0, sizeof(noted));
	snprintf(path, sizeof(path), "%s/device-plugins/kubelet_internal_checkpoint", node.kubelet);
	if (access(path, F_OK) && errno == ENOENT)
		return;
	root = json_load_file(path, 0, NULL);
	json_unpack(root, "{s:{s:o}}", "Data", "PodDeviceEntries", &list);
	json_array_foreach(list, i, entry) {
		struct gpupart_tpcset ids[NODE_GPUS_MAX] = { 0 };

		if (json_unpack(entry, "{s:s, s:s}", "PodUID", &uid, "ResourceName", &resource) ||
		    strcmp(resource, NODE_RESOURCE))
			continue;
		add_json(json_object_get(entry, "DeviceIDs"), ids);
		snprintf(path, sizeof(path), "%s/pods/%s", node.kubelet, uid);
		if (now_ns() < kubelet_made + START_NS || !access(path, F_OK))
			add_json(json_object_get(entry, "DeviceIDs"), noted);
		for (struct pod *p = pods.list; p < pods.list + pods.nr; p++)
			if (gpupart_tpcset_intersects(*p->uid ? &p->own : &p->ids, &ids[p->gpu]))
				snprintf(p->uid, sizeof(p->uid), "%s", uid);
	}
	/* An empty list is written as null by kubelet. */
	if (!json_is_array(list) && !json_is_null(list))
		for (unsigned int g = 0; g < node.boards.nr; g++)
			noted[g] = gpupart_topology_all(node.boards.gpus[g].topo);
	json_decref(root);
}

/*
 * Returns 1 if process @pid has mounted the folder of a grant, and marks the pod of this grant as
 * alive. A container can also mount parts of its grant's folder. Other users cannot, because only
 * root can enter FOLDERS. If there is no such mount, returns 0.
 * A user namespace can have many mounts, and a copy of it can have them before the grant's mount.
 * So after a limit, returns -1.
 */
static int look_at_mounts(int pid, const struct cgroup_ids *ids)
{
	long *left = &pods.mounts_left[*ids->pod || *ids->container], end = *left - MOUNTS_ONE;
	static struct mounts_line folders;
	struct mounts_line line;
	const char *id;
	char path[32];
	int found = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	file = *folders.root || mounts_find(FOLDERS, &folders) ? fopen(path, "re") : NULL;
	while (file && !found && mounts_next(file, &line)) {
		*left -= line.len;
		id = mounts_inside(&line, &folders);
		found = id ? 1 : *left < 0 || *left < end ? -1 : 0;
		for (struct pod *p = pods.list; found > 0 && p < pods.list + pods.nr; p++)
			p->lives |= !strncmp(id, p->grant.id, strlen(p->grant.id));
	}
	if (file)
		fclose(file);
	return found;
}

static void look_for_processes(uint64_t kubelet_made)
{
	ino_t own = namespace_of(getpid()), last = own, at;
	DIR *proc = opendir("/proc");
	struct cgroup_ids ids;
	int pid;

	read_notes(kubelet_made);
	/* The processes of one container mostly have consecutive pids. */
	for (; proc && (pid = process_next(proc)); last = at) {
		at = namespace_of(pid);
		if (!at || at == own || at == last)
			continue;
		cgroup_read(pid, &ids);
		if (look_at_mounts(pid, &ids) >= 0 || (!*ids.pod && !*ids.container))
			continue;
		/* This may be a process of any container of its pod. */
		for (struct pod *p = pods.list; p < pods.list + pods.nr; p++)
			p->lives |= !*ids.pod || !*p->uid || !strcmp(p->uid, ids.pod);
	}
	if (proc)
		closedir(proc);
}

/* A process of a pod can claim any set. So use the grant of the pod instead. */
static bool is_in_pod(int pid)
{
	struct cgroup_ids ids;

	cgroup_read(pid, &ids);
	return *ids.pod || (namespace_of(pid) != namespace_of(getpid()) &&
			    look_at_mounts(pid, &ids) > 0);
}

int pods_read(void)
{
	static const struct args args[] = { { .simulated = false }, { .simulated = true } };
	struct neighbours beside[NODE_GPUS_MAX] = { 0 };
	struct gpupart_grant *list;
	int nr = shown_grants(cmd_gp, &list);
	static struct pods old;

	free(old.list);
	old = pods;
	pods = (struct pods){ .read_at = now_ns(), .mounts_left = { MOUNTS_MAX, MOUNTS_MAX } };
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
		for (unsigned int o = 0; o < old.nr; o++)
			if (!strcmp(old.list[o].grant.id, list[i].id)) {
				strcpy(pod.uid, old.list[o].uid);
				pod.is_copied = old.list[o].is_copied;
				pod.copied = old.list[o].copied;
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

/*
 * Compares sets, not the times of the files. If `gpupart set` changes a grant after pods_read(),
 * this call can write the earlier set, and the container's file is then newer than the grant. The
 * next call writes the new set.
 */
void pods_follow(void)
{
	char folder[PODS_FOLDER_LEN], file[PODS_FOLDER_LEN + 8];
	struct dirent *entry;
	DIR *dir = opendir(FOLDERS);
	unsigned int i;

	chmod(FOLDERS, 0700);	/* earlier versions made it with mode 0755 */
	for (struct pod *pod = pods.list; pod < pods.list + pods.nr; pod++) {
		snprintf(file, sizeof(file), "%s/" GPUPART_GRANT_CONTAINER,
			 folder_of(pod->grant.id, folder));
		/* An init container may still run on TPCs of other containers of its pod. */
		if (!gpupart_tpcset_equal(&pod->own, &pod->ids) ||
		    (pod->is_copied && gpupart_tpcset_equal(&pod->copied, &pod->grant.set) &&
		     !access(file, F_OK)))
			continue;
		pod->is_copied = !hold_container(folder, &pod->grant);
		pod->copied = pod->grant.set;
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
		unsigned int nr = gpupart_tpcset_count(&left);

		best = nr > most ? g : best;
		most = nr > most ? nr : most;
	}
	snprintf(text, sizeof(text), "the most that one GPU of this node has free is %u, on GPU %s",
		 most, node.boards.gpus[best].pci);
	return text;
}

void pods_reap(const struct gpupart_tpcset *listed, uint64_t kubelet_made)
{
	look_for_processes(kubelet_made);
	listed_at = pods.read_at;
	for (unsigned int g = 0; g < NODE_GPUS_MAX; g++) {
		known[g].listed = listed[g];
		known[g].seen = gpupart_tpcset_or(&known[g].seen, &listed[g]);
	}
	for (unsigned int i = 0; i < pods.nr; i++) {
		struct pod *pod = &pods.list[i];
		/* Keep the grant of an init container as long as other grants have the same ids. */
		const struct gpupart_tpcset *ids =
			gpupart_tpcset_empty(&pod->own) ? &pod->ids : &pod->own;

		/* After a restart, kubelet lists pods late, but its checkpoint has all of them. */
		if (pod->lives || gpupart_tpcset_intersects(ids, &listed[pod->gpu]) ||
		    (!gpupart_tpcset_empty(ids) &&
		     !gpupart_tpcset_intersects(ids, &known[pod->gpu].seen) &&
		     (pod->is_young || gpupart_tpcset_intersects(ids, &noted[pod->gpu]))))
			continue;
		if (gpupart_grant_drop(cmd_gp, pod->grant.id))
			remark("%s", gpupart_error(cmd_gp));
		else
			pods.list[i--] = pods.list[--pods.nr];
	}
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
 * *shared. The young grant keeps its other TPCs. Other grants give all their TPCs. If a container
 * still runs, it keeps its TPCs. If kubelet must not allocate the ids again, returns -EEXIST.
 */
static int take_ids_back(unsigned int gpu, const struct gpupart_tpcset *ids,
			 struct gpupart_tpcset *shared)
{
	int err = 0;

	for (struct pod *pod = pods.list; !err && pod < pods.list + pods.nr; pod++) {
		struct gpupart_tpcset both = gpupart_tpcset_and(&pod->own, ids);
		unsigned int nr = gpupart_tpcset_count(&both);

		if (pod->gpu != gpu || !nr)
			continue;
		if (!pods.nr_looks++)
			look_for_processes(0);
		if (!is_reuse(pod, &both)) {
			err = -EEXIST;
		} else if (pod->lives) {
			strcpy(pod->grant.asked, IDS "0");
			err = gpupart_grant_put(cmd_gp, &pod->grant);
		} else if (pod->is_young) {
			/* If the grant has fewer TPCs, this fails, and the grant keeps them. */
			gpupart_set_shape(cmd_gp, node.boards.gpus[gpu].topo, GPUPART_SHAPE_PACKED,
					  &pod->grant.set, nr, &pod->gave);
			*shared = gpupart_tpcset_or(shared, &pod->gave);
			pod->grant.set = gpupart_tpcset_andnot(&pod->grant.set, &pod->gave);
		} else {
			pod->gave = pod->grant.set;
			memset(&pod->grant.set, 0, sizeof(pod->grant.set));
		}
	}
	return err;
}

/*
 * Writes the young grants that gave TPCs to another one, and removes the old ones. If @back is
 * true, all of them get their TPCs back.
 */
static int put_shared(bool back)
{
	int err = 0;

	for (struct pod *pod = pods.list; !err && pod < pods.list + pods.nr; pod++) {
		if (back)
			pod->grant.set = gpupart_tpcset_or(&pod->grant.set, &pod->gave);
		if (!gpupart_tpcset_empty(&pod->gave))
			err = back || pod->is_young ? gpupart_grant_put(cmd_gp, &pod->grant) :
						      gpupart_grant_drop(cmd_gp, pod->grant.id);
	}
	return err;
}

/* The caller holds the locks. If it fails, each other grant keeps its TPCs. */
static void place(unsigned int gpu, const struct gpupart_tpcset *ids, struct gpupart_grant *grant,
		  char folder[PODS_FOLDER_LEN], struct grpc_status *status)
{
	struct gpupart_tpcset shared = { 0 }, left;
	unsigned int nr = gpupart_tpcset_count(ids), room;
	int err = take_ids_back(gpu, ids, &shared);

	left = pods_free(gpu);
	left = gpupart_tpcset_andnot(&left, &shared);
	shared = gpupart_tpcset_andnot(&shared, &pods.taken[gpu]);
	room = gpupart_tpcset_count(&shared) + gpupart_tpcset_count(&left);
	if (!err && nr <= room) {
		/* If no more TPCs are wanted, this fails, and the set stays empty. */
		gpupart_set_shape(cmd_gp, node.boards.gpus[gpu].topo, GPUPART_SHAPE_PACKED, &left,
				  nr - gpupart_tpcset_count(&shared), &grant->set);
		grant->set = gpupart_tpcset_or(&shared, &grant->set);
		mkdir(FOLDERS, 0700);
		/* In this order, no TPC is ever in two grants, even if the plugin is killed. */
		err = put_shared(false) ?: gpupart_grant_put(cmd_gp, grant) ?:
		      hold_container(folder_of(grant->id, folder), grant);
	}
	if (err == -EEXIST)
		grpc_fail(status, GRPC_RESOURCE_EXHAUSTED,
			  "kubelet has given an id of GPU %s to two containers", grant->pci);
	else if (err > 0)
		grpc_fail(status, GRPC_UNAVAILABLE, "%s cannot be written", folder);
	else if (err)
		grpc_fail(status, err == -ENOSPC ? GRPC_RESOURCE_EXHAUSTED : GRPC_UNAVAILABLE, "%s",
			  gpupart_error(cmd_gp));
	else if (nr > room)
		grpc_fail(status, GRPC_RESOURCE_EXHAUSTED,
			  "no %u TPCs are free on GPU %s, whose ids kubelet chose: %u are; %s",
			  nr, grant->pci, room, pods_most());
	/* The removal makes room for the other writes if /run is full. */
	if (status->code && (gpupart_grant_drop(cmd_gp, grant->id) || put_shared(true)))
		remark("%s", gpupart_error(cmd_gp));
}

/*
 * Acquires the lock of root's `gpupart run -n`, and then the lock of the node's schedulers. If a
 * container can open the folder of the first lock, the container can keep this lock. In this case,
 * a run that begins now may get the same TPCs. If fds[1] is below 0, sets the text of
 * @status.
 */
static void lock(int fds[2], struct grpc_status *status)
{
	char folder[STATE_DIR_PATH_LEN], path[STATE_DIR_PATH_LEN + 8];

	snprintf(path, sizeof(path), "%s/lock", state_dir_path(0, folder));
	fds[0] = state_dir_create(0, status->why, sizeof(status->why)) ?:
		 node_lock(path, RUN_LOCK_SECONDS, status->why, sizeof(status->why));
	if (fds[0] < 0)
		remark(
			"'gpupart run -n' may choose the same TPCs, because the lock cannot be acquired: %s",
		       status->why);
	fds[1] = node_lock(NODE_LOCK, LOCK_SECONDS, status->why, sizeof(status->why));
}

void pods_give(unsigned int gpu, const struct gpupart_tpcset *ids, struct gpupart_grant *grant,
	       char folder[PODS_FOLDER_LEN], struct grpc_status *status)
{
	const struct node_gpu *board = &node.boards.gpus[gpu];
	int fds[2];

	lock(fds, status);
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
		status->code = GRPC_UNAVAILABLE;
	else if (pods_read())
		grpc_fail(status, GRPC_UNAVAILABLE, "%s", gpupart_error(cmd_gp));
	else if (grant->memory && pods.memory[gpu] + grant->memory > board->memory)
		grpc_fail(status, GRPC_RESOURCE_EXHAUSTED,
			  "no %llu MiB are free on GPU %s: other jobs have %llu MiB of it",
			  (unsigned long long)(grant->memory >> 20), grant->pci,
			  (unsigned long long)(pods.memory[gpu] >> 20));
	else
		place(gpu, ids, grant, folder, status);
	close(fds[0]);
	close(fds[1]);
	if (status->code)
		return;
	known[gpu].seen = gpupart_tpcset_andnot(&known[gpu].seen, ids);
	known[gpu].held = gpupart_tpcset_or(&known[gpu].held, ids);
}
