// SPDX-License-Identifier: MIT
/*
 * Finds the TPCs in the limits of other programs. At its first use of the GPU, a program writes its
 * limit to its state page. Before this time, only its environment contains the limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/target/state_dir.h"
#include "cli/target/cuda.h"
#include "cli/target/neighbours.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/options.h"
#include "cli/util/process.h"

/*
 * The time limit for acquiring the lock. Whenever another run acquires the lock, the time starts
 * again. A run normally holds the lock for a short time.
 */
#define LOCK_SECONDS 60
/*
 * Environments with more bytes are not read. Without a raised stack limit, a larger environment is
 * impossible.
 */
#define MAX_ENVIRONMENT (1u << 20)

/* The maximum number of bytes that root reads for all processes of a user together. */
#define MAX_ENVIRONMENTS (16u << 20)

/* The number of bytes that were read for each user. */
struct reading {
	struct user {
		uid_t uid;
		size_t bytes;
	} *users;
	unsigned int nr, nr_skipped;
};

/*
 * Finds the owner of the environment @fd, and sets *user to this owner. Returns how many more bytes
 * may be read for this owner.
 */
static size_t left_of(struct reading *reading, int fd, struct user **user)
{
	struct user *users = reading->users;
	unsigned int i = 0;
	struct stat st;

	*user = NULL;
	if (fstat(fd, &st))
		return 0;
	while (i < reading->nr && users[i].uid != st.st_uid)
		i++;
	if (i == reading->nr) {
		users = realloc(users, (i + 1) * sizeof(*users));
		if (!users)
			return 0;
		users[reading->nr++] = (struct user){ .uid = st.st_uid };
		reading->users = users;
	}
	*user = &users[i];
	return st.st_uid == geteuid() ? MAX_ENVIRONMENT : MAX_ENVIRONMENTS - users[i].bytes;
}

/*
 * Reads the environment of a process. The result has two 0 bytes at the end. If the environment
 * cannot be read, returns NULL. If the environment is too long, or all environments of the user
 * together are too long, counts this environment and returns NULL.
 */
static char *read_environment(int pid, struct reading *reading)
{
	char path[32], *text;
	struct user *user;
	size_t used, max;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	max = left_of(reading, fd, &user);
	if (max > MAX_ENVIRONMENT)
		max = MAX_ENVIRONMENT;
	/*
	 * The unused part of the memory is never touched. A single read() returns the whole
	 * environment.
	 */
	text = malloc(max + 2);
	n = text ? read(fd, text, max) : 0;
	used = n > 0 ? n : 0;
	close(fd);
	if (user)
		user->bytes += used;
	if (text && used == max) {
		reading->nr_skipped++;
		free(text);
		return NULL;
	}
	if (text)
		text[used] = text[used + 1] = 0;
	return text;
}

static const char *value_of(const char *environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment += strlen(environment) + 1)
		if (!strncmp(environment, name, len) && environment[len] == '=')
			return environment + len + 1;
	return "";
}

static bool is_ignored(const struct neighbours *n, int pid, const char *name)
{
	const struct args *args = n->args;

	return pid == getpid() || (args->ignored_pid && pid == args->ignored_pid) ||
	       (args->ignored_name && !strcmp(name, args->ignored_name)) ||
	       (n->is_left_out && n->is_left_out(pid));
}

/*
 * Returns whether the state page of @pid has a limit. If there is no limit, the caller reads the
 * environment of @pid.
 */
static bool shows_itself(const struct neighbours *n, int pid)
{
	for (int i = 0; i < n->nr_processes; i++)
		if (n->processes[i].pid == pid && *n->processes[i].limit)
			return true;
	return false;
}

/*
 * Returns the current limit of the job on this GPU. A run has one job for each GPU. If the job is
 * not listed, returns @words.
 */
static const char *words_now(const struct neighbours *n, const char *job, const char *words)
{
	const struct gpupart_job *found = shown_job_on(n->jobs, n->nr_jobs, job, n->pci);

	return found ? found->limit : words;
}

/*
 * Returns the set in @environment for this GPU. If there is no set, returns "" or NULL. The caller
 * frees the result.
 */
static char *words_of(const struct neighbours *n, const char *environment)
{
	const char *gpus = value_of(environment, "GPUPART_GPU");
	const char *sets = value_of(environment, "GPUPART_SET");
	char *gpu, *words = NULL;

	/* Another user can write any number of GPUs. So limit the number of GPUs. */
	for (int i = 0; i < CUDA_MAX_GPUS && !words && (gpu = alloc_part(gpus, ',', i)); i++) {
		if (!strcasecmp(gpu, n->pci))
			words = alloc_part(sets, ';', strchr(sets, ';') ? i : 0);
		free(gpu);
	}
	return words;
}

