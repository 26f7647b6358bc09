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
#include "lib/core/fsize.h"
#include "lib/core/rows.h"
#include "lib/state/grant.h"
#include "lib/state/holder.h"
#include "lib/state/job.h"
#include "lib/state/process.h"
#include "lib/state/process_block.h"
#include "lib/topo/topology.h"

#define JOB_LAYOUT	2	/* counted up with every change behind the header */
#define JOB_PREFIX	"job-"
#define JOB_VARIABLE	"GPUPART_JOB"
#define LOCK_SECONDS	5
#define MAX_ENVIRONMENT	(8 << 20)	/* bytes; exec takes no more */

struct record {
	struct shared_header header;	/* its process is the run, and the program that it became */
	struct shared_gpu gpu;		/* the set asked for; what the parent allows holds */
	char source[512];
};

static bool is_other_version(const struct record *record)
{
	return record->header.layout != JOB_LAYOUT;
}

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

/* A job that root gave: a user's file of that name, had he made one, is not looked at. */
static bool read_node(const char *id, struct record *record)
{
	struct gpupart_grant grant;

	if (!node_get(id, &grant))
		return false;
	memset(record, 0, sizeof(*record));
	record->header.layout = grant.other_version ? 0 : JOB_LAYOUT;
	record->header.pid_namespace = control_pid_namespace();
	snprintf(record->header.name, sizeof(record->header.name), "%s", grant.name);
	snprintf(record->header.id, sizeof(record->header.id), "%s", grant.id);
	snprintf(record->gpu.pci, sizeof(record->gpu.pci), "%s", grant.pci);
	snprintf(record->source, sizeof(record->source), "%s", grant.source);
	record->gpu.nr_tpcs = grant.nr_tpcs;
	record->gpu.tpcs = grant.set;
	return true;
}

/* @id may lie in @record, as the parent of the one before. */
static bool read_record(int dir, const char *id, struct record *record)
{
	char file[GPUPART_JOB_STRLEN + 8], wanted[GPUPART_JOB_STRLEN];
	enum shared_version version = SHARED_NONE;
	struct shared_seen seen = { .nr_gpus = 0 };
	struct stat st;
	bool good;
	int fd;

	if (node_is_id(id))
		return read_node(id, record);
	if (!id_good(id))
		return false;
	strcpy(wanted, id);
	file_of(file, sizeof(file), id);
	fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		version = shared_read(fd, SHARED_JOB, JOB_LAYOUT, &seen);
	good = version != SHARED_NONE && seen.nr_gpus && !strcmp(seen.header.id, wanted) &&
	       (version == SHARED_OTHER ||
		pread(fd, record, sizeof(*record), 0) == sizeof(*record));
	close(fd);
	if (!good)
		return false;
	record->header = seen.header;
	record->gpu = seen.gpus[0];
	if (version == SHARED_OTHER)
		strcpy(record->source, record->gpu.simulated ? "" : "rm");
	record->source[sizeof(record->source) - 1] = 0;
	return good;
}

/* Whole or not at all, whenever we die: another file takes the place of the old one. */
static int write_node(const struct record *record)
{
	struct gpupart_grant grant;

	if (!node_get(record->header.id, &grant))
		return -ESRCH;
	grant.set = record->gpu.tpcs;
	return gpupart_grant_put(NULL, &grant);
}

