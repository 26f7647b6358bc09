// SPDX-License-Identifier: MIT
/*
 * Lists all processes, jobs, grants and tenants. Opens the topologies of their GPUs. If another
 * user names a file, root never opens this file with root's rights.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/atomic_file.h"
#include "cli/util/child.h"
#include "cli/util/paths.h"
#include "lib/private.h"

#define ASK_SECONDS 10
#define MAX_GPUS 64	/* maximum number of GPUs of a process */
#define SAMPLE_END ".capture"

/*
 * The initial length of a list. One pass over the files is enough for most lists with this length.
 * For each user with many files, a pass takes a second. The unused part of the memory is never
 * touched.
 */
#define ROOM 4096

#define DEFINE_LIST(function, type, ask) \
int function(struct gpupart *gp, struct type **list) \
{ \
	int room = ROOM, nr = 0; \
\
	*list = NULL; \
	do { \
		room += nr; \
		free(*list); \
		*list = alloc_zeroed(room, sizeof(**list)); \
		nr = ask(gp, *list, room, sizeof(**list)); \
	} while (nr > room); \
	return nr; \
}

DEFINE_LIST(shown_processes, gpupart_process, gpupart_process_list)
DEFINE_LIST(shown_jobs, gpupart_job, gpupart_job_list)
DEFINE_LIST(shown_grants, gpupart_grant, gpupart_grant_list)
DEFINE_LIST(shown_tenants, gpupart_tenant, gpupart_tenant_list)
DEFINE_LIST(shown_tenant_processes, gpupart_tenant_process, gpupart_tenant_process_list)

int shown_rows(struct gpupart *gp, const struct gpupart_process *list, int nr,
	       struct gpupart_process **rows)
{
	int found, nr_rows = 0;

	*rows = NULL;
	for (int i = 0; i < nr; i++) {
		if (!list[i].pid)
			continue;
		*rows = alloc_resized(*rows, nr_rows + MAX_GPUS, sizeof(**rows));
		found = gpupart_process_gpu_list(gp, &list[i], *rows + nr_rows, MAX_GPUS,
						 sizeof(**rows));
		nr_rows += found < 0 ? 0 : found < MAX_GPUS ? found : MAX_GPUS;
	}
	return nr_rows;
}

bool shown_is_inside(const struct gpupart_job *jobs, int nr, const char *id, const char *around)
{
	/* After more steps than jobs, the jobs form a loop. */
	for (int steps = 0; *id && steps <= nr; steps++) {
		const char *parent = "";

		if (!strcmp(id, around))
			return true;
		for (int i = 0; i < nr; i++)
			if (!strcmp(jobs[i].id, id))
				parent = jobs[i].parent;
		id = parent;
	}
	return false;
}

bool shown_is_named(const struct gpupart_job *jobs, int nr, const struct gpupart_process *p,
		    const char *name)
{
	bool is = !strcmp(p->name, name);

	for (int i = 0; !is && i < nr; i++)
		is = !strcmp(jobs[i].name, name) && shown_is_inside(jobs, nr, p->job, jobs[i].id);
	return is;
}

const struct gpupart_job *shown_job_on(const struct gpupart_job *jobs, int nr, const char *id,
				       const char *pci)
{
	for (int steps = 0; *id && steps <= nr; steps++) {
		const struct gpupart_job *found = NULL;

		for (int i = 0; !found && i < nr; i++)
			if (!strcmp(jobs[i].id, id))
				found = &jobs[i];
		if (!found || !strcasecmp(found->pci, pci))
			return found;
		id = found->parent;
	}
	return NULL;
}

static int become(unsigned int uid, int pid)
{
	char path[32];
	struct stat st;
	gid_t gid = 65534;

	/* The files give no rights to a group. So any group except root's group is suitable. */
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (!stat(path, &st) && st.st_uid == uid)
		gid = st.st_gid;
	return setgroups(0, NULL) || setgid(gid) || setuid(uid) ? -errno : 0;
}

struct call {
	unsigned int uid;
	int pid;
	void (*fn)(const void *arg, void *result);
	const void *arg;
};

static void be_user(void *arg, void *result)
{
	struct shown_result *found = result;
	const struct call *call = arg;

	found->err = become(call->uid, call->pid);
	if (found->err) {
		snprintf(found->why, sizeof(found->why), "cannot become user %u: %s", call->uid,
			 strerror(-found->err));
	} else {
		call->fn(call->arg, result);
	}
}