/*
 * Reads a future limit from @environment, and reports this limit. Process @pid will have this limit
 * when it uses the GPU.
 */
static void look_at_words(const struct neighbours *n, int pid, const char *environment)
{
	const char *sim = n->args->simulated ? getenv("GPUPART_SIM") : NULL;
	struct neighbour found = { .pid = pid, .name = value_of(environment, "GPUPART_NAME"),
				   .job = value_of(environment, "GPUPART_JOB") };
	char *words = words_of(n, environment);
	const char *now = words ? words_now(n, found.job, words) : "";

	/*
	 * If two simulated GPUs have the same address but different captures, they are different
	 * GPUs.
	 */
	if (*now && (!sim || !strcmp(value_of(environment, "GPUPART_SIM"), sim)) &&
	    strcmp(value_of(environment, "GPUPART_DISABLE"), "1") &&
	    !is_ignored(n, found.pid, found.name) &&
	    !gpupart_set_parse(NULL, n->topo, now, &found.set))
		n->found(n->user, &found);
	free(words);
}

bool neighbours_is_here(const struct neighbours *n, const char *pci, const char *source,
			bool simulated)
{
	return !strcasecmp(pci, n->pci) && simulated == n->args->simulated &&
	       /* If a process has another version of gpupart, @source is "". */
	       (!simulated || !*source || !strcmp(source, gpupart_topology_info(n->topo)->source));
}

void neighbours_shown(const struct neighbours *n)
{
	for (int i = 0; i < n->nr_processes; i++) {
		const struct gpupart_process *process = &n->processes[i];
		struct neighbour found = {
			.pid = process->pid, .name = process->name, .job = process->job,
		};

		if (*process->limit &&
		    neighbours_is_here(n, process->pci, process->source, process->simulated) &&
		    !is_ignored(n, process->pid, process->name) &&
		    !gpupart_set_parse(NULL, n->topo, process->limit, &found.set))
			n->found(n->user, &found);
	}
}

unsigned int neighbours_to_be(const struct neighbours *list, unsigned int nr)
{
	DIR *proc = opendir("/proc");
	struct reading reading = { NULL, 0, 0 };
	char *environment;
	bool is_run;
	int pid;

	while (proc && (pid = process_next(proc))) {
		if (shows_itself(list, pid))
			continue;
		environment = read_environment(pid, &reading);
		is_run = environment && *value_of(environment, "GPUPART_GPU");
		for (unsigned int i = 0; is_run && i < nr; i++)
			look_at_words(&list[i], pid, environment);
		free(environment);
	}
	if (proc)
		closedir(proc);
	free(reading.users);
	return reading.nr_skipped;
}

/*
 * Collects the TPCs of other programs. If a program has no limit except the outer limit, ignores
 * the program.
 */
struct beside {
	const struct neighbours *neighbours;
	const struct gpupart_tpcset *within, *set;
	struct gpupart_tpcset tpcs;	/* TPCs of these programs */
	unsigned int nr;	/* number of programs with TPCs of @set */
	char who[128];		/* text that describes the first such program */
};

/*
 * Returns whether to ignore @found. If the set of @found equals the outer limit, returns true. If
 * @found belongs to an outer job, and its set contains the outer limit, also returns true.
 */
static bool is_around(const struct beside *beside, const struct neighbour *found)
{
	const char *own = beside->neighbours->args->job ?: getenv("GPUPART_JOB");

	return gpupart_tpcset_equal(&found->set, beside->within) ||
	       (own && *found->job && gpupart_tpcset_subset(beside->within, &found->set) &&
		shown_is_inside(beside->neighbours->jobs, beside->neighbours->nr_jobs, own,
				found->job));
}

/* Adds TPCs of @found. If the search has a set, ignores TPCs outside this set. */
static void add(void *user, const struct neighbour *found)
{
	struct beside *beside = user;
	struct gpupart_tpcset tpcs = beside->set ? gpupart_tpcset_and(&found->set, beside->set) :
						   found->set;

	if (gpupart_tpcset_empty(&tpcs) || (beside->within && is_around(beside, found)))
		return;
	beside->tpcs = gpupart_tpcset_or(&beside->tpcs, &tpcs);
	if (!beside->nr++)
		snprintf(beside->who, sizeof(beside->who), "process %d%s%s", found->pid,
			 *found->name ? ", " : "", found->name);
}

/*
 * Collects other programs on the @nr GPUs of @list. Except for the GPU, all entries of @list are
 * equal. If @to_be is true, also collects programs that have not used a GPU so far.
 */
