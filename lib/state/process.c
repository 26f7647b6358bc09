// SPDX-License-Identifier: MIT
/* Lists other processes by their state pages. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/rows.h"
#include "lib/state/holder.h"
#include "lib/state/process.h"
#include "lib/state/state_page.h"

/* Fills in the members for @gpu. If @limit is NULL, the row keeps its limit. */
void process_show(const struct state_gpu *gpu, const struct gpupart_tpcset *limit,
		 struct gpupart_process *row)
{
	if (limit)
		gpupart_tpcset_format_list(limit, row->limit, sizeof(row->limit));
	state_dir_copy_text(row->pci, sizeof(row->pci), gpu->pci, sizeof(gpu->pci));
	state_dir_copy_text(row->source, sizeof(row->source), gpu->source, sizeof(gpu->source));
	row->simulated = *(const unsigned char *)&gpu->simulated;
}

/* Shows the first GPU that has a limit. If no GPU has a limit, shows the first GPU. */
static void show_gpu(const struct state_page *page, struct gpupart_process *process)
{
	bool all_limited = state_nr_gpus(page);

	for (uint32_t g = state_nr_gpus(page); g-- > 0; ) {
		const struct state_gpu *gpu = &page->gpus[g];
		struct limit_sets sets;

		if (!limit_get(&gpu->limit, &sets))
			memset(&sets, 0, sizeof(sets));
		if (gpupart_tpcset_empty(&sets.in_force)) {
			all_limited = false;
			if (g || process->limit[0])
				continue;
		}
		process_show(gpu, &sets.in_force, process);
	}
	process->nr_gpus = state_nr_gpus(page);
	/*
	 * The process had a problem with the limit in its environment. Later, another program set a
	 * limit, so the problem no longer matters. A problem of a rule still matters.
	 */
	if (all_limited && memcmp(process->problem, STATE_RULE_PROBLEM, 8))
		process->problem[0] = 0;
}

static void describe_header(const struct shared_header *header, int pid, uid_t uid,
			    struct gpupart_process *process)
{
	memset(process, 0, sizeof(*process));
	process->pid = pid;
	process->uid = uid;
	state_dir_copy_text(process->name, sizeof(process->name), header->name,
			    sizeof(header->name));
	state_dir_copy_text(process->job, sizeof(process->job), header->id, sizeof(header->id));
}

void process_show_other(struct gpupart_process *process, const struct shared_gpu *gpu)
{
	state_dir_copy_text(process->pci, sizeof(process->pci), gpu->pci, sizeof(gpu->pci));
	strcpy(process->source, gpu->simulated ? "" : "rm");
	process->simulated = gpu->simulated;
	gpupart_tpcset_format_list(&gpu->tpcs, process->limit, sizeof(process->limit));
}

/*
 * Does the same as describe(), but for a state page of another version. Of this page, the function
 * uses only the header.
 */
static void describe_other(const struct shared_seen *seen, int pid, uid_t uid,
			   struct gpupart_process *process)
{
	describe_header(&seen->header, pid, uid, process);
	process->other_version = true;
	process->nr_gpus = seen->nr_gpus;
	for (unsigned int g = seen->nr_gpus; g-- > 0; )
		if (!gpupart_tpcset_empty(&seen->gpus[g].tpcs) || (!g && !process->limit[0]))
			process_show_other(process, &seen->gpus[g]);
}

static void describe(const struct state_page *page, int pid, uid_t uid,
		     struct gpupart_process *process)
{
	describe_header(&page->header, pid, uid, process);
	state_dir_copy_text(process->problem, sizeof(process->problem), page->problem,
		  sizeof(page->problem));
	show_gpu(page, process);
	state_page_counters(page, &process->counters);
}


/*
 * Copies the state page in @fd. Other processes may write to the page during the copy. If a
 * limit changed during the copy, the function copies the page again.
 */
static bool copy_page(int fd, struct state_page *page)
{
	for (int tries = 0; tries < 100; tries++) {
		bool same = true;

		if (pread(fd, page, STATE_LISTED, 0) != STATE_LISTED)
			return false;
		for (uint32_t g = 0; g < state_nr_gpus(page) && same; g++) {
			off_t at = offsetof(struct state_page, gpus[g].limit.published);
			uint64_t published;

			same = pread(fd, &published, sizeof(published), at) == sizeof(published) &&
			       published == page->gpus[g].limit.published;
		}
		if (same)
			break;
	}
	return true;
}

/*
 * Parses the file name of a state page. The name contains the pid and the pid namespace of the
 * owner. It is complete even if the contents of the page are incomplete.
 */
