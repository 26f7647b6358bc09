// SPDX-License-Identifier: MIT
/*
 * Jobs: what one `gpupart run` started, and all that it starts. A file a job beside the
 * blocks of processes says what it is limited to now, for processes that begin later.
 * Must not know what a process does with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "control.h"
#include "holder.h"
#include "job.h"
#include "process.h"

#define JOB_MAGIC	0x31626f6a757067u	/* "gpujob1", little endian */
#define JOB_PREFIX	"job-"
#define MAX_DEPTH	16	/* of runs inside runs */

struct record {
	uint64_t magic;
	int32_t pid;		/* of the run, and of the program that it became */
	uint64_t start, pid_namespace;
	char name[64];
	char id[GPUPART_JOB_STRLEN], parent[GPUPART_JOB_STRLEN];
	char pci[20], source[512];
	uint32_t nr_tpcs;
	struct gpupart_tpcset set;	/* asked for; what the parent allows of it holds */
};

/* It becomes a file's name. */
static bool id_good(const char *id)
{
	return id[0] && strlen(id) < GPUPART_JOB_STRLEN &&
	       strspn(id, "0123456789abcdef-") == strlen(id);
}

static void file_of(char *file, size_t len, const char *id)
{
	snprintf(file, len, JOB_PREFIX "%.63s", id);
}

static bool read_record(int dir, const char *id, struct record *record)
{
	char file[GPUPART_JOB_STRLEN + 8];
	struct stat st;
	bool good;
	int fd;

	if (!id_good(id))
		return false;
	file_of(file, sizeof(file), id);
	fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	good = !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       read(fd, record, sizeof(*record)) == sizeof(*record) && record->magic == JOB_MAGIC;
	close(fd);
	record->name[sizeof(record->name) - 1] = 0;
	record->pci[sizeof(record->pci) - 1] = 0;
	record->source[sizeof(record->source) - 1] = 0;
	record->id[sizeof(record->id) - 1] = 0;
	record->parent[sizeof(record->parent) - 1] = 0;
	return good;
}

/* Whole or not at all, whenever we die: another file takes the place of the old one. */
static int write_record(int dir, const struct record *record)
{
	char file[GPUPART_JOB_STRLEN + 8], new_file[GPUPART_JOB_STRLEN + 32];
	int fd, err = 0;
	ssize_t n;

	file_of(file, sizeof(file), record->id);
	snprintf(new_file, sizeof(new_file), ".%s.%d", file, getpid());
	fd = openat(dir, new_file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = write(fd, record, sizeof(*record));
	if (n != sizeof(*record))
		err = n < 0 ? -errno : -ENOSPC;
	close(fd);
	if (!err && renameat(dir, new_file, dir, file))
		err = -errno;
	if (err)
		unlinkat(dir, new_file, 0);
	return err;
}

/* What holds for @record: no more than what holds for the job that it was begun in. */
static struct gpupart_tpcset effective(int dir, const struct record *record)
{
	struct gpupart_tpcset set = record->set, both;
	struct record parent = *record;

	for (int depth = 0; depth < MAX_DEPTH && parent.parent[0]; depth++) {
		if (!read_record(dir, parent.parent, &parent) || strcmp(parent.pci, record->pci))
			break;
		both = gpupart_tpcset_and(&set, &parent.set);
		set = gpupart_tpcset_empty(&both) ? parent.set : both;
	}
	return set;
}

bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set)
{
	int dir = control_open_dir(geteuid(), false);
	struct record record;
	bool found;

	if (dir < 0)
		return false;
	found = read_record(dir, id, &record) && !strcmp(record.pci, pci);
	if (found)
		*set = effective(dir, &record);
	close(dir);
	return found;
}

/* Whether @id is @ancestor or was begun in it. */
static bool belongs(int dir, const char *id, const char *ancestor)
{
	struct record record;

	for (int depth = 0; depth <= MAX_DEPTH && id[0]; depth++) {
		if (!strcmp(id, ancestor))
			return true;
		if (!read_record(dir, id, &record))
			return false;
		id = record.parent;
	}
	return false;
}

/* This user's processes; *nr of them. The caller frees it. NULL: none, or no memory. */
static struct gpupart_process *processes(unsigned int *nr)
{
	struct gpupart_process *list = NULL;
	int room, found = process_list_own(NULL, 0);

	/* Some may begin meanwhile. */
	room = found > 0 ? found + 64 : 64;
	list = malloc(room * sizeof(*list));
	found = list ? process_list_own(list, room) : 0;
	*nr = found < room ? found : room;
	return list;
}

/* Whether the program of a job, or any process that confines launches in it, lives. */
static bool job_lives(int dir, const struct record *record, const struct gpupart_process *list,
		      unsigned int nr)
{
	if (record->pid_namespace != control_pid_namespace() ?
		    !holder_namespace_gone(record->pid_namespace) :
		    control_process_lives(record->pid, record->start))
		return true;
	for (unsigned int i = 0; i < nr; i++)
		if (belongs(dir, list[i].job, record->id))
			return true;
	return false;
}

static void fill(int dir, const struct record *record, struct gpupart_job *job)
{
	struct gpupart_tpcset set = effective(dir, record);

	memset(job, 0, sizeof(*job));
	snprintf(job->id, sizeof(job->id), "%s", record->id);
	snprintf(job->name, sizeof(job->name), "%s", record->name);
	snprintf(job->parent, sizeof(job->parent), "%s", record->parent);
	snprintf(job->pci, sizeof(job->pci), "%s", record->pci);
	snprintf(job->source, sizeof(job->source), "%s", record->source);
	job->simulated = strcmp(record->source, "rm") && strcmp(record->source, "kernel");
	job->pid = record->pid_namespace == control_pid_namespace() ? record->pid : 0;
	gpupart_tpcset_format_list(&set, job->limit, sizeof(job->limit));
}