static int write_record(int dir, const struct record *record)
{
	char file[GPUPART_JOB_STRLEN + 8], new_file[GPUPART_JOB_STRLEN + 32];
	struct fsize_guard guard;
	int fd, err = 0;
	ssize_t n;

	if (node_is_id(record->header.id))
		return write_node(record);
	file_of(file, sizeof(file), record->header.id);
	snprintf(new_file, sizeof(new_file), ".%s.%d", file, getpid());
	fd = openat(dir, new_file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	fsize_guard_begin(&guard);
	n = write(fd, record, sizeof(*record));
	if (n != sizeof(*record))
		err = n < 0 ? -errno : -ENOSPC;
	fsize_guard_end(&guard);
	close(fd);
	if (!err && renameat(dir, new_file, dir, file))
		err = -errno;
	if (err)
		unlinkat(dir, new_file, 0);
	return err;
}

/*
 * The way from a job to those that it was begun in, however long. Notes that were made to
 * lead round end it: each id is compared with one that is moved on after 1, 2, 4.. steps.
 */
struct way {
	char mark[GPUPART_JOB_STRLEN];
	unsigned int steps, turn;
};

static bool leads_round(struct way *way, const char *id)
{
	if (!strcmp(way->mark, id))
		return true;
	if (way->steps++ == way->turn) {
		snprintf(way->mark, sizeof(way->mark), "%s", id);
		way->turn = 2 * way->turn + 1;
		way->steps = 0;
	}
	return false;
}

/* What holds for @record: no more than what holds for the job that it was begun in. */
static struct gpupart_tpcset effective(int dir, const struct record *record)
{
	struct gpupart_tpcset set = record->gpu.tpcs, both;
	struct record parent = *record;
	struct way way = { 0 };

	while (parent.header.parent[0] && !leads_round(&way, parent.header.parent)) {
		if (!read_record(dir, parent.header.parent, &parent) ||
		    strcmp(parent.gpu.pci, record->gpu.pci))
			break;
		both = gpupart_tpcset_and(&set, &parent.gpu.tpcs);
		set = gpupart_tpcset_empty(&both) ? parent.gpu.tpcs : both;
	}
	return set;
}

bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set)
{
	int dir = control_open_dir(geteuid(), false);
	struct record record;
	bool found;

	if (dir < 0 && !node_is_id(id))
		return false;
	found = read_record(dir, id, &record) && !strcmp(record.gpu.pci, pci);
	if (found)
		*set = effective(dir, &record);
	if (dir >= 0)
		close(dir);
	return found;
}

/* Whether @id is @ancestor or was begun in it. */
static bool belongs(int dir, const char *id, const char *ancestor)
{
	struct record record;
	struct way way = { 0 };

	while (id[0] && !leads_round(&way, id)) {
		if (!strcmp(id, ancestor))
			return true;
		if (!read_record(dir, id, &record))
			return false;
		id = record.header.parent;
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

/* --------------------------------------------------------------- which of them live */

/* Who shows itself, and, looked for only when a job would be forgotten, who was started. */
struct living {
	struct gpupart_process *shown;
	unsigned int nr_shown;
	char (*started)[GPUPART_JOB_STRLEN];	/* jobs that some environment names */
	unsigned int nr_started;
	bool looked, unsure;
};

/* The value of GPUPART_JOB in the environment in @fd; "" where there is none. */
static void read_job(int fd, char id[GPUPART_JOB_STRLEN])
{
	static const char name[] = JOB_VARIABLE "=";
	const size_t end = sizeof(name) - 1;
	size_t matched = 0, nr = 0, total = 0;	/* @matched above @end: another variable */
	char text[4096];
	ssize_t n;

	memset(id, 0, GPUPART_JOB_STRLEN);
	while (total < MAX_ENVIRONMENT && (n = read(fd, text, sizeof(text))) > 0) {
		total += n;
		for (ssize_t i = 0; i < n; i++) {
			if (matched == end && (!text[i] || nr == GPUPART_JOB_STRLEN - 1))
				return;
			if (matched == end)
				id[nr++] = text[i];
			else if (!text[i])
				matched = 0;
			else if (matched < end && text[i] == name[matched])
				matched++;
			else
				matched = end + 1;
		}
	}
}

static void add_started(struct living *living, const char *id)
{
	void *more;

	if (!id_good(id))
		return;
	for (unsigned int i = 0; i < living->nr_started; i++)
		if (!strcmp(living->started[i], id))
			return;
	more = realloc(living->started, (living->nr_started + 1) * sizeof(*living->started));
	if (!more) {
		living->unsure = true;
		return;
	}
	living->started = more;
	strcpy(living->started[living->nr_started++], id);
}

/* Of the processes whose environment may be read: this user's, for root all. */
static void look_for_started(struct living *living)
{
	char path[300], id[GPUPART_JOB_STRLEN];
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int fd;

	living->unsure |= !proc;
	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		read_job(fd, id);
		close(fd);
		add_started(living, id);
	}
	if (proc)
		closedir(proc);
}

static void living_init(struct living *living)
{
	memset(living, 0, sizeof(*living));
	living->shown = processes(&living->nr_shown);
	living->unsure = !living->shown;
}

static void living_fini(struct living *living)
{
	free(living->shown);
	free(living->started);
}

/*
 * Whether any process of a job lives: its program, one that confines launches in it, or
 * one that was started with its id and may do so yet.
 */
static bool job_lives(int dir, const struct record *record, struct living *living)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	if (record->header.pid_namespace != control_pid_namespace() ?
		    !holder_namespace_gone(record->header.pid_namespace) :
		    control_process_lives(record->header.pid, record->header.start))
		return true;
	for (unsigned int i = 0; i < living->nr_shown; i++)
		if (belongs(dir, living->shown[i].job, record->header.id))
			return true;
	if (!living->looked) {
		/* Twice: who is in the middle of an exec shows nothing. */
		look_for_started(living);
		nanosleep(&pause, NULL);
		look_for_started(living);
		living->looked = true;
	}
	for (unsigned int i = 0; i < living->nr_started; i++)
		if (belongs(dir, living->started[i], record->header.id))
			return true;
	return living->unsure;
}

