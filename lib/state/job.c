// SPDX-License-Identifier: MIT
/*
 * Jobs: what one `gpupart run` started, and all that it starts. A file a job beside the blocks of
 * processes says what it is limited to now, for processes that begin later.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/environment.h"
#include "lib/core/rows.h"
#include "lib/state/grant.h"
#include "lib/state/holder.h"
#include "lib/state/job.h"
#include "lib/state/process.h"
#include "lib/state/process_block.h"
#include "lib/topo/topology.h"

#define JOB_LAYOUT	2	/* counted up with every change behind the header */
#define JOB_PREFIX	"job-"
/* Runs inside runs; a user's notes may have been made to lead round. */
#define MAX_DEPTH	1000
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
	enum shared_version version;
	struct shared_seen seen;
	CONTROL_CLOSED int fd = -1;

	if (node_is_id(id))
		return read_node(id, record);
	if (!id_good(id))
		return false;
	strcpy(wanted, id);
	file_of(file, sizeof(file), id);
	fd = shared_open(dir, file, geteuid(), SHARED_JOB, JOB_LAYOUT, &seen, &version);
	if (fd < 0 || version == SHARED_NONE || !seen.nr_gpus || strcmp(seen.header.id, wanted) ||
	    (version == SHARED_SAME &&
	     pread(fd, record, sizeof(*record), 0) != sizeof(*record)))
		return false;
	record->header = seen.header;
	record->gpu = seen.gpus[0];
	if (version == SHARED_OTHER)
		strcpy(record->source, record->gpu.simulated ? "" : "rm");
	record->source[sizeof(record->source) - 1] = 0;
	return true;
}

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
	char file[GPUPART_JOB_STRLEN + 8];

	if (node_is_id(record->header.id))
		return write_node(record);
	file_of(file, sizeof(file), record->header.id);
	return control_write_file(dir, file, record, sizeof(*record), 0600);
}

/* What holds for @record: no more than what holds for the job that it was begun in. */
static struct gpupart_tpcset effective(int dir, const struct record *record)
{
	struct gpupart_tpcset set = record->gpu.tpcs, both;
	struct record parent = *record;

	for (int depth = 0; parent.header.parent[0] && depth < MAX_DEPTH; depth++) {
		if (!read_record(dir, parent.header.parent, &parent))
			break;
		if (strcmp(parent.gpu.pci, record->gpu.pci))
			continue;
		both = gpupart_tpcset_and(&set, &parent.gpu.tpcs);
		set = gpupart_tpcset_empty(&both) ? parent.gpu.tpcs : both;
	}
	return set;
}

/* The record of job @id, or of the first around it, on the GPU at @pci. */
static bool read_on_gpu(int dir, const char *id, const char *pci, struct record *record)
{
	for (int depth = 0; *id && depth < MAX_DEPTH; depth++) {
		if (!read_record(dir, id, record))
			return false;
		if (!strcmp(record->gpu.pci, pci))
			return true;
		id = record->header.parent;
	}
	return false;
}

bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set)
{
	CONTROL_CLOSED int dir = control_open_dir(geteuid(), false);
	struct record record;

	if ((dir < 0 && !node_is_id(id)) || !read_on_gpu(dir, id, pci, &record))
		return false;
	*set = effective(dir, &record);
	return true;
}

