// SPDX-License-Identifier: MIT
/* Writes the files of jobs. Starts a job, and changes the limits of a job and its processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/environment.h"
#include "lib/state/grant.h"
#include "lib/state/job.h"
#include "lib/state/job_record.h"
#include "lib/state/state_page.h"
#include "lib/topo/topology.h"

static int write_node(const struct job_record *record)
{
	struct gpupart_grant grant;

	if (!grant_get(record->header.id, &grant))
		return -ESRCH;
	grant.set = record->gpu.tpcs;
	return gpupart_grant_put(NULL, &grant);
}

static int write_record(int dir, const struct job_record *record)
{
	char file[GPUPART_JOB_STRLEN + 8];

	if (grant_is_id(record->header.id))
		return write_node(record);
	job_file(file, sizeof(file), record->header.id);
	return state_dir_write_file(dir, file, record, sizeof(*record), 0600);
}

/*
 * Completes the id of @record and sets the parent. The id begins with the pid of this process. A
 * process can start one job for each GPU. The second job is inside the first job, and so on. The
 * argument @current is the innermost of these jobs. If the process has started no job, it is the
 * job in which the process was started. A second job on the same GPU replaces the first job. If the
 * new job replaces a job, returns true.
 */
static bool find_place(int dir, const char *current, struct job_record *record)
{
	size_t len = strlen(record->header.id);
	struct job_record own = { 0 };
	const char *at = current;
	unsigned int nr = 0;

	for (; nr < JOB_MAX_DEPTH && !strncmp(at, record->header.id, len) &&
	       (!at[len] || at[len] == '-') && job_read(dir, at, &own); nr++) {
		if (!strcmp(own.gpu.pci, record->gpu.pci)) {
			strcpy(record->header.id, own.header.id);
			strcpy(record->header.parent, own.header.parent);
			return true;
		}
		at = own.header.parent;
	}
	if (nr)
		snprintf(record->header.id + len, sizeof(record->header.id) - len, "-%x", nr);
	if (nr || strcmp(current, record->header.id))
		snprintf(record->header.parent, sizeof(record->header.parent), "%s", current);
	return false;
}

int gpupart_job_begin(struct gpupart *gp, const char *name, const struct gpupart_topology *topo,
		      const char *pci, const struct gpupart_tpcset *set, char *id)
{
	const char *current = environment_read().job;
	struct job_record record = {
		.header = { .pid = getpid(), .start = state_dir_process_start(getpid()),
			    .pid_namespace = state_dir_pid_namespace(), .uid = geteuid(),
			    .nr_gpus = 1 },
		.gpu = { .nr_tpcs = gpupart_topology_nr_tpcs(topo),
			 .simulated = job_is_simulated(gpupart_topology_info(topo)->source) },
	};
	int err = gpupart_set_check(gp, topo, set);
	STATE_CLOSED int dir = -1;
	bool again;

	if (!err && (!pci || !topo_address_read(pci, record.gpu.pci)))
		err = ctx_fail(gp, -EINVAL,
			       "\"%.63s\" is not a GPU address such as \"0000:0d:00.0\"",
			       pci ? pci : "");
	if (err)
		return err;
	record.gpu.tpcs = *set;
	if (name && *name && !state_dir_name_valid(name))
		return ctx_fail(gp, -EINVAL,
				"job name '%.80s': must be 1 to %zu characters from A-Z a-z 0-9 . _ -, not starting with '-'",
				name, sizeof(record.header.name) - 1);
	/* First remove the jobs without processes. */
	gpupart_job_list(gp, NULL, 0, sizeof(struct gpupart_job));
	dir = state_dir_open(geteuid(), true);
	if (dir < 0)
		return ctx_fail(gp, dir, "the job's file cannot be written below /dev/shm: %s",
				strerror(-dir));
	snprintf(record.header.id, sizeof(record.header.id), "%d-%llx-%llx", record.header.pid,
		 (unsigned long long)record.header.start,
		 (unsigned long long)record.header.pid_namespace);
	snprintf(record.header.name, sizeof(record.header.name), "%s", name ? name : "");
	snprintf(record.source, sizeof(record.source), "%s", gpupart_topology_info(topo)->source);
	again = current && job_id_good(current) && find_place(dir, current, &record);
	shared_init(&record.header, JOB_LAYOUT, sizeof(record));
	atomic_init(&record.header.magic, SHARED_MAGIC(SHARED_JOB));
	err = write_record(dir, &record);
	if (err)
		return ctx_fail(gp, err, "the job's file cannot be written below /dev/shm: %s",
				strerror(-err));
	snprintf(id, GPUPART_JOB_STRLEN, "%s", again ? current : record.header.id);
	return 0;
}

/*
 * Finds the innermost job of a process, and sets the limit of the process to the limit of this job.
 * If the process has not attached the GPU yet, sets *early and returns 0.
 */