static void fill(int dir, const struct record *record, struct gpupart_job *job)
{
	struct gpupart_tpcset set = effective(dir, record);

	memset(job, 0, sizeof(*job));
	snprintf(job->id, sizeof(job->id), "%s", record->header.id);
	/* In a note that the user wrote himself there may be anything. */
	process_copy_text(job->name, sizeof(job->name), record->header.name,
			  sizeof(record->header.name));
	process_copy_text(job->parent, sizeof(job->parent), record->header.parent,
			  sizeof(record->header.parent));
	process_copy_text(job->pci, sizeof(job->pci), record->gpu.pci, sizeof(record->gpu.pci));
	process_copy_text(job->source, sizeof(job->source), record->source,
			  sizeof(record->source));
	job->simulated = strcmp(record->source, "rm") && strcmp(record->source, "kernel");
	job->elsewhere = record->header.pid_namespace != control_pid_namespace();
	if (!job->elsewhere && control_process_lives(record->header.pid, record->header.start))
		job->pid = record->header.pid;
	gpupart_tpcset_format_list(&set, job->limit, sizeof(job->limit));
	job->uid = geteuid();
	job->other_version = is_other_version(record);
}

/* Adds those that root gave; *nr may become more than @max. */
static void list_node(struct gpupart_job *list, unsigned int max, unsigned int *nr)
{
	int nr_given = gpupart_grant_list(NULL, NULL, 0, sizeof(struct gpupart_grant));
	int room = nr_given + 16, found;
	struct gpupart_grant *grants = nr_given > 0 ? calloc(room, sizeof(*grants)) : NULL;
	struct record record;

	found = grants ? gpupart_grant_list(NULL, grants, room, sizeof(struct gpupart_grant)) : 0;
	for (int i = 0; i < found && i < room; i++) {
		if ((geteuid() && grants[i].uid != geteuid()) || !read_node(grants[i].id, &record))
			continue;
		if (*nr < max) {
			fill(-1, &record, &list[*nr]);
			list[*nr].uid = grants[i].uid;
		}
		++*nr;
	}
	free(grants);
}

/* Of a writer that died before its file had its name. */
static void sweep_unfinished(int dir, const char *file)
{
	struct stat st;

	if (!fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime + 60 < time(NULL))
		unlinkat(dir, file, 0);
}

static int job_list_fill(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	(void)arg;
	return gpupart_job_list(gp, rows, max, sizeof(struct gpupart_job));
}