void shown_as(unsigned int uid, int pid,
	      void (*fn)(const void *arg, void *result), const void *arg,
	      struct shown_result *result, size_t len)
{
	struct call call = { uid, pid, fn, arg };

	if (child_call(be_user, &call, result, len, ASK_SECONDS, result->why,
		       sizeof(result->why)))
		result->err = -EIO;
}

/*
 * If @source is the file of a sample, opens this sample by its name and returns 0. Otherwise
 * returns -EACCES.
 */
static int open_sample(const char *source, struct gpupart_topology **topo)
{
	const char *name = strrchr(source, '/');
	char sample[280];
	size_t len = name ? strlen(++name) : 0;

	if (len <= strlen(SAMPLE_END) || len > 255 ||
	    strcmp(name + len - strlen(SAMPLE_END), SAMPLE_END))
		return -EACCES;
	snprintf(sample, sizeof(sample), "sample:%.*s", (int)(len - strlen(SAMPLE_END)), name);
	if (gpupart_topology_open(NULL, sample, NULL, topo))
		return -EACCES;
	if (!strcmp(gpupart_topology_info(*topo)->source, source))
		return 0;
	gpupart_topology_close(*topo);
	return -EACCES;
}

struct ask {
	const struct shown_gpu *gpu;
	int fd;		/* file to which the child writes the capture */
};

static void write_capture(const void *arg, void *result)
{
	struct shown_result *answer = result;
	struct gpupart_topology *topo;
	const struct ask *ask = arg;
	char *text;

	answer->err = gpupart_topology_open(cmd_gp, ask->gpu->source, NULL, &topo);
	if (!answer->err)
		answer->err = gpupart_topology_capture(cmd_gp, topo, NULL, &text);
	snprintf(answer->why, sizeof(answer->why), "%s", answer->err ? gpupart_error(cmd_gp) : "");
	if (!answer->err)
		answer->err = atomic_file_put(ask->fd, text);
}

/*
 * Reads the capture in a child process. The child has the rights of the user who named the capture.
 * Returns 0 or -errno.
 */
static int open_as_user(const struct shown_gpu *gpu, struct gpupart_topology **topo, char *why,
			size_t len)
{
	struct ask ask = { .gpu = gpu, .fd = memfd_create("capture", MFD_CLOEXEC) };
	struct shown_result answer = { 0 };
	char path[32];
	int err;

	if (ask.fd < 0) {
		err = -errno;
		snprintf(why, len, "cannot create a memory file: %s", strerror(-err));
		return err;
	}
	shown_as(gpu->uid, gpu->pid, write_capture, &ask, &answer, sizeof(answer));
	err = answer.err;
	if (err)
		snprintf(why, len, "%s", *answer.why ? answer.why : strerror(-err));
	if (!err) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", ask.fd);
		err = gpupart_topology_open(NULL, path, NULL, topo);
		if (err)
			snprintf(why, len, "%s: %s", gpu->source, strerror(-err));
	}
	close(ask.fd);
	return err;
}

static int open_own(const char *source, const char *pci, struct gpupart_topology **topo, char *why,
		    size_t len)
{
		int err = gpupart_topology_open(cmd_gp, source, pci, topo);
	if (err)
		snprintf(why, len, "%s", gpupart_error(cmd_gp));
	return err;
}

int shown_topology(const struct shown_gpu *gpu, bool ask, struct gpupart_topology **topo,
		   char *why, size_t len)
{
	if (!*gpu->source && gpu->simulated) {
		snprintf(why, len, "the GPU is simulated, but its capture is not known");
		return -EINVAL;
	}
	if (paths_is_live(gpu->source) || !*gpu->source || gpu->uid == geteuid())
		return open_own(*gpu->source ? gpu->source : NULL,
				gpu->simulated ? NULL : gpu->pci, topo, why, len);
	if (!open_sample(gpu->source, topo))
		return 0;
	if (ask && !geteuid())
		return open_as_user(gpu, topo, why, len);
	snprintf(why, len, "%s is a capture of user %u: it is not opened", gpu->source, gpu->uid);
	return -EACCES;
}