static bool parse_name(const char *file, int *pid, uint64_t *pid_namespace)
{
	unsigned long long name_space;
	char canonical[48];

	if (sscanf(file, "%d.%llx", pid, &name_space) != 2)
		return false;
	*pid_namespace = name_space;
	snprintf(canonical, sizeof(canonical), "%d.%llx", *pid, name_space);
	return !strcmp(canonical, file);
}

/*
 * The maximum number of bytes that a scan of another user's directory reads from /proc/PID/maps. A
 * maximum is needed, because a process can have many mappings. Each line of such a file has at
 * least 50 bytes. One process can have 65530 mappings (vm.max_map_count). So this maximum is enough
 * for about one such process or for some dozens of ordinary processes.
 */
#define MAX_MAPS	(4u << 20)
#define OTHERS_LIMITS	"4 MiB of maps, 1 s of CPU time"

/*
 * Deletes the files of a process. The function deletes the state page last. If a records file has
 * no state page, other scans delete the records file as an orphan.
 */
static void sweep(int dir, const char *file)
{
	char records[64];

	snprintf(records, sizeof(records), "%.48s" STATE_RECORDS, file);
	unlinkat(dir, records, 0);
	unlinkat(dir, file, 0);
}

/*
 * If the state page of a records file does not exist, deletes the records file. A user may have
 * removed the state page, or a process may have died in sweep().
 */
static void sweep_orphan(int dir, const char *file)
{
	const char *end = strstr(file, STATE_RECORDS);
	uint64_t name_space;
	char page_file[48];
	int pid;

	if (!end || strcmp(end, STATE_RECORDS) || end - file >= (int)sizeof(page_file))
		return;
	snprintf(page_file, sizeof(page_file), "%.*s", (int)(end - file), file);
	if (parse_name(page_file, &pid, &name_space) && faccessat(dir, page_file, F_OK, 0) &&
	    errno == ENOENT)
		unlinkat(dir, file, 0);
}

/* A scan of one user's directory. */
struct user_scan {
	int dir;
	uid_t uid;
	struct holder_table *table;
};

/*
 * Reads one state page into *process. If the owner of the page has ended or is not found, returns
 * false. In this case, if no process has the file open, the function deletes the file. If root
 * reads another user's directory, the files in this directory are not trusted. Root must not map
 * such a file, and must not wait for it.
 */