int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max, size_t size)
{
	int fd = control_open_dir(geteuid(), false);
	struct living living;
	unsigned int nr = 0;
	struct dirent *entry;
	struct record record;
	DIR *dir;

	if (size != sizeof(*list))
		return rows_resized(gp, list, max, size, sizeof(*list), job_list_fill, NULL);
	(void)gp;
	list_node(list, max, &nr);
	/* Nothing was begun here. */
	if (fd < 0)
		return nr;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return nr;
	}
	living_init(&living);
	while ((entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "." JOB_PREFIX, strlen("." JOB_PREFIX)))
			sweep_unfinished(fd, entry->d_name);
		if (strncmp(entry->d_name, JOB_PREFIX, strlen(JOB_PREFIX)) ||
		    !read_record(fd, entry->d_name + strlen(JOB_PREFIX), &record))
			continue;
		if (!job_lives(fd, &record, &living)) {
			unlinkat(fd, entry->d_name, 0);
			continue;
		}
		if (nr < max)
			fill(fd, &record, &list[nr]);
		nr++;
	}
	living_fini(&living);
	closedir(dir);
	return nr;
}

int gpupart_job_begin(struct gpupart *gp, const char *name, const struct gpupart_topology *topo,
		      const char *pci, const struct gpupart_tpcset *set, char *id)
{
	const char *parent = getenv(JOB_VARIABLE);
	struct record record = {
		.header = { .pid = getpid(), .start = control_process_start(getpid()),
			    .pid_namespace = control_pid_namespace(), .uid = geteuid(),
			    .nr_gpus = 1 },
		.gpu = { .nr_tpcs = gpupart_topology_nr_tpcs(topo),
			 .simulated = gpupart_topology_info(topo)->simulated },
	};
	int dir, err = gpupart_set_check(gp, topo, set);

	if (!err && (!pci || !topo_address_read(pci, record.gpu.pci)))
		err = ctx_fail(gp, -EINVAL,
			       "\"%.63s\" is no GPU's address, as \"0000:0d:00.0\" is",
			       pci ? pci : "");
	if (err)
		return err;
	record.gpu.tpcs = *set;
	if (name && *name && !control_name_good(name))
		return ctx_fail(gp, -EINVAL,
				"a job cannot be named '%.80s': wants 1 to %zu letters, digits, '.', '_' or '-', the first no '-'",
				name, sizeof(record.header.name) - 1);
	/* What nobody needs any more goes first. */
	gpupart_job_list(gp, NULL, 0, sizeof(struct gpupart_job));
	dir = control_open_dir(geteuid(), true);
	if (dir < 0)
		return ctx_fail(gp, dir, "the job cannot be noted below /dev/shm: %s",
				strerror(-dir));
	snprintf(record.header.id, sizeof(record.header.id), "%d-%llx-%llx", record.header.pid,
		 (unsigned long long)record.header.start,
		 (unsigned long long)record.header.pid_namespace);
	snprintf(record.header.name, sizeof(record.header.name), "%s", name ? name : "");
	snprintf(record.source, sizeof(record.source), "%s", gpupart_topology_info(topo)->source);
	/* A second begin of one process is a change of mind, no job inside itself. */
	if (parent && id_good(parent) && strcmp(parent, record.header.id))
		snprintf(record.header.parent, sizeof(record.header.parent), "%s", parent);
	shared_init(&record.header, JOB_LAYOUT, sizeof(record));
	atomic_init(&record.header.magic, SHARED_MAGIC(SHARED_JOB));
	err = write_record(dir, &record);
	close(dir);
	if (err)
		return ctx_fail(gp, err, "the job cannot be noted below /dev/shm: %s",
				strerror(-err));
	snprintf(id, GPUPART_JOB_STRLEN, "%s", record.header.id);
	return 0;
}