/* Of a writer that died before its file had its name. */
static void sweep_unfinished(int dir, const char *file)
{
	struct stat st;

	if (!fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime + 60 < time(NULL))
		unlinkat(dir, file, 0);
}

int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max)
{
	int fd = control_open_dir(geteuid(), false);
	struct gpupart_process *own;
	unsigned int nr_own, nr = 0;
	struct dirent *entry;
	struct record record;
	DIR *dir;

	(void)gp;
	/* Nothing was begun here. */
	if (fd < 0)
		return 0;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return 0;
	}
	own = processes(&nr_own);
	while ((entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "." JOB_PREFIX, strlen("." JOB_PREFIX)))
			sweep_unfinished(fd, entry->d_name);
		if (strncmp(entry->d_name, JOB_PREFIX, strlen(JOB_PREFIX)) ||
		    !read_record(fd, entry->d_name + strlen(JOB_PREFIX), &record))
			continue;
		if (own && !job_lives(fd, &record, own, nr_own)) {
			unlinkat(fd, entry->d_name, 0);
			continue;
		}
		if (nr < max)
			fill(fd, &record, &list[nr]);
		nr++;
	}
	free(own);
	closedir(dir);
	return nr;
}

int gpupart_job_begin(struct gpupart *gp, const char *name, const struct gpupart_topology *topo,
		      const char *pci, const struct gpupart_tpcset *set, char *id)
{
	const char *parent = getenv("GPUPART_JOB");
	struct record record = {
		.magic = JOB_MAGIC, .pid = getpid(), .start = control_process_start(getpid()),
		.pid_namespace = control_pid_namespace(), .set = *set,
		.nr_tpcs = gpupart_topology_nr_tpcs(topo),
	};
	int dir, err = gpupart_set_check(gp, topo, set);

	if (err)
		return err;
	/* What nobody needs any more goes first. */
	gpupart_job_list(gp, NULL, 0);
	dir = control_open_dir(geteuid(), true);
	if (dir < 0)
		return ctx_fail(gp, dir, "the job cannot be noted below /dev/shm: %s",
				strerror(-dir));
	snprintf(record.id, sizeof(record.id), "%d-%llx-%llx", record.pid,
		 (unsigned long long)record.start, (unsigned long long)record.pid_namespace);
	snprintf(record.name, sizeof(record.name), "%s", name ? name : "");
	snprintf(record.pci, sizeof(record.pci), "%s", pci);
	snprintf(record.source, sizeof(record.source), "%s", gpupart_topology_info(topo)->source);
	/* A second begin of one process is a change of mind, no job inside itself. */
	if (parent && id_good(parent) && strcmp(parent, record.id))
		snprintf(record.parent, sizeof(record.parent), "%s", parent);
	err = write_record(dir, &record);
	close(dir);
	if (err)
		return ctx_fail(gp, err, "the job cannot be noted below /dev/shm: %s",
				strerror(-err));
	snprintf(id, GPUPART_JOB_STRLEN, "%s", record.id);
	return 0;
}

/* The limits of all processes of the job: those that are gone meanwhile are no failure. */
static int set_processes(struct gpupart *gp, int dir, const struct record *job)
{
	unsigned int nr;
	struct gpupart_process *list = processes(&nr);
	struct gpupart_tpcset set;
	int err = 0, failed = 0;

	if (!list)
		return ctx_fail(gp, -ENOMEM, "no memory for a list of processes");
	for (unsigned int i = 0; i < nr; i++) {
		/* A run inside a run is on its GPU. */
		if (!list[i].pid || !belongs(dir, list[i].job, job->id) ||
		    !job_limit(list[i].job, job->pci, &set))
			continue;
		err = gpupart_process_limit_set(gp, list[i].pid, job->pci, &set, NULL);
		if (err && err != -ESRCH && err != -EAGAIN)
			failed = err;
	}
	free(list);
	return failed;
}

int gpupart_job_limit_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set,
			  struct gpupart_tpcset *before)
{
	int dir = control_open_dir(geteuid(), false), err;
	struct record record;

	if (gpupart_tpcset_empty(set))
		return ctx_fail(gp, -EINVAL, "the set for a job is empty");
	if (dir < 0 || !read_record(dir, id, &record)) {
		err = ctx_fail(gp, -ESRCH, "\"%.63s\" is no job of this user's", id);
		goto close_dir;
	}
	if (gpupart_tpcset_next(set, record.nr_tpcs) >= 0) {
		err = ctx_fail(gp, -EINVAL, "TPC %d is not there: %s has TPCs 0-%u",
			       gpupart_tpcset_next(set, record.nr_tpcs), record.pci,
			       record.nr_tpcs - 1);
		goto close_dir;
	}
	/* Two that set it at once: what the record says is what the processes get. */
	if (flock(dir, LOCK_EX)) {
		err = ctx_fail(gp, -errno, "job %s: %s", id, strerror(errno));
		goto close_dir;
	}
	if (before)
		*before = effective(dir, &record);
	record.set = *set;
	/* First the record: a process that begins now reads it, or is found below. */
	err = write_record(dir, &record);
	if (err)
		ctx_fail(gp, err, "job %s: %s", id, strerror(-err));
	else
		err = set_processes(gp, dir, &record);
close_dir:
	if (dir >= 0)
		close(dir);
	return err;
}