static void look(struct neighbours *list, struct beside *besides, unsigned int nr, bool to_be)
{
	struct gpupart_process *processes;
	struct gpupart_job *jobs = NULL;
	int nr_processes = shown_processes(cmd_gp, &processes);
	int nr_jobs = to_be || besides->within ? shown_jobs(cmd_gp, &jobs) : 0;
	unsigned int nr_too_long;

	for (unsigned int i = 0; i < nr; i++) {
		besides[i].neighbours = &list[i];
		list[i].found = add;
		list[i].user = &besides[i];
		list[i].processes = processes;
		list[i].nr_processes = nr_processes;
		list[i].jobs = jobs;
		list[i].nr_jobs = nr_jobs;
		neighbours_shown(&list[i]);
	}
	if (to_be && nr_processes < 0)
		remark("-n: running programs cannot be listed, so the set may contain their TPCs");
	/*
	 * Such an entry is for a user with too many files. Some files of this user were not read.
	 */
	for (int i = 0; to_be && i < nr_processes; i++)
		if (!processes[i].pid && !*processes[i].pci && *processes[i].problem)
			remark("-n: %s: the set may contain their TPCs", processes[i].problem);
	nr_too_long = to_be ? neighbours_to_be(list, nr) : 0;
	if (nr_too_long)
		remark(
			"-n: the environments of %u processes were not read: each environment is longer than %u KiB, or all environments of one user together are longer than %u MiB; the set may contain the TPCs of these processes",
			nr_too_long, MAX_ENVIRONMENT >> 10, MAX_ENVIRONMENTS >> 20);
	free(processes);
	free(jobs);
}

struct gpupart_tpcset neighbours_tpcs(const struct args *args, const struct gpupart_topology *topo,
				      const char *pci, const struct gpupart_tpcset *within)
{
	struct neighbours n = { .args = args, .topo = topo, .pci = pci };
	struct beside beside = { .within = within };

	look(&n, &beside, 1, true);
	return beside.tpcs;
}

void neighbours_add(struct neighbours *list, unsigned int nr, struct gpupart_tpcset *tpcs)
{
	struct beside *besides = alloc_zeroed(nr + 1, sizeof(*besides));

	look(list, besides, nr, true);
	for (unsigned int i = 0; i < nr; i++)
		tpcs[i] = gpupart_tpcset_or(&tpcs[i], &besides[i].tpcs);
	free(besides);
}

void neighbours_note(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		     const struct gpupart_tpcset *within, const struct gpupart_tpcset *set)
{
	struct neighbours n = { .args = args, .topo = topo, .pci = pci };
	struct beside beside = { .within = within, .set = set };
	char list[GPUPART_TPCSET_STRLEN], more[32] = "";

	look(&n, &beside, 1, false);
	gpupart_tpcset_format_list(&beside.tpcs, list, sizeof(list));
	if (beside.nr > 1)
		snprintf(more, sizeof(more), " and %u more", beside.nr - 1);
	if (beside.nr)
		remark("TPCs %s are also in the set of %s%s", list, beside.who, more);
}

/*
 * Each user has a separate lock, because another user could hold a shared lock forever. So
 * concurrent runs of one user never get the same TPCs. But runs of different users may get the same
 * TPCs. An ordinary user never sees programs of other users. Root sees such a program after its
 * start.
 */
int neighbours_lock(void)
{
	char folder[STATE_DIR_PATH_LEN], path[STATE_DIR_PATH_LEN + 8], why[160];
	int fd = -1, err = 0;
	struct timespec taken = { 0 };
	static bool locked;
	struct stat st;

	/* A run calls this function once for each GPU. */
	if (locked)
		return 0;
	/* The descriptor stays open until this process executes the program or exits. */
	if (!state_dir_create(geteuid(), why, sizeof(why))) {
		snprintf(path, sizeof(path), "%s/lock", state_dir_path(geteuid(), folder));
		fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			  0600);
		err = fd < 0 ? errno : 0;
	}
	for (int i = 0; fd >= 0 && i < LOCK_SECONDS * 100; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB)) {
			/*
			 * Change the time of the file. Then waiting runs know that this run has
			 * acquired the lock.
			 */
			futimens(fd, NULL);
			locked = true;
			return 0;
		}
		err = errno;
		if (err != EWOULDBLOCK && err != EINTR)
			break;
		if (!fstat(fd, &st) && memcmp(&st.st_mtim, &taken, sizeof(taken))) {
			taken = st.st_mtim;
			i = 0;
		}
		usleep(10000);
	}
	if (err == EWOULDBLOCK || err == EINTR)
		return failure(
			"-n: another run has kept %s locked for %d s: end or continue that run (lslocks(8) shows the process)",
			path, LOCK_SECONDS);
	if (err)
		snprintf(why, sizeof(why), "%s: %s", path, strerror(err));
	remark(
		"-n: the lock cannot be acquired, so a run that starts now may get the same TPCs: %s",
	       why);
	return 0;
}