/* The limit of one process of a job, its own job's: 0 too where it has not come so far. */
static int set_process(struct gpupart *gp, int dir, const struct record *job,
		       const struct gpupart_process *process, bool *early)
{
	struct gpupart_tpcset set;
	int err;

	*early = false;
	/* A run inside a run is on its GPU. */
	if (!process->pid || !belongs(dir, process->job, job->header.id) ||
	    !job_limit(process->job, job->gpu.pci, &set))
		return 0;
	err = gpupart_process_limit_set(gp, process->pid, job->gpu.pci, &set, NULL);
	/* It is gone. */
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
 * The limits of all processes of the job. One that shows itself and has no limit on the GPU
 * yet will read the note, which was written first: that is waited for, if not for long,
 * since who set the job looks at it next.
 */
static int set_processes(struct gpupart *gp, int dir, const struct record *job)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	bool early, again = true;
	unsigned int nr;
	struct gpupart_process *list = processes(&nr);
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
				list[i].pid = 0;	/* done with */
		}
	}
	free(list);
	return failed;
}

/* Two that set it at once take turns; who was stopped meanwhile must not stop us for ever. */
static int lock_jobs(struct gpupart *gp, int dir, const char *id)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < LOCK_SECONDS * 1000; i++) {
		if (!flock(dir, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ctx_fail(gp, -errno, "job %s: %s", id, strerror(errno));
		nanosleep(&pause, NULL);
	}
	return ctx_fail(gp, -EBUSY,
			"job %s: another program has held the jobs' folder for %d s", id,
			LOCK_SECONDS);
}

static int check_job_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set)
{
	if (id && set && !gpupart_tpcset_empty(set))
		return 0;
	return ctx_fail(gp, -EINVAL, !id ? "no job's id is given"
				     : !set ? "no set for the job is given"
					    : "the set for a job is empty");
}

/* A node's job is root's to change; who else says what it is already may tell his processes. */
static int write_limit(struct gpupart *gp, int dir, struct record *record,
		       const struct gpupart_tpcset *set)
{
	char given[GPUPART_TPCSET_STRLEN];
	int err;

	if (node_is_id(record->header.id) && geteuid()) {
		if (gpupart_tpcset_equal(&record->gpu.tpcs, set))
			return 0;
		gpupart_tpcset_format_list(&record->gpu.tpcs, given, sizeof(given));
		return ctx_fail(gp, -EPERM,
				"job %s was given TPCs %s by this node: root changes it",
				record->header.name, given);
	}
	record->gpu.tpcs = *set;
	err = write_record(dir, record);
	return err ? ctx_fail(gp, err, "job %s: %s", record->header.id, strerror(-err)) : 0;
}

int gpupart_job_limit_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set,
			  struct gpupart_tpcset *before)
{
	int dir, err = check_job_set(gp, id, set);
	bool node = !err && node_is_id(id);
	struct record record;

	if (err)
		return err;
	dir = node ? node_open_dir(false) : control_open_dir(geteuid(), false);
	if (dir < 0 || !read_record(dir, id, &record)) {
		err = ctx_fail(gp, -ESRCH, "\"%.63s\" is no job of this user's", id);
		goto close_dir;
	}
	if (is_other_version(&record)) {
		err = ctx_fail(gp, -EPROTO,
			       "job %s was begun by another version of gpupart: only 'gpupart set' of that version changes its limit",
			       *record.header.name ? record.header.name : record.header.id);
		goto close_dir;
	}
	if (gpupart_tpcset_next(set, record.gpu.nr_tpcs) >= 0) {
		err = ctx_fail(gp, -EINVAL, "TPC %d is not there: %s has TPCs 0-%u",
			       gpupart_tpcset_next(set, record.gpu.nr_tpcs), record.gpu.pci,
			       record.gpu.nr_tpcs - 1);
		goto close_dir;
	}
	/* What the record says is what the processes get. */
	err = node && geteuid() ? 0 : lock_jobs(gp, dir, id);
	if (err)
		goto close_dir;
	if (before)
		*before = effective(dir, &record);
	/* First the record: a process that begins now reads it, or is found below. */
	err = write_limit(gp, dir, &record, set);
	if (!err && node) {
		close(dir);
		/* Jobs that were begun inside it are the user's. */
		dir = control_open_dir(geteuid(), false);
	}
	if (!err)
		err = set_processes(gp, dir, &record);
close_dir:
	if (dir >= 0)
		close(dir);
	return err;
}
