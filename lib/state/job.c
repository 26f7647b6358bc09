// SPDX-License-Identifier: MIT
/* Reads the files of jobs. Finds the current limit of a job, and finds the living jobs. */
#include <dirent.h>
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
#include "lib/state/job_record.h"
#include "lib/state/process.h"
#include "lib/state/state_page.h"
#include "lib/topo/topology.h"

#define MAX_ENVIRONMENT	(8 << 20)	/* exec accepts environments of at most this number of
					 * bytes */

bool job_id_good(const char *id)
{
	return id[0] && strlen(id) < GPUPART_JOB_STRLEN &&
	       strspn(id, "0123456789abcdef-") == strlen(id);
}

/*
 * Reads the grant @id as a job record. Ignores a file with the same name in the user's
 * directory.
 */
static bool read_node(const char *id, struct job_record *record)
{
	struct gpupart_grant grant;

	if (!grant_get(id, &grant))
		return false;
	memset(record, 0, sizeof(*record));
	record->header.layout = grant.other_version ? 0 : JOB_LAYOUT;
	record->header.pid_namespace = state_dir_pid_namespace();
	snprintf(record->header.name, sizeof(record->header.name), "%s", grant.name);
	snprintf(record->header.id, sizeof(record->header.id), "%s", grant.id);
	snprintf(record->gpu.pci, sizeof(record->gpu.pci), "%s", grant.pci);
	snprintf(record->source, sizeof(record->source), "%s", grant.source);
	record->gpu.nr_tpcs = grant.nr_tpcs;
	record->gpu.tpcs = grant.set;
	return true;
}

bool job_read(int dir, const char *id, struct job_record *record)
{
	char file[GPUPART_JOB_STRLEN + 8], wanted[GPUPART_JOB_STRLEN];
	enum shared_version version;
	struct shared_seen seen;
	STATE_CLOSED int fd = -1;

	if (grant_is_id(id))
		return read_node(id, record);
	if (!job_id_good(id))
		return false;
	strcpy(wanted, id);
	job_file(file, sizeof(file), id);
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

struct gpupart_tpcset job_effective(int dir, const struct job_record *record)
{
	struct gpupart_tpcset set = record->gpu.tpcs, both;
	struct job_record parent = *record;

	for (int depth = 0; parent.header.parent[0] && depth < JOB_MAX_DEPTH; depth++) {
		if (!job_read(dir, parent.header.parent, &parent))
			break;
		if (strcmp(parent.gpu.pci, record->gpu.pci))
			continue;
		both = gpupart_tpcset_and(&set, &parent.gpu.tpcs);
		set = gpupart_tpcset_empty(&both) ? parent.gpu.tpcs : both;
	}
	return set;
}

/*
 * If job @id is on the GPU at @pci, reads the record of this job. Otherwise reads the record of the
 * next outer job on this GPU.
 */
static bool read_on_gpu(int dir, const char *id, const char *pci, struct job_record *record)
{
	for (int depth = 0; *id && depth < JOB_MAX_DEPTH; depth++) {
		if (!job_read(dir, id, record))
			return false;
		if (!strcmp(record->gpu.pci, pci))
			return true;
		id = record->header.parent;
	}
	return false;
}

bool job_limit(const char *id, const char *pci, struct gpupart_tpcset *set)
{
	STATE_CLOSED int dir = state_dir_open(geteuid(), false);
	struct job_record record;

	if ((dir < 0 && !grant_is_id(id)) || !read_on_gpu(dir, id, pci, &record))
		return false;
	*set = job_effective(dir, &record);
	return true;
}

bool job_belongs(int dir, const char *id, const char *ancestor)
{
	struct job_record record;

	for (int depth = 0; id[0] && depth < JOB_MAX_DEPTH; depth++) {
		if (!strcmp(id, ancestor))
			return true;
		if (!job_read(dir, id, &record))
			return false;
		id = record.header.parent;
	}
	return false;
}

struct gpupart_process *job_processes(unsigned int *nr)
{
	struct gpupart_process *list = NULL;
	int room, found = process_list_own(NULL, 0);

	/*
	 * Allocate more rows than are needed at this moment, because more processes may start
	 * during the call.
	 */
	room = found > 0 ? found + 64 : 64;
	list = malloc(room * sizeof(*list));
	found = list ? process_list_own(list, room) : 0;
	*nr = found < room ? found : room;
	return list;
}

/*
 * The processes that may keep a job alive. These are processes with a published state page, and
 * processes whose environment contains the id of a job. Before the code removes a job, it reads the
 * environments.
 */
struct living {
	struct gpupart_process *shown;
	unsigned int nr_shown;
	char (*started)[GPUPART_JOB_STRLEN];	/* ids of jobs found in environments */
	unsigned int nr_started;
	bool looked, unsure;
};

/*
 * Reads the value of the first GPUPART_JOB in the environment file @path. If there is no such
 * variable, the result is "".
 */
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

	if (!job_id_good(id))
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

/*
 * Reads the environments of all processes that this user may read. Root reads environments of other
 * users, so the work of root is limited.
 */
static void look_for_started(struct living *living)
{
	uint64_t budget = state_dir_budget_begin(geteuid() ?: 1);
	char path[300], id[GPUPART_JOB_STRLEN];
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	living->unsure |= !proc;
	while (proc && !living->unsure && (entry = readdir(proc))) {
		living->unsure = state_dir_budget_spent(budget);
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
		read_job(path, id);
		add_started(living, id);
	}
	if (proc)
		closedir(proc);
}

/*
 * Returns true if any process of a job is alive. Such a process started the job, has a published
 * state page, or has the job's id in its environment. A process with the job's id in its
 * environment could begin to use the GPU later.
 */
static bool job_lives(int dir, const struct job_record *record, struct living *living)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	if (record->header.pid_namespace != state_dir_pid_namespace() ?
		    !holder_namespace_gone(record->header.pid_namespace) :
		    state_dir_process_lives(record->header.pid, record->header.start))
		return true;
	for (unsigned int i = 0; i < living->nr_shown; i++)
		if (job_belongs(dir, living->shown[i].job, record->header.id))
			return true;
	if (!living->looked) {
		/* Scan twice, because a process has no environment for a short time during exec. */
		look_for_started(living);
		nanosleep(&pause, NULL);
		look_for_started(living);
		living->looked = true;
	}
	for (unsigned int i = 0; i < living->nr_started; i++)
		if (job_belongs(dir, living->started[i], record->header.id))
			return true;
	return living->unsure;
}