static int set_process(struct gpupart *gp, int dir, const struct job_record *job,
		       const struct gpupart_process *process, bool *early)
{
	struct gpupart_tpcset set;
	int err;

	*early = false;
	/* A run inside another run uses the GPU of the outer run. */
	if (!process->pid || !job_belongs(dir, process->job, job->header.id) ||
	    !job_limit(process->job, job->gpu.pci, &set))
		return 0;
	err = gpupart_process_limit_set(gp, process->pid, job->gpu.pci, &set, NULL);
	/* The process has ended. */
	if (err == -ESRCH)
		return 0;
	*early = err == -ENODEV || err == -EAGAIN;
	if (!*early)
		return err;
	return *process->problem ? ctx_fail(gp, err, "process %d is not confined: %s",
					    process->pid, process->problem)
				 : 0;
}

/*
 * Sets the limits of all processes of the job. A process with a published state page may have no
 * limit on the GPU yet. Such a process will read the job's file, which was written before this
 * call. The function waits a short time for the process, because the caller may check the limits
 * next.
 */
static int set_processes(struct gpupart *gp, int dir, const struct job_record *job)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	bool early, again = true;
	unsigned int nr;
	struct gpupart_process *list = job_processes(&nr);
	int err, failed = 0;

	if (!list)
		return ctx_fail(gp, -ENOMEM, "no memory for a list of processes");
	for (int tries = 0; again && tries < 200; tries++) {
		again = false;
		if (tries)
			nanosleep(&pause, NULL);
		for (unsigned int i = 0; i < nr; i++) {
			err = set_process(gp, dir, job, &list[i], &early);
			if (err)
				failed = err;
			if (early && !err)
				again = true;
			else
				list[i].pid = 0;	/* finished */
		}
	}
	free(list);
	return failed;
}

/*
 * Acquires a lock against other writers of limits. For grants, the function locks a file that only
 * root can open. It does not lock the directory of grants, because every user could lock this
 * directory. Returns the locked descriptor, or a negative errno.
 */
static int lock_jobs(struct gpupart *gp, int dir, const char *id, bool node)
{
	int fd = node ? openat(dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) :
			openat(dir, ".", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : state_dir_lock_file(fd);

	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return ctx_fail(gp, err, "job %s: %s", id, err == -EBUSY ?
			"another program has kept the jobs' directory locked for 5 s"
			: strerror(-err));
}

static int check_job_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set)
{
	if (id && set && !gpupart_tpcset_empty(set))
		return 0;
	return ctx_fail(gp, -EINVAL, !id ? "the id of the job is missing"
				     : !set ? "the set for the job is missing"
					    : "the set for a job is empty");
}

/*
 * Only root can change a grant. If another user passes a set, the set must be equal to the limit of
 * the grant. The caller then applies this limit to the user's processes.
 */
static int write_limit(struct gpupart *gp, int dir, struct job_record *record,
		       const struct gpupart_tpcset *set)
{
	char given[GPUPART_TPCSET_STRLEN];
	int err;

	if (grant_is_id(record->header.id) && geteuid()) {
		if (gpupart_tpcset_equal(&record->gpu.tpcs, set))
			return 0;
		gpupart_tpcset_format_list(&record->gpu.tpcs, given, sizeof(given));
		return ctx_fail(gp, -EPERM,
				"job %s has a grant of TPCs %s: only root can change it",
				record->header.name, given);
	}
	record->gpu.tpcs = *set;
	err = write_record(dir, record);
	return err ? ctx_fail(gp, err, "job %s: %s", record->header.id, strerror(-err)) : 0;
}

int gpupart_job_limit_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set,
			  struct gpupart_tpcset *before)
{
	int err = check_job_set(gp, id, set);
	STATE_CLOSED int dir = -1, lock = -1;
	bool node = !err && grant_is_id(id);
	struct job_record record;

	if (err)
		return err;
	dir = node ? grant_open_dir(false) : state_dir_open(geteuid(), false);
	if (dir < 0 || !job_read(dir, id, &record))
		return ctx_fail(gp, -ESRCH, "this user has no job \"%.63s\"", id);
	if (job_is_other_version(&record))
		return ctx_fail(gp, -EPROTO,
				"job %s was started by another version of gpupart: only 'gpupart set' of that version can change its limit",
				*record.header.name ? record.header.name : record.header.id);
	if (gpupart_tpcset_next(set, record.gpu.nr_tpcs) >= 0)
		return ctx_fail(gp, -EINVAL, "TPC %d does not exist: %s has TPCs 0-%u",
				gpupart_tpcset_next(set, record.gpu.nr_tpcs), record.gpu.pci,
				record.gpu.nr_tpcs - 1);
	/* The lock keeps the limit in the record equal to the limits of the processes. */
	if (!node || !geteuid())
		lock = err = lock_jobs(gp, dir, id, node);
	if (err < 0)
		return err;
	if (before)
		*before = job_effective(dir, &record);
	/*
	 * Write the record first. A process that is starting now either reads the new record, or
	 * the code below finds the process.
	 */
	err = write_limit(gp, dir, &record, set);
	if (!err && node) {
		close(dir);
		if (lock >= 0)
			close(lock);
		lock = -1;
		/*
		 * The records of jobs that were started inside a grant are in the user's directory.
		 */
		dir = state_dir_open(geteuid(), false);
	}
	return err ? err : set_processes(gp, dir, &record);
}
