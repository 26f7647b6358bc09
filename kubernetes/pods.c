// SPDX-License-Identifier: MIT
/* See pods.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/target/blocks.h"
#include "cli/target/neighbours.h"
#include "cli/target/shown.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "kubernetes/pods.h"
#include "lib/private.h"
#include "slurm/node_lock.h"

#define FOLDERS "/run/gpupart/kubernetes"
#define PREFIX "0-0-"		/* no job of Slurm's, whose ids have one hyphen */
#define IDS "pod ids="
#define LOCK_SECONDS 3
/* DEFAULT_OVERFLOWUID of the kernel: see write_folder(). */
#define UNMAPPED_UID 65534

/* What was seen of a container since this program began. */
struct known {
	char id[GPUPART_JOB_STRLEN];
	bool ran;	/* it had a process */
	bool listed;	/* the kubelet that runs now told of it */
};
static struct known *known;
static unsigned int nr_known;

static struct known *know(const char *id)
{
	for (unsigned int i = 0; i < nr_known; i++)
		if (!strcmp(known[i].id, id))
			return &known[i];
	known = alloc_resized(known, nr_known + 1, sizeof(*known));
	memset(&known[nr_known], 0, sizeof(*known));
	strcpy(known[nr_known].id, id);
	return &known[nr_known++];
}

void pods_forget_lists(void)
{
	for (unsigned int i = 0; i < nr_known; i++)
		known[i].listed = false;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static bool read_pod(const struct node *node, const struct gpupart_grant *grant, struct pod *pod)
{
	if (strncmp(grant->id, PREFIX, strlen(PREFIX)) ||
	    strncmp(grant->asked, IDS, strlen(IDS)))
		return false;
	memset(pod, 0, sizeof(*pod));
	pod->grant = *grant;
	for (pod->gpu = 0; pod->gpu < node->boards.nr; pod->gpu++)
		if (!strcmp(node->boards.gpus[pod->gpu].pci, grant->pci))
			break;
	gpupart_tpcset_parse_hex(NULL, grant->asked + strlen(IDS), &pod->ids);
	pod->born = strtoull(grant->id + strlen(PREFIX), NULL, 16);
	pod->is_young = now_ns() < pod->born + PODS_GRACE * 1000000000ull;
	return pod->gpu < node->boards.nr;
}

/* What kubelet gave to another container since is that one's. */
static void sort_ids(struct pods *pods)
{
	for (unsigned int i = 0; i < pods->nr; i++) {
		struct pod *pod = &pods->list[i];

		pod->own = pod->ids;
		for (unsigned int j = 0; j < pods->nr; j++)
			if (pods->list[j].gpu == pod->gpu && pods->list[j].born > pod->born)
				pod->own = gpupart_tpcset_andnot(&pod->own, &pods->list[j].ids);
	}
}

int pods_read(const struct node *node, int gpu, struct pods *pods)
{
	struct gpupart_grant *list;
	int nr = shown_grants(cmd_gp, &list);

	memset(pods, 0, sizeof(*pods));
	if (nr < 0) {
		remark("%s", gpupart_error(cmd_gp));
		return nr;
	}
	pods->list = alloc_zeroed(nr + 1, sizeof(*pods->list));
	for (int i = 0; i < nr; i++) {
		if (read_pod(node, &list[i], &pods->list[pods->nr])) {
			pods->nr++;
			continue;
		}
		for (unsigned int g = 0; g < node->boards.nr; g++)
			if (!strcmp(node->boards.gpus[g].pci, list[i].pci)) {
				pods->taken[g] = gpupart_tpcset_or(&pods->taken[g], &list[i].set);
				pods->memory[g] += list[i].memory;
			}
	}
	free(list);
	sort_ids(pods);
	for (unsigned int g = 0; g < node->boards.nr; g++) {
		const struct node_gpu *board = &node->boards.gpus[g];
		struct args args = { .cmd = cmd_name, .simulated = board->simulated };
		struct gpupart_tpcset beside;

		if (gpu >= 0 && g != (unsigned int)gpu)
			continue;
		beside = neighbours_tpcs(&args, board->topo, board->pci, NULL);
		pods->taken[g] = gpupart_tpcset_or(&pods->taken[g], &beside);
	}
	return 0;
}

/* ---------------------------------------------------------------- processes */

static ino_t namespace_of(const char *pid)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* A container's mounts name the folder of its grant, whatever became of its environment. */
static void look_at_mounts(const char *pid, struct pods *pods)
{
	char path[300], *line = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", pid);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0)
		for (unsigned int i = 0; strstr(line, PREFIX) && i < pods->nr; i++)
			if (strstr(line, pods->list[i].grant.id))
				pods->list[i].lives = true;
	free(line);
	if (file)
		fclose(file);
}

void pods_look_for_processes(struct pods *pods)
{
	DIR *proc = opendir("/proc");
	ino_t own = namespace_of("self"), *seen = NULL, at;
	unsigned int nr = 0, i;
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		at = namespace_of(entry->d_name);
		for (i = 0; i < nr && seen[i] != at; i++)
			;
		if (!at || at == own || i < nr)
			continue;
		seen = alloc_resized(seen, nr + 1, sizeof(*seen));
		seen[nr++] = at;
		look_at_mounts(entry->d_name, pods);
	}
	free(seen);
	if (proc)
		closedir(proc);
	for (i = 0; i < pods->nr; i++)
		know(pods->list[i].grant.id)->ran |= pods->list[i].lives;
}