/* Whether @id is @ancestor or was begun in it. */
static bool belongs(int dir, const char *id, const char *ancestor)
{
	struct record record;

	for (int depth = 0; id[0] && depth < MAX_DEPTH; depth++) {
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

/* Who shows itself, and, looked for only when a job would be forgotten, who was started. */
struct living {
	struct gpupart_process *shown;
	unsigned int nr_shown;
	char (*started)[GPUPART_JOB_STRLEN];	/* jobs that some environment names */
	unsigned int nr_started;
	bool looked, unsure;
};

/* The first value of GPUPART_JOB in the environment that is the file @path; "": it has none. */
static void read_job(const char *path, char id[GPUPART_JOB_STRLEN])
{
	static const char name[] = ENVIRONMENT_JOB "=";
	FILE *file = fopen(path, "re");
	size_t room = 0, total = 0;
	char *text = NULL;
	bool found = false;
	ssize_t n;

	*id = 0;
	for (; file && !found && total < MAX_ENVIRONMENT; total += n) {
		n = getdelim(&text, &room, 0, file);
		if (n <= 0)
			break;
		found = !strncmp(text, name, strlen(name));
		if (found)
			snprintf(id, GPUPART_JOB_STRLEN, "%s", text + strlen(name));
	}
	free(text);
	if (file)
		fclose(file);
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

	living->unsure |= !proc;
	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
		read_job(path, id);
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

/* A program runs on a capture's GPU only on the simulated driver. */
static bool is_simulated(const char *source)
{
	return strcmp(source, "rm") && strcmp(source, "kernel");
}

static void fill(int dir, const struct record *record, struct gpupart_job *job)
{
	struct gpupart_tpcset set = effective(dir, record);

	memset(job, 0, sizeof(*job));
	snprintf(job->id, sizeof(job->id), "%s", record->header.id);
	/* In a note that the user wrote himself there may be anything. */
	control_copy_text(job->name, sizeof(job->name), record->header.name,
			  sizeof(record->header.name));
	control_copy_text(job->parent, sizeof(job->parent), record->header.parent,
			  sizeof(record->header.parent));
	control_copy_text(job->pci, sizeof(job->pci), record->gpu.pci, sizeof(record->gpu.pci));
	control_copy_text(job->source, sizeof(job->source), record->source,
			  sizeof(record->source));
	job->simulated = is_simulated(record->source);
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

/* Of a writer that died before its file had its name; a folder is not removed. */
static void sweep_unfinished(int dir, const char *file)
{
	struct stat st;

	if (!fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime + 60 < time(NULL))
		unlinkat(dir, file, 0);
}

static int list_jobs(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	struct gpupart_job *list = rows;
	int fd = control_open_dir(geteuid(), false);
	DIR *dir = control_read_dir(fd);
	struct living living;
	unsigned int nr = 0;
	struct dirent *entry;
	struct record record;

	(void)gp;
	(void)arg;
	list_node(list, max, &nr);
	/* Nothing was begun here. */
	if (!dir)
		return nr;
	living_init(&living);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
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

int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max, size_t size)
{
	return rows_resized(gp, list, max, size, sizeof(*list), list_jobs, NULL);
}

/*
 * The place of @record, whose id is this process's, among the jobs that the process began in
 * @current: one a GPU, each inside the one before. A second begin on a GPU is a change of mind.
 * Returns whether it is one.
 */
static bool find_place(int dir, const char *current, struct record *record)
{
	size_t len = strlen(record->header.id);
	struct record own = { 0 };
	const char *at = current;
	unsigned int nr = 0;

	for (; nr < MAX_DEPTH && !strncmp(at, record->header.id, len) &&
	       (!at[len] || at[len] == '-') && read_record(dir, at, &own); nr++) {
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
	struct record record = {
		.header = { .pid = getpid(), .start = control_process_start(getpid()),
			    .pid_namespace = control_pid_namespace(), .uid = geteuid(),
			    .nr_gpus = 1 },
		.gpu = { .nr_tpcs = gpupart_topology_nr_tpcs(topo),
			 .simulated = is_simulated(gpupart_topology_info(topo)->source) },
	};
	int err = gpupart_set_check(gp, topo, set);
	CONTROL_CLOSED int dir = -1;
	bool again;

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
	list_jobs(gp, NULL, NULL, 0);
	dir = control_open_dir(geteuid(), true);
	if (dir < 0)
		return ctx_fail(gp, dir, "the job cannot be noted below /dev/shm: %s",
				strerror(-dir));
	snprintf(record.header.id, sizeof(record.header.id), "%d-%llx-%llx", record.header.pid,
		 (unsigned long long)record.header.start,
		 (unsigned long long)record.header.pid_namespace);
	snprintf(record.header.name, sizeof(record.header.name), "%s", name ? name : "");
	snprintf(record.source, sizeof(record.source), "%s", gpupart_topology_info(topo)->source);
	again = current && id_good(current) && find_place(dir, current, &record);
	shared_init(&record.header, JOB_LAYOUT, sizeof(record));
	atomic_init(&record.header.magic, SHARED_MAGIC(SHARED_JOB));
	err = write_record(dir, &record);
	if (err)
		return ctx_fail(gp, err, "the job cannot be noted below /dev/shm: %s",
				strerror(-err));
	snprintf(id, GPUPART_JOB_STRLEN, "%s", again ? current : record.header.id);
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

/*
 * Two that set it at once take turns. Of the node's jobs a file of root's alone is locked: every
 * user can open their folder, and so keep a lock on that. The descriptor, or a negative errno.
 */
static int lock_jobs(struct gpupart *gp, int dir, const char *id, bool node)
{
	int fd = node ? openat(dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) :
			openat(dir, ".", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : control_lock_file(fd);

	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return ctx_fail(gp, err, "job %s: %s", id, err == -EBUSY ?
			"another program has held the jobs' folder for 5 s" : strerror(-err));
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
	int err = check_job_set(gp, id, set);
	CONTROL_CLOSED int dir = -1, lock = -1;
	bool node = !err && node_is_id(id);
	struct record record;

	if (err)
		return err;
	dir = node ? node_open_dir(false) : control_open_dir(geteuid(), false);
	if (dir < 0 || !read_record(dir, id, &record))
		return ctx_fail(gp, -ESRCH, "\"%.63s\" is no job of this user's", id);
	if (is_other_version(&record))
		return ctx_fail(gp, -EPROTO,
				"job %s was begun by another version of gpupart: only 'gpupart set' of that version changes its limit",
				*record.header.name ? record.header.name : record.header.id);
	if (gpupart_tpcset_next(set, record.gpu.nr_tpcs) >= 0)
		return ctx_fail(gp, -EINVAL, "TPC %d is not there: %s has TPCs 0-%u",
				gpupart_tpcset_next(set, record.gpu.nr_tpcs), record.gpu.pci,
				record.gpu.nr_tpcs - 1);
	/* What the record says is what the processes get. */
	if (!node || !geteuid())
		lock = err = lock_jobs(gp, dir, id, node);
	if (err < 0)
		return err;
	if (before)
		*before = effective(dir, &record);
	/* First the record: a process that begins now reads it, or is found below. */
	err = write_limit(gp, dir, &record, set);
	if (!err && node) {
		close(dir);
		if (lock >= 0)
			close(lock);
		lock = -1;
		/* Jobs that were begun inside it are the user's. */
		dir = control_open_dir(geteuid(), false);
	}
	return err ? err : set_processes(gp, dir, &record);
}
