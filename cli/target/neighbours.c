// SPDX-License-Identifier: MIT
/*
 * Which TPCs of a GPU other programs are limited to now. A program shows its limit when it first
 * uses the GPU; before that, and where it never does, its environment says it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/target/blocks.h"
#include "cli/target/cuda.h"
#include "cli/target/neighbours.h"
#include "cli/target/shown.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/options.h"

/* Without another run that takes the lock: one at work holds it for a moment. */
#define LOCK_SECONDS 60
/* The kernel gives a program no more unless it is told to; root reads anybody's. */
#define MAX_ENVIRONMENT (1u << 20)

/* Of another user that root reads: all of that user's processes together. */
#define MAX_ENVIRONMENTS (16u << 20)

/* How much was read of each user's. */
struct reading {
	struct user {
		uid_t uid;
		size_t bytes;
	} *users;
	unsigned int nr, nr_skipped;
};

/* How much may be read yet of @fd, a process's environment, whose owner is *user. */
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
 * The environment of a process, a string after the other, two 0 at the end; NULL: it is
 * not ours, or too long, or its user's are, which is counted.
 */
static char *read_environment(const char *pid, struct reading *reading)
{
	char path[300], *text;
	struct user *user;
	size_t used, max;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	max = left_of(reading, fd, &user);
	if (max > MAX_ENVIRONMENT)
		max = MAX_ENVIRONMENT;
	/* What is not written takes no memory. One read has all: the kernel stops at the end. */
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

/* A process whose page has no limit yet is known by its environment. */
static bool shows_itself(const struct neighbours *n, int pid)
{
	for (int i = 0; i < n->nr_processes; i++)
		if (n->processes[i].pid == pid && !*n->processes[i].problem &&
		    *n->processes[i].limit)
			return true;
	return false;
}

/* What a run was set to on this GPU since it began, or @words: a run is a job a GPU. */
static const char *words_now(const struct neighbours *n, const char *job, const char *words)
{
	const struct gpupart_job *found = shown_job_on(n->jobs, n->nr_jobs, job, n->pci);

	return found ? found->limit : words;
}

/* The set of @environment for this GPU, which the caller frees; "" or NULL: it has none. */
static char *words_of(const struct neighbours *n, const char *environment)
{
	const char *gpus = value_of(environment, "GPUPART_GPU");
	const char *sets = value_of(environment, "GPUPART_SET");
	char *gpu, *words = NULL;

	/* Another user may have written any number of them. */
	for (int i = 0; i < CUDA_MAX_GPUS && !words && (gpu = alloc_part(gpus, ',', i)); i++) {
		if (!strcasecmp(gpu, n->pci))
			words = alloc_part(sets, ';', strchr(sets, ';') ? i : 0);
		free(gpu);
	}
	return words;
}

/* The limit that process @pid will have, by its @environment, when it uses the GPU. */
static void look_at_words(const struct neighbours *n, int pid, const char *environment)
{
	const char *sim = n->args->simulated ? getenv("GPUPART_SIM") : NULL;
	struct neighbour found = { .pid = pid, .name = value_of(environment, "GPUPART_NAME"),
				   .job = value_of(environment, "GPUPART_JOB") };
	char *words = words_of(n, environment);
	const char *now = words ? words_now(n, found.job, words) : "";

	/* A simulated GPU is its captures: the same address may be another one. */
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
	       /* Another version does not tell of which capture it is. */
	       (!simulated || !*source || !strcmp(source, gpupart_topology_info(n->topo)->source));
}

void neighbours_shown(const struct neighbours *n)
{
	for (int i = 0; i < n->nr_processes; i++) {
		const struct gpupart_process *process = &n->processes[i];
		struct neighbour found = {
			.pid = process->pid, .name = process->name, .job = process->job,
		};

		if (*process->limit && !*process->problem &&
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
	struct dirent *entry;
	char *environment;
	bool is_run;

	while (proc && (entry = readdir(proc))) {
		if (*entry->d_name < '1' || *entry->d_name > '9' ||
		    shows_itself(list, atoi(entry->d_name)))
			continue;
		environment = read_environment(entry->d_name, &reading);
		is_run = environment && *value_of(environment, "GPUPART_GPU");
		for (unsigned int i = 0; is_run && i < nr; i++)
			look_at_words(&list[i], atoi(entry->d_name), environment);
		free(environment);
	}
	if (proc)
		closedir(proc);
	free(reading.users);
	return reading.nr_skipped;
}

/* The programs beside the one that asks, with those left out that only hold what is around it. */
struct beside {
	const struct neighbours *neighbours;
	const struct gpupart_tpcset *within, *set;
	struct gpupart_tpcset tpcs;	/* that they have */
	unsigned int nr;	/* that have TPCs of @set */
	char who[128];		/* the first of them */
};

/* Whether @found is of a job around the set that is asked for, and has all that is around it. */
static bool is_around(const struct beside *beside, const struct neighbour *found)
{
	const char *own = beside->neighbours->args->job ?: getenv("GPUPART_JOB");

	return gpupart_tpcset_equal(&found->set, beside->within) ||
	       (own && *found->job && gpupart_tpcset_subset(beside->within, &found->set) &&
		shown_is_inside(beside->neighbours->jobs, beside->neighbours->nr_jobs, own,
				found->job));
}

/* Adds what @found has, where a set is given of that set. */
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
 * Looks at all of them on the @nr GPUs of @list, which are alike but for the GPU, and with @to_be
 * at those that have not used one yet.
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
		remark("-n: other programs that run cannot be listed: their TPCs may be taken");
	/* What was not looked at, of a user that has too much there. */
	for (int i = 0; to_be && i < nr_processes; i++)
		if (!processes[i].pid && !*processes[i].pci && *processes[i].problem)
			remark("-n: %s, and their TPCs may be taken", processes[i].problem);
	nr_too_long = to_be ? neighbours_to_be(list, nr) : 0;
	if (nr_too_long)
		remark(
			"-n: the environments of %u processes are longer than %u KiB, or those of their user together than %u MiB, and were not read: whether those will be limited is not known",
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
 * A lock of this user's alone: one that others can take too, they can also keep. So runs of
 * one user never get the same TPCs by beginning at once, those of two users may: an ordinary
 * user sees no other's anyway, and root sees them when they have begun.
 */
int neighbours_lock(void)
{
	char folder[BLOCKS_PATH_LEN], path[BLOCKS_PATH_LEN + 8], why[160];
	int fd = -1, err = 0;
	struct timespec taken = { 0 };
	static bool locked;
	struct stat st;

	/* Of a run on several GPUs each takes it. */
	if (locked)
		return 0;
	/* Left open: the program's start or this one's end closes it. */
	if (!blocks_make(geteuid(), why, sizeof(why))) {
		snprintf(path, sizeof(path), "%s/lock", blocks_path(geteuid(), folder));
		fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			  0600);
		err = fd < 0 ? errno : 0;
	}
	for (int i = 0; fd >= 0 && i < LOCK_SECONDS * 100; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB)) {
			/* Those that wait see by this that the holder is another one. */
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
			"-n: one run holds %s for %d s, so that TPCs would be given twice: end or continue it (lslocks(8) names the process)",
			path, LOCK_SECONDS);
	if (err)
		snprintf(why, sizeof(why), "%s: %s", path, strerror(err));
	remark("-n: no lock was had, and a run that begins now may get the same TPCs: %s", why);
	return 0;
}