/* ------------------------------------------------------------------- folders */

static void folder_of(const char *id, char folder[PODS_FOLDER_LEN])
{
	snprintf(folder, PODS_FOLDER_LEN, FOLDERS "/%s", id);
}

/*
 * The folder that a container has in the place of GPUPART_GRANT_ROOT, with its grant alone. Its
 * owner is the one that root's files have in a user namespace without root, and the link is another
 * user's: so the grant holds for every user in the container, user 0 too (lib/state/grant.c).
 */
static int write_folder(const char *id)
{
	char folder[PODS_FOLDER_LEN], from[PODS_FOLDER_LEN], to[2 * PODS_FOLDER_LEN],
		fresh[2 * PODS_FOLDER_LEN + 8], data[16384];
	int in, out, err = 0;
	ssize_t n = -1;

	folder_of(id, folder);
	snprintf(from, sizeof(from), GPUPART_GRANT_ROOT "/%s", id);
	snprintf(to, sizeof(to), "%s/%s", folder, id);
	snprintf(fresh, sizeof(fresh), "%s.new", to);
	if ((mkdir(FOLDERS, 0700) && errno != EEXIST) || (mkdir(folder, 0755) && errno != EEXIST) ||
	    chmod(folder, 0755))
		return -errno;
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (in >= 0 && out >= 0)
		n = read(in, data, sizeof(data));
	if (n <= 0 || write(out, data, n) != n || fchmod(out, 0644) ||
	    fchown(out, UNMAPPED_UID, UNMAPPED_UID) || rename(fresh, to))
		err = -(errno ?: EIO);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	snprintf(to, sizeof(to), "%s/.%s.user", folder, id);
	if (!err && symlink("user", to) && errno != EEXIST)
		err = -errno;
	return err ?: chown(folder, UNMAPPED_UID, UNMAPPED_UID) ? -errno : 0;
}