static void fill(int dir, const struct job_record *record, struct gpupart_job *job)
{
	struct gpupart_tpcset set = job_effective(dir, record);

	memset(job, 0, sizeof(*job));
	snprintf(job->id, sizeof(job->id), "%s", record->header.id);
	/* The user may have written the record by hand, so check its strings. */
	state_dir_copy_text(job->name, sizeof(job->name), record->header.name,
			  sizeof(record->header.name));
	state_dir_copy_text(job->parent, sizeof(job->parent), record->header.parent,
			  sizeof(record->header.parent));
	state_dir_copy_text(job->pci, sizeof(job->pci), record->gpu.pci, sizeof(record->gpu.pci));
	state_dir_copy_text(job->source, sizeof(job->source), record->source,
			  sizeof(record->source));
	job->simulated = job_is_simulated(record->source);
	job->elsewhere = record->header.pid_namespace != state_dir_pid_namespace();
	if (!job->elsewhere && state_dir_process_lives(record->header.pid, record->header.start))
		job->pid = record->header.pid;
	gpupart_tpcset_format_list(&set, job->limit, sizeof(job->limit));
	job->uid = geteuid();
	job->other_version = job_is_other_version(record);
}

/* Appends the grants to the list. The number *nr may become larger than @max. */
static void list_node(struct gpupart_job *list, unsigned int max, unsigned int *nr)
{
	int nr_given = gpupart_grant_list(NULL, NULL, 0, sizeof(struct gpupart_grant));
	int room = nr_given + 16, found;
	struct gpupart_grant *grants = nr_given > 0 ? calloc(room, sizeof(*grants)) : NULL;
	struct job_record record;

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

/*
 * Removes the temporary file of a process that died before it renamed the file. The call unlink()
 * does not remove directories.
 */
static void sweep_unfinished(int dir, const char *file)
{
	struct stat st;

	if (!fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime + 60 < time(NULL))
		unlinkat(dir, file, 0);
}

static int list_jobs(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	struct gpupart_job *list = rows;
	int fd = state_dir_open(geteuid(), false);
	DIR *dir = state_dir_read(fd);
	struct living living = { 0 };
	unsigned int nr = 0;
	struct dirent *entry;
	struct job_record record;

	(void)gp;
	(void)arg;
	list_node(list, max, &nr);
	/* If the directory does not exist, the user has started no job. */
	if (!dir)
		return nr;
	living.shown = job_processes(&living.nr_shown);
	living.unsure = !living.shown;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			sweep_unfinished(fd, entry->d_name);
		if (strncmp(entry->d_name, JOB_PREFIX, strlen(JOB_PREFIX)) ||
		    !job_read(fd, entry->d_name + strlen(JOB_PREFIX), &record))
			continue;
		if (!job_lives(fd, &record, &living)) {
			unlinkat(fd, entry->d_name, 0);
			continue;
		}
		if (nr < max)
			fill(fd, &record, &list[nr]);
		nr++;
	}
	free(living.shown);
	free(living.started);
	closedir(dir);
	return nr;
}

int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max, size_t size)
{
	return rows_resized(gp, list, max, size, sizeof(*list), list_jobs, NULL);
}
