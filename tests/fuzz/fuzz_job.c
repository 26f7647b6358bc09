// SPDX-License-Identifier: MIT
/*
 * Fuzz target: job records and the environments of processes. There are three records. The
 * records may name each other as parents. Listed jobs must have valid strings and a set. If the
 * target sets a limit, the limit must apply inside the parent's limit. No chain of records may be
 * endless.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
/* The layout of a job's record is internal to job.c. */
#include "lib/state/job.c"
#include "tests/fuzz/fuzz.h"

#define NR_NOTES 3

static char folder[] = "/dev/shm/fuzz-job.XXXXXX";
static const char *const ids[NR_NOTES] = { "1-1-1", "2-2-1", "3-3-1" };

int __wrap_state_dir_open(uid_t uid, bool make);
bool __wrap_state_dir_process_lives(pid_t pid, uint64_t start);
bool __wrap_holder_namespace_gone(uint64_t pid_namespace);
unsigned int __wrap_process_list_own(struct gpupart_process *list, unsigned int max);

int __wrap_state_dir_open(uid_t uid, bool make)
{
	(void)make;
	MUST(uid == geteuid());
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* All processes are alive, so the library does not search for processes. */
bool __wrap_state_dir_process_lives(pid_t pid, uint64_t start)
{
	(void)pid;
	(void)start;
	return true;
}

bool __wrap_holder_namespace_gone(uint64_t pid_namespace)
{
	(void)pid_namespace;
	return false;
}

unsigned int __wrap_process_list_own(struct gpupart_process *list, unsigned int max)
{
	(void)list;
	(void)max;
	return 0;
}

static void path_of(char *path, size_t len, unsigned int i)
{
	snprintf(path, len, "%s/" JOB_PREFIX "%s", folder, ids[i]);
}

static void clean_up(void)
{
	char path[96];

	for (unsigned int i = 0; i < NR_NOTES; i++) {
		path_of(path, sizeof(path), i);
		unlink(path);
	}
	rmdir(folder);
}

static void write_notes(struct input *in)
{
	char path[96];

	for (unsigned int i = 0; i < NR_NOTES; i++) {
		struct job_record record;
		struct input part = { in->at, in->left / (NR_NOTES - i) };
		unsigned int parent = input_u8(&part);
		int fd;

		in->at += in->left / (NR_NOTES - i);
		in->left -= in->left / (NR_NOTES - i);
		memset(&record, 0, sizeof(record));
		shared_init(&record.header, JOB_LAYOUT, sizeof(record));
		atomic_init(&record.header.magic, SHARED_MAGIC(SHARED_JOB));
		atomic_init(&record.header.nr_gpus, 1);
		record.header.pid = i + 1;
		record.header.start = i + 1;
		record.header.pid_namespace = state_dir_pid_namespace();
		strcpy(record.header.name, "job");
		strcpy(record.header.id, ids[i]);
		if (parent % 4 < NR_NOTES)
			strcpy(record.header.parent, ids[parent % 4]);
		strcpy(record.gpu.pci, "0000:01:00.0");
		strcpy(record.source, "rm");
		record.gpu.nr_tpcs = 10;
		record.gpu.tpcs.allowed[0] = input_u16(&part) & 0x3ff;
		input_patch(&part, &record, sizeof(record));
		path_of(path, sizeof(path), i);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		MUST(fd >= 0 && write(fd, &record, sizeof(record)) == sizeof(record));
		close(fd);
	}
}

static void check_listed(const struct gpupart_job *job)
{
	struct gpupart_tpcset set;

	MUST(!strcmp(job->id, ids[0]) || !strcmp(job->id, ids[1]) || !strcmp(job->id, ids[2]));
	MUST(fuzz_printable(job->name, sizeof(job->name)));
	MUST(fuzz_printable(job->parent, sizeof(job->parent)));
	MUST(fuzz_printable(job->pci, sizeof(job->pci)));
	MUST(fuzz_printable(job->source, sizeof(job->source)));
	MUST(!job->limit[0] || !gpupart_tpcset_parse_list(NULL, job->limit, &set));
}

static void read_notes(struct job_record notes[NR_NOTES])
{
	char path[96];
	int fd;

	memset(notes, 0, NR_NOTES * sizeof(*notes));
	for (unsigned int i = 0; i < NR_NOTES; i++) {
		path_of(path, sizeof(path), i);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		MUST(fd >= 0 && read(fd, &notes[i], sizeof(notes[i])) == sizeof(notes[i]));
		close(fd);
	}
}

/* Checks that only the set of the changed job was written. */
static void set_limit(struct gpupart *gp, unsigned int nr, const struct gpupart_tpcset *set)
{
	static struct job_record notes[NR_NOTES], after[NR_NOTES];
	struct gpupart_tpcset before, now;
	struct job_record *record = &after[nr];
	int err, dir;

	read_notes(notes);
	gp->error[0] = 0;
	err = gpupart_job_limit_set(gp, ids[nr], set, &before);
	read_notes(after);
	if (err) {
		MUST(err < 0 && gp->error[0]);
		MUST(!memcmp(notes, after, sizeof(notes)));
		return;
	}
	MUST(!gpupart_tpcset_empty(set));
	MUST(!strncmp(record->header.id, ids[nr], sizeof(record->header.id)));
	MUST(shared_is(&record->header, SHARED_JOB, JOB_LAYOUT));
	MUST(gpupart_tpcset_equal(&record->gpu.tpcs, set));
	MUST(gpupart_tpcset_next(set, record->gpu.nr_tpcs) < 0);
	dir = __wrap_state_dir_open(geteuid(), false);
	now = job_effective(dir, record);
	close(dir);
	MUST(*record->header.parent || gpupart_tpcset_equal(&now, set));
	for (unsigned int i = 0; i < NR_NOTES; i++)
		MUST(i == nr || !memcmp(&notes[i], &after[i], sizeof(notes[i])));
}

static void read_environment(const uint8_t *data, size_t size)
{
	char id[GPUPART_JOB_STRLEN];
	const char *at = (const char *)data, *end = at + size, *found = NULL;

	read_job(fuzz_file(data, size), id);
	/* Find the first variable with this name. This code does not use the library. */
	for (; at < end && !found; at += strnlen(at, end - at) + 1)
		if ((size_t)(end - at) > strlen(ENVIRONMENT_JOB "=") &&
		    !strncmp(at, ENVIRONMENT_JOB "=", strlen(ENVIRONMENT_JOB "=")))
			found = at + strlen(ENVIRONMENT_JOB "=");
	if (found)
		MUST(!strncmp(id, found, strnlen(found, end - found) < GPUPART_JOB_STRLEN - 1 ?
						 strnlen(found, end - found) :
						 GPUPART_JOB_STRLEN - 1));
	else
		MUST(!*id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpupart *gp;
	struct input in = { data, size };
	struct gpupart_tpcset set = { { 0 } };
	struct gpupart_job jobs[2];
	int nr;

	if (!gp) {
		MUST(!gpupart_open(&gp) && mkdtemp(folder));
		atexit(clean_up);
	}
	fuzz_words = gp->error;
	read_environment(data, size);
	set.allowed[0] = input_u16(&in);
	write_notes(&in);
	nr = gpupart_job_list(gp, jobs, 2, sizeof(struct gpupart_job));
	MUST(nr >= 0 && nr <= NR_NOTES);
	for (int i = 0; i < nr && i < 2; i++)
		check_listed(&jobs[i]);
	MUST(nr < 2 || strcmp(jobs[0].id, jobs[1].id));
	for (unsigned int i = 0; i < NR_NOTES; i++)
		set_limit(gp, i, &set);
	return 0;
}