static void remove_folder(const char *id)
{
	char folder[PODS_FOLDER_LEN], path[PODS_FOLDER_LEN + 300];
	struct dirent *entry;
	DIR *dir;

	folder_of(id, folder);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

void pods_follow(const struct pods *pods)
{
	char from[PODS_FOLDER_LEN], to[2 * PODS_FOLDER_LEN];
	struct stat grant, copy;
	struct dirent *entry;
	unsigned int i;
	DIR *dir;

	for (i = 0; i < pods->nr; i++) {
		const char *id = pods->list[i].grant.id;

		snprintf(from, sizeof(from), GPUPART_GRANT_ROOT "/%s", id);
		snprintf(to, sizeof(to), FOLDERS "/%s/%s", id, id);
		/* One that gave TPCs on to others of its pod still runs in them. */
		if (gpupart_tpcset_equal(&pods->list[i].own, &pods->list[i].ids) &&
		    !stat(from, &grant) &&
		    (stat(to, &copy) || copy.st_mtim.tv_sec < grant.st_mtim.tv_sec))
			write_folder(id);
	}
	dir = opendir(FOLDERS);
	while (dir && (entry = readdir(dir))) {
		for (i = 0; i < pods->nr && strcmp(pods->list[i].grant.id, entry->d_name); i++)
			;
		if (i == pods->nr && !strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			remove_folder(entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* --------------------------------------------------------------------- giving */

int pods_drop(const struct pod *pod)
{
	int err = gpupart_grant_drop(cmd_gp, pod->grant.id);

	if (err)
		remark("%s", gpupart_error(cmd_gp));
	else
		remove_folder(pod->grant.id);
	return err;
}

struct gpupart_tpcset pods_free(const struct node *node, const struct pods *pods, unsigned int gpu)
{
	struct gpupart_tpcset left = gpupart_topology_all(node->boards.gpus[gpu].topo);

	left = gpupart_tpcset_andnot(&left, &pods->taken[gpu]);
	for (unsigned int i = 0; i < pods->nr; i++)
		if (pods->list[i].gpu == gpu)
			left = gpupart_tpcset_andnot(&left, &pods->list[i].grant.set);
	return left;
}

unsigned int pods_most(const struct node *node, const struct pods *pods, unsigned int *gpu)
{
	unsigned int most = 0;

	*gpu = 0;
	for (unsigned int g = 0; g < node->boards.nr; g++) {
		struct gpupart_tpcset left = pods_free(node, pods, g);

		if (gpupart_tpcset_count(&left) > most) {
			most = gpupart_tpcset_count(&left);
			*gpu = g;
		}
	}
	return most;
}

void pods_reap(struct pods *pods, const struct gpupart_tpcset *listed,
	       const struct gpupart_tpcset *noted)
{
	pods_look_for_processes(pods);
	for (unsigned int i = 0; i < pods->nr; i++) {
		struct pod *pod = &pods->list[i];
		struct known *seen = know(pod->grant.id);
		const struct gpupart_tpcset *ids;

		/* An init container is there as long as the others that have its ids. */
		ids = gpupart_tpcset_empty(&pod->own) ? &pod->ids : &pod->own;
		if (gpupart_tpcset_intersects(ids, &listed[pod->gpu])) {
			seen->listed = true;
			continue;
		}
		/* A kubelet that began anew lists pods once it knows of them: it noted all. */
		if (pod->lives || (!gpupart_tpcset_empty(ids) &&
				   (pod->is_young ||
				    (!seen->listed &&
				     gpupart_tpcset_intersects(ids, &noted[pod->gpu])))))
			continue;
		if (!pods_drop(pod)) {
			*seen = known[--nr_known];
			*pod = pods->list[--pods->nr];
			i--;
		}
	}
}

/* @nr TPCs of @from, which has so many. */
static struct gpupart_tpcset packed(const struct node *node, unsigned int gpu,
				    const struct gpupart_tpcset *from, unsigned int nr)
{
	struct gpupart_tpcset set = { 0 };

	if (nr)
		gpupart_set_shape(cmd_gp, node->boards.gpus[gpu].topo, GPUPART_SHAPE_PACKED, from,
				  nr, &set);
	return set;
}

/*
 * Kubelet gives ids anew that it gave before: the container that had them has ended, or it is an
 * init container of the same pod, whose ids the pod's others have too. Such a one was given just
 * before and has not begun: it gives on a TPC for each id, into *@shared, and its grant keeps the
 * rest. What still runs keeps its TPCs.
 */
static int take_ids_back(const struct node *node, struct pods *pods, unsigned int gpu,
			 const struct gpupart_tpcset *ids, struct gpupart_tpcset *shared)
{
	bool looked = false;
	int err = 0;

	for (unsigned int i = 0; !err && i < pods->nr; i++) {
		struct pod *pod = &pods->list[i];
		struct gpupart_tpcset both = gpupart_tpcset_and(&pod->own, ids);
		unsigned int nr = gpupart_tpcset_count(&both);

		if (pod->gpu != gpu || !nr)
			continue;
		if (!looked)
			pods_look_for_processes(pods);
		looked = true;
		if (pod->lives) {
			strcpy(pod->grant.asked, IDS "0");
			err = gpupart_grant_put(cmd_gp, &pod->grant);
		} else if (pod->is_young && !know(pod->grant.id)->ran &&
			   gpupart_tpcset_count(&pod->grant.set) >= nr) {
			both = packed(node, gpu, &pod->grant.set, nr);
			*shared = gpupart_tpcset_or(shared, &both);
			pod->grant.set = gpupart_tpcset_andnot(&pod->grant.set, &both);
			pod->gave_on = true;
		} else {
			err = pods_drop(pod);
			memset(&pod->grant.set, 0, sizeof(pod->grant.set));
		}
	}
	return err;
}

static void name_grant(const struct node *node, unsigned int gpu, const struct gpupart_tpcset *ids,
		       struct gpupart_grant *grant)
{
	const struct node_gpu *board = &node->boards.gpus[gpu];
	unsigned long long number = now_ns();
	char hex[GPUPART_TPCSET_STRLEN];

	memset(grant, 0, sizeof(*grant));
	snprintf(grant->id, sizeof(grant->id), PREFIX "%016llx", number);
	snprintf(grant->name, sizeof(grant->name), "pod-%016llx", number);
	snprintf(grant->pci, sizeof(grant->pci), "%s", board->pci);
	snprintf(grant->source, sizeof(grant->source), "%s", board->source);
	snprintf(grant->key, sizeof(grant->key), "%s", board->key);
	gpupart_tpcset_format_hex(ids, hex, sizeof(hex));
	snprintf(grant->asked, sizeof(grant->asked), IDS "%.100s", hex);
	grant->nr_tpcs = gpupart_topology_nr_tpcs(board->topo);
	grant->memory = gpupart_tpcset_count(ids) * node->memory_per_tpc;
	grant->strict = config_is_strict(gpupart_config_strict(cmd_gp));
}

/* Under the locks. */
static int place(const struct node *node, struct pods *pods, unsigned int gpu,
		 const struct gpupart_tpcset *ids, struct gpupart_grant *grant, char *why,
		 size_t len)
{
	unsigned int nr = gpupart_tpcset_count(ids), room, most, best;
	struct gpupart_tpcset shared = { 0 }, left, rest;
	int err = take_ids_back(node, pods, gpu, ids, &shared);

	left = pods_free(node, pods, gpu);
	left = gpupart_tpcset_andnot(&left, &shared);
	shared = gpupart_tpcset_andnot(&shared, &pods->taken[gpu]);
	room = gpupart_tpcset_count(&shared) + gpupart_tpcset_count(&left);
	if (!err && nr > room) {
		free(pods->list);
		pods_read(node, -1, pods);
		most = pods_most(node, pods, &best);
		snprintf(why, len,
			 "no %u TPCs are free on GPU %s, whose ids kubelet chose: %u are; the most that one GPU of this node has free is %u, on GPU %s",
			 nr, node->boards.gpus[gpu].pci, room, most,
			 node->boards.gpus[best].pci);
		return -ENOSPC;
	}
	if (!err) {
		rest = packed(node, gpu, &left, nr - gpupart_tpcset_count(&shared));
		grant->set = gpupart_tpcset_or(&shared, &rest);
		err = gpupart_grant_put(cmd_gp, grant);
	}
	for (unsigned int i = 0; !err && i < pods->nr; i++)
		if (pods->list[i].gave_on)
			err = gpupart_grant_put(cmd_gp, &pods->list[i].grant);
	if (err)
		snprintf(why, len, "%s", gpupart_error(cmd_gp));
	return err;
}

/* That of root's `run -n`, then that of the node's schedulers. */
static int lock(int fds[2], char *why, size_t len)
{
	char folder[BLOCKS_PATH_LEN], path[BLOCKS_PATH_LEN + 8];
	int err = blocks_make(0, why, len);

	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/lock", blocks_path(0, folder));
	fds[0] = node_lock(path, LOCK_SECONDS, why, len);
	if (fds[0] < 0)
		return fds[0];
	fds[1] = node_lock(NODE_LOCK, LOCK_SECONDS, why, len);
	if (fds[1] < 0)
		close(fds[0]);
	return fds[1] < 0 ? fds[1] : 0;
}

int pods_give(const struct node *node, unsigned int gpu, const struct gpupart_tpcset *ids,
	      struct gpupart_grant *grant, char folder[PODS_FOLDER_LEN], char *why, size_t len)
{
	struct pods pods;
	int fds[2], err = lock(fds, why, len);

	if (err)
		return err;
	name_grant(node, gpu, ids, grant);
	err = pods_read(node, gpu, &pods);
	if (err)
		snprintf(why, len, "%s", gpupart_error(cmd_gp));
	else if (grant->memory &&
		 pods.memory[gpu] + grant->memory > node->boards.gpus[gpu].memory)
		err = -ENOSPC;
	if (err == -ENOSPC)
		snprintf(why, len, "no %llu MiB are free on GPU %s: other jobs have %llu MiB of it",
			 (unsigned long long)(grant->memory >> 20), grant->pci,
			 (unsigned long long)(pods.memory[gpu] >> 20));
	err = err ?: place(node, &pods, gpu, ids, grant, why, len);
	free(pods.list);
	close(fds[1]);
	close(fds[0]);
	if (err)
		return err;
	folder_of(grant->id, folder);
	err = write_folder(grant->id);
	if (err) {
		snprintf(why, len, "%s: %s", folder, strerror(-err));
		gpupart_grant_drop(cmd_gp, grant->id);
	}
	return err;
}