static bool read_page(struct user_scan *scan, const char *file, struct gpupart_process *process)
{
	struct state_page *page;
	uint64_t name_space, start = 0;
	int fd, pid = -ESRCH, named;
	enum shared_version version;
	struct shared_seen seen;

	if (!parse_name(file, &named, &name_space)) {
		sweep_orphan(scan->dir, file);
		return false;
	}
	/* Do not open this process's own file, because the close would release the lock on it. */
	if (state_page_is_own(scan->dir, file)) {
		describe(state_page_own, getpid(), scan->uid, process);
		return true;
	}
	fd = shared_open(scan->dir, file, scan->uid, SHARED_PROCESS, STATE_LAYOUT, &seen,
			 &version);
	if (fd < 0)
		return false;
	page = aligned_alloc(_Alignof(struct state_page), sizeof(*page));
	if (!page)
		goto close_fd;
	if (version == SHARED_SAME && !copy_page(fd, page))
		version = SHARED_NONE;
	if (version != SHARED_NONE && seen.header.pid == named &&
	    seen.header.pid_namespace == name_space) {
		pid = holder_pid(fd, scan->uid, &seen.header, scan->table);
		start = seen.header.start;
	}
	if (pid >= 0 && version == SHARED_OTHER)
		describe_other(&seen, pid, scan->uid, process);
	else if (pid >= 0)
		describe(page, pid, scan->uid, process);
	else if (holder_none(fd, named, start, name_space))
		sweep(scan->dir, file);
close_fd:
	free(page);
	close(fd);
	return pid >= 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct gpupart_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/*
 * Fills in a row for the part of the directory that the scan left out. If the scan did not read the
 * maps of a process, it still lists the process with its limit. So the TPCs of this limit count as
 * used. But the contents of unopened files are unknown, so this row has no TPCs. If all TPCs
 * counted as used instead, one user could keep all other users off the GPU. The missing TPCs do no
 * harm. A user can delete the files of processes to hide them anyway. Grants are in files that
 * belong to root.
 */
static void describe_rest(const struct user_scan *scan, struct gpupart_process *process)
{
	memset(process, 0, sizeof(*process));
	process->uid = scan->uid;
	snprintf(process->problem, sizeof(process->problem),
		 "/dev/shm/gpupart-%u of user %u exceeds the limits of this list (%u files%s): more processes of this user may run",
		 scan->uid, scan->uid, STATE_DIR_MAX_FILES,
		 scan->uid == geteuid() ? "" : ", " OTHERS_LIMITS);
}

static void add_row(struct gpupart_process *list, unsigned int max, unsigned int *nr,
		    const struct gpupart_process *process)
{
	if (*nr < max)
		list[*nr] = *process;
	++*nr;
}

/*
 * Appends the processes of a directory to the list. The number *nr may become larger than @max, but
 * the function writes at most @max rows. The caller uses the same @table for all directories. One
 * user can have thousands of uids (see subuid(5)), and each of these uids can have a directory.
 */
static void list_dir(uid_t uid, struct holder_table *table, struct gpupart_process *list,
		     unsigned int max, unsigned int *nr)
{
	struct user_scan scan = { .dir = state_dir_open(uid, false), .uid = uid, .table = table };
	DIR *dir = state_dir_read(scan.dir);
	struct gpupart_process *process = malloc(sizeof(*process));
	uint64_t budget = state_dir_budget_begin(uid);
	unsigned int files = 0;
	bool spent = false;
	struct dirent *entry;

	table->maps_max = uid == geteuid() ? 0 : MAX_MAPS;
	table->maps_read = 0;
	while (dir && process && !spent && (entry = readdir(dir))) {
		spent = state_dir_has_more(uid, ++files) || state_dir_budget_spent(budget);
		if (!spent && entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    read_page(&scan, entry->d_name, process))
			add_row(list, max, nr, process);
	}
	if (dir && process && (spent || holder_spent(table))) {
		describe_rest(&scan, process);
		add_row(list, max, nr, process);
	}
	if (dir)
		closedir(dir);
	free(process);
}

static void sort(struct gpupart_process *list, unsigned int nr, unsigned int max)
{
	if (nr && max)
		qsort(list, nr < max ? nr : max, sizeof(*list), by_pid);
}

unsigned int process_list_own(struct gpupart_process *list, unsigned int max)
{
	struct holder_table table = { .maps_max = 0 };
	unsigned int nr = 0;

	list_dir(geteuid(), &table, list, max, &nr);
	holder_table_free(&table);
	sort(list, nr, max);
	return nr;
}

static int list_processes(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	struct gpupart_process *list = rows, rest = { .pid = 0 };
	struct holder_table table = { .maps_max = 0 };
	struct state_dirs folders;
	unsigned int nr = 0;
	uid_t uid;

	(void)arg;
	if (geteuid())
		return process_list_own(list, max);
	state_dirs_begin(&folders);
	if (!folders.root && errno != ENOENT)
		return ctx_fail(gp, -errno, "/dev/shm cannot be read: %s", strerror(errno));
	/*
	 * List root's own directory first. If it were listed later, the processes of other users
	 * could already have filled the list.
	 */
	list_dir(0, &table, list, max, &nr);
	while (state_dirs_next(&folders, &uid))
		list_dir(uid, &table, list, max, &nr);
	if (folders.is_cut) {
		snprintf(rest.problem, sizeof(rest.problem),
			 "/dev/shm has more than is looked at (%u names, %u s of work): other processes of users may run",
			 STATE_DIR_MAX_NAMES, STATE_DIR_MAX_SECONDS);
		add_row(list, max, &nr, &rest);
	}
	holder_table_free(&table);
	sort(list, nr, max);
	return nr;
}

int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
			 size_t size)
{
	return rows_resized(gp, list, max, size, sizeof(*list), list_processes, NULL);
}

/*
 * Returns true if the user could send a signal to the process. The kernel uses the real and the
 * saved uid of the process to decide this. Without this check, a user could make root send a
 * signal to a process of another user. The check does not apply to root's directory, because a
 * process there may have changed its user.
 */
static bool is_of_user(const struct state_dir_status *status, uid_t uid)
{
	return !uid || status->uids[0] == uid || status->uids[2] == uid;
}

bool process_read(int pid, uid_t uid, struct gpupart_process *now)
{
	struct holder_table table = { .maps_max = MAX_MAPS };
	struct user_scan scan = { .uid = uid, .table = &table };
	struct state_dir_status status;
	char file[48];
	bool found;

	if (!state_dir_proc_is_own() || !state_dir_read_status(pid, &status) ||
	    !is_of_user(&status, uid))
		return false;
	scan.dir = state_dir_open(uid, false);
	if (scan.dir < 0)
		return false;
	snprintf(file, sizeof(file), "%d.%llx", status.inner ? status.inner : pid,
		 (unsigned long long)state_dir_namespace_of(pid));
	found = read_page(&scan, file, now) && now->pid == pid;
	holder_table_free(&table);
	close(scan.dir);
	return found;
}
